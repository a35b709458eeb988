//! A rule about a program means that program. In a persistent shell in which a name may stand for something else, no rule
//! about words answers.

use serde_json::{Value, json};

use crate::arena::{Arena, EVERYBODY, Who};

/// Ways to have `touch` mean something else. Each makes `evil` when `touch granted` is run after it.
const SHADOWS: [(&str, &str); 14] = [
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
    (
        "a shell that lies about itself",
        "builtin() { case $1 in declare|alias|export) ;; *) command builtin \"$@\";; esac; }; touch() { /usr/bin/touch evil; }",
    ),
];

/// Lines after which the same words mean the same.
const HARMLESS: [&str; 4] =
    ["cd . && true", "export FOO=1", "for f in *; do echo \"$f\"; done", "cat > notes <<'E'\ntouch() { :; }\nE"];

fn arena(who: Who) -> Arena {
    use std::os::unix::fs::PermissionsExt as _;
    let arena = Arena::of(who);
    arena.configure("[[rules]]\naction = \"bash\"\nargv = [\"touch\"]\neffect = \"allow\"\n");
    arena.write("work/lib.sh", "touch() { /usr/bin/touch evil; }\n");
    for name in ["work/plant", "work/bin/touch"] {
        arena.write(name, "#!/bin/sh\n/usr/bin/touch evil\n");
        std::fs::set_permissions(arena.path(name), std::fs::Permissions::from_mode(0o755)).expect("made runnable");
    }
    arena
}

/// Runs these lines one after another in one shell, with every ask answered yes. Tells which of them were asked about.
fn run(arena: &Arena, lines: &[&str]) -> Vec<bool> {
    let turn =
        |line: &&str| format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = {} }} }}]\n", json!(line));
    let script: String = lines.iter().map(turn).chain(["[[turn]]\ntext = \"done\"\n".to_owned()]).collect();
    arena.write("home/script.toml", &script);
    let model = format!("scripted:{}", arena.path("home/script.toml").display());
    arena.run(&["--approvals", "allow", "run", "--model", &model, "go"]).ends(0);
    let session = arena.run(&["sessions"]).ends(0).id("sesn_");
    let events: Vec<Value> = arena.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    let payload =
        |event: &Value| -> Value { serde_json::from_str(event["payload"].as_str().expect("text")).expect("JSON") };
    let of = |kind: &str| -> Vec<Value> { events.iter().filter(|event| event["type"] == kind).map(payload).collect() };
    let asked = of("tool.permission.asked");
    let intents = of("tool.intent");
    intents.iter().map(|intent| asked.iter().any(|ask| ask["intent_id"] == intent["intent_id"])).collect()
}

#[test]
fn a_rule_about_a_program_does_not_answer_where_its_name_may_mean_something_else() {
    for who in EVERYBODY {
        for (kind, line) in SHADOWS {
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
