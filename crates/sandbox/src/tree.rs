//! One index of the mounted trees: where the few names stand that a caller looks for, and where git folders are.
//!
//! A tree is listed once. Afterwards each folder costs one `stat`: what it holds is listed anew only if its time of change
//! moved, which no program can set back. A folder that changed a moment ago is not believed, because two changes may bear
//! the same time.
//!
//! Links are found and never followed. A caller that acts on what was found meets links again and must not follow them
//! either.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::handle::kind_of;
use crate::{Kind, Mount, MountTable};

/// How deep a tree is looked through. Nobody works in a folder that lies deeper.
const DEPTH_MAX: usize = 200;

/// Bytes of a path that the kernel opens, less those of a name in it.
const PATH_BYTES: usize = 4096 - 256;

/// A folder that changed within this time before it was listed is listed again: file systems keep times of coarse steps.
const UNSURE: Duration = Duration::from_millis(100);

/// Bytes of entries asked for at once.
const BUFFER: usize = 32 << 10;

/// What git takes for a git folder, whatever it is called: a `HEAD`, and either objects and refs of its own or a file that
/// says in which folder they are. Git reads settings and runs programs from both.
const OWN_OBJECTS: &[&str] = &["HEAD", "objects", "refs"];
const OBJECTS_ELSEWHERE: &[&str] = &["HEAD", "commondir"];

/// Whether a folder with these entries is a git folder. What `commondir` names need not be there: it can be made later.
pub fn is_git_folder(holds: impl Fn(&str) -> bool) -> bool {
    [OWN_OBJECTS, OBJECTS_ELSEWHERE].iter().any(|marks| marks.iter().all(|mark| holds(mark)))
}

/// An entry of the tree whose name the index looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SightedEntry {
    /// The virtual path of its mount.
    pub mount: String,
    /// From there to it; empty for the mount itself.
    pub beneath: PathBuf,
    /// Links are [`Kind::Other`].
    pub kind: Kind,
    /// It is a git folder by what it holds, or is called `.git`.
    pub git: bool,
    /// It is a folder with folders in it that were not looked into, because they lie too deep.
    pub has_unseen: bool,
}

/// An index of trees by names. Looking costs one `stat` a folder where nothing has changed.
pub struct TreeIndex {
    /// Whether a caller looks for this name.
    wanted: fn(&OsStr) -> bool,
    trees: Mutex<Vec<(String, ListedFolder)>>,
}

impl TreeIndex {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(wanted: fn(&OsStr) -> bool) -> Self {
        Self { wanted, trees: Mutex::default() }
    }

    /// Whether nobody has looked yet.
    #[must_use]
    pub fn is_cold(&self) -> bool {
        self.trees.try_lock().is_ok_and(|trees| trees.is_empty())
    }

    /// Where the wanted names and git folders stand now, folders before what is in them.
    ///
    /// # Errors
    /// If a mount cannot be listed.
    pub fn look(&self, table: &MountTable) -> io::Result<Vec<SightedEntry>> {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for mount in table.mounts() {
            let root = mount.root().as_str();
            let known = trees.iter().position(|(known, _)| known == root).map(|at| trees.swap_remove(at).1);
            let mut look = TreeListing {
                wanted: self.wanted,
                mount,
                root: mount.dir().as_fd().try_clone_to_owned()?,
                buffer: Vec::new(),
            };
            let tree = look
                .folder(known, &mut PathBuf::new(), 0)
                .ok_or_else(|| io::Error::other(format!("{root} cannot be listed")))?;
            look.gather(&tree, &mut PathBuf::new(), &mut out);
            trees.push((root.to_owned(), tree));
        }
        Ok(out)
    }
}

impl std::fmt::Debug for TreeIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeIndex").finish_non_exhaustive()
    }
}

/// What stands at a place beneath a mount, a link at its end not followed.
#[must_use]
pub fn kind_at(mount: &Mount, beneath: &Path) -> Option<(Kind, (u64, u64))> {
    object_at(mount, beneath).map(|found| (found.kind, found.object))
}

/// Which object stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Links are [`Kind::Other`].
    pub kind: Kind,
    pub object: (u64, u64),
    /// The text of a link and when it was last changed: another link may get the same number.
    pub link: Option<(Vec<u8>, (i64, i64))>,
}

/// The same with the text of a link.
#[must_use]
pub fn object_at(mount: &Mount, beneath: &Path) -> Option<Object> {
    let place = if beneath.as_os_str().is_empty() { Path::new(".") } else { beneath };
    let stat = rustix::fs::statat(mount.dir(), place, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let Stamp { object, changed } = Stamp::of(&stat);
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let text = is_link.then(|| rustix::fs::readlinkat(mount.dir(), place, Vec::new()).ok()).flatten();
    Some(Object { kind: kind_of(&stat), object, link: text.map(|text| (text.into_bytes(), changed)) })
}

/// Which folder it is, as it was when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    object: (u64, u64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        let nanos = i64::try_from(stat.st_ctime_nsec).unwrap_or(0);
        Self { object: (stat.st_dev, stat.st_ino), changed: (stat.st_ctime, nanos) }
    }

    /// Whether whatever changes the folder after `now` gives it another time.
    fn is_sure(&self, now: Duration) -> bool {
        let part = |value: i64| u64::try_from(value).unwrap_or(0);
        let changed = Duration::from_secs(part(self.changed.0)) + Duration::from_nanos(part(self.changed.1));
        changed + UNSURE < now
    }
}

/// A folder that was listed.
struct ListedFolder {
    /// None if it must be listed again.
    stamp: Option<Stamp>,
    wanted: Vec<(OsString, Kind)>,
    folders: Vec<(OsString, ListedFolder)>,
    git: bool,
    has_unseen: bool,
}

/// One listing of a mounted tree.
struct TreeListing<'m> {
    wanted: fn(&OsStr) -> bool,
    mount: &'m Mount,
    root: OwnedFd,
    buffer: Vec<u8>,
}

impl TreeListing<'_> {
    /// The folder as it is now. `None` if it is not there, or cannot be listed.
    fn folder(&mut self, known: Option<ListedFolder>, at: &mut PathBuf, depth: usize) -> Option<ListedFolder> {
        let here = if depth == 0 { Path::new(".") } else { at.as_path() };
        let mut folder = match known {
            Some(known) if known.stamp.is_some() && known.stamp == self.stamp(here) => known,
            known => self.list(here, known)?,
        };
        if depth >= DEPTH_MAX {
            folder.has_unseen |= !folder.folders.is_empty();
            folder.folders.clear();
        }
        let inside = std::mem::take(&mut folder.folders);
        for (name, known) in inside {
            at.push(&name);
            // The kernel opens no longer path, and says for ever that it does not.
            folder.has_unseen |= at.as_os_str().len() >= PATH_BYTES;
            // One that cannot be listed now may be opened later, which its own folder does not tell.
            let now = self.folder(Some(known), at, depth + 1).unwrap_or_else(ListedFolder::unseen);
            folder.folders.push((name, now));
            at.pop();
        }
        Some(folder)
    }

    fn stamp(&self, place: &Path) -> Option<Stamp> {
        let stat = rustix::fs::statat(&self.root, place, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Stamp::of(&stat))
    }

    fn open(&self, place: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, place, flags, Mode::empty(), within) {
            Err(Errno::NOSYS) => rustix::fs::openat(&self.root, place, flags, Mode::empty()),
            other => other,
        }
    }

    /// Lists a folder. What is known of the folders in it is kept for them to be compared with.
    fn list(&mut self, place: &Path, known: Option<ListedFolder>) -> Option<ListedFolder> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let dir = self.open(place).ok()?;
        let stamp = Stamp::of(&rustix::fs::fstat(&dir).ok()?);
        let mut before: HashMap<OsString, ListedFolder> =
            known.map(|known| known.folders.into_iter().collect()).unwrap_or_default();
        let mut folder = ListedFolder {
            stamp: stamp.is_sure(now).then_some(stamp),
            wanted: Vec::new(),
            folders: Vec::new(),
            git: false,
            has_unseen: false,
        };
        let mut marks: Vec<&str> = Vec::new();
        self.buffer.reserve(BUFFER);
        let mut entries = RawDir::new(&dir, self.buffer.spare_capacity_mut());
        let of_git = place.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        while let Some(entry) = entries.next() {
            // What cannot be listed to its end is listed again the next time.
            let Ok(entry) = entry else {
                folder.stamp = None;
                break;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).map_or(Kind::Other, |stat| kind_of(&stat))
                }
                FileType::Directory => Kind::Directory,
                FileType::RegularFile => Kind::File,
                _ => Kind::Other,
            };
            let all = OWN_OBJECTS.iter().chain(OBJECTS_ELSEWHERE);
            marks.extend(all.filter(|mark| name.eq_ignore_ascii_case(mark)));
            if (self.wanted)(name) {
                folder.wanted.push((name.to_owned(), kind));
            }
            // In a git folder nobody works; what decides there is looked for by its names.
            if kind == Kind::Directory && !of_git {
                let known = before.remove(name).unwrap_or_else(ListedFolder::unseen);
                folder.folders.push((name.to_owned(), known));
            }
        }
        folder.git = of_git || is_git_folder(|mark| marks.contains(&mark));
        if OWN_OBJECTS.iter().all(|mark| marks.contains(mark)) {
            folder.folders.retain(|(name, _)| !name.eq_ignore_ascii_case("objects"));
        }
        Some(folder)
    }

    fn gather(&self, folder: &ListedFolder, at: &mut PathBuf, out: &mut Vec<SightedEntry>) {
        let mut add = |beneath: PathBuf, kind, git, has_unseen| {
            out.push(SightedEntry { mount: self.mount.root().as_str().to_owned(), beneath, kind, git, has_unseen });
        };
        if folder.has_unseen {
            add(at.clone(), Kind::Directory, false, true);
        }
        if folder.git {
            add(at.clone(), Kind::Directory, true, false);
        }
        for (name, kind) in &folder.wanted {
            add(at.join(name), *kind, false, false);
        }
        for (name, inside) in &folder.folders {
            at.push(name);
            self.gather(inside, at, out);
            at.pop();
        }
    }
}

impl ListedFolder {
    fn unseen() -> Self {
        Self { stamp: None, wanted: Vec::new(), folders: Vec::new(), git: false, has_unseen: false }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::TreeOwner;

    fn names(index: &TreeIndex, table: &MountTable) -> Vec<String> {
        let mut all: Vec<String> = index
            .look(table)
            .expect("listed")
            .into_iter()
            .map(|found| format!("{}{}", found.beneath.display(), if found.git { " (git)" } else { "" }))
            .collect();
        all.sort();
        all
    }

    fn rc(name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| name.ends_with("rc"))
    }

    /// Looks until no folder would be listed again.
    fn until_believed(index: &TreeIndex, table: &MountTable) {
        fn is_believed(folder: &ListedFolder) -> bool {
            folder.stamp.is_some() && folder.folders.iter().all(|(_, inside)| is_believed(inside))
        }
        loop {
            index.look(table).expect("listed");
            if index.trees.lock().expect("no panic").iter().all(|(_, tree)| is_believed(tree)) {
                return;
            }
        }
    }

    #[test]
    fn what_changes_in_a_tree_is_found_by_the_next_look() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("a/b/c")).expect("folders");
        fs::write(at("a/b/.envrc"), "x").expect("written");
        let table = MountTable::workspace(tree.path(), TreeOwner::PersonsTree).expect("a mount");
        let index = TreeIndex::new(rc);
        assert_eq!(names(&index, &table), ["a/b/.envrc"]);
        until_believed(&index, &table);
        assert_eq!(names(&index, &table), ["a/b/.envrc"]);
        fs::write(at("a/b/c/.npmrc"), "x").expect("written");
        assert_eq!(names(&index, &table), ["a/b/.envrc", "a/b/c/.npmrc"]);
        fs::rename(at("a/b"), at("a/d")).expect("renamed");
        assert_eq!(names(&index, &table), ["a/d/.envrc", "a/d/c/.npmrc"]);
        fs::remove_dir_all(at("a")).expect("removed");
        assert_eq!(names(&index, &table), Vec::<String>::new());
    }

    /// The time of modification is what a program can set.
    #[test]
    fn a_time_that_was_set_back_hides_no_change() {
        let tree = tempfile::tempdir().expect("a folder");
        let table = MountTable::workspace(tree.path(), TreeOwner::PersonsTree).expect("a mount");
        let index = TreeIndex::new(rc);
        until_believed(&index, &table);
        fs::write(tree.path().join(".bashrc"), "x").expect("written");
        let old = fs::FileTimes::new().set_modified(UNIX_EPOCH).set_accessed(UNIX_EPOCH);
        fs::File::open(tree.path()).expect("opened").set_times(old).expect("set");
        assert_eq!(names(&index, &table), [".bashrc"]);
    }

    #[test]
    fn folders_that_lie_too_deep_are_said_to_be_there() {
        for (name, depth) in [("d".to_owned(), DEPTH_MAX + 2), ("n".repeat(250), 20)] {
            let tree = tempfile::tempdir().expect("a folder");
            let mut here =
                cap_std::fs::Dir::open_ambient_dir(tree.path(), cap_std::ambient_authority()).expect("opened");
            for _ in 0..depth {
                here.create_dir(&name).expect("made");
                here = here.open_dir(&name).expect("opened");
            }
            here.write(".envrc", "x").expect("written");
            let table = MountTable::workspace(tree.path(), TreeOwner::PersonsTree).expect("a mount");
            let index = TreeIndex::new(rc);
            for _ in 0..2 {
                let found = index.look(&table).expect("listed");
                assert!(found.iter().any(|one| one.has_unseen), "{depth}: {found:?}");
            }
        }
    }

    #[test]
    fn git_folders_are_found_whatever_they_are_called_and_links_are_not_followed() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        for folder in ["bare/objects", "bare/refs", "half/objects", "x/.git/sub", "linked/objects/a"] {
            fs::create_dir_all(at(folder)).expect("folders");
        }
        fs::write(at("bare/HEAD"), "ref: refs/heads/x").expect("written");
        fs::write(at("half/HEAD"), "ref: refs/heads/x").expect("written");
        fs::write(at("linked/HEAD"), "ref: refs/heads/x").expect("written");
        fs::write(at("linked/commondir"), "../bare").expect("written");
        // Nothing of git is in these, so they are looked into.
        fs::write(at("linked/objects/a/.envrc"), "x").expect("written");
        fs::write(at("x/.git/sub/.envrc"), "x").expect("written");
        std::os::unix::fs::symlink(at("bare"), at("link")).expect("a link");
        let table = MountTable::workspace(tree.path(), TreeOwner::PersonsTree).expect("a mount");
        assert_eq!(
            names(&TreeIndex::new(rc), &table),
            ["bare (git)", "linked (git)", "linked/objects/a/.envrc", "x/.git (git)"]
        );
    }
}
