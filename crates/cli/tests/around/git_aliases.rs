//! Aliases that the configuration of a repository defines: no word of the line tells what they run.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY};

const DENY: &str = "[[rules]]\nid = \"no-push\"\naction = \"*\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"\n";

/// Each pushes to the repository beside.
const LINES: [&str; 12] = [
    "git p",
    "git P origin main",
    "git -C . p",
    "git --no-pager p",
    "git -c user.name=x p -q",
    "git shell-line",
    "git again",
    "env git p",
    "sh -c 'git p'",
    "cd sub && git p",
    "true && timeout 9 git p",
    "/usr/bin/git p",
];

#[test]
fn l31_an_alias_of_the_repository_waits_for_a_person_and_is_quoted() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let git = |words: &[&str]| {
            let run = arena.as_this_person("/usr/bin/git").args(words).output().expect("git runs");
            assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
        };
        arena.write("work/sub/keep", "");
        git(&["init", "-q", "-b", "main", "."]);
        git(&["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "x"]);
        git(&["init", "-q", "--bare", "there"]);
        git(&["remote", "add", "origin", "/workspace/there"]);
        git(&["config", "push.default", "current"]);
        git(&["config", "alias.p", "push"]);
        git(&["config", "alias.shell-line", "!sh -c 'git pu\"\"sh'"]);
        git(&["config", "alias.again", "p"]);
        git(&["config", "alias.st", "status"]);
        let run = |line: &str| {
            arena.run(&["--approvals", "allow", "call", "shell_run", &json!({ "command": line }).to_string()])
        };
        let pushed = "work/there/refs/heads/main";
        for line in LINES {
            arena.configure("");
            let control = run(line);
            assert!(arena.exists(pushed), "the control did nothing: {line}: {}{}", control.out, control.err);
            std::fs::remove_file(arena.path(pushed)).expect("removed");
            arena.configure(DENY);
            let ran = run(line).ends(3);
            assert!(!arena.exists(pushed), "{line}");
            let shown = arena.run(&["approvals", "show", &ran.id("ask_")]).ends(0).says("no-push");
            assert!(shown.out.contains("of /workspace/.git/config"), "{line}: {}", shown.out);
        }
        // What git brings along is no alias, and a rule that names an alias was written by somebody who knows it.
        run("git status --short").ends(0);
        run("git st").ends(3);
        let named = "[[rules]]\naction = \"*\"\nargv = [\"git\", \"st\"]\neffect = \"allow\"\n";
        arena.configure(&format!("{DENY}{named}"));
        run("git st").ends(0);
    }
}
