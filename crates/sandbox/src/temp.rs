//! A file that is not there yet: content on disk under a name nobody can guess, gone again unless
//! it becomes the target.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use cap_std::fs::Dir;
use portcullis_base::{Entropy, SystemIds};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use crate::handle::mode_of;
use crate::{FileError, Name, VirtualPath};

/// Content on its way to a name in `dir`. Dropped, it is removed.
pub(crate) struct Temp<'d> {
    dir: &'d Dir,
    name: String,
    file: File,
    placed: bool,
}

impl<'d> Temp<'d> {
    /// Writes `content` beside its target. [`Self::sync`] must follow before it becomes the target.
    pub(crate) fn write(dir: &'d Dir, mode: Mode, content: &[u8], path: &VirtualPath) -> Result<Self, FileError> {
        let failed = |e: std::io::Error| FileError::io(path, e);
        let mut temp = Self::create(dir, mode).map_err(|e| failed(e.into()))?;
        temp.file.write_all(content).map_err(failed)?;
        Ok(temp)
    }

    /// Waits until the disk has it: a rename must never show a file that is not whole.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.file)
    }

    fn create(dir: &'d Dir, mode: Mode) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = random_name();
        // 128 random bits: a name already taken is no accident, and the write then fails.
        let fd = rustix::fs::openat(dir, &name, flags, mode)?;
        Ok(Self { dir, name, file: File::from(fd), placed: false })
    }

    /// Makes it the file `name`, which must not exist: decided by the kernel in one step.
    pub(crate) fn place_new(&mut self, name: &Name) -> Result<(), Errno> {
        let (dir, from, to) = (self.dir, self.name.as_str(), name.as_str());
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.placed = true;
                Ok(())
            }
            // A file system without that flag: a second link also refuses an existing name; the
            // first one goes when this value is dropped.
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(dir, from, dir, to, AtFlags::empty()),
            Err(other) => Err(other),
        }
    }

    /// Makes it the file `name`, in place of what is there.
    pub(crate) fn replace(&mut self, name: &Name) -> Result<(), Errno> {
        rustix::fs::renameat(self.dir, self.name.as_str(), self.dir, name.as_str())?;
        self.placed = true;
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
        if !self.placed {
            let _ = rustix::fs::unlinkat(self.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Copies extended attributes as far as the file system takes them: many have none, and content
/// is worth more than its labels.
fn copy_attributes(from: impl AsFd, to: impl AsFd, wanted: impl Fn(&str) -> bool) {
    const LIST_MAX: usize = 65_536;
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
