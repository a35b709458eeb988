//! Transcripts of sessions that someone else holds: another call, a process that stays, a dead one.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{Ran, World, edit, embedded, on_terminal, store, until};
use portcullis::{CancellationToken, SystemIds};
use portcullis_base::{IdGen as _, SessionId, Timestamp, WorkerId};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::{Claim, HostLiveness, LeaseOwner, Log as _, Queue as _, SessionKey};
use portcullis_store_sqlite::SqliteStore;

const READ: &str = r#"{"file_path":"a.txt"}"#;
const CALL: &str = "portcullis call";
const STAYS: &str = "a test that holds it";

fn session_of(world: &World) -> SessionId {
    world.run(&["call", "read", READ]).ends(0).id("sesn_").parse().expect("an id")
}

/// How many events of a type a session has.
fn count(world: &World, session: SessionId, kind: &str) -> usize {
    let events = world.run(&["sessions", "events", &session.to_string(), "--limit", "1000", "--json"]).ends(0).lines();
    events.iter().filter(|event| event["type"] == kind).count()
}

/// A session held by this very process until it is released; it attends to nothing.
struct Holding {
    runtime: tokio::runtime::Runtime,
    store: Arc<SqliteStore>,
    key: SessionKey,
    fence: u64,
}

impl Holding {
    /// Held by a process that lives, this one, under that name.
    fn take(world: &World, what: &str) -> Self {
        Self::take_as(world, what, std::process::id())
    }

    fn take_as(world: &World, what: &str, pid: u32) -> Self {
        let session = session_of(world);
        let runtime = tokio::runtime::Runtime::new().expect("runs");
        let store = store(world);
        let worker = WorkerId::from_u128(SystemIds::new().next(Timestamp::from_micros(1)));
        let owner = LeaseOwner { pid, ..HostLiveness::new().this_process(worker, what) };
        let owner = if what == CALL { owner.brief() } else { owner };
        let key = SessionKey { tenant: LOCAL_TENANT, session };
        let claim = runtime.block_on(store.claim_session(key, owner, Duration::from_secs(60))).expect("asked");
        let Claim::Granted(lease) = claim else { panic!("held by someone else") };
        Self { runtime, store, key, fence: lease.fence }
    }

    /// Waits until the log ends with an event of this type.
    fn until_logged(&self, kind: &str) {
        loop {
            let events = self.runtime.block_on(self.store.read(self.key, 0, 1_000)).expect("read");
            if events.last().is_some_and(|last| last.kind.as_str() == kind) {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn release(self) {
        self.runtime.block_on(self.store.release(self.key, self.fence, None)).expect("released");
    }
}

/// A runtime of this process that serves a session until it is stopped.
struct Serving {
    stop: CancellationToken,
    thread: std::thread::JoinHandle<()>,
}

impl Serving {
    fn start(world: &World, session: SessionId) -> Self {
        let stop = CancellationToken::new();
        let (token, served) = (stop.clone(), embedded(world));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("runs");
            runtime.block_on(served.serve(session, &token)).expect("served");
        });
        let (runtime, store) = (tokio::runtime::Runtime::new().expect("runs"), store(world));
        let key = SessionKey { tenant: LOCAL_TENANT, session };
        while runtime.block_on(store.head(key)).expect("read").is_some_and(|head| head.lease_owner.is_none()) {
            std::thread::yield_now();
        }
        Self { stop, thread }
    }

    fn end(self) {
        self.stop.cancel();
        self.thread.join().expect("it ended well");
    }
}

#[test]
fn many_processes_of_one_session_wait_for_each_other() {
    let world = World::with_file("a.txt", "alpha\n");
    let children: Vec<_> = (0..6).map(|_| world.command(&["call", "read", READ]).spawn().expect("starts")).collect();
    for child in children {
        let ran: Ran = child.wait_with_output().expect("ends").into();
        assert_eq!(ran.ends(0).out, "alpha\n");
    }
    world.run(&["audit", "verify"]).ends(0).says("proved up to");
}

#[test]
fn a_session_that_another_call_holds_is_waited_for_and_then_named_with_its_holder() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, CALL);
    let session = holding.key.session;
    world.run(&["call", "read", READ]).ends(5).warns("portcullis call (pid").one_error_line();
    assert_eq!(count(&world, session, "tool.queued"), 0);
    holding.release();
    world.run(&["call", "read", READ]).ends(0);
}

#[test]
fn a_call_in_a_session_that_a_live_process_serves_is_queued_and_run_by_it() {
    let world = World::with_file("a.txt", "alpha\n");
    let session = session_of(&world);
    let serving = Serving::start(&world, session);
    assert_eq!(world.run(&["call", "read", READ]).ends(0).out, "alpha\n");
    world.run(&["call", "read", "no JSON"]).ends(1).warns("not JSON");
    let seen = world.run(&["call", "edit", &edit("a.txt", "alpha", "beta")]).ends(3);
    assert_eq!(count(&world, session, "tool.queued"), 3);
    // An answer is for the same process to carry out.
    world.run(&["approvals", "allow", &seen.id("ask_")]).ends(0).warns("edit: ok");
    assert_eq!(world.read("a.txt"), "beta\n");
    assert_eq!(count(&world, session, "tool.observation"), 4);
    serving.end();
    world.run(&["call", "read", READ]).ends(0);
    assert_eq!(count(&world, session, "tool.queued"), 3, "nobody holds it any more");
    world.run(&["audit", "verify"]).ends(0);
}

#[test]
fn a_queued_call_is_taken_up_by_its_caller_once_the_holder_is_gone() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, STAYS);
    let child = world.command(&["call", "read", READ]).spawn().expect("starts");
    holding.until_logged("tool.queued");
    holding.release();
    let ran: Ran = child.wait_with_output().expect("ends").into();
    assert_eq!(ran.ends(0).out, "alpha\n");
}

#[test]
fn ctrl_c_leaves_a_queued_call_queued_and_prints_the_command_that_shows_it() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, STAYS);
    let session = holding.key.session;
    let child = world.command(&["call", "read", READ]).spawn().expect("starts");
    holding.until_logged("tool.queued");
    common::interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(130).says("queued as sevt_").says(STAYS).says(&format!("portcullis sessions events {session}"));
    holding.release();
    let before = count(&world, session, "tool.observation");
    world.run(&["call", "read", READ]).ends(0);
    assert_eq!(count(&world, session, "tool.observation"), before + 2, "the queued one ran as well");
}

#[test]
fn ctrl_c_while_another_call_holds_the_session_records_nothing() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, CALL);
    let session = holding.key.session;
    let before = count(&world, session, "tool.intent");
    let child = world.command(&["call", "read", READ]).spawn().expect("starts");
    common::interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(130).warns("nothing was recorded");
    assert_eq!((count(&world, session, "tool.intent"), count(&world, session, "tool.queued")), (before, 0));
    holding.release();
}

#[test]
fn ctrl_c_waits_for_settlement_and_a_second_one_leaves() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, CALL);
    let mut child = world.command(&["call", "read", READ]).spawn().expect("starts");
    let mut err = child.stderr.take().expect("piped");
    // It listens, so it asks for the session again and again; now the store itself does not answer.
    while !common::listens(&child) {
        std::thread::yield_now();
    }
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.busy_timeout(Duration::from_secs(10)).expect("set");
    db.execute_batch("BEGIN IMMEDIATE").expect("locked");
    common::interrupt(&child);
    until(&mut err, "Ctrl-C again leaves at once");
    common::interrupt(&child);
    let code = child.wait().expect("ends").code();
    db.execute_batch("ROLLBACK").expect("unlocked");
    assert_eq!(code, Some(130));
    holding.release();
    world.run(&["call", "read", READ]).ends(0);
}

#[test]
fn an_allow_waits_for_a_live_holder_and_ctrl_c_leaves_the_answer_standing() {
    let world = World::with_file("a.txt", "alpha\n");
    let ask = world.ask_to_edit("a.txt", "alpha", "beta");
    let holding = Holding::take(&world, STAYS);
    let child = world.command(&["approvals", "allow", &ask]).spawn().expect("starts");
    holding.until_logged("tool.permission.replied");
    common::interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(130).warns("is recorded").warns(STAYS).warns("portcullis sessions show");
    assert_eq!(world.read("a.txt"), "alpha\n");
    // In another home nobody gave that answer, and it must not run anything there.
    let (session, file) = (world.run(&["sessions"]).ends(0).id("sesn_"), world.home.with_file_name("log.ndjson"));
    let path = file.to_str().expect("UTF-8");
    world.run(&["sessions", "export", &session, "--with-artifacts", "--out", path]).ends(0);
    let other = World::new();
    other.run(&["sessions", "import", path]).ends(1).warns(&ask).warns("its call has not run").one_error_line();
    assert_eq!(other.run(&["sessions", "--json"]).ends(0).json()["sessions"], serde_json::json!([]));
    // The holder went away without running it: the next allow does.
    let child = world.command(&["approvals", "allow", &ask]).spawn().expect("starts");
    holding.release();
    let ran: Ran = child.wait_with_output().expect("ends").into();
    ran.ends(0);
    assert_eq!(world.read("a.txt"), "beta\n");
}

#[test]
fn a_wait_of_more_than_a_second_is_seen_on_a_terminal_and_not_in_a_pipe() {
    let world = World::with_file("a.txt", "alpha\n");
    let holding = Holding::take(&world, CALL);
    let (mut child, _keys, mut out) = on_terminal(&world, "call read '{\"file_path\":\"a.txt\"}'");
    until(&mut out, "waiting for read (");
    child.wait().expect("ends");
    let piped = world.run(&["call", "read", READ]).ends(5);
    assert!(!piped.err.contains("waiting"), "{}", piped.err);
    holding.release();
}

#[test]
fn a_session_whose_holder_died_is_taken_over_at_once() {
    let world = World::with_file("a.txt", "alpha\n");
    let mut child = std::process::Command::new("true").spawn().expect("runs");
    let pid = child.id();
    child.wait().expect("ends");
    let _held = Holding::take_as(&world, STAYS, pid);
    let start = std::time::Instant::now();
    world.run(&["call", "read", READ]).ends(0);
    assert!(start.elapsed() < Duration::from_secs(2), "it took {:?}", start.elapsed());
}
