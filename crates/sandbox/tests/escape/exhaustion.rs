//! Using up: processes, memory, disk, names, descriptors. Each bomb goes off where nothing bounds it.

use portcullis_sandbox::hand::{Exit, Tmp};

use crate::arena::{Full, NoNamespaces, NoPivot, arena, held};
use crate::world::text;

#[tokio::test]
async fn processes_run_out_before_the_machine_does() {
    let arena = arena();
    let control: u32 = text(&arena.control(&["forks", "500"]).stdout).trim().parse().expect("a number");
    assert_eq!(control, 500, "control");
    let mut plan = arena.at(Full, &["forks", "500"]);
    plan.limits.pids = Some(40);
    let done = arena.run(Full, plan).await;
    let made: u32 = done.out.trim().parse().expect("a number");
    // `pid_max` of a namespace cannot be lower than 300.
    assert!(made <= 340, "{made}");
}

#[tokio::test]
async fn memory_runs_out_before_the_machine_does() {
    let arena = arena();
    arena.reached(&["fill_memory", "256"]);
    for level in [Full, NoPivot, NoNamespaces] {
        let mut plan = arena.at(level, &["fill_memory", "256"]);
        plan.limits.memory = Some(128 << 20);
        let done = arena.run(level, plan).await;
        if done.ended.exit == Exit::Code(3) {
            held(&done, &["ENOMEM"], &format!("{level:?}"));
        } else {
            assert!(matches!(done.ended.exit, Exit::Signal(_)), "{level:?}: {:?} {}", done.ended.exit, done.out);
        }
    }
    // And if the machine does run out, the command goes first.
    for level in [Full, NoPivot, NoNamespaces] {
        let mut plan = arena.world.plan(&["cat", "/proc/self/oom_score_adj"]);
        plan.minimum = level;
        plan.at_most = level;
        assert_eq!(arena.run(level, plan).await.out.trim(), "1000", "{level:?}");
    }
}

#[tokio::test]
async fn memory_that_looks_like_a_disk_is_bounded_in_bytes_and_in_names() {
    let arena = arena();
    let folder = arena.outside.path().display().to_string();
    arena.reached(&["fill_file", &format!("{folder}/big"), "16"]);
    arena.reached(&["fill_names", &folder, "9000"]);
    for place in ["/tmp", "/dev/shm", "/home/me"] {
        let mut plan = arena.at(Full, &["fill_file", &format!("{place}/big"), "80"]);
        plan.view.tmp = Tmp::Memory { bytes: 8 << 20 };
        plan.view.home = Some("/home/me".into());
        held(&arena.run(Full, plan).await, &["ENOSPC"], place);
        let mut plan = arena.at(Full, &["fill_names", place, "40000"]);
        plan.view.tmp = Tmp::Memory { bytes: 8 << 20 };
        plan.view.home = Some("/home/me".into());
        held(&arena.run(Full, plan).await, &["ENOSPC"], place);
    }
}

#[tokio::test]
async fn one_file_cannot_fill_the_disk_of_the_workspace() {
    let arena = arena();
    arena.reached(&["fill_file", "big", "8"]);
    for level in [Full, NoPivot, NoNamespaces] {
        std::fs::remove_file(arena.world.path("big")).expect("removed");
        let mut plan = arena.at(level, &["fill_file", "big", "8"]);
        plan.limits.file_size = Some(4 << 20);
        held(&arena.run(level, plan).await, &["EFBIG"], &format!("{level:?}"));
        let size = std::fs::metadata(arena.world.path("big")).expect("there").len();
        assert!(size <= 4 << 20, "{level:?}: {size}");
    }
}

#[tokio::test]
async fn open_files_run_out() {
    let arena = arena();
    arena.reached(&["open_many", "200"]);
    let mut plan = arena.at(Full, &["open_many", "200"]);
    plan.limits.open_files = Some(64);
    held(&arena.run(Full, plan).await, &["EMFILE"], "open files");
}
