//! The directory an action works in, opened afresh from the mount's handle, one name at a time.

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::handle::{Identity, open_child_dir, reopen_dir};
use crate::resolve::walk_error;
use crate::{FileError, Kind, Mount, Name, ResolvedPlace, TreeOwner, VirtualPath};

/// The directory `names` beneath the mount of `resolved`. Meeting a link means that the path is no
/// longer the one that was resolved.
pub(crate) fn open_beneath(resolved: &ResolvedPlace, names: &[Name]) -> Result<Dir, FileError> {
    let mount = resolved.mount();
    resolved.hidden().check_mount(mount)?;
    let mut path = mount.root().clone();
    let mut dir = mount.dir().try_clone().map_err(|e| FileError::io(&path, e))?;
    for name in names {
        let above = path;
        path = above.join(name);
        dir = open_child_dir(&dir, name).map_err(|e| walk_error(&path, e))?;
        resolved.hidden().check_dir(&dir, &above)?;
    }
    Ok(dir)
}

/// The directory of the resolved file and its name there; a mount's root is no file.
pub(crate) fn split(resolved: &ResolvedPlace) -> Result<(&[Name], &Name), FileError> {
    resolved.names().split_last().map(|(name, above)| (above, name)).ok_or_else(|| FileError::WrongKind {
        path: resolved.path().clone(),
        wanted: Kind::File,
        found: Kind::Directory,
    })
}

/// An opened directory to write in, with what had to be made to get there. Dropped without
/// [`Parents::keep`], it takes its empty directories away again.
pub(crate) struct Parents<'r> {
    pub(crate) dir: Dir,
    resolved: &'r ResolvedPlace,
    mount: &'r Mount,
    names: &'r [Name],
    identity: Identity,
    made: Vec<MadeFolder>,
}

/// A folder that was made for a write, and can be taken back.
struct MadeFolder {
    above: Dir,
    name: Name,
    path: VirtualPath,
}

impl<'r> Parents<'r> {
    /// Opens the directory of `resolved`, making what is missing if `create`. Refuses to pass
    /// through the configuration directory under any name it may have.
    pub(crate) fn open(resolved: &'r ResolvedPlace, create: bool) -> Result<Self, FileError> {
        let mount = resolved.mount();
        let (names, _) = split(resolved)?;
        resolved.hidden().check_mount(mount)?;
        let path = mount.root();
        let dir = mount.dir().try_clone().map_err(|e| FileError::io(path, e))?;
        let identity = Identity::of_dir(&dir).map_err(|e| FileError::io(path, e))?;
        let mut parents = Self { dir, resolved, mount, names, identity, made: Vec::new() };
        let mut path = path.clone();
        for name in names {
            let above = path;
            path = above.join(name);
            parents.enter(name, &path, &above, create)?;
        }
        Ok(parents)
    }

    fn enter(&mut self, name: &Name, path: &VirtualPath, above: &VirtualPath, create: bool) -> Result<(), FileError> {
        let child = match open_child_dir(&self.dir, name) {
            Err(Errno::NOENT) if create => {
                self.resolved.hidden().check_new(&self.dir, std::iter::once(name.as_str()), above)?;
                self.make(name, path)?;
                open_child_dir(&self.dir, name)
            }
            other => other,
        };
        let child = child.map_err(|e| walk_error(path, e))?;
        let identity = Identity::of_dir(&child).map_err(|e| FileError::io(path, e))?;
        // Asked after the directory exists: on a file system that folds names, making it may have
        // made the configuration directory itself.
        if self.mount.config_identity() == Some(identity) {
            return Err(FileError::ReadOnlyMount { path: path.clone() });
        }
        self.resolved.hidden().check(identity, above)?;
        self.dir = child;
        self.identity = identity;
        Ok(())
    }

    fn make(&mut self, name: &Name, path: &VirtualPath) -> Result<(), FileError> {
        // The kernel applies the umask to 0777, as for a directory the person makes.
        let mode = match self.mount.owner() {
            TreeOwner::PersonsTree => Mode::from_raw_mode(0o777),
            TreeOwner::SessionOwn => Mode::from_raw_mode(0o700),
        };
        match rustix::fs::mkdirat(&self.dir, name.as_str(), mode) {
            Ok(()) => {
                let above = self.dir.try_clone().map_err(|e| FileError::io(path, e))?;
                self.made.push(MadeFolder { above, name: name.clone(), path: path.clone() });
                Ok(())
            }
            // Another writer made it first; it is theirs to keep.
            Err(Errno::EXIST) => Ok(()),
            Err(other) => Err(FileError::io(path, other)),
        }
    }

    /// Makes one directory more in the opened one and goes there; false if it was there already. `sync` and `keep` then
    /// speak of it as well.
    pub(crate) fn make_and_enter(&mut self, name: &Name, path: &VirtualPath) -> Result<bool, FileError> {
        let above = self.names.iter().fold(self.mount.root().clone(), |above, name| above.join(name));
        let before = self.made.len();
        self.enter(name, path, &above, true)?;
        Ok(self.made.len() > before)
    }

    /// Checks that the path still leads to the opened directory: it was not moved away, out of the
    /// mount perhaps, while the content was prepared.
    pub(crate) fn check_unmoved(&self, path: &VirtualPath) -> Result<(), FileError> {
        let changed = || FileError::PathChanged { path: path.clone() };
        let now = open_beneath(self.resolved, self.names).map_err(|_| changed())?;
        let identity = Identity::of_dir(&now).map_err(|_| changed())?;
        if identity == self.identity { Ok(()) } else { Err(changed()) }
    }

    /// Makes the names durable; false if the file system would not.
    pub(crate) fn sync(&self) -> bool {
        let sync = |dir: &Dir| reopen_dir(dir).and_then(rustix::fs::fsync).is_ok();
        let above = self.made.iter().all(|made| sync(&made.above));
        sync(&self.dir) && above
    }

    /// The file stands: what was made for it stays. Returns what that was, outermost first.
    pub(crate) fn keep(mut self) -> Vec<VirtualPath> {
        std::mem::take(&mut self.made).into_iter().map(|made| made.path).collect()
    }
}

impl Drop for Parents<'_> {
    fn drop(&mut self) {
        for made in self.made.iter().rev() {
            // Removes only an empty directory: what another writer put there meanwhile stays.
            let _ = rustix::fs::unlinkat(&made.above, made.name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::MountTable;

    #[test]
    fn a_directory_moved_away_after_it_was_opened_is_noticed_before_the_commit() {
        let root = tempfile::tempdir().expect("dir");
        fs::create_dir_all(root.path().join("ws/dir")).expect("dirs");
        let table = MountTable::workspace(&root.path().join("ws"), TreeOwner::PersonsTree).expect("mount");
        let found = table.resolve("dir/new").expect("inside");
        let parents = Parents::open(&found, false).expect("opens");
        parents.check_unmoved(found.path()).expect("still there");
        fs::rename(root.path().join("ws/dir"), root.path().join("out")).expect("rename");
        let changed = FileError::PathChanged { path: found.path().clone() };
        assert_eq!(parents.check_unmoved(found.path()), Err(changed.clone()));
        fs::create_dir(root.path().join("ws/dir")).expect("another directory of that name");
        assert_eq!(parents.check_unmoved(found.path()), Err(changed));
    }

    #[test]
    fn directories_made_for_a_write_that_failed_are_removed_unless_used() {
        let root = tempfile::tempdir().expect("dir");
        let table = MountTable::workspace(root.path(), TreeOwner::PersonsTree).expect("mount");
        let found = table.resolve("a/b/c/new").expect("inside");
        let parents = Parents::open(&found, true).expect("opens");
        assert!(root.path().join("a/b/c").is_dir());
        fs::write(root.path().join("a/theirs"), b"").expect("another writer");
        drop(parents);
        assert!(!root.path().join("a/b").exists());
        assert!(root.path().join("a/theirs").exists());
    }
}
