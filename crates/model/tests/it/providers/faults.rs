//! What goes wrong on the way: the same for every provider, shown with one of them.

use std::time::Duration;

use portcullis_model::{Failure, HttpLimits, WireFormat};
use serde_json::json;

use crate::providers::anthropic::{hello, model};
use crate::providers::fake::{Fake, KEY, Piece, Reply, ask, events, opened, said, settings, tls};

#[tokio::test]
async fn check_5_7_h34_each_status_has_its_class_and_its_pause() {
    let error =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    let echo = format!("invalid x-api-key {KEY}");
    let cases = [
        (Reply::json(401, &error("authentication_error", &echo)), Failure::Auth, None),
        (Reply::json(403, &error("permission_error", "no")), Failure::Auth, None),
        (
            Reply::json(400, &error("invalid_request_error", "prompt is too long: 1 > 0")),
            Failure::ContextOverflow,
            None,
        ),
        (Reply::json(400, &error("invalid_request_error", "max_tokens: no")), Failure::BadRequest, None),
        (Reply::json(404, &error("not_found_error", "model: claude-x")), Failure::BadRequest, None),
        (Reply::json(413, &error("request_too_large", "big")), Failure::ContextOverflow, None),
        (
            Reply::json(429, &error("rate_limit_error", "slow")).header("retry-after", "7"),
            Failure::RateLimited,
            Some(7_000),
        ),
        (
            Reply::json(429, "").header("retry-after", "Mon, 16 Nov 2026 10:01:00 GMT"),
            Failure::RateLimited,
            Some(60_000),
        ),
        (Reply::json(500, "<html>oops</html>"), Failure::Server, None),
        (
            Reply::json(529, &error("overloaded_error", "busy")).header("retry-after-ms", "40"),
            Failure::Overloaded,
            Some(40),
        ),
        (Reply::json(503, ""), Failure::Overloaded, None),
        (Reply::json(307, "").header("location", "http://127.0.0.1:1/"), Failure::BadRequest, None),
    ];
    let fake = Fake::start(cases.iter().map(|(reply, ..)| reply.clone())).await;
    let model = model(&fake);
    for (reply, failure, pause) in cases {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(
            (error.failure, error.status, error.retry_after),
            (failure, Some(reply.status), pause.map(Duration::from_millis)),
            "{}",
            error.message
        );
        assert!(error.message.starts_with("anthropic/claude-x: "), "{}", error.message);
    }
}

#[tokio::test]
async fn a_redirection_is_told_with_its_host_and_the_setting_to_check() {
    let moved = Reply::json(302, "").header("location", "https://other.example/v1?key=hunter22");
    let fake = Fake::start([moved]).await;
    let error = ask(&model(&fake), &said("go")).await.error();
    let message = &error.message;
    assert!(message.contains("to https://other.example (HTTP 302)") && message.contains("base_url"), "{message}");
    assert!(!message.contains("hunter22"), "{message}");
}

#[tokio::test]
async fn check_5_7_an_error_in_the_middle_of_a_stream_is_the_providers_error() {
    let begun = &hello()[..hello().find("event: message_delta").expect("a place")];
    let error = events(&[json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})]);
    let fake = Fake::start([Reply::stream(&format!("{begun}{error}"))]).await;
    let error = ask(&model(&fake), &said("go")).await.error();
    assert_eq!(error.failure, Failure::Overloaded);
    assert!(error.message.contains("overloaded_error"), "{}", error.message);
}

#[tokio::test]
async fn check_5_7_half_an_answer_is_cut_off_wherever_it_breaks() {
    let whole = hello();
    let cuts: Vec<usize> = (1..whole.len() - 3).step_by(23).collect();
    let replies = cuts.iter().flat_map(|cut| {
        let half = Piece::Bytes(whole.as_bytes()[..*cut].to_vec());
        // Once as a broken connection, once as an end in good order.
        [Reply::pieces(vec![half.clone(), Piece::Break]), Reply::pieces(vec![half])]
    });
    let fake = Fake::start(replies.collect::<Vec<_>>()).await;
    let model = model(&fake);
    for cut in cuts {
        for way in ["broken", "ended"] {
            let error = ask(&model, &said("go")).await.error();
            assert_eq!(error.failure, Failure::CutOff, "{way} at {cut}: {}", error.message);
        }
    }
}

#[tokio::test]
async fn check_5_7_silence_is_a_timeout_before_and_in_the_middle_of_an_answer() {
    let fake = Fake::start([
        Reply::pieces(vec![Piece::Hang]),
        Reply::pieces(vec![Piece::Bytes(hello().as_bytes()[..40].to_vec()), Piece::Hang]),
    ])
    .await;
    let mut settings = fake.settings();
    settings.limits.idle = Duration::from_millis(60);
    let model = opened(WireFormat::AnthropicMessages, "anthropic/claude-x", settings);
    for _ in 0..2 {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, Failure::Timeout, "{}", error.message);
        assert!(error.message.contains("0.06 s"), "{}", error.message);
    }
}

#[tokio::test]
async fn arguments_that_never_end_are_stopped_at_the_limit() {
    let start = events(&[
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "read", "input": {}}}),
    ]);
    let more = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}}\n\n";
    let fake = Fake::start([
        Reply::pieces(vec![Piece::Bytes(start.clone().into_bytes()), Piece::Endless(more)]),
        Reply::pieces(vec![Piece::Bytes(start.into_bytes()), Piece::Endless("data: aaaaaaaaaaaaaaaaaa")]),
    ])
    .await;
    let mut settings = fake.settings();
    settings.limits.answer_bytes = 100_000;
    let model = opened(WireFormat::AnthropicMessages, "anthropic/claude-x", settings);
    for _ in 0..2 {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, Failure::InvalidResponse);
        assert!(error.message.contains("100000 bytes"), "{}", error.message);
    }
    assert_eq!(HttpLimits::default().answer_bytes, 32 << 20);
}

#[tokio::test]
async fn check_5_7_no_server_no_host_and_no_tls_are_connection_errors_that_say_so() {
    tls();
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let plain = Fake::start([]).await;
    let cases = [
        (format!("http://127.0.0.1:{port}"), "refused"),
        ("http://no-such-host.invalid".to_owned(), "no-such-host.invalid"),
        (plain.url.replace("http://", "https://"), "no connection to https://"),
    ];
    for (url, word) in cases {
        let mut settings = settings();
        settings.base_url = Some(url.clone());
        let model = opened(WireFormat::AnthropicMessages, "anthropic/claude-x", settings);
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, Failure::Connection, "{url}: {}", error.message);
        assert!(error.message.contains(word) && error.message.contains("base_url"), "{url}: {}", error.message);
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_not_called_none() {
    tls();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut settings = settings();
    settings.base_url = Some(format!("http://{}", listener.local_addr().expect("an address")));
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.readable().await.expect("a request");
    });
    let model = opened(WireFormat::AnthropicMessages, "anthropic/claude-x", settings);
    let error = ask(&model, &said("go")).await.error();
    assert_eq!(error.failure, Failure::Connection);
    assert!(
        error.message.contains("broke before an answer came") && !error.message.contains("no connection"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_is_something_else_is_invalid() {
    let fake = Fake::start([
        Reply::stream("<html>\n<body>sign in</body>\n</html>\n"),
        Reply::stream("data: [1]\n\ndata: {}\n\n"),
        Reply::json(200, "{\"hello\": 1}"),
        Reply::stream(
            "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{}}\n\ndata: {\"type\":\"ping\"}\n\n",
        ),
    ])
    .await;
    let model = model(&fake);
    for _ in 0..4 {
        let error = ask(&model, &said("go")).await.error();
        assert_eq!(error.failure, Failure::InvalidResponse, "{}", error.message);
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let fake = Fake::start((0..3).map(|_| Reply::stream(&hello()))).await;
    let model = model(&fake);
    for _ in 0..3 {
        ask(&model, &said("go")).await.answer();
    }
    assert_eq!(fake.connections(), 1, "an answer is read to its end, so that its connection can be used again");
}
