//! Writing a file: compare-and-swap on its content, all or nothing.
//!
//! The order is the contract (tool-contract §19, 15.2): content to a temporary file beside the
//! target, synced; then, with the directory locked against other Portcullis writers, the path and
//! the target's hash once more; then the rename. Programs that know nothing of the lock can still
//! slip in between that hash and the rename, a few microseconds; no system call closes that gap.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use portcullis_base::{Digest, Timestamp, limits};
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, Stat};
use rustix::io::Errno;

use crate::handle::{Entry, Identity, look, mode_of, mtime_of, open_file, reopen_dir};
use crate::parents::{Parents, split};
use crate::read::read_opened;
use crate::temp::Temp;
use crate::{FileContent, FileError, Name, ResolvedPlace, TreeOwner, VirtualPath};

/// What must be at the path for the write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, not even a link.
    Absent,
    /// A file with exactly this content.
    Sha256(Digest),
}

/// One write.
#[derive(Debug, Clone, Copy)]
pub struct WritePlan<'c> {
    pub content: &'c [u8],
    pub expect: Expect,
    /// Whether missing directories are made for a new file.
    pub create_parents: bool,
}

/// The handles of a file that was replaced. With the last of them the file system gives its blocks
/// back, which can take as long as the write did: drop it where nobody waits.
#[derive(Debug, Default)]
pub struct ReplacedFile(#[expect(dead_code, reason = "held to be dropped")] Vec<File>);

/// The file that a write left, and what it replaced.
#[derive(Debug)]
pub struct WrittenFile {
    /// What it replaced.
    pub before: Option<FileContent>,
    pub sha256: Digest,
    pub size: u64,
    pub mtime: Timestamp,
    pub mode: u32,
    /// Directories made for it, outermost first.
    pub created_dirs: Vec<VirtualPath>,
    /// Whether the disk confirmed the new name. Without it the file is written and a power cut may
    /// still bring the old one back.
    pub synced: bool,
    pub replaced: ReplacedFile,
}

/// How long a writer waits for others in the same directory; they hold the lock for one hash and
/// one rename.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(2);
/// The bits by which a program runs as its owner or group.
const SET_ID: u32 = 0o6000;

/// Writes the file. On an error nothing has changed and nothing is left behind, except after
/// [`FileError::Torn`].
pub fn write_file(resolved: &ResolvedPlace, plan: &WritePlan<'_>) -> Result<WrittenFile, FileError> {
    write_file_while(resolved, plan, || ()).map(|(written, ())| written)
}

/// The same, and does something else while the disk takes the content in: before the file is replaced, and for nothing
/// if it then is not.
pub fn write_file_while<T>(
    resolved: &ResolvedPlace,
    plan: &WritePlan<'_>,
    meanwhile: impl FnOnce() -> T,
) -> Result<(WrittenFile, T), FileError> {
    let path = resolved.path();
    let (_, name) = split(resolved)?;
    resolved.check_writable()?;
    let size = plan.content.len() as u64;
    if size > limits::FILE_MAX {
        return Err(FileError::TooLarge { path: path.clone(), size, max: limits::FILE_MAX });
    }
    let create = plan.create_parents && plan.expect == Expect::Absent;
    let parents = match (Parents::open(resolved, create), plan.expect) {
        (Err(FileError::NotFound { .. }), Expect::Sha256(expected)) => {
            return Err(FileError::StaleBaseline { path: path.clone(), expected, found: None });
        }
        (parents, _) => parents?,
    };
    let target = Target { parents: &parents, name, path, resolved };
    let (PlacedFile { before, stat, replaced }, made) = match plan.expect {
        Expect::Absent => target.create(plan.content, meanwhile)?,
        Expect::Sha256(expected) => target.overwrite(plan.content, expected, meanwhile)?,
    };
    // A new name must survive a power cut as its content does. A replaced file is whole either way,
    // old or new, and a reader finds out by its hash which of them it is: that wait is not worth its price.
    let synced = plan.expect != Expect::Absent || parents.sync();
    let written = WrittenFile {
        before,
        sha256: Digest::of(plan.content),
        size,
        mtime: mtime_of(&stat),
        mode: mode_of(&stat),
        created_dirs: parents.keep(),
        synced,
        replaced,
    };
    Ok((written, made))
}

/// What stands at the name now, and what stood there.
struct PlacedFile {
    before: Option<FileContent>,
    stat: Stat,
    replaced: ReplacedFile,
}

struct Target<'a> {
    parents: &'a Parents<'a>,
    name: &'a Name,
    path: &'a VirtualPath,
    resolved: &'a ResolvedPlace,
}

impl Target<'_> {
    fn create<T>(&self, content: &[u8], meanwhile: impl FnOnce() -> T) -> Result<(PlacedFile, T), FileError> {
        let exists = || FileError::TargetExists { path: self.path.clone() };
        match look(&self.parents.dir, self.name).map_err(|e| self.io(e))? {
            Entry::Missing => {}
            Entry::Link | Entry::Found(_) => return Err(exists()),
        }
        let hidden = self.resolved.hidden();
        hidden.check_new(&self.parents.dir, std::iter::once(self.name.as_str()), self.path)?;
        // The temporary file becomes the file, so it is created as the file would be: the kernel
        // applies the umask and the directory's default access list.
        let mode = match self.resolved.mount().owner() {
            TreeOwner::PersonsTree => 0o666,
            TreeOwner::SessionOwn => 0o600,
        };
        let mut temp = Temp::open(&self.parents.dir, Mode::from_raw_mode(mode)).map_err(|e| self.io(e))?;
        temp.fill(content, self.path)?;
        let made = meanwhile();
        temp.sync().map_err(|e| self.io(e))?;
        let _lock = self.lock()?;
        self.parents.check_unmoved(self.path)?;
        let stat = temp.stat().map_err(|e| self.io(e))?;
        match temp.place_new(self.name) {
            Ok(()) => self.check_new(&stat).inspect_err(|_| {
                // The configuration, or what is hidden, was a link to a name where nothing stood: now it would be this.
                let _ = rustix::fs::unlinkat(&self.parents.dir, self.name.as_str(), AtFlags::empty());
            }),
            Err(Errno::EXIST) => Err(exists()),
            Err(other) => Err(self.io(other)),
        }?;
        Ok((PlacedFile { before: None, stat, replaced: ReplacedFile::default() }, made))
    }

    fn overwrite<T>(
        &self,
        content: &[u8],
        expected: Digest,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(PlacedFile, T), FileError> {
        // For its labels. What it says is read where it counts, below.
        let (seen, seen_stat) = self.open(expected, false)?;
        // A rename needs no right to the file itself, but a file made read-only is meant to stay.
        rustix::fs::accessat(&self.parents.dir, self.name.as_str(), Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|e| self.io(e))?;
        let mut temp = Temp::open(&self.parents.dir, Mode::from_raw_mode(0o600)).map_err(|e| self.io(e))?;
        temp.dress_as(&seen, &seen_stat).map_err(|e| self.io(e))?;
        temp.fill(content, self.path)?;
        let made = meanwhile();
        // Content and labels reach the disk in one wait, before the lock is taken.
        if mode_of(&seen_stat) & SET_ID == 0 {
            temp.sync()
        } else {
            // Writing has taken these bits away.
            temp.dress_as(&seen, &seen_stat).and_then(|()| temp.sync_labels())
        }
        .map_err(|e| self.io(e))?;
        let _lock = self.lock()?;
        self.parents.check_unmoved(self.path)?;
        let (file, stat, before) = self.open_expected(expected, false)?;
        if stat.st_nlink > 1 {
            // A rename would leave the other names with the old content. Links survive (tool-contract 15.2), so
            // this file alone is written in place: not atomic for a reader, but the new content is
            // already safe beside it, under a name, should the machine stop halfway.
            temp.show().map_err(|e| self.io(e))?;
            drop(file);
            let (file, _, before) = self.open_expected(expected, true)?;
            self.write_in_place(&file, content, &before.bytes)?;
            let stat = rustix::fs::fstat(&file).map_err(|e| self.io(e))?;
            return Ok((PlacedFile { before: Some(before), stat, replaced: ReplacedFile::default() }, made));
        }
        let relabelled = |stat: &Stat| (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
        if relabelled(&stat) != relabelled(&seen_stat) {
            temp.dress_as(&file, &stat).and_then(|()| temp.sync_labels()).map_err(|e| self.io(e))?;
        }
        let stat = temp.stat().map_err(|e| self.io(e))?;
        temp.replace(self.name).map_err(|e| self.io(e))?;
        Ok((PlacedFile { before: Some(before), stat, replaced: ReplacedFile(vec![seen, file]) }, made))
    }

    /// Opens the target, if it may be replaced.
    fn open(&self, expected: Digest, write: bool) -> Result<(File, Stat), FileError> {
        let opened = open_file(&self.parents.dir, self.name, write, self.path);
        let (file, stat) = opened.map_err(|e| match e {
            FileError::NotFound { .. } => self.stale(expected, None),
            other => other,
        })?;
        self.check_not_config(&stat)?;
        self.resolved.hidden().check(Identity::of(&stat), self.path)?;
        Ok((file, stat))
    }

    /// Opens the target and reads it, if its content is the expected one.
    fn open_expected(&self, expected: Digest, write: bool) -> Result<(File, Stat, FileContent), FileError> {
        let (file, stat) = self.open(expected, write)?;
        let content = read_opened(&file, &stat, limits::FILE_MAX, self.path)?;
        if content.sha256 == expected {
            Ok((file, stat, content))
        } else {
            Err(self.stale(expected, Some(content.sha256)))
        }
    }

    fn stale(&self, expected: Digest, found: Option<Digest>) -> FileError {
        FileError::StaleBaseline { path: self.path.clone(), expected, found }
    }

    /// What was just made is nothing that may not be made.
    fn check_new(&self, stat: &Stat) -> Result<(), FileError> {
        self.check_not_config(stat)?;
        self.resolved.hidden().check(Identity::of(stat), self.path)
    }

    /// The configuration file is read-only under every name it has.
    fn check_not_config(&self, stat: &Stat) -> Result<(), FileError> {
        if self.resolved.mount().config_file_identity() == Some(Identity::of(stat)) {
            return Err(FileError::ReadOnlyMount { path: self.path.clone() });
        }
        Ok(())
    }

    fn write_in_place(&self, file: &File, content: &[u8], before: &[u8]) -> Result<(), FileError> {
        let put = |bytes: &[u8]| {
            file.write_all_at(bytes, 0)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        };
        put(content).map_err(|failed| match put(before) {
            Ok(()) => FileError::io(self.path, failed),
            Err(_) => FileError::Torn { path: self.path.clone(), kind: failed.kind() },
        })
    }

    /// Keeps other Portcullis writers, in this process and others, out of the directory until
    /// dropped. Advisory and without a trace in the tree. A file system that cannot lock a
    /// directory gives none: there the scheduler's path key alone orders the writers.
    fn lock(&self) -> Result<Option<File>, FileError> {
        let Ok(dir) = reopen_dir(&self.parents.dir) else { return Ok(None) };
        let start = Instant::now();
        loop {
            match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(dir)),
                Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_POLL),
                Err(Errno::WOULDBLOCK) => {
                    let kind = std::io::ErrorKind::ResourceBusy;
                    return Err(FileError::Io { path: self.path.clone(), kind });
                }
                Err(Errno::INTR) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    fn io(&self, error: Errno) -> FileError {
        FileError::io(self.path, error)
    }
}
