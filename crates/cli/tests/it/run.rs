//! Transcripts of `run`: a scripted model at work through the real binary.

use crate::common::{Ran, World, interrupt, on_terminal};
use crate::run_talk::Terminal;

/// A project whose one test fails, and a model that mends it.
const MEND: &str = r#"
[[turn]]
text = "I will look first."
calls = [{ name = "read", input = { file_path = "sum.sh" } }]
[[turn]]
text = "It subtracts."
calls = [{ name = "edit", input = { file_path = "sum.sh", old_string = "$1 - $2", new_string = "$1 + $2" } }]
[[turn]]
calls = [{ name = "bash", input = { command = "sh test.sh" } }]
[[turn]]
text = "Fixed sum.sh; the tests pass."
"#;

fn project() -> World {
    let world = World::with_file("sum.sh", "echo \"$(($1 - $2))\"\n");
    world.write("test.sh", "[ \"$(sh ./sum.sh 2 3)\" = 5 ] || { echo not ok 1; exit 1; }\necho ok 1\n");
    world
}

/// Lays a script beside the workspace; the name of its model.
fn script(world: &World, text: &str) -> String {
    let path = world.home.with_file_name("script.toml");
    std::fs::write(&path, text).expect("written");
    format!("scripted:{}", path.display())
}

fn run(world: &World, script_text: &str, more: &[&str]) -> Ran {
    let model = script(world, script_text);
    let mut args = vec!["run", "mend sum.sh", "--model", &model];
    args.extend(more);
    world.run(&args)
}

#[test]
fn a_model_works_until_it_is_done_and_its_words_are_checked() {
    let world = project();
    let ran = run(&world, MEND, &["--approvals", "allow"]).ends(0);
    assert_eq!(ran.out, "I will look first.\nIt subtracts.\nFixed sum.sh; the tests pass.\n");
    let ran = ran.warns("✓ read sum.sh (").warns("✓ edit sum.sh (").warns("allowed by --approvals: edit");
    let ran = ran.warns("fact-check: supported").warns("4 requests, 3 calls");
    assert_eq!(world.read("sum.sh"), "echo \"$(($1 + $2))\"\n");
    let session = ran.id("sesn_");
    world.run(&["audit", "verify", &session]).ends(0);
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
}

#[test]
fn a_claim_is_told_in_our_words_and_so_without_quotation_marks() {
    let world = project();
    let lie = "[[turn]]\ntext = \"I fixed sum.sh, and I ran the tests.\"\n";
    let ran = run(&world, lie, &["--approvals", "allow"]).ends(1).warns("fact-check: contradicted");
    let ran = ran.warns("contradicted: ran the tests: no such command ran in this session");
    assert!(!ran.err.contains("mended") && !ran.err.contains("\"ran"), "{}", ran.err);
}

#[test]
fn an_answer_that_facts_contradict_is_said_to_be() {
    let world = project();
    let lie = MEND.replace("$1 + $2", "$1 * $2");
    run(&world, &lie, &["--approvals", "allow"]).ends(1).warns("fact-check: contradicted").warns("(exit 1, ");
}

#[test]
fn l76_answers_are_checked_against_what_the_real_tools_record() {
    let turn = |call: &str| format!("[[turn]]\ncalls = [{call}]\n");
    let shell = |line: &str| turn(&format!("{{ name = \"bash\", input = {{ command = \"{line}\" }} }}"));
    let edits = turn(r#"{ name = "read", input = { file_path = "sum.sh" } }"#)
        + &turn(
            r#"{ name = "edit", input = { file_path = "sum.sh", old_string = "$1 - $2", new_string = "$1 * $2" } }"#,
        );
    let red = edits.clone() + &shell("sh test.sh") + &shell("sh test_ok.sh");
    let moved = shell("cd lib") + &shell("touch new.sh");
    for (calls, answer, exit, verdict) in [
        (&edits, "I edited `sum.sh`.", 0, "supported"),
        (&edits, "I edited `WS/sum.sh`.", 0, "supported"),
        (&edits, "I edited `lib/sum.sh`.", 1, "contradicted"),
        (&edits, "I edited `/etc/sum.sh`.", 1, "contradicted"),
        (&red, "`sh test_ok.sh` passes.", 0, "supported"),
        (&red, "`sh test_ok.sh` passes, `sh test.sh` fails.", 0, "supported"),
        (&red, "`sh test.sh` passes.", 1, "contradicted"),
        (&red, "All tests pass.", 1, "contradicted"),
        (&red, "I edited `sum.sh`. Tests pass: no.", 0, "supported"),
        (&red, "I edited `sum.sh` and ran `sh test.sh`: all good.", 1, "contradicted"),
        (&moved, "I created `lib/new.sh`.", 0, "supported"),
        (&moved, "I created `src/new.sh`.", 1, "contradicted"),
    ] {
        let world = project();
        world.write("test_ok.sh", "exit 0\n");
        world.write("lib/old.sh", "exit 0\n");
        let answer = answer.replace("WS", &world.workspace.display().to_string());
        let text = format!("{calls}[[turn]]\ntext = '{answer}'\n");
        let ran = run(&world, &text, &["--approvals", "allow"]).ends(exit);
        ran.warns(&format!("fact-check: {verdict}"));
    }
}

#[test]
fn without_a_terminal_an_ask_pauses_the_run_and_the_printed_commands_go_on() {
    let world = project();
    let paused =
        run(&world, MEND, &[]).ends(3).warns("edit waits for an answer.").warns("then go on with: portcullis run");
    assert_eq!(world.read("sum.sh"), "echo \"$(($1 - $2))\"\n", "nothing before the answer");
    world.run(&["approvals", "allow", &paused.id("ask_")]).ends(0);
    let line =
        paused.err.lines().find_map(|line| line.split_once("then go on with: portcullis ")).expect("a command").1;
    let words: Vec<&str> = line.split(' ').collect();
    // The model hears what another process ran meanwhile, and goes on from there.
    let next = world.run(&words).ends(3).warns("bash waits for an answer.");
    // Here the call is run by the run itself.
    let model = script(&world, MEND);
    assert_ne!(next.id("ask_"), paused.id("ask_"));
    let done = world.run(&["run", "--continue", "--model", &model, "--approvals", "allow"]).ends(0);
    assert_eq!(done.out, "Fixed sum.sh; the tests pass.\n");
    done.warns("fact-check: supported");
}

#[test]
fn what_somebody_must_know_to_go_on_is_told_to_the_quiet_as_well() {
    let world = project();
    let paused = run(&world, MEND, &["--quiet"]).ends(3).warns("edit waits for an answer.");
    let ask = paused.id("ask_");
    let paused = paused.warns(&format!("allow once: portcullis approvals allow {ask}"));
    let paused = paused.warns("then go on with: portcullis run --session sesn_");
    assert!(!paused.err.contains("tokens in"), "{}", paused.err);
    let lie = MEND.replace("$1 + $2", "$1 * $2");
    let ran = run(&world, &lie, &["--approvals", "allow", "--quiet"]).ends(1).warns("fact-check: contradicted");
    assert!(!ran.err.contains("tokens in") && !ran.err.contains("read sum.sh"), "{}", ran.err);
}

#[test]
fn a_flag_refuses_every_ask_and_the_model_is_told() {
    let world = project();
    let ran = run(&world, MEND, &["--approvals", "deny"]).ends(1);
    ran.warns("✗ edit sum.sh (user_denied").warns("refused by --approvals").warns("fact-check: contradicted");
    assert_eq!(world.read("sum.sh"), "echo \"$(($1 - $2))\"\n");
}

#[test]
fn a_program_reads_one_document_for_each_thing_that_happened() {
    let world = project();
    let ran = run(&world, MEND, &["--approvals", "allow", "--json"]).ends(0);
    let lines = ran.lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().expect("a type")).collect();
    assert_eq!((kinds[0], kinds[1], kinds.last()), ("session", "wake", Some(&"end")));
    let count = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    assert_eq!((count("request"), count("call"), count("observation"), count("reply")), (4, 3, 3, 2), "{kinds:?}");
    let text: String =
        lines.iter().filter_map(|line| line["text"].as_str().filter(|_| line["type"] == "text")).collect();
    assert_eq!(text, "I will look first.It subtracts.Fixed sum.sh; the tests pass.");
    let end = lines.last().expect("an end");
    assert_eq!((&end["exit"], &end["stop"]), (&0.into(), &"done".into()));
    assert_eq!(end["checked"]["verdict"], "supported");
    assert!(end["usage"]["output_tokens"].as_u64() > Some(0), "{end}");
    // A pause is told with everything that is needed to answer.
    let end = run(&world, &MEND.replace("$1 - $2", "$1 + $2"), &["--json"]).ends(3).lines().pop().expect("an end");
    assert_eq!((&end["exit"], &end["stop"]), (&3.into(), &"requires_action".into()));
    assert!(end["asks"][0]["commands"][1].as_str().is_some_and(|c| c.starts_with("portcullis approvals allow ask_")));
}

#[test]
fn a_key_selects_and_enter_answers_an_ask_at_a_terminal() {
    let world = project();
    let model = script(&world, MEND);
    let (mut child, keys, out) = on_terminal(&world, &format!("run mend --model {model}"));
    let mut terminal = Terminal::new(keys, out);
    let shown = terminal.until("b no, because");
    assert!(shown.contains("+echo") && shown.contains("this project"), "{shown}");
    terminal.answers("a");
    terminal.until("b no, because");
    terminal.answers("b");
    terminal.until("Enter ends it");
    terminal.types("not now\n");
    let shown = terminal.until("look at it with");
    assert!(shown.contains("user_denied"), "{shown}");
    assert_eq!(child.wait().expect("ends").code(), Some(1), "what it claims did not happen");
    assert_eq!(world.read("sum.sh"), "echo \"$(($1 + $2))\"\n");
    world.run(&["sessions", "search", "not now"]).ends(0).says("tool.permission.replied");
}

#[test]
fn ctrl_c_ends_the_command_and_the_session_goes_on_later() {
    let world = project();
    let slow = MEND.replace("sh test.sh", "touch started; sleep 600; touch ended");
    let model = script(&world, &slow);
    let child = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    while !world.workspace.join("started").exists() {
        std::thread::yield_now();
    }
    let since = std::time::Instant::now();
    interrupt(&child);
    let ran: Ran = child.wait_with_output().expect("ends").into();
    // Far less than the time after which the command would be stopped anyway.
    assert!(since.elapsed() < std::time::Duration::from_secs(60), "{:?}", since.elapsed());
    let ran = ran.ends(130).warns("interrupted; go on with: portcullis run --session sesn_");
    let more = world.run(&["run", "go on", "--session", &ran.id("sesn_"), "--model", &model]).ends(0);
    assert!(more.out.contains("Fixed sum.sh"), "{}", more.out);
    assert!(!world.workspace.join("ended").exists(), "it was stopped");
}

#[test]
fn without_a_model_it_says_what_to_set_and_names_the_demo() {
    let world = project();
    let ran = world.run(&["run", "hello"]).ends(2).one_error_line();
    assert!(ran.err.contains("ANTHROPIC_API_KEY") && ran.err.contains("portcullis demo"), "{}", ran.err);
    assert!(!world.home.exists(), "nothing was made on disk");
    let ran = world.run(&["run", "hello", "--model", "antropic/x"]).ends(2).one_error_line();
    assert!(ran.err.contains("did you mean `anthropic`"), "{}", ran.err);
    world.run(&["run"]).ends(2).one_error_line().warns("portcullis run \"PROMPT\"");
    world.run(&["run", "--continue", "--model", "scripted:none.toml"]).ends(2).warns("cannot be read");
    world.configure("[model]\ndefualt = \"x\"\n");
    world.run(&["run", "hello"]).ends(2).warns("the nearest known one is `default`");
    let model = script(&world, MEND);
    world.configure(&format!("[model]\ndefault = \"{model}\"\n"));
    world.run(&["run", "--continue"]).ends(1).warns("no session of");
    world.run(&["run", "hello", "--approvals", "deny"]).ends(1);
}

#[test]
fn the_workspace_guides_its_model() {
    let world = project();
    world.write("CLAUDE.md", "Speak of apples.");
    let echo =
        "[[turn]]\nwhen = { contains = \"Speak of apples\" }\ntext = \"guided\"\n[[turn]]\ntext = \"unguided\"\n";
    assert_eq!(run(&world, echo, &[]).ends(0).out, "guided\n");
    world.write("AGENTS.md", "Speak of pears.");
    assert_eq!(run(&world, echo, &[]).ends(0).out, "unguided\n", "AGENTS.md counts, CLAUDE.md only without it");
}

#[test]
fn a_configuration_says_how_many_requests_a_turn_may_take() {
    let world = project();
    let config = world.home.with_file_name("few.toml");
    std::fs::write(&config, "[model]\nmax_turns = 3\n").expect("written");
    let read = "[[turn]]\ntext = \"Once more.\"\ncalls = [{ name = \"read\", input = { file_path = \"sum.sh\" } }]\n";
    let model = script(&world, &read.repeat(9));
    let config = config.to_str().expect("a path");
    let ran = world.run(&["run", "look", "--model", &model, "--config", config]).ends(1);
    assert_eq!(ran.out.matches("Once more.").count(), 3, "{}", ran.out);
    ran.warns("3 requests, 2 calls")
        .warns("stopped at its limit of 3 model requests")
        .warns("max_requests_per_message");
    // Its newer name, and the bound of a wake, of which nothing is told.
    std::fs::write(config, "[limits]\nmax_requests_per_message = 4\nmax_turns_per_wake = 1\n").expect("written");
    let ran = world.run(&["run", "look", "--model", &model, "--config", config]).ends(1).warns("its limit of 4 model");
    let ran = ran.warns("4 requests, 3 calls");
    assert!(!ran.err.contains("wake") && !ran.err.contains("go on at"), "{}", ran.err);
    std::fs::write(config, "[model]\nmax_turns = 0\n").expect("written");
    world.run(&["run", "look", "--model", &model, "--config", config]).ends(2).warns("max_turns");
}
