//! What a log looks like whatever happened: one observation for each intent, the event string of tool-contract §22,
//! a fold that is the state, and one writer at a time.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use common::{
    Effects, Process, World, acting, acts, call_in, change, fresh_message, look, observed, parked, proposal, runtime,
    turn_of,
};
use portcullis_base::{AppendId, AskId, Clock as _, Code, Digest, EventId, IntentId, InvocationId, WorkerId};
use portcullis_contract::{Background, Concurrency, DefaultPolicy, Resolved, Semantics, Tool, ToolFailure};
use portcullis_event::facts::Reply;
use portcullis_event::{Actor, Body, Draft, Event, EventType, FOLD_VERSION, State};
use portcullis_pipeline::{Append, Disposition, Halt, Session};
use portcullis_store::{AskFilter, Commit, Liveness, Snapshot, Store};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};
use proptest::prelude::*;
use tokio::sync::Notify;

// --- the language of tool-contract §22, and a matcher of its own --------------------------------------------------

enum Re {
    Token(char),
    Sequence(Vec<Re>),
    Either(Vec<Re>),
    Many(Box<Re>),
}

/// `iv*` and the like: letters, `*`, `+`, `?`, groups and `|`.
fn parse(pattern: &str) -> Re {
    fn either(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Re {
        let mut branches = vec![sequence(text)];
        while text.next_if_eq(&'|').is_some() {
            branches.push(sequence(text));
        }
        Re::Either(branches)
    }
    fn sequence(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Re {
        let mut parts = Vec::new();
        while let Some(c) = text.next_if(|c| *c != '|' && *c != ')') {
            let part = || -> Re { Re::Token(c) };
            let (one, again) = if c == '(' {
                let mut ahead = text.clone();
                let one = either(text);
                let again = either(&mut ahead);
                let closed = text.next();
                assert_eq!(closed, Some(')'));
                (one, again)
            } else {
                (part(), part())
            };
            match text.peek() {
                Some('*') => parts.push(Re::Many(Box::new(one))),
                Some('+') => parts.extend([one, Re::Many(Box::new(again))]),
                Some('?') => parts.push(Re::Either(vec![one, Re::Sequence(Vec::new())])),
                _ => {
                    parts.push(one);
                    continue;
                }
            }
            text.next();
        }
        Re::Sequence(parts)
    }
    either(&mut pattern.chars().peekable())
}

/// Where a match that begins at one of `from` can end.
fn ends(re: &Re, text: &[char], from: &BTreeSet<usize>) -> BTreeSet<usize> {
    match re {
        Re::Token(c) => from.iter().filter(|at| text.get(**at) == Some(c)).map(|at| at + 1).collect(),
        Re::Sequence(parts) => parts.iter().fold(from.clone(), |at, part| ends(part, text, &at)),
        Re::Either(branches) => branches.iter().flat_map(|branch| ends(branch, text, from)).collect(),
        Re::Many(inner) => {
            let mut all = from.clone();
            loop {
                let more = ends(inner, text, &all);
                if more.is_subset(&all) {
                    return all;
                }
                all.extend(more);
            }
        }
    }
}

/// `i`ntent `l`ookup `v`alidation `p`ermission `a`sked `r`eplied `c`losed s`q`ueued `s`tarted `d`one
/// `u`nknown (recovered) e`x`tra artifact pro`g`ress e`f`fected `b`ackgrounded `t`ask ended `E`. An approval that is void at
/// dispatch is closed there, after the re-check that voided it; one that was given to a held call, where the call
/// stands. A call that goes into the background has its
/// observation before its end (docs/decisions/pipeline-and-recovery.md, "A background task has its observation first").
const LANGUAGE: &str = "ilE\
    |ilv+p?v*q?v*E\
    |ilv+pa(c|r)v*q?v*E\
    |ilv+parv*q?v*cE\
    |ilv+p(ar)?v*qv*(s(g|p(a(c|rc?))?)*(f(g|p(a(c|rc?))?)*)?(d|u))+x*E\
    |ilv+p(ar)?v*qv*sg*bEg*(dx*|u)t";

fn in_language(word: &str) -> bool {
    let text: Vec<char> = word.chars().collect();
    ends(&parse(LANGUAGE), &text, &BTreeSet::from([0])).contains(&text.len())
}

#[test]
fn l20_the_matcher_knows_the_language() {
    for word in [
        "ilE",
        "ilvE",
        "ilvpE",
        "ilvpqsdE",
        "ilvpqsdxxE",
        "ilvparvqsdE",
        "ilvpacvE",
        "ilvparvE",
        "ilvparvcE",
        "ilvpqsuE",
        "ilvparcE",
        "ilvpqsgggdxE",
        "ilvpqsbEdt",
        "ilvpqsgbEggdxxt",
        "ilvparvqsbEut",
        "ilvpqspdE",
        "ilvpqspparggpacdE",
        "ilvparvqsgparcdE",
        "ilvpqsparuE",
        "ilvpqspacuE",
    ] {
        assert!(in_language(word), "{word}");
    }
    for word in [
        "",
        "iE",
        "il",
        "ilEE",
        "ilsdE",
        "ilvqsdE",
        "ilvpsdE",
        "ilvpqsE",
        "ilvpqdE",
        "ilvpqsdEx",
        "ilvplE",
        "ilvpaE",
        "ilvpaqsdE",
        "ilvpacqsdE",
        "ilvpqsdpE",
        "ilxE",
        "ilvpqsdvE",
        "ilvpqgsdE",
        "ilvpqsdgE",
        "ilvpqsbE",
        "ilvpqsbEd",
        "ilvpqsbdEt",
        "ilvpqsEbdt",
        "ilvpqsbEdtg",
        "ilvpqsbEdtE",
        "ilvpqsbEdtt",
        "ilvpqsdEt",
        "ilvpqspadE",
        "ilvpqspagrdE",
        "ilvpqsardE",
        "ilvpqsdpE",
        "ilvpqspbEdt",
    ] {
        assert!(!in_language(word), "{word}");
    }
}

/// The event string of every intent of a log.
fn words(events: &[Event]) -> BTreeMap<IntentId, String> {
    let mut words: BTreeMap<IntentId, String> = BTreeMap::new();
    let mut asks: BTreeMap<AskId, IntentId> = BTreeMap::new();
    let mut started: BTreeMap<InvocationId, IntentId> = BTreeMap::new();
    for event in events {
        let found = match event.body() {
            Body::IntentProposed(b) => Some((b.intent_id, 'i')),
            Body::LookedUp(b) => Some((b.intent_id, 'l')),
            Body::InputValidated(b) => Some((b.intent_id, 'v')),
            Body::PermissionDecided(b) => Some((b.intent_id, 'p')),
            Body::PermissionAsked(b) => {
                asks.insert(b.ask_id, b.intent_id);
                Some((b.intent_id, 'a'))
            }
            Body::AskReplied(b) => asks.get(&b.ask_id).map(|id| (*id, 'r')),
            Body::AskClosed(b) => asks.get(&b.ask_id).map(|id| (*id, 'c')),
            Body::Scheduled(b) => Some((b.intent_id, 'q')),
            Body::InvocationStarted(b) => {
                started.insert(b.invocation_id, b.intent_id);
                Some((b.intent_id, 's'))
            }
            Body::InvocationProgressed(b) => started.get(&b.invocation_id).map(|id| (*id, 'g')),
            Body::InvocationEffected(b) => Some((b.intent_id, 'f')),
            Body::InvocationBackgrounded(b) => started.get(&b.invocation_id).map(|id| (*id, 'b')),
            Body::TaskCompleted(b) => Some((b.intent_id, 't')),
            Body::InvocationCompleted(b) => Some((b.intent_id, 'd')),
            Body::CallRecovered(b) => Some((b.intent_id, 'u')),
            Body::ArtifactStored(b) => b.intent_id.map(|id| (id, 'x')),
            Body::Observed(b) => Some((b.intent_id, 'E')),
            _ => None,
        };
        if let Some((id, letter)) = found {
            words.entry(id).or_default().push(letter);
        }
    }
    words
}

// --- random lives -------------------------------------------------------------------------------------

const TOOLS: [&str; 10] = ["look", "change", "asks", "fails", "breaks", "long", "nowhere", "picky", "task", "script"];

#[derive(Debug, Clone)]
enum Op {
    /// Which tool, with which input.
    Call(usize, &'static str),
    /// The process dies in this call, at its n-th store call from now.
    Crash(usize, u64, FaultKind),
    Reply(prop::sample::Index, Reply),
    /// A day passes.
    Expire,
    Attend,
    /// Tasks get on.
    Wait,
    /// Another process takes over; with `changed` its asking tool is another one.
    Restart {
        changed: bool,
    },
    /// The rules change.
    Rules(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let input = prop_oneof![
        6 => Just(r#"{"text":"x"}"#),
        1 => Just(r#"{"text":"denied"}"#),
        1 => Just("[]"),
        1 => Just(r#"{"text":1}"#),
    ];
    let kind = prop::sample::select(FaultKind::ALL.to_vec());
    let reply = prop_oneof![3 => Just(Reply::AllowOnce), 1 => Just(Reply::Deny), 1 => Just(Reply::DenyAndStop)];
    prop_oneof![
        8 => (0..TOOLS.len(), input).prop_map(|(tool, input)| Op::Call(tool, input)),
        3 => Just(Op::Call(2, r#"{"text":"x"}"#)),
        3 => (0..TOOLS.len(), 1..4u64, kind).prop_map(|(tool, nth, kind)| Op::Crash(tool, nth, kind)),
        4 => (any::<prop::sample::Index>(), reply).prop_map(|(which, reply)| Op::Reply(which, reply)),
        1 => Just(Op::Expire),
        3 => Just(Op::Attend),
        2 => Just(Op::Call(8, r#"{"text":"x"}"#)),
        2 => prop_oneof![Just(r#"{"text":"x"}"#), Just(r#"{"text":"denied"}"#)].prop_map(|input| Op::Call(9, input)),
        2 => Just(Op::Wait),
        2 => any::<bool>().prop_map(|changed| Op::Restart { changed }),
        1 => any::<u8>().prop_map(Op::Rules),
    ]
}

/// How long a task goes on after its observation.
const TASK_LASTS: Duration = Duration::from_secs(7);

fn task(effects: &Effects) -> Tool {
    let effects = effects.clone();
    let semantics = Semantics { backgroundable: true, stream_progress: true, ..acts() };
    let run = move |input: common::Note, context: portcullis_contract::ToolContext| {
        effects.add("task");
        async move {
            context.progress("begun");
            context.background(Background { wake: input.text == "x" })?;
            tokio::time::sleep(TASK_LASTS - Duration::from_secs(1)).await;
            context.progress("nearly done");
            Ok("long\n".repeat(20_000))
        }
    };
    // No keys that others want: what waits for a task's keys is the matter of `tasks.rs`.
    let resolve = |_: &common::Note, _: &portcullis_contract::Caller| {
        Ok(Resolved { keys: vec!["task".to_owned()], ..Resolved::default() })
    };
    acting(Semantics { concurrency: Concurrency::Keyed, ..semantics }, run)
        .keyed()
        .resolve(resolve)
        .build()
        .expect("a sound tool")
}

/// A tool that asks the gate midway, of which one is held live.
fn script(effects: &Effects) -> Tool {
    let effects = effects.clone();
    let run = move |input: common::Note, context: portcullis_contract::ToolContext| {
        let effects = effects.clone();
        async move {
            for part in ["fine", "held", &input.text] {
                context.progress(part);
                context.gate(common::touches(part)).await?;
                effects.add(part);
            }
            Ok("long\n".repeat(20_000))
        }
    };
    let semantics = Semantics { dynamic_access: true, stream_progress: true, ..acts() };
    acting(semantics, run).parts_are_intents().build().expect("a sound tool")
}

fn tools(effects: &Effects, changed: bool) -> Vec<(&'static str, Tool)> {
    let asking = if changed { DefaultPolicy::AskPinned } else { DefaultPolicy::Ask };
    let (failed, broken, picky) = (effects.clone(), effects.clone(), effects.clone());
    let fails = acting(acts(), move |_, _| {
        failed.add("fails");
        async { Err::<String, _>(ToolFailure::new("no", "no")) }
    });
    let breaks = acting(acts(), move |_, _| {
        broken.add("breaks");
        async { panic!("broken on purpose") }
    });
    let never = acting(acts(), move |_, _| {
        picky.add("picky");
        async { Ok(String::new()) }
    })
    .precheck(|_, _, _| async { Err(portcullis_contract::Precondition::ambiguous("two of them")) });
    let long = acting(Semantics::read_only(), |_, _| async { Ok("long\n".repeat(20_000)) });
    let build =
        |builder: portcullis_contract::ToolBuilder<common::Note, String>| builder.build().expect("a sound tool");
    vec![
        ("look", look(effects)),
        ("change", change(effects, DefaultPolicy::Allow)),
        ("asks", change(effects, asking)),
        ("fails", build(fails)),
        ("breaks", build(breaks)),
        ("long", build(long)),
        ("picky", build(never)),
        ("task", task(effects)),
        ("script", script(effects)),
    ]
}

fn rules(n: u8) -> String {
    let denied = "[[rules]]\nid = \"no\"\naction = \"change\"\npath = \"/workspace/denied\"\neffect = \"deny\"\n";
    let held = "[[rules]]\nid = \"held\"\naction = \"change\"\npath = \"/workspace/held\"\neffect = \"ask\"\n";
    format!("{denied}{held}[[rules]]\nid = \"other\"\naction = \"other{n}\"\neffect = \"deny\"\n")
}

/// The event as another process reads it: from its bytes alone.
fn reread(event: &Event) -> Event {
    let text = serde_json::to_string(event).expect("json");
    serde_json::from_str(&text).expect("an event")
}

/// Answers the asks that calls hold live, one way and the other, for as long as it is awaited.
async fn answer_held(world: &World, tool: usize) {
    if TOOLS[tool] != "script" {
        std::future::pending::<()>().await;
    }
    let mut answered = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_millis(700)).await;
        for event in world.events().await {
            if let Body::PermissionAsked(asked) = event.body()
                && asked.held_by.is_some()
                && answered.insert(asked.ask_id)
            {
                let reply = if event.seq % 3 == 0 { Reply::Deny } else { Reply::AllowOnce };
                // It may be settled already.
                let _ = world.reply(asked.ask_id, reply).await;
            }
        }
    }
}

struct Life {
    world: World,
    process: Process,
    session: Option<Session>,
    changed: bool,
}

impl Life {
    async fn begin() -> Self {
        let mut world = World::new().await;
        world.rules = rules(0);
        let process = world.process(tools(&world.effects, false));
        let session = Some(process.open().await);
        Self { world, process, session, changed: false }
    }

    /// The old process is dead and proven so; the next one attends.
    async fn restart(&mut self) {
        self.session = None;
        let head = self.world.store.head(self.world.key()).await.expect("head").expect("there");
        if let Some(owner) = head.lease_owner {
            self.world.liveness.set(owner.worker, Liveness::Dead);
        }
        self.process = self.world.process(tools(&self.world.effects, self.changed));
        let session = self.process.open().await;
        session.attend().await.expect("attended");
        self.session = Some(session);
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("a session is open between two steps")
    }

    async fn pending(&self) -> Vec<AskId> {
        let filter = AskFilter { session: None, pending: true };
        let rows = self.world.store.asks(self.world.key().tenant, filter).await.expect("asks");
        rows.into_iter().map(|row| row.ask_id).collect()
    }

    async fn step(&mut self, op: Op) {
        match op {
            Op::Call(tool, input) => {
                let called = call_in(self.session(), TOOLS[tool], input);
                tokio::select! {
                    called = called => drop(called.expect("no halt")),
                    () = answer_held(&self.world, tool) => {}
                }
            }
            Op::Crash(tool, nth, kind) => {
                self.session = None;
                let head = self.world.store.head(self.world.key()).await.expect("head").expect("there");
                self.world.liveness.set(head.lease_owner.expect("held").worker, Liveness::Dead);
                // The claim is the first call: the fault strikes later, or not at all.
                let fault = Some(Fault { nth: nth + 1, kind });
                let faulty = Arc::new(FaultyStore::new(Arc::clone(&self.world.store), fault));
                let doomed =
                    self.world.process_over(faulty as Arc<dyn Store>, tools(&self.world.effects, self.changed));
                let session = doomed.open().await;
                tokio::select! {
                    _ = call_in(&session, TOOLS[tool], r#"{"text":"crash"}"#) => {}
                    () = answer_held(&self.world, tool) => {}
                    // One that is held and cut off waits for nobody any more.
                    () = tokio::time::sleep(Duration::from_secs(5)) => {}
                }
                drop(session);
                drop(doomed);
                self.restart().await;
            }
            Op::Reply(which, reply) => {
                let pending = self.pending().await;
                if !pending.is_empty() {
                    let ask = pending[which.index(pending.len())];
                    // It may have run out meanwhile; that is an answer too.
                    let _ = self.world.reply(ask, reply).await;
                }
            }
            Op::Expire => {
                // The lease goes on; the day passes for the asks alone.
                self.restart().await;
                self.world.clock.advance(Duration::from_secs(25 * 3_600));
                self.restart().await;
            }
            Op::Attend => {
                self.session().attend().await.expect("attended");
            }
            Op::Wait => tokio::time::sleep(TASK_LASTS).await,
            Op::Restart { changed } => {
                self.changed = changed;
                self.restart().await;
            }
            Op::Rules(n) => {
                self.world.rules = rules(n);
                self.process.gate.set_policy(self.world.policy());
            }
        }
    }

    /// Answers what waits and settles what is open.
    async fn end(&mut self) {
        for ask in self.pending().await {
            let _ = self.world.reply(ask, Reply::AllowOnce).await;
        }
        self.restart().await;
        self.session().attend().await.expect("attended");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l19_l20_l70_l71_s09_every_life_leaves_a_lawful_log(ops in prop::collection::vec(op(), 1..24)) {
        runtime().block_on(async {
            let mut life = Life::begin().await;
            for op in ops {
                life.step(op).await;
                // L71: what the process believes is what the log says, at every moment.
                let live = life.session().state();
                let log = life.world.events().await;
                let seq = usize::try_from(live.seq).expect("small");
                prop_assert_eq!(&live, &State::fold(&log[..seq]), "the live state is the fold of what it has seen");
            }
            life.end().await;
            let events = life.world.events().await;
            for (intent, word) in words(&events) {
                prop_assert_eq!(word.matches('E').count(), 1, "L19, S9: {} is {}", intent, word);
                prop_assert!(in_language(&word), "L20: {} is {}", intent, word);
            }
            prop_assert_eq!(State::fold(&events).tasks.open().count(), 0, "every task has its end");
            let rows = life.world.store.intents(life.world.key(), true).await.expect("rows");
            prop_assert!(rows.is_empty(), "{:?}", rows);

            // L70 and L71: the fold of every prefix, stepwise and at once, and without running anything.
            let before = (life.world.effects.all(), life.world.events().await.len());
            let mut stepwise = State::default();
            let whole = State::fold(&events);
            for (n, event) in events.iter().enumerate() {
                stepwise.apply(event);
                prop_assert_eq!(&stepwise, &State::fold(&events[..=n]));
                if n % 7 == 0 {
                    let kept = serde_json::to_string(&stepwise).expect("json");
                    let mut resumed: State = serde_json::from_str(&kept).expect("a state");
                    prop_assert_eq!(&resumed, &stepwise, "a snapshot is the state");
                    events.iter().for_each(|event| resumed.apply(event));
                    prop_assert_eq!(resumed.digest(), whole.digest(), "snapshot and tail are the whole");
                }
            }
            prop_assert_eq!(&stepwise, &whole);
            let reread: Vec<Event> = events.iter().map(reread).collect();
            prop_assert_eq!(&State::fold(&reread), &whole, "the bytes say what was meant when they were written");
            prop_assert_eq!(before, (life.world.effects.all(), life.world.events().await.len()), "L70: replay is inert");
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn l71_a_process_that_finds_a_snapshot_believes_what_one_without_it_does() {
    let world = World::new().await;
    let process = world.process(tools(&world.effects, false));
    process.call("change", "a").await;
    let ask = parked(&process.call("asks", "b").await);
    let events = world.events().await;
    for cut in [1, events.len() / 2, events.len()] {
        let state = serde_json::to_string(&State::fold(&events[..cut])).expect("json");
        let seq = events[cut - 1].seq;
        let digest = Digest::of(state.as_bytes());
        let snapshot = Snapshot { seq, code_version: FOLD_VERSION, state, digest };
        world.store.put_snapshot(world.key(), snapshot).await.expect("kept");
        let session = process.open().await;
        assert_eq!(session.state(), State::fold(&events), "cut at {cut}");
        session.release().await.expect("released");
    }
    // A snapshot that does not hold is ignored: the log is the truth.
    for (state, digest) in [("{}".to_owned(), Digest::of(b"other")), ("not json".to_owned(), Digest::of(b"not json"))] {
        let snapshot = Snapshot { seq: 99, code_version: FOLD_VERSION, state, digest };
        world.store.put_snapshot(world.key(), snapshot).await.expect("kept");
        let session = process.open().await;
        assert_eq!(session.state(), State::fold(&events));
        assert!(session.state().asks.get(ask).is_some());
        session.release().await.expect("released");
    }
}

/// An event as a later program might write it.
fn foreign(world: &World, kind: &str, v: u32, payload: &str) -> Draft {
    Draft {
        id: EventId::make(&*world.ids, world.clock.now()),
        kind: EventType::recorded(kind.to_owned()),
        at: world.clock.now(),
        actor: Actor::user("from the future"),
        wake_id: None,
        turn_id: None,
        session_thread_id: None,
        v,
        payload: payload.into(),
        payload_hash: Digest::of(payload.as_bytes()),
        typed: portcullis_event::DecodedBody::default(),
    }
}

/// Appends as the holder of the session: only that may append any type.
async fn append(world: &World, draft: Draft) {
    let fence = world.store.head(world.key()).await.expect("a head").expect("the session").fence;
    let append = AppendId::make(&*world.ids, world.clock.now());
    let commit = Commit::worker(world.key(), WorkerId::from_u128(1), fence, append, vec![draft]);
    world.store.commit(commit).await.expect("the holder may append any type");
}

#[tokio::test]
async fn l72_what_this_program_does_not_know_survives_and_changes_nothing() {
    let world = World::new().await;
    let process = world.process(tools(&world.effects, false));
    let ask = parked(&process.call("asks", "a").await);
    let before = State::fold(&world.events().await);
    let payloads = [
        ("dream.dreamt", 1, r#"{ "of" : "sheep",   "n": 1.50, "kept": "byte for byte" }"#),
        ("tool.observation", 99, r#"{"in":"another shape"}"#),
        ("tool.permission.closed", 1, r#"{"ask_id":12}"#),
        ("tool.intent", 1, "null"),
    ];
    for (kind, v, payload) in payloads {
        append(&world, foreign(&world, kind, v, payload)).await;
    }
    let events = world.events().await;
    for (event, (kind, v, payload)) in events[events.len() - 4..].iter().zip(payloads) {
        assert_eq!((event.kind.as_str(), event.v, event.payload.as_deref()), (kind, v, Some(payload)));
        assert!(matches!(event.body(), Body::Unknown { raw: Some(raw), .. } if raw == payload), "{kind}");
        let text = serde_json::to_string(event).expect("json");
        assert_eq!(serde_json::from_str::<Event>(&text).expect("an event"), *event, "read and written unchanged");
    }
    let after = State::fold(&events);
    assert_eq!(State { seq: before.seq, ..after.clone() }, before, "nothing but the place in the log");
    // And the session goes on.
    world.reply(ask, Reply::AllowOnce).await.expect("still pending");
    let session = process.open().await;
    assert!(observed(&session.attend().await.expect("attended")[0].disposition).ok);
}

#[tokio::test]
async fn l72_a_code_from_the_future_is_kept_verbatim() {
    let world = World::new().await;
    let process = world.process(tools(&world.effects, false));
    let seen = process.call("look", "a").await;
    let mut told = serde_json::to_value(observed(&seen)).expect("json");
    // Of another intent: one is observed once.
    told["intent_id"] = portcullis_base::IntentId::from_u128(7).to_string().into();
    told["code"] = "borrowed_time".into();
    told["phase"] = "dreaming".into();
    let payload = told.to_string();
    append(&world, foreign(&world, "tool.observation", 1, &payload)).await;
    let last = world.observations().await.pop().expect("it is an observation still");
    assert_eq!((last.code.known(), last.code.to_string().as_str()), (None, "borrowed_time"));
    assert_eq!(serde_json::to_value(&last).expect("json"), told);
    assert_eq!(last.model_view()["code"], serde_json::json!("borrowed_time"));
}

#[tokio::test]
async fn l75_of_two_processes_on_one_session_only_the_newest_writes() {
    let world = World::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, let_go, effects) = (Arc::clone(&entered), Arc::clone(&leave), world.effects.clone());
    let slow = acting(acts(), move |input: common::Note, _| {
        let (entered, leave, effects) = (Arc::clone(&inside), Arc::clone(&let_go), effects.clone());
        async move {
            entered.notify_one();
            leave.notified().await;
            effects.add(input.text);
            Ok("done".to_owned())
        }
    });
    let slow = slow.build().expect("a sound tool");
    let old = world.process([("slow", slow.clone()), ("change", change(&world.effects, DefaultPolicy::Allow))]);
    let zombie = old.open().await;
    let turn = turn_of(&zombie).await;
    let running =
        zombie.admit(Append::new(), &turn, proposal("c", fresh_message(), "slow", r#"{"text":"late"}"#)).spawned();
    entered.notified().await;

    world.liveness.set(old.owner.worker, Liveness::Dead);
    let new = world.process([("slow", slow), ("change", change(&world.effects, DefaultPolicy::Allow))]);
    let holder = new.open().await;
    let taken_over = world.store.head(world.key()).await.expect("head").expect("there").fence;
    let attended = holder.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!((seen.intent_id, seen.code.known()), (running.intent_id(), Some(Code::OutcomeUnknown)));
    let before = world.events().await;

    // The old one ends its work, and can tell nobody.
    leave.notify_one();
    let ended = match running.settled().await {
        Ok((facts, _)) => zombie.commit(facts).await,
        Err(halt) => Err(halt),
    };
    assert!(matches!(ended, Err(Halt::FenceLost(_))), "{ended:?}");
    let again = call_in(&zombie, "change", r#"{"text":"never"}"#).await;
    assert!(matches!(again, Err(Halt::FenceLost(_))), "{again:?}");
    assert!(matches!(zombie.attend().await, Ok(attended) if attended.is_empty()), "nothing is open for it");
    assert_eq!(world.events().await, before, "not a byte of it is in the log");
    assert!(!world.effects.all().contains(&"never".to_owned()), "a start that is refused has no effect");

    let (seen, _) = call_in(&holder, "change", r#"{"text":"mine"}"#).await.expect("the holder works");
    assert!(matches!(seen, Disposition::Settled(_)));
    let events = world.events().await;
    let fences: Vec<u64> = events.iter().filter_map(|e| e.fence).collect();
    assert!(fences.is_sorted(), "{fences:?}");
    let since = events.iter().filter(|e| e.seq > before.len() as u64 && e.worker_id.is_some());
    assert!(since.clone().count() > 0);
    assert!(since.clone().all(|e| e.fence == Some(taken_over) && e.worker_id == Some(new.owner.worker)));
    let observations = world.observations().await;
    assert_eq!(observations.len(), 2, "one for each intent that was ever admitted");
}
