//! A workspace, and a host around it that must stay as it was.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use portcullis_base::Digest;
use portcullis_sandbox::{Expect, FileError, MountTable, ResolvedPlace, TreeOwner, WritePlan, WrittenFile, write_file};

pub struct World {
    _root: tempfile::TempDir,
    /// The workspace on the host.
    pub ws: PathBuf,
    /// A directory beside it, with `secret.txt`.
    pub outside: PathBuf,
    pub table: MountTable,
}

pub const SECRET: &[u8] = b"outside the workspace\n";

pub fn world() -> World {
    world_of(TreeOwner::PersonsTree)
}

pub fn world_of(owner: TreeOwner) -> World {
    let root = tempfile::tempdir().expect("a temporary directory");
    let (ws, outside) = (root.path().join("ws"), root.path().join("outside"));
    fs::create_dir(&ws).expect("workspace");
    fs::create_dir(&outside).expect("outside");
    fs::write(outside.join("secret.txt"), SECRET).expect("secret");
    let table = MountTable::workspace(&ws, owner).expect("a mount");
    World { _root: root, ws, outside, table }
}

impl World {
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.ws.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.ws.join(name)).expect("a link");
    }

    pub fn resolve(&self, raw: &str) -> ResolvedPlace {
        self.table.resolve(raw).unwrap_or_else(|e| panic!("{raw}: {e}"))
    }

    pub fn path_of(&self, raw: &str) -> String {
        self.resolve(raw).path().to_string()
    }

    pub fn refused(&self, raw: &str) -> FileError {
        match self.table.resolve(raw) {
            Ok(found) => panic!("{raw} resolved to {}", found.path()),
            Err(error) => error,
        }
    }

    pub fn create(&self, raw: &str, content: &[u8]) -> Result<WrittenFile, FileError> {
        create_at(&self.table.resolve(raw)?, content)
    }

    /// Overwrites, with the current content as baseline.
    pub fn overwrite(&self, raw: &str, content: &[u8]) -> Result<WrittenFile, FileError> {
        let at = self.resolve(raw);
        let now = portcullis_sandbox::hash_file(&at)?.sha256;
        overwrite_at(&at, now, content)
    }

    /// Every name in the workspace, sorted; temporary files would show.
    pub fn listing(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.ws, "", &mut names);
        names.sort();
        names
    }

    pub fn assert_outside_untouched(&self) {
        let mut names = Vec::new();
        list(&self.outside, "", &mut names);
        assert_eq!(names, ["secret.txt"]);
        assert_eq!(fs::read(self.outside.join("secret.txt")).expect("secret"), SECRET);
    }
}

pub fn create_at(at: &ResolvedPlace, content: &[u8]) -> Result<WrittenFile, FileError> {
    write_file(at, &WritePlan { content, expect: Expect::Absent, create_parents: true })
}

pub fn overwrite_at(at: &ResolvedPlace, baseline: Digest, content: &[u8]) -> Result<WrittenFile, FileError> {
    write_file(at, &WritePlan { content, expect: Expect::Sha256(baseline), create_parents: false })
}

pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("metadata").permissions().mode() & 0o7777
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

fn list(dir: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            list(&entry.path(), &format!("{name}/"), names);
        }
        names.push(name);
    }
}

/// Runs the test `name` of this program in a shell that first does `setup`: for what belongs to a
/// whole process, such as its umask. True inside that process; outside, asserts that it passed.
pub fn in_process(name: &str, setup: &str) -> bool {
    const MARK: &str = "PORTCULLIS_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("this program");
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{setup}; exec \"$0\" --exact {name}")])
        .arg(program)
        .env(MARK, "1")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}
