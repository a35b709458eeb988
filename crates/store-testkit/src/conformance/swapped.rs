//! Tenant fuzz (F17): every call carries ids of either tenant, drawn at random.
//!
//! What must hold is more than that nothing foreign shows: a tenant cannot tell that there is another one. Each call is
//! made twice, in a store that two tenants share and in one that its tenant has for itself, and the answers are equal.

use std::time::Duration;

use portcullis_base::{
    ArtifactId, AskId, Digest, Entropy as _, EventId, IntentId, InvocationId, LocationId, OutboxId, QueuedWakeId,
    SeededIds, SessionId, TenantId,
};
use portcullis_event::facts::{CallRecovered, OutcomeStatus, Priority, Reply, SessionErased};
use portcullis_event::{LOCAL_TENANT, ledger_of};
use portcullis_store::{
    ArtifactRow, AskFilter, AskQuery, Blob, Claim, Commit, Idempotency, Import, Lease, Liveness, LockKey, OutboxEntry,
    OutboxKind, Query, RecordQuery, RecordWrite, Retain, SessionKey, SessionQuery, Snapshot, Store, UnknownQuery,
    deliver_outbox,
};
use serde_json::json;

use super::extras::artifact;
use super::{Backend, Make, TTL, assert_sound, whole};
use crate::World;

const TENANTS: [TenantId; 2] = [LOCAL_TENANT, TenantId::from_u128(77)];
/// Enough that each kind of call is made with each kind of foreign id, and a second or two on a disk.
const STEPS: usize = 500;
/// Everything a tenant can see is compared after so many steps: it costs as much as a hundred calls.
const LOOK: usize = 50;

/// One call of a tenant, as both stores get it.
enum Request {
    Commit(Box<Commit>),
    Erase(Box<Commit>),
    Import(Import),
    ClaimSession(SessionKey, u32),
    Claim(TenantId, u32),
    Renew(SessionKey, u64),
    Release(SessionKey, u64, Option<u64>),
    Record(TenantId, RecordWrite),
    Snapshot(SessionKey, Snapshot),
    Retain(TenantId, Retain),
    Look(TenantId, UsedIds),
}

/// One of each id that was ever used, by either tenant.
#[derive(Debug, Clone, Copy)]
struct UsedIds {
    session: SessionId,
    ask: AskId,
    intent: IntentId,
    artifact: ArtifactId,
    content: (Digest, u64),
    wake: QueuedWakeId,
    tool_use: EventId,
    invocation: InvocationId,
    record: usize,
}

struct Fuzz {
    /// Makes the requests; its ids are in no store's own sequence.
    world: World,
    dice: SeededIds,
    /// The shared store, then one for each tenant.
    stores: Vec<(World, Backend)>,
    sessions: Vec<SessionId>,
    asks: Vec<(SessionId, AskId)>,
    intents: Vec<(SessionId, IntentId)>,
    /// With their sizes.
    contents: Vec<(Digest, u64)>,
    wakes: Vec<(SessionId, QueuedWakeId)>,
    leases: Vec<Lease>,
    events: Vec<EventId>,
    /// Managed events of asks, and their copies at the root.
    tool_uses: Vec<EventId>,
    invocations: Vec<InvocationId>,
}

/// Random calls from a fixed seed; other seeds come from each backend's tests.
pub async fn f17_a_tenant_cannot_tell_that_there_is_another(make: Make) {
    f17_of(make, 17).await;
}

/// The same from any seed.
pub async fn f17_of(make: Make, seed: u64) {
    let mut fuzz = Fuzz::new(make, seed);
    for step in 0..STEPS {
        let who = fuzz.below(2);
        let (what, request) = fuzz.request(TENANTS[who]).await;
        let Some(request) = request else { continue };
        let shared = fuzz.answer(0, &request).await;
        let alone = fuzz.answer(1 + who, &request).await;
        assert_eq!(shared, alone, "seed {seed}, step {step}: call {what} of tenant {who}");
        if step % LOOK == LOOK - 1 {
            fuzz.compare_all(&format!("seed {seed}, step {step}")).await;
        }
    }
    fuzz.compare_all(&format!("seed {seed}, at the end")).await;
    let store = &*fuzz.stores[0].1.store;
    for tenant in TENANTS {
        for session in store.logs(tenant).await.expect("logs") {
            assert_sound(store, SessionKey { tenant, session }).await;
        }
    }
}

impl Fuzz {
    fn new(make: Make, seed: u64) -> Self {
        let world = World::new(seed);
        let nowhere = world.key().session;
        let stores = (1..=3).map(|n| World::new(seed + n)).map(|world| {
            let backend = make(&world);
            (world, backend)
        });
        Self {
            dice: SeededIds::new(seed),
            stores: stores.collect(),
            // Ids that nothing has: a draw always finds one.
            sessions: vec![nowhere],
            asks: vec![(nowhere, world.asked(IntentId::from_u128(1)).0)],
            intents: vec![(nowhere, IntentId::from_u128(1))],
            contents: vec![(Digest::of(b"nothing"), 7)],
            wakes: vec![(nowhere, world.wake(TTL, Priority::Low, None).0)],
            leases: Vec::new(),
            events: Vec::new(),
            tool_uses: vec![EventId::from_u128(1)],
            invocations: vec![InvocationId::from_u128(1)],
            world,
        }
    }

    fn below(&self, n: usize) -> usize {
        let mut word = [0; 4];
        self.dice.fill(&mut word);
        u32::from_le_bytes(word) as usize % n
    }

    fn one<T: Clone>(&self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn names(&self) -> UsedIds {
        UsedIds {
            session: self.one(&self.sessions),
            ask: self.one(&self.asks).1,
            intent: self.one(&self.intents).1,
            artifact: ArtifactId::from_u128(self.below(12) as u128),
            content: self.one(&self.contents),
            wake: self.one(&self.wakes).1,
            tool_use: self.one(&self.tool_uses),
            invocation: self.one(&self.invocations),
            record: self.below(4),
        }
    }

    /// One of these and the session it is in.
    fn homed<T: Clone>(&self, of: &[(SessionId, T)], id: &mut T) -> SessionId {
        let (session, one) = self.one(of);
        *id = one;
        session
    }

    /// The newest of these in a session.
    fn home_of<T: Clone>(&self, of: &[(SessionId, T)], session: SessionId) -> Option<T> {
        of.iter().rev().find(|(home, _)| *home == session).map(|(_, id)| id.clone())
    }

    /// A call of `tenant`; `None` where time passed or the host did its own work instead.
    async fn request(&mut self, tenant: TenantId) -> (usize, Option<Request>) {
        let what = self.below(24);
        let mut names = self.names();
        let lease = (!self.leases.is_empty()).then(|| self.one(&self.leases));
        // Every second call is about one thing, so that it may succeed; the others mix what does not belong together.
        if self.below(2) == 0 {
            let session = match what {
                10 => self.homed(&self.asks, &mut names.ask),
                14 => self.homed(&self.wakes, &mut names.wake),
                _ => lease.as_ref().map_or(names.session, |lease| lease.session),
            };
            names.session = session;
            names.intent = self.home_of(&self.intents, session).unwrap_or(names.intent);
            if what != 14 {
                names.wake = self.home_of(&self.wakes, session).unwrap_or(names.wake);
            }
        }
        let key = SessionKey { tenant, session: names.session };
        let owner = self.below(3) as u32;
        let text = format!("zanzibar of {tenant} in {what}");
        let world = &self.world;
        let commit = |commit| Some(Request::Commit(Box::new(commit)));
        let request = match (what, lease) {
            (0, _) => {
                // A session of its own, or one whose id the other may have as well.
                let key = if self.below(3) == 0 { key } else { SessionKey { tenant, ..world.key() } };
                self.sessions.push(key.session);
                commit(world.creation(key))
            }
            (1, _) => {
                let mut own = world.input(key, &text);
                let path = self.one(&["fs:/a", "fs:/a/b", "fs:/c"]).to_owned();
                let lock = LockKey { location: LocationId::from_u128(1), key: path };
                if self.below(3) == 0 {
                    own.free.push(lock)
                } else {
                    own.take.push(lock)
                }
                own.idle = self.below(2) == 0;
                // An event that is in its log already is a repeat; one that is in another's is not.
                if self.below(3) == 0 && !self.events.is_empty() {
                    own.events[0].id = self.one(&self.events);
                }
                self.events.push(own.events[0].id);
                commit(own)
            }
            (2, _) => {
                let mut own = world.input(key, &text);
                if self.below(3) == 0 {
                    own.events.push(world.outcome(&text));
                }
                let (key, body_hash) = (self.below(3).to_string(), Digest::of(&[self.below(2) as u8]));
                own.idempotency = Some(Idempotency { route: "r".to_owned(), key, body_hash, response: json!(text) });
                commit(own)
            }
            (3 | 4, _) => Some(Request::ClaimSession(key, owner)),
            (5, _) => Some(Request::Claim(tenant, owner)),
            (6, Some(lease)) => Some(Request::Renew(key, lease.fence)),
            (7, Some(lease)) => Some(Request::Release(key, lease.fence, (self.below(2) == 0).then_some(u64::MAX))),
            (8, Some(lease)) => {
                let bytes = if self.below(2) == 0 { text.clone() } else { "of both".to_owned() }.into_bytes();
                let mut kept = artifact(names.artifact.as_u128(), &bytes);
                self.contents.push((kept.sha256, kept.bytes));
                let mut own = world.work(key, &lease, world.inert_call(&text));
                if self.below(3) == 0 {
                    // Names what it never had: the content of another, perhaps.
                    (kept.sha256, kept.bytes) = names.content;
                } else {
                    own.blobs.push(Blob { sha256: kept.sha256, bytes });
                }
                own.artifacts.push(ArtifactRow::new(key.session, kept));
                commit(own)
            }
            (9, Some(lease)) => {
                let parked = world.parked();
                let mut own = world.work(key, &lease, parked.events);
                own.sealed.push((parked.intent, text.into_bytes()));
                self.asks.push((key.session, parked.ask));
                self.intents.push((key.session, parked.intent));
                self.tool_uses.push(own.events[1].id);
                commit(own)
            }
            (10, _) => {
                let reply = world.replied(names.ask, self.one(&[Reply::AllowOnce, Reply::Deny]));
                commit(Commit::client(key, world.append(), vec![reply]))
            }
            (11, Some(lease)) => {
                let (invocation_id, started) = world.started(names.intent);
                let mut events = vec![started];
                if self.below(2) == 0 {
                    // Its holder dies, and nobody knows what became of it.
                    let decision = "outcome_unknown".to_owned();
                    events.push(world.draft(&CallRecovered { invocation_id, intent_id: names.intent, decision }));
                    self.invocations.push(invocation_id);
                }
                commit(world.work(key, &lease, events))
            }
            (12, Some(lease)) => commit(world.work(key, &lease, vec![world.observed(names.intent, &text)])),
            (13, _) => {
                let dedupe = self.one(&[None, Some("a"), Some("b")]);
                let delay = Duration::from_secs(self.below(90) as u64);
                let (wake, queued) = world.wake(delay, Priority::ALL[self.below(3)], dedupe);
                self.wakes.push((key.session, wake));
                commit(Commit::client(key, world.append(), vec![queued]))
            }
            (14, _) => commit(Commit::client(key, world.append(), vec![world.cancelled(names.wake)])),
            (15, Some(lease)) => commit(world.work(key, &lease, vec![world.consumed(names.wake)])),
            (16, _) => {
                let kind = self.one(&["grant", "rule"]).to_owned();
                let expected = self.one(&[None, None, Some(0), Some(1)]);
                let body = (self.below(4) > 0).then(|| json!(text));
                Some(Request::Record(tenant, RecordWrite { kind, id: names.record.to_string(), expected, body }))
            }
            (17, _) => {
                let digest = Digest::of(text.as_bytes());
                Some(Request::Snapshot(key, Snapshot { seq: 1, code_version: 1, state: text, digest }))
            }
            (18, _) => {
                let retain = match self.below(3) {
                    0 => Retain::Pin { artifact: names.artifact, pinned: self.below(2) == 0 },
                    1 => Retain::Bury(vec![names.artifact]),
                    _ => Retain::Free { contents: vec![names.content.0], before: world.now() },
                };
                Some(Request::Retain(tenant, retain))
            }
            (19, Some(lease)) if self.below(4) == 0 => {
                let fact = SessionErased { from_seq: 1, to_seq: lease.last_seq, by: text, reason: None };
                Some(Request::Erase(Box::new(world.work(key, &lease, vec![world.draft(&fact)]))))
            }
            (20, _) => {
                // The log of either, under its own name or another.
                let from = SessionKey { tenant: self.one(&TENANTS), session: self.one(&self.sessions) };
                let session = if self.below(2) == 0 { from.session } else { key.session };
                let events = whole(&*self.stores[0].1.store, from).await;
                let key = SessionKey { tenant, session };
                Some(Request::Import(Import { key, events, blobs: Vec::new(), expired: Default::default() }))
            }
            (21, _) => {
                // Work for the log of the other tenant: it would arrive there in nobody's name.
                let mut own = world.input(key, &text);
                let other = if tenant == TENANTS[0] { TENANTS[1] } else { TENANTS[0] };
                own.outbox.push(self.smuggled(SessionKey { tenant: other, session: self.one(&self.sessions) }));
                commit(own)
            }
            (22, _) => {
                self.pass_time().await;
                None
            }
            (_, _) => Some(Request::Look(tenant, names)),
        };
        (what, request)
    }

    fn smuggled(&self, to: SessionKey) -> OutboxEntry {
        let world = &self.world;
        let queued = world.queued("smuggled");
        OutboxEntry {
            id: OutboxId::make(&*world.ids, world.now()),
            tenant: to.tenant,
            at: world.now(),
            work: OutboxKind::Session {
                session_id: to.session,
                dedupe: queued.id.to_string(),
                event_id: queued.id,
                append_id: world.append(),
                event_type: queued.kind.as_str().to_owned(),
                payload: queued.payload.into(),
                copied_from: None,
            },
        }
    }

    /// What happens to all of them alike, and is in no tenant's name.
    async fn pass_time(&self) {
        let by = Duration::from_secs(self.below(40) as u64);
        let known = self.one(&[Liveness::Alive, Liveness::Dead, Liveness::Unknown]);
        let worker = self.world.owner(self.below(3) as u32).worker;
        self.world.clock.advance(by);
        for (world, backend) in &self.stores {
            world.clock.advance(by);
            world.liveness.set(worker, known);
            deliver_outbox(&*backend.store).await.expect("delivered");
            backend.store.sweep().await.expect("swept");
        }
    }

    async fn answer(&mut self, which: usize, request: &Request) -> String {
        let (world, backend) = &self.stores[which];
        let store = &*backend.store;
        match request {
            Request::Commit(commit) => format!("{:?}", store.commit((**commit).clone()).await),
            Request::Erase(commit) => format!("{:?}", store.erase((**commit).clone()).await),
            Request::Import(import) => format!("{:?}", store.import(import.clone()).await),
            Request::ClaimSession(key, owner) => {
                let claim = store.claim_session(*key, world.owner(*owner), TTL).await;
                let text = format!("{claim:?}");
                self.leases.extend(claim.ok().and_then(Claim::granted));
                text
            }
            Request::Claim(tenant, owner) => {
                let claims = store.claim(*tenant, world.owner(*owner), 2, TTL).await;
                let text = format!("{claims:?}");
                self.leases.extend(claims.into_iter().flatten().filter_map(Claim::granted));
                text
            }
            Request::Renew(key, fence) => format!("{:?}", store.renew(*key, *fence, TTL).await),
            Request::Release(key, fence, idle) => format!("{:?}", store.release(*key, *fence, *idle).await),
            Request::Record(tenant, write) => format!("{:?}", store.put_record(*tenant, write.clone()).await),
            Request::Snapshot(key, snapshot) => format!("{:?}", store.put_snapshot(*key, snapshot.clone()).await),
            Request::Retain(tenant, change) => format!("{:?}", store.retain(*tenant, change.clone()).await),
            Request::Look(tenant, names) => look(store, *tenant, *names).await,
        }
    }

    /// Everything that each tenant can see, in the shared store and in its own.
    async fn compare_all(&self, when: &str) {
        for (who, tenant) in TENANTS.into_iter().enumerate() {
            let (shared, alone) = (self.all(0, tenant).await, self.all(1 + who, tenant).await);
            for (a, b) in shared.iter().zip(&alone) {
                assert_eq!(a, b, "{when}: tenant {who}");
            }
            assert_eq!(shared.len(), alone.len(), "{when}: tenant {who}");
        }
    }

    async fn all(&self, which: usize, tenant: TenantId) -> Vec<String> {
        let store = &*self.stores[which].1.store;
        // The index may be brought up to date by a store that is idle, so only its end is told.
        while store.catch_up(tenant, 1_000).await.expect("taken in") > 0 {}
        let query = Query::new(&["zanzibar"]).expect("a word");
        let mut seen = vec![
            format!("{:?}", store.sessions(tenant, 1_000).await),
            format!("{:?}", store.logs(tenant).await),
            format!("{:?}", store.asks(tenant, AskFilter::default()).await),
            format!("{:?}", store.find_sessions(tenant, &SessionQuery::default(), 1_000, None).await),
            format!("{:?}", store.find_asks(tenant, &AskQuery::default(), 1_000, None).await),
            format!("{:?}", store.unknown_outcomes(tenant, &UnknownQuery::default(), 1_000, None).await),
            format!("{:?}", store.artifacts(tenant, None, 1_000).await),
            format!("{:?}", store.artifact_usage(tenant).await),
            format!("{:?} {:?}", store.records(tenant, "grant").await, store.records(tenant, "rule").await),
            format!("{:?} {:?}", store.search(tenant, &query, 1_000).await, store.search_lag(tenant).await),
        ];
        for (content, _) in &self.contents {
            seen.push(format!("{:?}", store.blob(tenant, *content).await));
        }
        for session in store.logs(tenant).await.expect("logs") {
            let key = SessionKey { tenant, session };
            if session == ledger_of(tenant) {
                // Its events are made by the store, with the store's ids; how many there are is the tenant's doing.
                seen.push(format!("{:?}", whole(store, key).await.iter().map(|e| e.kind.clone()).collect::<Vec<_>>()));
                continue;
            }
            seen.push(format!("{:?} {:?}", whole(store, key).await, store.head(key).await));
            seen.push(format!("{:?} {:?}", store.intents(key, false).await, store.wakes(key, false).await));
            seen.push(format!("{:?} {:?}", store.checkpoints(key).await, store.snapshot(key, 1).await));
            for (_, intent) in &self.intents {
                seen.push(format!("{:?}", store.sealed(key, *intent).await));
            }
        }
        seen
    }
}

/// Every list, by names of either tenant.
async fn listed(store: &dyn Store, tenant: TenantId, names: &UsedIds) -> String {
    let session = Some(names.session);
    let root = SessionQuery { root: session, ..SessionQuery::default() };
    let parent = SessionQuery { parent: session, ..SessionQuery::default() };
    let asked = AskQuery { session, ..AskQuery::default() };
    let unknown = UnknownQuery { session, invocation: None };
    let used = AskQuery { tool_use: Some(names.tool_use), ..AskQuery::default() };
    let told = AskQuery { principal: Some("user:test".to_owned()), ..AskQuery::default() };
    let invoked = UnknownQuery { session: None, invocation: Some(names.invocation) };
    let given_in = vec![("given_in".to_owned(), names.session.to_string())];
    let records = RecordQuery { kind: "grant".to_owned(), fields: given_in };
    let one = store.session(SessionKey { tenant, session: names.session }).await;
    let of_tree = store.find_sessions(tenant, &root, 9, None).await;
    let children = store.find_sessions(tenant, &parent, 9, None).await;
    let asks = store.find_asks(tenant, &asked, 9, None).await;
    let unknown = store.unknown_outcomes(tenant, &unknown, 9, None).await;
    let records = store.find_records(tenant, &records, 9, None).await;
    let mut seen = format!("{one:?}\n{of_tree:?}\n{children:?}\n{asks:?}\n{unknown:?}\n{records:?}");
    for query in [used, told] {
        seen += &format!("\n{:?}", store.find_asks(tenant, &query, 9, None).await);
    }
    seen += &format!("\n{:?}", store.unknown_outcomes(tenant, &invoked, 9, None).await);
    let judged = SessionQuery { outcome: Some(OutcomeStatus::Open), ..SessionQuery::default() };
    let tagged = SessionQuery { tag: Some("one".to_owned()), ..SessionQuery::default() };
    for query in [judged, tagged] {
        // Page by page: a cursor says no more than a page does.
        let mut cursor = None;
        for _ in 0..3 {
            let page = store.find_sessions(tenant, &query, 2, cursor.as_ref()).await;
            seen += &format!("\n{page:?}");
            cursor = page.ok().and_then(|page| page.next);
            if cursor.is_none() {
                break;
            }
        }
    }
    seen
}

/// Every way to read, by names of either tenant.
async fn look(store: &dyn Store, tenant: TenantId, names: UsedIds) -> String {
    let key = SessionKey { tenant, session: names.session };
    let filter = AskFilter { session: Some(names.session), pending: false };
    let log = format!("{:?} {:?}", store.read(key, 0, 100).await, store.head(key).await);
    let rows = format!("{:?} {:?}", store.intents(key, false).await, store.intents(key, true).await);
    let asks = format!("{:?} {:?}", store.ask(tenant, names.ask).await, store.asks(tenant, filter).await);
    let wakes = format!("{:?} {:?}", store.wakes(key, false).await, store.wakes(key, true).await);
    let kept =
        format!("{:?} {:?}", store.artifact(tenant, names.artifact).await, store.blob(tenant, names.content.0).await);
    let sealed = format!("{:?} {:?}", store.sealed(key, names.intent).await, store.snapshot(key, 1).await);
    let record = store.record(tenant, "grant", &names.record.to_string()).await;
    let lists = listed(store, tenant, &names).await;
    [log, rows, asks, wakes, kept, sealed, format!("{record:?}"), lists].join("\n")
}
