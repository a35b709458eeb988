//! More rights than one has: programs that lend them, devices, other users.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::arena::{CALLS, at, stopped};
use crate::world::{HELPER, text};

const EPERM: &[&str] = &["EPERM"];

/// Such a file would outlive the call and, where we are root, make anybody root.
#[tokio::test]
async fn no_program_that_lends_rights_can_be_made() {
    for door in ["chmod", "fchmod", "fchmodat2", "open", "tmpfile", "mknod", "copy"] {
        stopped("make_setuid", &at(CALLS, EPERM), |arena, _| {
            let file = arena.world.write("setuid", "x");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o4755)).expect("set");
            vec![door.to_owned()]
        })
        .await;
    }
    stopped("make_setuid", &at(CALLS, &["ENOSYS"]), |_, _| vec!["openat2".to_owned()]).await;
    stopped("make_capable", &at(CALLS, EPERM), |_, _| Vec::new()).await;
}

#[tokio::test]
async fn no_device_can_be_made_and_nobody_else_become() {
    // The disk of the machine, and its memory, as an old attack wants them.
    for words in [["c", "1", "3"], ["b", "7", "0"]] {
        let made = crate::arena::arena().control(&["device", words[0], words[1], words[2]]);
        let said = text(&made.stdout);
        // There may be no such disk; that it could be made is the control.
        assert!(said.starts_with("reached:") || said.contains("ENXIO") || said.contains("ENODEV"), "control: {said}");
        for level in CALLS {
            let arena = crate::arena::arena();
            let done = arena.attack(*level, &["device", words[0], words[1], words[2]]).await;
            crate::arena::held(&done, EPERM, &format!("{words:?} at {level:?}"));
        }
    }
    stopped("become", &at(CALLS, EPERM), |_, _| vec!["65534".to_owned()]).await;
}

/// An id that no account has.
const SOMEBODY: &str = "54322";

fn somebody(folder: &Path, words: &[&str]) -> Output {
    Command::new("setpriv")
        .args(["--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups"])
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("this test needs `setpriv`")
}

/// A workspace of an ordinary user with programs in it that lend root's rights.
#[test]
fn programs_that_lend_rights_lend_none_inside() {
    assert!(rustix::process::geteuid().is_root(), "this test needs root, to make such programs");
    let folder = tempfile::tempdir().expect("a folder");
    let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    open(folder.path(), 0o777);
    std::fs::copy(HELPER, folder.path().join("portcullis-hand")).expect("copied");
    // Says who it is; and one that may read every file.
    std::fs::copy("/usr/bin/id", folder.path().join("setuid")).expect("copied");
    open(&folder.path().join("setuid"), 0o4755);
    std::fs::copy("/usr/bin/cat", folder.path().join("capable")).expect("copied");
    let mut capability = vec![1, 0, 0, 2];
    capability.extend([2_u32, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    rustix::fs::setxattr(
        folder.path().join("capable"),
        "security.capability",
        &capability,
        rustix::fs::XattrFlags::empty(),
    )
    .expect("a file system with file capabilities");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "SECRET").expect("written");
    open(&secret, 0o600);

    assert!(text(&somebody(folder.path(), &["./setuid", "-u"]).stdout).starts_with('0'), "control");
    assert_eq!(text(&somebody(folder.path(), &["./capable", "secret"]).stdout), "SECRET", "control");
    for level in ["full", "no_pivot", "no_namespaces", "seccomp_only"] {
        let run = |words: &[&str]| {
            let run = ["./portcullis-hand", "run", "--at-least", level, "--at-most", level, "--"];
            somebody(folder.path(), &[&run, words].concat())
        };
        let id = run(&["./setuid", "-u"]);
        assert_eq!(text(&id.stdout).trim(), SOMEBODY, "{level}: {}", text(&id.stderr));
        let read = run(&["./capable", "secret"]);
        assert!(text(&read.stdout).is_empty(), "{level}");
        assert_ne!(read.status.code(), Some(0), "{level}");
    }
}

/// Root's own files by their mode alone: without capabilities root is a user like any other.
#[tokio::test]
async fn root_has_no_more_rights_than_a_user() {
    let words = |arena: &crate::arena::Arena, _| {
        let file = arena.world.write("theirs", "SECRET");
        std::os::unix::fs::chown(&file, Some(54_322), Some(54_322)).expect("given away");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("closed");
        vec!["theirs".to_owned()]
    };
    stopped("read", &at(CALLS, &["EACCES"]), words).await;
    stopped("can_read", crate::arena::NOT_THERE, |_, _| vec!["/etc/shadow".to_owned()]).await;
}
