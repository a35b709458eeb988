//! A conversation with `run` on a terminal.

use std::io::Write as _;
use std::process::{ChildStdin, ChildStdout};

use crate::common::{World, next_printed, on_terminal};

/// How many of these bytes end with a whole character and with no half of a question for the cursor.
fn whole(bytes: &[u8]) -> usize {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let half = (1..WHERE.len()).find(|n| bytes[..whole].ends_with(&WHERE[..*n]));
    whole - half.unwrap_or(0)
}

/// A terminal that a person sits at: it says where the cursor is when it is asked, as every real one does.
pub struct Terminal {
    pub keys: ChildStdin,
    pub out: ChildStdout,
    pub shown: String,
    /// The beginning of a character or of a question for the cursor, whose rest has not come yet.
    begun: Vec<u8>,
}

/// How a program asks a terminal where the cursor is.
const WHERE: &[u8] = b"\x1b[6n";

impl Terminal {
    pub fn new(keys: ChildStdin, out: ChildStdout) -> Self {
        Self { keys, out, shown: String::new(), begun: Vec::new() }
    }

    /// Types a line at a prompt.
    pub fn says(&mut self, line: &str) {
        self.until(READY);
        self.types(&format!("{line}\r"));
    }

    /// What is shown from now on until `text` is.
    pub fn until(&mut self, text: &str) -> String {
        self.until_one(&[text])
    }

    /// The same until one of these is.
    pub fn until_one(&mut self, texts: &[&str]) -> String {
        let mut chunk = [0u8; 1024];
        let text = texts.join("` or `");
        loop {
            let ends = texts.iter().filter_map(|text| self.shown.find(text).map(|at| at + text.len()));
            if let Some(end) = ends.min() {
                let rest = self.shown.split_off(end);
                return std::mem::replace(&mut self.shown, rest);
            }
            let n = next_printed(&mut self.out, &mut chunk, &text);
            assert!(n > 0, "it ended before `{text}`: {}", self.shown);
            self.begun.extend_from_slice(&chunk[..n]);
            let new: Vec<u8> = self.begun.drain(..whole(&self.begun)).collect();
            for _ in new.windows(WHERE.len()).filter(|at| *at == WHERE) {
                self.keys.write_all(b"\x1b[1;1R").expect("answered");
            }
            self.shown.push_str(&String::from_utf8_lossy(&new));
        }
    }

    pub fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("typed");
    }

    /// Selects an answer at an ask that is on the screen. A key that came too soon is text, and is taken back.
    pub fn selects(&mut self, key: &str) -> String {
        let mut seen = String::new();
        loop {
            self.types(key);
            let (selected, text) = (format!("Enter confirms: {key}"), format!("> {key}"));
            seen += &self.until_one(&[&selected, &text]);
            if seen.ends_with(&selected) {
                return seen;
            }
            self.types("\x7f");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// Selects an answer and confirms it.
    pub fn answers(&mut self, key: &str) {
        self.selects(key);
        self.types("\r");
    }
}

pub fn model(world: &World, text: &str) -> String {
    let path = world.home.with_file_name("script.toml");
    std::fs::write(&path, text).expect("written");
    format!("scripted:{}", path.display())
}

/// The end of the line that a prompt is drawn with.
pub const READY: &str = "\x1b[6n";

#[test]
fn a_conversation_shows_what_changed_takes_it_back_and_counts() {
    let world = World::with_file("a.txt", "one\n");
    let script = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\n\
                  [[turn]]\ncalls = [{ name = \"edit\", input = { file_path = \"a.txt\", old_string = \"one\", new_string = \"two\" } }]\n\
                  [[turn]]\ntext = \"I changed it.\"\n\
                  [[turn]]\nwhen = { contains = \"/undo\" }\ntext = \"I know.\"\n";
    let model = model(&world, script);
    let (mut child, keys, out) = on_terminal(&world, &format!("run --model {model} --approvals allow"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until(READY);
    terminal.types("change it\r");
    terminal.until("I changed it.");
    terminal.until(READY);
    terminal.types("/diff\r");
    let shown = terminal.until("+two");
    assert!(shown.contains("-one"), "{shown}");
    terminal.until(READY);
    terminal.types("/undo\r");
    terminal.until("as it was before");
    assert_eq!(world.read("a.txt"), "one\n");
    terminal.until(READY);
    terminal.types("so?\r");
    terminal.until("I know.");
    terminal.until(READY);
    terminal.types("/cost\r");
    terminal.until("4 requests");
    terminal.until(READY);
    terminal.types("/quit\r");
    terminal.until("go on with: portcullis run --session");
    assert!(child.wait().expect("ends").success());
}

#[test]
fn an_undo_is_refused_when_the_file_is_not_as_the_session_left_it() {
    let world = World::with_file("a.txt", "one\n");
    let script = "[[turn]]\ncalls = [{ name = \"read\", input = { file_path = \"a.txt\" } }]\n\
                  [[turn]]\ncalls = [{ name = \"edit\", input = { file_path = \"a.txt\", old_string = \"one\", new_string = \"two\" } }]\n\
                  [[turn]]\ntext = \"I changed it.\"\n";
    let model = model(&world, script);
    let (mut child, keys, out) = on_terminal(&world, &format!("run --model {model} --approvals allow"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until(READY);
    terminal.types("/undo\r");
    terminal.until("changed no file");
    terminal.until(READY);
    terminal.types("change it\r");
    terminal.until("I changed it.");
    terminal.until(READY);
    world.write("a.txt", "mine\n");
    terminal.types("/undo\r");
    terminal.until("a.txt was not taken back: it was changed since");
    assert_eq!(world.read("a.txt"), "mine\n");
    terminal.until(READY);
    terminal.types("\x04");
    assert!(child.wait().expect("ends").success());
}

#[test]
fn what_is_typed_while_it_works_is_heard_at_the_next_turn() {
    let world = World::with_file("a.txt", "one\n");
    let script = "[[turn]]\ncalls = [{ name = \"bash\", input = { command = \"touch began; until [ -e go ]; do sleep 0.05; done\" } }]\n\
                  [[turn]]\nwhen = { contains = \"hurry up\" }\ntext = \"I heard you.\"\n\
                  [[turn]]\ntext = \"Nobody spoke.\"\n";
    let model = model(&world, script);
    let (mut child, keys, out) = on_terminal(&world, &format!("run --model {model} --approvals allow"));
    let mut terminal = Terminal::new(keys, out);
    terminal.until(READY);
    terminal.types("go\r");
    while !world.workspace.join("began").exists() {
        std::thread::yield_now();
    }
    terminal.types("hurry up\n");
    // It is durable before the command ends.
    let since = std::time::Instant::now();
    while !world.run(&["sessions", "search", "hurry up"]).out.contains("user.message") {
        if since.elapsed() > std::time::Duration::from_secs(30) {
            world.write("go", "");
            panic!("nobody heard it");
        }
    }
    world.write("go", "");
    terminal.until("I heard you.");
    terminal.until(READY);
    terminal.types("/quit\r");
    assert!(child.wait().expect("ends").success());
}
