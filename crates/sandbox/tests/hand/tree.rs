//! The tree dies whole, and nothing in it can hold the call or the machine.

use std::io::Read;
use std::process::{Command, Stdio};

use portcullis_sandbox::hand::{Exit, Target};
use rustix::process::Signal;

use crate::world::{HELPER, alive, ended, finish, mark, until, world};

/// A daemon that left its session, its group and its parent.
fn daemon(mark: &str) -> String {
    format!("(setsid sh -c 'sleep {mark} & sleep {mark}' >/dev/null 2>&1 &) ; sleep {mark}")
}

#[tokio::test]
async fn h17_dropping_or_killing_ends_everyone() {
    let world = world();
    for kill in [false, true] {
        let mark = mark();
        let mut running = world.launch(world.sh(&daemon(&mark))).await.expect("launched");
        until("the daemon runs", || alive(&format!("sleep\0{mark}"))).await;
        if kill {
            running.kill_tree();
            assert_eq!(ended(&mut running).await.exit, Exit::Signal(9));
            assert!(!alive(&mark), "somebody outlived the kill");
        } else {
            drop(running);
            until("everyone is gone", || !alive(&mark)).await;
        }
    }
}

#[tokio::test]
async fn h17_a_daemon_that_holds_stdout_does_not_hold_the_call() {
    let world = world();
    let mark = mark();
    let mut running = world.launch(world.sh(&format!("(setsid sleep {mark} &) ; echo done"))).await.expect("launched");
    let done = finish(&mut running).await;
    assert_eq!((done.ended.exit, done.out.as_str()), (Exit::Code(0), "done\n"));
    assert!(!alive(&mark), "the daemon outlived its call");
}

#[tokio::test]
async fn kill_9_of_portcullis_ends_the_whole_tree() {
    let world = world();
    let mark = mark();
    let mut child = Command::new(HELPER)
        .args(["run", "--", "sh", "-c", &format!("echo up; {}", daemon(&mark))])
        .current_dir(world.tree.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut up = [0; 3];
    child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("it runs");
    until("the daemon runs", || alive(&format!("sleep\0{mark}"))).await;
    child.kill().expect("kill -9");
    child.wait().expect("reaped");
    until("everyone is gone", || !alive(&mark)).await;
}

#[tokio::test]
async fn h17_signals_reach_the_tree_the_program_or_the_others() {
    let world = world();
    let script = "trap 'echo main; exit 3' INT; (trap 'echo child; exit' INT; echo ready; while :; do sleep 0.01; done) & wait; \
                  while :; do sleep 0.01; done";
    for (target, exit) in [(Target::Tree, Some(3)), (Target::Main, Some(3)), (Target::Others, None)] {
        // A background child of `sh` ignores INT unless it says otherwise, so it uses perl's.
        let script = script.replace(
            "(trap 'echo child; exit' INT; echo ready; while :; do sleep 0.01; done)",
            "perl -e '$|=1; $SIG{INT}=sub{print \"child\\n\"; exit}; print \"ready\\n\"; sleep 1 while 1'",
        );
        let mut running = world.launch(world.sh(&script)).await.expect("launched");
        let mut out = std::fs::File::from(running.take_stdout().expect("stdout"));
        let mut ready = [0; 6];
        let mut out = tokio::task::spawn_blocking(move || out.read_exact(&mut ready).map(|()| out))
            .await
            .expect("read")
            .expect("ready");
        running.signal(Signal::INT, target).expect("sent");
        if let Some(code) = exit {
            assert_eq!(ended(&mut running).await.exit, Exit::Code(code), "{target:?}");
        } else {
            let (said, rest) = tokio::task::spawn_blocking(move || {
                let mut said = [0; 6];
                out.read_exact(&mut said).map(|()| (said, out))
            })
            .await
            .expect("read")
            .expect("the child says so");
            assert_eq!(&said, b"child\n");
            running.kill_tree();
            ended(&mut running).await;
            out = rest;
        }
        let mut said = String::new();
        out.read_to_string(&mut said).expect("read");
        match target {
            Target::Tree => assert!(said.contains("main"), "{said}"),
            Target::Main => assert_eq!(said, "main\n"),
            Target::Others => assert!(!said.contains("main"), "{said}"),
        }
    }
}

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    let world = world();
    let bomb = "my $n = 0; while ($n < 400) { my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } $n++ } print $n";
    let control = world.run(world.plan(&["perl", "-e", bomb])).await.ok();
    assert_eq!(control, "400", "control: without the limit the bomb goes off");
    let mut plan = world.plan(&["perl", "-e", bomb]);
    plan.limits.pids = Some(20);
    let made: u32 = world.run(plan).await.ok().parse().expect("a number");
    // The first pass through the numbers goes to 300 plus the limit, whatever was handed out.
    assert!(made < 330, "{made} processes");
}

#[tokio::test]
async fn a_memory_bomb_is_bounded() {
    let world = world();
    let bomb = "my @held; for (1..64) { push @held, 'x' x (8 << 20) } print scalar @held";
    let mut plan = world.plan(&["perl", "-e", bomb]);
    plan.limits.memory = Some(128 << 20);
    let done = world.run(plan).await;
    assert_ne!(done.ended.exit, Exit::Code(0), "{}", done.out);
    assert_eq!(world.run(world.plan(&["perl", "-e", bomb])).await.ok(), "64", "control");
}

#[tokio::test]
async fn files_and_time_are_bounded() {
    let world = world();
    let mut plan = world.sh("head -c 2000000 /dev/zero > big");
    plan.limits.file_size = Some(1_000_000);
    assert_ne!(world.run(plan).await.ended.exit, Exit::Code(0));
    assert!(std::fs::metadata(world.path("big")).expect("there").len() <= 1_000_000);
    let mut plan = world.sh("while :; do :; done");
    plan.limits.cpu = Some(std::time::Duration::from_secs(1));
    let exit = world.run(plan).await.ended.exit;
    assert!(matches!(exit, Exit::Signal(_)), "{exit:?}");
}

#[tokio::test]
async fn big_output_comes_whole() {
    let world = world();
    let done = world.run(world.sh("head -c 20000000 /dev/zero | tr '\\0' x")).await;
    assert_eq!(done.out.len(), 20_000_000);
    assert_eq!(done.ended.exit, Exit::Code(0));
}
