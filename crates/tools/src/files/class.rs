//! What a file is besides a file, as far as only the tree can tell: the policy knows places by their names.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use portcullis_contract::{AccessRequest, Resolved, Resource, ResourceClass};
use portcullis_policy::places::{self, Place};
use portcullis_policy::secrets::{self, Look};
use portcullis_sandbox::tree::kind_at;
use portcullis_sandbox::{Kind, Mount, MountTable};

use super::{FileTools, tracked};

/// What makes a folder a git folder, whatever it is called.
const GIT_FOLDER: [&str; 3] = ["HEAD", "objects", "refs"];

/// Bytes of a file in which a token or a key is looked for. Real ones have a few thousand.
const LOOKED_AT: u64 = 1 << 20;

impl FileTools {
    /// What a call that shows contents names, with what each of them is.
    pub(crate) fn to_read(&self, mut resolved: Resolved) -> Resolved {
        for resource in &mut resolved.resources {
            resource.class = self.secret_at(&resource.canonical);
        }
        resolved
    }

    /// Whether what stands at this canonical path holds secrets.
    pub(crate) fn secret_at(&self, canonical: &str) -> Option<ResourceClass> {
        let (mount, beneath) = beneath(&self.mounts, canonical)?;
        secret(mount, &beneath, canonical)
    }
    /// What a call that writes names, with what each of them is.
    pub(crate) fn to_write(&self, mut resolved: Resolved) -> Resolved {
        for resource in &mut resolved.resources {
            let place = in_git_folder(&self.mounts, resource);
            resource.class = place.map(|place| ResourceClass::RunsLater(place.pattern.to_owned()));
        }
        resolved
    }
}

/// Whether what stands at `beneath` the mount, whose virtual path is `canonical`, holds secrets: by its name, by its
/// content where the name does not tell, and not if git tracks it as it is.
pub(crate) fn secret(mount: &Mount, beneath: &Path, canonical: &str) -> Option<ResourceClass> {
    let found = secrets::secret(canonical)?;
    let (kind, _) = kind_at(mount, beneath)?;
    let counts = match (kind, found.look) {
        (Kind::Directory, _) => found.pattern.ends_with('/'),
        (Kind::Other, _) => false,
        (Kind::File, Look::NameTells) => true,
        // What cannot be read cannot be shown to be public.
        (Kind::File, Look::RegistryToken) => content(mount, beneath).is_none_or(|text| holds_token(&text)),
        (Kind::File, Look::PrivateKey) => content(mount, beneath).is_none_or(|text| !is_public(&text)),
    };
    let tracked = || mount.host_place().is_some_and(|host| tracked::is_tracked(&host.join(beneath)));
    (counts && !tracked()).then(|| ResourceClass::Secret(found.pattern.to_owned()))
}

/// The secrets that a name which was sighted leads to, with their virtual paths: itself, or what its folder holds at the
/// rest of a longer name (`credentials` of `.aws/credentials`).
pub(crate) fn beginning_at(mount: &Mount, beneath: &Path) -> Vec<(String, ResourceClass)> {
    let root = mount.root().as_str().trim_end_matches('/');
    let name = beneath.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = secrets::SECRETS.iter().filter_map(|secret| {
        let (first, rest) = secret.pattern.trim_end_matches('/').split_once('/')?;
        first.eq_ignore_ascii_case(name).then(|| beneath.join(rest))
    });
    let places = std::iter::once(beneath.to_owned()).chain(rest);
    let classed = places.filter_map(|place| {
        let path = format!("{root}/{}", place.to_str()?);
        secret(mount, &place, &path).map(|class| (path, class))
    });
    classed.collect()
}

fn content(mount: &Mount, beneath: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    mount.dir().open(beneath).ok()?.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn holds_token(text: &str) -> bool {
    let low = text.to_lowercase();
    ["_authtoken", "_auth", "_password", "npmauthtoken", "npmauthident"].iter().any(|name| low.contains(name))
}

/// Whether a text has blocks such as certificates, and each of them is public.
fn is_public(text: &str) -> bool {
    let mut blocks = text.match_indices("-----BEGIN ").map(|(at, _)| &text[at..]).peekable();
    let public = [
        "CERTIFICATE",
        "PUBLIC KEY",
        "X509 CRL",
        "DH PARAMETERS",
        "EC PARAMETERS",
        "TRUSTED CERTIFICATE",
        "RSA PUBLIC KEY",
    ];
    blocks.peek().is_some()
        && blocks.all(|block| public.iter().any(|kind| block.starts_with(&format!("-----BEGIN {kind}-----"))))
}

/// The mount that a canonical path lies in, and the way from there.
fn beneath<'m>(mounts: &'m MountTable, canonical: &str) -> Option<(&'m Mount, PathBuf)> {
    let path = Path::new(canonical);
    let around =
        mounts.mounts().filter_map(|mount| Some((mount, path.strip_prefix(mount.root().as_str()).ok()?.to_owned())));
    around.max_by_key(|(mount, _)| mount.root().as_str().len())
}

/// The place of git that a path is, if it lies in a git folder with a name of its own, or makes one.
fn in_git_folder(mounts: &MountTable, resource: &Resource) -> Option<&'static Place> {
    let (mount, beneath) = beneath(mounts, &resource.canonical)?;
    let names: Vec<&str> = beneath.iter().filter_map(|name| name.to_str()).collect();
    let mut folder = PathBuf::new();
    for (at, name) in names.iter().enumerate() {
        let there = |mark: &&&str| kind_at(mount, &folder.join(mark)).is_some();
        let present = GIT_FOLDER.iter().filter(there).count();
        let completes = GIT_FOLDER.iter().filter(|mark| !there(mark)).all(|mark| mark.eq_ignore_ascii_case(name));
        if present == GIT_FOLDER.len() {
            if let Some(place) = Place::in_git_folder(&names[at..].join("/")) {
                return Some(place);
            }
        } else if present + 1 == GIT_FOLDER.len() && completes {
            return Place::by_pattern(".git");
        }
        folder.push(name);
    }
    None
}

/// The access with the places that it writes and that run later, for the person who is asked.
pub(super) fn with_places(mut request: AccessRequest) -> AccessRequest {
    let told = |resource: &Resource| match &resource.class {
        Some(ResourceClass::RunsLater(pattern)) => Place::by_pattern(pattern),
        _ => places::runs_later(&resource.canonical),
    };
    let found: Vec<(String, &Place)> =
        request.resources().filter_map(|one| told(one).map(|place| (one.canonical.clone(), place))).collect();
    for (path, place) in found {
        request = request.fact("runs later", format!("{path}: {}", place.why));
    }
    request
}
