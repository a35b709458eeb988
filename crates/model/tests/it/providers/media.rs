//! Images and documents that a provider refuses: left out of that conversation, which goes on.

use std::sync::Arc;

use portcullis_model::{
    Conversation, Failure, HttpModel, Media, MediaKind, Message, ResultPart, ToolResult, UserPart, WireFormat,
};
use serde_json::json;

use crate::providers::fake::{Fake, Reply, ask, opened, said};
use crate::providers::talk::call;
use crate::providers::{anthropic, chat, gemini, responses};

/// `img` in base64.
const SENT: &str = "aW1n";

/// A file was read that says it is an image.
fn with_image() -> Conversation {
    let image = Media { kind: MediaKind::Image, mime: "image/png".to_owned(), bytes: Arc::from(*b"img") };
    let parts = vec![ResultPart::Text("a file".to_owned()), ResultPart::Media(image)];
    let result = ToolResult { call_id: "a".to_owned(), name: "read".to_owned(), is_error: false, parts };
    let mut talk = said("look");
    talk.push(Message::Assistant(vec![call("a", "read", "{}")]));
    talk.push(Message::User(vec![UserPart::Result(result)]));
    talk
}

fn refusal(text: &str) -> Reply {
    Reply::json(400, &json!({"error": {"type": "invalid_request_error", "message": text}}).to_string())
}

/// Asks twice where the first request is refused.
async fn goes_on_without(model: impl Fn(&Fake) -> HttpModel, hello: &str, refused: Reply) {
    let fake = Fake::start([refused, Reply::stream(hello), Reply::stream(hello)]).await;
    let model = model(&fake);
    let mut talk = with_image();
    let answer = ask(&model, &talk).await.answer();
    assert!(answer.warnings[0].contains("refused an image"), "the person is told: {:?}", answer.warnings);
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("go on".to_owned())]));
    let again = ask(&model, &talk).await.answer();
    assert!(!again.warnings.iter().any(|warning| warning.contains("refused")), "once: {:?}", again.warnings);
    let bodies: Vec<String> = fake.seen().into_iter().map(|seen| seen.body).collect();
    assert!(bodies[0].contains(SENT), "{}", bodies[0]);
    for body in &bodies[1..] {
        let told = body.contains("[left out: an image (image/png, 3 bytes); the provider refused it");
        assert!(!body.contains(SENT) && told, "{body}");
    }
    let shared = bodies[1].strip_suffix("]}").expect("the messages are last");
    assert!(bodies[2].starts_with(shared), "{}\n{}", bodies[1], bodies[2]);
}

fn with_media(fake: &Fake) -> HttpModel {
    let mut settings = fake.settings();
    settings.media = Some(true);
    opened(WireFormat::OpenAiChat, "openai-chat/m", settings)
}

#[tokio::test]
async fn an_image_that_is_refused_is_left_out_of_the_conversation_and_told() {
    let hello = gemini::chunks(&[gemini::END]);
    goes_on_without(anthropic::model, &anthropic::hello(), refusal("Could not process image")).await;
    goes_on_without(responses::model, &responses::hello(), refusal("Invalid image data.")).await;
    goes_on_without(gemini::model, &hello, refusal("Unable to process input image. Please retry")).await;
    goes_on_without(with_media, &chat::hello(), refusal("This is not a multimodal model")).await;
    let blind = json!({"error": {"code": 500, "type": "server_error", "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}});
    goes_on_without(with_media, &chat::hello(), Reply::json(500, &blind.to_string())).await;
}

#[tokio::test]
async fn another_refusal_takes_no_image_away_and_is_told_as_it_is() {
    let fake = Fake::start([refusal("max_tokens: too many; see the documentation")]).await;
    let error = ask(&anthropic::model(&fake), &with_image()).await.error();
    assert_eq!((error.failure, fake.seen().len()), (Failure::BadRequest, 1));
    // Where none was sent, none can be left out.
    let fake = Fake::start([refusal("Could not process image")]).await;
    ask(&anthropic::model(&fake), &said("hello")).await.error();
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_know_the_cache_mark_at_the_top_is_asked_without_it() {
    let fake = Fake::start([
        refusal("cache_control: Extra inputs are not permitted"),
        Reply::stream(&anthropic::hello()),
        Reply::stream(&anthropic::hello()),
    ])
    .await;
    let model = anthropic::model(&fake);
    ask(&model, &said("hello")).await.answer();
    ask(&model, &said("hello")).await.answer();
    let marked: Vec<bool> = fake
        .seen()
        .into_iter()
        .map(|seen| serde_json::from_str::<serde_json::Value>(&seen.body).expect("JSON").get("cache_control").is_some())
        .collect();
    assert_eq!(marked, [true, false, false]);
}

/// `media` holds for every kind of provider.
#[tokio::test]
async fn media_can_be_switched_off() {
    let fake = Fake::start([
        Reply::stream(&anthropic::hello()),
        Reply::stream(&responses::hello()),
        Reply::stream(&gemini::chunks(&[gemini::END])),
    ])
    .await;
    let mut settings = fake.settings();
    settings.media = Some(false);
    let models = [
        (WireFormat::AnthropicMessages, "anthropic/claude-x"),
        (WireFormat::OpenAiResponses, "openai/gpt-x"),
        (WireFormat::Gemini, "gemini/gemini-3.6-flash"),
    ];
    for (format, name) in models {
        ask(&opened(format, name, settings.clone()), &with_image()).await.answer();
        let body = fake.seen().last().expect("a request").body.clone();
        assert!(!body.contains(SENT) && body.contains("this model cannot be sent it"), "{body}");
    }
}
