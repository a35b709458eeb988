//! Finding every name of files that must not be seen, for masks: ignored files included, links not followed, other names
//! of one file (hard links) too.
//!
//! Whatever cannot be looked into is found itself, as a whole: a walk that passed something over would leave it open.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use crate::handle::{Identity, reopen_dir};
use crate::{Mount, MountTable};

/// How deep a walk goes; it holds one handle a level. A deeper folder is found as a whole.
const DEPTH_MAX: usize = 200;

/// Entries looked at in all. A tree with more is no place for patterns that begin with `**`.
const ENTRIES_MAX: usize = 5_000_000;

/// Bytes of entries asked for at once.
const BUFFER: usize = 32 << 10;

/// The places that a search looks for.
pub trait PlaceMatcher {
    /// Which of the things looked for the place at this canonical virtual path is.
    fn is(&self, path: &str) -> Option<usize>;
    /// Paths of which each match is one, or lies beneath one. Nothing else is walked.
    fn anchors(&self) -> &[String];
}

/// A file or folder that a [`PlaceMatcher`] matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedPlace {
    /// The virtual path of its mount.
    pub mount: String,
    /// From there to it; empty for the mount itself.
    pub beneath: PathBuf,
    /// Which of the things looked for.
    pub which: usize,
    /// Which object it is: another one under the same name is another find.
    pub object: (u64, u64),
}

/// A file with more than one name, one of which is a match or lies in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedFile {
    /// That name, as a virtual path.
    pub path: String,
    pub object: (u64, u64),
}

/// Of every match the files that have other names, too.
///
/// # Errors
/// As [`find`].
pub fn linked(table: &MountTable, wanted: &impl PlaceMatcher) -> io::Result<Vec<LinkedFile>> {
    Ok(first(table, wanted)?.linked)
}

/// Every match beneath the mounts of `table`, and every other name of a file that is one.
///
/// # Errors
/// If there is more to look at than a walk takes, or a mount cannot be listed.
pub fn find(table: &MountTable, wanted: &impl PlaceMatcher) -> io::Result<Vec<MatchedPlace>> {
    let mut walk = first(table, wanted)?;
    if !walk.names.is_empty() {
        // Once more, and everywhere: a second name may be anywhere.
        walk.wanted = None;
        for mount in table.mounts() {
            walk.mount(mount)?;
        }
    }
    Ok(walk.found)
}

fn first<'w, W: PlaceMatcher>(table: &'w MountTable, wanted: &'w W) -> io::Result<Walk<'w, W>> {
    let mut walk = Walk {
        table,
        wanted: Some(wanted),
        found: Vec::new(),
        known: HashSet::new(),
        names: HashMap::new(),
        linked: Vec::new(),
        left: ENTRIES_MAX,
        buffer: Vec::new(),
    };
    if !wanted.anchors().is_empty() {
        table.mounts().try_for_each(|mount| walk.mount(mount))?;
    }
    Ok(walk)
}

struct Walk<'w, W> {
    table: &'w MountTable,
    /// `None` in the second walk, which looks for other names.
    wanted: Option<&'w W>,
    found: Vec<MatchedPlace>,
    /// The places of those.
    known: HashSet<(String, PathBuf)>,
    /// Files with more than one name that are among the finds, by number.
    names: HashMap<u64, Vec<(Identity, usize)>>,
    linked: Vec<LinkedFile>,
    left: usize,
    buffer: Vec<u8>,
}

/// The folder that a walk has reached.
struct WalkPosition<'w> {
    mount: &'w Mount,
    beneath: PathBuf,
    /// Its canonical virtual path, lossy where a name is no text.
    path: String,
    depth: usize,
    /// It lies in a find: only second names are of interest.
    inside: Option<usize>,
}

impl WalkPosition<'_> {
    fn child(&self, name: &OsStr) -> Self {
        Self {
            mount: self.mount,
            beneath: self.beneath.join(name),
            path: format!("{}/{}", self.path.trim_end_matches('/'), name.to_string_lossy()),
            depth: self.depth + 1,
            inside: self.inside,
        }
    }
}

impl<'w, W: PlaceMatcher> Walk<'w, W> {
    fn mount(&mut self, mount: &'w Mount) -> io::Result<()> {
        let path = mount.root().as_str().to_owned();
        let mut at = WalkPosition { mount, beneath: PathBuf::new(), path, depth: 0, inside: None };
        if !self.leads_on(&at.path) {
            return Ok(());
        }
        let stat = rustix::fs::fstat(mount.dir())?;
        if let Some(which) = self.wanted.and_then(|wanted| wanted.is(&at.path)) {
            self.add(&at, which, &stat);
            at.inside = Some(which);
        }
        let dir: OwnedFd = reopen_dir(mount.dir())?.into();
        self.folder(&dir, &at)
    }

    fn add(&mut self, at: &WalkPosition<'_>, which: usize, stat: &Stat) {
        let object = (stat.st_dev, stat.st_ino);
        let found =
            MatchedPlace { mount: at.mount.root().as_str().to_owned(), beneath: at.beneath.clone(), which, object };
        if self.known.insert((found.mount.clone(), found.beneath.clone())) {
            self.found.push(found);
        }
    }

    /// Whether a match may stand at this path or beneath it.
    fn leads_on(&self, path: &str) -> bool {
        let Some(wanted) = self.wanted else { return true };
        let within = |path: &str, folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let path = path.trim_end_matches('/');
        wanted.anchors().iter().any(|anchor| within(path, anchor) || within(anchor, path))
    }

    fn folder(&mut self, dir: &OwnedFd, at: &WalkPosition<'_>) -> io::Result<()> {
        for (name, kind, number) in self.list(dir)? {
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                io::Error::other(format!("there are more than {ENTRIES_MAX} files and folders to look at"))
            })?;
            let name_os = OsStr::from_bytes(name.as_bytes());
            let here = at.child(name_os);
            if self.table.mounts().any(|mount| mount.root().as_str() == here.path) || !self.leads_on(&here.path) {
                // Another mount stands there, which is walked by itself.
                continue;
            }
            match kind {
                FileType::Symlink => {}
                FileType::Directory => self.enter(dir, &here)?,
                _ => self.file(dir, &here, number),
            }
        }
        Ok(())
    }

    fn file(&mut self, dir: &OwnedFd, here: &WalkPosition<'_>, number: u64) {
        let name = here.beneath.file_name().unwrap_or_default();
        let Some(wanted) = self.wanted else {
            // A folder lists the number of what stands at a name; whether it is that very file, only a look tells.
            if let Some(known) = self.names.get(&number)
                && let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                && let Some((_, which)) = known.iter().find(|(identity, _)| *identity == Identity::of(&stat))
            {
                let (which, covered) = (*which, self.is_covered(here));
                if !covered {
                    self.add(here, which, &stat);
                }
            }
            return;
        };
        let Some(which) = here.inside.or_else(|| wanted.is(&here.path)) else { return };
        let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return;
        }
        if here.inside.is_none() {
            self.add(here, which, &stat);
        }
        if stat.st_nlink > 1 {
            self.linked.push(LinkedFile { path: here.path.clone(), object: (stat.st_dev, stat.st_ino) });
            self.names.entry(stat.st_ino).or_default().push((Identity::of(&stat), which));
        }
    }

    /// Whether a folder above it is a find.
    fn is_covered(&self, here: &WalkPosition<'_>) -> bool {
        let mount = here.mount.root().as_str();
        self.found.iter().any(|found| found.mount == mount && here.beneath.starts_with(&found.beneath))
    }

    fn enter(&mut self, above: &OwnedFd, here: &WalkPosition<'_>) -> io::Result<()> {
        let name = here.beneath.file_name().unwrap_or_default();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let which = here.inside.or_else(|| self.wanted.and_then(|wanted| wanted.is(&here.path)));
        let opened = rustix::fs::openat(above, name, flags, Mode::empty());
        let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = match stat {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => stat,
            // Gone, or a link by now.
            _ => return Ok(()),
        };
        if let (Some(which), None) = (which, here.inside) {
            self.add(here, which, &stat);
        }
        let closed = match opened {
            Ok(dir) if here.depth < DEPTH_MAX => {
                let at =
                    WalkPosition { inside: which, beneath: here.beneath.clone(), path: here.path.clone(), ..*here };
                return self.folder(&dir, &at);
            }
            Ok(_) => true,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => false,
            Err(_) => true,
        };
        // Its owner could open it again from inside; so it goes as a whole.
        if closed && which.is_none() && self.wanted.is_some() {
            self.add(here, 0, &stat);
        }
        Ok(())
    }

    fn list(&mut self, dir: &OwnedFd) -> io::Result<Vec<(OsString, FileType, u64)>> {
        self.buffer.reserve(BUFFER);
        let mut out = Vec::new();
        let mut entries = RawDir::new(dir, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            out.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind, entry.ino()));
        }
        Ok(out)
    }
}
