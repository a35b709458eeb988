//! What outlives every process of a run: the store, the sessions, and the one who sees everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use portcullis_base::{AppendId, Clock as _, Digest, SeededIds, SessionId};
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
        let new_key = |_| SessionKey { tenant: LOCAL_TENANT, session: SessionId::make(&*ids, clock.now()) };
        let sessions = (0..options.sessions).map(new_key).collect();
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

    /// Begins a session.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create(&self, key: SessionKey) -> Result<(), StoreError> {
        let created = SessionCreated {
            agent_id: None,
            agent_version: 0,
            environment_id: None,
            parent_session_id: None,
            root_session_id: key.session,
            depth: 0,
            name: None,
            tags: Vec::new(),
            config_hash: Digest::of(b""),
            has_setup: false,
            workspace: None,
            custom_tools: Vec::new(),
        };
        self.store.commit(Commit::client(key, self.append_id(), vec![self.draft(&created)])).await.map(|_| ())
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
