//! The launcher that stands by: used once, ended with us, and replaced if it is gone.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portcullis_sandbox::hand::{Exit, Launcher};
use rustix::process::{Pid, Signal};

use crate::world::{HELPER, World, ended, until};

/// Set in a process that is to be killed while one stands by.
const CHILD: &str = "PORTCULLIS_TEST_STANDBY";

/// A launcher of a name that no other test has.
fn world() -> (World, PathBuf) {
    let tree = tempfile::tempdir().expect("a folder");
    let program = std::env::var_os(CHILD).map(PathBuf::from).unwrap_or_else(|| {
        let program = tree.path().join("launcher");
        std::fs::copy(HELPER, &program).expect("a copy of the launcher");
        program
    });
    (World { tree, launcher: Launcher::helper(&program) }, program)
}

/// Processes of this program.
fn launchers(program: &Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let ours = all.filter(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program));
    ours.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Launches until one stands by: other tests of this process may have theirs stand in its place.
async fn standing(world: &World, program: &Path) -> i32 {
    loop {
        assert_eq!(world.run(world.sh("true")).await.ended.exit, Exit::Code(0));
        for _ in 0..200 {
            if let [one] = launchers(program)[..] {
                return one;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn h17_one_that_stands_by_is_used_once_and_one_that_was_killed_is_not_missed() {
    let (world, program) = world();
    let first = standing(&world, &program).await;
    let mut running = world.launch(world.sh("sleep 60")).await.expect("launched");
    assert!(launchers(&program).contains(&first), "it took the orders");
    running.kill_tree();
    ended(&mut running).await;
    until("it is gone with its command", || !launchers(&program).contains(&first)).await;
    let next = standing(&world, &program).await;
    assert_ne!(next, first);
    let pid = Pid::from_raw(next).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    until("it is dead", || !launchers(&program).contains(&next)).await;
    assert_eq!(world.run(world.sh("exit 7")).await.ended.exit, Exit::Code(7), "another is started in its place");
}

/// Not a test of its own: the process that the next one kills.
#[tokio::test]
async fn child_in_which_one_stands_by() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (world, program) = world();
    standing(&world, &program).await;
    println!("\nstands");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn h17_kill_9_of_portcullis_ends_the_one_that_stands_by() {
    let (_kept, program) = world();
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "standby::child_in_which_one_stands_by", "--nocapture"])
        .env(CHILD, &program)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "stands"), "one stands by");
    assert_eq!(launchers(&program).len(), 1);
    child.kill().expect("kill -9");
    child.wait().expect("reaped");
    until("it is gone", || launchers(&program).is_empty()).await;
}
