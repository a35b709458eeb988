//! LiteLLM's proxy before a provider of ours that speaks like OpenAI: what it makes of the four protocols.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{ANSWER, KEY, Server, http, python, reads_a_file, wanted};
use crate::common::comes;
use crate::served::{Reply, provider_of};

const PACKAGE: &str = "litellm[proxy]==1.106.2";

fn stream(deltas: &[Value], finish: &str) -> Reply {
    let chunk = |delta: &Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let usage =
            (!finish.is_null()).then(|| json!({"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}));
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice], "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let text: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    Reply::Whole(text + &chunk(&json!({}), json!(finish)) + "data: [DONE]\n\n")
}

/// A call and an answer, again and again.
fn replies() -> impl Iterator<Item = Reply> + Send {
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
    let begin = json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "read", "arguments": ""}}]});
    let pair = move || {
        let (first, rest) = ANSWER.split_at(9);
        [
            stream(&[begin.clone(), call("{\"file_path\""), call(":\"a.txt\"}")], "tool_calls"),
            stream(&[json!({"role": "assistant", "content": first}), json!({"content": rest})], "stop"),
        ]
    };
    std::iter::repeat_with(pair).flatten()
}

/// The proxy, once it answers.
fn proxy(upstream: &str, folder: &std::path::Path) -> Server {
    // One name a provider of LiteLLM's that it asks over chat completions, whatever protocol it is asked in itself.
    let named = |name: &str, model: &str| json!({"model_name": name, "litellm_params": {"model": model, "api_base": format!("{upstream}/v1"), "api_key": "none"}});
    let models = json!({"model_list": [named("by-vllm", "hosted_vllm/fake"), named("by-deepseek", "deepseek/fake")]});
    let config = folder.join("config.yaml");
    // JSON is YAML.
    std::fs::write(&config, models.to_string()).expect("written");
    // It takes no port of the system's choice.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let python = python(&[PACKAGE]);
    let mut command = Command::new(python.with_file_name("litellm"));
    command.arg("--config").arg(&config).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).env("LITELLM_MASTER_KEY", KEY);
    // Nothing of it leaves this machine.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False").current_dir(folder);
    let log = folder.join("litellm.log");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log).expect("a file"));
    let mut server =
        Server { child: command.spawn().expect("it starts"), address: format!("http://127.0.0.1:{port}"), log };
    comes("LiteLLM answers", || {
        assert!(server.child.try_wait().expect("known").is_none(), "LiteLLM ended");
        http(&server.address, "GET", "/health/liveliness", "").starts_with("HTTP/1.1 200")
    });
    server
}

#[test]
fn a_run_through_litellm_ends_with_the_answer_in_all_four_protocols() {
    if !wanted() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (upstream, bodies) = provider_of(replies());
    let server = proxy(&upstream, folder.path());
    for model in ["openai-chat/by-vllm", "anthropic/by-vllm", "gemini/by-vllm", "openai/by-deepseek"] {
        let ran = reads_a_file(&server, model);
        // LiteLLM tells clients of Gemini's protocol that every count is 0.
        let used = if model.starts_with("gemini/") { "0 tokens in, 0 out" } else { "100 tokens in, 14 out" };
        assert!(ran.err.contains(used), "{model}: {}", ran.err);
        // What reached the provider is a conversation with our tools, and with the result of the call.
        let asked: Vec<Value> = bodies.try_iter().collect();
        assert_eq!(asked.len(), 2, "{model}");
        assert!(asked[0]["tools"].as_array().is_some_and(|tools| tools.len() > 5), "{model}: {}", asked[0]["tools"]);
        assert!(asked[1]["messages"].to_string().contains("hello"), "{model}: {}", asked[1]["messages"]);
    }
}
