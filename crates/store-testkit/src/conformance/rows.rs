//! Projections equal the fold of the log (S15).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portcullis_base::{AskId, Digest, IntentId, InvocationId, LocationId, QueuedWakeId};
use portcullis_event::facts::{
    AskClosed, CallRecovered, Closing, InvocationResolved, OutcomeStatus, OutcomeTrend, Priority, Reply, Resolution,
    SpanResult, StatusIdle, StatusRunning, StopReason,
};
use portcullis_event::{AskState, Event, IntentState, SessionFacts, SessionStatus, State, head_change};
use portcullis_store::{
    AskFilter, Commit, Head, Idempotency, Lease, LockKey, PAGE_MOST, Reads, RecordWrite, SessionKey, Store, StoreError,
    UnknownQuery, reads,
};
use serde_json::json;

use super::{Make, assert_sound, head, setup, whole};
use crate::World;

/// One step of a generated history: what happens, and to which intent or ask.
pub type Step = (u8, u8);

/// A fixed history that reaches every row change; generated ones come from each backend's tests.
pub async fn s15_rows_equal_the_fold(make: Make) {
    let steps: Vec<Step> = (0u8..=254).map(|i| (i.wrapping_mul(37), i.wrapping_mul(11))).collect();
    s15_of(make, &steps).await;
}

/// Plays `steps` and compares every row with the fold after each tenth commit.
pub async fn s15_of(make: Make, steps: &[Step]) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let mut play = Play { lease: world.claim(store, key, 1).await.expect("a lease"), ..Play::new(&world, store, key) };
    for (at, step) in steps.iter().enumerate() {
        play.step(*step).await;
        if at % 10 == 9 {
            compare(store, key).await;
        }
    }
    compare(store, key).await;
    assert_sound(store, key).await;
}

/// Plays `steps` in a new session.
pub(super) async fn play(world: &World, store: &dyn Store, steps: &[Step]) -> SessionKey {
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let mut play = Play { lease, ..Play::new(world, store, key) };
    for step in steps {
        play.step(*step).await;
    }
    key
}

struct Play<'a> {
    world: &'a World,
    store: &'a dyn Store,
    key: SessionKey,
    lease: Lease,
    intents: Vec<(IntentId, Option<InvocationId>)>,
    /// With the intent each is about; a settled intent takes its asks along, as in any real history.
    asks: Vec<(AskId, IntentId)>,
    wakes: Vec<QueuedWakeId>,
    unknown: Vec<InvocationId>,
}

impl<'a> Play<'a> {
    fn new(world: &'a World, store: &'a dyn Store, key: SessionKey) -> Self {
        let lease = Lease {
            session: key.session,
            fence: 0,
            owner: world.owner(1),
            until: portcullis_base::Timestamp::from_micros(0),
            last_seq: 0,
            before: portcullis_store::PreviousLease::GivenBack,
        };
        Self { world, store, key, lease, intents: Vec::new(), asks: Vec::new(), wakes: Vec::new(), unknown: Vec::new() }
    }

    async fn step(&mut self, (what, which): Step) {
        let world = self.world;
        let which = usize::from(which);
        let intent = (!self.intents.is_empty()).then(|| which % self.intents.len());
        let ask = (!self.asks.is_empty()).then(|| self.asks[which % self.asks.len()].0);
        let mut events = Vec::new();
        match (what % 21, intent, ask) {
            (0, _, _) => events.extend(world.inert_call("text")),
            (1, _, _) => {
                let parked = world.parked();
                self.intents.push((parked.intent, None));
                self.asks.push((parked.ask, parked.intent));
                events.extend(parked.events);
            }
            (2, Some(at), _) => events.push(world.scheduled(self.intents[at].0)),
            (3, Some(at), _) if self.intents[at].1.is_none() => {
                let (invocation, started) = world.started(self.intents[at].0);
                self.intents[at].1 = Some(invocation);
                events.push(started);
            }
            (4, Some(at), _) => {
                if let (intent, Some(invocation)) = self.intents[at] {
                    events.push(world.completed(intent, invocation));
                }
            }
            (5, Some(at), _) => {
                let (intent, _) = self.intents.swap_remove(at);
                self.asks.retain(|(_, about)| *about != intent);
                events.push(world.observed(intent, "done"));
            }
            (6, _, Some(ask)) => events.push(world.replied(ask, Reply::AllowOnce)),
            (7, _, Some(ask)) => {
                let state = [Closing::Expired, Closing::Superseded, Closing::Voided][which % 3];
                events.push(world.draft(&AskClosed { ask_id: ask, state, by: "test".to_owned() }));
            }
            (8, _, _) => events.push(world.draft(&StatusRunning { previous_status: "idle".to_owned() })),
            (9, _, _) => events.push(world.draft(&StatusIdle {
                previous_status: "running".to_owned(),
                stop_reason: StopReason::EndTurn,
                summary: None,
            })),
            (10, Some(at), _) => {
                let intent = self.intents[at].0;
                let (ask, asked) = world.asked(intent);
                self.asks.push((ask, intent));
                events.push(asked);
            }
            (11, _, _) => {
                let dedupe = [None, Some("a"), Some("b"), Some("retry:x")][which % 4];
                let delay = std::time::Duration::from_secs(which as u64 % 50);
                let (wake, queued) = world.wake(delay, Priority::ALL[which % 3], dedupe);
                self.wakes.push(wake);
                events.push(queued);
            }
            (12, _, _) if !self.wakes.is_empty() => {
                events.push(world.consumed(self.wakes[which % self.wakes.len()]));
            }
            (13, _, _) if !self.wakes.is_empty() => {
                events.push(world.cancelled(self.wakes[which % self.wakes.len()]));
            }
            (14, _, _) => {
                let result = [SpanResult::Success, SpanResult::Error, SpanResult::Blocked][which % 3];
                events.extend(world.wake_span(result, &format!("summary {which}")));
            }
            (15, _, _) => events.extend(world.model_request(which as u64)),
            (16, Some(at), _) => {
                if let (intent_id, Some(invocation_id)) = self.intents[at] {
                    let decision = "outcome_unknown".to_owned();
                    events.push(world.draft(&CallRecovered { invocation_id, intent_id, decision }));
                    self.unknown.push(invocation_id);
                }
            }
            (17, _, _) if !self.unknown.is_empty() => {
                let invocation_id = self.unknown[which % self.unknown.len()];
                let (resolution, by) = (Resolution::DidNotHappen, "user:test".to_owned());
                events.push(world.draft(&InvocationResolved { invocation_id, resolution, by, note: None }));
            }
            (18, _, _) => events.push(world.outcome(&format!("goal {which}"))),
            (19, _, _) => {
                let result = [OutcomeStatus::Pass, OutcomeStatus::Fail, OutcomeStatus::NotReady][which % 3];
                let trend = [OutcomeTrend::FirstIteration, OutcomeTrend::Regressing][which % 2];
                events.push(world.verdict(result, trend));
                // One that comes behind a verdict is not judged by it.
                events.extend((which % 5 == 0).then(|| world.outcome("another goal")));
            }
            _ => {
                let (intent, proposed) = world.intent();
                self.intents.push((intent, None));
                events.push(proposed);
            }
        }
        if events.is_empty() {
            return;
        }
        match self.store.commit(world.work(self.key, &self.lease, events)).await {
            // Refused whole, so the rows and the log stand where they stood.
            Ok(_) | Err(StoreError::AskSettled { .. } | StoreError::IntentMoved { .. } | StoreError::NoAsk(_)) => {}
            Err(StoreError::WakeSettled { .. } | StoreError::NoWake(_)) => {}
            Err(error) => panic!("step {what}/{which}: {error}"),
        }
    }
}

/// What a commit looks up is known from the commit alone. The in-memory backend checks of every commit of every test that
/// its plan asks for nothing else.
pub async fn reads_list_what_a_commit_looks_up(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let listed = async |commit: Commit| {
        let listed = reads(&commit);
        store.commit(commit).await.expect("an append");
        Reads { first_event: None, ..listed }
    };
    let inert = listed(world.work(key, &lease, world.inert_call("text"))).await;
    assert_eq!(inert, Reads::default(), "a call that begins and ends here asks for nothing");
    let parked = world.parked();
    assert_eq!(listed(world.work(key, &lease, parked.events)).await, Reads::default());
    let replied = listed(world.client(key, world.replied(parked.ask, Reply::AllowOnce))).await;
    assert_eq!(replied, Reads { asks: [parked.ask].into(), ..Reads::default() });
    let started = listed(world.work(key, &lease, vec![world.started(parked.intent).1])).await;
    assert_eq!(started, Reads { intents: [parked.intent].into(), ..Reads::default() });
    let (wake, queued) = world.wake(Duration::from_secs(60), Priority::Low, None);
    let wakes = Reads { wakes: [wake].into(), pending_wakes: true, ..Reads::default() };
    assert_eq!(listed(world.client(key, queued)).await, wakes);
    assert_eq!(listed(world.client(key, world.cancelled(wake))).await, wakes);

    let location = LocationId::from_u128(1);
    let mut commit = world.input(key, "more");
    commit.take = vec![LockKey { location, key: "fs:/a".to_owned() }];
    let id = "a".to_owned();
    commit.records = vec![RecordWrite { kind: "rule".to_owned(), id, expected: None, body: Some(json!(1)) }];
    let (route, once) = ("r".to_owned(), "k".to_owned());
    let body_hash = Digest::of(b"b");
    commit.idempotency = Some(Idempotency { route, key: once, body_hash, response: json!("done") });
    let expected = Reads {
        idempotency: Some(("r".to_owned(), "k".to_owned())),
        locations: [location].into(),
        records: [("rule".to_owned(), "a".to_owned())].into(),
        ..Reads::default()
    };
    assert_eq!(listed(commit).await, expected);
    let delivered = Commit::outbox(key, "key".to_owned(), world.append(), vec![world.queued("x")]);
    let first = delivered.events.first().map(|draft| draft.id);
    assert_eq!(reads(&delivered).first_event, first);
    assert_eq!(listed(delivered).await, Reads { deliveries: vec!["key".to_owned()], ..Reads::default() });
}

/// Panics unless every row of a session is what its log says (S15): tests of any kind may end with it.
pub async fn compare(store: &dyn Store, key: SessionKey) {
    let events = whole(store, key).await;
    let state = State::fold(&events);
    let head = head(store, key).await;

    let open = store.intents(key, true).await.expect("open intents");
    let folded: BTreeMap<IntentId, IntentState> = state.intents.open().map(|i| (i.intent_id, i.state)).collect();
    let stored: BTreeMap<IntentId, IntentState> = open.iter().map(|row| (row.intent_id, row.state)).collect();
    assert_eq!(stored, folded, "open intents");
    for row in &open {
        let intent = state.intents.get(row.intent_id).expect("the fold has it");
        assert_eq!(row.tool, intent.tool);
        assert_eq!(row.definition_version, intent.definition_version);
        assert_eq!(row.call_key, format!("{}/{}", intent.message_id, intent.call_id));
        assert_eq!(row.invocation_id, intent.invocation_id);
    }
    let all = store.intents(key, false).await.expect("intents");
    assert_eq!(all.len() as u64, folded.len() as u64 + state.intents.settled(), "every intent has one row");

    let filter = AskFilter { session: Some(key.session), pending: false };
    let asks = store.asks(key.tenant, filter).await.expect("asks");
    let mut pending = 0;
    for row in &asks {
        pending += u64::from(row.state == AskState::Pending);
        // The fold forgets the asks of settled intents; a row stays.
        if let Some(ask) = state.asks.get(row.ask_id) {
            assert_eq!((row.state, row.intent_id, row.pinned), (ask.state, ask.intent_id, ask.pinned));
            assert_eq!(row.reply, ask.reply.as_ref().map(|reply| reply.reply.clone()));
            assert_eq!((row.expires_at, row.input_hash), (ask.expires_at, ask.input_hash));
        }
    }
    for ask in state.asks.pending() {
        assert!(asks.iter().any(|row| row.ask_id == ask.ask_id && row.state == AskState::Pending));
    }
    assert_eq!(head.blocked_n, pending, "the head counts pending asks");

    let stored = store.wakes(key, true).await.expect("pending wakes");
    let folded: BTreeMap<_, _> = state.wakes.pending().map(|wake| (wake.queued_wake_id, wake.clone())).collect();
    let by_id: BTreeMap<_, _> = stored.iter().map(|row| (row.wake.queued_wake_id, row.wake.clone())).collect();
    assert_eq!(by_id, folded, "pending wakes");
    assert!(stored.is_sorted_by_key(|row| row.wake.due_at), "the earliest first");
    assert_eq!(head.wake.map(|wake| (wake.due_at, wake.priority)), state.wakes.next(), "the head knows the next wake");
    let change = head_change(&events, |_| false);
    assert_eq!(head.failure_streak, change.failure_streak(0), "the head counts failures in a row");
    let reckoned = Head { next_due_at: None, priority: Priority::Low, ..head.clone() };
    let reckoned = {
        let mut head = reckoned;
        head.reckon();
        head
    };
    assert_eq!(head, reckoned, "the due time follows from work and wakes");
    let status: SessionStatus = state.session.status;
    assert_eq!(head.status, status);
    compare_facts(store, key, &events, &state).await;
}

/// The facts of the session, and its calls of unknown outcome.
async fn compare_facts(store: &dyn Store, key: SessionKey, events: &[Event], state: &State) {
    let listing = store.session(key).await.expect("a look").expect("the session is listed");
    let facts = listing.facts;
    assert_eq!(Some(&facts), SessionFacts::fold(events).as_ref(), "the facts are those of the log");
    let progress = &state.progress;
    assert_eq!((facts.status, &facts.stop_reason), (state.session.status, &progress.last_stop));
    assert_eq!((facts.agent_id, &facts.last_summary), (state.session.agent_id, &progress.last_summary));
    assert_eq!(facts.usage, progress.usage, "what it used");
    assert_eq!(facts.setup, listing.row.config_hash);
    assert_eq!(Some(facts.last_activity_at), events.last().map(|event| event.at));
    let query = UnknownQuery { session: Some(key.session), invocation: None };
    let unknown = store.unknown_outcomes(key.tenant, &query, PAGE_MOST, None).await.expect("a list").items;
    let stored: BTreeSet<InvocationId> = unknown.iter().map(|call| call.outcome.invocation_id).collect();
    assert_eq!(stored, progress.unknown.iter().copied().collect(), "calls of unknown outcome");
}

pub async fn s07_an_intent_starts_once_and_is_observed_once(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let (intent, proposed) = world.intent();
    let started = || world.started(intent).1;
    store.commit(world.work(key, &lease, vec![proposed, started()])).await.expect("its first start");
    let refused = Err(StoreError::IntentMoved { intent });
    assert_eq!(store.commit(world.work(key, &lease, vec![started()])).await, refused);
    store.commit(world.work(key, &lease, vec![world.observed(intent, "done")])).await.expect("its one observation");
    assert_eq!(store.commit(world.work(key, &lease, vec![world.observed(intent, "again")])).await, refused);
    assert_eq!(store.commit(world.work(key, &lease, vec![started()])).await, refused);
}

pub async fn s15_a_settled_intent_keeps_no_sealed_value(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let (intent, proposed) = world.intent();
    let mut commit = world.work(key, &lease, vec![proposed]);
    commit.sealed = vec![(intent, vec![1, 2, 3])];
    store.commit(commit).await.expect("an append");
    assert_eq!(store.sealed(key, intent).await, Ok(Some(vec![1, 2, 3])));
    store.commit(world.work(key, &lease, vec![world.started(intent).1])).await.expect("an append");
    assert_eq!(store.sealed(key, intent).await, Ok(Some(vec![1, 2, 3])));
    store.commit(world.work(key, &lease, vec![world.observed(intent, "x")])).await.expect("an append");
    assert_eq!(store.sealed(key, intent).await, Ok(None));

    let (inert, proposed) = world.intent();
    let mut commit = world.work(key, &lease, vec![proposed, world.observed(inert, "x")]);
    commit.sealed = vec![(inert, vec![4])];
    store.commit(commit).await.expect("an append");
    assert_eq!(store.sealed(key, inert).await, Ok(None), "settled in the append that brought it");
}

pub async fn s15_the_end_of_a_task_leaves_its_intent_settled(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    // Once with every fact in an append of its own, once with all in one.
    for apart in [true, false] {
        let (intent, proposed) = world.intent();
        let (invocation, started) = world.started(intent);
        let events = vec![proposed, started, world.observed(intent, "on its way"), world.completed(intent, invocation)];
        let appends = if apart { events.into_iter().map(|event| vec![event]).collect() } else { vec![events] };
        for events in appends {
            store.commit(world.work(key, &lease, events)).await.expect("an append");
        }
        let rows = store.intents(key, false).await.expect("rows");
        let row = rows.iter().find(|row| row.intent_id == intent).expect("its row");
        assert_eq!((row.state, row.invocation_id), (IntentState::Observed, Some(invocation)), "apart: {apart}");
        assert!(store.intents(key, true).await.expect("rows").is_empty(), "apart: {apart}");
    }
    compare(store, key).await;
}
