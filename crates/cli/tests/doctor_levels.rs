//! What `doctor` says of the isolation agrees with a look from inside, on three setups: root, an ordinary user, and where
//! nobody may make user namespaces.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::binary;
use serde_json::{Value, json};
use tempfile::TempDir;

/// An id that no account has.
const SOMEBODY: u32 = 54_321;

/// A folder that everybody may use, with the program in it: the one of the build may be root's own.
struct Setup {
    folder: TempDir,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    Root,
    Somebody,
    NoUserNamespaces,
}

impl Setup {
    fn new(how: How) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests need root, to become somebody else");
        let folder = tempfile::tempdir().expect("a folder");
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("opened");
        open(folder.path());
        for name in ["work", "home"] {
            fs::create_dir(folder.path().join(name)).expect("made");
            open(&folder.path().join(name));
        }
        fs::copy(binary(), folder.path().join("portcullis")).expect("copied");
        Self { folder, how }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        let id = SOMEBODY.to_string();
        let program = self.path("portcullis").display().to_string();
        let mut command = match self.how {
            How::Root => Command::new(&program),
            How::Somebody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", &program]);
                command
            }
            How::NoUserNamespaces => {
                // In a user namespace in which nobody may make another, as an ordinary user of it. The map is written by a
                // child that stayed outside: only root there may map two users.
                let script = format!(
                    "pipe(my $r, my $w); pipe(my $r2, my $w2); my $me = $$; my $pid = fork; \
                     if (!$pid) {{ close $w; <$r>; for my $m ('uid_map', 'gid_map') {{ open(my $f, '>', \"/proc/$me/$m\") or \
                     die \"$m: $!\"; syswrite $f, \"0 0 1\\n{SOMEBODY} {SOMEBODY} 1\\n\"; close $f; }} syswrite $w2, \"go\\n\"; \
                     exit 0 }} syscall(272, 0x10000000) == 0 or die \"unshare: $!\"; syswrite $w, \"go\\n\"; <$r2>; waitpid $pid, 0; \
                     open(my $f, '>', '/proc/sys/user/max_user_namespaces') or die $!; print $f 0; close $f or die $!; \
                     $) = '{SOMEBODY} {SOMEBODY}'; $( = {SOMEBODY}; $< = $> = {SOMEBODY}; die $! if $> != {SOMEBODY}; \
                     exec @ARGV"
                );
                let mut command = Command::new("perl");
                command.args(["-e", &script, &program]);
                command
            }
        };
        command.args(words).current_dir(self.path("work")).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("PORTCULLIS_HOME", self.path("home/data")).env("XDG_CONFIG_HOME", self.path("home/config"));
        command.env("HOME", self.path("home")).stdin(Stdio::null());
        command.output().expect("this test needs `setpriv` and `perl`")
    }

    fn doctor(&self, more: &[&str]) -> Value {
        let ran = self.run(&[&["doctor", "--json"], more].concat());
        let text = String::from_utf8_lossy(&ran.stdout);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&ran.stderr)))
    }

    /// What a command finds about itself: its namespaces, its filters, what it can write.
    fn look_inside(&self, level: &str) -> (String, String) {
        let script = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; \
                      for n in user mnt pid net ipc uts; do echo \"$n $(readlink /proc/self/ns/$n)\"; done; \
                      touch /usr/x /etc/x /x 2>/dev/null && echo WRITES; ls -d /workspace 2>/dev/null; touch made; \
                      cat ~/secret 2>/dev/null; true";
        let input = json!({ "command": script }).to_string();
        let ran = self.run(&["--sandbox", level, "--approvals", "allow", "call", "shell_run", &input]);
        (String::from_utf8_lossy(&ran.stdout).into_owned(), String::from_utf8_lossy(&ran.stderr).into_owned())
    }
}

/// The namespaces of this very process.
fn ours(name: &str) -> String {
    let link = fs::read_link(format!("/proc/self/ns/{name}")).expect("a namespace");
    format!("{name} {}", link.display())
}

fn agrees(setup: &Setup, wanted: &str) {
    let said = setup.doctor(&["--sandbox", "none"]);
    assert_eq!(said["isolation"]["level"], wanted, "{said}");
    assert_eq!(said["isolation"]["runs"], true);
    fs::write(setup.path("home/secret"), "CANARY").expect("written");
    let (out, err) = setup.look_inside(wanted);
    assert!(out.contains("Seccomp:\t2") && out.contains("NoNewPrivs:\t1"), "{out} {err}");
    assert!(!out.contains("WRITES") && !out.contains("CANARY"), "{out}");
    assert!(setup.path("work/made").exists(), "{out} {err}");
    let own_namespaces = ["pid", "net", "ipc", "uts", "mnt"].iter().all(|name| !out.contains(&ours(name)));
    let shared: Vec<&Value> = said["isolation"]["missing"].as_array().expect("a list").iter().collect();
    let has_namespaces = !shared.iter().any(|missing| missing["layer"] == "namespaces");
    assert_eq!(own_namespaces, has_namespaces, "{out}\n{said}");
    assert_eq!(out.contains("/workspace\n"), wanted == "full", "{out}");
    for missing in shared {
        assert!(!missing["why"].as_str().unwrap_or_default().is_empty(), "{missing}");
        assert!(!missing["raise"].as_str().unwrap_or_default().is_empty(), "{missing}");
    }
}

#[test]
fn doctor_agrees_with_a_look_from_inside_as_root() {
    agrees(&Setup::new(How::Root), "full");
}

#[test]
fn doctor_agrees_with_a_look_from_inside_as_an_ordinary_user() {
    agrees(&Setup::new(How::Somebody), "full");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn doctor_agrees_with_a_look_from_inside_without_user_namespaces() {
    agrees(&Setup::new(How::NoUserNamespaces), "no_namespaces");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn below_the_minimum_nothing_runs_and_what_cannot_be_hidden_is_refused_by_its_rule() {
    let setup = Setup::new(How::NoUserNamespaces);
    // By default only the full level will do.
    let said = setup.doctor(&[]);
    assert_eq!((&said["isolation"]["runs"], &said["isolation"]["minimum"]), (&json!(false), &json!("full")));
    let call = |more: &[&str]| {
        let input = json!({"command": "touch ran"}).to_string();
        let ran = setup.run(&[more, &["--approvals", "allow", "call", "shell_run", &input]].concat());
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, err) = call(&[]);
    assert!(code == Some(1) && err.contains("sandbox_unavailable") && err.contains("`full`"), "{err}");
    assert!(!setup.path("work/ran").exists());

    // A rule with a match cannot be kept at this level; without one it can.
    fs::create_dir_all(setup.path("home/config/portcullis")).expect("made");
    let rule = "[sandbox]\nminimum = \"no_namespaces\"\n[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n";
    fs::write(setup.path("home/config/portcullis/config.toml"), rule).expect("written");
    fs::write(setup.path("work/.env"), "CANARY").expect("written");
    let (code, err) = call(&[]);
    assert!(code == Some(1) && err.contains("sandbox_unavailable"), "{err}");
    assert!(err.contains("`no-env`") && err.contains("`no_namespaces`"), "{err}");
    assert!(!setup.path("work/ran").exists());
    fs::remove_file(setup.path("work/.env")).expect("removed");
    let (code, err) = call(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(setup.path("work/ran").exists());
}
