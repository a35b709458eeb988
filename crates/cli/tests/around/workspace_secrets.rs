//! Files of the workspace that hold secrets: every tool asks before it shows one, commands see it empty, and only a rule
//! that names it opens it.

use std::os::unix::ffi::OsStringExt as _;

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

const CANARY: &str = "CANARY-7391";

const NAMES: &[&str] = &[
    ".env",
    ".env.local",
    "app/.ENV",
    "deploy/.env.production",
    "id_rsa",
    "keys/id_ed25519",
    "tls/server.pem",
    "tls/server.key",
    ".ssh/notes",
    ".netrc",
    ".npmrc",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    "gha-creds-1.json",
    ".password",
    "db-password.txt",
    "client_secret_2.json",
    ".git-credentials",
    "prod.env",
    ".env~",
    "id_rsa_work",
    "release.jks",
    "prod.tfvars",
    ".bash_history",
    ".config/gh/hosts.yml",
    "vendor/.env",
    "node_modules/x/id_ed25519",
    ".venv/.aws/credentials",
    ".rclone.conf",
    ".dev.vars",
    ".composer/auth.json",
    ".aws/config",
    "deploy_rsa",
    "keys/ci_ed25519",
];

fn arena_with_secrets(who: Who) -> Arena {
    let arena = Arena::of(who);
    for name in NAMES {
        arena.write(&format!("work/{name}"), &format!("//registry/:_authToken={CANARY}\n"));
    }
    arena.write("work/src/main.rs", "fn main() {} // plain\n");
    arena
}

fn call(arena: &Arena, tool: &str, input: &serde_json::Value) -> Ran {
    arena.run(&["call", tool, &input.to_string()])
}

fn sh(arena: &Arena, command: &str) -> Ran {
    arena.run(&["--approvals", "allow", "call", "shell_run", &json!({ "command": command }).to_string()])
}

fn unseen(ran: &Ran) {
    assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "{}{}", ran.out, ran.err);
}

const BROAD: &str = "[[rules]]\naction = \"*\"\npath = \"/workspace/**\"\neffect = \"allow\"\n";

#[test]
fn check34_reading_a_secret_asks_whatever_a_broad_rule_allows_and_a_rule_that_names_it_opens_it() {
    for who in EVERYBODY {
        let arena = arena_with_secrets(who);
        arena.configure(BROAD);
        let read = |name: &str| call(&arena, "read", &json!({ "file_path": name }));
        read("src/main.rs").ends(0).says("plain");
        let some = if who == Who::Root { NAMES } else { &NAMES[..5] };
        for name in some {
            let ran = read(name).ends(3).says("built_in:secrets");
            unseen(&ran);
        }
        unseen(&call(&arena, "grep", &json!({ "pattern": "CANARY", "path": ".env" })).ends(3));
        for (rule, name) in
            [("**/.env", ".env"), ("gha-creds-*.json", "gha-creds-1.json"), ("tls/*.pem", "tls/server.pem")]
        {
            arena.configure(&format!("{BROAD}[[rules]]\naction = \"read\"\npath = \"{rule}\"\neffect = \"allow\"\n"));
            read(name).ends(0).says(CANARY);
            unseen(&read(".env.local").ends(3));
        }
    }
}

#[test]
fn check34_a_search_shows_no_secret_and_a_listing_shows_names_alone() {
    for who in EVERYBODY {
        let arena = arena_with_secrets(who);
        let ran = call(&arena, "grep", &json!({ "pattern": "CANARY|plain" })).ends(0).says("src/main.rs");
        unseen(&ran);
        call(&arena, "glob", &json!({ "pattern": "*", "limit": 100 }))
            .ends(0)
            .says(".env.local")
            .says("gha-creds-1.json");
        // The same search of files with other names finds them.
        arena.write("work/plain.txt", CANARY);
        call(&arena, "grep", &json!({ "pattern": "CANARY" })).ends(0).says("plain.txt");
    }
}

/// Every way to the content that a command has.
fn attempts() -> String {
    let mut lines = String::new();
    for name in NAMES {
        lines.push_str(&format!(
            "cat {name}; ln {name} l; cat l; mv {name} m; cat m; cp {name} c; cat c; chmod 777 {name}; \
             python3 -c \"print(open('{name}').read())\"; echo x >> {name}; rm -f {name} l m c\n"
        ));
    }
    lines
        + "grep -r CANARY . ; find . -type f -exec cat {} + ; tar c . | grep -a CANARY; mv tls t2; cat t2/*; mv t2 tls; true"
}

#[test]
fn check34_commands_see_secrets_empty_and_cannot_move_change_or_link_them() {
    for who in EVERYBODY {
        let arena = arena_with_secrets(who);
        arena.write("work/.gitignore", "*\n");
        // It is told which.
        let told = "files that may hold secrets are shown empty to commands";
        let ran = sh(&arena, &attempts()).ends(0).warns(told).warns("/workspace/.aws/credentials");
        unseen(&ran);
        let ran = sh(&arena, "cat .env tls/server.key && test ! -s gha-creds-1.json && ls .ssh | wc -l").ends(0);
        unseen(&ran);
        for name in NAMES {
            assert!(arena.read(&format!("work/{name}")).contains(CANARY), "{who:?} {name}");
        }
        // The same again fits a row.
        sh(&arena, "true").ends(0).warns("warning as before: ");
        // Looking alone does not open them either.
        for line in ["cat .password", "cat gha-creds-1.json", "grep -r CANARY .", "cat .npmrc", "head tls/server.pem"] {
            unseen(&call(&arena, "bash", &json!({ "command": line })));
        }
        // A rule opens one to commands too, and the control: outside of the hand all of it is read.
        arena.configure("[[rules]]\naction = \"read\"\npath = \"**/.env\"\neffect = \"allow\"\n");
        sh(&arena, "cat .env").ends(0).says(CANARY);
        unseen(&sh(&arena, "cat .env.local").ends(0));
        let outside =
            arena.as_this_person("/bin/sh").args(["-c", "cat .env.local tls/server.key"]).output().expect("it runs");
        assert!(String::from_utf8_lossy(&outside.stdout).contains(CANARY));
    }
}

#[test]
fn check34_what_git_tracks_is_open_and_no_command_can_make_it_so() {
    for who in EVERYBODY {
        let arena = arena_with_secrets(who);
        let git = |words: &[&str]| {
            let done = arena.as_this_person("git").args(words).output().expect("git runs");
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q", "."]);
        git(&["add", "-f", "tls/server.pem"]);
        call(&arena, "read", &json!({ "file_path": "tls/server.pem" })).ends(0).says(CANARY);
        sh(&arena, "cat tls/server.pem").ends(0).says(CANARY);
        // In the hand the file is empty, and what git notes of it there is not true of the real one.
        sh(&arena, "git add -f .env .netrc tls/server.key; git update-index --add .password; true").ends(0);
        for name in [".env", ".netrc", "tls/server.key", ".password"] {
            unseen(&call(&arena, "read", &json!({ "file_path": name })).ends(3));
        }
    }
}

fn git(arena: &Arena, words: &[&str]) -> String {
    let run = arena
        .as_this_person("/usr/bin/git")
        .current_dir(arena.workspace())
        .args(["-c", "user.name=a", "-c", "user.email=a@a"])
        .args(words)
        .output()
        .expect("git runs");
    String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr)
}

#[test]
fn check34_no_file_is_committed_empty_because_of_its_name() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let text = "reset: \"Old words\"\n";
        for name in ["locales/password_reset.yml", "dirty_password.yml"] {
            arena.write(&format!("work/{name}"), text);
        }
        git(&arena, &["init", "-q"]);
        git(&arena, &["add", "-A"]);
        git(&arena, &["commit", "-qm", "one"]);
        let commit =
            "git add -A locales k8s && git -c user.name=a -c user.email=a@a commit -qm two && cat locales/*.yml k8s/*";
        let edit = json!({ "file_path": "locales/password_reset.yml", "old_string": "Old", "new_string": "New" });
        let write = json!({ "file_path": "k8s/db-credentials.yaml", "content": "user: app\n" });
        let calls = [
            ("read", json!({ "file_path": "locales/password_reset.yml" })),
            ("edit", edit),
            ("write", write),
            ("read", json!({ "file_path": "k8s/db-credentials.yaml" })),
            ("bash", json!({ "command": commit })),
        ];
        let turns = calls.map(|(tool, input)| {
            format!("[[turn]]\ncalls = [{{ name = \"{tool}\", arguments = {:?} }}]\n", input.to_string())
        });
        arena.write("script.toml", &(turns.concat() + "[[turn]]\ntext = \"done\"\n"));
        let model = format!("scripted:{}", arena.path("script.toml").display());
        let ran = arena.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0);
        let told = format!("{}{}", ran.out, ran.err);
        assert_eq!(git(&arena, &["show", "HEAD:locales/password_reset.yml"]), "reset: \"New words\"\n", "{told}");
        assert_eq!(git(&arena, &["show", "HEAD:k8s/db-credentials.yaml"]), "user: app\n", "{told}");
        // Changed by a person: git cannot prove that it is in the repository, and no command may take it for empty.
        arena.write("work/dirty_password.yml", "reset: \"canary\"\n");
        let ran = sh(&arena, "cat dirty_password.yml; git add -A; git commit -qam three; git stash; true");
        let ran = ran.ends(0).warns("closed to commands").warns("dirty_password.yml may hold secrets");
        assert!(!ran.out.contains("canary"), "{}", ran.out);
        assert_eq!(git(&arena, &["show", "HEAD:dirty_password.yml"]), text);
        assert_eq!(git(&arena, &["show", ":dirty_password.yml"]), text);
        assert_eq!(arena.read("work/dirty_password.yml"), "reset: \"canary\"\n");
        // What a person puts into a file that the model made is the person's.
        arena.write("work/k8s/db-credentials.yaml", CANARY);
        unseen(&call(&arena, "read", &json!({ "file_path": "k8s/db-credentials.yaml" })).ends(3));
    }
}

/// Ways to put everything of a tree, or one file of it, into a repository.
const STAGING: &[&str] = &[
    "git add -A && git commit -qm first",
    "git add . && git commit -qm first",
    "git add --all --ignore-errors; git commit -qm first",
    "git add .env && git commit -qm first",
    "git add -f .env; git commit -qm first",
    "git add -N .env; git commit -qam first",
    "git update-index --add .env && git commit -qm first",
    "git stash -u",
    "git stash --all",
    "git commit -qm first .env",
    "git hash-object -w .env",
    "cd conf && git add -A .. && git commit -qm first",
    "git init -q nested; cp -r conf nested/; cd nested; git add -A; git commit -qm first",
    "rm -rf .git; git init -q; git add -A; git commit -qm first",
];

const IDENTITY: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a;";

/// Whether a commit, a stash or the index holds an empty file, which git would put over the real one.
fn staged_empty(arena: &Arena) -> bool {
    let index = git(arena, &["write-tree"]);
    let all = git(arena, &["rev-list", "--all", "--objects"]) + &git(arena, &["ls-tree", "-r", index.trim()]);
    all.contains("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
}

#[test]
fn check34_no_secret_that_git_does_not_ignore_is_staged_empty() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for name in [".env", "conf/.env.local", "conf/id_rsa"] {
            arena.write(&format!("work/{name}"), CANARY);
        }
        arena.write("work/main.py", "print(1)\n");
        // Before there is a repository as well: the line that makes it is the line that adds.
        sh(&arena, &format!("{IDENTITY} git init -q && git add -A && git commit -qm first"))
            .ends(1)
            .warns(".gitignore");
        assert!(!staged_empty(&arena), "{who:?}");
        let begin = || {
            let line = "rm -rf .git nested && git init -q && git add main.py && git commit -qm base";
            let made = arena.as_this_person("/bin/sh").args(["-c", &format!("{IDENTITY} {line}")]).output();
            assert!(made.expect("it runs").status.success());
        };
        let some = if who == Who::Root { STAGING } else { &STAGING[..4] };
        for line in some {
            begin();
            let ran = sh(&arena, &format!("{IDENTITY} {line}; true")).ends(0).warns("may hold secrets");
            unseen(&ran);
            assert!(!staged_empty(&arena), "{who:?} {line}");
            git(&arena, &["stash"]);
            for name in [".env", "conf/.env.local", "conf/id_rsa"] {
                assert_eq!(arena.read(&format!("work/{name}")), CANARY, "{who:?} {line} {name}");
            }
        }
        begin();
        // The shell of a session sees what became of the tree between two lines.
        let shell = |lines: &[&str]| {
            let turns = lines.iter().map(|line| {
                let input = json!({ "command": line }).to_string();
                format!("[[turn]]\ncalls = [{{ name = \"bash\", arguments = {input:?} }}]\n")
            });
            arena.write("script.toml", &(turns.collect::<String>() + "[[turn]]\ntext = \"done\"\n"));
            let model = format!("scripted:{}", arena.path("script.toml").display());
            arena.run(&["run", "go", "--model", &model, "--approvals", "allow"]).ends(0)
        };
        arena.write("work/.gitignore", ".env*\nid_rsa\n");
        shell(&["touch a", "rm .gitignore", "git add -A"]).warns("the shell was started anew");
        assert!(!staged_empty(&arena), "{who:?}");
        // Once git ignores them, the rest is committed and programs find an empty file.
        arena.write("work/.gitignore", ".env*\nid_rsa\n");
        let line = format!("{IDENTITY} git add -A && git commit -qm second && cat .env conf/id_rsa && test ! -s .env");
        sh(&arena, &line).ends(0).warns("shown empty");
        assert!(git(&arena, &["ls-files"]).contains("main.py") && !git(&arena, &["ls-files"]).contains(".env"));
        // The control: without a guard over them git takes them.
        arena.write("work/.gitignore", "");
        git(&arena, &["add", "-A"]);
        assert!(git(&arena, &["ls-files"]).contains("conf/id_rsa"));
    }
}

#[test]
fn check34_what_is_public_is_shown() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/ca.pem", "-----BEGIN CERTIFICATE-----\nPUBLIC-1\n-----END CERTIFICATE-----\n");
        arena.write("work/.npmrc", "save-exact=true # PUBLIC-1\n");
        arena.write("work/.env.example", "KEY=PUBLIC-1\n");
        arena.write("work/src/password.rs", "// PUBLIC-1\n");
        arena.write("work/node_modules/x/key.pem", "PUBLIC-1\n");
        for name in ["ca.pem", ".npmrc", ".env.example", "src/password.rs", "node_modules/x/key.pem"] {
            call(&arena, "read", &json!({ "file_path": name })).ends(0).says("PUBLIC-1");
        }
        let ran = sh(&arena, "cat ca.pem .npmrc .env.example src/password.rs node_modules/x/key.pem").ends(0);
        assert_eq!(ran.out.matches("PUBLIC-1").count(), 5, "{}", ran.out);
        assert!(!ran.err.contains("shown empty"), "{}", ran.err);
        // With a key in it a file of the same name is a secret.
        arena.write("work/ca.pem", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n");
        call(&arena, "read", &json!({ "file_path": "ca.pem" })).ends(3);
    }
}

const AWS: &str = "AKIA2QWERTYUIOPASDFG";
const GITHUB: &str = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6";

/// Files of the person that hold this text, below one folder.
fn holding(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(holding(&entry, text));
        } else if std::fs::read(&entry).expect("read").windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(entry);
        }
    }
    found
}

#[test]
fn check34_keys_in_plain_files_reach_neither_the_model_nor_the_log_and_no_marker_is_written_back() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let content = format!("[s3]\nid = \"{AWS}\"\nregion = \"eu\"\ntoken = {GITHUB}\n");
        arena.write("work/app.toml", &content);
        let mut ways = vec![("read", json!({ "file_path": "app.toml" })), ("grep", json!({ "pattern": "id|token" }))];
        ways.extend(
            ["cat app.toml", "head -3 app.toml", "grep -rn AKIA ."].map(|line| ("bash", json!({ "command": line }))),
        );
        for line in
            ["cat app.toml; cat app.toml >&2", "for w in $(cat app.toml); do printf %s $w; sleep 0.01; echo; done"]
        {
            ways.push(("shell_run", json!({ "command": line })));
            ways.push(("shell_exec", json!({ "command": line })));
        }
        for (tool, input) in &ways {
            for json in [false, true] {
                let mut args = vec!["--approvals", "allow"];
                args.extend(json.then_some("--json"));
                let input = input.to_string();
                args.extend(["call", tool, input.as_str()]);
                let ran = arena.run(&args).ends(0);
                let all = format!("{}{}", ran.out, ran.err);
                assert!(!all.contains(AWS) && !all.contains(GITHUB), "{who:?} {tool} {input}: {all}");
                assert!(all.contains("[redacted: aws key]"), "{who:?} {tool} {input}: {all}");
            }
        }
        for key in [AWS, GITHUB] {
            assert_eq!(holding(&arena.home(), key), Vec::<std::path::PathBuf>::new(), "{who:?}");
            assert_eq!(holding(&arena.workspace(), key).len(), 1, "{who:?}: the search finds it where it stands");
        }

        let with = |tool: &str, input: serde_json::Value| {
            arena.run(&["--approvals", "allow", "call", tool, &input.to_string()])
        };
        with("read", json!({ "file_path": "app.toml" })).ends(0);
        let marker = "[redacted: aws key]";
        let whole = content.replace(AWS, marker).replace(GITHUB, "[redacted: github token]");
        for (tool, input) in [
            ("write", json!({ "file_path": "app.toml", "content": whole })),
            ("write", json!({ "file_path": "copy.toml", "content": whole })),
            (
                "edit",
                json!({ "file_path": "app.toml", "old_string": format!("id = \"{marker}\""), "new_string": "id = 1" }),
            ),
            (
                "edit",
                json!({ "file_path": "app.toml", "old_string": "region", "new_string": format!("old = {marker}\nregion") }),
            ),
        ] {
            with(tool, input).ends(1).warns(marker).warns("a secret value was kept from you");
        }
        assert_eq!(arena.read("work/app.toml"), content, "{who:?}");
        assert!(!arena.exists("work/copy.toml"));
        with("edit", json!({ "file_path": "app.toml", "old_string": "\"eu\"", "new_string": "\"us\"" })).ends(0);
        assert_eq!(arena.read("work/app.toml"), content.replace("\"eu\"", "\"us\""), "{who:?}: the values stay");
    }
}

#[test]
fn check34_no_command_opens_a_secret_by_moving_what_is_around_it() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let places =
            ["conf/.env", ".kube/config", ".docker/config.json", "app/id_rsa", "tls/server.key", "env/dev.conf"];
        for place in places {
            arena.write(&format!("work/{place}"), CANARY);
        }
        arena.write("work/x/plain", "plain\n");
        let link = |to: &str, name: &str| {
            let made = arena.as_this_person("/bin/ln").args(["-s", to, name]).output().expect("ln runs");
            assert!(made.status.success(), "{made:?}");
        };
        link("env/dev.conf", ".env");
        let strange = std::ffi::OsString::from_vec(b"x\xff".to_vec());
        let folder = arena.workspace().join(strange);
        std::fs::create_dir(&folder).and_then(|()| std::fs::write(folder.join(".env"), CANARY)).expect("made");
        let moves =
            "mv conf vendor; mv .kube k; mv .docker d; mv app venv; mv tls node_modules; mv env e2; cat x*/.env; true";
        unseen(&sh(&arena, moves).ends(0));
        unseen(&sh(&arena, "find . -type f -exec cat {} +; cat .env; true").ends(0));
        for tool in ["read", "bash"] {
            for path in ["vendor/.env", "k/config", "d/config.json", "venv/id_rsa", "node_modules/server.key", ".env"] {
                let input = if tool == "read" {
                    json!({ "file_path": path })
                } else {
                    json!({ "command": format!("cat {path}") })
                };
                unseen(&call(&arena, tool, &input));
            }
        }
        // What is near them moves as ever.
        sh(&arena, "mv x y && cat y/plain").ends(0).says("plain");
    }
}

#[test]
fn check34_no_file_of_a_repository_stops_a_call() {
    for who in EVERYBODY {
        for make in [
            "mkdir .git && mkfifo .git/index",
            "mkfifo .git",
            "mkdir g && ln -s /dev/zero g/index && mkdir sub && echo 'gitdir: ../g' > sub/.git && cp .env sub/.env",
            "mkdir .git && ln -s /dev/zero .git/config && ln -s /dev/zero .git/index",
        ] {
            let arena = Arena::of(who);
            arena.write("work/.env", CANARY);
            let made = arena.as_this_person("/bin/sh").args(["-c", make]).output().expect("it runs");
            assert!(made.status.success(), "{made:?}");
            unseen(&call(&arena, "read", &json!({ "file_path": ".env" })).ends(3));
            unseen(&sh(&arena, "cat .env sub/.env; true").ends(0));
        }
    }
}

#[test]
fn check34_no_tool_shows_a_piece_of_a_private_key() {
    let letters: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let body: Vec<String> = (0..20).map(|n| format!("MIIE{n:02}{letters}")).collect();
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", body.join("\n"));
    let content = format!("first\nkey: |\n{key}second\n");
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/notes.yml", &content);
        // Longer than what is searched in one piece.
        arena.write("work/long.txt", &format!("{}{content}", "filler line\n".repeat(100_000)));
        let shows_none = |ran: Ran| {
            let all = format!("{}{}", ran.out, ran.err);
            assert!(!all.contains(&letters) && !all.contains("MIIE"), "{who:?}: {all}");
            ran
        };
        let read = |input: serde_json::Value| shows_none(call(&arena, "read", &input).ends(0));
        for first in (3..=22).step_by(6) {
            read(json!({ "file_path": "notes.yml", "start_line": first, "line_count": 2 }))
                .says("[redacted: private key]");
        }
        read(json!({ "file_path": "notes.yml", "tail_lines": 3 })).says("[redacted: private key]").says("second");
        read(json!({ "file_path": "notes.yml", "view_range": [25, 25] })).says("second");
        for pattern in ["abcdef", "MIIE", "MIIE05"] {
            let ran = call(&arena, "grep", &json!({ "pattern": pattern })).ends(0);
            assert!(!ran.out.contains("notes.yml") && !ran.out.contains("long.txt"), "{who:?} {pattern}: {}", ran.out);
        }
        let ran = call(&arena, "grep", &json!({ "pattern": "abcdef|second" })).ends(0);
        shows_none(ran).says("notes.yml:25:second").says("long.txt:100025:second");
        // Its lines are where they were: an edit behind it meets the file as it is.
        let edit = json!({ "file_path": "notes.yml", "old_string": "second", "new_string": "third" });
        arena.run(&["--approvals", "allow", "call", "read", &json!({ "file_path": "notes.yml" }).to_string()]).ends(0);
        arena.run(&["--approvals", "allow", "call", "edit", &edit.to_string()]).ends(0);
        assert_eq!(arena.read("work/notes.yml"), content.replace("second", "third"));
        // The control: outside of the tools the same lines are there.
        let outside = arena.as_this_person("/bin/sh").args(["-c", "sed -n 5,6p notes.yml"]).output().expect("it runs");
        assert!(String::from_utf8_lossy(&outside.stdout).contains(&letters));
    }
}
