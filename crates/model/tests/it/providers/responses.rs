//! OpenAI Responses.

use portcullis_model::{AnswerPart, Failure, HttpModel, Message, Opaque, Stop, Usage, UserPart, WireFormat};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, HeardAll, KEY, Reply, ask, events, opened, said};
use crate::providers::talk::{call, long_talk, of_anybody, shares_its_prefix};

pub fn model(fake: &Fake) -> HttpModel {
    opened(WireFormat::OpenAiResponses, "openai/gpt-x", fake.settings())
}

pub fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// The items as events, and the end.
pub fn stream(items: &[Value], status: &str, more: Value) -> String {
    let mut all = vec![json!({"type": "response.created", "response": {"status": "in_progress", "output": []}})];
    for (index, item) in items.iter().enumerate() {
        all.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        all.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let mut response = json!({"status": status, "output": items, "usage": {"input_tokens": 50, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 40}}});
    for (name, value) in more.as_object().expect("an object") {
        response[name] = value.clone();
    }
    all.push(json!({"type": format!("response.{status}"), "response": response}));
    events(&all)
}

pub fn hello() -> String {
    stream(&[message("hello")], "completed", json!({}))
}

fn opaque(raw: &str) -> AnswerPart {
    AnswerPart::Opaque(Opaque::new("openai_responses", raw))
}

#[tokio::test]
async fn reasoning_text_and_parallel_calls_come_whole_and_in_order() {
    let reasoning = r#"{"type":"reasoning", "id":"rs_1","summary":[ ],"encrypted_content":"gAAA\/\u0061=="}"#;
    let function = |id: &str, arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": "read", "arguments": arguments});
    let mut said_first = message("Reading both.");
    said_first["phase"] = json!("commentary");
    let items = [
        json!("REASONING"),
        said_first,
        function("call_a", "{\"path\": \"x\" }"),
        function("call_b", "{\"path\":"),
        json!({"type": "web_search_call", "id": "ws", "status": "completed"}),
    ];
    let text = stream(&items, "completed", json!({})).replace("\"REASONING\"", reasoning);
    let deltas = events(&[
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Let me look."}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Reading both."}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{"}),
        json!({"type": "response.something_new"}),
    ]);
    let fake = Fake::start([Reply::stream(&format!("{deltas}{text}")), Reply::stream(&hello())]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let asked = ask(&model, &talk).await;
    let heard = HeardAll::of("Reading both.", "Let me look.", &["read", "read"]);
    assert_eq!(asked.heard, heard);
    let answer = asked.answer();
    assert_eq!(
        of_anybody(&answer.parts),
        vec![
            opaque(reasoning),
            opaque(r#"{"phase_of_next_text":"commentary"}"#),
            AnswerPart::Text("Reading both.".to_owned()),
            call("call_a", "read", "{\"path\": \"x\" }"),
            call("call_b", "read", "{\"path\":"),
            opaque(r#"{"type":"web_search_call","id":"ws","status":"completed"}"#),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.usage, Some(Usage { input: 10, output: 7, cache_read: 40, cache_write: 0 }));

    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    ask(&model, &talk).await.answer();
    let body = &fake.seen()[1].body;
    assert!(body.contains(&format!(",{reasoning},")), "to the byte: {body}");
    assert!(body.contains(r#""phase":"commentary""#));
}

#[tokio::test]
async fn check_6_3_a_request_is_written_in_order_with_its_input_last() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    let answer = ask(&model(&fake), &said("go")).await.answer();
    assert_eq!((answer.text().as_str(), answer.stop), ("hello", Stop::EndTurn));
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/v1/responses");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let function = |name: &str| {
        format!(
            r#"{{"type":"function","name":"{name}","description":"the tool {name}","parameters":{schema},"strict":false}}"#
        )
    };
    let expected = format!(
        r#"{{"model":"gpt-x","store":false,"stream":true,"include":["reasoning.encrypted_content"],"max_output_tokens":1000,"tools":[{},{}],"instructions":"Be brief.","input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"go"}}]}}]}}"#,
        function("read"),
        function("write")
    );
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn everything_goes_back_as_items() {
    let fake = Fake::start([Reply::stream(&hello())]).await;
    ask(&model(&fake), &long_talk(&fake)).await.answer();
    let body: Value = serde_json::from_str(&fake.seen()[0].body).expect("JSON");
    let input = body["input"].as_array().expect("items");
    let id = input[5]["call_id"].clone();
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let expected = [
        json!({"type": "message", "role": "user", "content": [text("go")]}),
        json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "eA=="}),
        json!({"type": "message", "role": "assistant", "content": " \n", "phase": "commentary"}),
        json!({"type": "message", "role": "assistant", "content": "see"}),
        json!({"type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"path\": 1.0}"}),
        json!({"type": "function_call", "call_id": id, "name": "no_such_tool", "arguments": "{\"unparsed_arguments\":\"{\\\"path\\\"\"}"}),
        json!({"type": "function_call_output", "call_id": "a", "output": [text("ok"), {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aW1n"}]}),
        json!({"type": "function_call_output", "call_id": id, "output": "[the call failed]\n(no output)"}),
        json!({"type": "message", "role": "user", "content": [
            text("and"),
            {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,cGRm"},
            text("[left out: an image (image/tiff, 3 bytes); this model cannot be sent it]"),
        ]}),
    ];
    assert_eq!(input, &expected, "a reasoning item without its content is left out");
}

#[tokio::test]
async fn check_6_3_request_n_plus_1_begins_with_the_bytes_of_request_n() {
    shares_its_prefix(model, &hello(), r#""tool_choice":"none""#).await;
}

#[tokio::test]
async fn stop_reasons_are_told_apart() {
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let why = |reason: &str| json!({"incomplete_details": {"reason": reason}});
    let cases = [
        (stream(&[message("x")], "incomplete", why("max_output_tokens")), Stop::MaxTokens),
        (stream(&[message("x")], "incomplete", why("content_filter")), Stop::Refusal),
        (stream(&[message("x")], "incomplete", why("odd")), Stop::Other("odd".to_owned())),
        (stream(&[refusal], "completed", json!({})), Stop::Refusal),
    ];
    let fake = Fake::start(cases.iter().map(|(text, _)| Reply::stream(text))).await;
    let model = model(&fake);
    for (_, stop) in cases {
        assert_eq!(ask(&model, &said("go")).await.answer().stop, stop);
    }
}

#[tokio::test]
async fn check_5_7_failures_in_the_stream_have_their_class() {
    let failed =
        |code: &str, message: &str| stream(&[], "failed", json!({"error": {"code": code, "message": message}}));
    let cut = hello().split("event: response.completed").next().expect("a half").to_owned();
    let cases = [
        (failed("server_error", "boom"), Failure::Server),
        (failed("rate_limit_exceeded", "slow"), Failure::RateLimited),
        (failed("context_length_exceeded", "long"), Failure::ContextOverflow),
        (failed("insufficient_quota", "pay"), Failure::Auth),
        (failed("invalid_prompt", "no"), Failure::BadRequest),
        (stream(&[], "failed", json!({})), Failure::Server),
        (
            events(&[json!({"type": "error", "code": "server_error", "message": "boom", "param": null})]),
            Failure::Server,
        ),
        (cut, Failure::CutOff),
    ];
    let fake = Fake::start(cases.iter().map(|(text, _)| Reply::stream(text))).await;
    let model = model(&fake);
    for (text, failure) in cases {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, failure, "{text}: {}", error.message);
    }
}

#[tokio::test]
async fn a_model_without_reasoning_is_asked_without_it() {
    let refused = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}"#;
    let fake = Fake::start([Reply::json(400, refused), Reply::stream(&hello()), Reply::stream(&hello())]).await;
    let model = model(&fake);
    for _ in 0..2 {
        assert_eq!(ask(&model, &said("go")).await.answer().text(), "hello");
    }
    let asked: Vec<bool> = fake.seen().iter().map(|seen| seen.body.contains("encrypted_content")).collect();
    assert_eq!(asked, [true, false, false], "and it is remembered");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let function = json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": {"p": 1}});
    let whole = json!({"status": "completed", "output": [message("hi"), function], "error": null});
    let fake = Fake::start([Reply::json(200, &whole.to_string()), Reply::json(200, "{}")]).await;
    let model = model(&fake);
    let asked = ask(&model, &said("go")).await;
    assert_eq!((asked.heard.text.as_str(), asked.heard.calls.len()), ("hi", 1));
    let answer = asked.answer();
    assert_eq!(answer.parts, vec![AnswerPart::Text("hi".to_owned()), call("c", "read", "{\"p\":1}")]);
    assert!(answer.usage.is_none() && answer.warnings.iter().any(|warning| warning.contains("did not count")));
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::InvalidResponse);
}

/// Some servers send deltas, some only what is whole, and most send both.
#[tokio::test]
async fn text_is_heard_once_however_it_comes() {
    let delta = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
    let part = |text: &str| json!({"type": "response.output_text.done", "output_index": 0, "text": text});
    let item = |place: u64, text: &str| json!({"type": "response.output_item.done", "output_index": place, "item": message(text)});
    let refusal = json!({"type": "response.refusal.done", "output_index": 0, "refusal": "hello there"});
    let end = |output: &[&str]| {
        let output: Vec<Value> = output.iter().map(|text| message(text)).collect();
        json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": {}}})
    };
    let whole = "hello there";
    let unplaced = |text: &str| json!({"type": "response.output_item.done", "item": message(text)});
    let cases = [
        vec![item(0, whole), end(&[])],
        vec![unplaced("hello "), unplaced("there"), end(&["hello ", "there"])],
        vec![unplaced("hello "), unplaced("there"), end(&[])],
        vec![unplaced(whole), end(&["", whole])],
        vec![part(whole), end(&[])],
        vec![end(&[whole])],
        vec![refusal, end(&[])],
        vec![delta("hello "), delta("there"), end(&[])],
        vec![delta("hello "), delta("there"), part(whole), item(0, whole), end(&[whole])],
        // A piece was left out, a part has no pieces, a part comes late.
        vec![delta("hel"), part(whole), item(0, whole), end(&[whole])],
        vec![delta("hel"), end(&[whole])],
        vec![delta("hello "), part("hello "), part("there"), item(0, whole), end(&[whole])],
        vec![item(0, whole), part(whole), end(&[whole])],
        // Two items, the second with and without pieces of its own; and all pieces first.
        vec![delta("hello "), item(0, "hello "), item(1, "there"), end(&["hello ", "there"])],
        vec![item(0, "hello "), delta("there"), part("there"), item(1, "there"), end(&["hello ", "there"])],
        vec![
            delta("hello "),
            delta("there"),
            part("hello "),
            part("there"),
            item(0, "hello "),
            end(&["hello ", "there"]),
        ],
        // The same words twice.
        vec![delta("hello there"), item(0, "hello "), end(&["hello ", "there"])],
    ];
    let fake = Fake::start(cases.iter().map(|case| Reply::stream(&events(case)))).await;
    let model = model(&fake);
    for case in cases {
        let asked = ask(&model, &said("go")).await;
        assert_eq!(asked.heard.text, whole, "{case:?}");
        assert_eq!(asked.answer().text(), whole, "{case:?}");
    }
}

#[tokio::test]
async fn a_call_is_heard_once_however_it_comes() {
    let function = json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"});
    let of = |kind: &str| json!({"type": kind, "output_index": 0, "item": function});
    let end =
        json!({"type": "response.completed", "response": {"status": "completed", "output": [function], "usage": {}}});
    let (added, done) = (of("response.output_item.added"), of("response.output_item.done"));
    let cases =
        [vec![added.clone(), done.clone(), end.clone()], vec![done, end.clone()], vec![added, end.clone()], vec![end]];
    let fake = Fake::start(cases.iter().map(|case| Reply::stream(&events(case)))).await;
    let model = model(&fake);
    for case in cases {
        assert_eq!(ask(&model, &said("go")).await.heard.calls, ["read"], "{case:?}");
    }
}
