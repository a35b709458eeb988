//! Models that misbehave, and runs that are killed: each leaves a transcript that makes sense.

use rustix::process::Signal;

use crate::common;
use crate::driven::{codes, events};
use crate::processes;

use common::{Ran, World, comes, interrupt};

fn script(world: &World, text: &str) -> String {
    let path = world.home.with_file_name("script.toml");
    std::fs::write(&path, text).expect("written");
    format!("scripted:{}", path.display())
}

fn run(world: &World, text: &str, more: &[&str]) -> Ran {
    let model = script(world, text);
    world.run(&[&["run", "go", "--model", &model], more].concat())
}

/// The log is whole, folds to what is stored, and every intent has its observation.
#[track_caller]
fn is_sane(world: &World, ran: &Ran) {
    let session = ran.id("sesn_");
    world.run(&["audit", "verify", &session]).ends(0);
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    world.run(&["sessions", "show", &session]).ends(0);
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0);
    let count = |kind: &str| events.lines().iter().filter(|event| event["type"] == kind).count();
    assert_eq!(count("tool.intent"), count("tool.observation"));
    assert_eq!(count("span.started"), count("span.completed"), "no wake is left open");
}

#[test]
fn calls_that_are_none_are_told_and_the_model_goes_on() {
    let world = World::with_file("a.txt", "hello\n");
    let ran = run(
        &world,
        r#"
[[turn]]
calls = [{ name = "no_such_tool", input = {} }, { name = "read", arguments = "not json" }]
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" }, id = "same" }, { name = "read", input = { file_path = "a.txt" }, id = "same" }]
[[turn]]
text = "I give up."
"#,
        &[],
    )
    .ends(0);
    let ran = ran.warns("(unknown_tool").warns("(input_unparseable").warns("(duplicate_call").says("I give up.");
    is_sane(&world, &ran);
}

#[test]
fn l69_a_key_that_a_model_repeats_is_in_no_event() {
    let key = "sk-ant-0123456789abcdef";
    let world = World::with_file("a.txt", &format!("the key is {key}\n"));
    let text = format!(
        "[[turn]]\ntext = \"It is {key}.\"\ncalls = [{{ name = \"read\", input = {{ file_path = \"a.txt\" }} }}]\n\
         [[turn]]\ntext = \"Once more: {key}.\"\n"
    );
    let model = script(&world, &text);
    let mut command = world.command(&["run", "go", "--model", &model]);
    let ran: Ran = command.env("ANTHROPIC_API_KEY", key).output().expect("runs").into();
    let session = ran.ends(0).id("sesn_");
    let log = world.run(&["sessions", "events", &session, "--json"]).ends(0).out;
    assert!(log.contains("It is ***") && log.contains("the key is ***"), "{log}");
    assert!(!log.contains(key));
}

#[test]
fn half_an_answer_is_not_used_and_is_asked_for_again() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ntext = \"A long answer that will break off in the middle of it.\"\n\
                [defaults]\nfail = [{ turn = 1, cut_after_bytes = 20 }]\n";
    let ran = run(&world, text, &[]).ends(0).warns("the model failed").warns("next try in 5 s");
    assert_eq!(ran.out, "A long answer that will break off in the middle of it.\n");
    is_sane(&world, &ran);
}

#[test]
fn a_provider_that_has_no_room_is_waited_for_and_ctrl_c_interrupts_the_session() {
    for status in ["429", "500", "529"] {
        let world = World::with_file("a.txt", "hello\n");
        let text = format!(
            "[[turn]]\ntext = \"done\"\n[defaults]\nfail = [{{ turn = 1, status = {status}, retry_after_ms = 60000 }}]\n"
        );
        let model = script(&world, &text);
        let mut child = world.command(&["run", "go", "--model", &model]).spawn().expect("starts");
        let mut err = child.stderr.take().expect("piped");
        common::until(&mut err, "next try in");
        interrupt(&child);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut err, &mut rest).expect("read");
        assert_eq!(child.wait().expect("ends").code(), Some(130), "{status}: {rest}");
        assert!(rest.contains("go on with: portcullis run --session"), "{rest}");
        let ran = Ran { code: 0, out: rest, err: String::new() };
        is_sane(&world, &ran);
        // It is told to the session, so that no try that was queued is made by whoever comes next.
        let kinds: Vec<String> = events(&world, &ran.id("sesn_"))
            .iter()
            .filter_map(|event| Some(event["type"].as_str()?.to_owned()))
            .collect();
        assert!(kinds.iter().any(|kind| kind == "user.interrupt"), "{kinds:?}");
        assert!(kinds.iter().any(|kind| kind == "wake.cancelled"), "{kinds:?}");
    }
}

#[test]
fn a_provider_that_wants_an_hour_is_not_waited_for_where_nobody_sits() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ntext = \"done\"\n[defaults]\nfail = [{ turn = 1, status = 429, retry_after_ms = 3600000 }]\n";
    let ran = run(&world, text, &[]).ends(1).warns("no more than 300 s are waited for");
    let ran = ran.warns("go on with: portcullis run --session");
    is_sane(&world, &ran);
}

#[test]
fn a_request_that_will_not_go_well_later_ends_the_run_at_once() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ntext = \"done\"\n[defaults]\nfail = [{ turn = 1, status = 401 }]\n";
    let ran = run(&world, text, &[]).ends(1).warns("error: the model failed: ").warns("go on with:");
    is_sane(&world, &ran);
    let session = ran.id("sesn_");
    // A script that fails again at each start is another's matter: with a good one the session goes on.
    let model = script(&world, "[[turn]]\ntext = \"done\"\n");
    world.run(&["run", "go on", "--session", &session, "--model", &model]).ends(0).says("done");
}

#[test]
fn an_answer_of_ten_megabytes_is_taken_or_refused_in_whole() {
    let world = World::with_file("a.txt", "hello\n");
    let big = "x".repeat(10 << 20);
    let text = format!(
        "[[turn]]\ncalls = [{{ name = \"write\", input = {{ file_path = \"b.txt\", content = \"{big}\" }} }}]\n[[turn]]\ntext = \"done\"\n"
    );
    let ran = run(&world, &text, &["--approvals", "allow"]).ends(0).says("done").warns("✗ write");
    assert!(!world.workspace.join("b.txt").exists());
    is_sane(&world, &ran);
}

#[test]
fn a_model_that_repeats_one_call_for_ever_is_stopped() {
    let world = World::with_file("a.txt", "hello\n");
    let text = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\nrepeat = 200\n";
    // It is told that it goes in circles long before it is stopped.
    let ran = run(&world, text, &[]).ends(1).warns("(loop_detected").warns("9 requests, 8 calls");
    let ran = ran.warns("the model made the same calls again and again");
    is_sane(&world, &ran);
    let codes = codes(&events(&world, &ran.id("sesn_")));
    let told = codes.iter().position(|code| code == "loop_detected").expect("it is told");
    assert!(told <= 5 && codes[told..].iter().all(|code| code == "loop_detected"), "{codes:?}");
}

#[test]
fn a_model_that_repeats_two_calls_in_turn_for_ever_is_stopped() {
    let world = World::with_file("a.txt", "hello\n");
    let turn =
        |pattern: &str| format!("[[turn]]\ncalls = [{{ name = \"glob\", input = {{ pattern = \"{pattern}\" }} }}]\n");
    let pair = turn("*") + &turn("*.txt");
    let ran = run(&world, &pair.repeat(100), &[]).ends(1).warns("(loop_detected").warns("12 requests, 11 calls");
    is_sane(&world, &ran);
    let codes = codes(&events(&world, &ran.id("sesn_")));
    assert_eq!(codes.iter().filter(|code| *code == "loop_detected").count(), 3, "{codes:?}");
}

#[test]
fn a_model_that_repeats_a_call_that_cannot_be_made_is_stopped() {
    for call in ["{ name = \"read\", input = { no_such_field = 1 } }", "{ name = \"no_such_tool\", input = {} }"] {
        let world = World::new();
        let ran = run(&world, &format!("[[turn]]\ncalls = [{call}]\nrepeat = 200\n"), &[]).ends(1);
        is_sane(&world, &ran.warns("7 requests, 6 calls").warns("the same calls again and again"));
    }
}

#[test]
fn ten_megabytes_of_text_are_one_answer_and_the_session_goes_on() {
    let world = World::with_file("a.txt", "hello\n");
    let big = "words and more ".repeat((10 << 20) / 15);
    let text = format!("[[turn]]\ntext = \"{big}\"\n[[turn]]\ntext = \"That was long.\"\n");
    let ran = run(&world, &text, &[]).ends(0).warns("fact-check: no_claims");
    assert!(ran.out.len() >= big.len(), "all of it is shown: {} bytes", ran.out.len());
    is_sane(&world, &ran);
    let model = script(&world, &text);
    world.run(&["run", "and now?", "--continue", "--model", &model]).ends(0).says("That was long.");
    is_sane(&world, &ran);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_the_session_goes_on_later() {
    let world = World::with_file("a.txt", "hello\n");
    // A command that heeds no polite word, so that there is something to wait for.
    let text = r#"
[[turn]]
calls = [{ name = "bash", input = { command = "sh -c 'trap \"\" TERM INT HUP; touch began; while :; do sleep 0.1; done' heeds-nothing" } }]
[[turn]]
text = "I go on."
"#;
    let model = script(&world, text);
    let mut child = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    comes("its command runs", || world.workspace.join("began").exists());
    let started = processes::descendants(child.id());
    assert!(!started.is_empty());
    let mut err = child.stderr.take().expect("piped");
    interrupt(&child);
    common::until(&mut err, "Ctrl-C again leaves at once");
    let since = std::time::Instant::now();
    interrupt(&child);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut err, &mut rest).expect("read");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest}");
    assert!(since.elapsed() < std::time::Duration::from_secs(2), "{:?}", since.elapsed());
    assert!(rest.contains("left before the session settled; go on with: portcullis run --session sesn_"), "{rest}");
    comes("nothing that it started runs", || !started.iter().any(processes::runs_still));
    let ran = world.run(&["run", "go on", "--continue", "--model", &model]).ends(0).says("I go on.");
    is_sane(&world, &ran);
    let codes = codes(&events(&world, &ran.id("sesn_")));
    assert!(codes == ["outcome_unknown"] || codes == ["cancelled"], "{codes:?}");
}

#[test]
fn a_killed_run_goes_on_with_continue_and_its_command_is_dead_and_unknown() {
    let world = World::with_file("a.txt", "hello\n");
    let text = r#"
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" } }]
[[turn]]
calls = [{ name = "bash", input = { command = "echo began >> began.txt; sleep 5; echo ended >> ended.txt" } }]
[[turn]]
when = { contains = "outcome_unknown" }
text = "I do not know how that ended."
[[turn]]
text = "It ended."
"#;
    let model = script(&world, text);
    let mut child = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    // The file is there before the shell has written its line into it.
    comes("the command wrote its line", || world.read_or_nothing("began.txt") == "began\n");
    child.kill().expect("killed");
    child.wait().expect("gone");
    let since = std::time::Instant::now();
    let ran = world.run(&["run", "--continue", "--model", &model]).ends(0).says("I do not know how that ended.");
    is_sane(&world, &ran);
    let session = ran.id("sesn_");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).out;
    assert_eq!(events.matches(r#"\"code\":\"outcome_unknown\""#).count(), 1);
    assert_eq!(world.read("began.txt").lines().count(), 1, "nothing ran twice");
    // Had it lived, it would have ended by then.
    while since.elapsed() < std::time::Duration::from_secs(6) {
        assert!(!world.workspace.join("ended.txt").exists(), "the command outlived its run");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn a_refusal_is_no_success_and_an_empty_answer_is_said_to_be_one() {
    let refuses = "[[turn]]\nstop = \"refusal\"\ntext = \" \"\n".repeat(9);
    let refuses = refuses.as_str();
    let world = World::new();
    let ran = run(&world, refuses, &[]).ends(1).warns("error: the model refused to answer");
    assert_eq!(ran.out.trim(), "");
    is_sane(&world, &ran);
    let end = run(&world, refuses, &["--json"]).ends(1).lines().pop().expect("an end");
    assert_eq!((&end["type"], &end["stop"], &end["exit"]), (&"end".into(), &"refusal".into(), &1.into()), "{end}");
    let words = "[[turn]]\nstop = \"refusal\"\ntext = \"I will not.\"\n";
    run(&world, words, &[]).ends(1).says("I will not.").warns("error: the model refused");
    let empty = run(&world, "[[turn]]\ntext = \" \"\n", &[]).ends(0).warns("the model gave an empty answer");
    is_sane(&world, &empty);

    // So say those who wake a session.
    let model = script(&world, refuses);
    let session = world.run(&["sessions", "new", "do it"]).ends(0).id("sesn_");
    let woken = world.run(&["sessions", "wake", &session, "--model", &model]).ends(1);
    woken.warns("the model refused to answer");
    world.run(&["sessions", "send", &session, "do it"]).ends(0);
    let worked = world.run(&["worker", "--model", &model]).ends(0);
    worked.says(&format!("{session} done (refusal, fact-check: no_claims): the model refused to answer"));
}

#[test]
fn a_limit_that_was_reached_before_an_answer_is_no_success() {
    let world = World::new();
    let thought = "[[turn]]\nstop = \"max_tokens\"\nthinking = \"so long\"\ntext = \" \"\n".repeat(2);
    let ran = run(&world, &thought, &[]).ends(1).warns("came to its limit of tokens before it answered");
    is_sane(&world, &ran);
    let end = run(&world, &thought, &["--json"]).ends(1).lines().pop().expect("an end");
    assert_eq!((&end["stop"], &end["exit"]), (&"limit".into(), &1.into()), "{end}");
}

/// A run with documents, once its one call works.
fn at_work(world: &World, signal: &str, command: &str) -> crate::driven::Process {
    let calls = format!("[{{ name = \"bash\", input = {{ command = \"touch began; {command}\" }} }}]");
    let model = script(world, &format!("[[turn]]\ncalls = {calls}\n[[turn]]\ntext = \"Over.\"\n"));
    let mut run = world.command_by(signal, &["run", "go", "--model", &model, "--approvals", "allow", "--json"]);
    let child = crate::driven::Process::of(run.spawn().expect("starts"));
    comes("it works", || world.workspace.join("began").exists());
    child
}

#[test]
fn a_run_that_is_told_to_leave_settles_what_runs_and_ends_its_documents() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = World::new();
        let child = at_work(&world, "--default-signal=HUP", "sleep 600");
        crate::driven::signal(&child, signal);
        let ran = child.output().ends(code);
        let end = ran.lines().pop().expect("an end");
        assert_eq!((&end["type"], &end["stop"], &end["exit"]), (&"end".into(), &"interrupted".into(), &code.into()));
        let session = end["session_id"].as_str().expect("an id").to_owned();
        assert_eq!(codes(&events(&world, &session)), ["cancelled"], "{signal:?}");
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let world = World::new();
    let child = at_work(&world, "--ignore-signal=HUP", "sleep 0.5");
    crate::driven::signal(&child, Signal::HUP);
    let end = child.output().ends(0).lines().pop().expect("an end");
    assert_eq!(end["stop"], "done", "{end}");
}

#[test]
fn a_stream_of_documents_that_breaks_off_ends_with_an_end() {
    let world = World::with_file("a.txt", "hello\n");
    let slow = "[[turn]]\ntext = \"Hello.\"\n[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch began; sleep 600\" } }]\n";
    let session = run(&world, slow, &[]).ends(0).id("sesn_");
    let model = script(&world, slow);
    // Somebody else holds the session.
    let words = ["run", "wait", "--session", &session, "--model", &model, "--approvals", "allow"];
    let holder = crate::driven::Process::of(world.command(&words).spawn().expect("starts"));
    comes("it runs", || world.workspace.join("began").exists());
    let ran = world.run(&["run", "go", "--session", &session, "--model", &model, "--json"]).ends(5);
    let lines = ran.lines();
    assert!(lines.iter().all(|line| line["type"].is_string()), "{lines:?}");
    let end = lines.last().expect("an end");
    assert_eq!((&end["type"], &end["stop"], &end["exit"]), (&"end".into(), &"error".into(), &5.into()), "{end}");
    assert_eq!(end["session_id"], session.as_str());
    assert!(end["error"]["message"].as_str().is_some_and(|text| text.contains("in use by")), "{end}");
    assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
    drop(holder);
}

#[test]
fn a_configuration_says_how_long_an_answer_may_be_and_how_long_a_model_may_be_silent() {
    let world = World::new();
    let model = script(&world, "[[turn]]\ntext = \"Hello.\"\n");
    for wrong in ["0", "15", "1000001", "-1", "\"many\""] {
        world.configure(&format!("[model]\nmax_output_tokens = {wrong}\n"));
        let ran = world.run(&["run", "hello", "--model", &model]).ends(2).one_error_line();
        assert!(ran.err.contains("`model.max_output_tokens`") && ran.err.contains("tokens"), "{}", ran.err);
    }
    // Longer than the model may be silent: it fails, and nobody waits for the words.
    let words = "Hello. ".repeat(100);
    let slow = format!("[[turn]]\ntext = \"{words}\"\n[defaults]\nstream_delay_ms = 600000\n");
    let slow = script(&world, &slow);
    world.configure("[model]\ntimeout = \"1s\"\nmax_output_tokens = 16\n");
    let session = world.run(&["sessions", "new", "hello"]).ends(0).id("sesn_");
    let since = std::time::Instant::now();
    world.run(&["sessions", "wake", &session, "--model", &slow]).ends(1).warns("1 s");
    assert!(since.elapsed() < std::time::Duration::from_secs(60), "{:?}", since.elapsed());
}
