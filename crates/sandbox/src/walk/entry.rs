//! One open directory of a walk, and one entry in it.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::ignored::{self, Ignores};
use super::list::Item;
use crate::handle::{Identity, kind_of, reopen_dir};
use crate::hidden_places::HiddenPlaces;
use crate::parents::open_beneath;
use crate::read::FileStat;
use crate::{FileError, Kind, Mount, MountTable, Name, ResolvedPlace, VirtualPath};

/// A directory, held open as long as work in it waits.
pub(super) struct WalkDir {
    fd: OwnedFd,
    /// Its virtual path, to which names are added.
    path: VirtualPath,
    /// From the start to it, with a `/` at the end; nothing for the start itself.
    relative: String,
    depth: usize,
    hidden: HiddenPlaces,
    /// The rules of `.gitignore` files above it and in it, nearest first.
    pub(super) ignores: Option<Arc<Ignores>>,
}

impl WalkDir {
    /// The directory that a walk of `resolved` begins in: `names` beneath its mount.
    pub(super) fn start(resolved: &ResolvedPlace, names: &[Name]) -> Result<Self, FileError> {
        let dir = open_beneath(resolved, names)?;
        let path = names.iter().fold(resolved.mount().root().clone(), |path, name| path.join(name));
        let fd = reopen_dir(&dir).map_err(|e| FileError::io(&path, e))?.into();
        let ignores = ignored::above(resolved, names);
        Ok(Self { fd, path, relative: String::new(), depth: 0, hidden: resolved.hidden().clone(), ignores })
    }

    pub(super) fn relative(&self) -> &str {
        &self.relative
    }

    pub(super) fn hidden(&self) -> &HiddenPlaces {
        &self.hidden
    }

    /// The names at which other mounts stand directly in this directory.
    pub(super) fn mounted<'t>(&self, table: &'t MountTable) -> Vec<&'t str> {
        let here = |mount: &'t Mount| {
            let root = mount.root().as_str();
            let (above, name) = root.rsplit_once('/')?;
            (above == self.path.as_str().trim_end_matches('/') && !name.is_empty()).then_some(name)
        };
        table.mounts().filter_map(here).collect()
    }

    /// Opens a directory in this one, or the mount that stands there. `None` if it is hidden, or is no
    /// directory any more.
    pub(super) fn child(&self, item: &Item, table: &MountTable) -> Result<Option<Self>, Errno> {
        let path = item.text().and_then(|text| Name::new(text).ok()).map(|name| self.path.join(&name));
        let Some(path) = path else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (fd, ignores) = match table.at(&path) {
            Some(mount) if self.hidden.check_mount(mount).is_err() => return Ok(None),
            Some(mount) => (reopen_dir(mount.dir())?.into(), None),
            None => match rustix::fs::openat(&self.fd, item.name.as_c_str(), flags, Mode::empty()) {
                Ok(fd) => (fd, self.ignores.clone()),
                // Removed, or swapped for a link or a file, since it was listed.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(None),
                Err(other) => return Err(other),
            },
        };
        if !self.hidden.is_empty() && self.hidden.check(Identity::of(&rustix::fs::fstat(&fd)?), &path).is_err() {
            return Ok(None);
        }
        let relative = format!("{}{}/", self.relative, item.name.to_string_lossy());
        Ok(Some(Self { fd, path, relative, depth: self.depth + 1, hidden: self.hidden.clone(), ignores }))
    }
}

impl AsFd for WalkDir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Something a walk found, as its directory listed it.
pub struct Entry<'e> {
    dir: &'e WalkDir,
    item: &'e Item,
}

impl<'e> Entry<'e> {
    pub(super) fn new(dir: &'e WalkDir, item: &'e Item) -> Self {
        Self { dir, item }
    }

    /// What it was when its directory was listed. A link is [`Kind::Other`].
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.item.kind
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'e str {
        self.item.text().unwrap_or_default()
    }

    /// The directories from the start to it, each with a `/` at its end.
    #[must_use]
    pub fn parents(&self) -> &'e str {
        &self.dir.relative
    }

    /// How many names lie between the start and it, its own included.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dir.depth + 1
    }

    /// Its path relative to the start.
    #[must_use]
    pub fn relative(&self) -> String {
        format!("{}{}", self.dir.relative, self.name())
    }

    /// Its virtual path.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.dir.path.as_str().trim_end_matches('/'), self.name())
    }

    /// Opens the file. `None` if it is no regular file any more, or is hidden: what decides is the
    /// opened handle. Neither a link is followed nor a pipe waited for.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn open(&self) -> std::io::Result<Option<(File, u64)>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.dir.fd, self.item.name.as_c_str(), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let stat = rustix::fs::fstat(&fd)?;
        if kind_of(&stat) != Kind::File || self.dir.hidden.contains(Identity::of(&stat)) {
            return Ok(None);
        }
        Ok(Some((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0))))
    }

    /// Looks at it as it is now, without following a link. `None` if it is gone or hidden.
    #[must_use]
    pub fn stat(&self) -> Option<FileStat> {
        let stat = rustix::fs::statat(&self.dir.fd, self.item.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (!self.dir.hidden.contains(Identity::of(&stat))).then(|| FileStat::of(&stat))
    }
}

/// What a directory says of an entry, asking the entry itself where it says nothing.
pub(super) fn kind_listed(dir: &impl AsFd, name: &std::ffi::CStr, listed: FileType) -> Option<Kind> {
    match listed {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Directory),
        FileType::Unknown => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| kind_of(&stat)),
        _ => Some(Kind::Other),
    }
}
