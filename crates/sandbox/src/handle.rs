//! The kernel calls below a mount. Each takes a directory handle and one [`Name`], and none follows
//! a link: together with [`Name`] this is what keeps every action beneath its mount, on every
//! kernel, with or without `openat2`.

use std::fs::File;
use std::io;

use cap_std::fs::Dir;
use portcullis_base::Timestamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{FileError, Kind, Name, VirtualPath};

/// Which object a handle holds, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    dev: u64,
    ino: u64,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { dev: stat.st_dev, ino: stat.st_ino }
    }

    pub(crate) fn of_dir(dir: &Dir) -> io::Result<Self> {
        Ok(Self::of(&rustix::fs::fstat(dir)?))
    }
}

/// What stands at a name, links not followed.
pub(crate) enum Entry {
    Missing,
    Link,
    Found(Stat),
}

pub(crate) fn look(dir: &Dir, name: &Name) -> Result<Entry, Errno> {
    match rustix::fs::statat(dir, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Ok(Entry::Link),
        Ok(stat) => Ok(Entry::Found(stat)),
        Err(Errno::NOENT) => Ok(Entry::Missing),
        Err(other) => Err(other),
    }
}

pub(crate) fn kind_of(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        _ => Kind::Other,
    }
}

/// Permission bits with setuid, setgid and sticky.
pub(crate) fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

pub(crate) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub(crate) fn mtime_of(stat: &Stat) -> Timestamp {
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Timestamp::from_micros(stat.st_mtime.saturating_mul(1_000_000).saturating_add(nanos / 1_000))
}

/// A child directory. `O_PATH`: a directory one may pass through but not list still opens.
pub(crate) fn open_child_dir(dir: &Dir, name: &Name) -> Result<Dir, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name.as_str(), flags, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(fd)))
}

/// The same directory, open for listing, syncing and locking.
pub(crate) fn reopen_dir(dir: &Dir) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(dir, ".", flags, Mode::empty())?))
}

/// The regular file `name` in `dir`. `path` is its name in errors.
///
/// A pipe, socket or device is refused before it is opened, because opening one can have effects on
/// its other end. What decides is the check on the opened handle, where nothing can be swapped.
pub(crate) fn open_file(dir: &Dir, name: &Name, write: bool, path: &VirtualPath) -> Result<(File, Stat), FileError> {
    if let Entry::Found(stat) = look(dir, name).map_err(|e| FileError::io(path, e))? {
        require_file(&stat, path)?;
    }
    open_whatever(dir, name, write, path)
}

/// Opens what stands at `name` and keeps it only if it is a file. `O_NONBLOCK`: a pipe that was
/// swapped in is not waited for.
fn open_whatever(dir: &Dir, name: &Name, write: bool, path: &VirtualPath) -> Result<(File, Stat), FileError> {
    let wrong = |found| FileError::WrongKind { path: path.clone(), wanted: Kind::File, found };
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name.as_str(), flags, Mode::empty()).map_err(|e| match e {
        Errno::LOOP => FileError::PathChanged { path: path.clone() },
        Errno::NXIO => wrong(Kind::Other),
        Errno::ISDIR => wrong(Kind::Directory),
        other => FileError::io(path, other),
    })?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| FileError::io(path, e))?;
    require_file(&stat, path)?;
    Ok((File::from(fd), stat))
}

fn require_file(stat: &Stat, path: &VirtualPath) -> Result<(), FileError> {
    match kind_of(stat) {
        Kind::File => Ok(()),
        found => Err(FileError::WrongKind { path: path.clone(), wanted: Kind::File, found }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The open alone must be safe: the look before it can always be outrun.
    #[test]
    fn an_open_that_lost_the_race_neither_follows_a_link_nor_waits_for_a_pipe() {
        let root = tempfile::tempdir().expect("dir");
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), b"x").expect("file");
        symlink("file", at("link")).expect("link");
        fs::create_dir(at("dir")).expect("dir");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("pipe");
        let _socket = UnixListener::bind(at("socket")).expect("socket");
        let dir = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).expect("opens");
        let path = VirtualPath::workspace();
        let wrong = |found| FileError::WrongKind { path: path.clone(), wanted: Kind::File, found };
        for write in [false, true] {
            let open = |name: &str| open_whatever(&dir, &Name::new(name).expect("a name"), write, &path).map(|_| ());
            assert_eq!(open("file"), Ok(()));
            assert_eq!(open("link"), Err(FileError::PathChanged { path: path.clone() }));
            assert_eq!(open("dir"), Err(wrong(Kind::Directory)));
            assert_eq!(open("pipe"), Err(wrong(Kind::Other)));
            assert_eq!(open("socket"), Err(wrong(Kind::Other)));
            assert_eq!(open("missing"), Err(FileError::NotFound { path: path.clone() }));
        }
    }
}
