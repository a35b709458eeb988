//! Where nobody may make user namespaces: lines run with Landlock alone, from the host's own folder, and show no host
//! path all the same.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::read_only_hand::world::PORTCULLIS;

/// An id that no account has.
const SOMEBODY: u32 = 54_321;

/// A workspace of an ordinary user in a user namespace in which nobody may make another.
#[cfg(target_arch = "x86_64")]
fn call(folder: &Path, input: &Value) -> Output {
    // The map is written from outside: only root there may map two users.
    let script = format!(
        "$| = 1; syscall(272, 0x10000000) == 0 or die \"unshare: $!\"; print \"go\\n\"; <STDIN>; \
         open(my $f, '>', '/proc/sys/user/max_user_namespaces') or die $!; print $f 0; close $f or die $!; \
         $) = '{SOMEBODY} {SOMEBODY}'; $( = {SOMEBODY}; $< = $> = {SOMEBODY}; die $! if $> != {SOMEBODY}; exec @ARGV"
    );
    let mut child = Command::new("perl")
        .args([
            "-e",
            &script,
            "../portcullis",
            "call",
            "bash",
            &input.to_string(),
            "--json",
            "--sandbox",
            "no_namespaces",
        ])
        .current_dir(folder.join("work"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", folder.join("home"))
        .env("PORTCULLIS_HOME", folder.join("home/data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs `perl`");
    let mut go = [0; 3];
    child.stdout.as_mut().expect("piped").read_exact(&mut go).expect("a user namespace");
    for map in ["uid_map", "gid_map"] {
        let text = format!("0 0 1\n{SOMEBODY} {SOMEBODY} 1\n");
        fs::write(format!("/proc/{}/{map}", child.id()), text).expect("mapped");
    }
    child.stdin.take().expect("piped").write_all(b"\n").expect("told");
    child.wait_with_output().expect("ended")
}

#[test]
#[cfg(target_arch = "x86_64")]
fn check34_lines_run_below_full_and_name_no_host_path() {
    assert!(rustix::process::geteuid().is_root(), "this test needs root, to become somebody else");
    let folder = tempfile::tempdir().expect("a folder");
    let everybody = fs::Permissions::from_mode(0o777);
    for name in ["", "work", "work/src", "home"] {
        fs::create_dir_all(folder.path().join(name)).expect("made");
        fs::set_permissions(folder.path().join(name), everybody.clone()).expect("opened");
    }
    fs::copy(PORTCULLIS, folder.path().join("portcullis")).expect("copied");
    let work = folder.path().join("work");
    for (name, text) in [("a.txt", "alpha\n"), ("src/b.txt", "beta\n")] {
        fs::write(work.join(name), text).expect("written");
    }
    fs::write(folder.path().join("outside"), "TOP-SECRET-7").expect("written");
    symlink(folder.path().join("outside"), work.join("link")).expect("a link");
    let host = folder.path().canonicalize().expect("there");
    let host = host.to_str().expect("text");
    for (line, wanted) in [
        ("cat a.txt | tr a-z A-Z; cd src && cat b.txt ../a.txt", "ALPHA\nbeta\nalpha\n"),
        ("cat /workspace/src/b.txt", "beta\n"),
        ("cd src; cat /workspace/a.txt", "alpha\n"),
        ("pwd; realpath src a.txt", "/workspace\n/workspace/src\n/workspace/a.txt\n"),
        ("grep -r e src", "src/b.txt:beta\n"),
        ("env | grep WORKSPACE_CWD", "PORTCULLIS_WORKSPACE_CWD=/workspace\n"),
        ("cat *.txt src/*", "alpha\nbeta\n"),
        ("cat < /workspace/a.txt", "alpha\n"),
    ] {
        let output = call(folder.path(), &serde_json::json!({"command": line}));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let seen: Value = serde_json::from_str(&text).unwrap_or_else(|_| {
            panic!("{line}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        });
        let shown = seen.to_string();
        assert!(shown.contains(&serde_json::json!(wanted).to_string()), "{line}: {seen:#}");
        assert!(!shown.contains(host), "{line} shows the host: {seen:#}");
    }
    for line in
        ["cat link", "cat ../outside", "cat /etc/passwd", "grep -R TOP .", "df -h .", "cat /workspace/../outside"]
    {
        let output = call(folder.path(), &serde_json::json!({"command": line}));
        assert!(!output.status.success(), "{line}");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!text.contains("TOP-SECRET-7") && !text.contains(host), "{line}: {text}");
    }
    assert!(!work.join("tmp").exists() && fs::read_dir(&work).expect("listed").count() == 3, "nothing was made");
}
