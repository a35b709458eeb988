//! Gemini.

use std::sync::Arc;
use std::time::Duration;

use portcullis_model::{
    AnswerPart, Call, Conversation, Failure, HttpModel, HttpSettings, Media, MediaKind, Message, Model, ModelError,
    Opaque, ResultPart, Stop, ToolResult, Usage, UserPart, WireFormat,
};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, HeardAll, KEY, Piece, Reply, ask, ask_with, said, settings, tls, tool};
use crate::providers::talk::of_anybody;

fn open(id: &str, settings: HttpSettings) -> Result<HttpModel, ModelError> {
    HttpModel::new(WireFormat::Gemini, format!("gemini/{id}").parse().expect("a name"), settings)
}

pub fn model(fake: &Fake) -> HttpModel {
    open("gemini-3.6-flash", fake.settings()).expect("a model")
}

/// Chunks as the API frames them. They are texts, so that a test can see which bytes come back.
pub fn chunks(chunks: &[&str]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

pub fn parts(parts: &str) -> String {
    format!(
        "{{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{parts}]}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":50}}}}"
    )
}

pub const END: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":50,"cachedContentTokenCount":40,"candidatesTokenCount":7,"thoughtsTokenCount":5,"totalTokenCount":62},"modelVersion":"gemini-3.6-flash"}"#;

/// Thoughts in two pieces, text in two pieces, two calls of which the first is signed, a part that nobody knows.
fn rich() -> String {
    chunks(&[
        &parts(r#"{"text":"I will ","thought":true}"#),
        &parts(r#"{"text":"look.","thought":true}"#),
        &parts(r#"{"text":"Reading "}"#),
        &parts(r#"{"text":"both."}"#),
        &parts(
            r#"{"functionCall":{"id":"fc1","name":"read","args":{"path":"a", "n": 1.50}},"thoughtSignature":"c2ln+/8="},{"functionCall":{"id":"fc2","name":"read","args":{"path":"b"}}}"#,
        ),
        &parts(r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#),
        END,
    ])
}

fn opaque(raw: &str) -> AnswerPart {
    AnswerPart::Opaque(Opaque::new("gemini", raw))
}

fn call(id: &str, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call(Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

fn result(id: &str, is_error: bool, parts: Vec<ResultPart>) -> UserPart {
    UserPart::Result(ToolResult { call_id: id.to_owned(), name: "read".to_owned(), is_error, parts })
}

fn text(text: &str) -> ResultPart {
    ResultPart::Text(text.to_owned())
}

/// The body of the newest request.
fn body(fake: &Fake) -> Value {
    serde_json::from_str(&fake.seen().last().expect("a request").body).expect("JSON")
}

#[tokio::test]
async fn gemini_streams_thoughts_text_and_calls() {
    let fake = Fake::start([Reply::stream(&rich())]).await;
    let asked = ask(&model(&fake), &said("go")).await;
    let heard = HeardAll::of("Reading both.", "I will look.", &["read", "read"]);
    assert_eq!(asked.heard, heard);
    let answer = asked.answer();
    assert_eq!(
        of_anybody(&answer.parts),
        [
            opaque(r#"{"text":"I will look.","thought":true}"#),
            AnswerPart::Text("Reading both.".to_owned()),
            opaque(r#"{"thoughtSignature":"c2ln+/8="}"#),
            call("fc1", "read", r#"{"path":"a", "n": 1.50}"#),
            call("fc2", "read", r#"{"path":"b"}"#),
            opaque(r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.usage, Some(Usage { input: 10, output: 12, cache_read: 40, cache_write: 0 }));
    assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);

    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse");
    assert_eq!(seen.headers["x-goog-api-key"], KEY);
    let body = body(&fake);
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    let declared = &body["tools"][0]["functionDeclarations"];
    assert_eq!(declared[1]["name"], "write");
    assert_eq!(declared[0]["parametersJsonSchema"], tool("read").input_schema);
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 1000, "thinkingConfig": {"includeThoughts": true}}));
    assert_eq!(body["contents"], json!([{"role": "user", "parts": [{"text": "go"}]}]));
    assert_eq!(body.as_object().expect("an object").keys().next_back().expect("a field"), "contents");
}

#[tokio::test]
async fn signatures_thoughts_and_unknown_parts_go_back_byte_for_byte_with_their_part() {
    let fake = Fake::start([Reply::stream(&rich()), Reply::stream(&chunks(&[END]))]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let answer = ask(&model, &talk).await.answer();
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![
        result("fc1", false, vec![text("{\"ok\":true}\nA")]),
        result("fc2", true, vec![text("no such file")]),
        UserPart::Text("[note] go on".to_owned()),
    ]));
    ask(&model, &talk).await.answer();
    let sent = fake.seen()[1].body.clone();
    let expected = concat!(
        r#"{"role":"model","parts":[{"text":"I will look.","thought":true},{"text":"Reading both."},"#,
        r#"{"functionCall":{"id":"fc1","name":"read","args":{"path":"a", "n": 1.50}},"thoughtSignature":"c2ln+/8="},"#,
        r#"{"functionCall":{"id":"fc2","name":"read","args":{"path":"b"}}},"#,
        r#"{"executableCode":{"language":"PYTHON","code":"1"}}]}"#,
    );
    assert!(sent.contains(expected), "{sent}");
    let results = json!([
        {"functionResponse": {"id": "fc1", "name": "read", "response": {"output": "{\"ok\":true}\nA"}}},
        {"functionResponse": {"id": "fc2", "name": "read", "response": {"error": "no such file"}}},
        {"text": "[note] go on"},
    ]);
    assert_eq!(body(&fake)["contents"][2], json!({"role": "user", "parts": results}));
}

#[tokio::test]
async fn a_signed_text_and_a_signature_alone_keep_their_place() {
    let stream = chunks(&[
        &parts(r#"{"text":"signed","thoughtSignature":"QQ=="}"#),
        &parts(r#"{"text":" plain"}"#),
        &parts(r#"{"text":"","thoughtSignature":"Qg=="}"#),
        END,
    ]);
    let fake = Fake::start([Reply::stream(&stream), Reply::stream(&chunks(&[END]))]).await;
    let model = model(&fake);
    let mut talk = said("go");
    let answer = ask(&model, &talk).await.answer();
    assert_eq!(answer.text(), "signed plain");
    talk.push(Message::Assistant(answer.parts));
    talk.push(Message::User(vec![UserPart::Text("and?".to_owned())]));
    ask(&model, &talk).await.answer();
    let wanted = json!([
        {"text": "signed", "thoughtSignature": "QQ=="},
        {"text": " plain"},
        {"text": "", "thoughtSignature": "Qg=="},
    ]);
    assert_eq!(body(&fake)["contents"][1]["parts"], wanted);
}

#[tokio::test]
async fn check_6_3_request_n_plus_1_begins_with_the_bytes_of_request_n() {
    let fake = Fake::start((0..4).map(|_| Reply::stream(&rich()))).await;
    let model = model(&fake);
    let mut talk = said("go");
    for turn in 0..4 {
        // Tools that are off for one request change nothing before the messages' end.
        let answer = ask_with(&model, &talk, turn == 2).await.answer();
        let ids: Vec<String> = answer.calls().map(|call| call.id.clone()).collect();
        talk.push(Message::Assistant(answer.parts));
        let results = ids.iter().map(|id| result(id, false, vec![text("x")]));
        talk.push(Message::User(results.collect()));
    }
    let bodies: Vec<String> = fake.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        let (shorter, _) = pair[0].rsplit_once(']').expect("the end of the messages");
        let shorter = if pair[0].ends_with("\"NONE\"}}}") {
            pair[0].split("],\"toolConfig\"").next().expect("it")
        } else {
            shorter
        };
        assert!(pair[1].starts_with(shorter), "{}\n{}", pair[0], pair[1]);
    }
    assert!(bodies[2].ends_with(r#"],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}"#), "{}", bodies[2]);
}

#[tokio::test]
async fn ids_are_made_where_none_were_given_and_where_one_came_twice() {
    let stream = chunks(&[
        &parts(r#"{"functionCall":{"name":"read","args":{}}},{"functionCall":{"name":"read"}}"#),
        &parts(
            r#"{"functionCall":{"id":"x","name":"read","args":{}}},{"functionCall":{"id":"x","name":"read","args":{}}}"#,
        ),
        END,
    ]);
    let fake = Fake::start([Reply::stream(&stream)]).await;
    let answer = ask(&model(&fake), &said("go")).await.answer();
    let ids: std::collections::HashSet<&str> = answer.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert!(!ids.contains(""));
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    assert!(answer.calls().all(|call| call.arguments == "{}"));
}

#[tokio::test]
async fn calls_of_another_model_are_sent_as_its_api_takes_them() {
    let mut talk = said("go");
    let foreign = AnswerPart::Opaque(Opaque::new("anthropic", "{\"type\":\"thinking\"}"));
    talk.push(Message::Assistant(vec![foreign, call("a:1", "read it", "{not json"), call("b", "read", "{}")]));
    talk.push(Message::User(vec![result("a:1", true, vec![]), result("b", false, vec![text("x")])]));
    for (id, signed) in [("gemini-3.6-flash", true), ("gemini-2.5-pro", false)] {
        let fake = Fake::start([Reply::stream(&chunks(&[END]))]).await;
        let model = open(id, fake.settings()).expect("a model");
        ask(&model, &talk).await.answer();
        let contents = body(&fake)["contents"].clone();
        let parts = contents[1]["parts"].as_array().expect("parts");
        assert_eq!(parts.len(), 2, "what belongs to another wire is not sent: {parts:?}");
        assert_eq!(parts[0]["functionCall"]["args"], json!({"unparsed_arguments": "{not json"}));
        assert_eq!(parts[0]["functionCall"]["id"], contents[2]["parts"][0]["functionResponse"]["id"]);
        assert_eq!(parts[0]["functionCall"]["name"], "read_it");
        let wanted = if signed { json!("skip_thought_signature_validator") } else { Value::Null };
        assert_eq!(parts[0]["thoughtSignature"], wanted, "{id}");
        assert_eq!(parts[1]["thoughtSignature"], Value::Null, "only the first call of a step bears one");
        assert_eq!(contents[2]["parts"][0]["functionResponse"]["response"], json!({"error": "(no output)"}));
    }
}

#[tokio::test]
async fn media_stand_after_the_results_or_are_said_to_be_left_out() {
    let media = |kind, mime: &str| Media { kind, mime: mime.to_owned(), bytes: Arc::from(&b"abc"[..]) };
    let mut talk = said("go");
    talk.push(Message::Assistant(vec![call("a", "read", "{}"), call("b", "read", "{}")]));
    talk.push(Message::User(vec![
        result("a", false, vec![text("an image"), ResultPart::Media(media(MediaKind::Image, "image/png"))]),
        result("b", false, vec![ResultPart::Media(media(MediaKind::Pdf, "application/pdf"))]),
        UserPart::Media(media(MediaKind::Image, "image/tiff")),
    ]));
    let fake = Fake::start([Reply::stream(&chunks(&[END])), Reply::stream(&chunks(&[END]))]).await;
    ask(&model(&fake), &talk).await.answer();
    let parts = body(&fake)["contents"][2]["parts"].clone();
    assert_eq!(parts[0]["functionResponse"]["id"], "a");
    assert_eq!(parts[1]["functionResponse"]["response"], json!({"output": "(no output)"}));
    assert_eq!(parts[2], json!({"text": "[from the result of read (a)]"}));
    assert_eq!(parts[3], json!({"inlineData": {"mimeType": "image/png", "data": "YWJj"}}));
    assert_eq!(parts[5], json!({"inlineData": {"mimeType": "application/pdf", "data": "YWJj"}}));
    assert!(parts[6]["text"].as_str().expect("words").contains("image/tiff"), "{}", parts[6]);

    let blind = HttpSettings { media: Some(false), ..fake.settings() };
    ask(&open("gemini-3.6-flash", blind).expect("a model"), &talk).await.answer();
    assert!(!fake.seen()[1].body.contains("inlineData"));
}

#[tokio::test]
async fn each_way_to_end_is_told_apart() {
    let ended = |reason: &str| {
        format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}},\"finishReason\":\"{reason}\",\"finishMessage\":\"why\"}}],\"usageMetadata\":{{}}}}"
        )
    };
    let cases = [
        (ended("STOP"), Stop::EndTurn, ""),
        (ended("MAX_TOKENS"), Stop::MaxTokens, ""),
        (ended("SAFETY"), Stop::Refusal, "SAFETY"),
        (ended("PROHIBITED_CONTENT"), Stop::Refusal, "PROHIBITED_CONTENT"),
        (ended("IMAGE_OTHER"), Stop::Other("IMAGE_OTHER".to_owned()), "why"),
        (
            r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#
                .to_owned(),
            Stop::Refusal,
            "PROHIBITED_CONTENT",
        ),
    ];
    for (chunk, stop, warned) in cases {
        let fake = Fake::start([Reply::stream(&chunks(&[&chunk]))]).await;
        let answer = ask(&model(&fake), &said("go")).await.answer();
        assert_eq!(answer.stop, stop, "{chunk}");
        assert_eq!(answer.warnings.is_empty(), warned.is_empty(), "{:?}", answer.warnings);
        assert!(answer.warnings.concat().contains(warned), "{:?}", answer.warnings);
    }
}

#[tokio::test]
async fn check_5_7_errors_have_their_class_and_the_pause_that_was_asked_for() {
    let error = |code: u16, status: &str, message: &str, details: &str| {
        format!(
            "{{\"error\":{{\"code\":{code},\"message\":\"{message}\",\"status\":\"{status}\",\"details\":[{details}]}}}}"
        )
    };
    let retry = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13.5s"}"#;
    let cases = [
        (429, error(429, "RESOURCE_EXHAUSTED", "quota", retry), Failure::RateLimited, Some(13_500)),
        (503, error(503, "UNAVAILABLE", "overloaded", ""), Failure::Overloaded, None),
        (500, format!("[{}]", error(500, "INTERNAL", "oops", "")), Failure::Server, None),
        (
            400,
            error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", ""),
            Failure::Auth,
            None,
        ),
        (403, error(403, "PERMISSION_DENIED", "no", ""), Failure::Auth, None),
        (400, error(400, "INVALID_ARGUMENT", "bad schema", ""), Failure::BadRequest, None),
        (
            400,
            error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                "",
            ),
            Failure::ContextOverflow,
            None,
        ),
    ];
    for (status, text, failure, millis) in cases {
        let fake = Fake::start([Reply::json(status, &text)]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert_eq!((error.failure, error.status), (failure, Some(status)), "{text}: {error}");
        assert_eq!(error.retry_after, millis.map(Duration::from_millis), "{text}");
        assert!(error.message.contains("gemini/gemini-3.6-flash"), "{error}");
    }
    // In the middle of the stream.
    let middle = error(503, "UNAVAILABLE", "overloaded", retry);
    let fake = Fake::start([Reply::stream(&chunks(&[&parts(r#"{"text":"half"}"#), &middle]))]).await;
    let error = ask(&model(&fake), &said("go")).await.error();
    assert_eq!((error.failure, error.retry_after), (Failure::Overloaded, Some(Duration::from_millis(13_500))));
}

#[tokio::test]
async fn check_5_7_half_an_answer_is_cut_off_and_nonsense_is_invalid() {
    let half = chunks(&[&parts(r#"{"text":"half"}"#)]);
    let cases = [
        (Reply::stream(&half), Failure::CutOff),
        (Reply::pieces(vec![Piece::Bytes(half.into_bytes()), Piece::Break]), Failure::CutOff),
        (Reply::stream("data: {\"candidates\":3}\n\ndata: {}\n\n"), Failure::InvalidResponse),
        (Reply::stream(&chunks(&[&parts("{\"text\":3}"), END])), Failure::InvalidResponse),
    ];
    for (reply, failure) in cases {
        let fake = Fake::start([reply]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert_eq!(error.failure, failure, "{error}");
    }
}

#[tokio::test]
async fn a_gateway_that_does_not_stream_is_understood() {
    for whole in [END.to_owned(), format!("[{},\n{END}]", parts(r#"{"text":"a"}"#))] {
        let fake = Fake::start([Reply::json(200, &whole)]).await;
        let answer = ask(&model(&fake), &said("go")).await.answer();
        assert_eq!(answer.stop, Stop::EndTurn);
    }
}

#[tokio::test]
async fn what_a_person_sets_goes_into_the_request_and_what_is_ours_cannot_be_set() {
    let fake = Fake::start([Reply::stream(&chunks(&[END]))]).await;
    let set = |value: Value| value.as_object().expect("an object").clone();
    let extra = set(
        json!({"generationConfig": {"temperature": 0.5, "thinkingConfig": {"thinkingLevel": "low"}}, "safetySettings": []}),
    );
    let chosen = HttpSettings { extra, ..fake.settings() };
    ask(&open("gemini-3.6-flash", chosen).expect("a model"), &said("go")).await.answer();
    let wanted = json!({"maxOutputTokens": 1000, "thinkingConfig": {"thinkingLevel": "low"}, "temperature": 0.5});
    assert_eq!(body(&fake)["generationConfig"], wanted);
    assert_eq!(body(&fake)["safetySettings"], json!([]));

    let ours = HttpSettings { extra: set(json!({"contents": []})), ..fake.settings() };
    let error = open("gemini-3.6-flash", ours).expect_err("ours");
    assert!(error.message.contains("`contents`"), "{error}");
}

#[tokio::test]
async fn what_cannot_work_is_said_before_anything_is_sent() {
    tls();
    let keyless = HttpSettings { key: None, ..settings() };
    let error = open("gemini-3.6-flash", keyless).expect_err("no key");
    assert_eq!(error.failure, Failure::Config);
    assert!(error.message.contains("GEMINI_API_KEY"), "{error}");
    for id in ["a?b", "../x", "a b", "x:y"] {
        assert_eq!(open(id, settings()).expect_err(id).failure, Failure::Config);
    }
    let model = open("gemini-3.6-flash", settings()).expect("a model");
    for bad in ["1read", "re ad", ""] {
        let error = model.fits(&[tool(bad)]).expect_err(bad);
        assert_eq!(error.failure, Failure::Unfit);
    }
    assert!(model.fits(&[tool("mcp.read"), tool("_x")]).is_ok());
}

#[tokio::test]
async fn a_gateway_that_ends_every_chunk_is_heard_to_its_end() {
    let piece = |text: &str| END.replace("\"text\":\"\"", &format!("\"text\":\"{text}\""));
    let fake = Fake::start([Reply::stream(&chunks(&[&piece("one "), &piece("two")]))]).await;
    let answer = ask(&model(&fake), &said("go")).await.answer();
    assert_eq!((answer.text().as_str(), answer.stop), ("one two", Stop::EndTurn));
}

#[tokio::test]
async fn a_call_goes_back_under_the_name_it_was_declared_with_or_one_that_is_taken() {
    let names = [("mcp.read", "mcp.read"), ("1st", "_1st"), ("a b", "a_b"), ("", "unnamed")];
    for (called, sent) in names {
        let mut talk = said("go");
        talk.push(Message::Assistant(vec![call("a", called, "{}")]));
        let result = ToolResult { call_id: "a".to_owned(), name: called.to_owned(), is_error: false, parts: vec![] };
        talk.push(Message::User(vec![UserPart::Result(result)]));
        let fake = Fake::start([Reply::stream(&chunks(&[END]))]).await;
        ask(&model(&fake), &talk).await.answer();
        let contents = body(&fake)["contents"].clone();
        assert_eq!(contents[1]["parts"][0]["functionCall"]["name"], sent);
        assert_eq!(contents[2]["parts"][0]["functionResponse"]["name"], sent);
    }
}

#[test]
fn an_empty_message_is_no_content() {
    // Nothing but the parts of another wire: Gemini refuses a content without parts.
    let mut talk = Conversation::new();
    talk.push(Message::Assistant(vec![AnswerPart::Text(String::new())]));
    talk.push(Message::User(vec![UserPart::Text("x".to_owned())]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let fake = Fake::start([Reply::stream(&chunks(&[END]))]).await;
        ask(&model(&fake), &talk).await.answer();
        assert_eq!(body(&fake)["contents"].as_array().expect("a list").len(), 1);
    });
}

#[tokio::test]
async fn a_call_that_its_provider_could_not_read_is_tried_again_and_nothing_of_it_is_used() {
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let called = parts(r#"{"functionCall":{"name":"write","args":{}}}"#);
        let end = format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#);
        let fake = Fake::start([Reply::stream(&chunks(&[&called, &end]))]).await;
        let error = ask(&model(&fake), &said("go")).await.error();
        assert!(error.failure.retryable() && error.message.contains(reason), "{error}");
    }
}

/// Some gateways write the end into every piece: an answer that goes on after it is not cut there.
#[tokio::test]
async fn an_end_in_every_piece_is_not_the_end_and_a_break_after_it_is_a_break() {
    let piece = |text: &str| {
        let chunk =
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}},"finishReason":"STOP"}}]}}"#);
        Piece::Bytes(chunks(&[&chunk]).into_bytes())
    };
    let fake = Fake::start([
        Reply::pieces(vec![piece("first "), piece("second")]),
        Reply::pieces(vec![piece("first "), Piece::Break]),
    ])
    .await;
    let model = model(&fake);
    assert_eq!(ask(&model, &said("go")).await.answer().text(), "first second");
    assert_eq!(ask(&model, &said("go")).await.error().failure, Failure::CutOff);
}

#[tokio::test]
async fn thoughts_in_many_pieces_are_put_together_in_the_time_that_their_bytes_take() {
    let word = "many thoughts ".repeat(70);
    let thought = parts(&format!(r#"{{"text":"{word}","thought":true}}"#));
    let pieces: Vec<&str> = std::iter::repeat_n(thought.as_str(), 4_000).chain([END]).collect();
    let fake = Fake::start([Reply::stream(&chunks(&pieces))]).await;
    let began = std::time::Instant::now();
    let answer = ask(&model(&fake), &said("go")).await.answer();
    let AnswerPart::Opaque(whole) = &answer.parts[0] else { panic!("a thought") };
    assert_eq!(whole.raw.matches("many").count(), 4_000 * 70, "one thought");
    // Put together anew for every piece it took minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
