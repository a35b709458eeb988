//! The real binary as somebody, on a machine that lacks something.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// An id that no account has.
const SOMEBODY: u32 = 54_321;

const DENY: &str = include_str!("deny.py");
const UNSHARE: u32 = 272;
const PIVOT_ROOT: u32 = 155;
const SECCOMP: u32 = 317;
const LANDLOCK: u32 = 444;

pub const LEVELS: [&str; 5] = ["full", "no_pivot", "no_namespaces", "seccomp_only", "none"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Root,
    Somebody,
    NoUserNamespaces,
}

impl How {
    /// The levels that it can reach, the best first.
    pub fn levels(self) -> &'static [&'static str] {
        match self {
            Self::Root | Self::Somebody => &LEVELS,
            Self::NoUserNamespaces => &LEVELS[2..],
        }
    }

    /// The system calls without which it reaches this level and no better one.
    fn without(self, level: &str) -> Vec<u32> {
        let mut calls = match level {
            "full" => vec![],
            "no_pivot" => vec![PIVOT_ROOT],
            "no_namespaces" => vec![UNSHARE],
            "seccomp_only" => vec![UNSHARE, LANDLOCK],
            "none" => vec![UNSHARE, LANDLOCK, SECCOMP],
            other => panic!("{other} is no level"),
        };
        if self == Self::NoUserNamespaces {
            // It makes one user namespace itself.
            calls.retain(|call| *call != UNSHARE);
        }
        calls
    }
}

/// A folder that everybody may use, with the program in it: the one of the build may be root's own.
pub struct Setup {
    folder: TempDir,
    pub how: How,
    without: Vec<u32>,
}

impl Setup {
    /// One that reaches exactly this level.
    pub fn at(how: How, level: &str) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests need root, to become somebody else");
        let folder = tempfile::tempdir().expect("a folder");
        let setup = Self { folder, how, without: how.without(level) };
        ["", "work", "home", "outside"].into_iter().for_each(|name| setup.folder(name));
        let program = setup.path("portcullis");
        if fs::hard_link(env!("CARGO_BIN_EXE_portcullis"), &program).is_err() {
            // On another file system. Not by this process: a child of another test could hold the file open for writing,
            // and the kernel does not run such a one.
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_portcullis")).arg(&program).status();
            assert!(copied.expect("this test needs `cp`").success());
        }
        fs::write(setup.path("deny.py"), DENY).expect("written");
        setup
    }

    /// One that everybody may use.
    pub fn folder(&self, name: &str) {
        fs::create_dir_all(self.path(name)).expect("made");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o777)).expect("opened");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Portcullis with these words.
    pub fn run(&self, words: &[&str]) -> Output {
        let program = self.path("portcullis").display().to_string();
        self.as_somebody(&[&[program.as_str()], words].concat())
    }

    /// Any program as Portcullis would be run.
    pub fn as_somebody(&self, argv: &[&str]) -> Output {
        let id = SOMEBODY.to_string();
        let mut words: Vec<String> = match self.how {
            How::Root => Vec::new(),
            How::Somebody => {
                let words = ["/usr/bin/setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
                words.map(str::to_owned).to_vec()
            }
            // In a user namespace in which nobody may make another, as an ordinary user of it. The map is written by a
            // child that stayed outside: only root there may map two users.
            How::NoUserNamespaces => {
                let script = format!(
                    "pipe(my $r, my $w); pipe(my $r2, my $w2); my $me = $$; my $pid = fork; \
                     if (!$pid) {{ close $w; <$r>; for my $m ('uid_map', 'gid_map') {{ open(my $f, '>', \"/proc/$me/$m\") or \
                     die \"$m: $!\"; syswrite $f, \"0 0 1\\n{SOMEBODY} {SOMEBODY} 1\\n\"; close $f; }} syswrite $w2, \"go\\n\"; \
                     exit 0 }} syscall(272, 0x10000000) == 0 or die \"unshare: $!\"; syswrite $w, \"go\\n\"; <$r2>; waitpid $pid, 0; \
                     open(my $f, '>', '/proc/sys/user/max_user_namespaces') or die $!; print $f 0; close $f or die $!; \
                     $) = '{SOMEBODY} {SOMEBODY}'; $( = {SOMEBODY}; $< = $> = {SOMEBODY}; die $! if $> != {SOMEBODY}; \
                     exec @ARGV"
                );
                ["/usr/bin/perl", "-e", &script].map(str::to_owned).to_vec()
            }
        };
        words.extend(argv.iter().map(|word| (*word).to_owned()));
        let calls: Vec<String> = self.without.iter().map(u32::to_string).collect();
        let mut command = Command::new("/usr/bin/python3");
        command.arg("-I").arg(self.path("deny.py")).arg(calls.join(",")).args(words);
        command.current_dir(self.path("work")).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("PORTCULLIS_HOME", self.path("home/data")).env("XDG_CONFIG_HOME", self.path("home/config"));
        command.env("HOME", self.path("home")).stdin(Stdio::null());
        command.output().expect("this test needs `python3`, `setpriv` and `perl`")
    }

    pub fn doctor(&self, more: &[&str]) -> Value {
        let ran = self.run(&[&["doctor", "--json"], more].concat());
        let text = String::from_utf8_lossy(&ran.stdout);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&ran.stderr)))
    }

    /// A call that nobody is asked about, at this least level: exit code and both streams.
    pub fn call(&self, minimum: &str, tool: &str, input: &Value) -> (Option<i32>, String, String) {
        let ran = self.run(&["--sandbox", minimum, "--approvals", "allow", "call", tool, &input.to_string()]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    }
}
