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
    on_terminal_of(arena, (80, 24), words)
}

/// The same on one of so many columns and rows. Its name is printed first.
fn on_terminal_of(arena: &Arena, (columns, rows): (usize, usize), words: &str) -> (Child, ChildStdin, ChildStdout) {
    let program = arena.path("portcullis");
    let line = format!("tty && stty cols {columns} rows {rows} && {} {words}", program.display());
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

/// The end of the line of choices.
const CHOICES: &str = "confirms)";

/// What a terminal shows of this, without what only colours it.
fn plain(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => drop(rest.by_ref().find(|c| c.is_ascii_alphabetic())),
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

/// What is shown up to the end of the choices.
fn until_choices(out: &mut ChildStdout) -> String {
    let shown = plain(&until(out, CHOICES));
    let end = shown.find(CHOICES).expect("awaited") + CHOICES.len();
    shown[..end].trim_start_matches('\n').to_owned()
}

/// The rows that this takes, with the one that the cursor stands in below it.
fn rows(shown: &str, columns: usize) -> usize {
    let width = |line: &str| line.chars().count().max(1).div_ceil(columns);
    shown.split('\n').map(width).sum::<usize>() + 1
}

/// The ask from its heading on, with its choices.
fn ask_in(shown: &str) -> String {
    let begins = shown.rfind(" ask_").and_then(|at| shown[..at].rfind('\n')).map_or(0, |at| at + 1);
    shown[begins..].to_owned()
}

#[test]
fn whatever_its_length_an_ask_fits_the_screen_page_by_page_with_its_choices() {
    let arena = Arena::of(Who::OrdinaryUser);
    for (columns, height) in [(80, 24), (50, 12), (120, 30)] {
        for lines in [1, 2, 4, 6, 8, 9, 10, 11, 12, 14, 30] {
            let (_, id) = ask(&arena, &format!("{}touch x", "# nothing\n".repeat(lines - 1)));
            let (mut child, mut keys, mut out) = on_terminal_of(&arena, (columns, height), "approvals watch");
            let mut shown = ask_in(&until_choices(&mut out));
            loop {
                let taken = rows(&shown, columns);
                assert!(taken <= height, "{lines} lines on {columns} × {height} take {taken} rows:\n{shown}");
                if shown.contains("a allow once") {
                    break;
                }
                keys.write_all(b" ").expect("typed");
                shown = until_choices(&mut out);
            }
            child.kill().expect("ended");
            child.wait().expect("ends");
            arena.run(&["approvals", "deny", &id]).ends(0);
        }
    }
}

/// Gives a terminal another size.
fn resize(terminal: &str, (columns, rows): (usize, usize)) {
    let (columns, rows) = (columns.to_string(), rows.to_string());
    let resized = std::process::Command::new("stty").args(["-F", terminal, "cols", &columns, "rows", &rows]).status();
    assert!(resized.expect("`stty` runs").success());
}

/// Pages on to the end; every page fits.
fn page_through(keys: &mut ChildStdin, out: &mut ChildStdout, (columns, height): (usize, usize)) {
    loop {
        keys.write_all(b" ").expect("typed");
        let shown = until_choices(out);
        let taken = rows(&shown, columns);
        assert!(taken <= height, "{taken} rows on {columns} × {height}:\n{shown}");
        if shown.contains("a allow once") {
            // A key within half a second is text.
            return std::thread::sleep(std::time::Duration::from_millis(600));
        }
    }
}

#[test]
fn on_a_terminal_of_another_size_an_ask_begins_anew_before_it_is_paged_on_or_allowed() {
    for words in ["approvals watch", "run --model MODEL go"] {
        let arena = Arena::of(Who::OrdinaryUser);
        let line = format!("echo start{}\n{HIDDEN}", "\n# harmless".repeat(40));
        if words.starts_with("run") {
            let call = format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = {} }} }}]\n", json!(line));
            arena.write("home/script.toml", &format!("{call}[[turn]]\ntext = \"done\"\n"));
        } else {
            ask(&arena, &line);
        }
        let model = format!("scripted:{}", arena.path("home/script.toml").display());
        let (mut child, mut keys, mut out) = on_terminal(&arena, &words.replace("MODEL", &model));
        let first = until_choices(&mut out);
        let terminal = first.lines().find(|line| line.starts_with("/dev/")).expect("its name").trim().to_owned();
        let begins_anew = |out: &mut ChildStdout, (columns, height): (usize, usize)| {
            let shown = until_choices(out);
            assert!(shown.contains("another size") && shown.contains("page 1 of"), "{words}: {shown}");
            assert!(!shown.contains("allow once"), "{words}: {shown}");
            let page = shown.split_once("beginning\n").expect("said").1;
            assert!(rows(page, columns) <= height, "{words}: {page}");
            assert!(!arena.exists("work/hidden-part-ran"), "{words}");
            pages(&shown)
        };
        let all = pages(&first);
        // Between two pages.
        resize(&terminal, (50, 12));
        keys.write_all(b" ").expect("typed");
        assert!(begins_anew(&mut out, (50, 12)) > all);
        page_through(&mut keys, &mut out, (50, 12));
        // At the end: before an allow is selected, and after it.
        resize(&terminal, (60, 20));
        keys.write_all(b"a").expect("typed");
        begins_anew(&mut out, (60, 20));
        page_through(&mut keys, &mut out, (60, 20));
        keys.write_all(b"a").expect("typed");
        until(&mut out, "Enter confirms: a allow once");
        resize(&terminal, (60, 12));
        keys.write_all(b"\r").expect("typed");
        begins_anew(&mut out, (60, 12));
        // The control: shown to its end at this size, the same keys allow it.
        page_through(&mut keys, &mut out, (60, 12));
        keys.write_all(b"a").expect("typed");
        until(&mut out, "Enter confirms: a allow once");
        keys.write_all(b"\r").expect("typed");
        crate::common::comes("it runs", || arena.exists("work/hidden-part-ran"));
        child.kill().expect("ended");
        child.wait().expect("ends");
    }
}
