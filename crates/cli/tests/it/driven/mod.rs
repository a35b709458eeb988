//! Sessions that a scripted model drives, for the tests of the operator's verbs and of workers.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::{Ran, World, store};

/// Rules under which the commands of these scripts run without being asked about.
pub const SHELL_RUNS: &str = r#"
[[rules]]
action = "*"
argv = ["echo"]
effect = "allow"
[[rules]]
action = "*"
argv = ["sleep"]
effect = "allow"
[[rules]]
action = "*"
path = "/workspace/**"
effect = "allow"
"#;

/// A world with a script beside its workspace; the word that names the model.
pub fn scripted(text: &str) -> (World, String) {
    let world = World::new();
    let model = script(&world, "script.toml", text);
    (world, model)
}

/// Another script of the same world.
pub fn script(world: &World, name: &str, text: &str) -> String {
    std::fs::create_dir_all(&world.home).expect("made");
    let file = world.home.join(name);
    std::fs::write(&file, text).expect("written");
    format!("scripted:{}", file.display())
}

/// A new session that was told this.
pub fn told(world: &World, words: &str) -> String {
    world.run(&["sessions", "new", words]).ends(0).id("sesn_")
}

pub fn events(world: &World, session: &str) -> Vec<Value> {
    world.run(&["sessions", "events", session, "--json"]).ends(0).lines()
}

pub fn payload(event: &Value) -> Value {
    serde_json::from_str(event["payload"].as_str().expect("it has one")).expect("JSON")
}

pub fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

/// Codes of the observations of a session, in order.
pub fn codes(events: &[Value]) -> Vec<String> {
    let seen = events.iter().filter(|event| event["type"] == "tool.observation");
    seen.map(|event| payload(event)["code"].as_str().expect("a code").to_owned()).collect()
}

pub fn wake(world: &World, session: &str, model: &str) -> Ran {
    world.run(&["sessions", "wake", session, "--model", model])
}

pub fn status(world: &World, session: &str) -> Value {
    world.run(&["sessions", "status", session, "--json"]).ends(0).json()
}

/// A process that does not outlive its test.
pub struct Process(Option<Child>);

impl std::ops::Deref for Process {
    type Target = Child;
    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it is there until it is taken")
    }
}

impl std::ops::DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is there until it is taken")
    }
}

impl Process {
    pub fn of(child: Child) -> Self {
        Self(Some(child))
    }

    pub fn output(mut self) -> Ran {
        self.0.take().expect("it is there").wait_with_output().expect("it ends").into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A worker that stays.
pub fn worker(world: &World, model: &str, more: &[&str]) -> Process {
    let mut command = world.command(&["worker", "--watch", "--json", "--model", model]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    Process(Some(command.spawn().expect("it starts")))
}

pub fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("sent");
}

/// The head of a log, as the store has it.
pub fn head(world: &World, session: &str) -> (u64, String) {
    let shown = world.run(&["sessions", "show", session, "--json"]).ends(0).json();
    (shown["events"].as_u64().expect("a number"), shown["head_hash"].as_str().expect("a hash").to_owned())
}

/// Runs something on the store of a world in this very process.
pub fn on_store<T>(
    world: &World,
    work: impl AsyncFnOnce(std::sync::Arc<portcullis_store_sqlite::SqliteStore>) -> T,
) -> T {
    tokio::runtime::Runtime::new().expect("runs").block_on(work(store(world)))
}
