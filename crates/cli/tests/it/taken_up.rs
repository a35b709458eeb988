//! Which sessions are taken up, by whom and with which rules; and what needs no folder to be said to one.

use std::sync::Arc;

use portcullis::{Runtime, SystemIds};
use portcullis_store::LocalArtifacts;

use crate::common::{World, comes, on_terminal, store};
use crate::driven::{script, scripted, status, told, wake, worker};
use crate::run_talk::{READY, Terminal};

const WRITES: &str = "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"made.txt\", content = \"x\" } }]\n\
                      [[turn]]\ntext = \"Done.\"\n";

#[test]
fn whoever_names_a_session_answers_what_waits_in_it_and_nobody_else_does() {
    let (world, model) = scripted(WRITES);
    let session = told(&world, "make it");
    // Raised by a process that is gone.
    wake(&world, &session, &model).ends(3);
    let other = world.run(&["worker", "--model", &model, "--approvals", "allow"]).ends(0);
    other.warns("stopped: idle").warns("1 session waits for an answer: portcullis approvals list");
    assert!(!world.workspace.join("made.txt").exists());
    let mut watching = world.command(&["worker", "--watch", "--model", &model, "--approvals", "allow"]);
    let mut watching = crate::driven::Process::of(watching.spawn().expect("starts"));
    let mut told_once = watching.stderr.take().expect("piped");
    crate::common::until(&mut told_once, "1 session waits for an answer: portcullis approvals list");
    drop(watching);
    let ran = world.run(&["worker", "--session", &session, "--model", &model, "--approvals", "allow"]).ends(0);
    ran.warns("allowed by --approvals: write").says("done (end_turn");
    assert_eq!(world.read("made.txt"), "x");

    let session = told(&world, "once more");
    let again = script(&world, "again.toml", &WRITES.replace("made.txt", "again.txt"));
    wake(&world, &session, &again).ends(3);
    let ran = world.run(&["sessions", "wake", &session, "--model", &again, "--approvals", "allow"]).ends(0);
    ran.says("Done.").warns("allowed by --approvals: write");
    assert_eq!(world.read("again.txt"), "x");

    // And one that watches it, whoever raises the ask meanwhile.
    let session = told(&world, "a third time");
    let third = script(&world, "third.toml", &WRITES.replace("made.txt", "third.txt"));
    wake(&world, &session, &third).ends(3);
    let watching = worker(&world, &third, &["--session", &session, "--approvals", "allow"]);
    comes("it is answered", || world.workspace.join("third.txt").exists());
    drop(watching);
}

#[test]
fn a_running_worker_takes_up_changed_rules_and_guidance() {
    let read = "[[turn]]\nwhen = { contains = \"Speak of pears\" }\ntext = \"of pears\"\n\
                [[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"s.txt\" } }]\n[[turn]]\ntext = \"Looked.\"\n";
    let (world, model) = scripted(read);
    world.write("s.txt", "TOPSECRET\n");
    let child = worker(&world, &model, &[]);
    let codes = |session: &str| crate::driven::codes(&crate::driven::events(&world, session));
    let settled = |session: &str| status(&world, session)["status"] == "idle" && status(&world, session)["turns"] != 0;
    let first = told(&world, "look");
    comes("the first is looked at", || settled(&first) && !codes(&first).is_empty());
    assert_eq!(codes(&first), ["ok"]);
    world.configure("[[rules]]\naction = \"read\"\npath = \"/workspace/s.txt\"\neffect = \"deny\"\n");
    let second = told(&world, "look");
    comes("the second is looked at", || !codes(&second).is_empty());
    assert_eq!(codes(&second), ["policy_denied"]);
    // Also a session that it has worked on before.
    world.run(&["sessions", "send", &first, "look again"]).ends(0);
    world.write("AGENTS.md", "Speak of pears.\n");
    let third = told(&world, "look");
    comes("the third is guided", || {
        let shown = world.run(&["sessions", "search", "of pears"]).out;
        shown.contains(&third) && shown.contains("agent.message")
    });
    // Rules that nobody can read are in nobody's place: nothing goes on until they can be.
    world.configure("[[rules]]\neffect = \"denny\"\n");
    let sound = world.home.join("sound.toml");
    std::fs::write(&sound, "").expect("written");
    let sound = sound.to_str().expect("a path");
    let fourth = world.run(&["sessions", "new", "look", "--config", sound]).ends(0).id("sesn_");
    let mut child = child;
    crate::common::until(child.stdout.as_mut().expect("piped"), "`action` is missing");
    let left = world.run(&["sessions", "status", &fourth, "--json", "--config", sound]).ends(0).json();
    assert_eq!(left["pending_events"], 1);
    drop(child);
}

#[test]
fn what_is_only_recorded_needs_no_folder() {
    let (world, model) = scripted(WRITES);
    let (waits, rests) = (told(&world, "make it"), told(&world, "later"));
    let ask = wake(&world, &waits, &model).ends(3).id("ask_");
    std::fs::remove_dir_all(&world.workspace).expect("removed");
    let run = |words: &[&str]| {
        let mut command = world.command(words);
        command.current_dir(world.config.parent().expect("above"));
        crate::common::Ran::from(command.output().expect("runs"))
    };
    run(&["sessions", "send", &rests, "hello"]).ends(0);
    run(&["sessions", "interrupt", &rests]).ends(0);
    run(&["approvals", "deny", &ask]).ends(0);
    // Whoever would work there still cannot.
    run(&["sessions", "wake", &rests, "--model", &model]).ends(1).warns("is gone");
}

#[test]
fn an_unknown_call_is_resolved_with_the_command_that_lists_it_where_the_folder_is_gone() {
    let world = World::new();
    world.run(&["demo", "--crash"]).ends(0);
    let listed = world.run(&["sessions", "unknown"]).ends(0);
    let line = listed.err.lines().find_map(|line| line.split_once("with: portcullis ")).expect("a command").1;
    world.run(&line.split(' ').collect::<Vec<_>>()).ends(0).says("recorded");
    world.run(&["sessions", "unknown"]).ends(0).warns("no call has an unknown outcome");
}

#[test]
fn a_conversation_in_which_nothing_was_said_is_not_gone_on_with() {
    let (world, model) = scripted("[[turn]]\ntext = \"First.\"\n[[turn]]\ntext = \"Second.\"\n");
    world.run(&["run", "hello", "--model", &model]).ends(0).says("First.");
    let (mut child, keys, out) = on_terminal(&world, &format!("run --model {model}"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until(READY);
    terminal.types("\x04");
    child.wait().expect("ends");
    world.run(&["run", "and now", "--continue", "--model", &model]).ends(0).says("Second.");
}

#[test]
fn the_newest_session_of_a_folder_is_found_behind_any_number_of_others() {
    let (world, model) = scripted("[[turn]]\ntext = \"First.\"\n[[turn]]\ntext = \"Second.\"\n");
    world.run(&["run", "hello", "--model", &model]).ends(0).says("First.");
    let other = tempfile::tempdir().expect("a folder");
    let artifacts = LocalArtifacts::open(&world.home.join("artifacts"), Arc::new(SystemIds::new())).expect("opens");
    let runtime = tokio::runtime::Runtime::new().expect("runs");
    runtime.block_on(async {
        let store = store(&world);
        let elsewhere = Runtime::builder().workspace(other.path()).store(store, Arc::new(artifacts)).build();
        let elsewhere = elsewhere.expect("builds");
        for _ in 0..1_001 {
            elsewhere.create_session("other").await.expect("made");
        }
    });
    world.run(&["run", "and now", "--continue", "--model", &model]).ends(0).says("Second.");
    let listed = world.run(&["sessions", "list", "--json"]).ends(0).json();
    assert_eq!((listed["sessions"].as_array().map(Vec::len), &listed["more"]), (Some(1_000), &true.into()));
}

#[test]
fn a_wake_that_finds_nothing_due_says_when_the_next_one_is() {
    let later = "[[turn]]\ntext = '''Later. <portcullis-session-loop>{\"outcome\":\"sleep\",\"queuedWakes\":[{\"reason\":\"look\",\
                 \"delaySeconds\":600}]}</portcullis-session-loop>'''\n";
    let (world, model) = scripted(later);
    let session = told(&world, "later");
    wake(&world, &session, &model).ends(0);
    let due = status(&world, &session)["next_queued_wake_at"].as_str().expect("a time").to_owned();
    wake(&world, &session, &model).ends(0).says(&format!("nothing is due; the next wake is at {due}"));
}

#[test]
fn what_is_sent_to_a_session_that_waits_says_what_is_answered_first() {
    let (world, model) = scripted(WRITES);
    let session = told(&world, "make it");
    let ask = wake(&world, &session, &model).ends(3).id("ask_");
    let ran = world.run(&["sessions", "send", &session, "hurry"]).ends(0);
    ran.warns(&format!("it is heard once this is answered: portcullis approvals show {ask}")).warns("then a worker");
    let sent = world.run(&["sessions", "send", &session, "hurry", "--json"]).ends(0).json();
    assert_eq!(sent["commands"].as_array().map(Vec::len), Some(2), "{sent}");
}
