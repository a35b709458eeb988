//! Workers as real processes: what is due is taken up once, whoever dies.

use crate::common;
use crate::driven;

use std::io::Read as _;

use common::{Ran, World};
use driven::{SHELL_RUNS, codes, count, events, script, scripted, signal, status, told, until, worker};
use rustix::process::Signal;

const LATER: &str = r#"
[[turn]]
when = { message = "look later" }
text = '''I look again soon. <portcullis-session-loop>{"outcome":"sleep","queuedWakes":[{"reason":"look again","delaySeconds":2}]}</portcullis-session-loop>'''
[[turn]]
when = { contains = "runtime.wake: look again" }
text = "I looked again."
"#;

fn once(world: &World, model: &str, more: &[&str]) -> Ran {
    let mut words = vec!["worker", "--model", model];
    words.extend(more);
    world.run(&words)
}

#[test]
fn check06_a_queued_wake_fires_once_at_its_time_across_a_restart() {
    let (world, model) = scripted(LATER);
    let session = told(&world, "look later");
    once(&world, &model, &[]).ends(0).says("goes on at").warns("stopped: idle");
    let queued = status(&world, &session);
    assert_eq!((&queued["status"], &queued["pending_queued_wakes"]), (&"rescheduling".into(), &1.into()), "{queued}");
    let due = queued["next_queued_wake_at"].as_str().expect("a time").to_owned();
    // Another process, which was not there when it was queued.
    let ran = once(&world, &model, &["--watch", "--idle-timeout", "4s", "--json"]).ends(0);
    let ran = ran.lines();
    assert_eq!(ran.iter().filter(|line| line["type"] == "ran").count(), 1, "{ran:?}");
    assert_eq!(ran.last().expect("a line")["reason"], "idle_timeout");
    once(&world, &model, &[]).ends(0);
    let log = events(&world, &session);
    assert_eq!((count(&log, "wake.queued"), count(&log, "wake.consumed"), count(&log, "span.started")), (1, 1, 2));
    let fired = log.iter().filter(|event| event["type"] == "span.started").nth(1).expect("two");
    assert!(fired["at"].as_str().expect("a time") >= due.as_str(), "not before its time: {fired}");
    let activation = &driven::payload(fired)["activation"];
    assert_eq!((&activation["kind"], &activation["reason"]), (&"queued_wake".into(), &"look again".into()));
}

const EFFECT: &str = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "echo ran >> ran.txt; sleep 0.3" } }]
[[turn]]
text = "It is done."
"#;

/// A session in a workspace of its own.
fn elsewhere(world: &World, name: &str) -> String {
    let folder = world.workspace.join(name);
    std::fs::create_dir_all(&folder).expect("made");
    let folder = folder.to_str().expect("text");
    world.run(&["sessions", "new", "do it", "--workspace", folder]).ends(0).id("sesn_")
}

#[test]
fn check05_two_workers_one_is_killed_and_nothing_is_lost_or_done_twice() {
    const SESSIONS: usize = 10;
    let (world, model) = scripted(EFFECT);
    world.configure(SHELL_RUNS);
    let sessions: Vec<String> = (0..SESSIONS).map(|n| elsewhere(&world, &format!("w{n}"))).collect();
    let few = ["--at-once", "2"];
    let (mut first, mut second) = (worker(&world, &model, &few), worker(&world, &model, &few));
    let ran = |n: usize| std::fs::read_to_string(world.workspace.join(format!("w{n}/ran.txt"))).unwrap_or_default();
    until("some commands have run", || (0..SESSIONS).filter(|n| !ran(*n).is_empty()).count() >= 2);
    signal(&first, Signal::KILL);
    first.wait().expect("it is dead");
    let done = |session: &String| status(&world, session)["stop_reason"]["type"] == "end_turn";
    until("every session is done", || sessions.iter().all(done));
    signal(&second, Signal::TERM);
    assert!(second.wait().expect("it ends").success(), "SIGTERM is an order that is followed");
    for (n, session) in sessions.iter().enumerate() {
        let log = events(&world, session);
        let codes = codes(&log);
        assert_eq!(count(&log, "tool.invocation.started"), codes.len(), "{codes:?}");
        assert!(codes == ["ok"] || codes == ["outcome_unknown"], "{codes:?}");
        assert!(ran(n).lines().count() <= 1, "never twice: {:?}", ran(n));
        if codes == ["ok"] {
            assert_eq!(ran(n), "ran\n", "what is said to have happened did");
        }
        assert_eq!(count(&log, "span.started"), count(&log, "span.completed"), "no wake is left open");
        assert_eq!(count(&log, "input.consumed"), 1, "the message was taken up once");
    }
    world.run(&["audit", "verify"]).ends(0);
}

const SLOW: &str = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "echo ran >> ran.txt; sleep 3" } }]
[[turn]]
text = "It is done."
"#;

#[test]
fn f05_a_worker_that_was_stopped_past_its_lease_writes_nothing_more() {
    let (world, model) = scripted(SLOW);
    world.configure(SHELL_RUNS);
    let session = told(&world, "do it");
    let mut stopped = worker(&world, &model, &["--at-once", "1"]);
    until("its command runs", || world.workspace.join("ran.txt").exists());
    signal(&stopped, Signal::STOP);
    // Its lease runs out: the backend's clock is what counts, and nobody waits half a minute for it.
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.busy_timeout(std::time::Duration::from_secs(20)).expect("set");
    assert_eq!(db.execute("UPDATE session_heads SET lease_until = 1 WHERE lease_until > 1", []).expect("moved"), 1);
    drop(db);
    once(&world, &model, &[]).ends(0).says("done (end_turn)");
    let taken_over = events(&world, &session);
    assert_eq!(codes(&taken_over), ["outcome_unknown"]);
    let fences = |log: &[serde_json::Value]| -> Vec<u64> { log.iter().filter_map(|e| e["fence"].as_u64()).collect() };
    assert!(fences(&taken_over).is_sorted(), "an old fence never follows a new one");

    // It goes on, its command ends, and it wants to write what came of it.
    signal(&stopped, Signal::CONT);
    let mut told = String::new();
    let heard = std::thread::spawn({
        let mut out = stopped.stdout.take().expect("piped");
        move || {
            let _ = out.read_to_string(&mut told);
            told
        }
    });
    // It is well again when it takes up something new, and leaves by itself after that.
    let next = script_session(&world);
    until("it works again", || status(&world, &next)["stop_reason"]["type"] == "end_turn");
    signal(&stopped, Signal::TERM);
    stopped.wait().expect("it ends");
    assert!(heard.join().expect("read").contains("lease_lost"));
    assert_eq!(events(&world, &session).len(), taken_over.len(), "it wrote nothing more");
    assert_eq!(world.read("ran.txt").lines().count(), 1 + 1, "once for each session");
    world.run(&["audit", "verify"]).ends(0);
}

fn script_session(world: &World) -> String {
    told(world, "do it again")
}

#[test]
fn a_worker_stops_when_told_to_and_says_why() {
    let (world, model) = scripted("[[turn]]\ntext = \"Hello.\"\n");
    once(&world, &model, &[]).ends(0).warns("stopped: idle");
    let sessions: Vec<String> = (0..3).map(|n| told(&world, &format!("hello {n}"))).collect();
    let ran = once(&world, &model, &["--max-cycles", "2", "--json"]).ends(0).lines();
    assert_eq!(ran.iter().filter(|line| line["type"] == "ran").count(), 2, "{ran:?}");
    assert_eq!(ran.last().expect("a line")["reason"], "max_cycles");
    // Only the one that is named, though another is due.
    let other = told(&world, "hello too");
    let left = sessions.iter().find(|session| status(&world, session)["pending_events"] == 1).expect("one").clone();
    let ran = once(&world, &model, &["--session", &other, "--json"]).ends(0).lines();
    assert_eq!(ran[0]["session_id"], other.as_str());
    assert_eq!(status(&world, &left)["pending_events"], 1);
    // A session whose workspace is gone is told of once, and stands in nobody's way.
    let gone = elsewhere(&world, "gone");
    std::fs::remove_dir(world.workspace.join("gone")).expect("gone");
    let ran = once(&world, &model, &["--watch", "--idle-timeout", "2s", "--json"]).ends(0).lines();
    let skipped: Vec<_> = ran.iter().filter(|line| line["type"] == "skipped").collect();
    assert_eq!((skipped.len(), skipped[0]["session_id"].as_str()), (1, Some(gone.as_str())), "{ran:?}");
    assert_eq!(status(&world, &left)["pending_events"], 0);
    assert_eq!(status(&world, &gone)["pending_events"], 1, "nothing of it was consumed");
    // Ctrl-C.
    let child = worker(&world, &model, &[]);
    common::interrupt(&child);
    let ended = child.output().ends(130);
    assert!(ended.out.contains(r#""reason":"interrupted""#), "{}", ended.out);
}

#[test]
fn an_approval_given_elsewhere_is_taken_up_by_a_worker_and_calls_of_nobody_ask_no_model() {
    let (world, _) = scripted("");
    let writes = script(
        &world,
        "writes.toml",
        "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"new.txt\", content = \"made\" } }]\n\
         [[turn]]\ntext = \"Made.\"\n",
    );
    let session = told(&world, "make it");
    let line = once(&world, &writes, &["--json"]).ends(0).lines();
    let ask = line[0]["pending_tool_confirmation"]["id"].as_str().expect("an ask").to_owned();
    assert_eq!(line[0]["stop_reason"], "requires_action");
    // While it waits nothing is due.
    assert_eq!(once(&world, &writes, &["--json"]).ends(0).lines().len(), 1);
    let shown = |word: &str| {
        world.run(&["sessions"]).ends(0).says(word);
        assert_eq!(world.run(&["sessions", "--json"]).ends(0).json()["sessions"][0]["status"], word);
        assert_eq!(status(&world, &session)["status"], word);
    };
    shown("requires_action");
    world.run(&["approvals", "allow", &ask]).ends(0);
    // Nothing waits for a person any more; the model has yet to hear of it.
    shown("rescheduling");
    once(&world, &writes, &[]).ends(0).says("Made.");
    shown("idle");
    assert_eq!(world.read("new.txt"), "made");
    assert_eq!(count(&events(&world, &session), "tool.invocation.started"), 1);

    // A call from the command line whose process died has no model: it is settled, and none is asked.
    world.configure(SHELL_RUNS);
    let mut call =
        world.command(&["--profile", "code", "call", "bash", r#"{"command":"echo x > begun.txt; sleep 600"}"#]);
    let mut call = call.spawn().expect("it starts");
    until("its command runs", || world.workspace.join("begun.txt").exists());
    signal(&call, Signal::KILL);
    call.wait().expect("dead");
    let ran = once(&world, &writes, &["--json"]).ends(0).lines();
    assert_eq!((&ran[0]["type"], &ran[0]["reason"]), (&"skipped".into(), &"idle".into()), "{ran:?}");
    let left = ran[0]["session_id"].as_str().expect("an id");
    let log = events(&world, left);
    assert_eq!((codes(&log), count(&log, "span.model_request_start")), (vec!["outcome_unknown".to_owned()], 0));
}
