//! The same operations against memory and SQLite: the same answers, the same logs (F16).

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{AskId, LocationId, QueuedWakeId};
use portcullis_event::facts::{Priority, Reply};
use portcullis_store::{
    AskFilter, AskQuery, Commit, Fairness, Lease, Liveness, LockKey, RecordWrite, SessionKey, SessionQuery, Snapshot,
    Store, deliver_outbox,
};
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::whole;
use proptest::prelude::*;
use serde_json::json;

/// One backend with a world of its own; equal seeds keep the two worlds in step.
struct Side {
    world: World,
    store: Arc<dyn Store>,
    keys: Vec<SessionKey>,
    leases: Vec<(SessionKey, Lease)>,
    asks: Vec<(SessionKey, AskId)>,
    wakes: Vec<(SessionKey, QueuedWakeId)>,
    last: Option<Commit>,
    _folder: Option<tempfile::TempDir>,
}

impl Side {
    fn memory() -> Self {
        let world = World::new(5);
        let store = Arc::new(world.memory());
        Self::over(world, store, None)
    }

    fn sqlite() -> Self {
        let world = World::new(5);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Arc::new(common::open(&folder.path().join("store.db"), &world, Some(world.key.clone())));
        Self::over(world, store, Some(folder))
    }

    fn over(world: World, store: Arc<dyn Store>, folder: Option<tempfile::TempDir>) -> Self {
        Self {
            world,
            store,
            keys: Vec::new(),
            leases: Vec::new(),
            asks: Vec::new(),
            wakes: Vec::new(),
            last: None,
            _folder: folder,
        }
    }

    async fn commit(&mut self, commit: Commit) -> String {
        self.last = Some(commit.clone());
        format!("{:?}", self.store.commit(commit).await)
    }

    /// One step; its answer as text.
    async fn step(&mut self, what: u8, which: u8) -> String {
        let at = usize::from(which);
        if self.keys.is_empty() || what.is_multiple_of(20) {
            let key = self.world.key();
            self.keys.push(key);
            let creation = self.world.creation(key);
            return self.commit(creation).await;
        }
        let key = self.keys[at % self.keys.len()];
        let lease = (!self.leases.is_empty()).then(|| self.leases[at % self.leases.len()].clone());
        let world = &self.world;
        let ttl = Duration::from_secs(30);
        match (what % 20, lease) {
            (1, _) => {
                let mut commit = world.input(key, &which.to_string());
                commit.idle = which.is_multiple_of(3);
                self.commit(commit).await
            }
            (2 | 3, _) => {
                let claim = self.store.claim_session(key, world.owner(u32::from(which % 3)), ttl).await;
                if let Ok(portcullis_store::Claim::Granted(lease)) = &claim {
                    self.leases.push((key, lease.clone()));
                }
                format!("{claim:?}")
            }
            (4 | 5, Some((key, lease))) => {
                let commit = world.work(key, &lease, world.inert_call(&"z".repeat(at * 9)));
                self.commit(commit).await
            }
            (6, Some((key, lease))) => {
                let parked = world.parked();
                self.asks.push((key, parked.ask));
                let mut commit = world.work(key, &lease, parked.events);
                commit.sealed = vec![(parked.intent, vec![which])];
                self.commit(commit).await
            }
            (7, _) if !self.asks.is_empty() => {
                let (key, ask) = self.asks[at % self.asks.len()];
                let reply = world.replied(ask, Reply::AllowOnce);
                let commit = Commit::client(key, world.append(), vec![reply]);
                self.commit(commit).await
            }
            (8, Some((key, lease))) => format!("{:?}", self.store.renew(key, lease.fence, ttl).await),
            (9, Some((key, lease))) => {
                format!("{:?}", self.store.release(key, lease.fence, which.is_multiple_of(2).then_some(u64::MAX)).await)
            }
            (10, _) => {
                world.clock.advance(Duration::from_secs(u64::from(which % 40)));
                let known = [Liveness::Alive, Liveness::Dead, Liveness::Unknown][at % 3];
                world.liveness.set(world.owner(u32::from(which % 3)).worker, known);
                String::new()
            }
            (11, _) => {
                let path = ["fs:/a", "fs:/a/b", "fs:/c", "*"][at % 4];
                let lock = LockKey { location: LocationId::from_u128(1), key: path.to_owned() };
                let mut commit = world.input(key, "locks");
                if which.is_multiple_of(2) {
                    commit.take = vec![lock]
                } else {
                    commit.free = vec![lock]
                }
                self.commit(commit).await
            }
            (12, _) => {
                let expected = (which.is_multiple_of(2)).then_some(u64::from(which % 3));
                let body = (!which.is_multiple_of(5)).then(|| json!({ "n": which }));
                let write = RecordWrite { kind: "rule".to_owned(), id: (which % 3).to_string(), expected, body };
                if which.is_multiple_of(4) {
                    return format!("{:?}", self.store.put_record(world.tenant, write).await);
                }
                let mut commit = world.input(key, "records");
                commit.records = vec![write];
                self.commit(commit).await
            }
            (13, _) => match self.last.clone() {
                Some(commit) => self.commit(commit).await,
                None => String::new(),
            },
            (14, _) => format!("{:?}", deliver_outbox(&*self.store).await),
            (15, _) => {
                let claims = self.store.claim(world.tenant, world.owner(u32::from(which % 3)), 2, ttl).await;
                format!("{claims:?}")
            }
            (16, _) => {
                let dedupe = [None, Some("a"), Some("b")][at % 3];
                let delay = Duration::from_secs(u64::from(which % 90));
                let (wake, queued) = world.wake(delay, Priority::ALL[at % 3], dedupe);
                self.wakes.push((key, wake));
                let commit = Commit::client(key, world.append(), vec![queued]);
                self.commit(commit).await
            }
            (17, _) if !self.wakes.is_empty() => {
                let (key, wake) = self.wakes[at % self.wakes.len()];
                let cancelled = Commit::client(key, world.append(), vec![world.cancelled(wake)]);
                self.commit(cancelled).await
            }
            (18, Some((key, lease))) if !self.wakes.is_empty() => {
                let wake = self.wakes[at % self.wakes.len()].1;
                let commit = world.work(key, &lease, vec![world.consumed(wake)]);
                self.commit(commit).await
            }
            (19, _) => {
                let fairness = Fairness { per_tenant_max: at % 4 };
                let claims = self.store.claim_any(world.owner(u32::from(which % 3)), 2, ttl, fairness).await;
                format!("{claims:?} {:?}", self.store.sweep().await)
            }
            _ => {
                let state = which.to_string();
                let digest = portcullis_base::Digest::of(state.as_bytes());
                let snapshot = Snapshot { seq: u64::from(which), code_version: 1, state, digest };
                format!("{:?}", self.store.put_snapshot(key, snapshot).await)
            }
        }
    }

    /// Everything a reader can see, as text.
    async fn all(&self) -> Vec<String> {
        let (store, tenant) = (&*self.store, self.world.tenant);
        let mut seen = vec![
            format!("{:?}", store.logs(tenant).await),
            format!("{:?}", store.sessions(tenant, 100).await),
            format!("{:?}", store.asks(tenant, AskFilter::default()).await),
            format!("{:?}", store.asks(tenant, AskFilter { session: None, pending: true }).await),
            format!("{:?}", store.records(tenant, "rule").await),
            format!("{:?}", store.find_sessions(tenant, &SessionQuery::default(), 100, None).await),
            format!("{:?}", store.find_asks(tenant, &AskQuery::default(), 100, None).await),
            format!("{:?}", store.outbox(1_000).await),
        ];
        for session in store.logs(tenant).await.expect("logs") {
            let key = SessionKey { tenant, session };
            seen.push(format!("{:?}", whole(store, key).await));
            seen.push(format!("{:?}", store.head(key).await));
            seen.push(format!("{:?}", store.checkpoints(key).await));
            seen.push(format!("{:?}", store.snapshot(key, 1).await));
            for intent in store.intents(key, false).await.expect("intents") {
                seen.push(format!("{intent:?} {:?}", store.sealed(key, intent.intent_id).await));
            }
            seen.push(format!("{:?}", store.intents(key, true).await));
            seen.push(format!("{:?} {:?}", store.wakes(key, false).await, store.wakes(key, true).await));
        }
        seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f16_memory_and_sqlite_give_the_same_answers_and_logs(steps in prop::collection::vec(any::<(u8, u8)>(), 1..150)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (mut memory, mut sqlite) = (Side::memory(), Side::sqlite());
            for (what, which) in steps {
                let (a, b) = (memory.step(what, which).await, sqlite.step(what, which).await);
                assert_eq!(a, b, "step {what}/{which}");
            }
            assert_eq!(memory.all().await, sqlite.all().await);
        });
    }
}
