//! A conversation with everything in it, and what must hold of every way to send it.

use std::sync::Arc;

use portcullis_base::Digest;
use portcullis_model::{
    AnswerPart, Call, Conversation, HttpModel, Media, MediaKind, Message, Opaque, ResultPart, ToolResult, UserPart,
};

use crate::providers::fake::{Fake, Reply, ask_with, said};

pub fn call(id: &str, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call(Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

/// Parts as they compare where it does not matter whose they are.
pub fn of_anybody(parts: &[AnswerPart]) -> Vec<AnswerPart> {
    let anybodys = |part: &AnswerPart| match part {
        AnswerPart::Opaque(opaque) => AnswerPart::Opaque(Opaque { from: None, ..opaque.clone() }),
        other => other.clone(),
    };
    parts.iter().map(anybodys).collect()
}

/// A conversation with everything in it, as the models of this server have led it.
pub fn long_talk(fake: &Fake) -> Conversation {
    let image = |mime: &str| Media { kind: MediaKind::Image, mime: mime.to_owned(), bytes: Arc::from(*b"img") };
    let pdf = Media { kind: MediaKind::Pdf, mime: "application/pdf".to_owned(), bytes: Arc::from(*b"pdf") };
    let opaque = |wire: &str, raw: &str| {
        let (name, path) = match wire {
            "anthropic_messages" => ("anthropic/claude-x", ""),
            "openai_responses" => ("openai/gpt-x", "/v1"),
            _ => ("openai-chat/m", "/v1"),
        };
        let from = format!("{name}@{:.12}", Digest::of(format!("{}{path}", fake.url).as_bytes()));
        AnswerPart::Opaque(Opaque { from: Some(from), ..Opaque::new(wire, raw) })
    };
    let result = |id: &str, is_error: bool, parts: Vec<ResultPart>| {
        UserPart::Result(ToolResult { call_id: id.to_owned(), name: "read".to_owned(), is_error, parts })
    };
    let mut talk = said("go");
    talk.push(Message::Assistant(vec![
        opaque("anthropic_messages", r#"{"type":"thinking","thinking":"t","signature":"s"}"#),
        opaque("openai_responses", r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"eA=="}"#),
        opaque("openai_responses", r#"{"type":"reasoning","id":"rs_bare","encrypted_content":null}"#),
        opaque("openai_responses", r#"{"phase_of_next_text":"commentary"}"#),
        opaque("openai_chat", r#"{"reasoning_content":"r"}"#),
        opaque("openai_chat", r#"{"inline_thinking":"never again"}"#),
        AnswerPart::Text(" \n".to_owned()),
        AnswerPart::Text("see".to_owned()),
        call("a", "read", "{\"path\": 1.0}"),
        call("b:2", "no such/tool", "{\"path\""),
    ]));
    talk.push(Message::User(vec![
        result("a", false, vec![ResultPart::Text("ok".to_owned()), ResultPart::Media(image("image/png"))]),
        result("b:2", true, Vec::new()),
        UserPart::Text("and".to_owned()),
        UserPart::Media(pdf),
        UserPart::Media(image("image/tiff")),
    ]));
    talk
}

/// Request n+1 begins with the bytes of request n; `off` is what switches the tools off, after the messages.
pub async fn shares_its_prefix(model: impl Fn(&Fake) -> HttpModel, answer: &str, off: &str) {
    let fake = Fake::start((0..6).map(|_| Reply::stream(answer))).await;
    let model = model(&fake);
    let mut talk = long_talk(&fake);
    for turn in 0..6 {
        // The last request of a wake has the tools off; what it shares with the others stays.
        let answer = ask_with(&model, &talk, turn == 3).await.answer();
        talk.push(Message::Assistant(answer.parts));
        talk.push(Message::User(vec![UserPart::Text(format!("turn {turn}"))]));
    }
    let bodies: Vec<String> = fake.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        let shared = pair[0].strip_suffix('}').expect("an object");
        let shared = shared.strip_suffix(off).and_then(|shared| shared.strip_suffix(',')).unwrap_or(shared);
        let shared = shared.strip_suffix(']').expect("the messages are last");
        assert!(shared.len() > 500 && pair[1].starts_with(shared), "{}\n{}", pair[0], pair[1]);
    }
    assert!(bodies[3].ends_with(&format!("],{off}}}")) && bodies[3].contains("\"tools\":"));
    assert!(bodies[4].ends_with("]}"));
}
