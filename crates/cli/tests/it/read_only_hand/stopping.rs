//! Nothing holds a call: pipes and devices are not opened, and what takes too long is ended whole.

use crate::common::comes_by;
use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use portcullis::CallOutcome;
use portcullis_base::{Code, Reason};
use serde_json::json;

use crate::read_only_hand::world::World;

/// Whether a process runs whose command line holds this mark.
fn alive(mark: &str) -> bool {
    let me = std::process::id().to_string();
    fs::read_dir("/proc").expect("/proc").flatten().filter(|entry| entry.file_name().to_str() != Some(&me)).any(
        |entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark)),
    )
}

/// A file of zeros that takes longer to read than anybody waits.
fn endless(world: &World) -> String {
    let name = format!("endless-{}-{}", std::process::id(), world.session);
    File::create(world.path(&name)).and_then(|file| file.set_len(4 << 40)).expect("a sparse file");
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn check34_pipes_and_devices_are_never_opened() {
    let world = World::new().await;
    world.put("a.txt", "a\n");
    world.put("d/a.txt", "a\n");
    assert!(Command::new("mkfifo").arg(world.path("d/pipe")).status().expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).expect("a socket");
    world.link("/dev/zero", "zero");
    world.link("d/pipe", "to-pipe");
    let start = Instant::now();
    for line in [
        "cat d/pipe",
        "cat < d/pipe",
        "cat to-pipe",
        "grep a d/pipe",
        "cat d/*",
        "wc -l socket",
        "diff a.txt d/pipe",
        "cd d; cat pipe",
    ] {
        let seen = world.bash(line).await;
        let reason = seen.reason.as_ref().and_then(|reason| reason.known());
        assert_eq!(reason, Some(Reason::WrongKind), "{line}: {:?} {}", seen.code, seen.summary);
    }
    world.refused("cat zero", Reason::PathEscape).await;
    world.refused("cat < zero", Reason::PathEscape).await;
    for line in ["ls -l d", "stat -c %F d/pipe", "find d -type p", "test -e d/pipe", "file -b d/pipe", "ls d/*"] {
        let theirs = line.replace("ls d/*", "ls ./d/*");
        assert_eq!(world.ran(line).await, world.oracle(&theirs), "{line}");
    }
    // Programs that come upon one themselves pass it by.
    for line in ["grep -rc a d", "rg -c a d"] {
        world.ran(line).await;
    }
    assert!(start.elapsed() < Duration::from_secs(30), "something waited");
}

#[tokio::test(flavor = "multi_thread")]
async fn h17_what_takes_too_long_is_ended_whole() {
    let world = World::new().await;
    let name = endless(&world);
    for line in
        [format!("wc -l {name}"), format!("wc -l {name} | cat | sort"), format!("echo before; cat {name} | wc -l")]
    {
        let start = Instant::now();
        let seen = world.call("bash", json!({"command": line, "timeoutMs": 700})).await;
        assert_eq!(seen.code.known(), Some(Code::Timeout), "{line}: {}", seen.summary);
        assert!(start.elapsed() < Duration::from_secs(6), "{line} took {:?}", start.elapsed());
        comes_by("all are gone", || !alive(&name)).await;
    }
    let seen = world.call("bash", json!({"command": format!("echo before; wc -l {name}"), "timeoutMs": 700})).await;
    assert_eq!(crate::read_only_hand::world::stream(&seen, "stdout"), "before\n", "what was written before is kept");
    let history = world.call("shell_history", json!({"limit": 1})).await.structured.expect("a document");
    assert_eq!(history["commands"][0]["timedOut"], json!(true));
    assert_eq!(history["commands"][0]["exitCode"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn l24_an_interrupt_ends_every_stage() {
    let world = World::new().await;
    let name = endless(&world);
    let input = json!({"command": format!("cat {name} | wc -l; echo never")}).to_string();
    let call = world.runtime.begin(world.session, "bash", &input);
    comes_by("it runs", || alive(&name)).await;
    call.cancel();
    let CallOutcome::Observed(seen) = call.outcome().await.expect("it ends") else { panic!("it has not ended") };
    let seen = seen.session_view();
    assert_eq!(seen.code.known(), Some(Code::Cancelled), "{}", seen.summary);
    assert!(!crate::read_only_hand::world::stream(seen, "stdout").contains("never"));
    comes_by("all are gone", || !alive(&name)).await;
}
