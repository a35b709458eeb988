//! `run` with servers that others wrote, from the package index: LiteLLM's proxy and llama.cpp itself. They are large, so
//! only `cargo xtask soak models` runs these tests. Each server is installed once below the target directory and answers
//! on loopback.

mod litellm;
mod llama_cpp;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use crate::common::{Ran, World};

/// What LiteLLM is told to take as a key; llama.cpp takes any.
const KEY: &str = "sk-portcullis-tests-0123456789abcdef";
const ANSWER: &str = "The file says hello.";

/// Whether these tests are wanted.
fn wanted() -> bool {
    let wanted = std::env::var_os("PORTCULLIS_SOAK_MODELS").is_some();
    if !wanted {
        eprintln!("skipped: `cargo xtask soak models` runs this test");
    }
    wanted
}

/// The Python of an environment that has these packages. Made once for each list of versions.
fn python(packages: &[&str]) -> PathBuf {
    let name: String = packages.join("-").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    if !done.exists() {
        ran(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), "python3 with venv");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
        ran(Command::new(&python).args(pip).args(packages), "pip with a package index");
        std::fs::write(&done, packages.join("\n")).expect("written");
    }
    python
}

fn ran(command: &mut Command, needed: &str) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("this test needs {needed}: {error}"));
    assert!(output.status.success(), "this test needs {needed}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A server's process. It ends with its test.
struct Server {
    child: Child,
    address: String,
    /// What it writes, which is shown if its test fails.
    log: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read(&self.log).unwrap_or_default();
            let tail = &log[log.len().saturating_sub(8 << 10)..];
            eprintln!("{}: ended: {:?}\n{}", self.address, self.child.try_wait(), String::from_utf8_lossy(tail));
        }
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request on a connection of its own, and everything that comes back; nothing, where nobody listens.
fn http(address: &str, method: &str, path: &str, body: &str) -> String {
    let host = address.strip_prefix("http://").expect("an address");
    let Ok(mut connection) = TcpStream::connect(host) else { return String::new() };
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    let mut answer = Vec::new();
    let sent = write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len());
    // A server that starts may close the connection: then it is asked again.
    let _ = sent.and_then(|()| connection.read_to_end(&mut answer).map(drop));
    String::from_utf8_lossy(&answer).into_owned()
}

/// Has a file read by the model of a server, over the protocol that `model` begins with.
#[track_caller]
fn reads_a_file(server: &Server, model: &str) -> Ran {
    let world = World::with_file("a.txt", "hello\n");
    let mut command = world.command(&["run", "Read a.txt.", "--model", model, "--base-url", &server.address]);
    command.envs(["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"].map(|name| (name, KEY)));
    let ran = Ran::from(command.output().expect("it runs")).ends(0).warns("✓ read a.txt").warns("2 requests, 1 call");
    assert_eq!(ran.out, format!("{ANSWER}\n"), "{model}: {}", ran.err);
    ran
}
