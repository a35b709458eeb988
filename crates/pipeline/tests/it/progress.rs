//! Progress (tool-contract §14): live deltas that are never durable, and few, small checkpoints that are.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Note, World, acting, acts, call_in, follow_tokio, observed};
use portcullis_base::limits;
use portcullis_contract::{Semantics, Tool, ToolContext};
use portcullis_event::Body;
use portcullis_store_testkit::CountingStore;

/// Says `1`, `2`, … as often as its text tells, so many milliseconds apart, and waits once more at the end.
fn telling(semantics: Semantics) -> Tool {
    let run = |input: Note, context: ToolContext| async move {
        let (times, pause) = input.text.split_once('x').expect("times x pause");
        let pause = Duration::from_millis(pause.parse().expect("a number"));
        for n in 1..=times.parse::<u32>().expect("a number") {
            context.progress(&n.to_string());
            tokio::time::sleep(pause).await;
        }
        Ok("done".to_owned())
    };
    acting(semantics, run).build().expect("a sound tool")
}

fn streaming() -> Semantics {
    let timeout = portcullis_contract::Timeout { default_ms: 3_600_000, max_ms: 3_600_000 };
    Semantics { stream_progress: true, timeout, ..acts() }
}

async fn checkpoints(world: &World) -> Vec<(String, portcullis_base::Timestamp)> {
    let events = world.events().await.into_iter();
    let found = events.filter_map(|event| match event.body() {
        Body::InvocationProgressed(fact) => Some((fact.checkpoint, event.at)),
        _ => None,
    });
    found.collect()
}

#[tokio::test(start_paused = true)]
async fn checkpoints_are_the_newest_words_and_five_seconds_apart() {
    let world = World::new().await;
    let _clock = follow_tokio(&world.clock);
    let process = world.process([("tell", telling(streaming()))]);
    assert!(observed(&process.call("tell", "20x1000").await).ok);
    let found = checkpoints(&world).await;
    let words: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(words.first(), Some(&"1"));
    assert!((4..=5).contains(&words.len()), "{words:?}");
    for pair in found.windows(2) {
        let apart = pair[1].1.as_micros() - pair[0].1.as_micros();
        assert!(apart >= 4_990_000, "{found:?}");
        assert!(pair[1].0.parse::<u32>().expect("a number") >= pair[0].0.parse::<u32>().expect("a number") + 4);
    }
    let types = world.types().await;
    let last = types.iter().rposition(|kind| kind == "tool.invocation.progress").expect("there");
    let end = types.iter().position(|kind| kind == "tool.invocation.completed").expect("there");
    assert!(last < end, "none comes after the end");
}

#[tokio::test(start_paused = true)]
async fn one_invocation_leaves_at_most_so_many_checkpoints() {
    let world = World::new().await;
    let _clock = follow_tokio(&world.clock);
    let process = world.process([("tell", telling(streaming()))]);
    let times = limits::PROGRESS_CHECKPOINTS + 6;
    assert!(observed(&process.call("tell", &format!("{times}x5010")).await).ok);
    let found = checkpoints(&world).await;
    assert_eq!(found.len(), limits::PROGRESS_CHECKPOINTS as usize);
}

#[tokio::test(start_paused = true)]
async fn words_that_are_too_long_are_cut_and_say_so() {
    let world = World::new().await;
    let long = acting(streaming(), |_, context| async move {
        context.progress(&"ä".repeat(10_000));
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok("done".to_owned())
    });
    let process = world.process([("tell", long.build().expect("a sound tool"))]);
    let mut watched = process.gate.progress();
    process.call("tell", "x").await;
    let live = watched.recv().await.expect("a delta");
    let kept = checkpoints(&world).await.remove(0).0;
    for (text, most) in [(&live.text, limits::PROGRESS_LIVE), (&kept, limits::PROGRESS_CHECKPOINT)] {
        assert!(text.len() <= most && text.len() > most - 8, "{} of {most}", text.len());
        assert!(text.ends_with("… (20000 bytes in all)"), "{}", &text[text.len() - 40..]);
    }
    assert_eq!(live.session_id, world.session);
}

#[tokio::test(start_paused = true)]
async fn l23_only_a_call_that_says_so_and_is_not_inert_leaves_checkpoints() {
    let inert = Semantics { stream_progress: true, ..Semantics::read_only() };
    let silent = Semantics { stream_progress: false, ..streaming() };
    for (semantics, appends, kept) in [(inert, 1, 0), (silent, 2, 0), (streaming(), 3, 1)] {
        let world = World::new().await;
        let counting = Arc::new(CountingStore::new(Arc::clone(&world.store)));
        let process = world.process_over(Arc::clone(&counting) as _, [("tell", telling(semantics))]);
        let mut watched = process.gate.progress();
        let session = process.open().await;
        let before = counting.counts().commits;
        let (seen, _) = call_in(&session, "tell", r#"{"text":"3x10"}"#).await.expect("no halt");
        assert!(observed(&seen).ok);
        assert_eq!(counting.counts().commits - before, appends);
        assert_eq!(checkpoints(&world).await.len(), kept);
        let live: Vec<String> = std::iter::from_fn(|| watched.try_recv().ok()).map(|delta| delta.text).collect();
        assert_eq!(live, ["1", "2", "3"], "whoever watches sees all of it");
    }
}
