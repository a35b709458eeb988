//! A store around another store. A wrapper sees every call in one place and changes what it wants to.
//!
//! The calls of a store stand in one table at the end of this file: a new method of a store trait is one more row there.

use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use portcullis_base::{ArtifactId, AskId, Digest, IntentId, OutboxId, SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, Event};
use portcullis_store::{
    ArtifactRow, AskFilter, AskQuery, AskRow, Checkpoint, Claim, ClaimedEntry, Commit, Committed, Cursor, Fairness,
    Head, Hit, Import, Imported, IntentRow, Lease, LeaseOwner, Log, Notices, OutboxEntry, Page, Query, Queue, Record,
    RecordQuery, RecordWrite, Records, Retain, Search, SessionKey, SessionListing, SessionQuery, SessionSummary,
    Snapshot, Store, StoreError, SweepResult, Topic, UnknownCall, UnknownQuery, WakeRow,
};
use tokio::sync::watch;

/// The kinds of calls that wrappers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCall {
    /// Changes nothing.
    Read,
    /// Writes to a log: a commit, an import or an erasure.
    Append,
    /// Writes rows outside a log: records, snapshots, delivered outbox entries, what is kept of artifacts.
    Put,
    /// Takes leases.
    Claim,
    /// Extends a lease.
    Renew,
    /// Gives a lease back, or defers its session.
    Release,
    /// Does what time asks for: a sweep, or the search index catching up.
    Upkeep,
}

/// What a call of a store does, once it is awaited.
pub trait StoreWork<T>: Future<Output = Result<T, StoreError>> + Send {}

impl<T, F: Future<Output = Result<T, StoreError>> + Send> StoreWork<T> for F {}

/// The wrapper `W` as a whole store.
pub struct Wrapped<W>(pub W);

impl<W> Deref for Wrapped<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.0
    }
}

impl<W: StoreWrapper> Notices for Wrapped<W> {
    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }

    fn changes_of(&self, topic: Topic) -> watch::Receiver<u64> {
        self.0.changes_of(topic)
    }
}

/// Makes [`StoreWrapper`], and the store traits of [`Wrapped`], from the rows `KIND method(arguments) -> answer`.
/// [`Log::of_kinds`] has no row: its default reads page after page, and a wrapper sees each page.
macro_rules! store_calls {
    ($($trait:ident {
        $($kind:ident $method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*
        $(@plain $plain:ident() -> $value:ty;)*
    })*) => {
        /// What a wrapper does with the calls of the store inside it. Every call goes through [`Self::around`], unless the
        /// wrapper writes the method of that call itself.
        pub trait StoreWrapper: Send + Sync {
            type Inner: Store + ?Sized;

            /// The store that the calls are for.
            fn inside(&self) -> &Self::Inner;

            /// Answers a call. The call takes effect when `work` is awaited; a wrapper that drops `work` prevents it.
            fn around<T: Send>(&self, call: StoreCall, work: impl StoreWork<T>) -> impl StoreWork<T>;

            /// The hints of the store inside.
            fn changes(&self) -> watch::Receiver<u64> {
                self.inside().changes()
            }

            /// The hints of the store inside about one topic. A wrapper that has hints of its own may wake everybody.
            fn changes_of(&self, topic: Topic) -> watch::Receiver<u64> {
                self.inside().changes_of(topic)
            }

            $($(
                #[doc = concat!("The call [`", stringify!($trait), "::", stringify!($method), "`].")]
                fn $method(&self, $($name: $type),*) -> impl StoreWork<$answer> {
                    async move { self.around(StoreCall::$kind, self.inside().$method($($name),*)).await }
                }
            )*)*
        }

        $(
            #[async_trait]
            impl<W: StoreWrapper> $trait for Wrapped<W> {
                $(async fn $method(&self, $($name: $type),*) -> Result<$answer, StoreError> {
                    self.0.$method($($name),*).await
                })*

                $(fn $plain(&self) -> $value {
                    self.0.inside().$plain()
                })*
            }
        )*
    };
}

store_calls! {
    Log {
        Append commit(commit: Commit) -> Committed;
        Append erase(erasure: Commit) -> Committed;
        Append import(import: Import) -> Imported;
        Read read(key: SessionKey, after: u64, limit: usize) -> Vec<Event>;
        Read head(key: SessionKey) -> Option<Head>;
        Read sessions(tenant: TenantId, limit: usize) -> Vec<SessionSummary>;
        Read session(key: SessionKey) -> Option<SessionListing>;
        Read find_sessions(
            tenant: TenantId, query: &SessionQuery, limit: usize, cursor: Option<&Cursor>
        ) -> Page<SessionListing>;
        Read find_asks(tenant: TenantId, query: &AskQuery, limit: usize, cursor: Option<&Cursor>) -> Page<AskRow>;
        Read unknown_outcomes(
            tenant: TenantId, query: &UnknownQuery, limit: usize, cursor: Option<&Cursor>
        ) -> Page<UnknownCall>;
        Read logs(tenant: TenantId) -> Vec<SessionId>;
        Read intents(key: SessionKey, open: bool) -> Vec<IntentRow>;
        Read asks(tenant: TenantId, filter: AskFilter) -> Vec<AskRow>;
        Read wakes(key: SessionKey, pending: bool) -> Vec<WakeRow>;
        Read ask(tenant: TenantId, ask: AskId) -> Option<AskRow>;
        Read sealed(key: SessionKey, intent: IntentId) -> Option<Vec<u8>>;
        Read artifact(tenant: TenantId, id: ArtifactId) -> Option<ArtifactRow>;
        Read artifacts(tenant: TenantId, after: Option<ArtifactId>, limit: usize) -> Vec<ArtifactRow>;
        Read blob(tenant: TenantId, sha256: Digest) -> Option<Vec<u8>>;
        Read artifact_usage(tenant: TenantId) -> u64;
        Put retain(tenant: TenantId, change: Retain) -> Vec<ArtifactRow>;
        Read checkpoints(key: SessionKey) -> Vec<Checkpoint>;
        Read snapshot(key: SessionKey, code_version: u32) -> Option<Snapshot>;
        Put put_snapshot(key: SessionKey, snapshot: Snapshot) -> ();
        Read outbox(limit: usize) -> Vec<OutboxEntry>;
        Put claim_outbox(limit: usize, ttl: Duration) -> Vec<ClaimedEntry>;
        Put outbox_failed(id: OutboxId, attempt: u32, next_at: Timestamp) -> bool;
        Put outbox_done(ids: Vec<OutboxId>) -> ();
        @plain checkpoint_key() -> Option<CheckpointKey>;
    }
    Queue {
        Claim claim_session(key: SessionKey, owner: LeaseOwner, ttl: Duration) -> Claim;
        Claim claim(tenant: TenantId, owner: LeaseOwner, limit: usize, ttl: Duration) -> Vec<Claim>;
        Claim claim_any(
            owner: LeaseOwner, limit: usize, ttl: Duration, fairness: Fairness
        ) -> Vec<(SessionKey, Lease)>;
        Upkeep sweep() -> SweepResult;
        Renew renew(key: SessionKey, fence: u64, ttl: Duration) -> Timestamp;
        Release release(key: SessionKey, fence: u64, idle_at: Option<u64>) -> ();
        Release defer(key: SessionKey, fence: u64, until: Timestamp) -> ();
    }
    Records {
        Read record(tenant: TenantId, kind: &str, id: &str) -> Option<Record>;
        Read records(tenant: TenantId, kind: &str) -> Vec<Record>;
        Read find_records(
            tenant: TenantId, query: &RecordQuery, limit: usize, cursor: Option<&Cursor>
        ) -> Page<Record>;
        Put put_record(tenant: TenantId, write: RecordWrite) -> u64;
    }
    Search {
        Upkeep catch_up(tenant: TenantId, limit: usize) -> u64;
        Read search_lag(tenant: TenantId) -> u64;
        Read search(tenant: TenantId, query: &Query, limit: usize) -> Vec<Hit>;
    }
}
