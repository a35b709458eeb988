//! A workspace, a neighbouring folder that is none of a command's business, and an attack on it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use portcullis_base::IsolationLevel;
use portcullis_sandbox::hand::{BindAccess, Exit, Plan};

use crate::world::{Done, World, bind, text, world};

pub const PYTHON: &str = "/usr/bin/python3";
const ATTACKS: &str = include_str!("attacks.py");

pub use IsolationLevel::{Full, NoNamespaces, NoPivot, SeccompOnly};

/// Levels that keep files away.
pub const FILES: &[IsolationLevel] = &[Full, NoPivot, NoNamespaces];
/// Levels that filter system calls.
pub const CALLS: &[IsolationLevel] = &[Full, NoPivot, NoNamespaces, SeccompOnly];

pub struct Arena {
    pub world: World,
    /// The person's other things. Holds `secret`.
    pub outside: tempfile::TempDir,
}

pub fn arena() -> Arena {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "SECRET").expect("written");
    Arena { world: world(), outside }
}

impl Arena {
    pub fn outside(&self, name: &str) -> String {
        self.outside.path().join(name).display().to_string()
    }

    pub fn at(&self, level: IsolationLevel, attack: &[&str]) -> Plan {
        let mut plan = self.world.plan(&[&[PYTHON, "-I", "-c", ATTACKS], attack].concat());
        plan.minimum = level;
        plan.at_most = level;
        plan
    }

    /// Runs at a level, which must be the level really reached.
    pub async fn run(&self, level: IsolationLevel, plan: Plan) -> Done {
        let mut running = self.world.launch(plan).await.unwrap_or_else(|error| panic!("{level:?}: {error}"));
        assert_eq!(running.posture().level, level, "{:?}", running.posture().missing);
        crate::world::finish(&mut running).await
    }

    pub async fn attack(&self, level: IsolationLevel, attack: &[&str]) -> Done {
        self.run(level, self.at(level, attack)).await
    }

    /// The same program outside of any hand, in the workspace.
    pub fn control(&self, attack: &[&str]) -> Output {
        assert!(rustix::process::geteuid().is_root(), "the controls of the escape suite need root");
        Command::new(PYTHON)
            .args(["-I", "-c", ATTACKS])
            .args(attack)
            .current_dir(self.world.tree.path())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("the escape suite needs {PYTHON}: {error}"))
    }

    #[track_caller]
    pub fn reached(&self, attack: &[&str]) {
        let out = self.control(attack);
        let said = text(&out.stdout);
        assert!(said.starts_with("reached:"), "control: {attack:?} does not work outside: {said}{}", text(&out.stderr));
    }

    /// Everything of the neighbouring folder, and what a command could change of the machine.
    pub fn host(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        look(self.outside.path(), &mut seen);
        for setting in ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe"] {
            seen.insert(setting.into(), std::fs::read_to_string(setting).unwrap_or_default());
        }
        seen
    }
}

fn look(path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let meta = path.symlink_metadata().expect("there");
    let content = if meta.is_file() { text(&std::fs::read(path).expect("read")) } else { String::new() };
    let changed = if meta.is_file() { meta.mtime_nsec() } else { 0 };
    let line = format!("{:o} {} {} {} {changed} {content}", meta.mode(), meta.uid(), meta.gid(), meta.nlink());
    seen.insert(path.to_owned(), line);
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).expect("a list").flatten() {
            look(&entry.path(), seen);
        }
    }
}

/// Held with one of these errors.
#[track_caller]
pub fn held(done: &Done, promised: &[&str], what: &str) {
    let said = done.out.trim().strip_prefix("held: ").unwrap_or_else(|| {
        panic!("{what}: {:?} {}{}", done.ended.exit, done.out, done.err);
    });
    assert!(promised.contains(&said), "{what}: held by {said}, promised {promised:?}");
    assert_eq!(done.ended.exit, Exit::Code(3), "{what}");
}

/// One attack in fresh arenas: it works outside, and at each level it is held by the promised error
/// and the host is as it was. `words` may prepare the arena; they get the level, or none outside.
pub async fn stopped(
    name: &str,
    levels: &[(IsolationLevel, &[&str])],
    words: impl Fn(&Arena, Option<IsolationLevel>) -> Vec<String>,
) {
    let together = |words: &[String]| -> Vec<String> { [&[name.to_owned()], words].concat() };
    let outside = arena();
    let all = together(&words(&outside, None));
    outside.reached(&all.iter().map(String::as_str).collect::<Vec<_>>());
    for (level, promised) in levels {
        let arena = arena();
        let all = together(&words(&arena, Some(*level)));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let before = arena.host();
        let done = arena.attack(*level, &all).await;
        held(&done, promised, &format!("{name} at {level:?}"));
        assert_eq!(arena.host(), before, "{name} at {level:?} changed the host");
    }
}

/// The same error at several levels.
pub fn at<'a>(levels: &[IsolationLevel], promised: &'a [&'a str]) -> Vec<(IsolationLevel, &'a [&'a str])> {
    levels.iter().map(|level| (*level, promised)).collect()
}

/// What is not in the view does not exist; without a view it may not be used.
pub const NOT_THERE: &[(IsolationLevel, &[&str])] =
    &[(Full, &["ENOENT"]), (NoPivot, &["EACCES"]), (NoNamespaces, &["EACCES"])];

/// A folder shown read-only, beside the workspace.
pub fn also_read_only(plan: &mut Plan, folder: &Path, place: &str) {
    plan.view.binds.push(bind(folder, place, BindAccess::ReadOnly));
}
