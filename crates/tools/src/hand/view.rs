//! What a command sees: the mounts at their virtual places, a person's workspace at its host place as well, and
//! toolchains.
//!
//! Real projects hold absolute host paths (a virtual environment, a build folder), so the workspace stands at both places,
//! with the same masks and guards.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_contract::{Caller, ToolFailure};
use portcullis_sandbox::Access;
use portcullis_sandbox::hand::{self, Bind, BindAccess, Network, Source};

use super::{Hand, NetworkAccess, Reach, guards, host};

/// One mount in the view.
#[derive(Debug, Clone)]
pub(super) struct ShownMount {
    /// Its virtual path.
    pub(super) root: String,
    /// Every place it stands at, the virtual one first.
    pub(super) places: Vec<PathBuf>,
    /// Its host place, if it can be found.
    pub(super) host: Option<PathBuf>,
    pub(super) writable: bool,
}

/// The places of a view.
#[derive(Debug)]
pub(super) struct ViewPlaces {
    pub(super) mounts: Vec<ShownMount>,
    /// In an order in which each can be made.
    pub(super) binds: Vec<Bind>,
    pub(super) home: Option<PathBuf>,
    /// What toolchains need, `HOME` and `PATH` among it.
    pub(super) toolchain_env: Vec<(OsString, OsString)>,
    /// A host folder as `/tmp`, where there is no root of its own to have one in memory.
    pub(super) tmp: Option<Source>,
    /// Where `/tmp` is for the command.
    pub(super) tmp_place: Option<PathBuf>,
    /// Whether the mounts stand at their virtual places.
    pub(super) full: bool,
}

/// Places that are the machine's own: a workspace there stands at its virtual place alone.
const NOT_HERE: &[&str] = &["/proc", "/sys", "/dev"];

impl ViewPlaces {
    pub(super) fn of(hand: &Hand, caller: &Caller, reach: Reach, full: bool) -> Result<Self, ToolFailure> {
        let mounts = mounts(hand, reach)?;
        let (mut own, mut binds) = (Vec::new(), Vec::new());
        for (mount, source) in &mounts {
            let access = if mount.writable { BindAccess::ReadWrite } else { BindAccess::ReadOnly };
            for place in &mount.places {
                let bind = Bind { source: source.clone(), place: place.clone(), access, optional: false };
                own.push(bind);
            }
        }
        let mut shown = Self {
            mounts: mounts.into_iter().map(|(mount, _)| mount).collect(),
            binds: Vec::new(),
            home: None,
            toolchain_env: Vec::new(),
            tmp: None,
            tmp_place: None,
            full,
        };
        if reach == Reach::Writable {
            shown.toolchains(hand, caller, &mut binds)?;
        }
        if !full {
            shown.tmp_folder(hand);
        }
        binds.extend(own);
        binds.extend(guards::held_in_place(&shown));
        // What lies inside another comes after it.
        binds.sort_by_key(|bind| bind.place.components().count());
        shown.binds = binds;
        Ok(shown)
    }

    fn toolchains(&mut self, hand: &Hand, caller: &Caller, binds: &mut Vec<Bind>) -> Result<(), ToolFailure> {
        let settings = hand.settings();
        let (Some(host), Some(caches)) = (&host::of(hand, caller), &settings.caches) else { return Ok(()) };
        let network = if settings.network == NetworkAccess::Enabled { Network::Host } else { Network::Disabled };
        let found = hand::toolchains(host, caches, &settings.hidden, network).map_err(|error| {
            ToolFailure::new("io_error", format!("the folder for caches cannot be made: {error}")).retryable(true)
        })?;
        let workspaces: Vec<&Path> = self.mounts.iter().flat_map(|mount| &mount.places).map(PathBuf::as_path).collect();
        let home_is_shown = workspaces.iter().any(|place| host.home.starts_with(place));
        let of_a_mount = |bind: &Bind| match &bind.source {
            Source::Path(source) => {
                self.mounts.iter().filter_map(|mount| mount.host.as_ref()).any(|host| source.starts_with(host))
            }
            Source::Handle(_) => false,
        };
        binds.extend(found.binds.into_iter().filter(|bind| {
            // A folder of the workspace under another name would have neither masks nor guards.
            if bind.access == BindAccess::ReadOnly && of_a_mount(bind) && !home_is_shown {
                return false;
            }
            let inside = workspaces.iter().any(|place| bind.place.starts_with(place));
            let around = workspaces.iter().any(|place| place.starts_with(&bind.place));
            match (inside, around) {
                // It would cover the workspace.
                (_, true) => false,
                (false, false) => true,
                // A home that is the workspace: its programs stay read-only, and a cache needs a place that is there.
                (true, false) if home_is_shown => bind.access == BindAccess::ReadOnly || bind.place.is_dir(),
                // Part of the workspace, such as a virtual environment.
                (true, false) => false,
            }
        }));
        binds.extend(found.identity.filter(|_| !home_is_shown));
        self.home = (!home_is_shown).then(|| host.home.clone());
        self.toolchain_env = found.env;
        Ok(())
    }

    fn tmp_folder(&mut self, hand: &Hand) {
        let Some(caches) = &hand.settings().caches else { return };
        let folder = caches.join("tmp");
        if std::fs::create_dir_all(&folder).is_ok() {
            self.tmp = Some(Source::Path(folder.clone()));
            self.tmp_place = Some(folder);
        }
    }

    /// Every place of the view at which the place `beneath` a mount stands.
    pub(super) fn places_of<'s>(&'s self, root: &'s str, beneath: &'s Path) -> impl Iterator<Item = PathBuf> + 's {
        let mounts = self.mounts.iter().filter(move |mount| mount.root == root);
        mounts.flat_map(|mount| &mount.places).map(move |place| join(place, beneath))
    }

    /// Where a virtual path is for the command.
    pub(super) fn for_command(&self, virtual_path: &str) -> PathBuf {
        if self.full {
            return PathBuf::from(virtual_path);
        }
        let beneath = |mount: &ShownMount| {
            let rest = Path::new(virtual_path).strip_prefix(&mount.root).ok()?;
            Some(join(mount.host.as_ref()?, rest))
        };
        let mut inner: Vec<&ShownMount> = self.mounts.iter().collect();
        inner.sort_by_key(|mount| std::cmp::Reverse(mount.root.len()));
        inner.into_iter().find_map(beneath).unwrap_or_else(|| PathBuf::from(virtual_path))
    }
}

/// `join` leaves a slash at the end for an empty path.
pub(super) fn join(place: &Path, beneath: &Path) -> PathBuf {
    if beneath.as_os_str().is_empty() { place.to_owned() } else { place.join(beneath) }
}

fn mounts(hand: &Hand, reach: Reach) -> Result<Vec<(ShownMount, Source)>, ToolFailure> {
    let table = hand.mounts();
    let roots: Vec<&Path> = table.mounts().map(|mount| Path::new(mount.root().as_str())).collect();
    let mut out = Vec::new();
    for mount in table.mounts() {
        let lost = |error: std::io::Error| {
            let text = format!("{} cannot be shown to a command: {error}", mount.root());
            ToolFailure::new("io_error", text).retryable(true)
        };
        let handle = mount.dir().as_fd().try_clone_to_owned().map_err(lost)?;
        let root = mount.root().as_str().to_owned();
        let host = mount.host_place();
        let mut places = vec![PathBuf::from(&root)];
        // A host place among the virtual ones, or around them, would hide one of them.
        let stands_apart = |host: &&PathBuf| {
            !roots.iter().any(|root| host.starts_with(root) || root.starts_with(host))
                && !NOT_HERE.iter().any(|place| host.starts_with(place))
        };
        places.extend(host.as_ref().filter(|_| mount.takes_host_paths()).filter(stands_apart).cloned());
        let writable = reach == Reach::Writable && mount.access() == Access::ReadWrite;
        out.push((ShownMount { root, places, host, writable }, Source::Handle(Arc::new(handle))));
    }
    Ok(out)
}
