//! The terminal of a run: given back whichever way it ends, and used only as far as it says it can be.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Ran, World, binary, comes, in_shell, until};
use crate::processes::descendants;
use crate::run_talk::{READY, Terminal, model};

const EDIT: &str =
    "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch made\" } }]\n[[turn]]\ntext = \"Done.\"\n";

/// The run on a terminal, among what `script` started.
fn pid(child: &Child) -> Pid {
    let mut found = None;
    comes("it runs", || {
        let named = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary());
        found = descendants(child.id()).into_iter().map(|(pid, _)| pid).find(named);
        found.is_some()
    });
    Pid::from_raw(found.expect("found").cast_signed()).expect("a process")
}

fn on(world: &World, before: &str, words: &str) -> (Child, Terminal) {
    let (child, keys, out) =
        in_shell(world, &format!("{before} {} {words}; echo; stty -a; echo over", binary().display()));
    (child, Terminal::new(keys, out))
}

#[test]
fn a_signal_that_ends_a_run_leaves_the_terminal_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let world = World::new();
        let model = model(&world, EDIT);
        let (mut child, mut terminal) = on(&world, "", &format!("run --model {model} --approvals ask go"));
        terminal.until("b no, because");
        kill_process(pid(&child), signal).expect("sent");
        let shown = terminal.until("over");
        assert!(shown.contains(" icanon") && shown.contains(" echo "), "{signal:?}: {shown}");
        assert!(shown.contains("\x1b[?2004l"), "{signal:?}: {shown:?}");
        child.wait().expect("ends");
        // And at the prompt of a conversation.
        let (mut child, mut terminal) = on(&world, "", &format!("run --model {model} --approvals ask"));
        terminal.until(READY);
        comes("it listens", || {
            let tty = std::fs::read_link(format!("/proc/{}/fd/0", pid(&child).as_raw_nonzero())).expect("a terminal");
            stty(&tty, "-a").contains("-icanon")
        });
        kill_process(pid(&child), signal).expect("sent");
        let shown = terminal.until("over");
        assert!(shown.contains(" icanon") && shown.contains(" echo "), "{signal:?}: {shown}");
        child.wait().expect("ends");
    }
}

fn stty(tty: &std::path::Path, word: &str) -> String {
    let ran: Ran = std::process::Command::new("stty").arg("-F").arg(tty).arg(word).output().expect("stty").into();
    ran.out
}

#[test]
fn a_run_that_stood_still_takes_keys_again() {
    let world = World::new();
    let model = model(&world, EDIT);
    let (mut child, mut terminal) = on(&world, "", &format!("run --model {model} --approvals ask go"));
    terminal.until("b no, because");
    let pid = pid(&child);
    let raw = pid.as_raw_nonzero();
    let tty = std::fs::read_link(format!("/proc/{raw}/fd/0")).expect("a terminal");
    kill_process(pid, Signal::TSTP).expect("sent");
    comes("it stands still", || {
        let stat = std::fs::read_to_string(format!("/proc/{raw}/stat")).expect("it is there");
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim().starts_with('T'))
    });
    assert!(stty(&tty, "-a").contains(" icanon"), "whoever takes the terminal finds it as it was");
    kill_process(pid, Signal::CONT).expect("sent");
    terminal.until("b no, because");
    terminal.answers("a");
    terminal.until("Done.");
    terminal.until("over");
    child.wait().expect("ends");
    assert!(world.workspace.join("made").exists());
}

#[test]
fn a_terminal_that_cannot_draw_gets_plain_lines_and_colours_only_where_they_are_wanted() {
    let world = World::new();
    let model = model(&world, EDIT);
    let words = format!("run --model {model} --approvals ask");
    let (mut child, mut terminal) = on(&world, "TERM=dumb", &words);
    terminal.until("> ");
    terminal.types("go\n");
    let shown = terminal.until("b no, because");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    // Text is not shown here: until the choices could be seen, a key is waited with.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    terminal.types("a");
    let shown = terminal.until("Enter confirms: a allow once");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    terminal.types("\r");
    let shown = terminal.until("Done.");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    terminal.until("> ");
    terminal.types("/quit\n");
    let shown = terminal.until("over");
    assert!(!shown.contains('\x1b') && shown.contains("go on with:"), "{shown:?}");
    child.wait().expect("ends");
    for (before, flag) in [("NO_COLOR=1", ""), ("", "--color never")] {
        let (mut child, mut terminal) = on(&world, before, &format!("{words} {flag}"));
        terminal.until(READY);
        // What is drawn from here on is the prompt.
        terminal.types("/quit\r");
        let shown = terminal.until("over");
        let colours = ["\x1b[92m", "\x1b[96m", "\x1b[35m", "\x1b[2m"];
        assert!(!colours.iter().any(|colour| shown.contains(colour)), "{shown:?}");
        child.wait().expect("ends");
    }
}

#[test]
fn ctrl_c_that_clears_a_line_does_not_leave() {
    let world = World::new();
    let model = model(&world, EDIT);
    let (mut child, mut terminal) = on(&world, "", &format!("run --model {model}"));
    for words in ["first", "second"] {
        terminal.until(READY);
        terminal.types(words);
        terminal.until(words);
        terminal.types("\x03");
    }
    terminal.until(READY);
    terminal.types("\x03");
    terminal.until("Ctrl-C again leaves");
    terminal.until(READY);
    terminal.types("\x03");
    terminal.until("over");
    child.wait().expect("ends");
}

#[test]
fn the_printed_command_goes_on_from_anywhere_with_the_same_tools() {
    let world = World::new();
    model(&world, "[[turn]]\ncalls = [{ name = \"write\", input = { file_path = \"b.txt\", content = \"x\" } }]\n");
    let ran = world.run(&["run", "go", "--profile", "managed", "--model", "scripted:../script.toml"]).ends(3);
    let path = std::path::absolute(world.workspace.join("../script.toml")).expect("absolute");
    ran.warns(&format!(" --profile managed --model scripted:{}", path.display()));
}

#[test]
fn words_reach_a_session_only_with_whoever_said_them() {
    let world = World::new();
    let script = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch began; until [ -e go ]; do sleep 0.05; done\" } }]\n\
                  [[turn]]\nwhen = { contains = \"me too\" }\ntext = \"Both of you.\"\n[[turn]]\ntext = \"Only one.\"\n\
                  [[turn]]\ntext = \"And you.\"\n";
    let model = model(&world, script);
    let mut first = world.command(&["run", "go", "--model", &model, "--approvals", "allow"]).spawn().expect("starts");
    comes("it works", || world.workspace.join("began").exists());
    // It is held for longer than anybody waits: nothing was said, and the person is told how to say it.
    let ran = world.run(&["run", "me too", "--continue", "--model", &model]).ends(5);
    let ran = ran.warns("is in use by").warns("nothing was said to it").warns("sessions send sesn_");
    assert!(!world.run(&["sessions", "search", "me too"]).out.contains("user.message"), "{}", ran.err);
    // Within that time it waits, and answers itself.
    let second = world.command(&["run", "me too", "--continue", "--model", &model]).spawn().expect("starts");
    world.write("go", "");
    until(&mut first.stdout.take().expect("piped"), "Only one.");
    assert!(first.wait().expect("ends").success());
    let ran: Ran = second.wait_with_output().expect("ends").into();
    let ran = ran.ends(0).says("And you.").warns("1 request, 0 calls");
    assert!(!ran.err.contains("another process"), "{}", ran.err);
}

#[test]
fn a_worker_does_not_take_what_was_said_to_a_run() {
    let world = World::new();
    let script = "[[turn]]\ntext = \"From the run.\"\n".repeat(9);
    let of_run = model(&world, &script);
    let of_worker = crate::driven::script(&world, "worker.toml", &"[[turn]]\ntext = \"From the worker.\"\n".repeat(9));
    let worker = crate::driven::worker(&world, &of_worker, &[]);
    world.run(&["run", "first", "--model", &of_run]).ends(0).says("From the run.");
    for _ in 0..6 {
        world.run(&["run", "more", "--continue", "--model", &of_run]).ends(0).says("From the run.");
    }
    drop(worker);
}

/// A command that goes on until a file is there.
const LONG: &str = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch began; until [ -e go ]; do sleep 0.05; done\" } }]\n\
                    [[turn]]\nwhen = { contains = \"echo typed\" }\ntext = \"I heard you.\"\n[[turn]]\ntext = \"Nobody spoke.\"\n";

#[test]
fn a_call_that_a_key_allowed_is_shown_at_once_and_while_it_runs() {
    for flags in ["--approvals ask", "--approvals allow"] {
        let world = World::new();
        let model = model(&world, LONG);
        let (mut child, mut terminal) = on(&world, "", &format!("run --model {model} {flags} go"));
        if flags.ends_with("ask") {
            terminal.until("b no, because");
            terminal.answers("a");
        }
        terminal.until("allowed");
        terminal.until("bash touch began; until");
        assert!(!world.workspace.join("go").exists());
        // After a second, as any other call.
        terminal.until("running bash touch began; until");
        world.write("go", "");
        terminal.until("Nobody spoke.");
        terminal.until("over");
        child.wait().expect("ends");
    }
}

#[test]
fn a_call_that_a_rule_allowed_is_shown_while_it_runs() {
    let world = World::new();
    world.configure("[[rules]]\naction = \"*\"\nargv = [\"sleep\"]\neffect = \"allow\"\n");
    let script =
        "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"sleep 2\" } }]\n[[turn]]\ntext = \"Slept.\"\n";
    let model = model(&world, script);
    let (mut child, mut terminal) = on(&world, "", &format!("run --model {model} go"));
    terminal.until("running bash sleep 2");
    terminal.until("Slept.");
    terminal.until("over");
    child.wait().expect("ends");
}

#[test]
fn what_is_typed_while_a_prompt_is_worked_on_is_heard_and_never_reaches_the_shell() {
    let world = World::new();
    let model = model(&world, LONG);
    let run = format!("{} run --model {model} --approvals allow go", binary().display());
    // What a shell would read after it is printed.
    let (mut child, keys, out) = in_shell(&world, &format!("{run}; echo; timeout 1 cat -v; echo; echo over"));
    let mut terminal = Terminal::new(keys, out);
    comes("it works", || world.workspace.join("began").exists());
    terminal.types("echo typed");
    terminal.until("> echo typed");
    terminal.types("\r");
    comes("it is the session's", || world.run(&["sessions", "search", "echo typed"]).out.contains("user.message"));
    terminal.types("half a li");
    terminal.until("> half a li");
    world.write("go", "");
    terminal.until("I heard you.");
    terminal.until("typed and not sent: half a li");
    let after = terminal.until("over");
    assert!(!after.contains("echo typed") && !after.contains("half"), "{after:?}");
    child.wait().expect("ends");
}

#[test]
fn a_run_in_the_background_leaves_the_terminal_alone() {
    let world = World::new();
    let model = model(&world, "[[turn]]\ntext = \"Done.\"\n");
    let run = format!("{} run --model {model} go", binary().display());
    // With job control, as at a prompt: a process that reads or sets the terminal from there is stopped.
    let (mut child, keys, out) = in_shell(&world, &format!("set -m; {run} & wait $!; echo code $?; jobs; echo over"));
    let mut terminal = Terminal::new(keys, out);
    let shown = terminal.until("over");
    assert!(shown.contains("Done.") && shown.contains("code 0"), "{shown}");
    child.wait().expect("ends");
}

/// A name that would set the title of a terminal and clear it.
const EVIL: &str = "x\x1b]0;OWNED\x07\x1b[2Jy";

#[test]
fn a_folder_or_a_model_by_any_name_does_not_steer_the_terminal() {
    let world = World::new();
    let script = model(&world, "[[turn]]\ntext = \"Done.\"\n");
    let folder = world.workspace.join(EVIL);
    std::fs::create_dir(&folder).expect("made");
    std::fs::create_dir(folder.join("AGENTS.md")).expect("made");
    let steers = |shown: &str| shown.contains("\x1b]0") || shown.contains("\x1b[2J");
    let keep = world.workspace.join(format!("keep{EVIL}"));
    for words in [
        format!("run --model {script}"),
        format!("run --model {script} hello"),
        format!("demo --keep {}", crate::common::shell_word(&keep)),
    ] {
        let line = format!("cd {} && {} {words}; echo over", crate::common::shell_word(&folder), binary().display());
        let (mut child, keys, out) = in_shell(&world, &line);
        let mut terminal = Terminal::new(keys, out);
        let mut shown = String::new();
        if words.ends_with(".toml") {
            shown = terminal.until(READY);
            terminal.types("/quit\r");
        }
        shown += &terminal.until("over");
        // With a prompt nothing names the folder.
        let named = words.ends_with("hello") || shown.contains("x<U+001B>]0;OWNED");
        assert!(!steers(&shown) && named, "{words}: {shown:?}");
        child.wait().expect("ends");
    }
    let export = world.workspace.join(format!("{EVIL}.json"));
    let session = world.run(&["sessions", "list"]).ends(0).id("sesn_");
    let word = crate::common::shell_word(&export);
    let line = format!("{} sessions export {session} --out {word}; echo over", binary().display());
    let (mut child, keys, out) = in_shell(&world, &line);
    let shown = Terminal::new(keys, out).until("over");
    assert!(!steers(&shown) && shown.contains("OWNED"), "{shown:?}");
    child.wait().expect("ends");
}
