//! What a file is besides a file, as far as only the tree can tell: the policy knows places by their names.

use std::path::{Path, PathBuf};

use portcullis_base::Risk;
use portcullis_contract::{AccessRequest, Resolved, Resource, ResourceClass, ToolFailure};
use portcullis_policy::places::{self, LaterPlace};
use portcullis_sandbox::tree::{is_git_folder, kind_at};
use portcullis_sandbox::{Kind, Mount, MountTable, read_small_beneath};
use portcullis_secret::file_names::{self, ContentCheck, SecretName};

use super::ignored::IgnoreFiles;
use super::own_writes::OwnWrites;
use super::tracked::{self, GitTracking};
use super::{FileTools, sandbox};
use crate::hand::Hand;

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
        let candidate = Candidate::at(&self.mounts, mount, &beneath, canonical.to_owned())?;
        secrets_among(vec![candidate], self.own_writes()).pop().map(|secret| secret.class)
    }

    /// What the file tools of this workspace wrote. Without commands nobody needs to know.
    fn own_writes(&self) -> Option<&OwnWrites> {
        self.hand.as_ref().map(Hand::own_writes)
    }

    /// Writes a file with `write`. What was open before is open afterwards, and so is what was not there.
    pub(super) fn writing<T>(
        &self,
        place: &sandbox::ResolvedPlace,
        write: impl FnOnce() -> Result<(sandbox::WrittenFile, T), ToolFailure>,
    ) -> Result<(sandbox::WrittenFile, T), ToolFailure> {
        let canonical = place.path().as_str();
        let open = file_names::secret(canonical).is_some() && self.secret_at(canonical).is_none();
        let (written, made) = write()?;
        if open
            && let Some(own) = self.own_writes()
            && let Some((mount, beneath)) = beneath(&self.mounts, canonical)
            && let Some(meta) = mount.host_place().and_then(|host| host.join(beneath).symlink_metadata().ok())
        {
            own.add(&meta, written.size, written.mtime);
        }
        Ok((written, made))
    }

    /// What a call that writes names, with what each of them is.
    pub(crate) fn to_write(&self, mut resolved: Resolved) -> Resolved {
        let later = self.hand.as_ref().and_then(Hand::later_now);
        for resource in &mut resolved.resources {
            let led_to = || {
                let (mount, beneath) = beneath(&self.mounts, &resource.canonical)?;
                later.as_ref()?.place_at(mount.root().as_str(), &beneath)
            };
            let place = in_git_folder(&self.mounts, resource).or_else(led_to);
            resource.class = place.map(|place| ResourceClass::RunsLater(place.pattern.to_owned()));
        }
        resolved
    }
}

/// What may hold secrets: by its name, and by its content where the name does not tell.
pub(crate) struct Candidate {
    /// Its virtual path.
    pub(crate) path: String,
    class: ResourceClass,
    host: Option<PathBuf>,
    /// The host folder of its mount.
    top: Option<PathBuf>,
}

/// A file or folder that holds secrets.
pub(crate) struct Secret {
    pub(crate) path: String,
    pub(crate) class: ResourceClass,
    /// Git's index names it. Shown empty, it would be committed empty.
    pub(crate) listed: bool,
    host: Option<PathBuf>,
    top: Option<PathBuf>,
}

impl Secret {
    /// Whether git would leave it alone.
    pub(crate) fn is_ignored(&self, files: &mut IgnoreFiles) -> bool {
        self.host.as_ref().zip(self.top.as_ref()).is_some_and(|(host, top)| files.cover(host, top))
    }
}

impl Candidate {
    /// What stands at `beneath` the mount, whose virtual path is `path`. Where that is a link, it is what the link leads to.
    fn at(mounts: &MountTable, mount: &Mount, beneath: &Path, path: String) -> Option<Self> {
        let found = file_names::secret(&path)?;
        let (kind, _) = kind_at(mount, beneath)?;
        if kind == Kind::Other {
            let target = mounts.resolve(&path).ok().filter(|target| target.path().as_str() != path)?;
            let beneath: PathBuf = target.names().iter().map(|name| name.as_str()).collect();
            return Self::named(found, target.mount(), &beneath, target.path().as_str().to_owned(), target.kind()?);
        }
        Self::named(found, mount, beneath, path, kind)
    }

    /// A file or folder under this kind of name.
    fn named(found: &SecretName, mount: &Mount, beneath: &Path, path: String, kind: Kind) -> Option<Self> {
        let counts = match (kind, found.look) {
            (Kind::Directory, _) => found.pattern.ends_with('/'),
            (Kind::Other, _) => false,
            (Kind::File, ContentCheck::NameTells) => true,
            // What cannot be read cannot be shown to be public.
            (Kind::File, ContentCheck::RegistryToken) => content(mount, beneath).is_none_or(|text| holds_token(&text)),
            (Kind::File, ContentCheck::PrivateKey) => content(mount, beneath).is_none_or(|text| !is_public(&text)),
        };
        let class = ResourceClass::Secret(found.pattern.to_owned());
        let top = mount.host_place();
        counts.then(|| Self { path, class, host: top.as_ref().map(|host| host.join(beneath)), top })
    }
}

/// Those that are none by what git or this process knows of them are left out: git tracks them as they are, or the file tools
/// wrote them.
pub(crate) fn secrets_among(candidates: Vec<Candidate>, own: Option<&OwnWrites>) -> Vec<Secret> {
    let hosts: Vec<PathBuf> = candidates.iter().map(|one| one.host.clone().unwrap_or_default()).collect();
    let tracked = tracked::look(&hosts);
    let all = candidates.into_iter().zip(tracked);
    all.filter(|(one, tracked)| {
        let meta = one.host.as_ref().and_then(|host| host.symlink_metadata().ok());
        let own = own.zip(meta).is_some_and(|(own, meta)| meta.is_file() && own.has(&meta));
        *tracked != GitTracking::AsItIs && !own
    })
    .map(|(Candidate { path, class, host, top }, tracked)| Secret {
        path,
        class,
        listed: tracked == GitTracking::Listed,
        host,
        top,
    })
    .collect()
}

/// What a name which was sighted leads to: itself, or what its folder holds at the rest of a longer name (`credentials` of
/// `.aws/credentials`).
pub(crate) fn beginning_at(mounts: &MountTable, mount: &Mount, beneath: &Path) -> Vec<Candidate> {
    let root = mount.root().as_str().trim_end_matches('/');
    let name = beneath.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = file_names::SECRETS.iter().filter_map(|secret| {
        let (first, rest) = secret.pattern.trim_end_matches('/').split_once('/')?;
        first.eq_ignore_ascii_case(name).then(|| beneath.join(rest))
    });
    let places = std::iter::once(beneath.to_owned()).chain(rest);
    // A name that is no text is shown as one, as the walk that looks for these paths shows it.
    places
        .filter_map(|place| Candidate::at(mounts, mount, &place, format!("{root}/{}", place.to_string_lossy())))
        .collect()
}

fn content(mount: &Mount, beneath: &Path) -> Option<String> {
    let bytes = read_small_beneath(mount.dir(), beneath, LOOKED_AT)?;
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
fn in_git_folder(mounts: &MountTable, resource: &Resource) -> Option<&'static LaterPlace> {
    let (mount, beneath) = beneath(mounts, &resource.canonical)?;
    let names: Vec<&str> = beneath.iter().filter_map(|name| name.to_str()).collect();
    let mut folder = PathBuf::new();
    for (at, name) in names.iter().enumerate() {
        let there = |mark: &str| kind_at(mount, &folder.join(mark)).is_some();
        if is_git_folder(there) {
            if let Some(place) = LaterPlace::in_git_folder(&names[at..].join("/")) {
                return Some(place);
            }
        } else if is_git_folder(|mark| mark.eq_ignore_ascii_case(name) || there(mark)) {
            return LaterPlace::by_pattern(".git");
        }
        folder.push(name);
    }
    None
}

/// The access with the places that it writes and that run later, for the person who is asked.
pub(crate) fn with_places(mut request: AccessRequest) -> AccessRequest {
    if !request.risk.contains(&Risk::Write) {
        return request;
    }
    let told = |resource: &Resource| match &resource.class {
        Some(ResourceClass::RunsLater(pattern)) => LaterPlace::by_pattern(pattern),
        _ => places::runs_later(&resource.canonical),
    };
    let found: Vec<(String, &LaterPlace)> =
        request.resources().filter_map(|one| told(one).map(|place| (one.canonical.clone(), place))).collect();
    for (path, place) in found {
        request = request.fact("runs later", format!("{path}: {}", place.why));
    }
    request
}
