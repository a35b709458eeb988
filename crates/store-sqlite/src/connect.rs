//! Opening the file: its folder and mode, and the settings of every connection.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::is_busy;
use crate::file_system::refuse_network;

/// How long SQLite itself waits for another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long we go on trying after that. Eight busy processes never come near it.
pub(crate) const BUSY_PATIENCE: Duration = Duration::from_secs(30);
/// Distinct statements are about fifty; none is prepared twice.
const STATEMENTS: usize = 96;

/// Memory for pages of the writer, negative for KiB: the tails of some hundred sessions. Taken as needed.
const WRITER_CACHE: i64 = -16_384;

/// What `Ok` promises when the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Synced: the rows are there (S6).
    #[default]
    Full,
    /// The last commits may be lost; the file is never damaged.
    Relaxed,
}

/// The file of a database, and how it is synced.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFile {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
}

impl DatabaseFile {
    /// Makes the folder (0700) and the file (0600) if they are missing. SQLite gives its side files
    /// the mode of the database.
    pub(crate) fn prepare(&self) -> Result<(), StoreError> {
        let folder = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let failed = |what: &str, error: std::io::Error| {
            StoreError::Unavailable(format!("{what} {}: {error}", self.path.display()))
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed("cannot make the folder of", error))?;
        refuse_network(folder)?;
        let made = OpenOptions::new().create_new(true).read(true).append(true).mode(0o600).open(&self.path);
        match made {
            // A file whose name a power failure can undo would lose every commit in it.
            Ok(_) => folder
                .ancestors()
                .take(2)
                .filter(|dir| *dir != Path::new(""))
                .try_for_each(|dir| fs::File::open(dir)?.sync_all())
                .map_err(|error| failed("cannot sync the folder of", error)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed("cannot make", error)),
        }
    }

    /// The connection of the writer thread.
    pub(crate) fn writer(&self) -> rusqlite::Result<Connection> {
        patiently(|| {
            let conn = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            // Only the first connection of a new file changes anything here.
            let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
            if mode != "wal" {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
                let why = format!("no write-ahead log here: the journal mode stays `{mode}`");
                return Err(rusqlite::Error::SqliteFailure(code, Some(why)));
            }
            let synchronous = match self.durability {
                Durability::Full => "FULL",
                Durability::Relaxed => "NORMAL",
            };
            conn.pragma_update(None, "synchronous", synchronous)?;
            conn.pragma_update(None, "foreign_keys", true)?;
            conn.pragma_update(None, "cache_size", WRITER_CACHE)?;
            secure_delete(&conn, PAGES_WRITTEN_ANYWAY)?;
            // What a savepoint would undo is kept in memory, not in a file of its own for every append.
            conn.pragma_update(None, "temp_store", "memory")?;
            // The write-ahead log stays when the last process leaves: making it anew would cost
            // the next one two syncs.
            conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(conn)
        })
    }

    /// A connection that cannot write.
    pub(crate) fn reader(&self) -> rusqlite::Result<Connection> {
        patiently(|| {
            let conn = self.open(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(conn)
        })
    }

    fn open(&self, access: OpenFlags) -> rusqlite::Result<Connection> {
        // One thread at a time uses a connection, so SQLite's own mutexes would only cost.
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // A statement is planned once, whatever is bound to it later.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(conn)
    }
}

/// A page that is split leaves no copy of what stood in it: an erased session could else be read there. It costs no writes,
/// since such pages are written anyway.
const PAGES_WRITTEN_ANYWAY: &str = "fast";
/// Pages that are given back are overwritten too.
const EVERY_PAGE: &str = "on";

fn secure_delete(conn: &Connection, what: &str) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "secure_delete", what, |_| Ok(()))
}

/// Does what takes content away for good: nothing of it stays in the file, in pages that are free from then on either.
pub(crate) fn overwriting<T, E: From<rusqlite::Error>>(
    conn: &Connection,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    secure_delete(conn, EVERY_PAGE)?;
    let done = work();
    secure_delete(conn, PAGES_WRITTEN_ANYWAY)?;
    done
}

/// Tries again while another process has the lock, a little longer each time.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && start.elapsed() < BUSY_PATIENCE => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}
