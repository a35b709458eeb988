//! A workspace, a launcher, and what came of a command.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use portcullis_sandbox::hand::{Bind, BindAccess, Exit, LaunchError, Launcher, Plan, ProcessEnd, Running, Source};

pub const HELPER: &str = env!("CARGO_BIN_EXE_portcullis-hand");

/// Nothing here takes long; a test that hangs fails instead.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct World {
    pub tree: tempfile::TempDir,
    pub launcher: Launcher,
}

pub struct Done {
    pub ended: ProcessEnd,
    pub out: String,
    pub err: String,
}

impl Done {
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.ended.exit, Exit::Code(0), "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }
}

pub fn world() -> World {
    World { tree: tempfile::tempdir().expect("a folder"), launcher: Launcher::helper(HELPER) }
}

pub fn bind(source: &Path, place: &str, access: BindAccess) -> Bind {
    Bind { source: Source::Path(source.to_owned()), place: place.into(), access, optional: false }
}

impl World {
    pub fn path(&self, name: &str) -> PathBuf {
        self.tree.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(&path, text).expect("written");
        path
    }

    pub fn plan(&self, argv: &[&str]) -> Plan {
        let mut plan = Plan::new(argv.iter().map(OsString::from).collect());
        plan.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        plan.cwd = "/workspace".into();
        plan.view.binds.push(bind(self.tree.path(), "/workspace", BindAccess::ReadWrite));
        plan
    }

    pub fn sh(&self, script: &str) -> Plan {
        self.plan(&["sh", "-c", script])
    }

    pub async fn launch(&self, plan: Plan) -> Result<Running, LaunchError> {
        self.launcher.launch(plan).await
    }

    pub async fn run(&self, plan: Plan) -> Done {
        let mut running = self.launch(plan).await.unwrap_or_else(|error| panic!("not launched: {error}"));
        finish(&mut running).await
    }
}

pub async fn finish(running: &mut Running) -> Done {
    let out = read(running.take_stdout());
    let err = read(running.take_stderr());
    let ended = ended(running).await;
    Done { ended, out: out.await.expect("stdout"), err: err.await.expect("stderr") }
}

pub async fn ended(running: &mut Running) -> ProcessEnd {
    tokio::time::timeout(PATIENCE, running.wait()).await.expect("it ends").expect("waited")
}

fn read(from: Option<OwnedFd>) -> tokio::task::JoinHandle<String> {
    tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            std::fs::File::from(from).read_to_end(&mut bytes).expect("read");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a program of the host, outside of any hand.
pub fn host(argv: &[&str]) -> Output {
    Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("this test needs `{}`: {error}", argv[0]))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits for a condition.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs whose command line holds this mark.
pub fn alive(mark: &str) -> bool {
    let me = std::process::id().to_string();
    std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && name != me)
            && std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| text(&line).contains(mark))
    })
}

/// A `sleep` that can be told from every other: its number of seconds is the mark.
pub fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", std::process::id() + 100_000, NEXT.fetch_add(1, Ordering::Relaxed))
}
