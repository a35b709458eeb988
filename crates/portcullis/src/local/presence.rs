//! Whether there is a store where the settings say, and which files belong to it.

use std::io;
use std::path::PathBuf;

use portcullis_config::Settings;
use portcullis_store::LostEnd;
use portcullis_store_sqlite::SqliteStore;

/// Whether there is a store where the settings say.
pub enum StorePresence {
    /// There is.
    There,
    /// There is none, and nothing tells that there ever was one.
    NotYet,
    /// A database was there and is gone: the mark beside it names these logs.
    Gone(Vec<LostEnd>),
}

impl StorePresence {
    /// Looks, and opens nothing.
    ///
    /// # Errors
    /// If the place cannot be looked at.
    pub fn of(settings: &Settings) -> io::Result<Self> {
        if settings.database.try_exists()? {
            return Ok(Self::There);
        }
        let lost = lost_database(settings);
        Ok(if lost.is_empty() { Self::NotYet } else { Self::Gone(lost) })
    }
}

/// The logs of a database that was there and is gone, if its mark is left.
#[must_use]
pub fn lost_database(settings: &Settings) -> Vec<LostEnd> {
    SqliteStore::gone_from(&settings.database)
}

/// The database with the files that belong to it; the last one is its mark.
#[must_use]
pub fn store_files(settings: &Settings) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-mark"].map(|suffix| {
        let mut file = settings.database.clone().into_os_string();
        file.push(suffix);
        file.into()
    })
}
