//! Headroom on a full disk (store §10): a file that holds room for nothing else. Whoever must still record something
//! when the disk is full, the end of what already ran above all, gives the room away by emptying it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::{Resource, getrlimit};

/// How much room is held.
pub(crate) const BALLAST_BYTES: u64 = 16 << 20;
/// It is made only where this much is free: what others need is not taken from them, and room that was just given back
/// is not taken again before there is more.
const ROOM_WANTED: u64 = 2 * BALLAST_BYTES;

/// The file beside a database.
#[derive(Debug, Clone)]
pub(crate) struct Ballast {
    path: PathBuf,
}

impl Ballast {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { path: database.with_file_name("ballast") }
    }

    /// Whether the whole room is held.
    pub(crate) fn is_kept(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.is_file() && found.len() >= BALLAST_BYTES)
    }

    /// Makes it if it is not there. Too little room is an error of its own kind and leaves nothing behind.
    pub(crate) fn keep(&self) -> io::Result<()> {
        if self.is_kept() {
            return Ok(());
        }
        let folder = self.path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let found = statvfs(folder)?;
        if found.f_bavail.saturating_mul(found.f_frsize) < ROOM_WANTED {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Going over such a limit would end the process by a signal.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < BALLAST_BYTES) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let before = self.was_made();
        // Another process may be at it; both allocate the same bytes of the same file.
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path);
        let allocated = made.and_then(|file| allocate(&file));
        match allocated {
            Err(_) if before => self.give()?,
            Err(_) => self.release()?,
            Ok(()) => {}
        }
        allocated
    }

    /// Whether it is there, or was until its room was given away.
    pub(crate) fn was_made(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.is_file())
    }

    /// Gives its room away and leaves the empty file, by which every process knows that this room is spoken for.
    pub(crate) fn give(&self) -> io::Result<()> {
        match OpenOptions::new().write(true).truncate(true).open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    /// Deletes it; its room is free for the next write.
    pub(crate) fn release(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Really takes the room: a file with a hole in it holds none.
fn allocate(mut file: &File) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, BALLAST_BYTES) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        other => return Ok(other?),
    }
    let zeros = vec![0; 1 << 20];
    for _ in 0..BALLAST_BYTES >> 20 {
        file.write_all(&zeros)?;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn f07_the_ballast_holds_real_room_and_gives_it_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let ballast = Ballast::beside(&folder.path().join("store.db"));
        assert!(!ballast.is_kept());
        for _ in 0..2 {
            ballast.keep().expect("there is room");
            let found = fs::metadata(folder.path().join("ballast")).expect("it is there");
            assert!(ballast.is_kept() && found.blocks() * 512 >= BALLAST_BYTES, "no hole: {} blocks", found.blocks());
            assert_eq!((found.len(), found.mode() & 0o777), (BALLAST_BYTES, 0o600));
        }
        // One that was cut short is made whole.
        OpenOptions::new().write(true).open(folder.path().join("ballast")).expect("it").set_len(5).expect("cut");
        assert!(!ballast.is_kept());
        ballast.keep().expect("there is room");
        assert!(ballast.is_kept());
        for _ in 0..2 {
            ballast.release().expect("released");
            assert!(!ballast.is_kept());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }
}
