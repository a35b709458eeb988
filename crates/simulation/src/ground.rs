//! What outlives every process of a run: the store, the sessions, and the one who sees everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use portcullis_base::{AppendId, Clock as _, Digest, SeededIds, SessionId, TenantId};
use portcullis_contract::{BuildError, Tool};
use portcullis_event::facts::SessionCreated;
use portcullis_event::{Actor, CheckpointKey, Draft, EventBody, IntentState, LOCAL_TENANT, Stamp};
use portcullis_store::{AskFilter, Commit, Log as _, MemoryArtifacts, MemoryStore, SessionKey, StoreError};
use portcullis_store_testkit::FixedLiveness;
use tokio::time::Instant;

use crate::clock::SimClock;
use crate::hints::Listeners;
use crate::jobs;
use crate::options::Options;
use crate::oracle::Oracle;
use crate::post::PostBook;

/// The world under the processes.
pub struct Ground {
    pub options: Options,
    pub begun: Instant,
    pub store: Arc<MemoryStore>,
    /// The store's own clock: leases are judged by it alone.
    pub clock: Arc<SimClock>,
    pub ids: Arc<SeededIds>,
    pub liveness: Arc<FixedLiveness>,
    pub artifacts: Arc<MemoryArtifacts>,
    pub oracle: Arc<Oracle>,
    pub listeners: Listeners,
    pub sessions: Vec<SessionKey>,
    pub tenants: Vec<TenantId>,
    pub post: PostBook,
    pub tools: Vec<(&'static str, Tool)>,
    pub checkpoint_key: CheckpointKey,
    stormy: AtomicBool,
    calls_left: AtomicU64,
}

impl Ground {
    /// A world with its sessions, in the runtime whose time it takes.
    ///
    /// # Errors
    /// If a tool of the simulation is not sound; a fault of the simulation itself.
    pub fn new(options: Options) -> Result<Self, BuildError> {
        let begun = Instant::now();
        let clock = Arc::new(SimClock::new(begun));
        let ids = Arc::new(SeededIds::new(options.seed));
        let liveness = Arc::new(FixedLiveness::default());
        let checkpoint_key = CheckpointKey::from_bytes([7; 32]);
        let key = Some(checkpoint_key.clone());
        let store = Arc::new(MemoryStore::new(clock.clone(), ids.clone(), liveness.clone(), key));
        let oracle = Arc::new(Oracle::default());
        let tools = jobs::tools(&oracle)?;
        let tenants: Vec<TenantId> =
            (0..options.tenants as u128).map(|n| TenantId::from_u128(LOCAL_TENANT.as_u128() + n)).collect();
        let new_key = |n: usize| {
            let (tenant, session) = (tenants[n % tenants.len()], SessionId::make(&*ids, clock.now()));
            SessionKey { tenant, session }
        };
        let sessions: Vec<SessionKey> = (0..options.sessions).map(new_key).collect();
        sessions.iter().for_each(|key| oracle.belongs(*key));
        let calls_left = AtomicU64::new(options.calls);
        Ok(Self {
            listeners: Listeners::new(&options),
            options,
            begun,
            store,
            clock,
            ids,
            liveness,
            artifacts: Arc::new(MemoryArtifacts::default()),
            oracle,
            sessions,
            tenants,
            post: PostBook::default(),
            tools,
            checkpoint_key,
            stormy: AtomicBool::new(true),
            calls_left,
        })
    }

    /// Whether faults happen.
    #[must_use]
    pub fn is_stormy(&self) -> bool {
        self.stormy.load(Ordering::SeqCst)
    }

    /// From now on everything works.
    pub fn heal(&self) {
        self.stormy.store(false, Ordering::SeqCst);
    }

    /// Calls that are still to be made.
    #[must_use]
    pub fn calls_left(&self) -> u64 {
        self.calls_left.load(Ordering::SeqCst)
    }

    /// Takes up to `wanted` of them.
    #[must_use]
    pub fn take_calls(&self, wanted: u64) -> u64 {
        let taken = wanted.min(self.calls_left());
        self.calls_left.fetch_sub(taken, Ordering::SeqCst);
        taken
    }

    /// An event of a client.
    pub fn draft<B: EventBody>(&self, body: &B) -> Draft {
        let actor = Actor::user("person");
        Stamp { ids: &*self.ids, clock: &*self.clock, actor: &actor, turn_id: None, wake_id: None }.draft(body)
    }

    /// A fresh append id.
    #[must_use]
    pub fn append_id(&self) -> AppendId {
        AppendId::make(&*self.ids, self.clock.now())
    }

    /// Every session that there is, children included.
    pub async fn known(&self) -> Vec<SessionKey> {
        let mut known = self.sessions.clone();
        for child in self.post.children() {
            if let Ok(Some(_)) = self.store.head(child).await {
                known.push(child);
            }
        }
        known
    }

    /// The event that begins a session; of a child with its parent and the root of their tree.
    #[must_use]
    pub fn created(&self, key: SessionKey, lineage: Option<(SessionId, SessionId)>) -> Draft {
        self.draft(&SessionCreated {
            agent_id: None,
            agent_version: 0,
            environment_id: None,
            parent_session_id: lineage.map(|(parent, _)| parent),
            root_session_id: lineage.map_or(key.session, |(_, root)| root),
            depth: u32::from(lineage.is_some()),
            name: None,
            tags: Vec::new(),
            config_hash: Digest::of(b""),
            has_setup: false,
            workspace: None,
            custom_tools: Vec::new(),
        })
    }

    /// Begins a session.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create(&self, key: SessionKey) -> Result<(), StoreError> {
        self.store.commit(Commit::client(key, self.append_id(), vec![self.created(key, None)])).await.map(|_| ())
    }

    /// A session that was just given back and is not due must have nothing left to do: nobody would come (S9, S11).
    ///
    /// # Errors
    /// Those of the store, which has none.
    pub async fn check_given_back(&self, key: SessionKey) -> Result<(), StoreError> {
        let due = self.store.head(key).await?.and_then(|head| head.next_due_at);
        if due.is_some() {
            return Ok(());
        }
        let filter = AskFilter { session: Some(key.session), pending: true };
        let pending = self.store.asks(key.tenant, filter).await?;
        for intent in self.store.intents(key, true).await? {
            let waits =
                intent.state == IntentState::Parked && pending.iter().any(|ask| ask.intent_id == intent.intent_id);
            if !waits {
                let text =
                    format!("{} was given back as idle with {} {:?}", key.session, intent.intent_id, intent.state);
                self.oracle.breach("S9/S11", text);
            }
        }
        Ok(())
    }
}
