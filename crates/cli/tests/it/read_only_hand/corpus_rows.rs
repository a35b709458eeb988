//! Check 34, the executed half: every row of both corpora, on a tree in which it means something.

use std::fs;
use std::process::Command;

use portcullis_base::{Code, Reason};

use crate::read_only_hand::corpus;
use crate::read_only_hand::world::{World, result};

/// Programs of the corpus that a machine may lack, with their Debian packages.
const NEEDED: [(&str, &str); 8] = [
    ("jq", "jq"),
    ("tree", "tree"),
    ("rg", "ripgrep"),
    ("file", "file"),
    ("xxd", "xxd"),
    ("strings", "binutils"),
    ("hexdump", "bsdextrautils"),
    ("rev", "util-linux"),
];

/// A tree in which every benign row has something to say, and every hostile one something to spoil.
pub async fn fixture() -> World {
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !std::path::Path::new("/usr/bin").join(program).exists())
        .map(|(_, package)| *package)
        .collect();
    assert!(
        missing.is_empty(),
        "this test needs the Debian packages {missing:?}; `cargo xtask test` installs them as root"
    );
    let world = World::new().await;
    let lines: String = (1..=150)
        .map(|n| match n % 10 {
            0 => format!("line {n} TODO x:y foo a;b\n"),
            3 => format!("# {n} $(whoami) ` -delete\n"),
            _ => format!("line {n} z:w bar\n"),
        })
        .collect();
    world.put("a.txt", &lines);
    world.put("b.txt", "apple 1\nline 20\nzebra 3\nx\n");
    world.put("README.md", "# A project\n\nSome words.\n");
    world.put("src/main.rs", "use std::io;\nfn main() {\n    // TODO unwrap\n    io::stdin().lines().next().unwrap();\n    if a && b { panic!() }\n}\nstruct {}\n");
    world.put("src/lib.rs", "pub struct A;\n// TODO: less\n");
    world.put("src/deep/er.rs", "fn er() {}\n");
    world.put("docs/my file.md", "spaced\n--pre\n");
    world.put("-odd-name.txt", "odd\n");
    world.put("scripts/clean.sh", "rm -rf target\n");
    world.put("a.csv", "1,b,c\n2,a,c\n3,b,d\n");
    world.put("a.bin", b"\x00\x01binary text here\x00\xff\xfe more text\x00");
    world.put("package.json", r#"{"name":"x","scripts":{"test":"t","build":"b"}}"#);
    world.put(".github/workflows/ci.yml", "token: x\n");
    world.put("Cargo.toml", "[package]\nname = \"x\"\n");
    world.put("tests/t.rs", "error\n");
    world.put("target/debug/x.rs", "target\n");
    world.put("big.txt", "x\n".repeat(200_000));
    world.put("delete-me.log", "x\n");
    world.put(".env", "SECRET=1\n");
    world.link("a.txt", "a.lnk");
    // For the hostile rows.
    world.put("evil.sh", "#!/bin/sh\ntouch pwned\n");
    world.put("script.sh", "touch pwned\n");
    world.put("cat", "#!/bin/sh\ntouch pwned\n");
    world.put("bin/grep", "#!/bin/sh\ntouch pwned\n");
    world.put("rgrc", "--pre=./evil.sh\n");
    world.put("list", "a.txt\n");
    for program in ["evil.sh", "script.sh", "cat", "bin/grep"] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(world.path(program), fs::Permissions::from_mode(0o755)).expect("executable");
    }
    world.link("/etc", "link_to_etc");
    assert!(Command::new("mkfifo").arg(world.path("fifo")).status().expect("mkfifo").success());
    world
}

/// Rows whose output is not bash's, and why that is right.
const DIFFERENT: [(&str, &str); 4] = [
    ("B026", "`ls -la` shows `..`, which is not in the tree: in the view it is another folder"),
    ("B033", "names that a pattern yields are given as `./name`, so that none can be an option"),
    ("B087", "`uname -a` shows the name of the machine, and the view has another"),
    ("B095", "`df` shows the mount a folder is on, and in the view the workspace is a mount of its own"),
];

/// Rows that tell the time: both must have seen the same second.
const CLOCKS: [&str; 3] = ["B082", "B083", "B084"];

/// The same text and exit code. `rg` searches files side by side and prints them as they are done, so of its lines the
/// order does not count.
fn alike(command: &str, ours: &(String, i32), theirs: &(String, i32)) -> bool {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    ours == theirs || (command.starts_with("rg ") && ours.1 == theirs.1 && sorted(&ours.0) == sorted(&theirs.0))
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_benign_rows_run_and_say_what_bash_says() {
    let world = fixture().await;
    // Only the tree as the benign rows know it.
    for name in ["link_to_etc", "fifo"] {
        fs::remove_file(world.path(name)).expect("removed");
    }
    let rows = corpus::rows("commands-benign.tsv");
    let (mut not_run, mut differs) = (Vec::new(), Vec::new());
    let before = world.snapshot();
    for row in &rows {
        let mut tries = if CLOCKS.contains(&row.id.as_str()) { 5 } else { 1 };
        loop {
            tries -= 1;
            let seen = world.bash(&row.command).await;
            let Some(ours) = result(&seen) else {
                not_run.push(format!("{} {}: {:?} {}", row.id, row.command, seen.code, seen.summary));
                break;
            };
            let theirs = world.oracle(&row.command);
            if alike(&row.command, &ours, &theirs) {
                let excused = DIFFERENT.iter().any(|(id, _)| *id == row.id);
                assert!(!excused, "{} {} is listed as different and is not", row.id, row.command);
            } else if tries > 0 {
                continue;
            } else {
                differs.push((row.id.as_str(), format!("{}\nours: {ours:?}\nbash: {theirs:?}", row.command)));
            }
            break;
        }
    }
    for (id, why) in DIFFERENT {
        println!("{id} differs from bash: {why}");
    }
    let unexplained: Vec<_> =
        differs.iter().filter(|(id, _)| !DIFFERENT.iter().any(|(known, _)| known == id)).collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(not_run.is_empty(), "{not_run:#?}");
    assert!((differs.len() + not_run.len()) * 20 <= rows.len(), "fewer than 95 % run as in bash");
    assert_eq!(world.snapshot(), before, "a line that only reads has changed the tree");
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_hostile_rows_are_refused_and_nothing_is_executed() {
    let world = fixture().await;
    let before = world.snapshot();
    for row in corpus::rows("commands-hostile.tsv") {
        let seen = world.bash(&row.command).await;
        let known = seen.reason.as_ref().and_then(|reason| reason.known());
        let refusals = [
            Reason::CommandNotAllowed,
            Reason::CommandUnparseable,
            Reason::PathEscape,
            Reason::WrongKind,
            Reason::NotFound,
        ];
        assert_eq!(seen.code.known(), Some(Code::RuntimePreconditionFailed), "{} {}", row.id, row.command);
        assert!(known.is_some_and(|reason| refusals.contains(&reason)), "{} {}: {known:?}", row.id, row.command);
        assert!(seen.invocation_id.is_none() && seen.content.is_empty(), "{} {} was started", row.id, row.command);
        assert!(!seen.summary.contains(world.tree.path().to_str().expect("text")), "{}", seen.summary);
    }
    assert_eq!(world.snapshot(), before);
}
