//! What a line does: its list, its pipelines, its redirections and patterns, and what its end means.

use std::fs;

use portcullis_base::{Code, Reason};
use portcullis_store::SessionKey;
use serde_json::json;

use crate::read_only_hand::world::{World, stream};

async fn tree() -> World {
    let world = World::new().await;
    world.put("a.txt", "b\na\nc\n");
    world.put("b.txt", "b\n");
    world.put("src/main.rs", "fn main() {}\n");
    world.put("src/deep/er.rs", "// er\n");
    world.put("empty", "");
    fs::create_dir(world.path("hollow")).expect("made");
    world.link("src/deep", "way");
    world.link("nothing-there", "dangling");
    world
}

/// Each says the same in bash, to the byte.
const LINES: &[&str] = &[
    // Lists.
    "echo a; echo b;",
    "test -e nope && echo a || echo b",
    "test -e a.txt && echo a || echo b",
    "test -e nope || test -e a.txt && echo c",
    "true && true || echo never; echo always",
    "ls nope 2>/dev/null; echo after",
    "echo a && ls nope 2>/dev/null",
    // The folder of a list.
    "cd src && pwd && ls",
    "cd src; cd deep; pwd; cat er.rs",
    "cd way && pwd && cd .. && pwd",
    "cd src/../src && pwd",
    "cd nope 2>/dev/null; pwd",
    "cd nope 2>/dev/null && pwd",
    "cd a.txt 2>/dev/null || pwd",
    "cd src && cat < main.rs",
    "cd src && wc -l ../a.txt",
    // Pipelines.
    "cat a.txt | sort | head -n 1",
    "seq 100000 | head -n 2",
    "pwd | cat",
    "echo a | true",
    "seq 100000 | true",
    "cat a.txt | cat nope 2>/dev/null | wc -l",
    "true | cat",
    "ls nope 2>/dev/null | cat",
    // Redirections, in their order.
    "ls nope 2>&1",
    "ls nope 2>&1 | wc -l",
    "ls nope 2>&1 >/dev/null",
    "ls nope >/dev/null 2>&1",
    "ls nope &>/dev/null",
    "ls a.txt >/dev/null; echo done",
    "wc -l < a.txt",
    "cat b.txt | cat < a.txt",
    "cat < nope 2>/dev/null",
    "cat < nope 2>/dev/null | wc -l",
    "head -n 1 < a.txt 2>/dev/null",
    // Questions.
    "grep -c z a.txt",
    "diff a.txt b.txt",
    "cmp a.txt b.txt",
    "[ -f a.txt ]",
    "[ -d a.txt ]",
    "test -s empty",
    "test -s a.txt",
    "test -s hollow",
    "test -r a.txt",
    "test -w a.txt",
    "test -x a.txt",
    "test -x src",
    "test -e dangling",
    "test -d way",
    "test -f a.txt/",
    "test -e ''",
    // Names.
    "type ls",
    "type cd",
    "type if",
    "type [",
    "command -v ls",
    "command -v echo",
    "command -v no-such-program",
    "readlink way",
    "realpath way",
    "realpath src/../a.txt",
    "cat '' 2>/dev/null",
    "cat a.txt/ 2>/dev/null",
    "cat src 2>/dev/null",
    "cat - < a.txt",
    "ls -l a.txt",
    "find . -name '*.rs' | sort",
    "printf '%s-%s\\n' a b c",
    "echo 'it is $HOME' \"quoted\" a\\ b",
];

#[tokio::test(flavor = "multi_thread")]
async fn check34_lines_say_what_bash_says() {
    let world = tree().await;
    for line in LINES {
        assert_eq!(world.ran(line).await, world.oracle(line), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_all_stages_tell_how_they_ended() {
    let world = tree().await;
    let seen = world.bash("seq 100000 | head -n 1; cat b.txt | cat").await;
    let output = seen.structured.expect("a document");
    assert_eq!(output["stageExitCodes"], json!([141, 0, 0, 0]), "the first was told that nobody listens any more");
    assert_eq!((&output["exitCode"], &output["timedOut"]), (&json!(0), &json!(false)));
    assert_eq!(output["cwd"], "/workspace");
    let seen = world.bash("cat a.txt | ls nope").await;
    assert_eq!((seen.code.known(), seen.exit_code), (Some(Code::CommandFailed), Some(2)));
    assert!(seen.summary.contains("of all stages: "), "{}", seen.summary);
    assert!(stream(&seen, "stderr").contains("nope"), "what it wrote is shown all the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_no_is_no_failure_for_a_lone_question() {
    let world = tree().await;
    for (line, code, exit) in [
        ("grep z a.txt", Code::NoMatches, 1),
        ("rg z a.txt", Code::NoMatches, 1),
        ("diff a.txt b.txt", Code::Ok, 1),
        ("cmp -s a.txt b.txt", Code::Ok, 1),
        ("test -f nope", Code::Ok, 1),
        ("[ -f nope ]", Code::Ok, 1),
    ] {
        let seen = world.bash(line).await;
        assert_eq!(seen.code.known(), Some(code), "{line}: {}", seen.summary);
        assert_eq!(seen.structured.expect("a document")["exitCode"], exit, "{line}");
    }
    for line in ["grep z nope", "grep z a.txt | grep z", "echo a; grep z a.txt", "ls nope", "cmp nope a.txt"] {
        let seen = world.bash(line).await;
        assert_eq!(seen.code.known(), Some(Code::CommandFailed), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_names_that_look_like_options_are_names() {
    let world = World::new().await;
    let names = ["-rf", "--pre=x", "--", "a b", "new\nline", "ünï", "*", "[x]", "(", "!", "-", "'", "\\"];
    for name in names {
        world.put(name, format!("in {name}\n"));
        world.put(&format!("sub/{name}"), format!("beneath {name}\n"));
    }
    for (ours, theirs) in [
        ("cat *", "cat ./*"),
        ("wc -c *", "wc -c ./*"),
        ("grep -c in *", "grep -c in ./*"),
        ("find * -type f", "find ./* -type f"),
        ("ls -d *", "ls -d ./*"),
        ("echo *", "echo ./*"),
        ("cat sub/*", "cat ./sub/*"),
        ("cat ./-*", "cat ./-*"),
        ("cat '*' \\[x]", "cat '*' \\[x]"),
        ("cat ?rf", "cat ./?rf"),
        ("cat -- -rf", "cat -- -rf"),
        ("cat */*", "cat ./*/*"),
        ("ls -d */", "ls -d ./*/"),
    ] {
        assert_eq!(world.ran(ours).await, world.oracle(theirs), "{ours}");
    }
    let one = world.call("bash", json!({"command": "cat", "args": ["--", "*", "-rf"]})).await;
    assert_eq!(stream(&one, "stdout"), "in *\nin -rf\n", "given words are expanded by nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_patterns_match_as_in_bash_or_stop_the_line() {
    let world = tree().await;
    world.put(".hidden.txt", "hidden\n");
    world.put("src/.dot.rs", "dot\n");
    for pattern in [
        "*.txt",
        "?.txt",
        "[ab].txt",
        "[!a].txt",
        "[^a].txt",
        "src/*.rs",
        "*/*.rs",
        "src/*/*.rs",
        "*/*/*",
        "./*.txt",
        ".h*",
        "way/*",
        "src/../*.txt",
        "src/deep/../*.rs",
        "*",
        "s*c",
        "a*t",
        "[[:lower:]].txt",
        "**",
        "*/",
        "dang*",
        "'a'*",
        "a.[t]xt",
    ] {
        let theirs = if pattern.starts_with("./") { pattern.to_owned() } else { format!("./{pattern}") };
        assert_eq!(world.ran(&format!("ls -d {pattern}")).await, world.oracle(&format!("ls -d {theirs}")), "{pattern}");
    }
    for pattern in ["*.none", "nope/*", "a.txt/*", "q[z]", "*.txt/"] {
        let seen = world.refused(&format!("cat {pattern}"), Reason::NotFound).await;
        assert!(seen.summary.contains(pattern), "{}", seen.summary);
    }
    for n in 0..1_001 {
        world.put(&format!("many/{n:04}"), "");
    }
    world.refused("ls many/*", Reason::OutputBudget).await;
    assert_eq!(world.ran("ls many/0* | wc -l").await.0, "1000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn check20_a_line_runs_in_the_folder_of_the_session() {
    let world = tree().await;
    world.call("shell_set_cwd", json!({"path": "src"})).await;
    assert_eq!(world.ran("pwd; ls").await.0, "/workspace/src\ndeep\nmain.rs\n");
    assert_eq!(world.ran("cd deep; pwd").await.0, "/workspace/src/deep\n");
    assert_eq!(world.ran("pwd").await.0, "/workspace/src\n", "`cd` moves nothing that lasts");
    let given = world.call("bash", json!({"command": "pwd", "cwd": "."})).await;
    assert_eq!(stream(&given, "stdout"), "/workspace\n");
    for cwd in ["nope", "a.txt", "/etc", "../.."] {
        let seen = world.call("bash", json!({"command": "pwd", "cwd": cwd})).await;
        assert_eq!(seen.reason.and_then(|reason| reason.known()), Some(Reason::CwdInvalid), "{cwd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_remembered_and_costs_one_append() {
    let world = tree().await;
    world.bash("cat b.txt").await;
    world.bash("ls nope").await;
    let gate = world.runtime.gate();
    let key = SessionKey { tenant: gate.tenant(), session: world.session };
    let events = gate.store().read(key, 0, 1_000).await.expect("the log");
    let appends = |kind: &str| -> Vec<_> {
        events.iter().filter(|event| event.kind.as_str() == kind).map(|event| event.append_id).collect()
    };
    let started = appends("tool.invocation.started");
    assert_eq!(started.len(), 2);
    for kind in
        ["tool.intent", "tool.permission", "tool.invocation.completed", "tool.observation", "shell.command_finished"]
    {
        assert_eq!(
            appends(kind),
            started,
            "{kind}: a line cannot touch the world, so nothing must be durable before it"
        );
    }
    let seen = world.call("shell_history", json!({})).await.structured.expect("a document");
    let commands = seen["commands"].as_array().expect("commands");
    assert_eq!(commands.len(), 2);
    assert_eq!((&commands[1]["command"], &commands[1]["stdoutPreview"]), (&json!("cat b.txt"), &json!("b\n")));
    assert_eq!((&commands[0]["command"], &commands[0]["exitCode"]), (&json!("ls nope"), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_tool_that_does_the_same() {
    let world = tree().await;
    let seen = world.refused("cat .env", Reason::CommandNotAllowed).await;
    assert!(seen.summary.contains("use read {\"file_path\":\"/workspace/.env\"}"), "{}", seen.summary);
    let seen = world.refused("make test", Reason::CommandNotAllowed).await;
    assert!(seen.summary.contains("run it with shell_run"), "{}", seen.summary);
    world.refused("cat 'a", Reason::CommandUnparseable).await;
}
