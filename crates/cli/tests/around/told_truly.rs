//! What an observation says of a line that was refused something, and of one that never ran.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY};
use crate::common::Ran;

/// The three tools that run a line.
const TOOLS: [&[&str]; 3] = [&["call", "shell_run"], &["call", "shell_exec"], &["--profile", "code", "call", "bash"]];

fn run(arena: &Arena, tool: &[&str], line: &str) -> Ran {
    let input = json!({ "command": line }).to_string();
    let words = [&["--approvals", "allow"], tool, &[input.as_str()]].concat();
    arena.run(&words)
}

#[test]
fn a_line_that_ends_well_tells_what_it_was_refused() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let made = arena.as_this_person("git").args(["init", "-q", "."]).output().expect("git runs");
        assert!(made.status.success());
        for tool in TOOLS {
            for line in
                ["git config user.name a; true", "git config user.name a || echo went on", "touch .git/hooks/x; :"]
            {
                run(&arena, tool, line).ends(0).warns("is kept as it is").warns("outside of the sandbox");
            }
            // The control: a line that was refused nothing says nothing of it.
            let ran = run(&arena, tool, "git config --get user.name; echo fine >&2");
            assert!(!ran.err.contains("is kept as it is"), "{}", ran.err);
        }
    }
}

#[test]
fn a_line_whose_program_is_not_there_did_nothing_and_any_other_may_have() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for tool in TOOLS {
            for line in ["no-such-program-7391", "no-such-program-7391 -q 'a b'"] {
                run(&arena, tool, line).ends(1).warns("exit code 127").warns("side effects: none");
            }
            for line in [
                "no-such-program-7391 > made",
                "touch made; no-such-program-7391",
                "no-such-program-7391 $(touch made)",
                "touch made && exit 127",
                "sh -c 'touch made; exit 127'",
                "PATH=.:$PATH; no-such-program-7391",
            ] {
                run(&arena, tool, line).ends(1).warns("side effects: occurred");
            }
        }
        // A program that is there and says the same did something.
        arena.write("work/script.sh", "touch made\nexit 127\n");
        run(&arena, TOOLS[0], ". ./script.sh").ends(1).warns("side effects: occurred");
    }
}
