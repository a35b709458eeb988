//! Transcripts of sessions that have something to do later.

use crate::common::{World, store};
use crate::driven::{scripted, status, told, wake};
use portcullis_base::{AppendId, Clock as _, QueuedWakeId, SessionId, Timestamp};
use portcullis_event::facts::{Priority, WakeQueued};
use portcullis_event::{Actor, LOCAL_TENANT, Stamp};
use portcullis_store::{Commit, Log as _, SessionKey};

fn queue(world: &World, session: SessionId) {
    queue_at(world, session, "2031-02-03T04:05:06.000000Z");
}

fn queue_at(world: &World, session: SessionId, due_at: &str) {
    let (ids, clock) = (portcullis::SystemIds::new(), portcullis::SystemClock::new());
    let due_at: Timestamp = due_at.parse().expect("a time");
    let actor = Actor::user("test");
    let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let wake = stamp.draft(&WakeQueued {
        queued_wake_id: QueuedWakeId::make(&ids, clock.now()),
        due_at,
        reason: "look again\u{1b}[31m".to_owned(),
        note: Some("the build".to_owned()),
        dedupe_key: None,
        priority: Priority::Low,
    });
    let key = SessionKey { tenant: LOCAL_TENANT, session };
    let commit = Commit::client(key, AppendId::make(&ids, due_at), vec![wake]);
    tokio::runtime::Runtime::new().expect("runs").block_on(store(world).commit(commit)).expect("queued");
}

#[test]
fn s15_pending_wakes_are_shown_and_rebuilt() {
    let world = World::with_file("a.txt", "text\n");
    let session = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    let listed = world.run(&["sessions", "list"]).ends(0);
    assert!(!listed.out.contains("NEXT WAKE"), "{}", listed.out);
    queue(&world, session.parse().expect("an id"));

    let shown = world.run(&["sessions", "show", &session]).ends(0);
    assert!(shown.out.contains("wakes at 2031-02-03T04:05:06.000000Z: look again"), "{}", shown.out);
    assert!(shown.out.contains("(the build), priority low") && !shown.out.contains('\u{1b}'), "{}", shown.out);
    let document = world.run(&["sessions", "show", &session, "--json"]).ends(0).json();
    assert_eq!(document["wakes"][0]["reason"], "look again\u{1b}[31m");
    assert_eq!(document["wakes"][0]["state"], "pending");
    let listed = world.run(&["sessions", "list"]).ends(0);
    assert!(listed.out.contains("NEXT WAKE") && listed.out.contains("2031-02-03"), "{}", listed.out);
    let listed = world.run(&["sessions", "list", "--json"]).ends(0).json();
    assert_eq!(listed["sessions"][0]["next_wake_at"], "2031-02-03T04:05:06.000000Z");

    let rebuilt = world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    assert!(rebuilt.out.contains("the stored rows are equal to the fold"), "{}", rebuilt.out);
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.execute("UPDATE queued_wakes SET due_at = 7", []).expect("tampered");
    let rebuilt = world.run(&["replay", &session, "--mode", "rebuild"]).ends(1);
    assert!(rebuilt.out.contains("due_at: the log says"), "{}", rebuilt.out);
}

#[test]
fn the_status_tells_wakes_in_the_order_of_their_time() {
    let world = World::with_file("a.txt", "text\n");
    let session = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    let days = ["2031-02-03T04:05:06.000000Z", "2033-02-03T04:05:06.000000Z", "2032-02-03T04:05:06.000000Z"];
    for day in days {
        queue_at(&world, session.parse().expect("an id"), day);
    }
    let text = world.run(&["sessions", "status", &session]).ends(0).out;
    let told = text.lines().filter_map(|line| line.trim().strip_prefix("wakes at ")).map(|line| &line.trim()[..4]);
    assert_eq!(told.collect::<Vec<_>>(), ["2031", "2032", "2033"], "{text}");
}

#[test]
fn status_tells_no_stop_that_is_over() {
    let (world, model) = scripted("[[turn]]\ntext = \"Hello.\"\n");
    let session = told(&world, "go");
    wake(&world, &session, &model).ends(0);
    assert_eq!(status(&world, &session)["stop_reason"]["type"], "end_turn");
    world.run(&["sessions", "send", &session, "and now?"]).ends(0);
    assert!(status(&world, &session)["stop_reason"].is_null(), "it has work again");
    let shown = world.run(&["sessions", "status", &session]).ends(0);
    assert!(shown.out.contains("rescheduling") && !shown.out.contains("end_turn"), "{}", shown.out);
}
