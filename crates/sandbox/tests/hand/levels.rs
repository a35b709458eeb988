//! The levels on three setups: root, an ordinary user, and nobody may make user namespaces.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use portcullis_base::IsolationLevel;
use portcullis_sandbox::hand::{Guard, LaunchError, Launcher, Layer, OnUnheld, Plan, Unheld};

use crate::world::{HELPER, alive, mark, text, until, world};

/// An id that no account has.
const SOMEBODY: u32 = 54_321;

/// A folder that everybody may use, with the helper in it: the one of the build may be root's own.
fn open_folder() -> tempfile::TempDir {
    assert!(rustix::process::geteuid().is_root(), "these tests need root, to become somebody else");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("opened");
    std::fs::copy(HELPER, folder.path().join("portcullis-hand")).expect("copied");
    folder
}

fn setpriv(folder: &Path, words: &[&str]) -> Output {
    let id = SOMEBODY.to_string();
    Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "./portcullis-hand"])
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("this test needs `setpriv`")
}

/// In a user namespace in which nobody may make another, as an ordinary user of it.
#[cfg(target_arch = "x86_64")]
fn without_user_namespaces(folder: &Path, words: &[&str]) -> Output {
    start_without_user_namespaces(folder, words).wait_with_output().expect("ended")
}

#[cfg(target_arch = "x86_64")]
fn start_without_user_namespaces(folder: &Path, words: &[&str]) -> Child {
    // The map is written from outside: only root there may map two users.
    let script = format!(
        "$| = 1; syscall(272, 0x10000000) == 0 or die \"unshare: $!\"; print \"go\\n\"; <STDIN>; \
         open(my $f, '>', '/proc/sys/user/max_user_namespaces') or die $!; print $f 0; close $f or die $!; \
         $) = '{SOMEBODY} {SOMEBODY}'; $( = {SOMEBODY}; $< = $> = {SOMEBODY}; die $! if $> != {SOMEBODY}; exec @ARGV"
    );
    let mut child = Command::new("perl")
        .args(["-e", &script, "./portcullis-hand"])
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs `perl`");
    let mut go = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut go).expect("a user namespace");
    for map in ["uid_map", "gid_map"] {
        let text = format!("0 0 1\n{SOMEBODY} {SOMEBODY} 1\n");
        std::fs::write(format!("/proc/{}/{map}", child.id()), text).expect("mapped");
    }
    child.stdin.take().expect("piped").write_all(b"\n").expect("told");
    child
}

#[test]
fn an_ordinary_user_gets_the_full_level() {
    let folder = open_folder();
    let posture = text(&setpriv(folder.path(), &["posture"]).stdout);
    assert!(posture.starts_with("level full\n"), "{posture}");
    let ran = setpriv(
        folder.path(),
        &["run", "--", "sh", "-c", "id -u; touch mine; touch /usr/x; grep CapEff /proc/self/status"],
    );
    let out = text(&ran.stdout);
    assert!(
        out.contains(&SOMEBODY.to_string()) && out.contains("CapEff:\t0000000000000000"),
        "{out}{}",
        text(&ran.stderr)
    );
    let mine = std::fs::metadata(folder.path().join("mine")).expect("made");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&mine), SOMEBODY);
    assert!(!Path::new("/usr/x").exists());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_user_namespaces_the_level_is_told_and_below_the_minimum_nothing_runs() {
    let folder = open_folder();
    let posture = text(&without_user_namespaces(folder.path(), &["posture"]).stdout);
    assert!(posture.starts_with("level no_namespaces\n"), "{posture}");
    assert!(posture.contains("user.max_user_namespaces"), "it says what would raise it: {posture}");

    let refused = without_user_namespaces(folder.path(), &["run", "--", "touch", "ran"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("below the required `full`"), "{}", text(&refused.stderr));
    assert!(!folder.path().join("ran").exists(), "nothing ran");
}

#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn without_user_namespaces_landlock_and_seccomp_still_hold() {
    let folder = open_folder();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o777)).expect("opened");
    std::fs::write(outside.path().join("secret"), "SECRET").expect("written");
    let (mark, outside) = (mark(), outside.path().display());
    let script = format!(
        "echo in > made; cat {outside}/secret; echo x > {outside}/attack; ls /root; \
         perl -e 'use Socket; print socket(my $s, AF_INET, SOCK_STREAM, 0) ? \"NET\" : \"no net\\n\"'; \
         perl -e 'print kill(0, getppid()) ? \"\" : \"\"; print syscall(101, 0, 0, 0, 0) < 0 ? \"no ptrace\\n\" : \"PTRACE\"'; \
         grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; (setsid sleep {mark} >/dev/null 2>&1 &)"
    );
    let ran =
        without_user_namespaces(folder.path(), &["run", "--at-least", "no_namespaces", "--", "sh", "-c", &script]);
    let out = text(&ran.stdout);
    assert!(!out.contains("SECRET") && !out.contains("NET") && !out.contains("PTRACE"), "{out}");
    assert!(
        out.contains("no net")
            && out.contains("no ptrace")
            && out.contains("NoNewPrivs:\t1")
            && out.contains("Seccomp:\t2"),
        "{out}{}",
        text(&ran.stderr)
    );
    assert!(folder.path().join("made").exists() && !Path::new(&format!("{outside}/attack")).exists());
    until("the daemon is gone", || !alive(&mark)).await;
}

#[tokio::test]
async fn h08_a_program_that_did_not_call_init_says_so() {
    let launcher = Launcher::this_program();
    let error = launcher.launch(Plan::new(vec!["true".into()])).await.expect_err("not launched");
    assert!(matches!(&error, LaunchError::Unavailable(why) if why.contains("hand::init()")), "{error}");
    assert_eq!(launcher.posture().level, IsolationLevel::None);
    assert_eq!(launcher.posture().missing[0].layer, Layer::Launcher);
}

#[tokio::test]
async fn a_helper_that_is_no_launcher_is_found_out() {
    let error = Launcher::helper("/bin/true").launch(Plan::new(vec!["true".into()])).await.expect_err("not launched");
    assert!(matches!(&error, LaunchError::Unavailable(why) if why.contains("init()")), "{error}");
}

#[tokio::test]
async fn a_plan_that_makes_no_sense_is_refused() {
    let world = world();
    let mut relative = world.sh("true");
    relative.view.masks = vec!["/workspace/../etc".into()];
    let mut odd = world.sh("true");
    odd.env.push(("A=B".into(), "c".into()));
    for plan in [relative, odd, Plan::new(Vec::new())] {
        let error = world.launch(plan).await.expect_err("not launched");
        assert!(matches!(&error, LaunchError::Plan(_)), "{error}");
    }
    // Used where a level cannot hold something; here the level holds it.
    let mut plan = world.sh("true");
    plan.view.guards = vec![Guard { place: "/workspace/.git".into(), hold: OnUnheld::IfPossible }];
    assert_eq!(world.launch(plan).await.expect("launched").unheld(), Vec::<Unheld>::new());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn check38_where_nothing_can_be_masked_a_command_with_a_mask_is_refused() {
    let folder = open_folder();
    std::fs::write(folder.path().join(".env"), "SECRET").expect("written");
    let run = |words: &[&str]| {
        let all = [&["run", "--at-least", "none"], words, &["--", "sh", "-c", "touch ran; cat .env"]].concat();
        without_user_namespaces(folder.path(), &all)
    };
    let refused = run(&["--mask", "/workspace/.env"]);
    assert_eq!(refused.status.code(), Some(125), "{}", text(&refused.stdout));
    let error = text(&refused.stderr);
    assert!(
        error.contains("/workspace/.env") && error.contains("`no_namespaces`"),
        "it names place and level: {error}"
    );
    assert!(!folder.path().join("ran").exists(), "nothing ran");
    assert_eq!(text(&run(&[]).stdout), "SECRET", "control: without the mask it runs");
}

#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn without_namespaces_kill_9_of_portcullis_ends_the_tree_too() {
    let folder = open_folder();
    let mark = mark();
    let script = format!("(setsid sh -c 'sleep {mark} & sleep {mark}' &) ; sleep {mark}");
    let words = ["run", "--at-least", "no_namespaces", "--", "sh", "-c", &script];
    let mut child = start_without_user_namespaces(folder.path(), &words);
    until("the daemon runs", || alive(&format!("sleep\0{mark}"))).await;
    child.kill().expect("kill -9");
    child.wait().expect("reaped");
    until("everyone is gone", || !alive(&mark)).await;
}
