//! A world for the real binary: a data folder, a configuration and a workspace of its own.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis::{Runtime, SystemClock, SystemIds};
use portcullis_store::{HostLiveness, LocalArtifacts};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use rustix::event::{PollFd, PollFlags};
use serde_json::Value;
use tempfile::TempDir;

pub struct World {
    _scratch: TempDir,
    pub home: PathBuf,
    pub config: PathBuf,
    pub workspace: PathBuf,
}

/// What a process gave.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code\nstdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Standard output holds `text`.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no `{text}` in:\n{}\nstderr: {}", self.out, self.err);
        self
    }

    /// Standard error holds `text`.
    #[track_caller]
    pub fn warns(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no `{text}` in:\n{}\nstdout: {}", self.err, self.out);
        self
    }

    /// Exactly one line of standard error is an error, and it is the only line there.
    #[track_caller]
    pub fn one_error_line(self) -> Self {
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("error: "), "not one error line:\n{}", self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("not one JSON document ({e}): {}", self.out))
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line is a document")).collect()
    }

    /// The first word in either stream that begins with `prefix`.
    #[track_caller]
    pub fn id(&self, prefix: &str) -> String {
        let text = format!("{} {}", self.out, self.err);
        let word = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).find(|word| word.starts_with(prefix));
        word.unwrap_or_else(|| panic!("no {prefix} in {text}")).to_owned()
    }
}

impl World {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let root = scratch.path().canonicalize().expect("it is there");
        let world = Self {
            home: root.join("home"),
            config: root.join("config"),
            workspace: root.join("work"),
            _scratch: scratch,
        };
        fs::create_dir_all(&world.workspace).expect("made");
        world
    }

    pub fn with_file(name: &str, text: &str) -> Self {
        let world = Self::new();
        world.write(name, text);
        world
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().expect("beneath")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.workspace.join(name)).expect("read")
    }

    /// The same of a file that may not be there yet.
    pub fn read_or_nothing(&self, name: &str) -> String {
        fs::read_to_string(self.workspace.join(name)).unwrap_or_default()
    }

    /// Every content of an artifact that is kept as a file.
    pub fn artifact_files(&self) -> Vec<PathBuf> {
        fn below(folder: &Path) -> Vec<PathBuf> {
            let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
            let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
            let contents = files.into_iter().filter(|path| path.file_name().is_some_and(|name| name.len() == 64));
            contents.chain(folders.iter().flat_map(|folder| below(folder))).collect()
        }
        below(&self.home.join("artifacts"))
    }

    /// The user's configuration; its path.
    pub fn configure(&self, text: &str) -> PathBuf {
        let path = self.config.join("portcullis/config.toml");
        fs::create_dir_all(path.parent().expect("beneath")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    pub fn database(&self) -> PathBuf {
        self.home.join("portcullis.db")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.prepared(Command::new(binary()), args)
    }

    /// The same by `env`, with what it makes of a signal: whatever started the tests may want one ignored (`nohup`).
    pub fn command_by(&self, signal: &str, args: &[&str]) -> Command {
        let mut env = Command::new("/usr/bin/env");
        env.arg(signal).arg(binary());
        self.prepared(env, args)
    }

    fn prepared(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(&self.workspace).env_clear();
        command.env("PORTCULLIS_HOME", &self.home).env("XDG_CONFIG_HOME", &self.config).env("HOME", &self.home);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("it runs").into()
    }

    /// What a tool that needs no input gives a program.
    pub fn document(&self, tool: &str) -> Value {
        self.run(&["call", tool, "--json"]).ends(0).json()["structured"].take()
    }

    /// Reads `name` and edits it, so that an ask waits; the ask's id.
    pub fn ask_to_edit(&self, name: &str, old: &str, new: &str) -> String {
        self.run(&["call", "read", &format!(r#"{{"file_path":"{name}"}}"#)]).ends(0);
        self.run(&["call", "edit", &edit(name, old, new)]).ends(3).id("ask_")
    }
}

const INSIDE: &str = "PORTCULLIS_TEST_INSIDE";

/// `true` inside a mount namespace of its own, where mounting leaves no trace, as root or not. Outside, runs this very
/// test (`module::name`) there and gives `false` when it passed.
pub fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--"]).arg(std::env::current_exe().expect("this test"));
    let ran = command.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env(INSIDE, "1").output();
    let ran = ran.expect("`unshare` (util-linux) runs");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains("1 passed"), "no test in a namespace of its own:\n{out}\n{err}");
    false
}

/// Whether a process listens for Ctrl-C already, which /proc shows.
pub fn listens(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask").trim().to_owned();
    u64::from_str_radix(&caught, 16).expect("hex") & 0b10 != 0
}

/// Sends Ctrl-C to a process as soon as it listens for it.
pub fn interrupt(child: &Child) {
    while !listens(child) {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
}

pub fn edit(name: &str, old: &str, new: &str) -> String {
    serde_json::json!({"file_path": name, "old_string": old, "new_string": new}).to_string()
}

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_portcullis"))
}

/// The store of a world, opened by this very process.
pub fn store(world: &World) -> Arc<SqliteStore> {
    let config = SqliteConfig {
        path: world.database(),
        durability: Durability::Full,
        clock: Arc::new(SystemClock::new()),
        ids: Arc::new(SystemIds::new()),
        liveness: Arc::new(HostLiveness::new()),
        checkpoint_key: None,
    };
    Arc::new(SqliteStore::open(config).expect("opens"))
}

/// A runtime of this very process over a world's store, as an embedder builds one.
pub fn embedded(world: &World) -> Runtime {
    let artifacts = LocalArtifacts::open(&world.home.join("artifacts"), Arc::new(SystemIds::new())).expect("opens");
    let builder = Runtime::builder().workspace(&world.workspace).store(store(world), Arc::new(artifacts));
    builder.called("a test that serves").build().expect("builds")
}

/// What counts of kills and races are multiplied with: `cargo xtask soak` has time.
pub fn soak() -> usize {
    if std::env::var_os("PORTCULLIS_SOAK").is_some() { 10 } else { 1 }
}

/// What is not so by then will not be: these machines are slow, and nobody should wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is so.
#[track_caller]
pub fn comes(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The same beside other work of a test.
pub async fn comes_by(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Reads what is printed next, and fails if nothing is for too long.
#[track_caller]
pub fn next_printed(out: &mut (impl std::io::Read + AsFd), chunk: &mut [u8], awaited: &str) -> usize {
    let patience = rustix::event::Timespec::try_from(PATIENCE).expect("a time");
    let ready = rustix::event::poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&patience)).expect("polled");
    assert!(ready > 0, "nothing more was printed, and `{awaited}` never was");
    out.read(chunk).expect("readable")
}

/// Reads until `text` was printed; what was printed.
#[track_caller]
pub fn until(out: &mut (impl std::io::Read + AsFd), text: &str) -> String {
    let (mut seen, mut chunk) = (Vec::new(), [0u8; 1024]);
    loop {
        let n = next_printed(out, &mut chunk, text);
        assert!(n > 0, "it ended before `{text}`: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&chunk[..n]);
        let shown = String::from_utf8_lossy(&seen);
        if shown.contains(text) {
            return shown.into_owned();
        }
    }
}

/// A command on a terminal: its process, what is typed and what is shown. `script` gives it the
/// terminal; it is part of util-linux, which every Linux system has.
pub fn on_terminal(world: &World, words: &str) -> (Child, ChildStdin, ChildStdout) {
    in_shell(world, &format!("{} {words}", binary().display()))
}

/// The same on one of so many columns; 0 is one that does not know.
pub fn on_terminal_of(world: &World, columns: u16, words: &str) -> (Child, ChildStdin, ChildStdout) {
    in_shell(world, &format!("stty cols {columns} && {} {words}", binary().display()))
}

/// A line of a shell on a terminal. It is wide, so that what is waited for stands in one row.
pub fn in_shell(world: &World, line: &str) -> (Child, ChildStdin, ChildStdout) {
    let envs: Vec<_> = world.command(&[]).get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    let mut command = Command::new("script");
    let line = format!("stty cols 400; {line}");
    command.args(["-qfec", &line, "/dev/null"]).current_dir(&world.workspace).env_clear().envs(envs);
    command.env("PATH", "/usr/bin:/bin").env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("`script` (util-linux) runs");
    let (keys, out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    (child, keys, out)
}

/// A path as a word of a shell.
pub fn shell_word(path: &Path) -> String {
    format!("'{}'", path.to_str().expect("text").replace('\'', r"'\''"))
}
