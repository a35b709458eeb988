//! A recording is played as it was, and only to the conversation that it was.

use std::sync::{Arc, Mutex};

use portcullis_model::{
    Answer, AnswerPart, Call, Conversation, Delta, Failure, Message, Model, ModelError, ModelName, Opaque,
    RecordedModel, Recording, Request, Stop, Usage, UserPart,
};

fn name() -> ModelName {
    "anthropic/claude-sonnet-5".parse().expect("a name")
}

fn said(text: &str) -> Vec<UserPart> {
    vec![UserPart::Text(text.to_owned())]
}

fn call(id: &str) -> Vec<AnswerPart> {
    vec![
        AnswerPart::Opaque(Opaque::new("anthropic", "{\"type\":\"thinking\"}")),
        AnswerPart::Text(format!("call {id}")),
        AnswerPart::Call(Call { id: id.to_owned(), name: "read".to_owned(), arguments: "{}".to_owned() }),
    ]
}

fn recording() -> Vec<Recording> {
    let usage = Some(Usage { input: 7, output: 3, ..Usage::default() });
    (1..=4)
        .map(|n| Recording::new(call(&format!("c{n}")), Stop::ToolUse, usage).after(said(&format!("u{n}"))))
        .collect()
}

/// The conversation before answer `n` (from 0).
fn before(n: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for i in 1..=n {
        messages.push(Message::User(said(&format!("u{i}"))));
        messages.push(Message::Assistant(call(&format!("c{i}"))));
    }
    messages.push(Message::User(said(&format!("u{}", n + 1))));
    messages
}

async fn ask(model: &RecordedModel, messages: Vec<Message>) -> Result<Answer, ModelError> {
    let mut talk = Conversation::new();
    messages.into_iter().for_each(|message| talk.push(message));
    let request =
        Request { system: "", tools: Arc::new([]), tools_off: false, conversation: &talk, max_output_tokens: 9 };
    model.ask(&request, &|_| {}).await
}

#[tokio::test]
async fn a_recording_is_played_back_by_position_byte_for_byte() {
    let model = RecordedModel::new(name(), recording()).on_wire("anthropic").with_window(Some(9));
    for n in [0, 3, 1, 2] {
        let answer = ask(&model, before(n)).await.expect("recorded");
        assert_eq!(answer.parts, recording()[n].parts);
        assert_eq!((answer.stop, answer.usage), (Stop::ToolUse, recording()[n].usage));
    }
    assert_eq!((model.name(), model.wire(), model.window()), (&name(), "anthropic", Some(9)));
}

#[tokio::test]
async fn a_recording_is_heard_like_a_stream() {
    let heard = Mutex::new(String::new());
    let mut talk = Conversation::new();
    talk.push(Message::User(said("u1")));
    let request =
        Request { system: "", tools: Arc::new([]), tools_off: false, conversation: &talk, max_output_tokens: 9 };
    let hear = |delta: Delta<'_>| {
        let mut heard = heard.lock().expect("unpoisoned");
        match delta {
            Delta::Text(text) | Delta::Thinking(text) => *heard += text,
            Delta::Call { name } => *heard += &format!("<{name}>"),
            Delta::Alive => {}
        }
    };
    RecordedModel::new(name(), recording()).ask(&request, &hear).await.expect("recorded");
    assert_eq!(*heard.lock().expect("unpoisoned"), "call c1<read>");
}

#[tokio::test]
async fn a_conversation_that_differs_diverges_at_its_first_differing_message() {
    let model = RecordedModel::new(name(), recording());
    let mut answered = before(2);
    answered[1] = Message::Assistant(call("other"));
    answered[2] = Message::User(said("other"));
    let mut shown = before(2);
    shown[2] = Message::User(said("other"));
    let mut newest = before(1);
    newest[2] = Message::User(said("other"));
    let cases = [
        (answered, "message 2 on: the model's answer differs"),
        (shown, "message 3 on: what the model was shown differs"),
        (newest, "message 3 on: what the model was shown differs"),
        (before(4), "message 10 on: the recording has ended"),
    ];
    for (messages, what) in cases {
        let error = ask(&model, messages).await.expect_err(what);
        assert_eq!(error.failure, Failure::Diverged);
        assert!(error.message.contains(what), "{what}: {}", error.message);
        assert!(!error.failure.retryable());
    }
}

#[tokio::test]
async fn after_a_compaction_the_newest_answers_tell_the_place() {
    let model = RecordedModel::new(name(), recording());
    let mut messages = vec![Message::User(said("summary of what came before"))];
    messages.extend(before(3).split_off(3));
    let answer = ask(&model, messages).await.expect("recorded");
    assert_eq!(answer.parts, call("c4"));
}

#[tokio::test]
async fn what_was_shown_is_compared_only_where_it_was_recorded() {
    let loose = recording().into_iter().map(|r| Recording::new(r.parts, r.stop, r.usage)).collect();
    let mut messages = before(1);
    messages[0] = Message::User(said("other"));
    assert_eq!(ask(&RecordedModel::new(name(), loose), messages).await.expect("recorded").parts, call("c2"));
}
