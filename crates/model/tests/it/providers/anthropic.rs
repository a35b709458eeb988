//! Anthropic Messages.

use std::sync::Arc;

use portcullis_model::{
    AnswerPart, Failure, HttpModel, Media, MediaKind, Message, Model, Opaque, ResultPart, Stop, ToolResult, ToolSpec,
    Usage, UserPart, WireFormat,
};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, HeardAll, KEY, Reply, ask, events, opened, said, settings, tls, tool};
use crate::providers::talk::{call, long_talk, of_anybody, shares_its_prefix};

pub fn model(fake: &Fake) -> HttpModel {
    opened(WireFormat::AnthropicMessages, "anthropic/claude-x", fake.settings())
}

/// A short answer.
pub fn hello() -> String {
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ])
}

/// Thinking, text, two calls whose pieces come mixed, and a block nobody knows.
fn rich() -> String {
    let start =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let grow = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        grow(0, json!({"type": "thinking_delta", "thinking": "Let me \"look\" "})),
        grow(0, json!({"type": "thinking_delta", "thinking": "– ü"})),
        grow(0, json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl=="})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, json!({"type": "redacted_thinking", "data": "a1b2", "more": 1.50})),
        start(2, json!({"type": "text", "text": ""})),
        grow(2, json!({"type": "text_delta", "text": "Reading "})),
        grow(2, json!({"type": "text_delta", "text": "both."})),
        start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}})),
        start(4, json!({"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}})),
        grow(3, piece("")),
        grow(3, piece("{\"path\": ")),
        grow(4, piece("{\"path\"")),
        grow(3, piece("\"a\" }")),
        grow(4, piece(":\"b")),
        start(5, json!({"type": "tool_use", "id": "toolu_3", "name": "write", "input": {}})),
        start(6, json!({"type": "server_tool_use", "id": "s1", "name": "web", "input": {}})),
        grow(6, piece("{\"q\":1.0}")),
        json!({"type": "something_new", "index": 9}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 77}}),
        json!({"type": "message_stop"}),
    ])
}

#[tokio::test]
async fn thinking_text_and_parallel_calls_come_whole_and_in_order() {
    let fake = Fake::start([Reply::stream(&rich())]).await;
    let asked = ask(&model(&fake), &said("go")).await;
    assert_eq!(
        asked.heard,
        HeardAll {
            text: "Reading both.".to_owned(),
            thinking: "Let me \"look\" – ü".to_owned(),
            calls: vec!["read".to_owned(), "read".to_owned(), "write".to_owned()],
        }
    );
    let answer = asked.answer();
    let opaque = |raw: &str| AnswerPart::Opaque(Opaque::new("anthropic_messages", raw));
    assert_eq!(
        of_anybody(&answer.parts),
        vec![
            opaque(r#"{"type":"thinking","thinking":"Let me \"look\" – ü","signature":"c2lnbmF0dXJl=="}"#),
            opaque(r#"{"type":"redacted_thinking","data":"a1b2","more":1.5}"#),
            AnswerPart::Text("Reading both.".to_owned()),
            call("toolu_1", "read", "{\"path\": \"a\" }"),
            call("toolu_2", "read", "{\"path\":\"b"),
            call("toolu_3", "write", "{}"),
            opaque(r#"{"type":"server_tool_use","id":"s1","name":"web","input":{"q":1.0}}"#),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.usage, Some(Usage { input: 10, output: 77, cache_read: 200, cache_write: 30 }));
    assert_eq!(answer.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn a_block_that_comes_in_one_piece_is_kept_to_the_byte() {
    let raw = r#"{ "type" : "redacted_thinking",  "data":"\u0061b/\/c", "n": 1.50e0 }"#;
    // Before the text: thinking at the end of an answer is not sent back.
    let stream = hello().replace("\"index\":0", "\"index\":8").replacen(
        "event: content_block_stop",
        &format!("data: {{\"type\":\"content_block_start\",\"index\":7,\"content_block\":{raw}}}\n\nevent: content_block_stop"),
        1,
    );
    let fake = Fake::start([Reply::stream(&stream), Reply::stream(&hello())]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let answer = ask(&model, &talk).await.answer();
    assert!(of_anybody(&answer.parts).contains(&AnswerPart::Opaque(Opaque::new(model.wire(), raw))));
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    ask(&model, &talk).await.answer();
    assert!(fake.seen()[1].body.contains(raw), "and sent back so: {}", fake.seen()[1].body);
}

#[tokio::test]
async fn check_6_3_a_request_is_written_in_order_with_cache_marks_and_its_messages_last() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    ask(&model(&fake), &said("go")).await.answer();
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/v1/messages");
    assert_eq!(seen.headers["x-api-key"], KEY);
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let expected = [
        r#"{"model":"claude-x","max_tokens":1000,"stream":true,"cache_control":{"type":"ephemeral"},"#,
        r#""tools":[{"name":"read","description":"the tool read","input_schema":"#,
        schema,
        r#"},{"name":"write","description":"the tool write","input_schema":"#,
        schema,
        r#","cache_control":{"type":"ephemeral"}}],"#,
        r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"go"}]}]}"#,
    ];
    assert_eq!(seen.body, expected.concat());
}

#[tokio::test]
async fn everything_goes_back_as_the_providers_own_blocks() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    ask(&model(&fake), &long_talk(&fake)).await.answer();
    let body: Value = serde_json::from_str(&fake.seen()[0].body).expect("JSON");
    let messages = &body["messages"];
    let id = messages[1]["content"][3]["id"].as_str().expect("an id").to_owned();
    assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') && id != "b:2");
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "text", "text": "see"},
            {"type": "tool_use", "id": "a", "name": "read", "input": {"path": 1.0}},
            {"type": "tool_use", "id": id, "name": "no_such_tool", "input": {"unparsed_arguments": "{\"path\""}},
        ])
    );
    assert_eq!(
        messages[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [
                {"type": "text", "text": "ok"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"}},
            ], "is_error": false},
            {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": "(no output)"}], "is_error": true},
            {"type": "text", "text": "and"},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"}},
            {"type": "text", "text": "[left out: an image (image/tiff, 3 bytes); this model cannot be sent it]"},
        ])
    );
    assert!(fake.seen()[0].body.contains(r#""input":{"path": 1.0}"#), "arguments keep their bytes");
}

#[tokio::test]
async fn results_come_first_and_a_failed_one_holds_nothing_but_text() {
    let image = || Media { kind: MediaKind::Image, mime: "image/png".to_owned(), bytes: Arc::from(*b"img") };
    let result = |id: &str, is_error: bool| {
        let parts = vec![ResultPart::Text("x".to_owned()), ResultPart::Media(image())];
        UserPart::Result(ToolResult { call_id: id.to_owned(), name: "read".to_owned(), is_error, parts })
    };
    let mut talk = said("go");
    talk.push(Message::Assistant(vec![call("a", "read", "{}"), call("b", "read", "{}")]));
    talk.push(Message::User(vec![UserPart::Text("note".to_owned()), result("a", true), result("b", false)]));
    let fake = Fake::start([Reply::stream(&hello())]).await;
    ask(&model(&fake), &talk).await.answer();
    let body: Value = serde_json::from_str(&fake.seen()[0].body).expect("JSON");
    let text = |text: &str| json!({"type": "text", "text": text});
    let shown = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1n"}});
    let result = |id: &str, is_error: bool, last: Value| json!({"type": "tool_result", "tool_use_id": id, "content": [text("x"), last], "is_error": is_error});
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            result("a", true, text("[shown after the results]")),
            result("b", false, shown.clone()),
            text("note"),
            text("[from the result of read (a)]"),
            shown,
        ])
    );
}

#[tokio::test]
async fn check_6_3_request_n_plus_1_begins_with_the_bytes_of_request_n() {
    shares_its_prefix(model, &hello(), r#""tool_choice":{"type":"none"}"#).await;
}

#[tokio::test]
async fn stop_reasons_are_told_apart() {
    let cases = [
        ("end_turn", Stop::EndTurn),
        ("stop_sequence", Stop::EndTurn),
        ("max_tokens", Stop::MaxTokens),
        ("model_context_window_exceeded", Stop::Other("model_context_window_exceeded".to_owned())),
        ("refusal", Stop::Refusal),
        ("pause_turn", Stop::Other("pause_turn".to_owned())),
    ];
    let fake = Fake::start(cases.iter().map(|(word, _)| Reply::stream(&hello().replace("end_turn", word)))).await;
    let model = model(&fake);
    for (word, stop) in cases {
        assert_eq!(ask(&model, &said("go")).await.answer().stop, stop, "{word}");
    }
}

#[tokio::test]
async fn a_call_cut_off_before_its_arguments_is_no_call_without_arguments() {
    let cut = |stop: &str| {
        events(&[
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "read", "input": {}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": stop}}),
            json!({"type": "message_stop"}),
        ])
    };
    let fake = Fake::start([Reply::stream(&cut("max_tokens")), Reply::stream(&cut("tool_use"))]).await;
    let model = model(&fake);
    for arguments in ["", "{}"] {
        let answer = ask(&model, &said("go")).await.answer();
        assert_eq!(answer.calls().map(|call| call.arguments.as_str()).collect::<Vec<_>>(), [arguments]);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let whole = json!({
        "type": "message",
        "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let fake = Fake::start([Reply::json(200, &whole.to_string()), Reply::json(200, error)]).await;
    let model = model(&fake);
    let asked = ask(&model, &said("go")).await;
    assert_eq!(asked.heard.text, "hi");
    let answer = asked.answer();
    assert_eq!(answer.text(), "hi");
    assert_eq!(answer.calls().next().map(|call| call.arguments.as_str()), Some(r#"{"path":"a"}"#));
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::Overloaded);
}

#[tokio::test]
async fn repeated_ids_become_ids_of_their_own() {
    let twice = rich().replace("toolu_2", "toolu_1");
    let fake = Fake::start([Reply::stream(&twice), Reply::stream(&twice)]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let first = ask(&model, &talk).await.answer();
    assert_eq!(first.warnings.len(), 1, "{:?}", first.warnings);
    let mut ids: Vec<String> = first.calls().map(|call| call.id.clone()).collect();
    assert_eq!((ids[0].as_str(), ids[2].as_str()), ("toolu_1", "toolu_3"));
    talk.push(Message::Assistant(first.parts));
    talk.push(Message::User(vec![UserPart::Text("again".to_owned())]));
    let second = ask(&model, &talk).await.answer();
    ids.extend(second.calls().map(|call| call.id.clone()));
    let unique: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), 6, "no id of the conversation is used twice: {ids:?}");
}

#[tokio::test]
async fn a_menu_that_does_not_fit_is_never_sent() {
    let fake = Fake::start([]).await;
    let model = model(&fake);
    let talk = said("go");
    let request = portcullis_model::Request {
        system: "",
        tools: Arc::from([tool("fs.read")]),
        tools_off: false,
        conversation: &talk,
        max_output_tokens: 10,
    };
    let error = model.ask(&request, &|_| {}).await.expect_err("a dot");
    assert_eq!(error.failure, Failure::Unfit);
    assert!(error.message.contains("anthropic/claude-x") && error.message.contains("`fs.read`"), "{}", error.message);
    let any_of = ToolSpec { input_schema: json!({"type": "object", "anyOf": []}), ..tool("x") };
    assert!(model.fits(&[any_of]).is_err());
    assert!(model.fits(&[tool(&"n".repeat(128))]).is_ok() && model.fits(&[tool(&"n".repeat(129))]).is_err());
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn config_is_looked_at_before_anything_is_sent() {
    tls();
    let open = |settings| {
        let name = "anthropic/claude-x".parse().expect("a name");
        HttpModel::new(WireFormat::AnthropicMessages, name, settings)
    };
    let mut no_key = settings();
    no_key.key = None;
    let error = open(no_key).expect_err("no key");
    assert_eq!(error.failure, Failure::Config);
    assert!(error.message.contains("ANTHROPIC_API_KEY"), "{}", error.message);
    let mut odd = settings();
    odd.key = Some(portcullis_secret::SecretText::new("sk-line\nbreak-secret"));
    let error = open(odd).expect_err("a line break");
    assert!(!error.message.contains("secret"), "{}", error.message);
    let mut own = settings();
    own.extra.insert("messages".to_owned(), json!([]));
    assert_eq!(open(own).expect_err("a field of ours").failure, Failure::Config);
    let model = open(settings()).expect("a model");
    assert!(!format!("{model:?} {:?}", settings()).contains(KEY));
}

#[tokio::test]
async fn extra_fields_go_before_the_messages() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    let mut settings = fake.settings();
    settings.base_url = Some(format!("{}/v1/", fake.url));
    settings.extra.insert("thinking".to_owned(), json!({"type": "adaptive"}));
    let model = opened(WireFormat::AnthropicMessages, "anthropic/claude-x", settings);
    ask(&model, &said("go")).await.answer();
    assert_eq!(fake.seen()[0].path, "/v1/messages", "/v1 in the address is not doubled");
    assert!(fake.seen()[0].body.contains(r#""thinking":{"type":"adaptive"},"tools""#));
}

#[tokio::test]
async fn a_window_that_is_full_is_told_as_such_and_an_answer_without_room_is_an_overflow() {
    let full = hello().replace("end_turn", "model_context_window_exceeded");
    let silent = events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}),
        json!({"type": "message_stop"}),
    ]);
    let fake = Fake::start([Reply::stream(&full), Reply::stream(&silent)]).await;
    let model = model(&fake);
    let answer = ask(&model, &said("go")).await.answer();
    assert!(answer.warnings.concat().contains("it is the conversation that is too long"), "{:?}", answer.warnings);
    assert_ne!(answer.stop, Stop::MaxTokens, "to raise the limit of one answer would not help");
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::ContextOverflow);
}
