//! OpenAI Chat Completions: what is sent and how answers are read.

use std::sync::Arc;

use portcullis_model::{
    AnswerPart, Failure, HttpModel, Message, Model, Opaque, Stop, ToolSpec, Usage, UserPart, WireFormat,
};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, HeardAll, KEY, Reply, ask, opened, said, settings, tls, tool};
use crate::providers::talk::{call, long_talk, of_anybody, shares_its_prefix};

pub fn model(fake: &Fake) -> HttpModel {
    opened(WireFormat::OpenAiChat, "openai-chat/m", fake.settings())
}

/// A stream of chunks, each one delta, then an end and the counts.
pub fn chunks(deltas: &[Value], finish: &str) -> String {
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})).collect();
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
    chunks.push(json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 20}}}));
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{lines}data: [DONE]\n\n")
}

pub fn hello() -> String {
    chunks(&[json!({"role": "assistant", "content": ""}), json!({"content": "hel"}), json!({"content": "lo"})], "stop")
}

#[tokio::test]
async fn text_reasoning_and_parallel_calls_come_whole_and_in_order() {
    let stream = chunks(
        &[
            json!({"role": "assistant", "content": null, "tool_calls": null}),
            json!({"reasoning_content": "Let me "}),
            json!({"reasoning_content": "look."}),
            json!({"content": "Reading "}),
            json!({"content": "both."}),
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}]}),
            json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "read", "arguments": "{\"pa"}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\": \"x\" }"}}, {"index": 1, "function": {"arguments": "th\":"}}]}),
        ],
        "tool_calls",
    );
    let fake = Fake::start([Reply::stream(&stream)]).await;
    let asked = ask(&model(&fake), &said("go")).await;
    let heard = HeardAll::of("Reading both.", "Let me look.", &["read", "read"]);
    assert_eq!(asked.heard, heard);
    let answer = asked.answer();
    let reasoning = Opaque::new("openai_chat", r#"{"reasoning_content":"Let me look."}"#);
    assert_eq!(
        of_anybody(&answer.parts),
        vec![
            AnswerPart::Opaque(reasoning),
            AnswerPart::Text("Reading both.".to_owned()),
            call("a", "read", "{\"path\": \"x\" }"),
            call("b", "read", "{\"path\":"),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.usage, Some(Usage { input: 10, output: 5, cache_read: 20, cache_write: 0 }));
    assert_eq!(answer.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn check_6_3_a_request_is_written_in_order_with_its_messages_last() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    let answer = ask(&model(&fake), &said("go")).await.answer();
    assert_eq!(answer.text(), "hello");
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/v1/chat/completions", "the version is added to an address without a path");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let function = |name: &str| {
        format!(
            r#"{{"type":"function","function":{{"name":"{name}","description":"the tool {name}","parameters":{schema}}}}}"#
        )
    };
    let expected = format!(
        r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"max_tokens":1000,"tools":[{},{}],"messages":[{{"role":"system","content":"Be brief."}},{{"role":"user","content":"go"}}]}}"#,
        function("read"),
        function("write")
    );
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn everything_goes_back_as_the_protocol_has_it() {
    let fake = Fake::start([Reply::stream(&hello()), Reply::stream(&hello())]).await;
    let talk = long_talk(&fake);
    ask(&model(&fake), &talk).await.answer();
    let mut seeing = fake.settings();
    seeing.media = Some(true);
    let seeing = opened(WireFormat::OpenAiChat, "openai-chat/m", seeing);
    ask(&seeing, &talk).await.answer();
    let bodies: Vec<Value> = fake.seen().iter().map(|seen| serde_json::from_str(&seen.body).expect("JSON")).collect();
    let messages = |i: usize| bodies[i]["messages"].as_array().expect("messages").clone();
    let id = messages(0)[2]["tool_calls"][1]["id"].as_str().expect("an id").to_owned();
    let assistant = json!({
        "role": "assistant",
        "content": " \nsee",
        "reasoning_content": "r",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"path\": 1.0}"}},
            {"id": id, "type": "function", "function": {"name": "no_such_tool", "arguments": "{\"unparsed_arguments\":\"{\\\"path\\\"\"}"}},
        ],
    });
    let failed = json!({"role": "tool", "tool_call_id": id, "content": "[the call failed]\n(no output)"});
    let left_out = |what: &str| format!("[left out: {what}; this model cannot be sent it]");
    let blind = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "go"}),
        assistant.clone(),
        json!({"role": "tool", "tool_call_id": "a", "content": format!("ok\n{}", left_out("an image (image/png, 3 bytes)"))}),
        failed.clone(),
        json!({"role": "user", "content": format!(
            "and\n\n{}\n\n{}",
            left_out("a PDF document (application/pdf, 3 bytes)"),
            left_out("an image (image/tiff, 3 bytes)")
        )}),
    ];
    assert_eq!(messages(0), blind, "to a server of unknown kind media is words");
    assert_eq!(messages(1)[3]["content"], "ok\n[shown in the next message]");
    assert_eq!(
        messages(1)[5]["content"],
        json!([
            {"type": "text", "text": "[from the result of read (a)]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "text", "text": "and"},
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
            {"type": "text", "text": left_out("an image (image/tiff, 3 bytes)")},
        ])
    );
}

#[tokio::test]
async fn check_6_3_request_n_plus_1_begins_with_the_bytes_of_request_n() {
    shares_its_prefix(model, &hello(), r#""tool_choice":"none""#).await;
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_openai_does() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    let mut local = fake.settings();
    local.key = None;
    let local = opened(WireFormat::OpenAiChat, "openai-chat/m", local);
    assert_eq!(ask(&local, &said("go")).await.answer().text(), "hello");
    assert!(!fake.seen()[0].headers.contains_key("authorization"));

    tls();
    let mut openai = settings();
    openai.key = None;
    let error =
        HttpModel::new(WireFormat::OpenAiChat, "openai-chat/m".parse().expect("a name"), openai).expect_err("no key");
    assert_eq!(error.failure, Failure::Config);
    assert!(error.message.contains("OPENAI_API_KEY") && error.message.contains("base_url"), "{}", error.message);
}

#[tokio::test]
async fn the_server_names_its_models() {
    let list = r#"{"object":"list","data":[{"id":"llama"},{"id":"qwen"}]}"#;
    let fake = Fake::start([Reply::json(200, list), Reply::json(200, "{}"), Reply::json(500, "")]).await;
    let model = model(&fake);
    assert_eq!(model.models().await, Ok(vec!["llama".to_owned(), "qwen".to_owned()]));
    assert_eq!(fake.seen()[0].path, "/v1/models");
    assert_eq!(model.models().await.expect_err("no list").failure, Failure::InvalidResponse);
    assert_eq!(model.models().await.expect_err("no list").failure, Failure::Server);
}

#[tokio::test]
async fn a_menu_that_does_not_fit_is_never_sent() {
    tls();
    let fake = Fake::start([]).await;
    let local = model(&fake);
    let openai = opened(WireFormat::OpenAiChat, "openai-chat/m", settings());
    let many: Vec<ToolSpec> = (0..129).map(|n| tool(&format!("t{n}"))).collect();
    assert!(openai.fits(&many[..128]).is_ok() && openai.fits(&many).is_err() && local.fits(&many).is_ok());
    assert!(local.fits(&[tool(&"n".repeat(64))]).is_ok() && local.fits(&[tool(&"n".repeat(65))]).is_err());
    let array =
        ToolSpec { input_schema: json!({"type": "object", "properties": {"a": {"type": "array"}}}), ..tool("x") };
    let talk = said("go");
    let request = portcullis_model::Request {
        system: "",
        tools: Arc::from([array]),
        tools_off: false,
        conversation: &talk,
        max_output_tokens: 10,
    };
    let error = local.ask(&request, &|_| {}).await.expect_err("no items");
    assert!(error.failure == Failure::Unfit && error.message.contains("/properties/a"), "{}", error.message);
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn stop_reasons_are_told_apart() {
    let cases = [
        ("stop", Stop::EndTurn),
        ("length", Stop::MaxTokens),
        ("content_filter", Stop::Refusal),
        ("odd", Stop::Other("odd".to_owned())),
        ("tool_calls", Stop::EndTurn),
    ];
    let replies = cases.iter().map(|(word, _)| Reply::stream(&chunks(&[json!({"content": "x"})], word)));
    let refused = chunks(&[json!({"refusal": "No."})], "stop");
    let fake = Fake::start(replies.chain([Reply::stream(&refused)])).await;
    let model = model(&fake);
    for (word, stop) in cases {
        assert_eq!(ask(&model, &said("go")).await.answer().stop, stop, "{word}");
    }
    let answer = ask(&model, &said("go")).await.answer();
    assert_eq!((answer.text().as_str(), answer.stop), ("No.", Stop::Refusal));
}

#[tokio::test]
async fn reasoning_in_lists_is_kept_to_the_byte_and_goes_back_with_its_calls() {
    let detail = r#"{ "type":"reasoning.encrypted","data":"\u0061=", "n":1.50 }"#;
    let stream = chunks(
        &[
            json!({"reasoning": "hm", "reasoning_content": "hm", "reasoning_details": ["DETAIL"]}),
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]}),
        ],
        "tool_calls",
    );
    let fake = Fake::start([Reply::stream(&stream.replace("\"DETAIL\"", detail)), Reply::stream(&hello())]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let asked = ask(&model, &talk).await;
    assert_eq!(asked.heard.thinking, "hm", "what comes twice is heard once");
    talk.push(Message::Assistant(asked.answer().parts));
    talk.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    ask(&model, &talk).await.answer();
    let body = &fake.seen()[1].body;
    assert!(
        body.contains(&format!(r#""reasoning_content":"hm","reasoning":"hm","reasoning_details":[{detail}]"#)),
        "{body}"
    );
}
