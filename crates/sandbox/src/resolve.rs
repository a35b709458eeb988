//! From what a caller typed to one place beneath one mount, links walked by hand.
//!
//! The walk holds a handle for every directory it is in, so `..` goes back to where the walk came
//! from and not to wherever the directory was moved meanwhile. It never asks the kernel to follow a
//! link: a link's text is read and its steps are taken like typed ones, beneath the same mount.

use std::collections::VecDeque;
use std::sync::Arc;

use cap_std::fs::Dir;
use rustix::io::Errno;

use crate::handle::{Entry, Identity, kind_of, look, open_child_dir};
use crate::hidden_places::HiddenPlaces;
use crate::name::{Step, steps};
use crate::parents::open_beneath;
use crate::vpath::WORKSPACE;
use crate::{Access, FileError, Kind, Mount, MountTable, Name, PathFault, VirtualPath};

/// As many links as Linux follows in one path.
const LINKS_MAX: u32 = 40;

/// A walk holds one handle a directory; a tree made deep on purpose must not use up the process's.
const DEPTH_MAX: usize = 256;

/// One place beneath one mount, free of links at the moment it was resolved. If nothing stands
/// there yet, the directories that exist are free of links and the rest are plain names.
///
/// It is a name, not a right: every action opens it again from the mount's handle.
#[derive(Debug, Clone)]
pub struct ResolvedPlace {
    mount: Arc<Mount>,
    names: Vec<Name>,
    path: VirtualPath,
    kind: Option<Kind>,
    /// The object, if it is a file with more than one name.
    linked: Option<(u64, u64)>,
    also: Vec<VirtualPath>,
    hidden: HiddenPlaces,
}

impl ResolvedPlace {
    /// The canonical virtual path: key of locks, rules and baselines.
    #[must_use]
    pub fn path(&self) -> &VirtualPath {
        &self.path
    }

    /// The mount it lies in.
    #[must_use]
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// The names from the mount's root to it; none for the root itself.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// What stood there when it was resolved; `None` if nothing did.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Which file it is, as device and number, if it has other names (hard links) and so may be one that a rule speaks of
    /// under another.
    #[must_use]
    pub fn if_it_has_other_names(&self) -> Option<(u64, u64)> {
        self.linked
    }

    /// The other names this place was reached by: the path as typed, if a link lies on it, and each
    /// one that a further link made of it. Lexical, and never the canonical path.
    #[must_use]
    pub fn also_named(&self) -> &[VirtualPath] {
        &self.also
    }

    pub(crate) fn hidden(&self) -> &HiddenPlaces {
        &self.hidden
    }

    /// Refuses what is known to be read-only before anything is opened. A write checks once more,
    /// on the handles it opened.
    pub fn check_writable(&self) -> Result<(), FileError> {
        if self.mount.access() == Access::ReadOnly || Mount::names_config(&self.names) || self.is_config_file() {
            return Err(FileError::ReadOnlyMount { path: self.path.clone() });
        }
        Ok(())
    }

    /// Whether the file is the configuration file under another name. What cannot be looked at is
    /// left to the write itself.
    fn is_config_file(&self) -> bool {
        let (Some(Kind::File), Some(config)) = (self.kind, self.mount.config_file_identity()) else { return false };
        let Some((name, above)) = self.names.split_last() else { return false };
        let found = open_beneath(self, above).ok().and_then(|dir| look(&dir, name).ok());
        matches!(found, Some(Entry::Found(stat)) if Identity::of(&stat) == config)
    }
}

pub(crate) fn resolve(table: &MountTable, raw: &str) -> Result<ResolvedPlace, FileError> {
    if raw.contains('\0') {
        return Err(PathFault::Nul.into());
    }
    let typed = steps(raw)?;
    if !raw.starts_with('/') {
        let mut todo = VecDeque::from(steps(WORKSPACE)?);
        todo.extend(typed);
        return Walk::from_top(table, todo, None)?.run();
    }
    match Walk::from_top(table, typed.into(), None) {
        Ok(walk) => walk.run(),
        // No virtual place has this name. Virtual names come first, so that what a path means does
        // not depend on what lies on the host.
        Err(_) => from_host(table, raw)?.run(),
    }
}

/// Takes `raw` as a host path: one of its leading directories must *be* a mount's directory, as an
/// object, whatever text and links lead there. The rest is walked beneath the mount like any path.
fn from_host<'t>(table: &'t MountTable, raw: &str) -> Result<Walk<'t>, FileError> {
    let outside = || FileError::PathEscape { at: None };
    if !table.takes_host_paths() {
        return Err(outside());
    }
    let ends = raw.char_indices().filter(|(at, c)| *c == '/' && *at > 0).map(|(at, _)| at);
    for end in std::iter::once(1).chain(ends).chain([raw.len()]) {
        let (host, rest) = raw.split_at(end);
        match table.by_host_dir(host) {
            Ok(Some(mount)) => {
                let todo = if rest.is_empty() { Vec::new() } else { steps(rest)? };
                return Ok(Walk::in_mount(table, mount.clone(), todo.into()));
            }
            Ok(None) => {}
            // Missing or unreadable outside says the same as present outside: no probing.
            Err(_) => return Err(outside()),
        }
    }
    Err(outside())
}

struct Walk<'t> {
    table: &'t MountTable,
    mount: Arc<Mount>,
    /// Where the walk is beneath the mount, and the handle of every directory on the way.
    names: Vec<Name>,
    dirs: Vec<Dir>,
    todo: VecDeque<Step>,
    links: u32,
    /// What the walk's goal was called at each link.
    also: Vec<VirtualPath>,
    linked: Option<(u64, u64)>,
}

impl<'t> Walk<'t> {
    fn in_mount(table: &'t MountTable, mount: Arc<Mount>, todo: VecDeque<Step>) -> Self {
        Self { table, mount, names: Vec::new(), dirs: Vec::new(), todo, links: 0, also: Vec::new(), linked: None }
    }

    /// Starts at `/`: enters the longest mount that the leading names spell.
    fn from_top(table: &'t MountTable, mut todo: VecDeque<Step>, at: Option<VirtualPath>) -> Result<Self, FileError> {
        let leading: Vec<&str> = todo
            .iter()
            .map_while(|step| match step {
                Step::Into(name) => Some(name.as_str()),
                Step::Up => None,
            })
            .collect();
        let (mount, depth) = table.longest(&leading).ok_or(FileError::PathEscape { at })?;
        let mount = mount.clone();
        todo.drain(..depth);
        Ok(Self::in_mount(table, mount, todo))
    }

    fn run(mut self) -> Result<ResolvedPlace, FileError> {
        self.table.hidden().check_mount(&self.mount)?;
        while let Some(step) = self.todo.pop_front() {
            match step {
                Step::Up => self.up()?,
                Step::Into(name) => {
                    if let Some(kind) = self.enter(name)? {
                        return Ok(self.done(kind));
                    }
                }
            }
        }
        Ok(self.done(Some(Kind::Directory)))
    }

    fn done(self, kind: Option<Kind>) -> ResolvedPlace {
        let path = self.path();
        let mut also = self.also;
        also.retain(|other| *other != path);
        let hidden = self.table.hidden().clone();
        ResolvedPlace { mount: self.mount, names: self.names, path, kind, linked: self.linked, also, hidden }
    }

    fn path(&self) -> VirtualPath {
        self.names.iter().fold(self.mount.root().clone(), |path, name| path.join(name))
    }

    fn up(&mut self) -> Result<(), FileError> {
        if self.names.pop().is_some() {
            self.dirs.pop();
            return Ok(());
        }
        // Above a mount's root is whatever the table has there: another mount, or nothing.
        let root = self.mount.root().clone();
        let mut above = steps(root.as_str())?;
        if above.pop().is_none() {
            return Err(FileError::PathEscape { at: Some(root) });
        }
        // The names above a mount are the table's own and may exist nowhere on the host.
        while self.todo.front() == Some(&Step::Up) && above.pop().is_some() {
            self.todo.pop_front();
        }
        let mut todo = VecDeque::from(above);
        todo.append(&mut self.todo);
        let (links, also) = (self.links, std::mem::take(&mut self.also));
        *self = Self { links, also, ..Self::from_top(self.table, todo, Some(root))? };
        self.table.hidden().check_mount(&self.mount)
    }

    /// Takes one name. `Some` ends the walk: with what stands there, or with nothing there.
    fn enter(&mut self, name: Name) -> Result<Option<Option<Kind>>, FileError> {
        let path = self.path().join(&name);
        if let Some(mount) = self.table.at(&path) {
            self.table.hidden().check_mount(mount)?;
            self.mount = mount.clone();
            self.names.clear();
            self.dirs.clear();
            return Ok(None);
        }
        let dir = self.dirs.last().unwrap_or_else(|| self.mount.dir());
        match look(dir, &name).map_err(|e| FileError::io(&path, e))? {
            Entry::Missing => {
                let further = self.todo.iter().filter_map(|step| match step {
                    Step::Into(name) => Some(name.as_str()),
                    Step::Up => None,
                });
                let names = std::iter::once(name.as_str()).chain(further);
                self.table.hidden().check_new(dir, names, &self.path())?;
                self.names.push(name);
                for step in std::mem::take(&mut self.todo) {
                    match step {
                        Step::Into(name) => self.names.push(name),
                        Step::Up => return Err(FileError::NotFound { path }),
                    }
                }
                if self.names.len() > DEPTH_MAX {
                    return Err(PathFault::TooDeep.into());
                }
                Ok(Some(None))
            }
            Entry::Link => self.follow(&name, path).map(|()| None),
            Entry::Found(stat) => match kind_of(&stat) {
                Kind::Directory if self.dirs.len() == DEPTH_MAX => Err(PathFault::TooDeep.into()),
                Kind::Directory => {
                    let child = open_child_dir(dir, &name).map_err(|e| walk_error(&path, e))?;
                    self.table.hidden().check_dir(&child, &self.path())?;
                    self.names.push(name);
                    self.dirs.push(child);
                    Ok(None)
                }
                found if self.todo.is_empty() => {
                    self.table.hidden().check(Identity::of(&stat), &self.path())?;
                    self.names.push(name);
                    self.linked = (found == Kind::File && stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino));
                    Ok(Some(Some(found)))
                }
                found => Err(FileError::WrongKind { path, wanted: Kind::Directory, found }),
            },
        }
    }

    /// Puts a link's text in front of what is still to walk. An absolute text is outside by
    /// definition, as for `openat2(RESOLVE_BENEATH)`: it names a place on the host, and processes in
    /// the hand see another root.
    fn follow(&mut self, name: &Name, path: VirtualPath) -> Result<(), FileError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(FileError::LinkLoop { path });
        }
        let named = path.walk(&self.todo);
        if !self.also.contains(&named) {
            self.also.push(named);
        }
        let dir = self.dirs.last().unwrap_or_else(|| self.mount.dir());
        let text = rustix::fs::readlinkat(dir, name.as_str(), Vec::new()).map_err(|e| match e {
            Errno::INVAL | Errno::NOENT => FileError::PathChanged { path: path.clone() },
            other => FileError::io(&path, other),
        })?;
        if text.as_bytes().starts_with(b"/") {
            return Err(FileError::PathEscape { at: Some(path) });
        }
        let text = text.to_str().map_err(|_| PathFault::NotUtf8)?;
        for step in steps(text)?.into_iter().rev() {
            self.todo.push_front(step);
        }
        Ok(())
    }
}

/// A name that was a directory a moment ago no longer opens as one.
pub(crate) fn walk_error(path: &VirtualPath, error: Errno) -> FileError {
    match error {
        Errno::LOOP | Errno::NOTDIR => FileError::PathChanged { path: path.clone() },
        other => FileError::io(path, other),
    }
}
