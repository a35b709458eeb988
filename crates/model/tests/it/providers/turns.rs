//! User and assistant take turns, whatever became of the requests between.

use portcullis_model::{AnswerPart, Conversation, HttpModel, Message, ResultPart, ToolResult, UserPart};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, Reply, ask, said};
use crate::providers::talk::call;
use crate::providers::{anthropic, chat, gemini, responses};

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text(text.to_owned())])
}

fn result(id: &str) -> UserPart {
    let parts = vec![ResultPart::Text("ok".to_owned())];
    UserPart::Result(ToolResult { call_id: id.to_owned(), name: "read".to_owned(), is_error: false, parts })
}

/// The roles of the newest request and the bytes of its messages.
fn roles(fake: &Fake, field: &str) -> (Vec<String>, String) {
    let sent = fake.seen().last().expect("a request").body.clone();
    let body: Value = serde_json::from_str(&sent).expect("JSON");
    let all = body[field].as_array().expect("messages").iter();
    let roles = all.map(|message| message["role"].as_str().unwrap_or("?").to_owned()).filter(|role| role != "system");
    (roles.collect(), sent)
}

async fn takes_turns(open: impl Fn(&Fake) -> HttpModel, answer: String, field: &str, model_role: &str) {
    let fake = Fake::start([Reply::json(400, "{}"), Reply::stream(&answer), Reply::stream(&answer)]).await;
    let model = open(&fake);
    let mut talk = said("hello");
    ask(&model, &talk).await.error();
    let (_, failed) = roles(&fake, field);
    talk.push(user("note"));
    ask(&model, &talk).await.answer();
    let (seen, again) = roles(&fake, field);
    assert_eq!(seen, ["user", model_role, "user"]);
    assert!(again.starts_with(failed.strip_suffix("]}").expect("messages last")), "{failed}\n{again}");
    // An empty answer, a message without a word.
    talk.push(Message::Assistant(vec![AnswerPart::Text(" \n".to_owned())]));
    talk.push(user(" "));
    ask(&model, &talk).await.answer();
    let (seen, last) = roles(&fake, field);
    assert_eq!(seen, ["user", model_role, "user", model_role, "user"], "{last}");
    assert!(last.starts_with(again.strip_suffix("]}").expect("messages last")), "{again}\n{last}");
}

#[tokio::test]
async fn two_messages_in_a_row_have_an_answer_between_them_on_every_wire() {
    takes_turns(anthropic::model, anthropic::hello(), "messages", "assistant").await;
    takes_turns(chat::model, chat::hello(), "messages", "assistant").await;
    takes_turns(responses::model, responses::hello(), "input", "assistant").await;
    takes_turns(gemini::model, gemini::chunks(&[gemini::END]), "contents", "model").await;
}

fn after_results() -> Conversation {
    let mut talk = said("go");
    talk.push(Message::Assistant(vec![call("a", "read", "{}")]));
    talk.push(Message::User(vec![result("a"), UserPart::Text("[note]".to_owned())]));
    talk
}

#[tokio::test]
async fn a_server_that_wants_strict_turns_gets_them_between_results_and_words_and_only_then() {
    let refusals = [
        (
            500,
            r#"{"error":{"code":500,"message":"Error: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.","type":"server_error"}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_error"}"#,
        ),
    ];
    for (status, refusal) in refusals {
        let hello = Reply::stream(&chat::hello());
        let fake = Fake::start([Reply::json(status, refusal), hello.clone(), hello]).await;
        let model = chat::model(&fake);
        let talk = after_results();
        for _ in 0..2 {
            ask(&model, &talk).await.answer();
        }
        let bodies: Vec<Value> =
            fake.seen().iter().map(|seen| serde_json::from_str(&seen.body).expect("JSON")).collect();
        let roles = |body: &Value| -> Vec<String> {
            let all = body["messages"].as_array().expect("messages").iter().skip(1);
            all.map(|message| message["role"].as_str().expect("a role").to_owned()).collect()
        };
        assert_eq!(roles(&bodies[0]), ["user", "assistant", "tool", "user"], "as the protocol has it");
        assert_eq!(roles(&bodies[1]), ["user", "assistant", "tool", "assistant", "user"]);
        assert_eq!(bodies[1]["messages"][4], json!({"role": "assistant", "content": "(no answer)"}));
        assert_eq!(bodies[2], bodies[1], "and it is remembered");
    }
    // One that refuses it still is not asked for ever.
    let fake =
        Fake::start([Reply::json(refusals[1].0, refusals[1].1), Reply::json(refusals[1].0, refusals[1].1)]).await;
    ask(&chat::model(&fake), &after_results()).await.error();
    assert_eq!(fake.seen().len(), 2);
}
