//! The quota of artifacts, as one process counts it (L57): what the rows say, and what calls of this process have reserved
//! and not recorded yet. The two are kept apart, so that the rows can be counted anew while calls are on their way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::TenantId;
use portcullis_store::Store;

use crate::output::evidence::RetainError;

/// Bytes used by a tenant's artifacts, as this process knows it.
#[derive(Debug)]
pub(crate) struct Usage {
    quota: u64,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// What the rows said, and what was recorded since; `None`: not asked yet.
    rows: Option<u64>,
    reserved: u64,
    /// Everything that this process ever recorded.
    recorded: u64,
}

impl Book {
    fn used(&self) -> u64 {
        self.rows.unwrap_or(0).saturating_add(self.reserved)
    }
}

/// Room in the quota, taken for bytes whose row is not durable yet. Dropped, it is free again: no row will come.
#[derive(Debug)]
#[must_use = "the room is free again when it is dropped"]
pub(crate) struct QuotaReservation {
    usage: Arc<Usage>,
    bytes: u64,
}

impl QuotaReservation {
    /// The row is durable.
    pub(crate) fn record(mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut book = self.usage.book();
        book.reserved = book.reserved.saturating_sub(bytes);
        book.rows = book.rows.map(|rows| rows.saturating_add(bytes));
        book.recorded = book.recorded.saturating_add(bytes);
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        let mut book = self.usage.book();
        book.reserved = book.reserved.saturating_sub(self.bytes);
    }
}

impl Usage {
    pub(crate) fn new(quota: u64) -> Arc<Self> {
        Arc::new(Self { quota, book: Mutex::default() })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Every change is one step that cannot panic halfway.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the rows. What is recorded while they are counted may be among them or not; it is added, since counting it
    /// twice refuses too early, and the next look mends that, while missing it would let the quota be passed.
    async fn look(&self, store: &dyn Store, tenant: TenantId) -> Result<(), RetainError> {
        let before = self.book().recorded;
        let rows = store.artifact_usage(tenant).await.map_err(|e| RetainError::Io(e.to_string()))?;
        let mut book = self.book();
        book.rows = Some(rows.saturating_add(book.recorded - before));
        Ok(())
    }

    async fn look_once(&self, store: &dyn Store, tenant: TenantId) -> Result<(), RetainError> {
        let asked = self.book().rows.is_some();
        if asked { Ok(()) } else { self.look(store, tenant).await }
    }

    fn fits(&self, book: &Book, wanted: u64) -> Result<(), RetainError> {
        let (used, quota) = (book.used(), self.quota);
        if used.saturating_add(wanted) > quota { Err(RetainError::OverQuota { used, quota, wanted }) } else { Ok(()) }
    }

    /// Whether there is room for `wanted` bytes, without taking it. Where there is none, the rows are counted anew:
    /// perhaps something was freed meanwhile, by this process or another.
    pub(crate) async fn room(&self, store: &dyn Store, tenant: TenantId, wanted: u64) -> Result<(), RetainError> {
        self.look_once(store, tenant).await?;
        let known = self.fits(&self.book(), wanted);
        if known.is_ok() {
            return known;
        }
        self.look(store, tenant).await?;
        self.fits(&self.book(), wanted)
    }

    /// Takes `bytes` of the quota until the reservation is recorded or dropped.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        store: &dyn Store,
        tenant: TenantId,
        bytes: u64,
    ) -> Result<QuotaReservation, RetainError> {
        self.look_once(store, tenant).await?;
        if let Ok(taken) = self.take(bytes) {
            return Ok(taken);
        }
        // As before a start: perhaps something was freed meanwhile.
        self.look(store, tenant).await?;
        self.take(bytes)
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Result<QuotaReservation, RetainError> {
        let mut book = self.book();
        self.fits(&book, bytes)?;
        book.reserved = book.reserved.saturating_add(bytes);
        Ok(QuotaReservation { usage: Arc::clone(self), bytes })
    }
}
