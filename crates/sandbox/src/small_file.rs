//! Reads a small file of a tree that commands can write, such as one of git's.
//!
//! Anything may stand at its name: a pipe that nobody writes to, a device without an end, a link to either. The read never
//! waits, never takes more than its bound, and gives nothing for what is not a regular file.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::Kind;
use crate::handle::kind_of;

/// `O_NONBLOCK`: a pipe that was swapped in is not waited for.
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The bytes of a regular file. `None` if there is none, if a link stands at its name, or if it has more than `most` bytes.
/// Links on the way to its folder are followed.
#[must_use]
pub fn read_small(path: &Path, most: u64) -> Option<Vec<u8>> {
    is_file(CWD, path)?;
    bytes(rustix::fs::openat(CWD, path, FLAGS, Mode::empty()).ok()?, most)
}

/// The same of a file that lies at `beneath` an open folder. No link is followed, on the way neither.
#[must_use]
pub fn read_small_beneath(folder: impl AsFd, beneath: &Path, most: u64) -> Option<Vec<u8>> {
    is_file(&folder, beneath)?;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match rustix::fs::openat2(&folder, beneath, FLAGS, Mode::empty(), within) {
        Err(Errno::NOSYS) => rustix::fs::openat(&folder, beneath, FLAGS, Mode::empty()),
        other => other,
    };
    bytes(opened.ok()?, most)
}

/// Opening a device can have effects, so it is not opened where that can be known before.
fn is_file(folder: impl AsFd, path: &Path) -> Option<()> {
    let stat = rustix::fs::statat(folder, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (kind_of(&stat) == Kind::File).then_some(())
}

fn bytes(opened: OwnedFd, most: u64) -> Option<Vec<u8>> {
    // What decides is what was opened, where nothing can be swapped.
    if kind_of(&rustix::fs::fstat(&opened).ok()?) != Kind::File {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(opened).take(most.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn a_file_within_its_bound_is_read_and_nothing_else_is() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        fs::create_dir(at("folder")).expect("made");
        fs::write(at("folder/file"), "12345").expect("written");
        symlink("folder", at("way")).expect("a link");
        symlink("folder/file", at("link")).expect("a link");
        symlink("/dev/zero", at("zero")).expect("a link");
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        let root = fs::File::open(tree.path()).expect("opened");
        for (name, most, by_path, beneath) in [
            ("folder/file", 5, true, true),
            ("folder/file", 4, false, false),
            ("way/file", 5, true, false),
            ("link", 5, false, false),
            ("zero", 5, false, false),
            ("pipe", 5, false, false),
            ("folder", 5, false, false),
            ("missing", 5, false, false),
        ] {
            assert_eq!(read_small(&at(name), most).is_some(), by_path, "{name}");
            assert_eq!(read_small_beneath(&root, Path::new(name), most).is_some(), beneath, "{name}");
        }
        assert_eq!(read_small(Path::new("/dev/zero"), 5), None);
        assert_eq!(read_small(&at("folder/file"), 9).expect("read"), b"12345");
    }
}
