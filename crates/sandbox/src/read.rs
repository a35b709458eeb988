//! Looking at a file and reading it whole, each from one handle.

use std::fs::File;
use std::io::{self, Read};

use cap_std::fs::Dir;
use portcullis_base::{Digest, DigestWriter, Timestamp};
use rustix::fs::{AtFlags, Stat};

use crate::handle::{Entry, Identity, kind_of, look, mode_of, mtime_of, open_file, reopen_dir, size_of};
use crate::parents::{open_beneath, split};
use crate::{FileError, Kind, ResolvedPlace, VirtualPath};

/// What the file system says of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub kind: Kind,
    pub size: u64,
    pub mtime: Timestamp,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    /// Which object it is, as device and number, if it has more than one name.
    pub linked: Option<(u64, u64)>,
}

/// A file's whole content, with what one handle said of it. Size and hash are of `bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Vec<u8>,
    pub sha256: Digest,
    pub size: u64,
    pub mtime: Timestamp,
    pub mode: u32,
}

/// A file's content as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHash {
    pub sha256: Digest,
    pub size: u64,
    pub mtime: Timestamp,
}

impl FileStat {
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = kind_of(stat);
        let linked = (kind == Kind::File && stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino));
        Self { kind, size: size_of(stat), mtime: mtime_of(stat), mode: mode_of(stat), linked }
    }
}

/// Looks at the place without opening it, whatever its kind.
pub fn stat(resolved: &ResolvedPlace) -> Result<FileStat, FileError> {
    look_at(resolved).map(|stat| FileStat::of(&stat))
}

/// What tells the object at a place from any other that could stand there. A folder keeps its own while its entries come
/// and go; a file has another one after every change of its content.
pub fn identity(resolved: &ResolvedPlace) -> Result<String, FileError> {
    let stat = look_at(resolved)?;
    let object = format!("{}:{}", stat.st_dev, stat.st_ino);
    Ok(match kind_of(&stat) {
        Kind::Directory => object,
        _ => format!(
            "{object}:{}:{}.{}:{}.{}",
            stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec
        ),
    })
}

fn look_at(resolved: &ResolvedPlace) -> Result<Stat, FileError> {
    let path = resolved.path();
    let Some((name, above)) = resolved.names().split_last() else {
        resolved.hidden().check_mount(resolved.mount())?;
        return rustix::fs::fstat(resolved.mount().dir()).map_err(|e| FileError::io(path, e));
    };
    let dir = open_beneath(resolved, above)?;
    match look(&dir, name).map_err(|e| FileError::io(path, e))? {
        Entry::Missing => Err(FileError::NotFound { path: path.clone() }),
        Entry::Link => Err(FileError::PathChanged { path: path.clone() }),
        Entry::Found(stat) => {
            resolved.hidden().check(Identity::of(&stat), path)?;
            Ok(stat)
        }
    }
}

/// The directory, opened for listing. What is opened in it stays beneath it: [`Dir`] sees to that.
/// It knows nothing of hidden folders: what a listing finds is opened by its path, through the table.
pub fn open_dir(resolved: &ResolvedPlace) -> Result<Dir, FileError> {
    let path = resolved.path();
    match stat(resolved)?.kind {
        Kind::Directory => {}
        found => return Err(FileError::WrongKind { path: path.clone(), wanted: Kind::Directory, found }),
    }
    let dir = open_beneath(resolved, resolved.names())?;
    Ok(Dir::from_std_file(reopen_dir(&dir).map_err(|e| FileError::io(path, e))?))
}

/// The whole file, if it has at most `max_bytes`.
pub fn read_file(resolved: &ResolvedPlace, max_bytes: u64) -> Result<FileContent, FileError> {
    let (file, stat) = open(resolved)?;
    read_opened(&file, &stat, max_bytes, resolved.path())
}

/// The file, opened for reading, to be handed to a program as it is: what was checked is what it reads.
pub fn open_for_reading(resolved: &ResolvedPlace) -> Result<File, FileError> {
    open(resolved).map(|(file, _)| file)
}

/// What the kernel would say to an attempt of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Read,
    /// Also needs a mount that can be written.
    Write,
    /// Runs a file, or passes through a directory.
    Execute,
}

/// Whether an attempt would be let through, without making it.
pub fn would_allow(resolved: &ResolvedPlace, attempt: Attempt) -> Result<bool, FileError> {
    stat(resolved)?;
    if attempt == Attempt::Write && resolved.check_writable().is_err() {
        return Ok(false);
    }
    let access = match attempt {
        Attempt::Read => rustix::fs::Access::READ_OK,
        Attempt::Write => rustix::fs::Access::WRITE_OK,
        Attempt::Execute => rustix::fs::Access::EXEC_OK,
    };
    let asked = match resolved.names().split_last() {
        None => rustix::fs::accessat(resolved.mount().dir(), ".", access, AtFlags::EACCESS),
        // A link in its place by now would be asked about instead; the answer is a single bit of metadata.
        Some((name, above)) => {
            rustix::fs::accessat(open_beneath(resolved, above)?, name.as_str(), access, AtFlags::EACCESS)
        }
    };
    Ok(asked.is_ok())
}

/// Hashes the file without holding it in memory.
pub fn hash_file(resolved: &ResolvedPlace) -> Result<FileHash, FileError> {
    let (mut file, stat) = open(resolved)?;
    let mut writer = DigestWriter::default();
    let size = io::copy(&mut file, &mut writer).map_err(|e| FileError::io(resolved.path(), e))?;
    Ok(FileHash { sha256: writer.finish(), size, mtime: mtime_of(&stat) })
}

fn open(resolved: &ResolvedPlace) -> Result<(File, Stat), FileError> {
    let (above, name) = split(resolved)?;
    let dir = open_beneath(resolved, above)?;
    let (file, stat) = open_file(&dir, name, false, resolved.path())?;
    resolved.hidden().check(Identity::of(&stat), resolved.path())?;
    Ok((file, stat))
}

pub(crate) fn read_opened(file: &File, stat: &Stat, max: u64, path: &VirtualPath) -> Result<FileContent, FileError> {
    let too_large = |size| FileError::TooLarge { path: path.clone(), size, max };
    if size_of(stat) > max {
        return Err(too_large(size_of(stat)));
    }
    // The size is a hint: the file may grow while it is read, so the read itself is bounded too.
    let mut bytes = Vec::with_capacity(usize::try_from(size_of(stat)).unwrap_or(0));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| FileError::io(path, e))?;
    let size = bytes.len() as u64;
    if size > max {
        return Err(too_large(size));
    }
    Ok(FileContent { sha256: Digest::of(&bytes), size, mtime: mtime_of(stat), mode: mode_of(stat), bytes })
}
