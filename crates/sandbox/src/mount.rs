//! Mounts: which host directories a session sees, under which names, and what it may do there.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::handle::Identity;
use crate::hidden_places::HiddenPlaces;
use crate::{FileError, Name, ResolvedPlace, VirtualPath};

/// Configuration and rules of a workspace: readable, never the agent's to change.
pub const CONFIG_DIR: &str = ".portcullis";

/// The configuration file of a workspace, beneath its mount.
const CONFIG_FILE: &str = ".portcullis/config.toml";

/// What may be done beneath a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// Whose files these are, which decides the mode of new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeOwner {
    /// New files and directories follow the umask, as if the person had made them.
    PersonsTree,
    /// New files are 0600, new directories 0700.
    SessionOwn,
}

/// One host directory, held open, under one virtual path. It keeps the handle and no host path:
/// renaming the directory on the host does not change what the session sees, and nothing here can
/// print where it lies.
pub struct Mount {
    root: VirtualPath,
    dir: Dir,
    identity: Identity,
    /// The directories it lies in, up to the host's root.
    above: Vec<Identity>,
    access: Access,
    owner: TreeOwner,
    host_paths: bool,
}

impl Mount {
    /// Mounts an opened directory.
    pub fn new(root: VirtualPath, dir: Dir, access: Access, owner: TreeOwner) -> Result<Self, FileError> {
        let identity = Identity::of_dir(&dir).map_err(|e| FileError::io(&root, e))?;
        let above = ancestors(&dir, identity).map_err(|e| FileError::io(&root, e))?;
        Ok(Self { root, dir, identity, above, access, owner, host_paths: false })
    }

    /// Opens the host directory `host` and mounts it. The errors name the virtual path alone; the
    /// caller knows which host path it gave.
    pub fn open(root: VirtualPath, host: &Path, access: Access, owner: TreeOwner) -> Result<Self, FileError> {
        let dir = Dir::open_ambient_dir(host, ambient_authority()).map_err(|e| FileError::io(&root, e))?;
        Self::new(root, dir, access, owner)
    }

    /// Also takes absolute host paths beneath this directory as names of places in it (`call`,
    /// `run` and `mcp`, where a person or a client on this machine types them).
    #[must_use]
    pub fn accepting_host_paths(mut self) -> Self {
        self.host_paths = true;
        self
    }

    /// Whether it does.
    #[must_use]
    pub fn takes_host_paths(&self) -> bool {
        self.host_paths
    }

    /// Where its directory lies on the host now, for the view of a command alone: no model is shown it (H6). `None` if it
    /// is not there any more.
    #[must_use]
    pub fn host_place(&self) -> Option<std::path::PathBuf> {
        use std::os::fd::AsRawFd as _;
        let place = std::fs::read_link(format!("/proc/self/fd/{}", self.dir.as_fd().as_raw_fd())).ok()?;
        // A directory that was removed has a name that leads nowhere.
        let there = rustix::fs::stat(&place).ok().map(|stat| Identity::of(&stat));
        (there == Some(self.identity)).then_some(place)
    }

    /// Where it appears.
    #[must_use]
    pub fn root(&self) -> &VirtualPath {
        &self.root
    }

    /// The held handle.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What may be done beneath it. Its [`CONFIG_DIR`] is read-only whatever this says.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whose files these are.
    #[must_use]
    pub fn owner(&self) -> TreeOwner {
        self.owner
    }

    /// Its directory and each one above it, nearest first.
    pub(crate) fn itself_and_above(&self) -> impl Iterator<Item = Identity> {
        std::iter::once(self.identity).chain(self.above.iter().copied())
    }

    /// Whether the text of a path beneath the mount already names the configuration. In any case:
    /// on a file system that ignores it, `.Portcullis` is the same directory, even before it exists.
    pub(crate) fn names_config(relative: &[Name]) -> bool {
        relative.first().is_some_and(|name| name.as_str().eq_ignore_ascii_case(CONFIG_DIR))
    }

    /// The configuration directory as an object, links followed, if there is one. A directory that
    /// *is* it under another name is as read-only as under its own.
    pub(crate) fn config_identity(&self) -> Option<Identity> {
        self.identity_at(CONFIG_DIR)
    }

    /// The configuration file as an object, links followed, if there is one: it may have a second
    /// name outside its directory, as a hard link or as the file a link leads to.
    pub(crate) fn config_file_identity(&self) -> Option<Identity> {
        self.identity_at(CONFIG_FILE)
    }

    fn identity_at(&self, beneath: &str) -> Option<Identity> {
        rustix::fs::statat(&self.dir, beneath, AtFlags::empty()).ok().map(|stat| Identity::of(&stat))
    }
}

/// Every directory above `dir`, nearest first, as objects: a name or a link may say something else.
fn ancestors(dir: &Dir, identity: Identity) -> io::Result<Vec<Identity>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let up = |from: &dyn AsFd| rustix::fs::openat(from.as_fd(), "..", flags, Mode::empty());
    let (mut found, mut below) = (Vec::new(), identity);
    let mut next = up(dir);
    loop {
        // A directory above that may not be searched hides what is above it from us as well.
        let at = match next {
            Err(Errno::ACCESS) => return Ok(found),
            other => other?,
        };
        let here = Identity::of(&rustix::fs::fstat(&at)?);
        // The host's root is its own parent.
        if here == below {
            return Ok(found);
        }
        found.push(here);
        below = here;
        next = up(&at);
    }
}

impl fmt::Debug for Mount {
    /// Without the handle: the derived text of one looks up its host path (H6).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, access, owner, host_paths, dir: _, identity: _, above: _ } = self;
        f.debug_struct("Mount")
            .field("root", root)
            .field("access", access)
            .field("owner", owner)
            .field("host_paths", host_paths)
            .finish_non_exhaustive()
    }
}

/// Everything a session sees of the file system.
#[derive(Debug, Clone, Default)]
pub struct MountTable {
    mounts: Vec<Arc<Mount>>,
    hidden: HiddenPlaces,
}

impl MountTable {
    /// The table of these mounts; of two at the same path the later one is seen.
    #[must_use]
    pub fn new(mounts: impl IntoIterator<Item = Mount>) -> Self {
        let mut table = Self::default();
        for mount in mounts {
            table.add(mount);
        }
        table
    }

    /// `host_dir` at `/workspace`, writable, named by host paths too.
    pub fn workspace(host_dir: &Path, owner: TreeOwner) -> Result<Self, FileError> {
        let mount = Mount::open(VirtualPath::workspace(), host_dir, Access::ReadWrite, owner)?;
        Ok(Self::new([mount.accepting_host_paths()]))
    }

    /// Adds a mount, replacing one at the same path.
    pub fn add(&mut self, mount: Mount) {
        self.mounts.retain(|other| other.root != mount.root);
        self.mounts.push(Arc::new(mount));
    }

    /// The same table without these host folders and files: what lies in one is outside, whatever name
    /// or link leads there and whichever mount it is beneath. One that is there is known as an object and stays
    /// hidden when it is renamed; at the place of one that is not, or of a file, nothing can be made either.
    #[must_use]
    pub fn hiding<'p>(mut self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mounts: Vec<_> = self.mounts().filter_map(Mount::host_place).collect();
        self.hidden = self.hidden.and(paths, &mounts);
        self
    }

    /// The first mount that is, or lies in, a hidden folder: nothing beneath it can be reached.
    #[must_use]
    pub fn hidden_mount(&self) -> Option<&VirtualPath> {
        self.mounts().find(|mount| self.hidden.check_mount(mount).is_err()).map(Mount::root)
    }

    /// Every mount, in the order they were added.
    pub fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().map(AsRef::as_ref)
    }

    /// Finds the place `raw` names: see [`ResolvedPlace`]. Looks at metadata only and opens no content
    /// (L37).
    pub fn resolve(&self, raw: &str) -> Result<ResolvedPlace, FileError> {
        crate::resolve::resolve(self, raw)
    }

    pub(crate) fn hidden(&self) -> &HiddenPlaces {
        &self.hidden
    }

    /// The mount at exactly this place.
    pub(crate) fn at(&self, path: &VirtualPath) -> Option<&Arc<Mount>> {
        self.mounts.iter().find(|mount| mount.root == *path)
    }

    /// The mount with the longest path that begins `names`, and how many names that path takes.
    pub(crate) fn longest(&self, names: &[&str]) -> Option<(&Arc<Mount>, usize)> {
        self.mounts
            .iter()
            .filter_map(|mount| {
                let root: Vec<&str> = mount.root.components().collect();
                names.starts_with(&root).then_some((mount, root.len()))
            })
            .max_by_key(|(_, depth)| *depth)
    }

    /// The mount whose directory this host path is, if it takes host paths.
    pub(crate) fn by_host_dir(&self, host: &str) -> io::Result<Option<&Arc<Mount>>> {
        let stat = rustix::fs::statat(rustix::fs::CWD, host, AtFlags::NO_AUTOMOUNT)?;
        let identity = Identity::of(&stat);
        Ok(self.mounts.iter().find(|mount| mount.host_paths && mount.identity == identity))
    }

    pub(crate) fn takes_host_paths(&self) -> bool {
        self.mounts.iter().any(|mount| mount.host_paths)
    }
}
