//! Variables that make a program run other code are not set unasked, are shown wherever a command would see them, and are
//! answered by no remembered allow.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY};
use crate::common::Ran;

const NAMES: [&str; 64] = [
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_ASKPASS",
    "GIT_DIR",
    "HOME",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "RUSTC_WRAPPER",
    "CARGO_HOME",
    "RUSTFLAGS",
    "CC",
    "CXX",
    "MAKEFLAGS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "GOFLAGS",
    "npm_config_script_shell",
    "NPM_CONFIG_PREFIX",
    "PERL5OPT",
    "RUBYOPT",
    "LESSOPEN",
    "PAGER",
    "EDITOR",
    "PROMPT_COMMAND",
    "PS4",
    "IFS",
    "SHELL",
    "XDG_CONFIG_HOME",
    "CONDARC",
    "GUNICORN_CMD_ARGS",
    "M4",
    "OCTAVE_PATH",
    "MSBuildSDKsPath",
    "MAIL",
    "MAILPATH",
    "MAILCHECK",
    "TEXTDOMAINDIR",
    "histchars",
    "RM",
    "INSTALL",
    "TANGLE",
    "SOPS_EDITOR",
    "ACK_PAGER",
    "CPIO_RSH",
    "INFO_PRINT_COMMAND",
    "ZIPOPT",
    "GROFF_BIN_PATH",
    "LDLIBS",
];
const HARMLESS: [&str; 6] = ["FOO", "DEBUG", "CI", "PORT", "RUST_LOG", "NODE_ENV"];

fn set(arena: &Arena, flags: &[&str], key: &str, value: &str) -> Ran {
    let input = json!({"key": key, "value": value}).to_string();
    arena.run(&[flags, &["call", "shell_set_env", &input]].concat())
}

#[test]
fn no_variable_that_loads_code_is_set_unasked() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for name in NAMES {
            set(&arena, &[], name, "/workspace/planted-by-the-model").ends(3).says(&format!("env:{name}"));
        }
        let asks = arena.run(&["approvals", "list", "--json"]).ends(0).json();
        for (ask, name) in asks["asks"].as_array().expect("a list").iter().zip(NAMES) {
            let said = ask["facts"]["tool_says"][&format!("variable {name}")].as_str().expect(name);
            assert!(said.starts_with("`/workspace/planted-by-the-model` ("), "{name}: {said}");
        }
        assert_eq!(asks["asks"].as_array().map(Vec::len), Some(NAMES.len()));
        let ask = asks["asks"][0]["ask_id"].as_str().expect("an id");
        let shown = arena.run(&["approvals", "show", ask]).ends(0).says("`/workspace/planted-by-the-model` (");
        assert!(!shown.out.contains("allow for this session"), "one value is not another");
        // The controls: others are set as before, and what was refused is not there.
        for name in HARMLESS {
            set(&arena, &[], name, "1").ends(0);
        }
        let described = arena.run(&["call", "shell_describe", "{}"]).ends(0);
        assert!(described.out.contains("RUST_LOG") && !described.out.contains("LD_PRELOAD"), "{}", described.out);
    }
}

/// Under profile `code`, with a written rule that lets `touch` and `bash` run.
fn bash(arena: &Arena, line: &str) -> Ran {
    arena.run(&["call", "--profile", "code", "bash", &json!({"command": line}).to_string()])
}

#[test]
fn a_command_that_would_see_such_a_variable_asks_and_shows_it() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.configure("[[rules]]\naction = \"bash\"\nargv = [\"touch\"]\neffect = \"allow\"\n");
        bash(&arena, "touch allowed").ends(0);
        for name in ["GIT_SSH_COMMAND", "BASH_ENV", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "HOME"] {
            set(&arena, &["--approvals", "allow"], name, "/workspace/planted").ends(0);
            for (tool, line) in [("shell_run", "git status"), ("shell_exec", "make")] {
                let called = arena.run(&["call", tool, &json!({"command": line}).to_string()]).ends(3);
                let called = called.says(&format!("  runs with: variable {name}: `/workspace/planted`"));
                let ask = called.id("ask_");
                let shown = arena.run(&["approvals", "show", &ask]).ends(0);
                shown.says(&format!("variable {name}: `/workspace/planted`"));
                arena.run(&["approvals", "deny", &ask]).ends(0);
            }
            // The rule is about words, and they do not tell what would run.
            let ask = bash(&arena, "touch allowed").ends(3).id("ask_");
            arena.run(&["approvals", "show", &ask]).ends(0).says(&format!("the variable {name} is set"));
            arena.run(&["approvals", "deny", &ask]).ends(0);
            arena.run(&["call", "shell_unset_env", &json!({ "key": name }).to_string()]).ends(0);
            bash(&arena, "touch allowed").ends(0);
        }
    }
}

#[test]
fn an_approval_is_bound_to_the_variable_that_was_shown() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let plant = |name: &str| arena.write(&format!("work/{name}.sh"), &format!("touch {name}\n"));
        plant("shown");
        plant("other");
        set(&arena, &["--approvals", "allow"], "BASH_ENV", "/workspace/shown.sh").ends(0);
        let ask = arena.run(&["call", "shell_run", r#"{"command":"bash -c true"}"#]).ends(3).id("ask_");
        set(&arena, &["--approvals", "allow"], "BASH_ENV", "/workspace/other.sh").ends(0);
        let ran = arena.run(&["approvals", "allow", &ask]).ends(1);
        assert!(format!("{}{}", ran.out, ran.err).contains("the variable BASH_ENV is another one"), "{}", ran.err);
        assert!(!arena.exists("work/other"));
        // The control: the variable does what the table says.
        arena.run(&["--approvals", "allow", "call", "shell_run", r#"{"command":"bash -c true"}"#]).ends(0);
        assert!(arena.exists("work/other"));
    }
}

/// No table knows every name. A makefile of the project runs the variable, which nobody lists.
#[test]
fn a_variable_that_nobody_knows_is_named_in_every_ask_that_would_see_it() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/Makefile", "clean:\n\t$(UNHEARD_OF) *.o\n");
        set(&arena, &[], "UNHEARD_OF", "touch owned;").ends(0);
        set(&arena, &[], "PLAIN", "hunter2").ends(0);
        set(&arena, &[], "MY_API_KEY", "a b").ends(0);
        let said = "session variables: MY_API_KEY, PLAIN, UNHEARD_OF=`touch owned;`";
        let called = arena.run(&["call", "shell_run", r#"{"command":"make clean"}"#]).ends(3).says(said);
        let ask = called.id("ask_");
        let shown = arena.run(&["approvals", "show", &ask]).ends(0).says(said);
        assert!(!shown.out.contains("hunter2"), "a plain word may be a password");
        // It is bound as well.
        set(&arena, &[], "UNHEARD_OF", "touch other;").ends(0);
        let ran = arena.run(&["approvals", "allow", &ask]).ends(1);
        assert!(format!("{}{}", ran.out, ran.err).contains("the variable UNHEARD_OF is another one"), "{}", ran.err);
        assert!(!arena.exists("work/other") && !arena.exists("work/owned"));
        // The control: the variable is run.
        arena.run(&["--approvals", "allow", "call", "shell_run", r#"{"command":"make clean"}"#]);
        assert!(arena.exists("work/other"));
    }
}
