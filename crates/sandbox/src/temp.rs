//! A file that is not there yet: content on disk without a name, gone by itself unless it becomes
//! the target, even if this process is killed. Where the file system cannot do that, it has a name
//! nobody can guess until then.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};

use cap_std::fs::Dir;
use portcullis_base::{Entropy, SystemIds};
use rustix::fs::{Access, Advice, AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use crate::handle::mode_of;
use crate::{FileError, Name, VirtualPath};

/// How a file without a name is given one: through the kernel's own view of our handles.
const HANDLES: &str = "/proc/self/fd";

/// Content on its way to a name in `dir`. Dropped, it is removed.
pub(crate) struct Temp<'d> {
    dir: &'d Dir,
    /// The name to remove again; none while it has none, and none once it is the target.
    name: Option<String>,
    file: File,
}

impl<'d> Temp<'d> {
    /// An empty one beside its target. [`Self::fill`] and a sync must follow before it becomes the target.
    pub(crate) fn open(dir: &'d Dir, mode: Mode) -> Result<Self, Errno> {
        match Self::nameless(dir, mode) {
            Some(temp) => Ok(temp),
            None => Self::named(dir, mode),
        }
    }

    /// Puts the content in, and lets the disk begin with it.
    pub(crate) fn fill(&mut self, content: &[u8], path: &VirtualPath) -> Result<(), FileError> {
        self.file.write_all(content).map_err(|e| FileError::io(path, e))?;
        // A hint: the kernel starts to write what it is told will not be read again. The wait is in the sync.
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        Ok(())
    }

    /// Waits until the disk has the content: a rename must never show a file that is not whole. Labels that were given
    /// before the content reach the disk with it, for a file system keeps the order of what changes in one file.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        rustix::fs::fdatasync(&self.file)
    }

    /// The same for labels that were given after the content.
    pub(crate) fn sync_labels(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.file)
    }

    /// `None` where the file system cannot, or where it could not be given a name afterwards.
    fn nameless(dir: &'d Dir, mode: Mode) -> Option<Self> {
        rustix::fs::access(HANDLES, Access::EXISTS).ok()?;
        let fd = rustix::fs::openat(dir, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, mode).ok()?;
        Some(Self { dir, name: None, file: File::from(fd) })
    }

    fn named(dir: &'d Dir, mode: Mode) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = random_name();
        // 128 random bits: a name already taken is no accident, and the write then fails.
        let fd = rustix::fs::openat(dir, &name, flags, mode)?;
        Ok(Self { dir, name: Some(name), file: File::from(fd) })
    }

    /// Gives it a name of its own beside the target, if it has none yet.
    pub(crate) fn show(&mut self) -> Result<&str, Errno> {
        if self.name.is_none() {
            let name = random_name();
            self.link(&name)?;
            self.name = Some(name);
        }
        Ok(self.name.as_deref().unwrap_or_default())
    }

    fn link(&self, to: &str) -> Result<(), Errno> {
        let from = format!("{HANDLES}/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, from, self.dir, to, AtFlags::SYMLINK_FOLLOW)
    }

    /// Makes it the file `name`, which must not exist: decided by the kernel in one step.
    pub(crate) fn place_new(&mut self, name: &Name) -> Result<(), Errno> {
        let (dir, to) = (self.dir, name.as_str());
        let Some(from) = self.name.as_deref() else { return self.link(to) };
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.name = None;
                Ok(())
            }
            // A file system without that flag: a second link also refuses an existing name; the
            // first one goes when this value is dropped.
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(dir, from, dir, to, AtFlags::empty()),
            Err(other) => Err(other),
        }
    }

    /// Makes it the file `name`, in place of what is there. No call replaces a file by one without
    /// a name, so for one moment it has a name of its own.
    pub(crate) fn replace(&mut self, name: &Name) -> Result<(), Errno> {
        let dir = self.dir;
        rustix::fs::renameat(dir, self.show()?, dir, name.as_str())?;
        self.name = None;
        Ok(())
    }

    /// Gives it what the file it will replace has: owner where permitted, mode, access list and
    /// `user.` attributes.
    pub(crate) fn dress_as(&self, original: &File, stat: &Stat) -> Result<(), Errno> {
        const ACL: &str = "system.posix_acl_access";
        let mine = rustix::fs::fstat(&self.file)?;
        let mut mode = mode_of(stat);
        if (mine.st_uid, mine.st_gid) != (stat.st_uid, stat.st_gid) {
            // Owner and group apart: a member of the group may give the one and not the other.
            let group = rustix::fs::fchown(&self.file, None, Some(Gid::from_raw(stat.st_gid)));
            let owner = rustix::fs::fchown(&self.file, Some(Uid::from_raw(stat.st_uid)), None);
            if group.is_err() || owner.is_err() {
                // Setuid for another owner would be a new right, not a kept mode.
                mode &= 0o1777;
            }
        }
        // The directory's default list may have given the new file entries the old one never had;
        // they would wake up with the mode. No list to remove is the usual case.
        let _ = rustix::fs::fremovexattr(&self.file, ACL);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?;
        copy_attributes(original, &self.file, |name| name == ACL || name.starts_with("user."));
        Ok(())
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::fstat(&self.file)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.dir, name.as_str(), AtFlags::empty());
        }
    }
}

/// Copies extended attributes as far as the file system takes them: many have none, and content
/// is worth more than its labels.
fn copy_attributes(from: impl AsFd, to: impl AsFd, wanted: impl Fn(&str) -> bool) {
    const LIST_MAX: usize = 65_536;
    // Most files have none, and then no large buffer is needed to find out.
    if matches!(rustix::fs::flistxattr(&from, &mut [0u8; 64][..]), Ok(0)) {
        return;
    }
    let mut names = vec![0u8; LIST_MAX];
    let Ok(len) = rustix::fs::flistxattr(&from, &mut names[..]) else { return };
    let mut value = vec![0u8; LIST_MAX];
    for name in names[..len].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok()) {
        if !name.is_empty()
            && wanted(name)
            && let Ok(len) = rustix::fs::fgetxattr(&from, name, &mut value[..])
        {
            let _ = rustix::fs::fsetxattr(&to, name, &value[..len], XattrFlags::empty());
        }
    }
}

fn random_name() -> String {
    // Not an id and never logged, so it needs no injected source: it must only be unguessable.
    let mut bits = [0u8; 16];
    SystemIds::new().fill(&mut bits);
    format!(".portcullis-{:032x}.tmp", u128::from_le_bytes(bits))
}
