//! A few read-only connections, opened when first needed. A read is one short transaction, so the
//! write-ahead log can always shrink.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::connect::{DatabaseFile, patiently};
use crate::error::plain;

/// Readers at once; more would wait for the same disk.
const READERS: usize = 4;

pub(crate) struct Readers {
    place: DatabaseFile,
    idle: Mutex<Vec<Connection>>,
    turns: Semaphore,
}

impl Readers {
    pub(crate) fn new(place: DatabaseFile) -> Arc<Self> {
        Arc::new(Self { place, idle: Mutex::default(), turns: Semaphore::new(READERS) })
    }

    /// Looks one thing up. Such a read is a few page lookups, cheaper than a change of threads.
    pub(crate) async fn look<T>(&self, question: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let _turn = self.turns.acquire().await.map_err(|_| closed())?;
        self.ask(&question)
    }

    /// Reads many rows, off the async threads.
    pub(crate) async fn scan<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _turn = self.turns.acquire().await.map_err(|_| closed())?;
        let readers = Arc::clone(self);
        tokio::task::spawn_blocking(move || readers.ask(&question))
            .await
            .map_err(|error| StoreError::Unavailable(format!("a reader stopped: {error}")))?
    }

    fn ask<T>(&self, question: &dyn Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let idle = self.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.place.reader().map_err(|error| plain(&error))?,
        };
        let answer = patiently(|| one_view(&conn, question));
        // A connection that met a fault is not asked again.
        if answer.is_ok() {
            self.lock().push(conn);
        }
        answer.map_err(|error| plain(&error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A list of connections is whole after any panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Several statements see one state of the database.
fn one_view<T>(conn: &Connection, question: &dyn Fn(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let tx = conn.unchecked_transaction()?;
    let answer = question(&tx)?;
    tx.commit()?;
    Ok(answer)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
