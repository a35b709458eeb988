//! Numbered SQL files, each applied once in a transaction of its own, forward only.

use std::path::Path;

use portcullis_base::{Digest, Timestamp};
use portcullis_store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::codec::digest_at;
use crate::connect::{overwriting, patiently};
use crate::error::{is_unwritable, plain, unwritable};
use crate::{brought_forward, records};

/// Every migration this program knows, in order; its number is its place, from 1.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_logs.sql"),
    include_str!("../migrations/0002_search.sql"),
    include_str!("../migrations/0003_wakes.sql"),
    include_str!("../migrations/0004_retention.sql"),
    include_str!("../migrations/0005_ask_roots.sql"),
    include_str!("../migrations/0006_lost_keys.sql"),
    include_str!("../migrations/0007_runs.sql"),
    include_str!("../migrations/0008_packed_with_words.sql"),
    LISTS,
    include_str!("../migrations/0010_outbox_claims.sql"),
    include_str!("../migrations/0011_outcomes.sql"),
];

const LISTS: &str = include_str!("../migrations/0009_lists.sql");

/// Marks the file as ours (`pcls`): another program's database is never touched.
const APPLICATION_ID: i32 = 0x7063_6c73;

/// Brings the schema to what this program knows.
///
/// # Errors
/// If the file is not ours, is newer than this program, or was migrated by another text.
pub(crate) fn migrate(conn: &Connection, now: Timestamp, path: &Path) -> Result<(), StoreError> {
    migrate_with(conn, now, MIGRATIONS).and_then(|()| index_records(conn)).map_err(|error| match error {
        StoreError::ReadOnly(older) => {
            StoreError::ReadOnly(format!("{older}, which needs write access: {}", unwritable(path)))
        }
        other => other,
    })
}

pub(crate) fn migrate_with(conn: &Connection, now: Timestamp, known: &[&str]) -> Result<(), StoreError> {
    let mut done = applied(conn, known)?;
    let was_older = (1..known.len()).contains(&done);
    while done < known.len() {
        // Rows that move leave nothing behind that a later erasure would not reach.
        done = patiently(|| overwriting(conn, || step(conn, now, known)).map_err(into_sqlite))
            .map_err(|error| if is_unwritable(&error) { older(done, known.len()) } else { from_sqlite(&error) })?;
    }
    if was_older {
        // A file that stays as large as it is works as well.
        let _ = shrink(conn);
    }
    Ok(())
}

/// Indexes records anew if this program declares other fields than the one that indexed them.
fn index_records(conn: &Connection) -> Result<(), StoreError> {
    if records::is_indexed(conn).map_err(|error| plain(&error))? {
        return Ok(());
    }
    let indexed = patiently(|| {
        let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
        records::index_all(&tx)?;
        tx.commit()
    });
    indexed.map_err(|error| {
        if is_unwritable(&error) {
            StoreError::ReadOnly("a program with other index fields wrote this store".to_owned())
        } else {
            plain(&error)
        }
    })
}

/// SQLite makes the file anew in memory to take free pages out of it: a larger one keeps them, and fills them again.
const SHRUNK_MOST: i64 = 256 << 20;

/// Gives back the pages that rows left when they moved.
fn shrink(conn: &Connection) -> rusqlite::Result<()> {
    let number = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("page_count")? * number("page_size")? <= SHRUNK_MOST {
        conn.execute_batch("VACUUM")?;
    }
    Ok(())
}

/// Applies the next missing migration. Whoever got the write lock first did it for all.
fn step(conn: &Connection, now: Timestamp, known: &[&str]) -> Result<usize, StepError> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let outcome = (|| {
        let done = applied(conn, known)?;
        let Some(sql) = known.get(done) else {
            return Ok(done);
        };
        if done == 0 {
            conn.execute_batch(
                "CREATE TABLE schema_meta (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL, \
                 applied_at INTEGER NOT NULL)",
            )?;
            conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        conn.execute_batch(sql)?;
        if *sql == LISTS {
            brought_forward::fill_lists(conn)?;
        }
        conn.execute(
            "INSERT INTO schema_meta (version, checksum, applied_at) VALUES (?1, ?2, ?3)",
            params![done + 1, Digest::of(sql.as_bytes()).as_bytes(), now.as_micros()],
        )?;
        Ok(done + 1)
    })();
    match outcome {
        Ok(done) => {
            conn.execute_batch("COMMIT")?;
            Ok(done)
        }
        Err(error) => {
            // The first error is the one that matters.
            let _ = conn.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}

/// How many migrations the file has, each checked against the text this program knows. One look:
/// another process may be making the file this very moment.
fn applied(conn: &Connection, known: &[&str]) -> Result<usize, StoreError> {
    if !conn.is_autocommit() {
        return applied_in(conn, known);
    }
    conn.execute_batch("BEGIN").map_err(|error| plain(&error))?;
    let found = applied_in(conn, known);
    // Nothing was written; a snapshot that cannot be given back goes with its connection.
    let _ = conn.execute_batch("ROLLBACK");
    found
}

fn applied_in(conn: &Connection, known: &[&str]) -> Result<usize, StoreError> {
    let failed = |error: rusqlite::Error| plain(&error);
    let table: Option<i64> = conn
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_meta'", [], |row| row.get(0))
        .optional()
        .map_err(failed)?;
    let application: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
    if table.is_none() {
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        return if tables == 0 { Ok(0) } else { Err(not_ours()) };
    }
    if application != APPLICATION_ID {
        return Err(not_ours());
    }
    let mut statement = conn.prepare("SELECT version, checksum FROM schema_meta ORDER BY version").map_err(failed)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, usize>(0)?, digest_at(row, 1)?))).map_err(failed)?;
    let mut done = 0;
    for row in rows {
        let (version, checksum) = row.map_err(failed)?;
        let Some(sql) = version.checked_sub(1).and_then(|at| known.get(at)) else {
            return Err(StoreError::Unavailable(format!(
                "this store was written by a newer program (its schema is version {version}, this \
                 program knows {}); use that program, or a newer one",
                known.len()
            )));
        };
        if Digest::of(sql.as_bytes()) != checksum {
            return Err(StoreError::Corrupt(format!(
                "schema version {version} of this store was made by another text than this program's"
            )));
        }
        done = version;
    }
    Ok(done)
}

fn not_ours() -> StoreError {
    StoreError::Unavailable("this is a SQLite database, but not a Portcullis store; name another file".to_owned())
}

/// A store that must be brought forward before it can even be read, and cannot be.
fn older(done: usize, known: usize) -> StoreError {
    StoreError::ReadOnly(match done {
        0 => "the file is empty and a store must be made in it first".to_owned(),
        _ => format!(
            "an older program wrote this store (its schema is version {done}, this program's is {known}), and it must be \
             brought forward once before it can even be read"
        ),
    })
}

enum StepError {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for StepError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// A refusal travels through the retry loop inside SQLite's error type.
fn into_sqlite(error: StepError) -> rusqlite::Error {
    match error {
        StepError::Sqlite(error) => error,
        StepError::Refused(error) => rusqlite::Error::ToSqlConversionFailure(Box::new(error)),
    }
}

fn from_sqlite(error: &rusqlite::Error) -> StoreError {
    if let rusqlite::Error::ToSqlConversionFailure(inner) = error
        && let Some(refused) = inner.downcast_ref::<StoreError>()
    {
        return refused.clone();
    }
    plain(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1);

    fn memory() -> Connection {
        Connection::open_in_memory().expect("SQLite opens in memory")
    }

    #[test]
    fn f19_a_schema_newer_than_the_program_is_refused_in_words() {
        let conn = memory();
        migrate_with(&conn, NOW, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"])
            .expect("a new file takes every migration");
        let error = migrate_with(&conn, NOW, &["CREATE TABLE a (x)"]).expect_err("it is newer");
        assert!(error.to_string().contains("newer program") && error.to_string().contains("version 2"), "{error}");
    }

    #[test]
    fn f19_an_older_schema_is_brought_forward_and_keeps_its_rows() {
        let conn = memory();
        migrate_with(&conn, NOW, &["CREATE TABLE a (x)"]).expect("version 1");
        conn.execute("INSERT INTO a VALUES (7)", []).expect("a row of version 1");
        let two = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y"];
        migrate_with(&conn, NOW, &two).expect("version 2");
        migrate_with(&conn, NOW, &two).expect("again changes nothing");
        let row: (i64, Option<i64>) = conn
            .query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("the row is still there");
        assert_eq!(row, (7, None));
    }

    #[test]
    fn f19_what_was_due_before_there_were_wakes_is_due_after() {
        let conn = memory();
        migrate_with(&conn, NOW, &MIGRATIONS[..2]).expect("version 2");
        let rows = [("1", "7", "idle"), ("2", "NULL", "idle"), ("3", "9", "terminated")];
        for (session, due, status) in rows {
            conn.execute_batch(&format!(
                "INSERT INTO session_heads VALUES (x'00', x'0{session}', 1, x'00', 0, NULL, NULL, {due}, '{status}', 0, 0, 1)"
            ))
            .expect("a row of version 2");
        }
        migrate(&conn, NOW, Path::new("")).expect("the newest version");
        let mut heads = conn
            .prepare("SELECT next_due_at, work_due_at, wake_due_at, priority FROM session_heads ORDER BY session")
            .expect("the new columns");
        let found: Vec<[Option<i64>; 4]> = heads
            .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
            .expect("rows")
            .collect::<rusqlite::Result<_>>()
            .expect("rows");
        assert_eq!(found[..2], [[Some(7), Some(7), None, Some(2)], [None, None, None, Some(1)]]);
        assert_eq!((found[2][0], found[2][3]), (None, Some(1)), "what is terminated is never due");
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing() {
        let conn = memory();
        let bad = ["CREATE TABLE a (x); CREATE TABLE a (x)"];
        migrate_with(&conn, NOW, &bad).expect_err("a table cannot be made twice");
        assert_eq!(applied(&conn, &bad), Ok(0));
    }

    #[test]
    fn another_text_and_another_program_s_file_are_refused() {
        let conn = memory();
        migrate_with(&conn, NOW, &["CREATE TABLE a (x)"]).expect("version 1");
        let changed = migrate_with(&conn, NOW, &["CREATE TABLE a (y)"]);
        assert!(matches!(changed, Err(StoreError::Corrupt(_))), "{changed:?}");

        let foreign = memory();
        foreign.execute_batch("CREATE TABLE theirs (x)").expect("another program's table");
        let error = migrate(&foreign, NOW, Path::new("")).expect_err("it is not ours");
        assert!(error.to_string().contains("not a Portcullis store"));
    }
}
