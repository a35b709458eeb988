//! llama.cpp, in the wheels of `xllamacpp` that hold its server. The model is made here: it has one layer and knows two
//! sentences, a call of `read` and what it says once it has a result. Its chat template has tools, so that llama.cpp makes
//! a grammar of every schema it is sent and holds the call to it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Server, http, python, ran, reads_a_file, wanted};

/// The last build known here that refuses patterns without anchors and long texts, and one that takes them.
const BUILDS: [&str; 2] = ["xllamacpp==2026.7.10068", "xllamacpp==2026.10.11549"];
const WRITER: &str = "gguf==0.19.0";

fn server(build: &str, folder: &std::path::Path) -> Server {
    let model = folder.join("tiny.gguf");
    if !model.exists() {
        ran(Command::new(python(&[WRITER])).args(["-c", include_str!("tiny_model.py")]).arg(&model), WRITER);
    }
    let mut command = Command::new(python(&[build]));
    command.args(["-c", include_str!("llama_server.py")]).arg(&model);
    let log = folder.join(format!("{build}.log"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    let mut child = command.spawn().expect("starts");
    let mut address = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut address).expect("a line");
    let server = Server { child, address: address.trim().to_owned(), log };
    assert!(server.address.starts_with("http://127.0.0.1:"), "{build} told no address: {address:?}");
    server
}

#[test]
fn llama_cpp_takes_every_schema_and_a_run_ends_with_its_answer() {
    if !wanted() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for build in BUILDS {
        let server = server(build, folder.path());
        for protocol in ["openai-chat", "anthropic", "openai"] {
            let ran = reads_a_file(&server, &format!("{protocol}/tiny"));
            assert!(!ran.err.contains("warning"), "{build}, {protocol}: {}", ran.err);
        }
        if build == BUILDS[0] {
            refuses_what_is_not_sent(&server);
        }
    }
}

/// A control: this build does refuse what our schemas hold and the adapters leave out.
fn refuses_what_is_not_sent(server: &Server) {
    for (schema, reason) in [
        (json!({"type": "string", "pattern": "\\S"}), "Pattern must start with"),
        (json!({"type": "string", "maxLength": 100_000}), "failed to parse grammar"),
    ] {
        let parameters = json!({"type": "object", "properties": {"text": schema}, "required": ["text"]});
        let function = json!({"name": "read", "description": "reads", "parameters": parameters});
        let body = json!({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": function}]});
        let answer = http(&server.address, "POST", "/v1/chat/completions", &body.to_string());
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(reason), "{answer}");
    }
}
