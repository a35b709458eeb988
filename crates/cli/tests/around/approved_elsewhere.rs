//! What a person approved is what runs. Each attack changes, between the ask and the allow, something that decides what
//! the approved command does; the approval must then be void, and say which thing is another one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::arena::{Arena, EVERYBODY};
use crate::common::Ran;

/// One way to have an approved command do something else.
struct Attack {
    name: &'static str,
    tool: &'static str,
    input: Value,
    /// What is there when a person is asked.
    before: fn(&Arena),
    /// What is changed before the person answers.
    between: fn(&Arena),
    /// What the refusal names.
    names: &'static str,
    /// A file of the arena that only what was not shown makes.
    elsewhere: &'static str,
}

fn put(arena: &Arena, name: &str, text: &str) {
    arena.write(&format!("work/{name}"), text);
}

fn script(arena: &Arena, name: &str, makes: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    put(arena, name, &format!("#!/bin/sh\ntouch {makes}\n"));
    fs::set_permissions(arena.path(&format!("work/{name}")), fs::Permissions::from_mode(0o755)).expect("made runnable");
}

fn rename(arena: &Arena, from: &str, to: &str) {
    fs::rename(arena.path(&format!("work/{from}")), arena.path(&format!("work/{to}"))).expect("renamed");
}

/// A link that the arena's person owns, made by that person.
fn link(arena: &Arena, target: &str, name: &str) {
    let path = arena.path(&format!("work/{name}"));
    let _ = fs::remove_file(&path);
    symlink(target, path).expect("linked");
}

fn two_folders(arena: &Arena) {
    put(arena, "a/keep", "");
    put(arena, "b/keep", "");
}

fn set(arena: &Arena, key: &str, value: &str) {
    let input = json!({"key": key, "value": value}).to_string();
    arena.run(&["call", "shell_set_env", &input]).ends(0);
}

fn writes_env(command: &str) -> Value {
    json!({ "command": command })
}

fn attacks() -> Vec<Attack> {
    let here = || json!({"command": "touch ran-here"});
    let within = |folder: &str| json!({"command": "touch ran-here", "cwd": folder});
    let by_value = || writes_env("touch \"made-$WHICH\"");
    vec![
        Attack {
            name: "the session's folder is changed",
            tool: "shell_run",
            input: here(),
            before: two_folders,
            between: |arena| drop(arena.run(&["call", "shell_set_cwd", r#"{"path":"b"}"#]).ends(0)),
            names: "the folder is /workspace/b now, and /workspace was shown",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "the same in the persistent shell",
            tool: "shell_exec",
            input: here(),
            before: two_folders,
            between: |arena| drop(arena.run(&["call", "shell_set_cwd", r#"{"path":"b"}"#]).ends(0)),
            names: "the folder is /workspace/b now",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "a link is turned",
            tool: "shell_run",
            input: within("link"),
            before: |arena| {
                two_folders(arena);
                link(arena, "a", "link");
            },
            between: |arena| link(arena, "b", "link"),
            names: "the folder is /workspace/b now, and /workspace/a was shown",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "a link above the folder is turned",
            tool: "shell_run",
            input: within("link/in"),
            before: |arena| {
                put(arena, "a/in/keep", "");
                put(arena, "b/in/keep", "");
                link(arena, "a", "link");
            },
            between: |arena| link(arena, "b", "link"),
            names: "the folder is /workspace/b/in now",
            elsewhere: "work/b/in/ran-here",
        },
        Attack {
            name: "another folder takes its name",
            tool: "shell_run",
            input: within("a"),
            before: two_folders,
            between: |arena| {
                rename(arena, "a", "old");
                rename(arena, "b", "a");
            },
            names: "the folder /workspace/a is another one",
            elsewhere: "work/a/ran-here",
        },
        Attack {
            name: "the folder becomes a link",
            tool: "shell_run",
            input: within("a"),
            before: two_folders,
            between: |arena| {
                rename(arena, "a", "old");
                link(arena, "b", "a");
            },
            names: "the folder is /workspace/b now, and /workspace/a was shown",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "a variable is set",
            tool: "shell_run",
            input: by_value(),
            before: |_| {},
            between: |arena| set(arena, "WHICH", "other"),
            names: "the variable WHICH was not there when this was asked",
            elsewhere: "work/made-other",
        },
        Attack {
            name: "a variable has another value",
            tool: "shell_run",
            input: by_value(),
            before: |arena| set(arena, "WHICH", "shown"),
            between: |arena| set(arena, "WHICH", "other"),
            names: "the variable WHICH is another one",
            elsewhere: "work/made-other",
        },
        Attack {
            name: "a variable is taken away",
            tool: "shell_exec",
            input: by_value(),
            before: |arena| set(arena, "WHICH", "shown"),
            between: |arena| drop(arena.run(&["call", "shell_unset_env", r#"{"key":"WHICH"}"#]).ends(0)),
            names: "the variable WHICH was there when this was asked",
            elsewhere: "work/made-",
        },
        Attack {
            name: "a program is written anew",
            tool: "shell_run",
            input: json!({"command": "./tool"}),
            before: |arena| script(arena, "tool", "shown"),
            between: |arena| script(arena, "tool", "other"),
            names: "the program `./tool` /workspace/tool is another one",
            elsewhere: "work/other",
        },
        Attack {
            name: "a program is replaced by another file",
            tool: "shell_run",
            input: json!({"command": "bin/tool && true"}),
            before: |arena| {
                script(arena, "bin/tool", "shown");
                script(arena, "bin/evil", "other");
            },
            between: |arena| rename(arena, "bin/evil", "bin/tool"),
            names: "the program `bin/tool` /workspace/bin/tool is another one",
            elsewhere: "work/other",
        },
        Attack {
            name: "a script that a shell is given is changed",
            tool: "shell_run",
            input: json!({"command": "sh run.sh"}),
            before: |arena| put(arena, "run.sh", "touch shown\n"),
            between: |arena| put(arena, "run.sh", "touch other\n"),
            names: "the file /workspace/run.sh is another one",
            elsewhere: "work/other",
        },
        Attack {
            name: "a recipe is changed",
            tool: "shell_run",
            input: json!({"command": "make -s all"}),
            before: |arena| put(arena, "Makefile", "all:\n\ttouch shown\n"),
            between: |arena| put(arena, "Makefile", "all:\n\ttouch other\n"),
            names: "recipe `all` of /workspace/Makefile is another one",
            elsewhere: "work/other",
        },
        Attack {
            name: "a package's script is changed",
            tool: "shell_run",
            input: json!({"command": "npm test || sh -c \"$(sed -n 's/.*: \"\\(touch [a-z]*\\)\".*/\\1/p' package.json)\""}),
            before: |arena| put(arena, "package.json", "{\"scripts\": {\n\"test\": \"touch shown\"\n}}\n"),
            between: |arena| put(arena, "package.json", "{\"scripts\": {\n\"test\": \"touch other\"\n}}\n"),
            names: "/workspace/package.json is another one",
            elsewhere: "work/other",
        },
        Attack {
            name: "a package's script is changed below `cd`",
            tool: "shell_run",
            input: json!({"command": "cd sub && make -s t"}),
            before: |arena| put(arena, "sub/Makefile", "t:\n\ttouch shown\n"),
            between: |arena| put(arena, "sub/Makefile", "t:\n\ttouch other\n"),
            names: "recipe `t` of /workspace/sub/Makefile is another one",
            elsewhere: "work/sub/other",
        },
        Attack {
            name: "a program is changed that is found from the folder of `cd`",
            tool: "shell_run",
            input: json!({"command": "cd sub; ../x.sh"}),
            before: |arena| {
                put(arena, "sub/keep", "");
                script(arena, "x.sh", "shown");
            },
            between: |arena| script(arena, "x.sh", "other"),
            names: "the program `../x.sh` in `sub` /workspace/x.sh is another one",
            elsewhere: "work/sub/other",
        },
        Attack {
            name: "the same in a shell within the line",
            tool: "shell_run",
            input: json!({"command": "bash -c 'cd sub && sh run.sh'"}),
            before: |arena| put(arena, "sub/run.sh", "touch shown\n"),
            between: |arena| put(arena, "sub/run.sh", "touch other\n"),
            names: "the file /workspace/sub/run.sh is another one",
            elsewhere: "work/sub/other",
        },
        Attack {
            name: "a link is turned that `cd` follows",
            tool: "shell_run",
            input: json!({"command": "cd link && touch ran-here"}),
            before: |arena| {
                two_folders(arena);
                link(arena, "a", "link");
            },
            between: |arena| link(arena, "b", "link"),
            names: "the folder `link` is /workspace/b now, and /workspace/a was shown",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "the same for `env -C`",
            tool: "shell_run",
            input: json!({"command": "env -C link touch ran-here"}),
            before: |arena| {
                two_folders(arena);
                link(arena, "a", "link");
            },
            between: |arena| link(arena, "b", "link"),
            names: "the folder `link` is /workspace/b now, and /workspace/a was shown",
            elsewhere: "work/b/ran-here",
        },
        Attack {
            name: "another folder takes the name that `cd` goes to",
            tool: "shell_run",
            input: json!({"command": "(cd a; touch ran-here)"}),
            before: two_folders,
            between: |arena| {
                rename(arena, "a", "old");
                rename(arena, "b", "a");
            },
            names: "the folder `a` /workspace/a is another one",
            elsewhere: "work/a/ran-here",
        },
        Attack {
            name: "the folder of `cd` is made only after the ask",
            tool: "shell_run",
            input: json!({"command": "cd new 2>/dev/null; touch ran-here"}),
            before: |_| {},
            between: |arena| put(arena, "new/keep", ""),
            names: "the folder `new` is /workspace/new now, and not known before the line runs was shown",
            elsewhere: "work/new/ran-here",
        },
        Attack {
            name: "the network is closed",
            tool: "shell_run",
            input: json!({"command": "true"}),
            before: |arena| arena.configure("[sandbox]\nnetwork = \"enabled\"\n"),
            between: |arena| arena.configure(""),
            names: "the network is disabled now, and enabled was shown",
            elsewhere: "",
        },
        Attack {
            name: "another folder is the workspace",
            tool: "shell_run",
            input: here(),
            before: |_| {},
            between: |arena| {
                fs::rename(arena.workspace(), arena.path("moved")).expect("renamed");
                arena.write("work/new", "");
            },
            names: "is another one than was shown",
            elsewhere: "work/ran-here",
        },
    ]
}

#[test]
fn an_approved_call_has_no_more_network_than_was_shown() {
    let input = json!({"command": "[ \"$(wc -l < /proc/net/dev)\" -eq 3 ] || touch other"}).to_string();
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        arena.configure("[sandbox]\nnetwork = \"enabled\"\n");
        // It runs by the setup of its session, as it was asked.
        arena.run(&["approvals", "allow", &ask]).ends(0);
        assert!(!arena.exists("work/other"), "{who:?}");
        // The control: asked about as it is now, it has the machine's network.
        arena.run(&["--approvals", "allow", "call", "shell_run", &input]).ends(0);
        assert!(arena.exists("work/other"), "{who:?}");
    }
}

#[test]
fn an_approval_holds_for_nothing_but_what_was_shown() {
    for who in EVERYBODY {
        for attack in attacks() {
            let Attack { name, tool, input, before, between, names, elsewhere } = attack;
            let arena = Arena::of(who);
            before(&arena);
            let input = input.to_string();
            // The control: with nothing changed in between, the approval counts.
            let ask = arena.run(&["call", tool, &input]).ends(3).id("ask_");
            arena.run(&["approvals", "allow", &ask]).ends(0);
            let ask = arena.run(&["call", tool, &input]).ends(3).id("ask_");
            between(&arena);
            if !elsewhere.is_empty() {
                assert!(!arena.exists(elsewhere), "{name}: the attack must be what makes it");
            }
            let ran = arena.run(&["approvals", "allow", &ask]).ends(1);
            let said = format!("{}{}", ran.out, ran.err);
            assert!(said.contains(names), "{name} as {who:?}: {said}");
            arena.run(&["approvals", "show", &ask]).ends(0).says("void");
            if !elsewhere.is_empty() {
                assert!(!arena.exists(elsewhere), "{name} as {who:?}: it ran elsewhere than shown");
                // The control: asked about as it is now, it does what the approval was not for.
                arena.run(&["--approvals", "allow", "call", tool, &input]).ends(0);
                assert!(arena.exists(elsewhere), "{name}: the attack would not have worked");
            }
        }
    }
}

#[test]
fn the_script_and_the_programs_are_shown_and_no_value_of_the_environment_is_kept() {
    let arena = Arena::of(EVERYBODY[1]);
    put(&arena, "Makefile", "all:\n\ttouch the-recipe\n");
    set(&arena, "HARMLESS", "value-that-nobody-keeps");
    let ask = arena.run(&["call", "shell_run", r#"{"command":"make all"}"#]).ends(3).id("ask_");
    let shown = arena.run(&["approvals", "show", &ask]).ends(0);
    let shown = shown.says("recipe `all` of /workspace/Makefile (untrusted, quoted)").says("touch the-recipe");
    shown.says("programs: make = ");
    let session = arena.run(&["sessions"]).ends(0).id("sesn_");
    let events = arena.run(&["sessions", "events", &session, "--json"]).ends(0).out;
    assert!(events.contains("the variable HARMLESS") && !events.contains("value-that-nobody-keeps"));
}

/// A root and a folder below it with the same names in them, each of which tells where it lies.
fn root_and_sub(arena: &Arena) {
    for (folder, word) in [("", "ROOT"), ("sub/", "SUB")] {
        put(arena, &format!("{folder}package.json"), &format!("{{\"scripts\": {{\"test\": \"echo IN-{word}\"}}}}"));
        put(arena, &format!("{folder}Makefile"), &format!("all:\n\techo IN-{word}\n"));
        script(arena, &format!("{folder}go.sh"), word);
    }
}

/// What a person is shown of a line.
fn shown(arena: &Arena, line: &str) -> String {
    let input = json!({ "command": line }).to_string();
    let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
    arena.run(&["approvals", "show", &ask]).ends(0).out
}

#[test]
fn an_ask_quotes_the_script_of_the_folder_that_the_command_runs_in() {
    let arena = Arena::of(EVERYBODY[1]);
    root_and_sub(&arena);
    link(&arena, "sub", "link");
    for line in [
        "cd sub && npm test",
        "cd sub; npm test",
        "cd sub\nnpm test",
        "pushd sub; npm test",
        "(cd sub; npm test)",
        "cd sub || exit 1; npm test",
        "cd /workspace/sub && npm test",
        "cd ./sub/../sub && npm test",
        "env -C sub npm test",
        "env --chdir=sub npm test",
        "npm --prefix sub test",
        "npm -C sub test",
        "bash -c \"cd sub && npm test\"",
        "cd link && npm test",
        "cd sub && timeout 9 npm test",
    ] {
        let text = shown(&arena, line);
        assert!(text.contains("scripts.test of /workspace/sub/package.json"), "{line}: {text}");
        assert!(text.contains("IN-SUB") && !text.contains("IN-ROOT"), "{line}: {text}");
    }
    for line in ["(cd sub; make)", "make -C sub", "make -kC sub", "env -C sub make", "bash -c 'cd sub; make'"] {
        let text = shown(&arena, line);
        assert!(text.contains("recipe `all` of /workspace/sub/Makefile"), "{line}: {text}");
        assert!(text.contains("IN-SUB") && !text.contains("IN-ROOT"), "{line}: {text}");
    }
    let text = shown(&arena, "cd sub && ./go.sh");
    assert!(text.contains("./go.sh = /workspace/sub/go.sh") && !text.contains("= /workspace/go.sh"), "{text}");
    assert!(shown(&arena, "cd link && ./go.sh").contains("folder `link`: /workspace/sub"));
    // The control: where the line stays, or comes back, it is the script of the root.
    for line in
        ["npm test", "(cd sub); npm test", "cd sub & npm test", "cd sub && cd .. && npm test", "cd sub || npm test"]
    {
        let text = shown(&arena, line);
        assert!(text.contains("IN-ROOT") && !text.contains("IN-SUB"), "{line}: {text}");
    }
}

#[test]
fn an_ask_says_so_if_the_folder_is_known_only_when_the_line_runs() {
    let arena = Arena::of(EVERYBODY[1]);
    root_and_sub(&arena);
    for (line, program) in [
        ("mkdir -p sub && cd $_ && make", "make"),
        ("cd $(echo sub) && npm test", "npm"),
        ("cd sub && cd - && ./go.sh", "./go.sh"),
        ("[ -d x ] && cd sub; make", "make"),
        ("cd new || mkdir new && cd new; make", "make"),
        ("ln -sfn /workspace sub; cd sub && make", "make"),
        ("rm -r sub; mv other sub; env -C sub make", "make"),
        ("for d in sub; do cd $d; ./go.sh; done", "./go.sh"),
        ("find . -name go.sh -execdir ./go.sh ';'", "./go.sh"),
        ("f() { cd sub; }; f; npm test", "npm"),
    ] {
        let text = shown(&arena, line);
        assert!(text.contains("becomes known only when the line runs"), "{line}: {text}");
        assert!(text.contains(&format!("`{program}`")), "{line}: {text}");
        assert!(!text.contains("IN-ROOT") && !text.contains("IN-SUB"), "{line}: {text}");
        assert!(!text.contains("go.sh = "), "{line}: {text}");
    }
    let text = shown(&arena, "npm -w sub test");
    assert!(text.contains("not known before it runs") && !text.contains("IN-ROOT"), "{text}");
    assert!(shown(&arena, "cd $X && python3 x.py").contains("`python3 x.py`"));
    // The control: a program of the system is the same one in every folder.
    let text = shown(&arena, "cd $(echo sub) && ls");
    assert!(!text.contains("becomes known only when the line runs") && text.contains("ls = "), "{text}");
}

#[test]
fn no_rule_about_words_answers_for_a_script_in_an_unknown_folder() {
    let arena = Arena::of(EVERYBODY[1]);
    root_and_sub(&arena);
    let words = "argv = [[\"cd\"], [\"popd\"], [\"make\"], [\"./go.sh\"], [\"[\"], [\"ls\"], [\"cargo\", \"test\"]]";
    arena.configure(&format!("[[rules]]\naction = \"*\"\n{words}\neffect = \"allow\"\n"));
    let decision = |line: &str| {
        let input = json!({ "command": line }).to_string();
        let found = arena.run(&["policy", "explain", "bash", &input, "--json", "--profile", "code"]).json();
        found["decision"].as_str().expect("a decision").to_owned()
    };
    for line in ["popd; make", "cd sub; cd -; ./go.sh", "[ -d sub ] && cd sub; make", "cd new; make"] {
        assert_eq!(decision(line), "ask", "{line}");
    }
    // The control: the same words in a folder that is known, and programs of the system anywhere.
    for line in ["make", "cd sub; make", "cd sub; ./go.sh", "popd; ls", "[ -d sub ] && cd sub; cargo test"] {
        assert_eq!(decision(line), "allow", "{line}");
    }
}

/// A person answers in another terminal than the one that asked. The call runs with the `PATH` that was shown to nobody
/// else: the asker's.
#[test]
fn an_approved_command_finds_the_programs_of_the_process_that_asked() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for (folder, text) in [("home/.local/bin", "asker"), ("home/other/bin", "answerer")] {
            arena.write(&format!("{folder}/which-one"), &format!("#!/bin/sh\necho {text} > told\n"));
            let path = arena.path(&format!("{folder}/which-one"));
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made runnable");
        }
        let path = |folder: &str| format!("{}:/usr/bin:/bin", arena.path(folder).display());
        let call = ["call", "shell_run", r#"{"command":"which-one"}"#];
        let with = |args: &[&str], folder: &str| -> Ran {
            let mut command = arena.command(args);
            command.env("PATH", path(folder)).env("GOROOT", arena.path(folder));
            command.output().expect("it runs").into()
        };
        let ask = with(&call, "home/.local/bin").ends(3).id("ask_");
        with(&["approvals", "allow", &ask], "home/other/bin").ends(0);
        assert_eq!(arena.read("work/told").trim(), "asker", "{who:?}");
        // The control: asked from there, the other one runs.
        fs::remove_file(arena.path("work/told")).expect("removed");
        let ask = with(&call, "home/other/bin").ends(3).id("ask_");
        let answered = with(&["approvals", "allow", &ask], "home/.local/bin");
        assert!(arena.exists("work/told"), "{who:?}: {}{}", answered.out, answered.err);
        assert_eq!(arena.read("work/told").trim(), "answerer", "{who:?}");
    }
}
