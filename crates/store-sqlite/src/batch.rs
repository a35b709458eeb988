//! The operations of one transaction, each all or nothing.

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::error::{Fail, is_of_one_operation, plain};
use crate::op::{Op, Tx};

/// Operations of one transaction: enough to share a sync, few enough to answer soon.
pub(crate) const BATCH: usize = 256;

/// Runs every operation of the batch, then those that are queued by now, up to a full batch.
pub(crate) fn run_all(
    tx: &Tx<'_>,
    batch: &mut Vec<Box<dyn Op>>,
    mut queue: Option<&mut mpsc::Receiver<Box<dyn Op>>>,
) -> rusqlite::Result<()> {
    let mut done = 0;
    loop {
        while let Some(op) = batch.get_mut(done) {
            if done == 0 {
                run_first(tx, &mut **op)?
            } else {
                run_one(tx, &mut **op)?
            }
            done += 1;
        }
        if done >= BATCH {
            return Ok(());
        }
        match queue.as_deref_mut().map(mpsc::Receiver::try_recv) {
            Some(Ok(next)) => batch.push(next),
            _ => return Ok(()),
        }
    }
}

/// Runs the first operation of a batch. Nothing stands before it that must be kept, so it needs no savepoint, which
/// would copy every page it changes: if it is refused, the transaction begins anew.
fn run_first(tx: &Tx<'_>, op: &mut dyn Op) -> rusqlite::Result<()> {
    if is_refused(tx, op)? {
        sql(tx.conn, "ROLLBACK")?;
        sql(tx.conn, "BEGIN IMMEDIATE")?;
    }
    Ok(())
}

/// Runs one operation; a refused one leaves nothing, the others go on.
fn run_one(tx: &Tx<'_>, op: &mut dyn Op) -> rusqlite::Result<()> {
    sql(tx.conn, "SAVEPOINT op")?;
    if is_refused(tx, op)? {
        sql(tx.conn, "ROLLBACK TO op")?;
    }
    sql(tx.conn, "RELEASE op")
}

/// Runs an operation and says whether what it wrote must go, for a reason that is its own.
fn is_refused(tx: &Tx<'_>, op: &mut dyn Op) -> rusqlite::Result<bool> {
    let before = tx.appended.borrow().len();
    match op.run(tx) {
        Ok(()) => return Ok(false),
        Err(Fail::Refused(_)) => {}
        Err(Fail::Sqlite(error)) if is_of_one_operation(&error) => op.refuse(plain(&error)),
        Err(Fail::Sqlite(error)) => return Err(error),
    }
    tx.appended.borrow_mut().truncate(before);
    Ok(true)
}

/// Runs a statement that gives no rows.
pub(crate) fn sql(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([]).map(|_| ())
}
