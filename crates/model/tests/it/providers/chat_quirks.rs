//! What servers that speak Chat Completions do besides: each has a test.

use std::collections::HashSet;
use std::time::Duration;

use portcullis_model::{Answer, AnswerPart, Failure, Message, Stop, UserPart};
use serde_json::{Value, json};

use crate::providers::chat::{chunks, hello, model};
use crate::providers::fake::{Fake, HeardAll, Piece, Reply, ask, said};

async fn answer(stream: &str) -> Answer {
    heard(stream).await.0
}

async fn heard(stream: &str) -> (Answer, HeardAll) {
    let fake = Fake::start([Reply::stream(stream)]).await;
    let asked = ask(&model(&fake), &said("go")).await;
    (asked.answer.expect("an answer"), asked.heard)
}

/// Names and arguments of the calls.
fn called(answer: &Answer) -> Vec<(&str, &str)> {
    answer.calls().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

fn entry(index: u64, id: &str, name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn told(answer: &Answer, word: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.contains(word))
}

#[tokio::test]
async fn one_index_on_all_parallel_calls() {
    let whole = [
        entry(0, "a", "read", json!("{\"p\":1}")),
        entry(0, "b", "read", json!("{\"p\":2}")),
        entry(0, "c", "write", json!("{}")),
    ];
    let with_ids = answer(&chunks(&whole, "tool_calls")).await;
    assert_eq!(called(&with_ids), [("read", "{\"p\":1}"), ("read", "{\"p\":2}"), ("write", "{}")]);
    assert_eq!(with_ids.warnings, Vec::<String>::new());

    let pieces = [
        entry(0, "a", "read", json!("{\"p\"")),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
        entry(0, "b", "read", json!("")),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"p\":2}"}}]}),
    ];
    assert_eq!(called(&answer(&chunks(&pieces, "tool_calls")).await), [("read", "{\"p\":1}"), ("read", "{\"p\":2}")]);

    // The name with every piece is one call, not many.
    let repeated = [entry(0, "a", "read", json!("{\"p\"")), entry(0, "a", "read", json!(":1}"))];
    assert_eq!(called(&answer(&chunks(&repeated, "tool_calls")).await), [("read", "{\"p\":1}")]);
}

#[tokio::test]
async fn missing_ids_and_missing_indexes() {
    let without =
        |name: &str, arguments: &str| json!({"tool_calls": [{"function": {"name": name, "arguments": arguments}}]});
    let deltas = [
        without("read", "{\"p\":1}"),
        without("read", "{\"p\":2}"),
        without("write", "{\"q\""),
        json!({"tool_calls": [{"function": {"arguments": ":3}"}}]}),
    ];
    let answer = answer(&chunks(&deltas, "tool_calls")).await;
    assert_eq!(called(&answer), [("read", "{\"p\":1}"), ("read", "{\"p\":2}"), ("write", "{\"q\":3}")]);
    let ids: HashSet<&str> = answer.calls().map(|call| call.id.as_str()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| id.starts_with("call_")), "{ids:?}");
    assert_eq!(answer.warnings.iter().filter(|warning| warning.contains("without an id")).count(), 3);
}

#[tokio::test]
async fn indexes_that_count_pieces_and_ids_without_indexes() {
    let piece =
        |index: u64, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
    let counted = [entry(0, "a", "read", json!("")), piece(1, "{\"p\""), piece(2, ":1}")];
    assert_eq!(called(&answer(&chunks(&counted, "tool_calls")).await), [("read", "{\"p\":1}")]);

    let mixed = |id: &str, name: Option<&str>, arguments: &str| json!({"tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}}]});
    let mixed = [
        mixed("a", Some("read"), "{\"p\""),
        mixed("b", Some("write"), "{\"q\""),
        mixed("a", None, ":1}"),
        mixed("b", None, ":2}"),
    ];
    assert_eq!(called(&answer(&chunks(&mixed, "tool_calls")).await), [("read", "{\"p\":1}"), ("write", "{\"q\":2}")]);
}

#[tokio::test]
async fn repeated_ids_in_an_answer_and_across_answers() {
    let stream =
        chunks(&[entry(0, "call_0", "read", json!("{}")), entry(1, "call_0", "write", json!("{}"))], "tool_calls");
    let fake = Fake::start([Reply::stream(&stream), Reply::stream(&stream), Reply::stream(&stream)]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = ask(&model, &talk).await.answer();
        assert!(told(&answer, "had been used before"));
        ids.extend(answer.calls().map(|call| call.id.clone()));
        talk.push(Message::Assistant(answer.parts));
        talk.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    }
    assert_eq!(ids[0], "call_0", "the first is kept");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 6, "{ids:?}");
}

#[tokio::test]
async fn arguments_as_an_object_keep_their_text() {
    let stream = chunks(&[entry(0, "a", "read", json!("OBJECT"))], "tool_calls");
    let answer = answer(&stream.replace("\"OBJECT\"", r#"{"path": "x", "n": 1.50}"#)).await;
    assert_eq!(called(&answer), [("read", r#"{"path": "x", "n": 1.50}"#)]);
    let null = self::answer(&chunks(&[entry(0, "a", "read", Value::Null)], "tool_calls")).await;
    assert_eq!(called(&null), [("read", "{}")], "as the conversation shows the model what it called with");
}

#[tokio::test]
async fn stop_with_calls_is_tool_use() {
    let answer = answer(&chunks(&[entry(0, "a", "read", json!("{}"))], "stop")).await;
    assert_eq!((answer.stop.clone(), answer.calls().count()), (Stop::ToolUse, 1));
    assert!(told(&answer, "holds calls"));
}

#[tokio::test]
async fn no_usage_is_told_and_not_guessed() {
    let stream = hello().replace("\"usage\"", "\"unused\"");
    let answer = answer(&stream).await;
    assert_eq!(answer.usage, None);
    assert!(told(&answer, "did not count"));
}

#[tokio::test]
async fn a_server_that_refuses_stream_options_is_asked_without() {
    let refused = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}"#;
    let fake = Fake::start([Reply::json(400, refused), Reply::stream(&hello()), Reply::stream(&hello())]).await;
    let model = model(&fake);
    for _ in 0..2 {
        assert_eq!(ask(&model, &said("go")).await.answer().text(), "hello");
    }
    let asked: Vec<bool> = fake.seen().iter().map(|seen| seen.body.contains("stream_options")).collect();
    assert_eq!(asked, [true, false, false], "and it is remembered");
}

#[tokio::test]
async fn calls_written_as_text_are_told_and_never_calls() {
    let texts = [
        "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        "I read it:\n```json\n{\"name\": \"read\", \"arguments\": {}}\n```",
        "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {}}]",
    ];
    for text in texts {
        let answer = answer(&chunks(&[json!({"content": text})], "stop")).await;
        assert_eq!(answer.calls().count(), 0, "{text}");
        assert_eq!((answer.text().as_str(), answer.stop.clone()), (text, Stop::EndTurn));
        assert!(told(&answer, "it was not run"), "{:?}", answer.warnings);
    }
}

#[tokio::test]
async fn think_in_the_content_is_thinking_and_does_not_go_back() {
    let stream = chunks(
        &[json!({"content": "<th"}), json!({"content": "ink>hm"}), json!({"content": "</think>\n\nyes"})],
        "stop",
    );
    let fake = Fake::start([Reply::stream(&stream), Reply::stream(&hello())]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let asked = ask(&model, &talk).await;
    assert_eq!((asked.heard.thinking.as_str(), asked.heard.text.as_str()), ("hm", "yes"));
    let answer = asked.answer();
    assert_eq!(answer.text(), "yes");
    assert!(matches!(&answer.parts[0], AnswerPart::Opaque(opaque) if opaque.raw.contains("hm")), "it is kept");
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("on".to_owned())]));
    ask(&model, &talk).await.answer();
    assert!(!fake.seen()[1].body.contains("hm") && fake.seen()[1].body.contains("yes"));
}

#[tokio::test]
async fn check_5_7_context_overflow_of_local_servers() {
    let replies = [
        Reply::json(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
        ),
        Reply::json(
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","code":400}"#,
        ),
        Reply::json(500, r#"{"error":{"message":"the input length exceeds the context length","type":"api_error"}}"#),
        Reply::stream(
            "data: {\"error\":{\"message\":\"Trying to keep the first 5000 tokens when context the overflows.\"}}\n\n",
        ),
        Reply::json(
            400,
            r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
    ];
    let fake = Fake::start(replies.clone()).await;
    let model = model(&fake);
    for _ in &replies {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, Failure::ContextOverflow, "{}", error.message);
        assert!(error.message.contains("Shorten the conversation"));
    }
}

#[tokio::test]
async fn a_server_that_ignores_stream_answers_all_the_same() {
    let whole = json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"p\":1}"}},
            {"id": "b", "type": "function", "function": {"name": "read", "arguments": {"p": 2}}},
        ]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    });
    let fake = Fake::start([Reply::json(200, &whole.to_string()), Reply::json(200, "{}")]).await;
    let model = model(&fake);
    let asked = ask(&model, &said("go")).await;
    assert_eq!(asked.heard.text, "hi");
    let answer = asked.answer();
    assert_eq!(called(&answer), [("read", "{\"p\":1}"), ("read", "{\"p\":2}")]);
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::InvalidResponse);
}

#[tokio::test]
async fn a_stream_without_done_is_whole_if_it_says_why_it_stopped() {
    let without = hello().replace("data: [DONE]\n\n", "");
    assert_eq!(answer(&without).await.text(), "hello");
    assert!(answer(&without).await.usage.is_some());

    let half = &without[..without.find("\"stop\"").expect("an end")];
    let half = &half[..half.rfind("data:").expect("a line")];
    let fake = Fake::start([Reply::stream(half)]).await;
    assert_eq!(ask(&model(&fake), &said("go")).await.error().failure, Failure::CutOff, "without either it is not");

    let unsaid = hello().replace("\"stop\"", "null");
    let answer = answer(&unsaid).await;
    assert!(answer.stop == Stop::EndTurn && told(&answer, "does not say why"), "[DONE] alone is an end, too");
}

#[tokio::test]
async fn a_server_that_says_it_stopped_and_never_hangs_up_is_not_waited_for() {
    let without = hello().replace("data: [DONE]\n\n", "");
    let fake = Fake::start([Reply::pieces(vec![Piece::Bytes(without.into_bytes()), Piece::Hang])]).await;
    let asked = tokio::time::timeout(Duration::from_secs(10), ask(&model(&fake), &said("go"))).await.expect("in time");
    assert_eq!(asked.answer().text(), "hello");
}

#[tokio::test]
async fn crlf_comments_pings_nulls_and_split_characters() {
    let stream = chunks(
        &[
            json!({"role": "assistant", "content": null, "tool_calls": null, "refusal": null, "reasoning_content": null}),
            json!({"content": "größer 🦀"}),
            json!({"content": null}),
        ],
        "stop",
    );
    let stream = format!(": ping\n\n\n: OPENROUTER PROCESSING\n\n{stream}").replace('\n', "\r\n");
    let bytes = stream.into_bytes();
    for size in [1, 2, 3, 7] {
        let pieces = bytes.chunks(size).map(|piece| Piece::Bytes(piece.to_vec())).collect();
        let fake = Fake::start([Reply::pieces(pieces)]).await;
        let asked = ask(&model(&fake), &said("go")).await;
        assert_eq!(asked.heard.text, "größer 🦀", "pieces of {size}");
        assert_eq!(asked.answer().text(), "größer 🦀");
    }
}

#[tokio::test]
async fn an_error_in_a_chunk_is_the_servers_error() {
    let begun = &hello()[..60];
    let cases = [
        (r#"{"error":{"message":"slow down","code":429}}"#, Failure::RateLimited),
        (r#"{"error":{"message":"boom","type":"server_error"}}"#, Failure::Server),
        (r#"{"error":"llama runner process has terminated"}"#, Failure::Server),
    ];
    for (data, failure) in cases {
        let first = begun.rfind("data:").unwrap_or(0);
        let fake = Fake::start([Reply::stream(&format!("{}data: {data}\n\n", &begun[..first]))]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert_eq!(error.failure, failure, "{}", error.message);
    }
}

#[tokio::test]
async fn an_answer_that_the_server_broke_off_is_no_answer() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write", "arguments": "{}"}}]});
    for (finish, failure) in [
        ("error", Failure::Server),
        ("network_error", Failure::Server),
        ("insufficient_system_resource", Failure::Overloaded),
    ] {
        let fake = Fake::start([Reply::stream(&chunks(std::slice::from_ref(&call), finish))]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert!(error.failure == failure && error.message.contains(finish), "{error}");
    }
}
