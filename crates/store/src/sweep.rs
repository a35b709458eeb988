//! Files that a crash between `put` and its append left behind, and how they go without harm to a `put` that comes
//! meanwhile (store §8).
//!
//! A `put` renews the time of its file and gives it its name under a shared lock; a sweep looks at the time and deletes
//! under an exclusive one. So a file that is deleted had no `put` since it was found to be old, and an append only names
//! what was put before it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_base::{Digest, TenantId, Timestamp};

use crate::artifacts::place;
use crate::{Artifacts, LocalArtifacts};

/// A file that may be nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The content it holds; `None` = it was never finished.
    pub sha256: Option<Digest>,
    pub bytes: u64,
    pub modified: Timestamp,
    path: PathBuf,
}

/// The lock of puts and sweeps of one folder, given back when it is dropped.
pub(crate) fn lock(root: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(root.join("lock"))
}

/// Artifacts whose bytes can be deleted again. Calls block on the disk, as those of [`Artifacts`] do.
pub trait SweepArtifacts: Artifacts {
    /// Contents of a tenant, and files in the making of any, that nobody touched since `before`.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn older_than(&self, tenant: TenantId, before: Timestamp) -> io::Result<Vec<Leftover>>;

    /// The file of a content, whatever its age; `None` = there is none.
    ///
    /// # Errors
    /// If that cannot be known.
    fn file_of(&self, tenant: TenantId, sha256: Digest) -> io::Result<Option<Leftover>>;

    /// Says that a content is about to be named, as a `put` of it would: no sweep that looked before takes its file.
    /// `false` = there is none.
    ///
    /// # Errors
    /// If it cannot be looked up or touched.
    fn renew(&self, tenant: TenantId, sha256: Digest) -> io::Result<bool>;

    /// Deletes a leftover that is still as old. `false` = it is in use again, or gone.
    ///
    /// # Errors
    /// If it cannot be deleted.
    fn sweep(&self, leftover: &Leftover, before: Timestamp) -> io::Result<bool>;
}

impl SweepArtifacts for LocalArtifacts {
    fn older_than(&self, tenant: TenantId, before: Timestamp) -> io::Result<Vec<Leftover>> {
        let mut found = Vec::new();
        let mut look = |path: PathBuf, content: bool| -> io::Result<()> {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<Digest>().ok());
            // What is not ours is not touched.
            if content == name.is_some()
                && let Some((bytes, modified)) = facts(&path)?
                && modified < before
            {
                found.push(Leftover { sha256: name, bytes, modified, path });
            }
            Ok(())
        };
        for path in entries(&self.root().join("tmp"))? {
            look(path, false)?;
        }
        for first in entries(&self.root().join(tenant.to_string()))? {
            for second in entries(&first)? {
                for path in entries(&second)? {
                    look(path, true)?;
                }
            }
        }
        Ok(found)
    }

    fn file_of(&self, tenant: TenantId, sha256: Digest) -> io::Result<Option<Leftover>> {
        let path = place(self.root(), tenant, sha256);
        let found = facts(&path)?;
        Ok(found.map(|(bytes, modified)| Leftover { sha256: Some(sha256), bytes, modified, path }))
    }

    fn renew(&self, tenant: TenantId, sha256: Digest) -> io::Result<bool> {
        let lock = lock(self.root())?;
        lock.lock_shared()?;
        match File::open(place(self.root(), tenant, sha256)) {
            Ok(file) => file.set_modified(SystemTime::now()).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sweep(&self, leftover: &Leftover, before: Timestamp) -> io::Result<bool> {
        let lock = lock(self.root())?;
        lock.lock()?;
        match facts(&leftover.path)? {
            Some((_, modified)) if modified < before => {}
            _ => return Ok(false),
        }
        // Whoever writes a file holds it; one that is held is not left over, however long nothing was written.
        if leftover.sha256.is_none() && File::open(&leftover.path)?.try_lock().is_err() {
            return Ok(false);
        }
        fs::remove_file(&leftover.path)?;
        Ok(true)
    }
}

/// What is in a folder; a folder that is not there is empty.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Size and time of a plain file; `None` if it is none, or gone.
fn facts(path: &Path) -> io::Result<Option<(u64, Timestamp)>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => found,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let age = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    Ok(Some((found.len(), Timestamp::from_micros(micros))))
}
