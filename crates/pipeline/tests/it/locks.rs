//! L42: what conflicts never overlaps, over all sessions of a location; and the keys of the dead are freed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    Effects, Note, Process, World, acting, acts, call_in, follow_tokio, fresh_message, observed, proposal, runtime,
    turn_of,
};
use portcullis_base::{Clock as _, Code, SessionId, SideEffectState, limits};
use portcullis_contract::{Concurrency, Resolved, Semantics, Tool};
use portcullis_event::{Body, IntentState, State};
use portcullis_pipeline::{Append, Session};
use portcullis_store::{Liveness, SessionKey};
use proptest::prelude::*;
use tokio::sync::Notify;

const KEYS: [&str; 6] = ["fs:/a", "fs:/a/b", "fs:/a/b/c", "fs:/ab", "mcp:x", "*"];

/// Equal, one the folder of the other, or one of them everything. Written anew: the oracle of this file.
fn conflict(one: &str, other: &str) -> bool {
    if one == "*" || other == "*" {
        return true;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (one.split('/').collect(), other.split('/').collect());
    let shared = a.len().min(b.len());
    a[..shared] == b[..shared]
}

/// Who is inside, and every overlap there was.
#[derive(Default)]
struct Inside {
    now: Vec<Vec<String>>,
    overlaps: Vec<(Vec<String>, Vec<String>)>,
    most: usize,
}

impl Inside {
    fn enter(&mut self, keys: &[String]) {
        let clashes = |held: &&Vec<String>| held.iter().any(|h| keys.iter().any(|k| conflict(h, k)));
        let found: Vec<Vec<String>> = self.now.iter().filter(clashes).cloned().collect();
        self.overlaps.extend(found.into_iter().map(|held| (held, keys.to_vec())));
        self.now.push(keys.to_vec());
        self.most = self.most.max(self.now.len());
    }

    fn leave(&mut self, keys: &[String]) {
        let at = self.now.iter().position(|held| held == keys).expect("it was inside");
        self.now.remove(at);
    }
}

/// `text` is `<keys, comma separated>;<milliseconds of work>`.
fn parts(text: &str) -> (Vec<String>, u64) {
    let (keys, work) = text.split_once(';').expect("keys and work");
    (keys.split(',').map(str::to_owned).collect(), work.parse().expect("a number"))
}

fn working(inside: &Arc<Mutex<Inside>>) -> Tool {
    let inside = Arc::clone(inside);
    let run = move |input: Note, _| {
        let inside = Arc::clone(&inside);
        async move {
            let (keys, work) = parts(&input.text);
            inside.lock().expect("nobody panics").enter(&keys);
            tokio::time::sleep(Duration::from_millis(work)).await;
            inside.lock().expect("nobody panics").leave(&keys);
            Ok("done".to_owned())
        }
    };
    acting(Semantics { concurrency: Concurrency::Keyed, ..acts() }, run)
        .keyed()
        .resolve(|input, _| Ok(Resolved { keys: parts(&input.text).0, ..Resolved::default() }))
        .build()
        .expect("a sound tool")
}

/// A process of its own for a new session of the same location.
async fn neighbour(world: &World, tool: Tool) -> Process {
    let session = SessionId::make(&*world.ids, world.clock.now());
    world.create(session).await;
    let mut process = world.process([("t", tool)]);
    process.session = session;
    process
}

fn job() -> impl Strategy<Value = String> {
    (prop::collection::btree_set(0..KEYS.len(), 1..3), 0..60u64).prop_map(|(keys, work)| {
        let keys: Vec<&str> = keys.into_iter().map(|k| KEYS[k]).collect();
        format!("{};{work}", keys.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l42_conflicting_keys_of_several_sessions_never_overlap(
        sessions in prop::collection::vec(prop::collection::vec(job(), 1..6), 2..5)
    ) {
        runtime().block_on(async {
            let world = World::new().await;
            let inside: Arc<Mutex<Inside>> = Arc::default();
            let tool = working(&inside);
            let clock = follow_tokio(&world.clock);
            let mut running = tokio::task::JoinSet::new();
            for jobs in sessions {
                let process = neighbour(&world, tool.clone()).await;
                running.spawn(async move {
                    let session = process.open().await;
                    for job in jobs {
                        let input = serde_json::json!({ "text": job }).to_string();
                        let (seen, _) = call_in(&session, "t", &input).await.expect("no halt");
                        assert!(observed(&seen).ok, "no deadlock and no starvation: {:?}", observed(&seen).summary);
                    }
                });
            }
            while let Some(ended) = running.join_next().await {
                ended.expect("no panic");
            }
            drop(clock);
            let inside = inside.lock().expect("nobody panicked");
            prop_assert!(inside.overlaps.is_empty(), "{:?}", inside.overlaps);
            prop_assert!(inside.now.is_empty());
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn l42_keys_that_do_not_conflict_do_overlap() {
    let world = World::new().await;
    let inside: Arc<Mutex<Inside>> = Arc::default();
    let tool = working(&inside);
    let _clock = follow_tokio(&world.clock);
    let (one, two) = (neighbour(&world, tool.clone()).await, neighbour(&world, tool).await);
    let (a, b) = tokio::join!(one.call("t", "fs:/a;500"), two.call("t", "fs:/ab;500"));
    assert!(observed(&a).ok && observed(&b).ok);
    assert_eq!(inside.lock().expect("nobody panicked").most, 2, "a neighbour is not a child");
}

#[tokio::test(start_paused = true)]
async fn l42_conflicting_calls_of_one_session_never_overlap_either() {
    let world = World::new().await;
    let inside: Arc<Mutex<Inside>> = Arc::default();
    let process = world.process([("t", working(&inside))]);
    let _clock = follow_tokio(&world.clock);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admit = |job: &str| {
        let input = serde_json::json!({ "text": job }).to_string();
        session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", &input)).spawned()
    };
    let both = [admit("fs:/a;300"), admit("fs:/a/b;300"), admit("fs:/a;100")];
    for admission in both {
        let (facts, seen) = admission.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        assert!(observed(&seen).ok, "{:?}", observed(&seen).summary);
    }
    let inside = inside.lock().expect("nobody panicked");
    assert!(inside.overlaps.is_empty(), "{:?}", inside.overlaps);
}

#[tokio::test(start_paused = true)]
async fn l42_an_exclusive_call_is_alone_in_its_location() {
    let world = World::new().await;
    let inside: Arc<Mutex<Inside>> = Arc::default();
    let seen = Arc::clone(&inside);
    let alone = acting(acts(), move |_, _| {
        let seen = Arc::clone(&seen);
        async move {
            let keys = vec!["*".to_owned()];
            seen.lock().expect("nobody panics").enter(&keys);
            tokio::time::sleep(Duration::from_millis(200)).await;
            seen.lock().expect("nobody panics").leave(&keys);
            Ok(String::new())
        }
    });
    let _clock = follow_tokio(&world.clock);
    let one = neighbour(&world, alone.build().expect("a sound tool")).await;
    let two = neighbour(&world, working(&inside)).await;
    let (a, b) = tokio::join!(one.call("t", "x"), two.call("t", "mcp:x;200"));
    assert!(observed(&a).ok && observed(&b).ok);
    assert!(inside.lock().expect("nobody panicked").overlaps.is_empty());
}

/// Takes the key `fs:/a` and never gives it back by itself.
fn stuck(effects: &Effects, entered: &Arc<Notify>) -> Tool {
    let (effects, entered) = (effects.clone(), Arc::clone(entered));
    let run = move |_: Note, _| {
        let (effects, entered) = (effects.clone(), Arc::clone(&entered));
        async move {
            effects.add("stuck");
            entered.notify_one();
            std::future::pending().await
        }
    };
    acting(Semantics { concurrency: Concurrency::Keyed, ..acts() }, run)
        .keyed()
        .resolve(|_, _| Ok(Resolved { keys: vec!["fs:/a".to_owned()], ..Resolved::default() }))
        .build()
        .expect("a sound tool")
}

async fn hold(process: &Process, entered: &Notify) -> (Session, portcullis_base::IntentId) {
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admission =
        session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", r#"{"text":"x"}"#)).spawned();
    let intent = admission.intent_id();
    entered.notified().await;
    (session, intent)
}

#[tokio::test(start_paused = true)]
async fn l42_l73_a_key_of_the_dead_is_freed_and_its_call_is_unknown() {
    let world = World::new().await;
    let entered = Arc::new(Notify::new());
    let dead = world.process([("t", stuck(&world.effects, &entered))]);
    let (_held, intent) = hold(&dead, &entered).await;
    world.liveness.set(dead.owner.worker, Liveness::Dead);

    let inside: Arc<Mutex<Inside>> = Arc::default();
    let next = neighbour(&world, working(&inside)).await;
    let _clock = follow_tokio(&world.clock);
    let begun = tokio::time::Instant::now();
    let seen = next.call("t", "fs:/a/b;1").await;
    assert!(observed(&seen).ok, "{:?}", observed(&seen).summary);
    assert!(begun.elapsed() < Duration::from_secs(2), "a proven death is not waited out: {:?}", begun.elapsed());

    let told: Vec<_> = world.observations().await.into_iter().filter(|o| o.intent_id == intent).collect();
    let [told] = told.as_slice() else { panic!("exactly one: {told:?}") };
    assert_eq!((told.code.known(), told.side_effects.state), (Some(Code::OutcomeUnknown), SideEffectState::Unknown));
    let events = world.events().await;
    assert!(events.iter().any(|e| matches!(e.body(), Body::CallRecovered(r) if r.intent_id == intent)));
    assert_eq!(State::fold(&events).intents.open().count(), 0);
    let rows = world.store.intents(world.key(), false).await.expect("rows");
    assert!(rows.iter().all(|row| row.state == IntentState::Observed));
    assert_eq!(world.effects.all(), ["stuck"], "it is never run again");
    // The one that recovered it did not keep the session.
    let head = world.store.head(world.key()).await.expect("head").expect("there");
    assert_eq!(head.lease_owner, None);
    let other = world.store.head(SessionKey { session: next.session, ..world.key() }).await.expect("head");
    assert!(other.is_some());
}

#[tokio::test(start_paused = true)]
async fn l42_a_key_of_a_process_of_unknown_fate_is_respected() {
    let world = World::new().await;
    let entered = Arc::new(Notify::new());
    let holder = world.process([("t", stuck(&world.effects, &entered))]);
    let (_held, intent) = hold(&holder, &entered).await;
    let next = neighbour(&world, working(&Arc::default())).await;
    let _clock = follow_tokio(&world.clock);
    let seen = next.call("t", "fs:/a;1").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::LockConflict));
    assert!(world.observations().await.iter().all(|o| o.intent_id != intent), "nobody settled it for the living");
}

/// A call of the first holder is stuck in `fs:/a`; its lease ends as `fate` says. How long the successor's call with `keys`
/// takes, in the same session.
async fn after_a_takeover(fate: Liveness, keys: &str) -> Duration {
    let world = World::new().await;
    let entered = Arc::new(Notify::new());
    let lost = world.process([("t", stuck(&world.effects, &entered))]);
    let (held, intent) = hold(&lost, &entered).await;
    world.liveness.set(lost.owner.worker, fate);
    // By the store's clock the lease is over; the holder, whose own time stands still, knows nothing of it.
    world.clock.jump_to(world.clock.now().plus(limits::LEASE_TTL));
    let next = world.process([("t", working(&Arc::default()))]);
    let session = next.open().await;
    let _clock = follow_tokio(&world.clock);
    session.attend().await.expect("attended");
    let told = world.observations().await;
    assert!(told.iter().any(|o| o.intent_id == intent && o.code.known() == Some(Code::OutcomeUnknown)));
    let begun = tokio::time::Instant::now();
    let input = serde_json::json!({ "text": format!("{keys};1") }).to_string();
    let (seen, _) = call_in(&session, "t", &input).await.expect("no halt");
    assert!(observed(&seen).ok, "{:?}", observed(&seen).summary);
    drop(held);
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn f05_what_conflicts_with_a_call_of_a_lost_holder_waits_until_that_must_have_stopped() {
    let short = Duration::from_secs(1);
    for keys in ["fs:/a", "fs:/a/b", "*"] {
        let waited = after_a_takeover(Liveness::Unknown, keys).await;
        assert!(waited >= limits::EFFECT_GRACE && waited < limits::EFFECT_GRACE + short, "{keys}: {waited:?}");
    }
    let waited = after_a_takeover(Liveness::Unknown, "fs:/b").await;
    assert!(waited < short, "what does not conflict starts at once: {waited:?}");
    let waited = after_a_takeover(Liveness::Dead, "fs:/a").await;
    assert!(waited < short, "a dead holder does nothing any more: {waited:?}");
}

/// The call that finds the key held and recovers its holder is the first that could run into it.
#[tokio::test(start_paused = true)]
async fn f05_whoever_recovers_a_lost_holder_for_its_key_waits_as_well() {
    let world = World::new().await;
    let entered = Arc::new(Notify::new());
    let lost = world.process([("t", stuck(&world.effects, &entered))]);
    let (_held, intent) = hold(&lost, &entered).await;
    world.liveness.set(lost.owner.worker, Liveness::Unknown);
    world.clock.jump_to(world.clock.now().plus(limits::LEASE_TTL));
    let next = neighbour(&world, working(&Arc::default())).await;
    let _clock = follow_tokio(&world.clock);
    let begun = tokio::time::Instant::now();
    let seen = next.call("t", "fs:/a/b;1").await;
    assert!(observed(&seen).ok, "{:?}", observed(&seen).summary);
    assert!(begun.elapsed() >= limits::EFFECT_GRACE, "{:?}", begun.elapsed());
    assert!(world.observations().await.iter().any(|o| o.intent_id == intent));
}

/// Every call of the command line is a process of its own: what one recovered, the next must wait for, in whichever session.
#[tokio::test(start_paused = true)]
async fn f05_a_process_that_recovered_nothing_waits_for_the_lost_holder_too() {
    for own in [true, false] {
        let world = World::new().await;
        let entered = Arc::new(Notify::new());
        let lost = world.process([("t", stuck(&world.effects, &entered))]);
        let (_held, intent) = hold(&lost, &entered).await;
        world.liveness.set(lost.owner.worker, Liveness::Unknown);
        world.clock.jump_to(world.clock.now().plus(limits::LEASE_TTL));
        let recovering = world.process([("t", working(&Arc::default()))]).open().await;
        recovering.attend().await.expect("attended");
        recovering.release().await.expect("released");
        assert!(world.observations().await.iter().any(|o| o.intent_id == intent), "its end is told at once");

        let next = match own {
            true => world.process([("t", working(&Arc::default()))]),
            false => neighbour(&world, working(&Arc::default())).await,
        };
        let apart = neighbour(&world, working(&Arc::default())).await;
        let _clock = follow_tokio(&world.clock);
        let begun = tokio::time::Instant::now();
        assert!(observed(&apart.call("t", "fs:/b;1").await).ok);
        assert!(begun.elapsed() < Duration::from_secs(1), "what does not conflict starts at once");
        let seen = next.call("t", "fs:/a/b;1").await;
        assert!(observed(&seen).ok, "own {own}: {:?}", observed(&seen).summary);
        let waited = begun.elapsed();
        let most = limits::EFFECT_GRACE + Duration::from_secs(1);
        assert!(waited >= limits::EFFECT_GRACE && waited < most, "own {own}: {waited:?}");
        let begun = tokio::time::Instant::now();
        assert!(observed(&next.call("t", "fs:/a;1").await).ok);
        assert!(begun.elapsed() < Duration::from_secs(1), "and no lock is left: {:?}", begun.elapsed());
    }
}
