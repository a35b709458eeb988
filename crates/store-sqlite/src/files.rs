//! The files of an open store are still the ones at their names. A database that was removed or replaced under a process
//! takes writes as before, and nobody ever finds them again.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use portcullis_store::{FileLoss, StoreError};
use rustix::fs::{Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;

/// What SQLite keeps a store in: the database, the write-ahead log, and the memory that processes share.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// A file by its name, and as it was when it was opened.
struct PinnedFile {
    path: PathBuf,
    device: u64,
    number: u64,
    /// While this is open the kernel gives the number to no other file. It is a bare name: closing it leaves SQLite's locks
    /// alone, which closing any other handle of the database would drop.
    _held: OwnedFd,
}

/// The files that a writer has open.
pub(crate) struct Files {
    pinned: Vec<PinnedFile>,
}

impl Files {
    /// The files of an open database. SQLite has made all of them by then.
    pub(crate) fn of(database: &Path) -> Result<Self, StoreError> {
        let pinned = SUFFIXES.iter().map(|suffix| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            let path = PathBuf::from(name);
            let held = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|e| unseen(&path, e))?;
            let found = fstat(&held).map_err(|e| unseen(&path, e))?;
            Ok::<_, StoreError>(PinnedFile { path, device: found.st_dev, number: found.st_ino, _held: held })
        });
        Ok(Self { pinned: pinned.collect::<Result<_, _>>()? })
    }

    /// Whether all of them are where they were. Three questions to the kernel, some microseconds.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.pinned.iter().try_for_each(|file| match stat(&file.path) {
            Ok(now) if (now.st_dev, now.st_ino) == (file.device, file.number) => Ok(()),
            Ok(_) => Err(StoreError::Gone { file: file.path.clone(), how: FileLoss::Replaced }),
            Err(Errno::NOENT | Errno::NOTDIR) => {
                Err(StoreError::Gone { file: file.path.clone(), how: FileLoss::Removed })
            }
            Err(error) => Err(unseen(&file.path, error)),
        })
    }
}

/// A file that cannot be looked at may be there all the same.
fn unseen(path: &Path, error: Errno) -> StoreError {
    StoreError::Unavailable(format!("cannot look at {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn three() -> (tempfile::TempDir, PathBuf, Files) {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("store.db");
        for suffix in SUFFIXES {
            fs::write(folder.path().join(format!("store.db{suffix}")), suffix).expect("written");
        }
        let files = Files::of(&database).expect("they are there");
        (folder, database, files)
    }

    #[test]
    fn a_file_that_is_removed_or_replaced_is_noticed_and_named() {
        for suffix in SUFFIXES {
            let (folder, _, files) = three();
            assert_eq!(files.check(), Ok(()));
            let path = folder.path().join(format!("store.db{suffix}"));
            fs::remove_file(&path).expect("removed");
            assert_eq!(files.check(), Err(StoreError::Gone { file: path.clone(), how: FileLoss::Removed }));
            // The number of a file that is gone is not given to the next one while this process looks.
            fs::write(&path, suffix).expect("written");
            assert_eq!(files.check(), Err(StoreError::Gone { file: path, how: FileLoss::Replaced }));
        }
    }

    #[test]
    fn a_folder_that_is_renamed_or_removed_is_noticed() {
        let (folder, database, files) = three();
        let elsewhere = folder.path().with_extension("elsewhere");
        fs::rename(folder.path(), &elsewhere).expect("renamed");
        assert_eq!(files.check(), Err(StoreError::Gone { file: database, how: FileLoss::Removed }));
        fs::rename(&elsewhere, folder.path()).expect("back");
        assert_eq!(files.check(), Ok(()));
    }
}
