//! The kernel's own doors: calls that no build needs, settings of the machine, terminals, cores.

use crate::arena::{CALLS, FILES, Full, NoNamespaces, NoPivot, arena, at, held, stopped};
use crate::world::text;

const EPERM: &[&str] = &["EPERM"];

#[tokio::test]
async fn calls_that_no_build_needs_are_denied() {
    // With arguments that change nothing outside.
    let calls: &[&[&str]] = &[
        &["io_uring_setup", "1", "0"],
        &["io_uring_enter", "-1", "0", "0", "0", "0"],
        &["io_uring_register", "-1", "0", "0", "0"],
        &["userfaultfd", "1"],
        &["bpf", "0", "0", "0"],
        &["perf_event_open", "0", "0", "-1", "-1", "0"],
        &["kexec_load", "0", "0", "0", "255"],
        &["kexec_file_load", "-1", "-1", "0", "0", "255"],
        &["init_module", "0", "0", "0"],
        &["finit_module", "-1", "0", "0"],
        &["delete_module", "0", "0"],
        &["keyctl", "0", "-3", "0"],
        &["add_key", "0", "0", "0", "0", "-3"],
        &["request_key", "0", "0", "0", "0"],
        &["kcmp", "0", "0", "0", "0", "0"],
        &["process_vm_writev", "1", "0", "0", "0", "0", "0"],
        &["fanotify_init", "-1", "0"],
        &["syslog", "10", "0", "0"],
        &["swapon", "0", "0"],
        &["sethostname", "0", "-1"],
        &["setns", "-1", "0"],
    ];
    for call in calls {
        // A kernel that lacks one answers ENOSYS outside, which counts as possible: a newer one has it.
        stopped("possible", &at(CALLS, EPERM), |_, _| call.iter().map(ToString::to_string).collect()).await;
    }
}

#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn the_other_doors_of_the_processor_are_closed() {
    for name in ["mount", "unshare", "io_uring_setup", "keyctl"] {
        stopped("x32", &at(CALLS, EPERM), |_, _| vec![name.to_owned()]).await;
    }
    let control = arena().control(&["int80"]);
    // Without the emulation of 32-bit programs there is no such door, and the processor says so.
    let open = text(&control.stdout).starts_with("reached:");
    assert!(open || !control.status.success(), "control: {control:?}");
    for level in CALLS {
        let done = arena().attack(*level, &["int80"]).await;
        assert!(matches!(done.ended.exit, portcullis_sandbox::hand::Exit::Signal(_)), "{level:?}: {}", done.out);
    }
}

#[tokio::test]
async fn settings_of_the_machine_cannot_be_written() {
    let settings = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
    ];
    // Not every kernel has all of them; every one has the first.
    assert!(std::path::Path::new(settings[0]).exists(), "{} is missing", settings[0]);
    for path in settings.into_iter().filter(|path| std::path::Path::new(path).exists()) {
        let levels: &[(_, &[&str])] = &[(Full, &["EROFS"]), (NoPivot, &["EACCES"]), (NoNamespaces, &["EACCES"])];
        stopped("setting", levels, |_, _| vec![path.to_owned()]).await;
    }
    let all = ["/sys/kernel/uevent_helper", "/sys/kernel/profiling", "/sys/power/state", "/sys/kernel/mm/ksm/run"];
    let sys = all.into_iter().find(|path| std::path::Path::new(path).exists()).expect("a setting in /sys");
    stopped("setting", crate::arena::NOT_THERE, |_, _| vec![sys.to_owned()]).await;
    stopped("list_folder", crate::arena::NOT_THERE, |_, _| vec!["/sys/fs/cgroup".to_owned()]).await;
}

#[tokio::test]
async fn no_terminal_can_be_typed_into() {
    let arena = arena();
    let control = arena.control(&["tiocsti"]);
    let said = text(&control.stdout);
    // Newer kernels have it switched off for all; root may still.
    assert!(said.starts_with("reached:") || said.contains("EIO"), "control: {said}");
    for level in CALLS {
        held(&arena.attack(*level, &["tiocsti"]).await, EPERM, &format!("{level:?}"));
        let terminal = arena.attack(*level, &["terminal"]).await;
        held(&terminal, &["ENOENT", "ENXIO", "EACCES"], &format!("{level:?}"));
    }
    // What would drive a terminal comes as bytes, to the letter, in the pipe and nowhere else.
    let escapes = "\\033]0;owned\\007\\033[2J\\033P+q\\033\\\\";
    let done = arena.world.run(arena.world.sh(&format!("printf '{escapes}'"))).await;
    assert_eq!(done.out, "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}P+q\u{1b}\\");
}

#[tokio::test]
async fn a_crash_leaves_no_core() {
    let arena = arena();
    // With a limit of none outside; a machine may pipe its cores away, which counts as well.
    arena.reached(&["crash"]);
    for level in FILES {
        held(&arena.attack(*level, &["crash"]).await, &["ENODATA"], &format!("{level:?}"));
    }
}
