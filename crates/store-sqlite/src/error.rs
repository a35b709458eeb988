//! What SQLite can answer, told apart by what the writer must do next.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use portcullis_store::StoreError;
use rusqlite::ErrorCode;

use crate::headroom::ROOM_TO_WORK;

/// Why an operation inside a transaction did not go through.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The operation is refused; the transaction and its other operations are fine.
    Refused(StoreError),
    /// The database spoke: the batch may be lost.
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Fail> for StoreError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Refused(error) => error,
            Fail::Sqlite(error) => plain(&error),
        }
    }
}

/// Another process or connection has the lock: waiting helps, and nobody needs to know.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The fault lies with one operation's values, not with the disk or the file.
pub(crate) fn is_of_one_operation(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(
            code,
            ErrorCode::ConstraintViolation
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
        ),
        // Not SQLite's word but a conversion on our side of it.
        None => true,
    }
}

/// The file is there and this process may not write to it: a fault of the place, for a person to mend.
pub(crate) fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied))
}

/// Which file of the store that is, and what to do about it.
pub(crate) fn unwritable(database: &Path) -> String {
    obstacle(database).unwrap_or_else(|| to_do(database, &"it is read-only"))
}

/// The same, if there is such a file, or the folder takes no new ones.
pub(crate) fn obstacle(database: &Path) -> Option<String> {
    let refused = |suffix: &str| {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        let error = OpenOptions::new().append(true).open(&file).err()?;
        (error.kind() != io::ErrorKind::NotFound).then(|| to_do(Path::new(&file), &error))
    };
    // SQLite makes these two beside it, even to read.
    ["", "-wal", "-shm"].into_iter().find_map(refused).or_else(|| {
        let folder = database.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let error = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).err()?;
        Some(to_do(folder, &io::Error::from(error)))
    })
}

fn to_do(file: &Path, why: &dyn fmt::Display) -> String {
    format!(
        "cannot write to {}: {why}; make the data folder and what is in it writable for you, or name another store",
        file.display()
    )
}

/// The error as a person reads it.
pub(crate) fn plain(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked("another process keeps the store locked; end it or try again".to_owned())
        }
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { free: 0, needed: ROOM_TO_WORK },
        _ => match error {
            // A stored value that has not the shape this program gave it.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Unavailable(error.to_string()),
        },
    }
}
