//! The adapters against a server that somebody else wrote: aimock from the npm registry, which speaks the protocols of all
//! four providers. It is installed once below the target directory and answers on loopback.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use portcullis_model::{
    AnswerPart, Conversation, HttpSettings, Message, Model, ResultPart, Stop, ToolResult, UserPart, WireFormat,
};

use crate::providers::fake::{ask, opened, said, settings, tls};

const PACKAGE: &str = "@copilotkit/aimock@1.43.0";

const SERVER: &str = r#"
import { LLMock } from "@copilotkit/aimock";
const mock = new LLMock({ port: 0, host: "127.0.0.1" });
mock.addFixture({ match: { hasToolResult: true }, response: { content: "The file says hello." } });
mock.addFixture({ match: { userMessage: "read" }, response: { toolCalls: [{ name: "read", arguments: '{"path":"a.txt"}' }] } });
mock.addFixture({ match: { userMessage: "hi" }, response: { content: "Hi there!" } });
await mock.start();
console.log(mock.url);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
"#;

/// The server's process. It ends when its standard input does, at the latest with this test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let folder = installed();
        std::fs::write(folder.join("server.mjs"), SERVER).expect("written");
        let mut command = Command::new("node");
        command.arg("server.mjs").current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this test needs `node`");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut url).expect("a line");
        assert!(url.starts_with("http://127.0.0.1:"), "aimock told no address: {url:?}");
        Self { child, url: url.trim().to_owned() }
    }

    fn settings(&self) -> HttpSettings {
        HttpSettings { base_url: Some(self.url.clone()), ..settings() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aimock-1.43.0");
    let done = folder.join("installed");
    if !done.exists() {
        std::fs::create_dir_all(&folder).expect("made");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(&folder).arg(PACKAGE);
        let output = npm.output().expect("this test needs `npm`");
        assert!(output.status.success(), "npm cannot install {PACKAGE}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(&done, PACKAGE).expect("written");
    }
    folder
}

/// Says hello, has a tool called, gives its result, and hears the answer to it.
async fn talks(model: &dyn Model) {
    let name = model.name().clone();
    let hello = ask(model, &said("hi")).await.answer();
    assert_eq!((hello.text().as_str(), hello.stop), ("Hi there!", Stop::EndTurn), "{name}");
    assert!(hello.usage.is_some(), "{name} counts");

    let mut talk: Conversation = said("please read");
    let answer = ask(model, &talk).await.answer();
    assert_eq!(answer.stop, Stop::ToolUse, "{name}");
    let call = answer.parts.iter().find_map(|part| match part {
        AnswerPart::Call(call) => Some(call.clone()),
        _ => None,
    });
    let call = call.unwrap_or_else(|| panic!("{name} calls no tool: {answer:?}"));
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read", r#"{"path":"a.txt"}"#), "{name}");
    talk.push(Message::Assistant(answer.parts));
    let parts = vec![ResultPart::Text("hello".to_owned())];
    let result = ToolResult { call_id: call.id, name: call.name, is_error: false, parts };
    talk.push(Message::User(vec![UserPart::Result(result)]));
    let last = ask(model, &talk).await.answer();
    assert_eq!((last.text().as_str(), last.stop), ("The file says hello.", Stop::EndTurn), "{name}");
}

#[tokio::test]
async fn a_server_of_somebody_else_is_understood_in_all_four_protocols() {
    tls();
    let server = Server::start();
    talks(&opened(WireFormat::OpenAiChat, "openai-chat/some-model", server.settings())).await;
    talks(&opened(WireFormat::OpenAiResponses, "openai/some-model", server.settings())).await;
    talks(&opened(WireFormat::AnthropicMessages, "anthropic/some-model", server.settings())).await;
    talks(&opened(WireFormat::Gemini, "gemini/some-model", server.settings())).await;
}
