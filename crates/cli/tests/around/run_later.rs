//! Files that a program outside of the sandbox runs later: what exists of them is read-only for commands, what appears is
//! told to the person, and no broad rule lets a tool write one.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::{Ran, comes, until};

/// One of each kind, at the root and deeper down. Each exists before the attack.
const EXISTING: &[&str] = &[
    ".envrc",
    ".vscode/tasks.json",
    ".idea/runConfigurations/a.xml",
    ".husky/pre-commit",
    ".npmrc",
    ".cargo/config.toml",
    ".cargo/config",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    ".circleci/config.yml",
    ".ssh/config",
    ".bashrc",
    ".claude/settings.json",
    "all.code-workspace",
    "packages/a/.envrc",
    "rust-toolchain",
    "packages/a/rust-toolchain.toml",
    "gradle/wrapper/gradle-wrapper.jar",
    ".huskyrc.js",
    ".lintstagedrc",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    "ansible.cfg",
    ".ansible.cfg",
    "pip.conf",
    ".proverc",
    "packages/b/.npmrc",
    "deep/er/repo/.git/config",
    "deep/er/repo/.git/hooks/pre-commit",
    "deep/er/repo/.git/info/attributes",
    "linked/.git",
    "bare/config",
    "bare/hooks/post-update",
    "far/commondir",
    "far/config.worktree",
    "scripts/hooks/pre-push",
    "env/real.sh",
    "node_modules/dep/.git/config",
];

/// Made by a command where nothing stood: a line that makes it, and the path that is told.
const APPEARING: &[(&str, &str)] = &[
    ("echo x > .envrc", "/workspace/.envrc"),
    ("mkdir .vscode; echo x > .vscode/tasks.json", "/workspace/.vscode"),
    ("mkdir -p a/b; mkdir -p t/.idea; mv t/.idea a/b/.idea", "/workspace/a/b/.idea"),
    ("echo x > tmp; ln tmp .npmrc", "/workspace/.npmrc"),
    ("mkdir d; ln -s ../x d/.envrc", "/workspace/d/.envrc"),
    ("mkdir -p .github/workflows; echo x > .github/workflows/x.yml", "/workspace/.github/workflows"),
    ("echo x > Jenkinsfile", "/workspace/Jenkinsfile"),
    ("mkdir -p gradle/wrapper; echo x > gradle/wrapper/a.jar", "/workspace/gradle/wrapper"),
    ("echo x > .lintstagedrc.mjs", "/workspace/.lintstagedrc.mjs"),
    ("mkdir -p m/.cargo; echo x > m/.cargo/config.toml", "/workspace/m/.cargo/config.toml"),
    ("mkdir -p n; echo 'gitdir: ../x' > n/.git", "/workspace/n/.git"),
    ("mkdir -p o/.git/hooks; echo x > o/.git/config", "/workspace/o/.git"),
    ("mkdir -p p/objects p/refs; echo x > p/HEAD", "/workspace/p"),
    ("mkdir s; echo ../e > s/commondir; echo 'ref: refs/heads/x' > s/HEAD", "/workspace/s"),
    ("mkdir t2; touch t2/HEAD; mkdir u; mv t2/HEAD u/HEAD; echo ../e > u/commondir", "/workspace/u"),
    ("python3 -c \"import os; os.makedirs('q'); open('q/.husky','w')\"", "/workspace/q/.husky"),
    ("mkdir -p r; echo x > r/.bashrc", "/workspace/r/.bashrc"),
    ("mkdir -p node_modules/x/.git", "/workspace/node_modules/x/.git"),
];

fn arena_with_places(who: Who) -> Arena {
    let arena = Arena::of(who);
    for name in EXISTING {
        arena.write(&format!("work/{name}"), "kept\n");
    }
    for name in ["deep/er/repo/.git/HEAD", "bare/HEAD", "bare/objects/x", "bare/refs/x", "far/HEAD"] {
        arena.write(&format!("work/{name}"), "x\n");
    }
    arena.write("work/linked/.git", "gitdir: ../deep/er/repo/.git\n");
    arena.write("work/deep/er/repo/.git/config", "[core]\n\thooksPath = ../../../scripts/hooks\n");
    // A place that is a link: what it leads to runs.
    let link = arena.path("work/env/.envrc");
    std::os::unix::fs::symlink("real.sh", link).expect("a link");
    arena
}

fn sh(arena: &Arena, command: &str) -> Ran {
    arena.run(&["--approvals", "allow", "call", "shell_run", &json!({ "command": command }).to_string()])
}

/// Overwrites, removes and replaces each place, and each folder on the way to it.
fn attack() -> String {
    let mut lines = String::from("try() { \"$@\" 2>/dev/null; }\n");
    for name in EXISTING {
        lines.push_str(&format!(
            "echo evil 2>/dev/null >> {name}; echo evil > new; try mv -f new {name}; try ln -f new {name}; try rm -f {name}\n"
        ));
        let folders: Vec<&str> = name.match_indices('/').map(|(at, _)| &name[..at]).collect();
        for folder in folders.iter().rev() {
            lines.push_str(&format!("try mv {folder} away && mkdir -p {folder} && echo evil > {name}\n"));
        }
    }
    lines + "true\n"
}

fn changed(arena: &Arena) -> Vec<&'static str> {
    let touched = |name: &&&str| {
        let text = std::fs::read_to_string(arena.path(&format!("work/{name}"))).unwrap_or_default();
        text.is_empty() || text.contains("evil")
    };
    EXISTING.iter().filter(touched).copied().collect()
}

#[test]
fn l36_what_exists_of_the_places_is_read_only_for_commands_and_stays_where_it_is() {
    for who in EVERYBODY {
        let arena = arena_with_places(who);
        sh(&arena, &attack()).ends(0);
        assert_eq!(changed(&arena), Vec::<&str>::new(), "{who:?}");
        // Work goes on beside them.
        sh(&arena, "echo fine > packages/a/src.js; echo fine > bare/description; mkdir -p .github/x").ends(0);
        assert_eq!(arena.read("work/packages/a/src.js"), "fine\n");

        // Without the hand the same attack changes every one of them.
        let control = arena_with_places(who);
        let mut shell = control.as_this_person("/bin/sh");
        assert!(shell.args(["-c", &attack()]).status().expect("it runs").success());
        assert_eq!(changed(&control), EXISTING, "{who:?}");
    }
}

#[test]
fn l36_what_appears_is_told_to_the_person_by_its_name_with_what_runs_it() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for some in APPEARING.chunks(5) {
            let line: Vec<&str> = some.iter().map(|(line, _)| *line).collect();
            let ran = sh(&arena, &line.join("; ")).ends(0);
            for (line, path) in some {
                assert!(ran.err.contains(&format!("{path} was not there before this command")), "{line}: {}", ran.err);
            }
        }
        let quiet =
            sh(&arena, "mkdir -p src .githubx; echo x > src/main.rs; echo x > envrc; echo x > .gitignore").ends(0);
        assert!(!quiet.err.contains("was not there before"), "{}", quiet.err);
        let ran = sh(&arena, "mkdir z; echo x > z/.envrc").ends(0);
        ran.warns("direnv runs it when a shell enters the folder");
    }
}

fn script(arena: &Arena, turns: &str) -> String {
    arena.write("script.toml", turns);
    format!("scripted:{}", arena.path("script.toml").display())
}

#[test]
fn l36_a_run_its_session_and_the_next_ask_tell_what_appeared() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.configure(
            "[[rules]]\naction = \"bash\"\nopaque = true\neffect = \"allow\"\n[[rules]]\naction = \"bash\"\neffect = \"allow\"\n",
        );
        let model = script(
            &arena,
            r#"
[[turn]]
calls = [{ name = "bash", input = { command = "f=rc; touch .env$f" } }]
[[turn]]
calls = [{ name = "write", input = { file_path = "a.txt", content = "x" } }]
[[turn]]
text = "done"
"#,
        );
        let told = "/workspace/.envrc was not there before this command";
        let ran = arena.run(&["run", "go", "--model", &model]).ends(3);
        let at = |text: &str| ran.err.find(text).unwrap_or_else(|| panic!("`{text}` is not in {}", ran.err));
        assert!(at("✓ bash") < at(told), "right below its call: {}", ran.err);
        assert!(ran.err[at("waits for an answer")..].contains(told), "the ask that is shown tells it: {}", ran.err);
        let session = ran.id("sesn_");
        arena.run(&["sessions", "show", &session]).ends(0).says(told);
        let ask = ran.id("ask_");
        arena.run(&["approvals", "show", &ask]).ends(0).says("  appeared        /workspace/.envrc was").says(told);
    }
}

/// A process that outlives its command, and a task that ends when nobody looks.
#[test]
fn l36_the_look_is_repeated_when_a_shell_ends() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let model = script(
            &arena,
            r#"
[[turn]]
calls = [{ name = "bash", input = { command = "(while [ ! -e go ]; do sleep 0.01; done; echo x > .envrc; touch made) >/dev/null 2>&1 & true" } }]
[[turn]]
calls = [{ name = "write", input = { file_path = "go", content = "x" } }]
[[turn]]
calls = [{ name = "read", input = { file_path = "a.txt" } }]
[[turn]]
text = "finished"
[[turn]]
calls = [{ name = "write", input = { file_path = "b.txt", content = "x" } }]
[[turn]]
calls = [{ name = "write", input = { file_path = "c.txt", content = "x" } }]
[[turn]]
text = "done"
"#,
        );
        arena.write("work/a.txt", "x\n");
        // On a terminal the run waits for the next words, and its shell lives.
        let line = format!("{} run --model {model} --approvals allow", arena.path("portcullis").display());
        let mut command = arena.as_this_person("/usr/bin/script");
        command.args(["-qfec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
        let mut child = command.spawn().expect("`script` (util-linux) runs");
        let (mut keys, mut out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        // What is typed before a terminal is read key by key may be lost.
        until(&mut out, "> ");
        keys.write_all(b"go\r").expect("typed");
        until(&mut out, "finished");
        comes("the process that outlived its command has made its files", || arena.exists("work/made"));
        keys.write_all(b"/quit\r").expect("typed");
        until(&mut out, "/workspace/.envrc was not there before this command");
        drop(keys);
        assert!(child.wait().expect("it ends").success());

        // It is a fact of the session, and the next ask shows it until a person has answered that ask.
        let told = "/workspace/.envrc was not there before this command";
        let session = arena.run(&["sessions", "list"]).ends(0).id("sesn_");
        arena.run(&["sessions", "show", &session]).ends(0).says(told);
        arena.run(&["sessions", "events", &session]).ends(0).says("warning: runs_later: /workspace/.envrc ");
        arena.run(&["audit", "verify"]).ends(0);
        let mut asks = Vec::new();
        for _ in ["b.txt", "c.txt"] {
            let ran = arena.run(&["run", "on", "--session", &session, "--model", &model]).ends(3);
            let ask = ran.id("ask_");
            asks.push(arena.run(&["approvals", "show", &ask]).ends(0).out);
            arena.run(&["approvals", "allow", &ask]).ends(0);
        }
        assert!(asks[0].contains(told) && !asks[1].contains("was not there"), "{who:?}: {asks:?}");
    }
}

/// What a rule keeps from every command is told below each, and is no news to whoever answers.
#[test]
fn other_warnings_stand_in_no_ask() {
    let arena = Arena::of(Who::Root);
    arena.configure(
        "[[rules]]\nid = \"no-env\"\naction = \"*\"\npath = \"**/.env\"\neffect = \"deny\"\n[[rules]]\naction = \"bash\"\nopaque = true\neffect = \"allow\"\n[[rules]]\naction = \"bash\"\neffect = \"allow\"\n",
    );
    arena.write("work/.env", "x\n");
    let model = script(
        &arena,
        r#"
[[turn]]
calls = [{ name = "bash", input = { command = "f=.env; cat $f" } }]
[[turn]]
calls = [{ name = "write", input = { file_path = "a.txt", content = "x" } }]
[[turn]]
text = "done"
"#,
    );
    let ran = arena.run(&["run", "go", "--model", &model]).ends(3).warns("path_hidden: ");
    let shown = arena.run(&["approvals", "show", &ran.id("ask_")]).ends(0).out;
    assert!(!shown.contains("path_hidden"), "{shown}");
}

#[test]
fn l36_what_appeared_cannot_be_changed_by_the_next_command_of_the_same_shell() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let lines = [
            "mkdir .husky .vscode; echo first > .husky/pre-commit; echo first > .vscode/tasks.json; git init -q sub; export KEPT=yes",
            "echo second > .husky/pre-commit; rm -rf .vscode; mv .husky h2; echo x > sub/.git/hooks/post-commit; echo $KEPT > kept",
            "echo third >> .vscode/tasks.json; git -C sub config core.fsmonitor ./x",
        ];
        let calls = lines.map(|line| {
            format!(
                "[[turn]]\ncalls = [{{ name = \"bash\", arguments = {:?} }}]\n",
                json!({ "command": line }).to_string()
            )
        });
        let model = script(&arena, &(calls.concat() + "[[turn]]\ntext = \"done\"\n"));
        let ran = arena.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0);
        for place in [".husky/pre-commit", ".vscode/tasks.json"] {
            assert_eq!(arena.read(&format!("work/{place}")), "first\n", "{who:?}: {}{}", ran.out, ran.err);
        }
        assert!(!arena.exists("work/sub/.git/hooks/post-commit"), "{who:?}: {}", ran.err);
        assert!(!arena.read("work/sub/.git/config").contains("fsmonitor"), "{who:?}: {}", ran.err);
        assert_eq!(arena.read("work/kept"), "yes\n", "exported variables outlast the restart");
        ran.warns("the shell was started anew because there is a file that runs later");
    }
}

/// What `write` and `edit` may not do under a broad rule.
const WRITTEN: &[&str] = &[
    ".envrc",
    "a/b/.envrc",
    ".ENVRC",
    ".vscode/settings.json",
    ".github/workflows/ci.yml",
    ".git/hooks/pre-commit",
    ".git/config",
    "vendor/x/.git/commondir",
    ".npmrc",
    ".cargo/config.toml",
    ".ssh/authorized_keys",
    "Jenkinsfile",
    "rust-toolchain.toml",
    ".huskyrc",
    ".lintstagedrc.yaml",
    "x/.git",
    "bare/config",
    "bare/hooks/update",
    "link",
];

#[test]
fn l31_an_allow_of_everything_does_not_let_a_place_be_written_and_a_rule_that_names_it_does() {
    let broad = "[[rules]]\naction = \"*\"\npath = \"/workspace/**\"\neffect = \"allow\"\n[[rules]]\naction = \"*\"\neffect = \"allow\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.configure(broad);
        for name in ["bare/HEAD", "bare/objects/x", "bare/refs/x"] {
            arena.write(&format!("work/{name}"), "x\n");
        }
        std::os::unix::fs::symlink(".husky", arena.path("work/link")).expect("a link");
        let write =
            |name: &str| arena.run(&["call", "write", &json!({ "file_path": name, "content": "evil\n" }).to_string()]);
        // The rule does what it says for every other file.
        write("src/main.rs").ends(0);
        let some = if who == Who::Root { WRITTEN } else { &WRITTEN[..6] };
        for name in some {
            write(name).ends(3).says("built_in:runs_later").says("runs later outside of the sandbox");
            assert!(!arena.exists(&format!("work/{name}")) || *name == "link", "{name}");
        }
        for (rule, name) in
            [("**/.envrc", ".envrc"), (".vscode/**", ".vscode/settings.json"), ("bare/config", "bare/config")]
        {
            arena.configure(&format!("{broad}[[rules]]\naction = \"write\"\npath = \"{rule}\"\neffect = \"allow\"\n"));
            write(name).ends(0);
            assert_eq!(arena.read(&format!("work/{name}")), "evil\n", "{rule}");
        }
        // A command that names the place as where it writes asks as well.
        arena.configure(broad);
        let line = json!({ "command": "echo evil > sub.txt > .npmrc" }).to_string();
        arena.run(&["--profile", "code", "call", "bash", &line]).ends(3).says("runs later outside of the sandbox");
        let line = json!({ "command": "echo fine > sub.txt" }).to_string();
        arena.run(&["--profile", "code", "call", "bash", &line]).ends(0);
    }
}

/// Many places of one kind leave room for another.
#[test]
fn many_places_of_one_kind_do_not_hide_another() {
    let arena = Arena::of(Who::Root);
    let line = "for i in $(seq 90); do mkdir -p a/$i; echo x > a/$i/.envrc; done; echo '{}' > zz.code-workspace";
    let input = serde_json::json!({ "command": line }).to_string();
    let ran = arena.run(&["--approvals", "allow", "call", "shell_run", &input]).ends(0);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("and 74 more were not there") && said.contains("zz.code-workspace was not there"), "{said}");
    assert!(!said.contains("more warnings"), "{said}");
}
