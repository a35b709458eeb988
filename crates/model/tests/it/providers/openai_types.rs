//! What the adapters send, judged by OpenAI's own types: the `openai` package from PyPI, in an environment of its own below
//! the target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use portcullis_model::{AnswerPart, Conversation, HttpModel, Message, UserPart};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, Reply, ask_with, said};
use crate::providers::talk::{call, long_talk};
use crate::providers::{chat, responses};

const PACKAGE: &str = "openai==2.54.0";

/// Reads lines `{"api": …, "body": …}` and prints what the types refuse, one line each.
const JUDGE: &str = r#"
import json, sys
from pydantic import ConfigDict, TypeAdapter
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
types = {"responses": TypeAdapter(ResponseCreateParamsStreaming), "chat": TypeAdapter(CompletionCreateParamsStreaming)}
count = 0
for line in sys.stdin:
    request = json.loads(line)
    count += 1
    try:
        types[request["api"]].validate_python(request["body"], strict=False)
    except Exception as error:
        print(f"{request['name']}: {str(error)[:1500]}")
print(f"{count} requests were judged")
"#;

/// The Python of an environment that has the package. Made once, and again if the version changes.
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    if !done.exists() {
        ran(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), "python3 with venv");
        ran(
            Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]),
            "pip with a package index",
        );
        std::fs::write(&done, PACKAGE).expect("written");
    }
    python
}

fn ran(command: &mut Command, needed: &str) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("this test needs {needed}: {error}"));
    assert!(output.status.success(), "this test needs {needed}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Conversations of every shape that a session makes.
fn talks(fake: &Fake) -> Vec<(&'static str, Conversation)> {
    let mut two_texts = said("go");
    two_texts.push(Message::Assistant(vec![AnswerPart::Text("one".to_owned()), AnswerPart::Text("two".to_owned())]));
    two_texts.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    let mut only_calls = said("go");
    only_calls.push(Message::Assistant(vec![call("a", "read", "{}"), call("b", "write", "not JSON")]));
    let mut unanswered = said("go");
    unanswered.push(Message::User(vec![UserPart::Text("still there?".to_owned())]));
    let mut empty = Conversation::new();
    empty.push(Message::User(vec![UserPart::Text(String::new())]));
    vec![
        ("everything", long_talk(fake)),
        ("two texts", two_texts),
        ("only calls", only_calls),
        ("unanswered", unanswered),
        ("empty", empty),
    ]
}

async fn bodies(api: &str, open: impl Fn(&Fake) -> HttpModel) -> Vec<Value> {
    let mut out = Vec::new();
    let fake = Fake::start(std::iter::repeat_with(|| Reply::json(400, "{}")).take(64)).await;
    let model = open(&fake);
    for (name, talk) in talks(&fake) {
        for off in [false, true] {
            let before = fake.seen().len();
            let _ = ask_with(&model, &talk, off).await;
            for seen in &fake.seen()[before..] {
                let body: Value = serde_json::from_str(&seen.body).expect("JSON");
                out.push(json!({"api": api, "name": format!("{api}: {name} (tools off: {off})"), "body": body}));
            }
        }
    }
    out
}

#[tokio::test]
async fn every_request_fits_the_types_of_the_official_sdk() {
    let mut all = bodies("responses", responses::model).await;
    all.extend(bodies("chat", chat::model).await);
    let lines: String = all.iter().map(|request| format!("{request}\n")).collect();
    // A control: the types do refuse something.
    let wrong = json!({"api": "responses", "name": "control", "body": {"model": "m", "stream": true, "input": [{"role": "assistant",
        "content": [{"type": "output_text", "text": "no id"}], "type": "message"}]}});
    let judged = judge(&format!("{lines}{wrong}\n"));
    let refused: Vec<&str> = judged.lines().filter(|line| !line.ends_with("requests were judged")).collect();
    assert!(judged.contains(&format!("{} requests were judged", all.len() + 1)), "{judged}");
    assert!(refused.iter().any(|line| line.starts_with("control: ")), "the control is taken: {judged}");
    let refused: Vec<&&str> =
        refused.iter().filter(|line| line.starts_with("responses: ") || line.starts_with("chat: ")).collect();
    assert!(refused.is_empty(), "{judged}");
}

fn judge(lines: &str) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), lines).expect("written");
    let input = std::fs::File::open(file.path()).expect("opened");
    let output = ran(Command::new(python()).args(["-c", JUDGE]).stdin(input), "the `openai` package");
    String::from_utf8(output.stdout).expect("text")
}
