//! L39–L41, L46: the calls of a turn overlap where nobody can see it.

use crate::common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Note, Process, World, acting, acts, fresh_message, look, observed, proposal, runtime, touches};
use portcullis_base::{Code, Risk, RiskSet, limits};
use portcullis_contract::{Concurrency, Resolved, Semantics, Tool, ToolFailure};
use portcullis_event::{Body, Observed};
use portcullis_pipeline::{Append, Disposition, Proposal, Scheduling, TurnEnd};
use portcullis_store_testkit::{CountingStore, Fault, FaultKind, FaultyStore};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

/// What the tools of a turn work on, and how many are inside at once.
#[derive(Clone, Default)]
struct Board {
    cells: Arc<Mutex<BTreeMap<String, String>>>,
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Board {
    async fn work(&self, text: &str) {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        // Later letters are quicker, so that calls end in another order than they began.
        let slow = text.bytes().next().map_or(0, |letter| u64::from(b'z'.saturating_sub(letter)));
        tokio::time::sleep(Duration::from_millis(slow)).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn cells(&self) -> BTreeMap<String, String> {
        self.cells.lock().expect("no test panics with it").clone()
    }

    /// Reads a cell, and says it so often that a turn's room for text runs out.
    fn peek(&self, semantics: Semantics) -> Tool {
        let board = self.clone();
        let peek = acting(semantics, move |input: Note, _| {
            let board = board.clone();
            async move {
                board.work(&input.text).await;
                let found = board.cells().get(&input.text[..1]).cloned().unwrap_or_default();
                Ok(format!("{}={found};", input.text).repeat(if input.text.len() > 1 { 12_000 } else { 1 }))
            }
        });
        peek.build().expect("a sound tool")
    }

    /// Appends to a cell.
    fn put(&self) -> Tool {
        let board = self.clone();
        Tool::builder::<Note, String>("Appends to a cell.")
            .semantics(Semantics { concurrency: Concurrency::Keyed, ..acts() })
            .plan_access(|input, _| vec![touches(&input.text)])
            .resolve(|input: &Note, _| {
                let keys = vec![format!("cell:/{}", &input.text[..1])];
                Ok(Resolved { keys, ..Resolved::default() })
            })
            .keyed()
            .execute(move |input, _| {
                let board = board.clone();
                async move {
                    board.work(&input.text).await;
                    let mut cells = board.cells.lock().expect("no test panics with it");
                    let cell = cells.entry(input.text[..1].to_owned()).or_default();
                    cell.push_str(&input.text);
                    Ok(cell.clone())
                }
            })
            .build()
            .expect("a sound tool")
    }

    /// Works like the others and then fails.
    fn sulk(&self) -> Tool {
        let board = self.clone();
        let sulk = acting(Semantics::read_only(), move |input: Note, _| {
            let board = board.clone();
            async move {
                board.work(&input.text).await;
                Err(ToolFailure::new("sulking", format!("not {}", input.text)))
            }
        });
        sulk.build().expect("a sound tool")
    }

    /// Empties a cell and then fails: what it did stays.
    fn spoil(&self) -> Tool {
        let board = self.clone();
        let spoil = acting(acts(), move |input: Note, context| {
            let board = board.clone();
            async move {
                board.work(&input.text).await;
                board.cells.lock().expect("no test panics with it").remove(&input.text);
                context.did(common::happened(&input.text));
                Err(ToolFailure::new("spoiled", format!("{} is empty", input.text)))
            }
        });
        spoil.build().expect("a sound tool")
    }

    fn tools(&self) -> Vec<(&'static str, Tool)> {
        let network = RiskSet::from([Risk::Read, Risk::Network]);
        let fetch = Semantics { risk: network, ..Semantics::read_only() };
        vec![
            ("peek", self.peek(Semantics::read_only())),
            ("fetch", self.peek(fetch)),
            ("put", self.put()),
            ("sulk", self.sulk()),
            ("spoil", self.spoil()),
        ]
    }
}

/// A turn's calls as a person writes them: `tool:text`.
fn turn_calls(calls: &[&str]) -> Vec<Proposal> {
    let message = fresh_message();
    let each = |(n, call): (usize, &&str)| {
        let (tool, text) = call.split_once(':').expect("tool:text");
        proposal(&format!("c{n}"), message, tool, &serde_json::json!({ "text": text }).to_string())
    };
    calls.iter().enumerate().map(each).collect()
}

async fn run(process: &Process, calls: &[&str], scheduling: Scheduling) -> TurnEnd {
    let session = process.open().await;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let cancel = CancellationToken::new();
    let end = session.calls(facts, &turn, turn_calls(calls), scheduling, &cancel);
    let end = tokio::time::timeout(Duration::from_secs(60), end).await.expect("a turn comes to its end");
    let TurnEnd { mut facts, calls, rest } = end.expect("no halt");
    facts.idle();
    session.commit(facts).await.expect("committed");
    session.release().await.expect("released");
    TurnEnd { facts: Append::new(), calls, rest }
}

/// What an observation says, without ids and times.
fn said(seen: &Observed) -> serde_json::Value {
    let mut view = seen.model_view();
    if let Some(fields) = view.as_object_mut() {
        fields.remove("durationMs");
    }
    let text = view.to_string();
    // Ids of artifacts differ from run to run; everything else of the text counts.
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("art_") {
        out.push_str(&rest[..at]);
        out.push_str("art");
        rest = rest[at + 4..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    out.push_str(rest);
    serde_json::Value::String(out)
}

fn outcome(calls: &[&str], scheduling: Scheduling) -> (Vec<serde_json::Value>, BTreeMap<String, String>, usize) {
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let process = world.process(board.tools());
        let _ = run(&process, calls, scheduling).await;
        let seen = world.observations().await.iter().map(said).collect();
        (seen, board.cells(), board.most.load(Ordering::SeqCst))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn l39_l40_a_turn_means_the_same_at_any_width(
        calls in prop::collection::vec(
            prop_oneof![
                4 => "(peek|fetch|sulk):[a-e]", 2 => "put:[a-e]{1,2}", 1 => "spoil:[a-e]", 1 => "peek:[a-e]{2}", 1 => "nosuch:[a-e]"
            ],
            1..14,
        ),
    ) {
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let serial = outcome(&calls, Scheduling::Sequential);
        let wide = outcome(&calls, Scheduling::Segmented);
        prop_assert_eq!(serial.2.min(1), serial.2, "one at a time");
        prop_assert!(wide.2 <= limits::MAX_PARALLEL_SAFE);
        prop_assert_eq!(&serial.0.len(), &calls.len(), "one observation for each call");
        prop_assert_eq!(serial.0, wide.0);
        prop_assert_eq!(serial.1, wide.1);
    }
}

#[test]
fn l39_the_room_for_text_of_a_turn_is_given_in_call_order() {
    // Each says more than its share, the first ends last, and there is not room for all of them.
    let calls = ["peek:aa", "peek:bb", "peek:cc", "peek:dd", "peek:ee", "peek:ff"];
    let (serial, wide) = (outcome(&calls, Scheduling::Sequential), outcome(&calls, Scheduling::Segmented));
    let lengths = |seen: &[serde_json::Value]| seen.iter().map(|said| said.to_string().len()).collect::<Vec<_>>();
    let first = lengths(&serial.0);
    assert!(first[5] * 4 < first[0], "the last one gets what is left: {first:?}");
    assert_eq!(first, lengths(&wide.0));
    assert_eq!(serial.0, wide.0);
    assert_eq!(wide.2, 6);
}

#[test]
fn l40_safe_calls_run_together_and_end_in_their_order() {
    let calls = ["peek:a", "peek:e", "peek:c", "fetch:b", "fetch:e"];
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let process = world.process(board.tools());
        let begun = tokio::time::Instant::now();
        let end = run(&process, &calls, Scheduling::Segmented).await;
        assert_eq!((end.calls.len(), end.rest.len()), (5, 0));
        assert_eq!(board.most.load(Ordering::SeqCst), 5, "all of them at once");
        assert!(begun.elapsed() < Duration::from_millis(27), "as long as the slowest: {:?}", begun.elapsed());
        let order: Vec<String> = world.observations().await.into_iter().map(|o| o.call_id).collect();
        assert_eq!(order, ["c0", "c1", "c2", "c3", "c4"]);
    });
}

#[test]
fn l41_no_segment_begins_before_the_one_before_is_durable() {
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let seen_before: Arc<Mutex<Vec<usize>>> = Arc::default();
        let (store, key, notes) = (Arc::clone(&world.store), world.key(), Arc::clone(&seen_before));
        let count = acting(acts(), move |_, _| {
            let (store, notes) = (Arc::clone(&store), Arc::clone(&notes));
            async move {
                let log = store.read(key, 0, 10_000).await.expect("a page");
                let ended = log.iter().filter(|event| matches!(event.body(), Body::Observed(_))).count();
                notes.lock().expect("no test panics with it").push(ended);
                Ok("counted".to_owned())
            }
        });
        let mut tools = board.tools();
        tools.push(("count", count.build().expect("a sound tool")));
        let process = world.process(tools);
        let calls = ["peek:a", "peek:e", "count:x", "count:x", "fetch:b", "peek:a", "count:x"];
        let end = run(&process, &calls, Scheduling::Segmented).await;
        assert_eq!(end.calls.len(), 7);
        assert_eq!(*seen_before.lock().expect("no test panics with it"), [2, 3, 6]);
    });
}

#[test]
fn l23_a_whole_segment_of_looks_is_one_append() {
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let counting = Arc::new(CountingStore::new(Arc::clone(&world.store)));
        let process = world.process_over(Arc::clone(&counting) as _, board.tools());
        let session = process.open().await;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let before = counting.counts().commits;
        let calls = turn_calls(&["peek:a", "peek:b", "peek:c"]);
        let end = session.calls(facts, &turn, calls, Scheduling::Segmented, &CancellationToken::new()).await;
        let end = end.expect("no halt");
        assert_eq!(counting.counts().commits - before, 0, "nothing had to be written on the way");
        session.commit(end.facts).await.expect("committed");
        assert_eq!(counting.counts().commits - before, 1);
        assert_eq!(world.observations().await.len(), 3);
        let types = world.types().await;
        assert_eq!(types[0], "tool.menu", "the menu stands before what rests on it (L17)");
    });
}

#[tokio::test]
async fn r1_a_call_that_waits_for_a_person_holds_back_what_comes_after_it() {
    let mut world = World::new().await;
    world.rules = "[[rules]]\naction = \"ask_me\"\neffect = \"ask\"\n".to_owned();
    let board = Board::default();
    let mut tools = board.tools();
    tools.push(("ask_me", look(&world.effects)));
    let process = world.process(tools);
    let end = run(&process, &["peek:a", "ask_me:x", "peek:e", "put:a", "peek:a"], Scheduling::Segmented).await;
    let kinds: Vec<&str> =
        end.calls.iter().map(|call| if let Disposition::Parked(_) = call { "parked" } else { "settled" }).collect();
    assert_eq!(kinds, ["settled", "parked", "settled"], "its own segment runs to the end");
    let rest: Vec<&str> = end.rest.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(rest, ["put", "peek"], "kept, not refused");
    assert!(board.cells().is_empty(), "and not run");
    let types = world.types().await;
    let at = |kind: &str| types.iter().position(|t| t == kind).expect("it is there");
    assert!(at("tool.menu") < at("tool.intent"), "{types:?}");
}

#[tokio::test]
async fn a_repeated_call_of_one_turn_is_refused_and_not_run_twice() {
    let world = World::new().await;
    let board = Board::default();
    let process = world.process(board.tools());
    let session = process.open().await;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let mut calls = turn_calls(&["peek:a", "peek:a"]);
    calls[1].call_id = calls[0].call_id.clone();
    let end = session.calls(facts, &turn, calls, Scheduling::Segmented, &CancellationToken::new()).await;
    let end = end.expect("no halt");
    let codes: Vec<_> = end.calls.iter().map(|call| observed(call).code.known()).collect();
    assert_eq!(codes, [Some(Code::Ok), Some(Code::DuplicateCall)]);
    session.commit(end.facts).await.expect("committed");
}

#[test]
fn l24_a_cancelled_turn_stops_what_runs_and_begins_nothing_more() {
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let process = world.process(board.tools());
        let session = process.open().await;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            later.cancel();
        });
        let calls = turn_calls(&["peek:a", "peek:z", "put:a"]);
        let end = session.calls(facts, &turn, calls, Scheduling::Segmented, &cancel).await.expect("no halt");
        let codes: Vec<_> = end.calls.iter().map(|call| observed(call).code.known()).collect();
        assert_eq!(codes, [Some(Code::Cancelled), Some(Code::Ok), Some(Code::CancelledBeforeStart)]);
        assert!(board.cells().is_empty());
        session.commit(end.facts).await.expect("committed");
        assert_eq!(world.observations().await.len(), 3);
    });
}

#[tokio::test(start_paused = true)]
async fn a_session_takes_only_so_many_waiting_calls() {
    let world = World::new().await;
    let gate = Arc::new(tokio::sync::Notify::new());
    let wait = Arc::clone(&gate);
    let slow = acting(acts(), move |_, _| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok("done".to_owned())
        }
    });
    let process = world.process([("slow", slow.build().expect("a sound tool"))]);
    let session = process.open().await;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    session.commit(facts).await.expect("committed");
    let call = |n: u128| proposal("c", 5_000_000 + n, "slow", r#"{"text":"x"}"#);
    let mut waiting = Vec::new();
    for n in 0..=limits::QUEUE as u128 {
        waiting.push(session.admit(Append::new(), &turn, call(n)).spawned());
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // Time stands still while anything can move: one that is not refused at once waits for ever.
    let one_more = session.admit(Append::new(), &turn, call(9_999)).settled();
    let settled = tokio::time::timeout(std::time::Duration::from_millis(100), one_more).await;
    let (facts, refused) = settled.expect("it is refused at once, not put in line").expect("no halt");
    assert_eq!(observed(&refused).code.known(), Some(Code::QueueFull));
    session.commit(facts).await.expect("committed");
    for admission in &waiting {
        admission.canceller().cancel();
    }
    gate.notify_one();
}

#[test]
fn l19_attending_leaves_a_call_of_this_process_at_work_alone() {
    runtime().block_on(async {
        let (world, board) = (World::new().await, Board::default());
        let process = world.process(board.tools());
        let session = process.open().await;
        let mut facts = Append::new();
        let turn = session.begin_turn(&mut facts);
        let calls = turn_calls(&["fetch:a", "fetch:b"]);
        let cancel = CancellationToken::new();
        let attend = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            session.attend().await.expect("no halt")
        };
        let (end, attended) = tokio::join!(session.calls(facts, &turn, calls, Scheduling::Segmented, &cancel), attend);
        assert!(attended.is_empty(), "they have started and are not lost");
        session.commit(end.expect("no halt").facts).await.expect("committed");
        let codes: Vec<_> = world.observations().await.iter().map(|seen| seen.code.known()).collect();
        assert_eq!(codes, [Some(Code::Ok), Some(Code::Ok)]);
    });
}

/// The store takes the start of the first of two reads over the network and refuses that of the second.
#[tokio::test(start_paused = true)]
async fn l19_what_ended_before_a_turn_halts_is_kept() {
    let world = World::new().await;
    let board = Board::default();
    let fault = Fault { nth: 3, kind: FaultKind::ErrorBefore };
    let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), Some(fault)));
    let process = world.process_over(Arc::clone(&store) as _, board.tools());
    let session = process.open().await;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let calls = ["a", "b"]
        .map(|text| proposal(text, fresh_message(), "fetch", &serde_json::json!({ "text": text }).to_string()));
    let ended = session.calls(facts, &turn, calls.into(), Scheduling::Segmented, &CancellationToken::new()).await;
    assert!(ended.is_err() && store.struck(), "the turn halts");
    let seen = world.observations().await;
    assert_eq!(seen.iter().map(|seen| (seen.call_id.as_str(), seen.ok)).collect::<Vec<_>>(), [("a", true)]);
}
