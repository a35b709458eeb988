//! Transcripts of looking back: the waterfall of a wake, forks, and another model over the recorded facts.

use crate::common;

use crate::driven::{count, events, head, script, scripted, told, wake};

const REPAIR: &str = r#"
[[turn]]
text = "I will look."
calls = [{ name = "read", input = { file_path = "a.txt" } }, { name = "read", input = { file_path = "b.txt" } }]
[[turn]]
calls = [{ name = "grep", input = { pattern = "hello" } }]
[[turn]]
text = "Both say hello."
[[turn]]
text = "You are welcome."
"#;

/// A session that looked at two files, and was thanked.
fn looked() -> (common::World, String, String) {
    let (world, model) = scripted(REPAIR);
    world.write("a.txt", "hello\n");
    world.write("b.txt", "hello\n");
    let session = told(&world, "what do they say?");
    wake(&world, &session, &model).ends(0).says("Both say hello.");
    world.run(&["sessions", "send", &session, "thank you"]).ends(0);
    wake(&world, &session, &model).ends(0).says("You are welcome.");
    (world, model, session)
}

#[test]
fn l70_redrive_names_the_first_diverging_call_and_executes_nothing() {
    let (world, model, session) = looked();
    let before = head(&world, &session);
    let redrive = |model: &str, more: &[&str]| {
        let mut words = vec!["replay", &session, "--mode", "redrive", "--model", model];
        words.extend(more);
        world.run(&words)
    };
    redrive(&model, &[]).ends(0).says("4 requests and made 3 calls as recorded; nothing differs");

    // The second call of the first answer differs: it would write.
    let writes = REPAIR.replace(
        r#"{ name = "read", input = { file_path = "b.txt" } }"#,
        r#"{ name = "write", input = { file_path = "c.txt", content = "x" } }"#,
    );
    let writes = script(&world, "writes.toml", &writes);
    let ran = redrive(&writes, &[]).ends(1).warns("replay_diverged: at event 9, request 1, call 2: recorded read");
    assert!(ran.err.contains(r#"{"file_path":"b.txt"}, proposed write"#), "{}", ran.err);
    let found = redrive(&writes, &["--json"]).ends(1).json();
    assert_eq!((&found["code"], &found["calls"]), (&"replay_diverged".into(), &1.into()), "{found}");
    assert_eq!(found["diverged"]["recorded"]["input"]["file_path"], "b.txt");
    assert!(!world.workspace.join("c.txt").exists(), "nothing ran");

    // The order of the fields is not a difference; another value is, and so are a call too few and one too many.
    let text = |turn: &str| REPAIR.replace(r#"calls = [{ name = "grep", input = { pattern = "hello" } }]"#, turn);
    let fewer = script(&world, "fewer.toml", &text(r#"text = "Done.""#));
    redrive(&fewer, &[]).ends(1).warns("proposed no call");
    let two = r#"calls = [{ name = "grep", input = { pattern = "hello" } }, { name = "read", input = { file_path = "a.txt" } }]"#;
    let more = script(&world, "more.toml", &text(two));
    redrive(&more, &[]).ends(1).warns("call 2: recorded no call, proposed read");
    let pattern = r#"calls = [{ name = "grep", input = { pattern = "other" } }]"#;
    let other = script(&world, "pattern.toml", &text(pattern));
    redrive(&other, &[]).ends(1).warns(r#"recorded grep {"pattern":"hello"}, proposed grep {"pattern":"other"}"#);
    // Up to there nothing differs.
    redrive(&more, &["--until", "17"]).ends(0);
    assert_eq!(head(&world, &session), before, "nothing was written");
    let reads = count(&events(&world, &session), "tool.invocation.started");
    assert_eq!(reads, 3);
}

#[test]
fn a_fork_stands_beneath_the_session_that_it_was_forked_from() {
    let (world, _, session) = looked();
    let alone = told(&world, "something else");
    let fork = |of: &str, name: &str| {
        let words = ["sessions", "fork", of, "--at", "5", "--name", name, "--json"];
        world.run(&words).ends(0).json()["session_id"].as_str().expect("an id").to_owned()
    };
    let first = fork(&session, "first");
    let second = fork(&first, "second");
    let drawn = world.run(&["sessions", "tree"]).ends(0).out;
    let line = |id: &str| drawn.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("no {id} in {drawn}"));
    assert!(line(&session).starts_with(&session) && line(&alone).starts_with(&alone), "{drawn}");
    assert!(line(&first).starts_with("└─ ") && line(&first).contains("a fork"), "{drawn}");
    assert!(line(&second).starts_with("   └─ "), "{drawn}");
    let document = world.run(&["sessions", "tree", &session, "--json"]).ends(0).json();
    let rows = document["sessions"][0]["tree"].as_array().expect("rows").clone();
    let from: Vec<_> = rows.iter().map(|row| row["forked_from"].as_str()).collect();
    assert_eq!(from, [None, Some(session.as_str()), Some(first.as_str())], "{document}");
}

#[test]
fn l70_redrive_of_a_session_without_a_model_claims_no_comparison() {
    let (world, model) = scripted(REPAIR);
    world.write("a.txt", "hello\n");
    let session = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).id("sesn_");
    let words = ["replay", &session, "--mode", "redrive", "--model", &model];
    let ran = world.run(&words).ends(0).says("no model has worked in this session");
    assert!(!ran.out.contains("nothing differs") && !ran.out.contains("as recorded"), "{}", ran.out);
    assert_eq!(world.run(&[&words[..], &["--json"]].concat()).ends(0).json()["compared"], false);
    let (world, model, session) = looked();
    let words = ["replay", &session, "--mode", "redrive", "--model", &model, "--json"];
    assert_eq!(world.run(&words).ends(0).json()["compared"], true);
}

#[test]
fn a_fork_goes_on_alone_and_the_parents_head_is_unchanged() {
    let (world, _, session) = looked();
    let before = head(&world, &session);
    let log = events(&world, &session);
    // After the first answer's calls were observed, in the middle of a wake.
    let at = log.iter().filter(|event| event["type"] == "tool.observation").nth(1).expect("two")["seq"].as_u64();
    let at = at.expect("a number").to_string();
    let made = world.run(&["sessions", "fork", &session, "--at", &at, "--json"]).ends(0).json();
    let fork = made["session_id"].as_str().expect("an id").to_owned();
    assert_eq!((made["at_seq"].to_string(), &made["left_out"]), (at, &serde_json::Value::Null));
    let copied = events(&world, &fork);
    assert_eq!(count(&copied, "session.forked"), 1);
    assert_eq!(count(&copied, "tool.observation"), 2);
    let shared = made["at_seq"].as_u64().expect("a number") as usize;
    let texts = |log: &[serde_json::Value]| -> Vec<String> {
        log[1..shared].iter().map(|event| format!("{} {}", event["type"], event["at"])).collect()
    };
    assert_eq!(texts(&log), texts(&copied));

    // It stands still until somebody speaks to it, and then goes its own way.
    let other =
        script(&world, "other.toml", "[[turn]]\ntext = \"I was told to stop here.\"\n[[turn]]\ntext = \"Stopped.\"\n");
    wake(&world, &fork, &other).ends(0).says("nothing is due");
    world.run(&["sessions", "send", &fork, "stop here"]).ends(0);
    wake(&world, &fork, &other).ends(0).says("Stopped.");
    assert_eq!(head(&world, &session), before);
    for session in [&session, &fork] {
        world.run(&["audit", "verify", session]).ends(0).says("proved up to");
        world.run(&["replay", session, "--mode", "rebuild"]).ends(0).says("the stored rows are equal to the fold");
    }
    world.run(&["audit", "verify"]).ends(0);
    assert_eq!(world.run(&["sessions", "show", &fork]).ends(0).code, 0);
}

#[test]
fn a_fork_in_the_middle_of_a_call_begins_before_it_and_takes_no_ask_along() {
    let (world, model) = scripted(
        "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"new.txt\", content = \"made\" } }]\n\
         [[turn]]\ntext = \"Done.\"\n",
    );
    let session = told(&world, "make it");
    let ask = wake(&world, &session, &model).ends(3).id("ask_");
    let last = events(&world, &session).len().to_string();
    let ran = world.run(&["sessions", "fork", &session, "--at", &last]).ends(0).warns("a call was open");
    let fork = ran.id("sesn_");
    let copied = events(&world, &fork);
    assert_eq!(count(&copied, "tool.permission.asked"), 0);
    assert_eq!(count(&copied, "tool.intent"), 0);
    // The parent's ask waits as before, and only there.
    let waiting = world.run(&["approvals", "list", "--json"]).ends(0).json();
    assert_eq!(waiting["asks"].as_array().expect("a list").len(), 1);
    world.run(&["approvals", "allow", &ask]).ends(0);
    assert_eq!(world.read("new.txt"), "made");
    // A settled ask is copied under a name of its own, and so are artifacts.
    wake(&world, &session, &model).ends(0);
    let last = events(&world, &session).len().to_string();
    let fork = world.run(&["sessions", "fork", &session, "--at", &last]).ends(0).id("sesn_");
    let copied = format!("{:?}", events(&world, &fork));
    assert!(copied.contains("ask_") && !copied.contains(&ask), "{copied}");
    for session in [&session, &fork] {
        world.run(&["replay", session, "--mode", "rebuild"]).ends(0).says("the stored rows are equal to the fold");
        world.run(&["audit", "verify", session]).ends(0);
    }
    world.run(&["sessions", "fork", &session, "--at", "9999"]).ends(1).warns("there is no event 9999");
    world.run(&["sessions", "fork", &session, "--at", "0"]).ends(2);
}

#[test]
fn a_fork_anywhere_in_a_turn_makes_none_of_its_calls_again() {
    let (world, model) = scripted(
        "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"echo one >> deploys\" } }, { name = \"bash\", input = { \
         command = \"echo two >> deploys\" } }]\n[[turn]]\ntext = \"Done.\"\n",
    );
    let session = told(&world, "deploy");
    world.run(&["sessions", "wake", &session, "--model", &model, "--approvals", "allow"]).ends(0);
    assert_eq!(world.read("deploys"), "one\ntwo\n");
    let other = script(&world, "other.toml", "[[turn]]\nrepeat = 9\ntext = \"Hi.\"\n");
    let log = events(&world, &session);
    let kinds = ["span.model_request_end", "tool.intent", "tool.invocation.started", "tool.observation"];
    let places = log.iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind));
    for place in places {
        let at = place["seq"].to_string();
        let fork = world.run(&["sessions", "fork", &session, "--at", &at]).ends(0).id("sesn_");
        world.run(&["sessions", "send", &fork, "only say hi"]).ends(0);
        let ran = world.run(&["sessions", "wake", &fork, "--model", &other, "--approvals", "allow"]).ends(0);
        ran.says("Hi.");
        assert_eq!(world.read("deploys"), "one\ntwo\n", "a fork at {at}, {}", place["type"]);
    }
}

#[test]
fn a_trace_draws_the_wake_its_requests_and_its_calls_from_the_log() {
    let (world, _, session) = looked();
    let drawn = world.run(&["sessions", "trace", &session, "--all"]).ends(0);
    assert!(!drawn.out.contains('\u{1b}'), "plain text in a pipe");
    assert_eq!(drawn.out.matches("\nwake ").count(), 2, "{}", drawn.out);
    assert_eq!(drawn.out.matches("\n  model scripted:").count(), 4, "{}", drawn.out);
    assert_eq!(drawn.out.matches("\n  read ").count(), 2, "{}", drawn.out);
    assert_eq!(drawn.out.matches("\n  grep ").count(), 1, "{}", drawn.out);
    assert!(drawn.out.lines().all(|line| line.chars().count() <= 200), "{}", drawn.out);
    let mut narrow = world.command(&["sessions", "trace", &session, "--all"]);
    let narrow: common::Ran = narrow.env("COLUMNS", "70").output().expect("it runs").into();
    let bars = narrow.out.lines().filter(|line| line.contains('█') || line.contains('▒'));
    assert!(bars.clone().count() > 0 && bars.clone().all(|line| line.chars().count() <= 70), "{}", narrow.out);
    // A terminal of forty columns: no line of it is wrapped, and the bars are still there.
    let words = format!("--color never sessions trace {session} --all");
    let (mut child, _keys, mut out) = common::on_terminal_of(&world, 40, &words);
    let mut shown = String::new();
    std::io::Read::read_to_string(&mut out, &mut shown).expect("text");
    assert!(child.wait().expect("ends").success());
    let rows: Vec<&str> = shown.lines().map(|line| line.trim_end_matches('\r')).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 40), "{shown}");
    assert!(rows.iter().any(|row| row.trim_start().starts_with("read ") && row.contains('█')), "{shown}");
    assert_eq!(rows.iter().filter(|row| row.starts_with("wake_")).count(), 2, "{shown}");
    // The newest alone, by default; and as a document.
    let newest = world.run(&["sessions", "trace", &session, "--json"]).ends(0).json();
    let wakes = newest["wakes"].as_array().expect("a list");
    assert_eq!((wakes.len(), wakes[0]["spans"].as_array().expect("a list").len()), (1, 1), "{newest}");
    let all = world.run(&["sessions", "trace", &session, "--all", "--json"]).ends(0).json();
    let spans = all["wakes"][0]["spans"].as_array().expect("a list").clone();
    let kinds: Vec<&str> = spans.iter().map(|span| span["kind"].as_str().expect("a word")).collect();
    assert_eq!(kinds, ["model_request", "call", "call", "model_request", "call", "model_request"], "{all}");
    for span in &spans {
        assert!(span["from"].as_str() <= span["to"].as_str(), "{span}");
    }
    world.run(&["sessions", "trace", &session, "--wake", "wake_00000000000000000000000001"]).ends(1);
}

#[test]
fn a_trace_shows_an_approved_call_blocked_where_it_asked_and_run_where_it_ran() {
    let (world, model) = scripted(
        "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"new.txt\", content = \"made\" } }, { name = \"glob\", \
         input = { pattern = \"*\" } }]\n[[turn]]\ntext = \"Done.\"\n",
    );
    let session = told(&world, "make it");
    world.run(&["sessions", "wake", &session, "--model", &model, "--approvals", "allow"]).ends(0).says("Done.");
    let all = world.run(&["sessions", "trace", &session, "--all", "--json"]).ends(0).json();
    let calls = |wake: usize| -> Vec<(String, String)> {
        let spans = all["wakes"][wake]["spans"].as_array().expect("a list").iter();
        let word = |span: &serde_json::Value, field: &str| span[field].as_str().unwrap_or_default().to_owned();
        spans.filter(|span| span["kind"] == "call").map(|span| (word(span, "name"), word(span, "result"))).collect()
    };
    assert_eq!(calls(0), [("write".to_owned(), "blocked".to_owned())], "{all:#}");
    assert_eq!(calls(1), [("write".to_owned(), "ok".to_owned()), ("glob".to_owned(), "ok".to_owned())], "{all:#}");
}

#[test]
fn erasing_a_session_names_the_forks_that_still_hold_it() {
    let (world, _, session) = looked();
    let fork = world.run(&["sessions", "fork", &session, "--at", "9"]).ends(0).id("sesn_");
    world.run(&["sessions", "rm", &session]).ends(2).warns("not erased with it: 1 fork");
    let erased = world.run(&["sessions", "rm", &session, "--yes"]).ends(0);
    erased.warns("a fork of it stays").warns(&format!("sessions rm {fork}"));
    let erased = world.run(&["sessions", "rm", &fork, "--yes", "--json"]).ends(0).json();
    assert_eq!(erased["forks_left"], serde_json::json!([]), "{erased}");
}

#[test]
fn what_is_said_while_an_ask_waits_is_told_to_be_kept() {
    let (world, model) = scripted(
        "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"a.txt\", content = \"x\" } }]\n[[turn]]\ntext = \"Done.\"\n",
    );
    world.run(&["run", "make it", "--model", &model]).ends(3);
    let ran = world.run(&["run", "--continue", "and the docs", "--model", &model]).ends(3);
    ran.warns("what you said is kept, and the model hears it when that is answered");
    let ran = world.run(&["run", "--continue", "--model", &model, "--approvals", "allow"]).ends(0);
    assert!(!ran.err.contains("is kept"), "{}", ran.err);
}
