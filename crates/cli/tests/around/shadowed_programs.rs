//! A rule about a program means that program. In a persistent shell in which a name may stand for something else, no rule
//! about words answers.

use serde_json::{Value, json};

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

/// Ways to have `touch` mean something else. Each makes `evil` when `touch granted` is run after it.
const SHADOWS: [(&str, &str); 20] = [
    ("a function", "touch() { command touch evil; }"),
    ("a function with its word", "function touch { command touch evil; }"),
    ("a function in a block", "if true; then touch() { command touch evil; }; fi"),
    ("an alias", "alias touch='/usr/bin/touch evil; :'"),
    ("an alias by its table", "BASH_ALIASES[touch]='/usr/bin/touch evil; :'"),
    ("a remembered path", "hash -p /workspace/plant touch"),
    ("a remembered path by its table", "BASH_CMDS[touch]=/workspace/plant"),
    ("a trap", "trap '/usr/bin/touch evil' DEBUG"),
    ("a sourced file", "source ./lib.sh"),
    ("a sourced file with a dot", ". ./lib.sh"),
    ("evaluated text", "eval \"$(cat lib.sh)\""),
    ("another PATH", "export PATH=/workspace/bin:$PATH"),
    ("what runs before each prompt", "PROMPT_COMMAND='/usr/bin/touch evil'"),
    ("a here-string that sets", ": <<< ${BASH_ALIASES[touch]:=/usr/bin/touch evil #}"),
    ("a file's name that sets", ": 2>/tmp/${BASH_CMDS[touch]:=2}"),
    ("an index in an index", "y=touch; : ${BASH_CMDS[${y[0]}]:=/workspace/2}"),
    ("an option before a builtin", "command -p . ./lib.sh"),
    ("arithmetic that sets", "((BASH_CMDS[touch]=2))"),
    ("a builtin that expands", "compgen -W $'\\x24{BASH_CMDS[touch]:=/workspace/2}'"),
    (
        "a shell that lies about itself",
        "builtin() { case $1 in declare|alias|export) ;; *) command builtin \"$@\";; esac; }; touch() { /usr/bin/touch evil; }",
    ),
];

/// Lines after which the same words mean the same.
const HARMLESS: [&str; 5] = [
    "cd . && true",
    "export FOO=1",
    "for f in *; do echo \"$f\"; done",
    "cat > notes <<'E'\ntouch() { :; }\nE",
    "i=0; while ((i < 3)); do ((i++)); done; echo $((i + 1))",
];

fn arena(who: Who) -> Arena {
    use std::os::unix::fs::PermissionsExt as _;
    let arena = Arena::of(who);
    arena.configure("[[rules]]\naction = \"bash\"\nargv = [\"touch\"]\neffect = \"allow\"\n");
    arena.write("work/lib.sh", "touch() { /usr/bin/touch evil; }\n");
    for name in ["work/plant", "work/2", "work/bin/touch"] {
        arena.write(name, "#!/bin/sh\n/usr/bin/touch evil\n");
        std::fs::set_permissions(arena.path(name), std::fs::Permissions::from_mode(0o755)).expect("made runnable");
    }
    arena
}

/// Ways to give a program another name in the shell. None of them names the verb `made`.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("an alias", "alias g=touch"),
    ("an alias by its table", "BASH_ALIASES[g]=touch"),
    ("an alias among others", "alias ll='ls -l' g=touch"),
    ("an alias behind a condition", "true && alias g=touch"),
    ("an alias in a loop", "for n in g; do alias $n=touch; done"),
    ("a remembered path", "hash -p /usr/bin/touch g"),
    ("a remembered path by its table", "BASH_CMDS[g]=/usr/bin/touch"),
    ("another PATH", "export PATH=/workspace/links:$PATH"),
    ("a declared PATH", "declare -x PATH=/workspace/links:/usr/bin"),
    ("an alias in a here-string", ": <<< ${BASH_ALIASES[g]:=touch}"),
    ("an alias behind an option", "command -p alias g=touch"),
    ("what runs for an unknown name", "command_not_found_handle() { shift; touch \"$@\"; }"),
];

/// Runs these lines one after another in one shell, with every ask answered yes. Tells which of them were asked about.
fn run(arena: &Arena, lines: &[&str]) -> Vec<bool> {
    let (ran, asked) = try_run(arena, lines);
    ran.ends(0);
    asked
}

fn try_run(arena: &Arena, lines: &[&str]) -> (Ran, Vec<bool>) {
    let turn =
        |line: &&str| format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = {} }} }}]\n", json!(line));
    let script: String = lines.iter().map(turn).chain(["[[turn]]\ntext = \"done\"\n".to_owned()]).collect();
    arena.write("home/script.toml", &script);
    let model = format!("scripted:{}", arena.path("home/script.toml").display());
    let ran = arena.run(&["--approvals", "allow", "run", "--model", &model, "go"]);
    let session = arena.run(&["sessions"]).ends(0).id("sesn_");
    let events: Vec<Value> = arena.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    let payload =
        |event: &Value| -> Value { serde_json::from_str(event["payload"].as_str().expect("text")).expect("JSON") };
    let of = |kind: &str| -> Vec<Value> { events.iter().filter(|event| event["type"] == kind).map(payload).collect() };
    let asked = of("tool.permission.asked");
    let intents = of("tool.intent");
    let was_asked = |intent: &Value| asked.iter().any(|ask| ask["intent_id"] == intent["intent_id"]);
    (ran, intents.iter().map(was_asked).collect())
}

#[test]
fn l31_a_rule_about_a_program_does_not_answer_where_its_name_may_mean_something_else() {
    for who in EVERYBODY {
        // A session is the slow part of it, so an ordinary user tries some of them.
        let step = if who == Who::Root { 1 } else { 3 };
        for (kind, line) in SHADOWS.into_iter().step_by(step) {
            let arena = arena(who);
            assert_eq!(run(&arena, &[line, "touch granted"]), [true, true], "{kind} as {who:?}");
            // The control: what was asked about and allowed is not the program that the rule names.
            assert!(arena.exists("work/evil"), "{kind} as {who:?}: the attack does nothing");
        }
    }
}

#[test]
fn a_rule_about_a_program_answers_where_nothing_was_changed_and_in_a_fresh_shell() {
    for who in EVERYBODY {
        for line in HARMLESS {
            let arena = arena(who);
            let asked = run(&arena, &[line, "touch granted"]);
            assert_eq!(asked.last(), Some(&false), "{line} as {who:?}");
            assert!(arena.exists("work/granted") && !arena.exists("work/evil"));
        }
    }
}

/// A line that was allowed gives a denied command another name; the next line uses that name.
#[test]
fn l31_under_approvals_allow_a_name_that_may_mean_a_denied_command_waits_for_a_person() {
    let deny = "[[rules]]\nid = \"no-touch\"\naction = \"*\"\nargv = [\"touch\", \"made\"]\neffect = \"deny\"\n";
    for who in EVERYBODY {
        for (kind, line) in OTHER_NAMES {
            for (rules, made) in [("", true), (deny, false)] {
                let arena = Arena::of(who);
                arena.configure(rules);
                arena.write("work/links/README", "");
                std::os::unix::fs::symlink("/usr/bin/touch", arena.path("work/links/g")).expect("linked");
                let (ran, _) = try_run(&arena, &[line, "g made"]);
                assert_eq!(arena.exists("work/made"), made, "{kind} as {who:?}: {}{}", ran.out, ran.err);
                if !made {
                    assert!(format!("{}{}", ran.out, ran.err).contains("no-touch"), "{kind}: {}{}", ran.out, ran.err);
                }
            }
        }
    }
}

/// A line of a persistent shell that makes it run a denied command by itself before the next one.
#[test]
fn l31_what_a_shell_runs_by_itself_waits_for_a_person() {
    let deny = "[[rules]]\nid = \"no-touch\"\naction = \"*\"\nargv = [\"touch\", \"made\"]\neffect = \"deny\"\n";
    let lines: [&[&str]; 3] = [
        &["unset PROMPT_COMMAND; : <<< \"${PROMPT_COMMAND:=touch made}\"", "true"],
        &["set -x", "read -r PS4 <<< '$(touch made)'; true"],
        &["read -r PS4 <<< '$(touch made)'", "set -x; true"],
    ];
    for lines in lines {
        for (rules, made) in [("", true), (deny, false)] {
            let arena = Arena::of(Who::Root);
            arena.configure(rules);
            let (ran, _) = try_run(&arena, lines);
            assert_eq!(arena.exists("work/made"), made, "{lines:?}: {}{}", ran.out, ran.err);
        }
    }
}

/// Bash expands the message of new mail in itself before a prompt. The shell of a session never looks for mail, and a line that
/// would have it look is a change of the shell all the same.
#[test]
fn l31_no_message_of_new_mail_changes_what_a_name_means() {
    let sets = [
        "MAILPATH='/workspace/m?${BASH_CMDS[touch]=/workspace/plant}'; MAILCHECK=0",
        "read -r MAILPATH < message; MAILCHECK=0",
        "export MAILCHECK=0 MAILPATH='/workspace/m?$(/usr/bin/touch evil)'",
        "unset MAILCHECK; : ${MAILCHECK:=0}; printf -v MAILPATH %s '/workspace/m?$(/usr/bin/touch evil)'",
        "MAIL=/workspace/m; declare -x MAILCHECK=0",
    ];
    for who in EVERYBODY {
        for line in sets {
            let arena = arena(who);
            arena.write("work/m", "a\n");
            arena.write("work/message", "/workspace/m?${BASH_CMDS[touch]=/workspace/plant}\n");
            let grows = "echo more >> m; /usr/bin/touch -d '+1 hour' m";
            let asked = run(&arena, &[line, grows, "true", "touch granted"]);
            assert_eq!((asked[0], asked[3]), (true, true), "{line} as {who:?}");
            assert!(arena.exists("work/granted") && !arena.exists("work/evil"), "{line} as {who:?}");
        }
    }
}
