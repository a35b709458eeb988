//! What single servers of Chat Completions want or write, as they are known for it.

use portcullis_model::{
    Answer, Call, Conversation, Failure, HttpModel, Message, ResultPart, Stop, ToolResult, UserPart,
};
use serde_json::{Value, json};

use crate::providers::chat::{chunks, hello, model};
use crate::providers::fake::{Fake, Reply, ask, said};

fn body(fake: &Fake, n: usize) -> Value {
    serde_json::from_str(&fake.seen()[n].body).expect("JSON")
}

async fn answer(stream: &str) -> Answer {
    let fake = Fake::start([Reply::stream(stream)]).await;
    ask(&model(&fake), &said("go")).await.answer()
}

fn calls(answer: &Answer) -> Vec<Call> {
    answer.calls().cloned().collect()
}

fn entry(fields: Value) -> Value {
    json!({ "tool_calls": [fields] })
}

/// Asks twice: the first answer calls, and its calls get results.
async fn after_a_call(replies: Vec<Reply>) -> (Fake, HttpModel, Conversation) {
    let fake = Fake::start(replies).await;
    let model = model(&fake);
    let mut talk = said("go");
    let first = ask(&model, &talk).await.answer();
    let result = |call: &Call| {
        let parts = vec![ResultPart::Text("ok".to_owned())];
        UserPart::Result(ToolResult { call_id: call.id.clone(), name: call.name.clone(), is_error: false, parts })
    };
    let results = first.calls().map(result).collect();
    talk.push(Message::Assistant(first.parts));
    talk.push(Message::User(results));
    (fake, model, talk)
}

#[tokio::test]
async fn llama_cpp_an_error_in_a_field_of_its_own_is_its_error() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let error = "error: {\"code\":400,\"message\":\"the request exceeds the available context size, try increasing it\",\"type\":\"exceed_context_size_error\"}\n\ndata: [DONE]\n\n";
    for stream in [error.to_owned(), format!("{begun}{error}")] {
        let fake = Fake::start([Reply::stream(&stream)]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert_eq!(error.failure, Failure::ContextOverflow, "{error}");
        assert!(error.message.contains("available context size"), "{error}");
    }
    let odd = format!("{begun}x-trace: 1\n\n{}", chunks(&[json!({"content": "b"})], "stop"));
    assert_eq!(answer(&odd).await.text(), "ab", "a line that nobody knows is ignored");
}

#[tokio::test]
async fn a_server_that_wants_the_other_name_for_the_limit_gets_it_from_then_on() {
    let refusal = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}});
    let refusal = Reply::json(400, &refusal.to_string());
    let fake = Fake::start([refusal.clone(), Reply::stream(&hello()), Reply::stream(&hello()), refusal.clone()]).await;
    let model = model(&fake);
    ask(&model, &said("go")).await.answer();
    ask(&model, &said("go")).await.answer();
    let limits = |n: usize| {
        let body = body(&fake, n);
        (body["max_tokens"].as_u64(), body["max_completion_tokens"].as_u64())
    };
    assert_eq!([limits(0), limits(1), limits(2)], [(Some(1_000), None), (None, Some(1_000)), (None, Some(1_000))]);
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::BadRequest, "not to and fro");
}

#[tokio::test]
async fn gemini_behind_this_protocol_gets_the_signature_of_its_call_back() {
    let extra = json!({"google": {"thought_signature": "c2ln+/="}});
    let first =
        entry(json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}, "extra_content": extra}));
    let second = entry(json!({"index": 1, "id": "b", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}}));
    let replies = vec![Reply::stream(&chunks(&[first, second], "tool_calls")), Reply::stream(&hello())];
    let (fake, model, talk) = after_a_call(replies).await;
    ask(&model, &talk).await.answer();
    let sent = body(&fake, 1)["messages"][2]["tool_calls"].clone();
    assert_eq!((&sent[0]["extra_content"], &sent[1].get("extra_content")), (&extra, &None), "{sent}");
}

#[tokio::test]
async fn a_routers_reasoning_goes_back_in_one_piece_with_its_signature() {
    let piece = |fields: Value| {
        let mut detail = json!({"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"});
        detail.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        json!({ "reasoning_details": [detail] })
    };
    let deltas = [
        piece(json!({"text": "Let me "})),
        piece(json!({"text": "look."})),
        piece(json!({"text": null, "signature": "c2ln"})),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "eA=="}]}),
        entry(json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}})),
    ];
    let upstream = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}});
    let refusal = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": upstream.to_string(), "provider_name": "Anthropic"}}});
    let replies = vec![
        Reply::stream(&chunks(&deltas, "tool_calls")),
        Reply::stream(&hello()),
        Reply::json(400, &refusal.to_string()),
        Reply::stream(&hello()),
    ];
    let (fake, model, talk) = after_a_call(replies).await;
    ask(&model, &talk).await.answer();
    let sent = body(&fake, 1)["messages"][2]["reasoning_details"].clone();
    let whole = json!([
        {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": "Let me look.", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "eA=="},
    ]);
    assert_eq!(sent, whole);
    // If it is refused all the same, whoever says so, the conversation goes on without.
    ask(&model, &talk).await.answer();
    assert!(body(&fake, 3)["messages"][2].get("reasoning_details").is_none());
}

#[tokio::test]
async fn what_a_routers_provider_said_is_told() {
    let refusal = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"error\":{\"message\":\"tools.0: no such thing\"}}"}}});
    let fake = Fake::start([Reply::json(400, &refusal.to_string())]).await;
    let error = ask(&model(&fake), &said("go")).await.error();
    assert!(error.message.contains("tools.0: no such thing"), "{error}");
}

#[tokio::test]
async fn no_arguments_are_an_empty_object_unless_they_were_cut_off() {
    let bare = entry(json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}));
    let whole = answer(&chunks(std::slice::from_ref(&bare), "tool_calls")).await;
    assert_eq!(calls(&whole)[0].arguments, "{}");
    let cut = answer(&chunks(&[bare], "length")).await;
    assert_eq!((calls(&cut)[0].arguments.as_str(), cut.stop), ("", Stop::MaxTokens));
}

#[tokio::test]
async fn an_odd_value_in_a_field_that_nobody_needs_costs_no_answer() {
    let chunk = |index: Value, delta: Value, usage: Value| {
        let chunk =
            json!({"id": 7, "choices": [{"index": index, "delta": delta, "finish_reason": null}], "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let odd = [
        chunk(Value::Null, json!({"content": "a", "reasoning_content": ["x"], "refusal": false}), json!("none")),
        chunk(json!("0"), json!({"content": "b"}), json!({"prompt_tokens": -1, "completion_tokens": 2.0})),
        chunk(json!(0), json!({"content": "c", "reasoning_details": "so"}), json!({"prompt_tokens_details": 3})),
    ];
    let half = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n";
    let number = entry(json!({"index": 0, "id": 12, "function": {"name": "read", "arguments": "{}"}}));
    let end = chunks(&[number], "tool_calls").replace("data: [DONE]", "data: bye\n\ndata: [DONE]");
    let answer = answer(&format!("{}{half}{end}", odd.concat())).await;
    assert_eq!(answer.text(), "abc\u{fffd}");
    assert_eq!(calls(&answer)[0].id, "12");
}

#[tokio::test]
async fn a_name_in_pieces_and_an_object_before_the_object_are_one_call() {
    let piece = |fields: Value| entry(json!({"index": 0, "function": fields}));
    let deltas = [
        entry(json!({"index": 0, "id": "a", "function": {"name": "re", "arguments": ""}})),
        piece(json!({"name": "ad"})),
        piece(json!({"arguments": "{}"})),
        piece(json!({"arguments": "{\"path\":"})),
        piece(json!({"arguments": "\"x\"}"})),
    ];
    let answer = answer(&chunks(&deltas, "tool_calls")).await;
    let made = Call { id: "a".to_owned(), name: "read".to_owned(), arguments: "{\"path\":\"x\"}".to_owned() };
    assert_eq!(calls(&answer), [made]);
}

#[tokio::test]
async fn check_5_7_half_a_document_is_an_answer_that_broke_off() {
    let whole =
        json!({"choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]}).to_string();
    let fake =
        Fake::start([Reply::json(200, &whole[..whole.len() / 2]), Reply::json(200, "{\"choices\": nonsense}")]).await;
    let model = model(&fake);
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::CutOff);
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::InvalidResponse);
}

#[tokio::test]
async fn a_server_that_wants_ids_of_nine_letters_gets_them_and_call_and_result_still_match() {
    let called = entry(json!({"index": 0, "id": "call_abc_1", "function": {"name": "read", "arguments": "{}"}}));
    let refusal = json!({"object": "error", "message": "Tool call id was call_abc_1 but must be a-z, A-Z, 0-9, with a length of 9.", "type": "invalid_function_call", "code": "3280"});
    let replies = vec![
        Reply::stream(&chunks(&[called], "tool_calls")),
        Reply::json(400, &refusal.to_string()),
        Reply::stream(&hello()),
        Reply::stream(&hello()),
    ];
    let (fake, model, talk) = after_a_call(replies).await;
    ask(&model, &talk).await.answer();
    ask(&model, &talk).await.answer();
    for n in [2, 3] {
        let messages = body(&fake, n)["messages"].clone();
        let id = messages[2]["tool_calls"][0]["id"].as_str().expect("an id").to_owned();
        assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
        assert_eq!(messages[3]["tool_call_id"], id);
    }
}

#[tokio::test]
async fn a_call_in_the_older_field_is_a_call() {
    let deltas = [
        json!({"function_call": {"name": "read", "arguments": "{\"path\":"}}),
        json!({"function_call": {"arguments": "\"x\"}"}}),
    ];
    let answer = answer(&chunks(&deltas, "function_call")).await;
    assert_eq!((calls(&answer)[0].arguments.as_str(), answer.stop), ("{\"path\":\"x\"}", Stop::ToolUse));
}
