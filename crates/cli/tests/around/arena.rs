//! One person's machine: a home, a configuration, a workspace, and the binary run as that person.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::common::Ran;

/// A user id that no account has.
const SOMEBODY: u32 = 54_321;

/// Who runs the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Root,
    OrdinaryUser,
}

/// Both people that every class is attacked as.
pub const EVERYBODY: [Who; 2] = [Who::Root, Who::OrdinaryUser];

pub struct Arena {
    folder: TempDir,
    pub who: Who,
}

impl Arena {
    /// A home at `home`, a workspace at `work`, both empty and owned by `who`.
    pub fn of(who: Who) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests need root, to become an ordinary user");
        let arena = Self { folder: tempfile::tempdir().expect("a folder"), who };
        arena.make_folder("");
        arena.make_folder("home");
        arena.make_folder("work");
        let program = arena.path("portcullis");
        if fs::hard_link(crate::common::binary(), &program).is_err() {
            // The build lies on another file system. `cp` copies instead of this process, because a child of another test
            // could inherit a writable handle of the copy, and the kernel refuses to run such a file.
            let copied = Command::new("cp").arg(crate::common::binary()).arg(&program).status();
            assert!(copied.expect("`cp` runs").success());
        }
        arena
    }

    pub fn path(&self, name: &str) -> PathBuf {
        let root = self.folder.path().canonicalize().expect("the folder exists");
        if name.is_empty() { root } else { root.join(name) }
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// The user's configuration file, with this text.
    pub fn configure(&self, text: &str) {
        self.write("home/.config/portcullis/config.toml", text);
    }

    /// A file beneath the arena, owned like everything in it.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let root = self.path("");
        let missing: Vec<PathBuf> =
            path.ancestors().skip(1).take_while(|folder| *folder != root && !folder.exists()).map(Into::into).collect();
        for folder in missing.iter().rev() {
            fs::create_dir(folder).expect("made");
            self.own(folder);
        }
        fs::write(&path, text).expect("written");
        self.own(&path);
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("read")
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The binary with these arguments, in the workspace, with nothing but `HOME` and `PATH` in its environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.as_this_person(&self.path("portcullis").display().to_string());
        command.args(args);
        command
    }

    /// Any program, run as this person in the workspace: for controls.
    pub fn as_this_person(&self, program: &str) -> Command {
        let mut command = match self.who {
            Who::Root => Command::new(program),
            Who::OrdinaryUser => {
                let id = SOMEBODY.to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", program]);
                command
            }
        };
        command.current_dir(self.workspace()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("it runs").into()
    }

    fn make_folder(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("opened to everybody");
        self.own(&path);
    }

    fn own(&self, path: &std::path::Path) {
        if self.who == Who::OrdinaryUser {
            std::os::unix::fs::chown(path, Some(SOMEBODY), Some(SOMEBODY)).expect("owned by the ordinary user");
        }
    }
}

#[test]
fn the_arena_runs_the_binary_as_both_people() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/a.txt", "hello\n");
        arena.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).says("hello");
        let id: Ran = arena.as_this_person("/usr/bin/id").arg("-u").output().expect("it runs").into();
        assert_eq!(id.out.trim() == "0", who == Who::Root);
    }
}
