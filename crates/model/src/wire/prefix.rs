//! Request n+1 begins with the bytes of request n, whatever is said (a property of every adapter, agent-runtime 6.3).

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

use super::{MediaSending, Origin};
use crate::adapter;
use crate::protocol::{Endpoint, Protocol, Quirks, Style};
use crate::{
    AnswerPart, Call, Conversation, Media, MediaKind, Message, Request, ResultPart, ToolResult, ToolSpec, UserPart,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \n]{1,3}", "[a-z\"\\\\{}<ü🦀\u{0}\n]{1,12}"]
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![Just("{}".to_owned()), Just("{\"a\": [1.0, null]}".to_owned()), Just("[1]".to_owned()), text()]
}

fn media() -> impl Strategy<Value = Media> {
    let kinds = prop_oneof![
        Just((MediaKind::Image, "image/png")),
        Just((MediaKind::Image, "image/x-odd")),
        Just((MediaKind::Pdf, "application/pdf")),
    ];
    (kinds, prop::collection::vec(any::<u8>(), 0..5)).prop_map(|((kind, mime), bytes)| Media {
        kind,
        mime: mime.to_owned(),
        bytes: Arc::from(bytes),
    })
}

fn opaque() -> impl Strategy<Value = AnswerPart> {
    let wire = prop_oneof![
        Just("anthropic_messages"),
        Just("openai_chat"),
        Just("openai_responses"),
        Just("gemini"),
        Just("other")
    ];
    let raw = prop_oneof![
        Just(r#"{"type":"thinking","thinking":"t","signature":"s"}"#),
        Just(r#"{"type":"thinking","thinking":"t","signature":""}"#),
        Just(r#"{"type":"reasoning","encrypted_content":"x"}"#),
        Just(r#"{"type":"other"}"#),
        Just(r#"{"text":"t","thought":true}"#),
        Just(r#"{"reasoning_content":"r"}"#),
        Just(r#"{"phase_of_next_text":"p"}"#),
        Just(r#"{"thoughtSignature":"s"}"#),
        Just(r#"{"broken""#),
    ];
    (wire, raw).prop_map(|(wire, raw)| origin(wire).opaque(raw))
}

fn message() -> impl Strategy<Value = Message> {
    let call =
        (text(), text(), arguments()).prop_map(|(id, name, arguments)| AnswerPart::Call(Call { id, name, arguments }));
    let answer = prop_oneof![text().prop_map(AnswerPart::Text), call, opaque()];
    let piece = prop_oneof![text().prop_map(ResultPart::Text), media().prop_map(ResultPart::Media)];
    let result = (text(), any::<bool>(), prop::collection::vec(piece, 0..3)).prop_map(|(call_id, is_error, parts)| {
        UserPart::Result(ToolResult { call_id, name: "read".to_owned(), is_error, parts })
    });
    let user = prop_oneof![result, text().prop_map(UserPart::Text), media().prop_map(UserPart::Media)];
    prop_oneof![
        prop::collection::vec(answer, 0..5).prop_map(Message::Assistant),
        prop::collection::vec(user, 0..5).prop_map(Message::User),
    ]
}

/// Whose the opaque parts are.
fn origin(wire: &'static str) -> Origin {
    Origin::new(wire, &"p/m".parse().expect("a name"), "https://host")
}

/// Wants every body to be JSON whose last field has the messages, and to begin with all of the one before but its end.
pub(crate) fn holds(endpoint: &Endpoint, protocol: &dyn Protocol, model: &str, quirks: Quirks) {
    for media in [MediaSending::Yes, MediaSending::No, MediaSending::Refused] {
        let style = Style { origin: origin(endpoint.wire), media, quirks, may_count: true };
        holds_of(endpoint.messages, |request| {
            let head = protocol.head(model, &Map::new(), request, &style);
            adapter::body(endpoint, protocol, head, request, &style)
        });
    }
}

fn holds_of(last: &str, body: impl Fn(&Request<'_>) -> Vec<u8>) {
    let tools: Arc<[ToolSpec]> = Arc::from([ToolSpec {
        name: "read".to_owned(),
        description: "reads".to_owned(),
        input_schema: serde_json::json!({"type": "object"}),
    }]);
    let write = |conversation: &Conversation| {
        let tools = Arc::clone(&tools);
        body(&Request { system: "s", tools, tools_off: false, conversation, max_output_tokens: 9 })
    };
    let test = |messages: Vec<Message>| {
        let mut talk = Conversation::new();
        let mut anew = Conversation::new();
        let mut before: Vec<u8> = Vec::new();
        for message in messages {
            talk.push(message.clone());
            anew.push(message);
            let now = write(&talk);
            let value: Value = serde_json::from_slice(&now).expect("JSON");
            let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
            prop_assert_eq!(keys.last().map(|key| key.as_str()), Some(last));
            let shared = before.strip_suffix(b"]}").unwrap_or_default();
            prop_assert!(now.starts_with(shared), "{}", String::from_utf8_lossy(&now));
            before = now;
        }
        // And it is the same when it is rendered in one go, as after a restart.
        prop_assert!(before.is_empty() || write(&anew) == before);
        Ok(())
    };
    TestRunner::default().run(&prop::collection::vec(message(), 0..6), test).expect("the same beginning");
}
