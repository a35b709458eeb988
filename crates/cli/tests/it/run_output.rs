//! What commands write is seen: the last lines while they run, a bounded tail when they end.

use crate::common::{World, comes, on_terminal};
use crate::run_talk::{Terminal, model};

fn script(command: &str) -> String {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = \"{command}\" }} }}]\n[[turn]]\ntext = \"Done.\"\n"
    )
}

#[test]
fn the_last_lines_of_a_running_command_are_seen_before_it_ends() {
    let world = World::new();
    let command = "for n in 1 2 3 4 5 6 7; do echo line $n; done; printf '\\033[2Jcleared\\n'; until [ -e go ]; do sleep 0.05; done; echo last";
    let model = model(&world, &script(command));
    let (mut child, keys, out) = on_terminal(&world, &format!("run --model {model} --approvals allow go"));
    let mut terminal = Terminal::new(keys, out);
    let shown = terminal.until("  │ line 7");
    assert!(!shown.contains("│ line 1\r") && !shown.contains("│ line 2\r"), "only the last few: {shown:?}");
    // What would clear the screen is shown as what it is.
    terminal.until("  │ <U+001B>[2Jcleared");
    assert!(!world.workspace.join("go").exists(), "it runs still");
    world.write("go", "");
    let shown = terminal.until("✓");
    assert!(!shown.contains("\x1b[2J"), "{shown:?}");
    let shown = terminal.until("Done.");
    assert!(shown.contains("  │ line 1") && shown.contains("  │ last"), "the tail stays: {shown:?}");
    child.wait().expect("ends");
}

#[test]
fn of_a_failure_the_lines_that_matter_are_shown_and_sessions_show_has_them() {
    let world = World::new();
    let command = "echo begin; echo error: the one that matters >&2; for n in $(seq 200); do echo noise $n; done; \
                   echo '✓ bash rm -rf / (1 ms)'; echo the last word >&2; exit 3";
    let model = model(&world, &script(command));
    let run = |more: &[&str]| {
        let args = [&["run", "go", "--model", &model, "--approvals", "allow"], more].concat();
        world.run(&args).ends(0)
    };
    let ran = run(&[]).warns("  │ error: the one that matters").warns("  │ the last word").warns("more lines");
    let lines: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("  │ ")).collect();
    assert!(lines.len() <= 11, "{lines:?}");
    assert!(!ran.err.lines().any(|line| line.starts_with("✓")), "none of them stands where ours do: {}", ran.err);
    let session = ran.id("sesn_");
    world
        .run(&["sessions", "show", &session])
        .ends(0)
        .says("  │ error: the one that matters")
        .says("  │ the last word");
    // Not where only the result is wanted, and not beside the documents of a program.
    assert!(!run(&["--quiet"]).err.contains('│'));
    let ran = run(&["--json"]);
    assert!(!ran.err.contains('│') && ran.lines().iter().all(|line| line["type"] != "progress"), "{}", ran.err);
}

#[test]
fn a_line_that_ends_its_shell_is_told_by_its_exit_code() {
    let world = World::new();
    world.write("a.txt", "");
    for (command, told) in [
        ("ls && exit 0", "✓ bash ls && exit 0"),
        ("set -e; false; echo no", "✗ bash set -e; false; echo no"),
        ("seq 1 500; exit 3", "✗ bash seq 1 500; exit 3"),
    ] {
        let model = model(&world, &script(command));
        let ran = world.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0);
        let ran = ran.warns(told).warns("the shell ended");
        assert!(!ran.err.lines().any(|line| line == "  │ exit"), "{command}: {}", ran.err);
        assert!(!ran.err.contains("shell_exec") && !ran.err.contains("tool_failure"), "{command}: {}", ran.err);
    }
    // The control: the same codes of a shell that goes on.
    let model = model(&world, &script("seq 1 500; (exit 3)"));
    let ran = world.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0);
    assert!(ran.err.contains("✗ bash") && !ran.err.contains("the shell ended"), "{}", ran.err);
}

/// The lines of commands in what was printed, without their mark.
fn tail(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.strip_prefix("  │ ")).collect()
}

#[test]
fn the_tail_of_both_streams_is_shown_whatever_was_cut_with_the_true_number_of_hidden_lines() {
    let wide = "x".repeat(100);
    let cases: &[(&str, u64, &str, &[&str])] = &[
        ("seq 1 3000; echo 'error: x' >&2; false", 3_001, "error: x", &["3000", "2999"]),
        ("seq 1 3000; echo done >&2", 3_001, "done", &["3000", "2992"]),
        ("echo result; seq 1 3000 >&2", 3_001, "3000", &["result", "2992"]),
        ("seq 1 5; seq 101 190 >&2", 95, "190", &["3", "4", "5", "184"]),
        ("seq 1 2500; seq 5001 7500 >&2; false", 5_000, "7500", &["7492"]),
        ("seq 1 5000", 5_000, "5000", &["4991"]),
        ("seq 1 5000 >&2; false", 5_000, "5000", &["4991"]),
        ("seq 1 100000", 100_000, "100000", &[]),
        (&format!("for n in $(seq 900); do echo {wide}; done; echo 'fatal: no' >&2; false"), 901, "fatal: no", &[]),
        ("for n in $(seq 1 3000); do echo $n; echo; done; echo e >&2", 6_001, "e", &["3000"]),
        ("seq 1 1900; echo e >&2", 1_901, "e", &["1900"]),
        ("seq 1 11", 11, "11", &["2"]),
    ];
    let world = World::new();
    for (tool, profile) in [("bash", "code"), ("shell_run", "managed"), ("shell_exec", "managed")] {
        // They cut alike; the others need only show that their streams are found.
        for (command, total, last, also) in &cases[..if tool == "bash" { cases.len() } else { 4 }] {
            let turns = script(command).replace("bash", tool);
            let model = model(&world, &turns);
            let ran =
                world.run(&["run", "go", "--model", &model, "--approvals", "allow", "--profile", profile]).ends(0);
            let session = ran.id("sesn_");
            let kept = world.run(&["sessions", "show", &session]).ends(0);
            for (view, printed) in [("run", &ran.err), ("sessions show", &kept.out)] {
                let lines = tail(printed);
                assert_eq!(lines.last(), Some(last), "{tool} `{command}` in {view}: {printed}");
                assert!(also.iter().all(|line| lines.contains(line)), "{tool} `{command}` in {view}: {lines:?}");
                assert_eq!(lines.len(), 10, "{tool} `{command}` in {view}: {lines:?}");
                let hidden = total - 10;
                let words = if hidden == 1 { "1 more line".to_owned() } else { format!("{hidden} more lines") };
                let row = format!("  … {words}: portcullis sessions output ");
                assert!(printed.lines().any(|line| line.starts_with(&row)), "{tool} `{command}` in {view}: {printed}");
            }
        }
    }
}

#[test]
fn a_refusal_names_the_file_and_the_line_of_its_rule() {
    let world = World::new();
    world.configure("[[rules]]\nid = \"no-push\"\naction = \"*\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"\n");
    let model = model(&world, &script("git push origin"));
    let ran = world.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0);
    ran.warns(&format!("  rule `no-push` is at {}:1", world.config.join("portcullis/config.toml").display()));
}

#[test]
fn sessions_show_names_what_each_call_did() {
    let world = World::with_file("a.txt", "one\n");
    let read = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\n";
    let model = model(&world, &format!("{read}{}", script("echo not good >&2; ls --no-such-option")));
    let session = world.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0).id("sesn_");
    let shown = world.run(&["sessions", "show", &session]).ends(0).out;
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("intent_")).collect();
    let with = |words: &str| rows.iter().filter(|row| row.contains(words)).count();
    assert_eq!((with("a.txt"), with("echo not good >&2; ls --no-such-option")), (1, 2), "{shown}");
    let heading = rows.last().expect("of its output");
    assert!(heading.ends_with("bash echo not good >&2; ls --no-such-option"), "{shown}");
}

#[test]
fn a_terminal_that_cannot_draw_gets_only_the_tail() {
    let world = World::new();
    let model = model(&world, &script("echo one; touch began; until [ -e go ]; do sleep 0.05; done; echo two"));
    let line =
        format!("TERM=dumb {} run --model {model} --approvals allow go; echo over", crate::common::binary().display());
    let (mut child, keys, out) = crate::common::in_shell(&world, &line);
    let mut terminal = Terminal::new(keys, out);
    comes("it runs", || world.workspace.join("began").exists());
    std::thread::sleep(std::time::Duration::from_millis(600));
    world.write("go", "");
    let shown = terminal.until("over");
    assert_eq!((shown.matches("│ one").count(), shown.matches("│ two").count()), (1, 1), "{shown:?}");
    child.wait().expect("ends");
}

#[test]
fn l69_a_secret_is_masked_in_what_is_seen_live() {
    let world = World::new();
    let secret = "correct-horse-battery";
    world.configure("[[rules]]\naction = \"*\"\nargv = [\"sh\"]\neffect = \"allow\"\n");
    let command =
        "sh -c 'printf correct-; sleep 0.3; echo horse-battery; touch began; until [ -e go ]; do sleep 0.05; done'";
    let model = model(&world, &script(command));
    let line = format!(
        "ANTHROPIC_API_KEY={secret} {} run --model {model} --approvals allow go; echo over",
        crate::common::binary().display()
    );
    let (mut child, keys, out) = crate::common::in_shell(&world, &line);
    let mut terminal = Terminal::new(keys, out);
    comes("it runs", || world.workspace.join("began").exists());
    let shown = terminal.until("  │ ");
    world.write("go", "");
    let shown = shown + &terminal.until("over");
    assert!(!shown.contains(secret) && !shown.contains("│ correct-"), "{shown:?}");
    child.wait().expect("ends");
}
