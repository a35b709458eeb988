//! What no line sees: what lies outside, what rules deny, what the session's environment would do to a program.

use std::fs;
use std::process::Command;

use portcullis::{AskAnswer, CallOutcome, Reply};
use portcullis_base::{Code, IsolationLevel, Reason};
use portcullis_event::Observed;
use serde_json::json;

use crate::read_only_hand::world::{World, stream};

const SECRET: &str = "TOP-SECRET-7";

fn shows(seen: &Observed) -> bool {
    format!("{:?} {:?} {}", seen.content, seen.structured, seen.summary).contains(SECRET)
}

#[tokio::test(flavor = "multi_thread")]
async fn check16_links_that_lead_outside_are_refused() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("key"), SECRET).expect("written");
    let world = World::new().await;
    world.put("a.txt", "a\n");
    world.put("sub/b.txt", "b\n");
    let key = outside.path().join("key");
    world.link(key.to_str().expect("text"), "key");
    world.link(outside.path().to_str().expect("text"), "folder");
    world.link("../../../../../../../../etc/passwd", "sub/passwd");
    world.link("key", "twice");
    for line in [
        "cat key",
        "cat twice",
        "cat folder/key",
        "cat < key",
        "cat a.txt key",
        "head -c 5 folder/key",
        "grep -r SECRET folder",
        "ls folder/",
        "ls -l key",
        "stat key",
        "readlink key",
        "test -e key",
        "cd folder",
        "cd folder && cat key",
        "cd sub && cat passwd",
        "find folder -name key",
        "find . -newer key",
        "diff a.txt key",
        "cat ../x",
        "cat /etc/passwd",
        "ls ..",
        "cd ..",
        "cd sub; cat ../../x",
        "cat sub/../../x",
    ] {
        let seen = world.refused(line, Reason::PathEscape).await;
        assert!(!shows(&seen), "{line}");
        let host = outside.path().to_str().expect("text");
        assert!(!seen.summary.contains(host), "{line}: {}", seen.summary);
    }
    // A pattern yields what is inside, and says what it left out.
    for (line, out) in [("cat *", "a\n"), ("cat sub/*", "b\n"), ("cat */*", "b\n")] {
        let seen = world.bash(line).await;
        let ours = stream(&seen, "stdout");
        assert!(ours == out && !seen.warnings.is_empty(), "{line}: {ours:?} {:?} {}", seen.warnings, seen.summary);
    }
    // What a program meets on its own way shows nothing of the host.
    for line in ["grep -R SECRET .", "grep -r SECRET .", "rg SECRET", "find . -type f", "ls -laR", "du -a", "tree -a"] {
        assert!(!shows(&world.bash(line).await), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h03_files_of_secrets_are_not_read_under_another_name_either() {
    let world = World::new().await;
    world.put(".env", SECRET);
    world.put("keys/id_rsa", SECRET);
    world.link(".env", "settings");
    for line in
        ["cat .env", "cat settings", "cat < settings", "cat keys/*", "cd keys; cat *", "test -e x || cat settings"]
    {
        let seen = world.bash(line).await;
        assert_eq!(
            seen.reason.as_ref().and_then(|r| r.known()),
            Some(Reason::CommandNotAllowed),
            "{line}: {}",
            seen.summary
        );
        assert!(!shows(&seen), "{line}");
    }
    assert_eq!(world.ran("ls settings keys/*").await.0, "./keys/id_rsa\nsettings\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn check38_what_rules_deny_no_stage_reads() {
    let rules = "[[rules]]\nid = \"no-keys\"\naction = \"read\"\npath = \"**/*.key\"\neffect = \"deny\"\n";
    let world = World::with(rules, IsolationLevel::Full).await;
    world.put("sub/a.key", SECRET);
    world.put("a.txt", "a\n");
    world.link("sub/a.key", "link");
    for line in [
        "cat sub/a.key",
        "cat link",
        "cat < sub/a.key",
        "cat < link",
        "cat sub/*",
        "cat sub/a.k?y",
        "cd sub && cat a.key",
        "diff a.txt sub/a.key",
        "test -r sub/a.key",
        "cat a.txt; cat sub/a.key",
        "test -e nope && cat sub/a.key",
    ] {
        let seen = world.bash(line).await;
        assert_eq!(seen.code.known(), Some(Code::PolicyDenied), "{line}: {}", seen.summary);
        assert!(!shows(&seen), "{line}");
    }
    fs::hard_link(world.path("sub/a.key"), world.path("hard")).expect("a hard link");
    for line in ["cat hard", "cat < hard", "grep SECRET ha*"] {
        let seen = world.bash(line).await;
        assert_eq!(seen.code.known(), Some(Code::PolicyDenied), "{line}: {}", seen.summary);
        assert!(!shows(&seen), "{line}");
    }
    for line in ["grep -r SECRET .", "grep -R SECRET .", "rg --hidden SECRET", "cd sub; grep -r SECRET ."] {
        let seen = world.bash(line).await;
        assert!(!shows(&seen), "{line}: {:?}", seen.content);
    }
    assert_eq!(world.ran("cat a.txt").await.0, "a\n");
    // Also what is made between two lines.
    world.put("new.key", SECRET);
    assert!(!shows(&world.bash("grep -r SECRET .").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn check38_what_rules_ask_about_no_stage_comes_upon_unasked() {
    let rules = "[[rules]]\nid = \"mine\"\naction = \"read\"\npath = \"private/**\"\neffect = \"ask\"\n\
        [[rules]]\nid = \"no-shell\"\naction = \"shell_run\"\neffect = \"deny\"\n";
    let world = World::with(rules, IsolationLevel::Full).await;
    world.put("private/x.txt", SECRET);
    world.put("a.txt", "a SECRET\n");
    for line in ["grep -r SECRET .", "rg SECRET", "find . -type f", "cat a.txt"] {
        let seen = world.bash(line).await;
        assert!(!shows(&seen) && stream(&seen, "stdout").contains('a'), "{line}: {:?} {}", seen.content, seen.summary);
    }
    let input = json!({"command": "cat private/x.txt"}).to_string();
    let asked = world.runtime.call(world.session, "bash", &input).await.expect("called");
    let CallOutcome::Waiting(ask) = asked else { panic!("it was not asked about") };
    world.runtime.reply(ask, AskAnswer::by("ada", Reply::AllowOnce)).await.expect("answered");
    world.runtime.attend(world.session).await.expect("attended");
    let seen = world.call("shell_read_last_output", json!({})).await;
    assert!(shows(&seen), "a person said yes to this call: {:?}", seen.structured);
}

/// A variable of the session can make any program run code, and a rule may allow setting one.
#[tokio::test(flavor = "multi_thread")]
async fn h03_no_stage_gets_anything_of_the_sessions_environment() {
    let rule = "[[rules]]\naction = \"shell_set_env\"\nshell = \"env:*\"\neffect = \"allow\"\n";
    let world = World::with(rule, IsolationLevel::Full).await;
    world.put("a.txt", "a\n");
    world.put(
        "evil.c",
        "#include <unistd.h>\n__attribute__((constructor)) static void run(void) { write(1, \"PRELOADED\\n\", 10); }\n",
    );
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .args([world.path("evil.so"), world.path("evil.c")])
        .status()
        .expect("this test needs `cc`");
    assert!(built.success());
    let control = Command::new("cat").arg(world.path("a.txt")).env("LD_PRELOAD", world.path("evil.so")).output();
    assert_eq!(control.expect("runs").stdout, b"PRELOADED\na\n", "outside, the attack works");
    world.put("rgrc", "--files\n");
    let host = world.path("evil.so");
    for (key, value) in [
        ("LD_PRELOAD", "/workspace/evil.so"),
        ("LD_LIBRARY_PATH", "/workspace"),
        ("RIPGREP_CONFIG_PATH", "/workspace/rgrc"),
        ("POSIXLY_CORRECT", "1"),
        ("GREP_OPTIONS", "-v"),
        ("GREP_COLORS", "mt=1"),
        ("LS_COLORS", "*.txt=1"),
        ("TZ", "Asia/Tokyo"),
        ("A", "1"),
        ("API_TOKEN", SECRET),
    ] {
        let seen = world.call("shell_set_env", json!({"key": key, "value": value})).await;
        assert!(seen.ok, "{key}: {}", seen.summary);
    }
    for line in ["cat a.txt", "rg a a.txt", "grep a a.txt", "ls a.txt", "date +%Z", "cat a.txt | cat"] {
        assert_eq!(world.ran(line).await, world.oracle(line), "{line}");
    }
    world.call("shell_set_env", json!({"key": "LD_PRELOAD", "value": host.to_str().expect("text")})).await;
    assert_eq!(world.ran("cat a.txt").await.0, "a\n");
    // It is shown, but a secret by its name alone.
    let (shown, _) = world.ran("env").await;
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in ["A", "LANG", "LD_PRELOAD", "PATH", "PORTCULLIS_SESSION_ID", "PORTCULLIS_WORKSPACE_CWD", "TMPDIR"] {
        assert!(names.contains(&name), "{name}: {shown}");
    }
    assert!(shown.contains("A=1\n") && shown.contains("API_TOKEN=***\n") && !shown.contains(SECRET), "{shown}");
    assert!(shown.contains("PATH=/usr/bin:/bin\n"));
    assert_eq!(world.ran("env | grep -c PRELOAD").await.0, "1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn h03_programs_come_from_the_system_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    for name in ["ls", "cat", "rg", "usr/bin/ls"] {
        world.put(name, "#!/bin/sh\necho planted\n");
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).expect("executable");
    }
    for line in ["ls", "cat ls", "rg --files", "cd usr/bin; ls"] {
        let (out, _) = world.ran(line).await;
        assert!(!out.contains("planted\n") || line == "cat ls", "{line}: {out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check37_lines_leave_a_git_tree_clean() {
    let world = World::new().await;
    world.put("a.txt", "a\n");
    world.put("src/b.txt", "b\n");
    let git = |words: &[&str]| {
        let out = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"])
            .args(words)
            .current_dir(world.tree.path())
            .output()
            .expect("this test needs `git`");
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let before = world.snapshot();
    for line in
        ["ls -la", "cat a.txt src/*", "grep -rn a .", "rg b", "find . -name '*.txt' | sort | head", "cd src && ls; pwd"]
    {
        world.ran(line).await;
    }
    assert_eq!(git(&["status", "--porcelain"]), "");
    let after = world.snapshot();
    let changed = |name: &&std::path::PathBuf| before.get(*name) != after.get(*name) && !name.ends_with("index");
    let changed: Vec<_> =
        after.keys().filter(changed).filter(|path| path.strip_prefix(world.path(".git")).is_err()).collect();
    assert!(changed.is_empty(), "{changed:?}");
}
