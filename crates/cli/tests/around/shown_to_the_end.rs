//! A long command must be shown to its end, with its true size, wherever a person may allow it. The attack hides what
//! matters behind padding.

use std::io::Write as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::{Ran, until};

/// What the attack hides, and what proves that it ran.
const HIDDEN: &str = "touch hidden-part-ran";

/// A harmless beginning, padding of each kind, and the hidden part at the end.
fn lines() -> Vec<(&'static str, String)> {
    let with = |padding: String| format!("echo start{padding}; {HIDDEN}");
    vec![
        ("spaces", with(" ".repeat(4_600))),
        ("line ends", with("\n".repeat(400) + "true")),
        ("tabs", with("\t".repeat(3_000))),
        ("commands", with("; echo x".repeat(600))),
        ("one word", with(format!(" {}", "x".repeat(5_000)))),
        ("comment lines", with(format!("\n# {}\ntrue", "harmless ".repeat(500)))),
        ("many comments", with("\n# harmless".repeat(300) + "\ntrue")),
        ("wide characters", with(format!(" {}", "宽".repeat(2_500)))),
        ("accents", with(format!(" {}", "é".repeat(4_000)))),
        ("a here-document", format!("cat >/dev/null <<'E'\n{}E\n{HIDDEN}", "text\n".repeat(500))),
        ("folded lines", with(" \\\n  x".repeat(500))),
        ("quotes", with(format!(" '{}'", "a b ".repeat(1_200)))),
        ("the longest line", with(format!(" {}", "y".repeat(60_000)))),
        // With it all facts are longer than an event takes.
        ("many escapes", with(format!(" '{}'", "\u{1}".repeat(60_000)))),
    ]
}

fn ask(arena: &Arena, line: &str) -> (Ran, String) {
    // By a file: a word of a command line cannot be as long.
    arena.write("home/input.json", &json!({"command": line}).to_string());
    let input = format!("@{}", arena.path("home/input.json").display());
    let ran = arena.run(&["call", "shell_run", &input]).ends(3);
    let id = ran.id("ask_");
    (ran, id)
}

/// What a person reads with everything that is ours, and every line end, taken out.
fn pressed(text: &str) -> String {
    text.replace("│ ", "").chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn every_view_shows_a_long_command_to_its_end_with_its_true_size() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for (kind, line) in lines() {
            let (called, ask) = ask(&arena, &line);
            let hidden = pressed(HIDDEN);
            let shown = arena.run(&["approvals", "show", &ask]).ends(0);
            let listed = arena.run(&["approvals", "list"]).ends(0);
            for (view, text) in [("call", &called.out), ("show", &shown.out), ("list", &listed.out)] {
                assert!(pressed(text).contains(&hidden), "{kind} in {view} as {who:?}: the end is missing");
            }
            let size = format!("{} characters, {} line", line.chars().count(), line.split('\n').count());
            assert!(shown.out.contains(&size) && called.out.contains(&size), "{kind}: not `{size}`");
            let facts: Value = arena.run(&["approvals", "show", &ask, "--json"]).ends(0).json();
            assert_eq!(facts["facts"]["input"]["command"].as_str(), Some(line.as_str()), "{kind}");
            arena.run(&["approvals", "deny", &ask]).ends(0);
        }
        assert!(!arena.exists("work/hidden-part-ran"));
        // The control: what stands at the end does run when it is allowed, from a script too.
        let (_, ask) = ask(&arena, &lines()[0].1);
        arena.run(&["approvals", "allow", &ask]).ends(0);
        assert!(arena.exists("work/hidden-part-ran"));
        arena.run(&["audit", "verify"]).ends(0);
    }
}

#[test]
fn a_diff_is_kept_and_shown_whole() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let text = format!("{}the last line\n", "a line of a long file\n".repeat(5_000));
        let ran = arena.run(&["call", "write", &json!({"file_path": "new.txt", "content": text}).to_string()]).ends(3);
        let ask = ran.id("ask_");
        let shown = arena.run(&["approvals", "show", &ask]).ends(0);
        assert!(shown.out.contains("+the last line"), "the end of the diff is missing");
        arena.run(&["approvals", "allow", &ask]).ends(0);
        assert_eq!(arena.read("work/new.txt"), text);
        arena.run(&["audit", "verify"]).ends(0);
    }
}

/// The binary on a terminal of 80 × 24.
fn on_terminal(arena: &Arena, words: &str) -> (Child, ChildStdin, ChildStdout) {
    let line = format!("stty cols 80 rows 24 && {} {words}", arena.path("portcullis").display());
    let mut command = arena.as_this_person("/usr/bin/script");
    command.args(["-qfec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("`script` (util-linux) runs");
    let (keys, out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    (child, keys, out)
}

/// Types these keys one after another, again and again: those that come before a page can be answered are thrown away.
fn type_until_it_ends(child: &mut Child, keys: &mut ChildStdin, typed: &[u8]) {
    for key in typed.iter().cycle() {
        if child.try_wait().expect("looked at").is_some() || keys.write_all(&[*key]).is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child.wait().expect("ends");
}

fn pages(shown: &str) -> usize {
    let (_, all) = shown.rsplit_once("page 1 of ").expect("it is paged");
    let digits: String = all.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn watch_allows_nothing_that_was_not_paged_to_its_end() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let (_, line) = &lines()[6];
        ask(&arena, line);
        let (mut child, mut keys, mut out) = on_terminal(&arena, "approvals watch");
        let first = until(&mut out, "Space shows the next page");
        assert!(!first.contains("a allow once"), "{first}");
        keys.write_all(b"atp\r").expect("typed");
        until(&mut out, "words go nowhere here");
        let all = pages(&first);
        for page in 2..=all {
            keys.write_all(b" ").expect("typed");
            // What comes after the awaited words may be read with them.
            let awaited = if page == all { "a allow once".to_owned() } else { format!("page {page} of") };
            let shown = until(&mut out, &awaited);
            assert_eq!(shown.contains("a allow once"), page == all, "{shown}");
            assert!(!arena.exists("work/hidden-part-ran"), "a key allowed what was not shown");
        }
        // A key within half a second of the choices is text, and only an Enter after the selection is shown confirms it.
        std::thread::sleep(std::time::Duration::from_millis(600));
        keys.write_all(b"a").expect("typed");
        until(&mut out, "Enter confirms: a allow once");
        keys.write_all(b"\r").expect("typed");
        until(&mut out, "recorded: session");
        keys.write_all(b"q").expect("typed");
        child.wait().expect("ends");
        assert!(arena.exists("work/hidden-part-ran"));
    }
}

#[test]
fn approvals_allow_on_a_terminal_shows_a_long_ask_to_its_end_first() {
    let arena = Arena::of(Who::OrdinaryUser);
    let (_, line) = &lines()[6];
    let (_, id) = ask(&arena, line);
    let (mut child, mut keys, mut out) = on_terminal(&arena, &format!("approvals allow {id}"));
    until(&mut out, "Space shows the next page");
    type_until_it_ends(&mut child, &mut keys, b"xaq");
    assert!(!arena.exists("work/hidden-part-ran"));
    let (mut child, mut keys, mut out) = on_terminal(&arena, &format!("approvals allow {id}"));
    let all = pages(&until(&mut out, "Space shows the next page"));
    std::thread::scope(|scope| {
        let typing = scope.spawn(move || type_until_it_ends(&mut child, &mut keys, b" "));
        let shown = until(&mut out, "recorded: session");
        assert!(shown.contains(&format!("page {all} of {all}")), "{shown}");
        typing.join().expect("typed");
    });
    assert!(arena.exists("work/hidden-part-ran"));
}

#[test]
fn run_offers_no_allow_before_the_last_page() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let (_, line) = &lines()[6];
        let call = format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = {} }} }}]\n", json!(line));
        arena.write("home/script.toml", &format!("{call}[[turn]]\ntext = \"done\"\n"));
        let model = format!("scripted:{}", arena.path("home/script.toml").display());
        let (mut child, mut keys, mut out) = on_terminal(&arena, &format!("run --model {model} go"));
        let first = until(&mut out, "Space shows the next page");
        assert!(!first.contains("allow once"), "{first}");
        let all = pages(&first);
        for page in 2..=all {
            keys.write_all(b" ").expect("typed");
            let shown = until(&mut out, if page == all { "allow once" } else { "Space shows the next page" });
            assert!(shown.contains(&format!("page {page} of")), "{shown}");
            assert_eq!(shown.contains("allow once"), page == all, "{shown}");
        }
        assert!(!arena.exists("work/hidden-part-ran"));
        drop(keys);
        child.kill().expect("ended");
        child.wait().expect("ends");
    }
}
