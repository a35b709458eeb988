//! What a model thought: sent back where it is taken, to whom it belongs, and never so that a conversation ends by it.

use portcullis_model::{Conversation, HttpModel, Message, Model, Stop, UserPart, WireFormat};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, Reply, ask, events, opened, said};
use crate::providers::{anthropic, chat, gemini, responses};

/// What went out last.
fn body(fake: &Fake) -> Value {
    serde_json::from_str(&fake.seen().last().expect("a request").body).expect("JSON")
}

/// The user goes on after an answer.
async fn go_on(model: &dyn Model, talk: &mut Conversation) -> Stop {
    let answer = ask(model, talk).await.answer();
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("go on".to_owned())]));
    answer.stop
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn claude(blocks: &[Value], stop: &str) -> String {
    let mut all = vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}})];
    all.extend((0..).zip(blocks).map(|(index, content)| block(index, content.clone())));
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 8192}}));
    all.push(json!({"type": "message_stop"}));
    events(&all)
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "long", "signature": signature})
}

#[tokio::test]
async fn anthropic_gets_no_thinking_at_the_end_of_an_answer_and_none_without_its_seal() {
    let text = json!({"type": "text", "text": "so"});
    let redacted = json!({"type": "redacted_thinking", "data": "eA=="});
    let no_answer = json!([{"type": "text", "text": "(no answer)"}]);
    let cases = [
        (vec![thinking("")], no_answer.clone()),
        (vec![thinking("c2ln")], no_answer.clone()),
        (vec![json!({"type": "thinking", "thinking": "long"}), redacted.clone()], no_answer),
        (vec![thinking(""), text.clone()], json!([text])),
        (vec![thinking("c2ln"), text.clone()], json!([thinking("c2ln"), text])),
        (vec![thinking("c2ln"), text.clone(), thinking("Mg=="), redacted.clone()], json!([thinking("c2ln"), text])),
        (vec![redacted.clone(), text.clone()], json!([redacted, text])),
    ];
    for (blocks, sent) in cases {
        let stream = claude(&blocks, "max_tokens");
        let fake = Fake::start([Reply::stream(&stream), Reply::stream(&anthropic::hello())]).await;
        let model = anthropic::model(&fake);
        let mut talk = said("go");
        assert_eq!(go_on(&model, &mut talk).await, Stop::MaxTokens);
        let Message::Assistant(kept) = &talk.messages()[1] else { panic!("an answer") };
        assert_eq!(kept.len(), blocks.len(), "the log keeps all of it");
        ask(&model, &talk).await.answer();
        let messages = body(&fake)["messages"].clone();
        assert_eq!(messages[1], json!({"role": "assistant", "content": sent}));
        assert_eq!(messages.as_array().expect("messages").len(), 3);
    }
}

#[tokio::test]
async fn openai_gets_reasoning_only_before_the_item_that_it_led_to() {
    let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "eA=="});
    let why = json!({"incomplete_details": {"reason": "max_output_tokens"}});
    let types = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| item["id"].as_str().or(item["role"].as_str()).expect("one").to_owned()).collect()
    };
    let cases = [
        (vec![reasoning("rs_1")], vec!["user", "assistant", "user"]),
        (vec![reasoning("rs_1"), responses::message("so")], vec!["user", "rs_1", "assistant", "user"]),
        (
            vec![reasoning("rs_1"), responses::message("so"), reasoning("rs_2")],
            vec!["user", "rs_1", "assistant", "user"],
        ),
    ];
    for (items, sent) in cases {
        let stream = responses::stream(&items, "incomplete", why.clone());
        let fake = Fake::start([Reply::stream(&stream), Reply::stream(&responses::hello())]).await;
        let model = responses::model(&fake);
        let mut talk = said("go");
        assert_eq!(go_on(&model, &mut talk).await, Stop::MaxTokens);
        ask(&model, &talk).await.answer();
        let input = body(&fake)["input"].as_array().expect("items").clone();
        assert_eq!(types(&input), sent);
        if items.len() == 1 {
            assert_eq!(input[1]["content"], "(no answer)");
        }
    }
}

#[tokio::test]
async fn thoughts_alone_are_no_answer_for_gemini() {
    let thought = r#"{"text":"long","thought":true}"#;
    let signature = r#"{"text":"","thoughtSignature":"QQ=="}"#;
    let no_answer = json!([{"text": "(no answer)"}]);
    let cases = [
        (vec![thought], no_answer.clone()),
        (vec![thought, signature], no_answer),
        (vec![r#"{"text":"so"}"#, thought], json!([{"text": "so"}])),
        (
            vec![thought, r#"{"text":"so"}"#, signature],
            json!([{"text": "long", "thought": true}, {"text": "so"}, {"text": "", "thoughtSignature": "QQ=="}]),
        ),
    ];
    for (parts, sent) in cases {
        let stream = gemini::chunks(&[&gemini::parts(&parts.join(",")), &gemini::END.replace("STOP", "MAX_TOKENS")]);
        let fake = Fake::start([Reply::stream(&stream), Reply::stream(&gemini::chunks(&[gemini::END]))]).await;
        let model = gemini::model(&fake);
        let mut talk = said("go");
        assert_eq!(go_on(&model, &mut talk).await, Stop::MaxTokens);
        ask(&model, &talk).await.answer();
        let contents = body(&fake)["contents"].clone();
        assert_eq!(contents[1], json!({"role": "model", "parts": sent}));
        assert_eq!(contents.as_array().expect("contents").len(), 3);
    }
}

#[tokio::test]
async fn reasoning_alone_is_no_answer_for_chat() {
    let stream = chat::chunks(&[json!({"reasoning_content": "long"}), json!({"content": ""})], "length");
    let fake = Fake::start([Reply::stream(&stream), Reply::stream(&chat::hello())]).await;
    let model = chat::model(&fake);
    let mut talk = said("go");
    assert_eq!(go_on(&model, &mut talk).await, Stop::MaxTokens);
    ask(&model, &talk).await.answer();
    assert_eq!(body(&fake)["messages"][2], json!({"role": "assistant", "content": "(no answer)"}));
}

/// Two models of a wire format, and a stream that holds `FROM-A` in what only its model understands.
struct Kind {
    format: WireFormat,
    name: &'static str,
    other: &'static str,
    stream: String,
}

impl Kind {
    fn open(&self, fake: &Fake) -> HttpModel {
        opened(self.format, self.name, fake.settings())
    }
}

fn kinds() -> [Kind; 4] {
    let reasoning = responses::stream(
        &[
            json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "FROM-A"}),
            responses::message("hi"),
        ],
        "completed",
        json!({}),
    );
    let called = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]});
    [
        Kind {
            format: WireFormat::AnthropicMessages,
            name: "anthropic/claude-x",
            other: "anthropic/claude-y",
            stream: claude(&[thinking("FROM-A"), json!({"type": "text", "text": "hi"})], "end_turn"),
        },
        Kind { format: WireFormat::OpenAiResponses, name: "openai/gpt-x", other: "openai/gpt-y", stream: reasoning },
        Kind {
            format: WireFormat::OpenAiChat,
            name: "openai-chat/x",
            other: "openai-chat/y",
            stream: chat::chunks(&[json!({"reasoning_content": "FROM-A"}), called], "tool_calls"),
        },
        Kind {
            format: WireFormat::Gemini,
            name: "gemini/gemini-3.6-flash",
            other: "gemini/gemini-3.6-pro",
            stream: gemini::chunks(&[&gemini::parts(r#"{"text":"hi","thoughtSignature":"FROM-A"}"#), gemini::END]),
        },
    ]
}

#[tokio::test]
async fn what_one_model_thought_is_sent_to_no_other_model_and_to_no_other_address() {
    for kind in kinds() {
        let Kind { name, stream, .. } = &kind;
        let a = Fake::start((0..3).map(|_| Reply::stream(stream))).await;
        let b = Fake::start([Reply::stream(stream)]).await;
        let mut talk = said("go");
        go_on(&kind.open(&a), &mut talk).await;
        // The same conversation, so that what was rendered for one is there when the next is asked.
        ask(&kind.open(&a), &talk).await.answer();
        ask(&opened(kind.format, kind.other, a.settings()), &talk).await.answer();
        ask(&kind.open(&b), &talk).await.answer();
        let got: Vec<bool> = a.seen().iter().chain(&b.seen()).map(|seen| seen.body.contains("FROM-A")).collect();
        assert_eq!(got, [false, true, false, false], "{name}: its own, another model, another address");
    }
}

#[tokio::test]
async fn what_an_older_log_does_not_say_whose_it_is_goes_to_nobody() {
    for kind in kinds() {
        let Kind { name, stream, .. } = &kind;
        let fake = Fake::start((0..2).map(|_| Reply::stream(stream))).await;
        let model = kind.open(&fake);
        let answer = ask(&model, &said("go")).await.answer();
        let logged = serde_json::to_string(&answer.parts).expect("JSON");
        assert!(logged.contains("\"from\":") && !logged.contains(&fake.url), "{logged}");
        let mut talk = said("go");
        talk.push(Message::Assistant(crate::providers::talk::of_anybody(&answer.parts)));
        talk.push(Message::User(vec![UserPart::Text("go on".to_owned())]));
        ask(&model, &talk).await.answer();
        assert!(!fake.seen()[1].body.contains("FROM-A"), "{name}");
    }
}

#[tokio::test]
async fn a_conversation_goes_on_without_reasoning_that_its_provider_does_not_take_back() {
    let refusals = [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        r#"{"error":{"message":"The encrypted content for item rs could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}"#,
        r#"{"error":{"message":"messages.2: property 'reasoning_content' is unsupported","type":"invalid_request_error"}}"#,
        r#"{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}"#,
    ];
    for (kind, refusal) in kinds().into_iter().zip(refusals) {
        let Kind { name, stream, .. } = &kind;
        let replies = [Reply::stream(stream), Reply::json(400, refusal), Reply::stream(stream), Reply::stream(stream)];
        let fake = Fake::start(replies).await;
        let model = kind.open(&fake);
        let mut talk = said("go");
        go_on(&model, &mut talk).await;
        go_on(&model, &mut talk).await;
        ask(&model, &talk).await.answer();
        let got: Vec<bool> = fake.seen().iter().map(|seen| seen.body.contains("FROM-A")).collect();
        assert_eq!(got, [false, true, false, false], "{name}: once refused, it is left out of this conversation");
    }
}

#[tokio::test]
async fn a_refusal_of_something_else_is_not_asked_again() {
    for kind in kinds() {
        let Kind { name, stream, .. } = &kind;
        let refused = r#"{"error":{"type":"invalid_request_error","message":"tools.0: bad schema"}}"#;
        let fake = Fake::start([Reply::stream(stream), Reply::json(400, refused)]).await;
        let model = kind.open(&fake);
        let mut talk = said("go");
        go_on(&model, &mut talk).await;
        let error = ask(&model, &talk).await.error();
        assert!(error.message.contains("bad schema") && fake.seen().len() == 2, "{name}: {error}");
    }
}
