//! Workers as real processes: what is due is taken up once, whoever dies.

use crate::common;
use crate::driven;

use std::io::Read as _;
use std::time::Duration;

use common::{Ran, World, comes, soak};
use driven::{SHELL_RUNS, codes, count, events, script, scripted, signal, status, told, worker};
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
fn f06_a_queued_wake_fires_once_at_its_time_across_a_restart() {
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

const MANY: &str = r#"
[[turn]]
text = '''Later. <portcullis-session-loop>{"outcome":"sleep","queuedWakes":[{"reason":"first","delaySeconds":90000},{"reason":"","delaySeconds":5},{"reason":"same","delaySeconds":600,"dedupeKey":"k"},{"reason":"same again","delaySeconds":900,"dedupeKey":"k"},{"reason":"too many","delaySeconds":5}]}</portcullis-session-loop>'''
"#;

#[test]
fn check32_of_five_wakes_the_first_three_valid_ones_are_queued_at_most_a_day_ahead_and_equal_ones_once() {
    let (world, model) = scripted(MANY);
    let session = told(&world, "later");
    once(&world, &model, &[]).ends(0);
    let log = events(&world, &session);
    let queued: Vec<_> = log.iter().filter(|event| event["type"] == "wake.queued").map(driven::payload).collect();
    let reasons: Vec<_> = queued.iter().map(|wake| wake["reason"].as_str().expect("a reason")).collect();
    assert!(!reasons.contains(&"too many") && !reasons.contains(&""), "{reasons:?}");
    let waiting = status(&world, &session);
    assert_eq!(waiting["pending_queued_wakes"], 2, "one key, one wake: {waiting}");
    let time = |value: &serde_json::Value| -> portcullis_base::Timestamp {
        serde_json::from_value(value.clone()).expect("a time")
    };
    let ends = log.iter().find(|event| event["type"] == "span.completed").expect("the wake ended");
    let ahead = |reason: &str| {
        let wake = queued.iter().find(|wake| wake["reason"] == reason).expect("it is queued");
        (time(&wake["due_at"]).as_micros() - time(&ends["at"]).as_micros()) / 1_000_000
    };
    assert!((86_390..=86_400).contains(&ahead("first")), "a day, not 25 hours: {}", ahead("first"));
    assert!((590..=600).contains(&ahead("same")), "the first of two equal ones stays: {}", ahead("same"));
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

/// With `cargo xtask soak` a hundred sessions and thirty kills.
#[test]
fn check05_two_workers_killed_at_random_lose_nothing_and_do_nothing_twice() {
    let (sessions, kills) = (10 * soak(), 3 * soak());
    let (world, model) = scripted(EFFECT);
    world.configure(SHELL_RUNS);
    let sessions: Vec<String> = (0..sessions).map(|n| elsewhere(&world, &format!("w{n}"))).collect();
    let start = || worker(&world, &model, &["--at-once", "2"]);
    let mut workers = [start(), start()];
    let ran = |n: usize| std::fs::read_to_string(world.workspace.join(format!("w{n}/ran.txt"))).unwrap_or_default();
    comes("a command has run", || (0..sessions.len()).any(|n| !ran(n).is_empty()));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..kills {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Within the time of a command: before it, in it, and between its end and the next.
        std::thread::sleep(Duration::from_micros(seed >> 44));
        let victim = &mut workers[usize::from(seed >> 63 == 1)];
        signal(victim, Signal::KILL);
        victim.wait().expect("it is dead");
        *victim = start();
    }
    let done = |session: &String| status(&world, session)["stop_reason"]["type"] == "end_turn";
    comes("every session is done", || sessions.iter().all(done));
    for worker in &mut workers {
        signal(worker, Signal::TERM);
        assert!(worker.wait().expect("it ends").success(), "SIGTERM is an order that is followed");
    }
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
    comes("its command runs", || world.workspace.join("ran.txt").exists());
    signal(&stopped, Signal::STOP);
    // Its lease runs out: the backend's clock is what counts, and nobody waits half a minute for it.
    let db = rusqlite::Connection::open(world.database()).expect("opens");
    db.busy_timeout(std::time::Duration::from_secs(20)).expect("set");
    assert_eq!(db.execute("UPDATE session_heads SET lease_until = 1 WHERE lease_until > 1", []).expect("moved"), 1);
    drop(db);
    once(&world, &model, &[]).ends(0).says("done (end_turn");
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
    comes("it works again", || status(&world, &next)["stop_reason"]["type"] == "end_turn");
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
fn a_flag_answers_the_asks_of_wakes_and_workers_and_a_lie_is_called_one() {
    let (world, _) = scripted("");
    let write = |name: &str| {
        let text = format!(
            "[[turn]]\ncalls = [{{ name = \"write\", input = {{ file_path = \"{name}\", content = \"made\" }} }}]\n\
             [[turn]]\ntext = \"I created {name} and deleted other.txt.\"\n"
        );
        script(&world, &format!("{name}.toml"), &text)
    };
    let session = told(&world, "make it");
    let model = write("a.txt");
    let wake = ["sessions", "wake", &session, "--model", &model, "--approvals", "allow"];
    world.run(&wake).ends(1).warns("allowed by --approvals: write").warns("fact-check: contradicted");
    assert_eq!(world.read("a.txt"), "made");
    told(&world, "make another");
    let ran = once(&world, &write("b.txt"), &["--approvals", "allow"]).ends(0);
    ran.warns("allowed by --approvals: write").says("done (end_turn, fact-check: contradicted)");
    assert_eq!(world.read("b.txt"), "made");
    told(&world, "and one more");
    once(&world, &write("c.txt"), &["--approvals", "deny"]).ends(0).warns("refused by --approvals: write");
    assert!(!world.workspace.join("c.txt").exists());
}

#[test]
fn sessions_that_cannot_run_are_put_off_for_longer_each_time_and_use_up_no_cycle() {
    let (world, model) = scripted("[[turn]]\ntext = \"Hello.\"\n");
    let gone: Vec<String> = (0..3).map(|n| elsewhere(&world, &format!("gone{n}"))).collect();
    for n in 0..3 {
        std::fs::remove_dir(world.workspace.join(format!("gone{n}"))).expect("gone");
    }
    let well: Vec<String> = (0..2).map(|n| told(&world, &format!("hello {n}"))).collect();
    let ran = once(&world, &model, &["--max-cycles", "2", "--json"]).ends(0).lines();
    assert_eq!(ran.iter().filter(|line| line["type"] == "ran").count(), 2, "{ran:?}");
    for session in &well {
        assert_eq!(status(&world, session)["pending_events"], 0, "served beside those that cannot run");
    }
    let due = |session: &String| -> portcullis_base::Timestamp {
        serde_json::from_value(status(&world, session)["next_due_at"].clone()).expect("a time")
    };
    let asked = portcullis_base::Clock::now(&portcullis_base::SystemClock::new());
    assert!(gone.iter().all(|session| due(session).plus(Duration::from_secs(1)) > asked), "not at once again");
    // In one process after 2 s and then 4 s, which is longer than it stays idle: at the same pace it would stay for ever.
    let ran =
        once(&world, &model, &["--watch", "--idle-timeout", "3s", "--session", &gone[0], "--json"]).ends(0).lines();
    assert_eq!(ran.last().expect("a line")["reason"], "idle_timeout", "{ran:?}");
    assert_eq!(ran.iter().filter(|line| line["type"] == "skipped").count(), 1, "told once: {ran:?}");
    assert_eq!(status(&world, &gone[0])["pending_events"], 1, "nothing of it was consumed");
    // Whoever speaks is heard at once, and where the folder is back it runs.
    std::fs::create_dir(world.workspace.join("gone0")).expect("back");
    world.run(&["sessions", "send", &gone[0], "and now?"]).ends(0);
    once(&world, &model, &["--session", &gone[0]]).ends(0).says("done (end_turn");
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
        // A person reads what it means.
        world.run(&["sessions"]).ends(0).says(if word == "rescheduling" { " due " } else { word });
        assert_eq!(world.run(&["sessions", "--json"]).ends(0).json()["sessions"][0]["status"], word);
        assert_eq!(status(&world, &session)["status"], word);
    };
    shown("requires_action");
    world.run(&["approvals", "allow", &ask]).ends(0).warns(&format!("run --session {session}"));
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
    comes("its command runs", || world.workspace.join("begun.txt").exists());
    signal(&call, Signal::KILL);
    call.wait().expect("dead");
    let ran = once(&world, &writes, &["--json"]).ends(0).lines();
    assert_eq!((&ran[0]["type"], &ran[0]["reason"]), (&"skipped".into(), &"idle".into()), "{ran:?}");
    let left = ran[0]["session_id"].as_str().expect("an id");
    let log = events(&world, left);
    assert_eq!((codes(&log), count(&log, "span.model_request_start")), (vec!["outcome_unknown".to_owned()], 0));
}

const LOOKS_AND_WRITES: &str = r#"
[[turn]]
when = { message = "later" }
text = '''Later. <portcullis-session-loop>{"outcome":"sleep","queuedWakes":[{"reason":"look again","note":"the build","delaySeconds":600}]}</portcullis-session-loop>'''
[[turn]]
calls = [{ name = "write", input = { file_path = "new.txt", content = "made" } }]
"#;

#[test]
fn a_worker_says_what_waits_and_why_something_failed() {
    let (world, model) = scripted(LOOKS_AND_WRITES);
    let session = told(&world, "make it");
    let ran = once(&world, &model, &[]).ends(0);
    let ask = ran.id("ask_");
    let line = format!("{session} waits for an answer (write): portcullis approvals show {ask}\n");
    assert_eq!(ran.out, line);
    world.run(&["approvals", "show", &ask]).ends(0);
    let failing =
        script(&world, "fails.toml", "[[turn]]\ntext = \"x\"\n[defaults]\nfail = [{ turn = 1, status = 401 }]\n");
    let other = told(&world, "say x");
    let ran = once(&world, &failing, &["--session", &other]).ends(0).says("failed (auth), tried again at ");
    assert!(ran.out.contains("401") && !ran.out.trim_end().ends_with(':'), "{}", ran.out);
}

#[test]
fn a_workers_records_hold_what_an_operator_needs() {
    let (world, model) = scripted(LOOKS_AND_WRITES);
    let long = format!("later {}", "x".repeat(500));
    let session = told(&world, &long);
    let ran = once(&world, &model, &["--json"]).ends(0).lines();
    let ran = &ran[0];
    assert_eq!((&ran["type"], &ran["session_id"]), (&"ran".into(), &session.as_str().into()));
    assert_eq!(ran["queued_wake_count"], 1);
    let queued = &ran["queued_wake_summaries"][0];
    assert_eq!((&queued["reason"], &queued["note"]), (&"look again".into(), &"the build".into()), "{ran}");
    assert_eq!(ran["requeue"]["due_at"], queued["due_at"]);
    assert_eq!(ran["defer_until"], queued["due_at"], "{ran}");
    assert_eq!(ran["failure_streak"], 0);
    let input = ran["consumed_inputs"][0].as_str().expect("text");
    assert!(input.starts_with("later xxx") && input.chars().count() == 240, "{input}");
    assert_eq!(ran["response_preview"], "Later.");
    let log = events(&world, &session);
    let of_wake = log.iter().filter(|event| event["wake_id"] == ran["wake_id"]);
    let types: Vec<_> = ran["wake_events"].as_array().expect("a list").iter().map(|event| &event["type"]).collect();
    assert_eq!(types, of_wake.map(|event| &event["type"]).collect::<Vec<_>>());
    assert_eq!(ran["wake_event_count"], types.len());

    let session = told(&world, "make it");
    let ran = once(&world, &model, &["--session", &session, "--json"]).ends(0).lines();
    let asked = &ran[0]["pending_tool_confirmation"];
    assert_eq!(asked["tool_name"], "write");
    let policy = &status(&world, &session)["pending_confirmation"]["policy"];
    assert!(policy.is_string() && asked["permission_policy"] == *policy, "{asked}");
    assert_eq!((&ran[0]["requeue"], &ran[0]["defer_until"]), (&serde_json::Value::Null, &serde_json::Value::Null));

    // One that cannot run.
    let gone = elsewhere(&world, "gone");
    std::fs::remove_dir(world.workspace.join("gone")).expect("gone");
    let ran = once(&world, &model, &["--session", &gone, "--json"]).ends(0).lines();
    let skipped = &ran[0];
    assert_eq!((&skipped["type"], &skipped["activation_kind"]), (&"skipped".into(), &"pending_events".into()));
    let null = serde_json::Value::Null;
    assert_eq!((&skipped["failure_streak"], &skipped["active_wake_lease"]), (&0.into(), &null), "{skipped}");
}
