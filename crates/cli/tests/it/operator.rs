//! Transcripts of the operator's verbs (agent-runtime 3.3, 5.10), each step a process of its own.

use crate::driven;

use crate::common::{World, comes, embedded};
use driven::{codes, count, events, on_store, payload, scripted, signal, status, told, wake};
use portcullis::{AskAnswer, Reply, SystemClock, SystemIds};
use portcullis_base::{AppendId, Clock as _, SessionId};
use portcullis_event::facts::StatusTerminated;
use portcullis_event::{Actor, LOCAL_TENANT, Stamp};
use portcullis_store::{Commit, Log as _, SessionKey};

const HELLO: &str = r#"
[[turn]]
text = "I will look."
calls = [{ name = "read", input = { file_path = "a.txt" } }]
[[turn]]
text = "It says hello."
"#;

#[test]
fn a_session_is_made_told_woken_and_looked_at() {
    let (world, model) = scripted(HELLO);
    world.write("a.txt", "hello\n");
    let session = told(&world, "what does a.txt say?");
    let before = status(&world, &session);
    assert_eq!((&before["status"], &before["pending_events"]), (&"rescheduling".into(), &1.into()), "{before}");
    assert_eq!(before["runnable_pending_event"], "user.message");
    wake(&world, &session, &model).ends(0).says("It says hello.");
    let after = status(&world, &session);
    assert_eq!((&after["status"], &after["pending_events"]), (&"idle".into(), &0.into()), "{after}");
    assert_eq!((&after["turns"], &after["stop_reason"]["type"]), (&2.into(), &"end_turn".into()));
    assert_eq!(after["latest_activation"]["kind"], "activation.acked");
    // Check 4: nothing is due, so nothing is written.
    let length = events(&world, &session).len();
    wake(&world, &session, &model).ends(0).says("nothing is due");
    assert_eq!(events(&world, &session).len(), length);
    world.run(&["sessions", "send", &session, "  "]).ends(2);
    assert_eq!(events(&world, &session).len(), length);
    let woken = world.run(&["sessions", "wake", &session, "--model", &model, "--json"]).ends(0).json();
    assert_eq!((&woken["executed"], &woken["skipped_reason"]), (&false.into(), &"idle".into()));
}

#[test]
fn a_wake_without_a_model_says_what_to_set_and_changes_nothing() {
    let (world, _) = scripted(HELLO);
    let session = told(&world, "hello?");
    let length = events(&world, &session).len();
    world.run(&["sessions", "wake", &session]).ends(2).warns("no model is configured");
    world.run(&["sessions", "wake", &session, "--model", "scripted:/nowhere.toml"]).ends(2);
    assert_eq!(events(&world, &session).len(), length);
}

#[test]
fn check29_h18_a_session_that_is_unknown_or_terminated_takes_no_input() {
    let (world, model) = scripted(HELLO);
    let session = told(&world, "hello?");
    let unknown = "sesn_00000000000000000000000001";
    for verb in [&["send", unknown, "x"][..], &["interrupt", unknown], &["answer", unknown, "x"], &["status", unknown]]
    {
        let words: Vec<&str> = ["sessions"].iter().chain(verb).copied().collect();
        world.run(&words).ends(1).warns("no session");
    }
    terminate(&world, session.parse().expect("an id"));
    let length = events(&world, &session).len();
    for verb in [&["send", &session, "more"][..], &["interrupt", &session]] {
        let words: Vec<&str> = ["sessions"].iter().chain(verb).copied().collect();
        world.run(&words).ends(1).warns("is terminated");
    }
    wake(&world, &session, &model).ends(0).says("nothing is due");
    assert_eq!(events(&world, &session).len(), length, "refused, not queued");
}

fn terminate(world: &World, session: SessionId) {
    let (ids, clock, actor) = (SystemIds::new(), SystemClock::new(), Actor::user("test"));
    let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let fact = StatusTerminated { previous_status: "idle".to_owned(), stop_reason: "terminated".to_owned() };
    let key = SessionKey { tenant: LOCAL_TENANT, session };
    let commit = Commit::client(key, AppendId::make(&ids, clock.now()), vec![stamp.draft(&fact)]);
    on_store(world, async move |store| store.commit(commit).await.expect("terminated"));
}

const CUSTOM: &str = r#"
[[turn]]
text = '''I need the weather. <portcullis-session-loop>{"outcome":"sleep","customToolRequest":{"name":"weather","input":{"city":"Bern"}}}</portcullis-session-loop>'''
[[turn]]
when = { contains = "12 degrees" }
text = "It is 12 degrees in Bern."
"#;

#[test]
fn check02_a_custom_call_takes_one_answer_and_the_next_wake_goes_on_with_it() {
    let (world, model) = scripted(CUSTOM);
    let session = told(&world, "how warm is it in Bern?");
    wake(&world, &session, &model).ends(3).says(&format!("sessions answer {session} --request sevt_"));
    let waits = status(&world, &session);
    assert_eq!(
        (&waits["status"], &waits["pending_custom_tool"]["name"]),
        (&"requires_action".into(), &"weather".into())
    );
    let request = waits["pending_custom_tool"]["id"].as_str().expect("an id").to_owned();
    let length = events(&world, &session).len();
    let other = "sevt_00000000000000000000000001";
    world.run(&["sessions", "answer", &session, "--request", other, "12 degrees"]).ends(1).warns("no custom call");
    world.run(&["sessions", "answer", &session, " "]).ends(1).warns("must not be empty");
    assert_eq!(events(&world, &session).len(), length, "nothing of a refused answer is recorded");
    // Two at once: exactly one wins.
    let both: Vec<_> = (0..2)
        .map(|_| {
            let words = ["sessions", "answer", &session, "--request", &request, "12 degrees"];
            world.command(&words).spawn().expect("it starts")
        })
        .collect();
    let mut ends: Vec<_> =
        both.into_iter().map(|child| child.wait_with_output().expect("ends").status.code()).collect();
    ends.sort_unstable();
    assert_eq!(ends, [Some(0), Some(1)]);
    world.run(&["sessions", "answer", &session, "13 degrees"]).ends(1).warns("waits for no result");
    wake(&world, &session, &model).ends(0).says("It is 12 degrees in Bern.");
    assert_eq!(count(&events(&world, &session), "user.custom_tool_result"), 1);
}

#[test]
fn h26_an_interrupt_closes_a_custom_call_at_once() {
    let (world, model) = scripted(CUSTOM);
    let session = told(&world, "how warm is it in Bern?");
    wake(&world, &session, &model).ends(3);
    world.run(&["sessions", "interrupt", &session]).ends(0);
    world.run(&["sessions", "answer", &session, "12 degrees"]).ends(1).warns("waits for no result");
    assert_eq!(status(&world, &session)["pending_custom_tool"], serde_json::Value::Null);
}

const WRITES: &str = r#"
[[turn]]
calls = [{ name = "write", input = { file_path = "new.txt", content = "made" } }]
[[turn]]
text = "All right, I stop."
"#;

#[test]
fn check28_h26_an_interrupt_beats_a_confirmation_that_arrives_in_the_same_window() {
    let (world, model) = scripted(WRITES);
    let session = told(&world, "make new.txt");
    let ask = wake(&world, &session, &model).ends(3).id("ask_");
    assert_eq!(status(&world, &session)["pending_confirmation"]["id"], ask.as_str());
    // The answer is recorded, and before anybody takes it up the interrupt comes.
    let answered = async |world: &World| {
        let runtime = embedded(world);
        let answer = AskAnswer::by("me", Reply::AllowOnce);
        runtime.reply(ask.parse().expect("an id"), answer).await.expect("recorded");
    };
    tokio::runtime::Runtime::new().expect("runs").block_on(answered(&world));
    world.run(&["sessions", "interrupt", &session, "--note", "not that"]).ends(0);
    wake(&world, &session, &model);
    assert!(!world.workspace.join("new.txt").exists(), "the confirmation is void");
    let log = events(&world, &session);
    assert_eq!(codes(&log), ["approval_superseded"]);
    assert_eq!(count(&log, "tool.invocation.started"), 0);
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
}

const SLEEPS: &str = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "echo begun > begun.txt; sleep 600" } }]
[[turn]]
text = "I do not know how that ended."
"#;

#[test]
fn h36_a_call_of_a_killed_wake_is_unknown_until_a_person_says_what_became_of_it() {
    let (world, model) = scripted(SLEEPS);
    world.configure(driven::SHELL_RUNS);
    let session = told(&world, "wait");
    world.run(&["sessions", "unknown"]).ends(0).warns("no call has an unknown outcome");
    let mut child = world.command(&["sessions", "wake", &session, "--model", &model]).spawn().expect("it starts");
    comes("the command began", || world.workspace.join("begun.txt").exists());
    signal(&child, rustix::process::Signal::KILL);
    child.wait().expect("it is dead");
    std::fs::remove_file(world.workspace.join("begun.txt")).expect("gone");
    wake(&world, &session, &model).ends(0).says("I do not know");
    assert!(!world.workspace.join("begun.txt").exists(), "it is never run again by itself");
    assert_eq!(codes(&events(&world, &session)), ["outcome_unknown"]);
    let invocation = world.run(&["sessions", "unknown"]).ends(0).says("bash").id("inv_");
    let listed = world.run(&["sessions", "unknown", &session, "--json"]).ends(0).json();
    assert_eq!(listed["unknown"][0]["invocation_id"], invocation.as_str());
    let nothing = "inv_00000000000000000000000001";
    world.run(&["sessions", "resolve", nothing, "happened"]).ends(1).warns("no call");
    world.run(&["sessions", "resolve", &invocation, "perhaps"]).ends(2);
    let note = ["--note", "the file was there"];
    world.run(&["sessions", "resolve", &invocation, "did-not-happen", note[0], note[1]]).ends(0).says("did not happen");
    world.run(&["sessions", "resolve", &invocation, "happened"]).ends(1).warns("is no call whose outcome is unknown");
    let log = events(&world, &session);
    let told = log.iter().find(|event| event["type"] == "tool.invocation.resolved").expect("recorded");
    assert_eq!(payload(told)["resolution"], "did_not_happen");
    assert_eq!(count(&log, "tool.invocation.resolved"), 1);
    world.run(&["sessions", "unknown"]).ends(0).warns("no call has an unknown outcome");
}

const SLEEPS_THEN_ASKS: &str = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "echo begun > begun.txt; sleep 600" } },
         { name = "bash", input = { command = "touch second.txt" } }]
[[turn]]
text = "I do not know how that ended."
"#;

#[test]
fn h36_the_model_is_told_of_an_unknown_call_also_where_somebody_must_answer_first() {
    let (world, model) = scripted(SLEEPS_THEN_ASKS);
    world.configure(driven::SHELL_RUNS);
    let session = told(&world, "wait");
    let mut child = world.command(&["sessions", "wake", &session, "--model", &model]).spawn().expect("it starts");
    comes("the command began", || world.workspace.join("begun.txt").exists());
    signal(&child, rustix::process::Signal::KILL);
    child.wait().expect("it is dead");
    // The second call of the answer asks, before the model hears anything.
    wake(&world, &session, &model).ends(3);
    world.run(&["sessions", "wake", &session, "--model", &model, "--approvals", "allow"]).ends(0);
    let log = events(&world, &session);
    let mut requests = log.iter().filter(|event| event["type"] == "span.model_request_start");
    let newest = requests.next_back().expect("it was asked").to_string();
    assert!(newest.contains("[crash-recovery]"), "{newest}");
}

const WRITES_THEN_SLEEPS: &str = r#"
[[turn]]
calls = [{ name = "write", input = { file_path = "a.txt", content = "x" } }]
[[turn]]
text = """Later. <portcullis-session-loop>{"outcome":"sleep","queuedWakes":[{"reason":"look","delaySeconds":600}]}</portcullis-session-loop>"""
"#;

#[test]
fn a_session_that_goes_on_by_itself_tells_of_no_stop_that_is_over() {
    let (world, model) = scripted(WRITES_THEN_SLEEPS);
    let session = told(&world, "write it");
    world.run(&["sessions", "wake", &session, "--model", &model, "--approvals", "allow"]).ends(0);
    let status = status(&world, &session);
    assert_eq!(status["status"], "rescheduling", "{status}");
    assert!(status["stop_reason"].is_null(), "{status}");
}

#[test]
fn the_status_of_a_session_whose_holder_was_killed_says_so_at_once_and_who_goes_on() {
    let (world, model) = scripted(SLEEPS);
    world.configure(driven::SHELL_RUNS);
    let session = told(&world, "wait");
    let mut child = driven::worker(&world, &model, &[]);
    comes("the command began", || world.workspace.join("begun.txt").exists());
    let pid = child.id();
    let looks = |verb: &str| world.run(&["sessions", verb, &session]).ends(0);
    looks("status").says("held by").says(&format!("(pid {pid})"));
    assert!(status(&world, &session)["lease"]["owner"].is_string());
    signal(&child, rustix::process::Signal::KILL);
    child.wait().expect("it is dead");
    // Its lease has half a minute to go.
    for verb in ["status", "show"] {
        let seen = looks(verb).says("left by").says(&format!("(pid {pid}), which is gone; go on with: "));
        seen.says(&format!("sessions wake {session}"));
    }
    assert!(status(&world, &session)["lease"].is_null());
}
