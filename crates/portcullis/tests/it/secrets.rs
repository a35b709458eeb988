//! L69 at the facade: a declared secret is kept out of the log, or the runtime is not built.

use portcullis::{AskAnswer, CallOutcome, Reply, Runtime, RuntimeError, Tool};
use portcullis_contract::Semantics;
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::Deserialize;

const SECRET: &str = "hunter2-very-secret";

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[test]
fn l69_a_secret_too_short_to_be_masked_is_refused() {
    let built = Runtime::builder().variable("PIN", SecretText::new("12345".to_owned())).build();
    let Err(RuntimeError::Secrets(text)) = built else { panic!("it would stand in the log unmasked") };
    assert!(text.contains("`PIN`") && text.contains("6 bytes") && !text.contains("12345"), "{text}");
    assert!(Runtime::builder().variable("PIN", SecretText::new("123456".to_owned())).build().is_ok());
}

#[tokio::test]
async fn l69_a_secret_in_an_answer_is_masked_before_it_is_written() {
    let asks = Tool::builder::<Nothing, String>("Asks.")
        .semantics(Semantics::mutating())
        .execute(|_, _| async { Ok("done".to_owned()) })
        .build()
        .expect("a sound tool");
    let runtime = Runtime::builder().variable("TOKEN", SecretText::new(SECRET.to_owned()));
    let runtime = runtime.tool("asks", asks).expect("a name").build().expect("a runtime");
    let session = runtime.create_session("s").await.expect("a session");
    let outcome = runtime.call(session, "asks", "{}").await.expect("no fault");
    let CallOutcome::Waiting(ask) = outcome else { panic!("{outcome:?}") };
    let feedback = Some(format!("use {SECRET}"));
    let answer = AskAnswer { feedback, ..AskAnswer::by("me", Reply::DenyWithFeedback) };
    runtime.reply(ask, answer).await.expect("answered");
    let key = portcullis_store::SessionKey { tenant: runtime.gate().tenant(), session };
    let log = runtime.gate().store().read(key, 0, 100).await.expect("read");
    let log: String = log.iter().filter_map(|event| event.payload.as_deref()).collect();
    assert!(log.contains("use ***") && !log.contains(SECRET), "{log}");
}

/// A search shows a part of a long line, and a cut may fall inside a secret.
#[tokio::test]
async fn l69_no_half_of_a_secret_is_left_where_a_search_cuts_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::builder().variable("TOKEN", SecretText::new(SECRET.to_owned())).workspace(folder.path());
    let runtime = runtime.build().expect("a runtime");
    let session = runtime.create_session("s").await.expect("a session");
    for before in (0..300).step_by(SECRET.len() / 2) {
        let line = format!("needle{}{SECRET}{}\n", " ".repeat(before), " ".repeat(400));
        std::fs::write(folder.path().join("a.txt"), line).expect("written");
        let outcome = runtime.call(session, "grep", r#"{"pattern":"needle"}"#).await.expect("no fault");
        let CallOutcome::Observed(seen) = outcome else { panic!("{outcome:?}") };
        let shown = serde_json::to_string(seen.session_view()).expect("JSON");
        assert!(shown.contains("needle") && !shown.contains(&SECRET[..4]), "{before}: {shown}");
    }
    // What was looked for may be the secret itself.
    let outcome = runtime.call(session, "grep", r#"{"pattern":"very"}"#).await.expect("no fault");
    let CallOutcome::Observed(seen) = outcome else { panic!("{outcome:?}") };
    assert!(!serde_json::to_string(seen.session_view()).expect("JSON").contains(&SECRET[..4]));
}

/// A page may end inside a line, wherever the caller says.
#[tokio::test]
async fn l69_no_half_of_a_secret_is_left_where_a_page_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::builder().variable("TOKEN", SecretText::new(SECRET.to_owned())).workspace(folder.path());
    let runtime = runtime.build().expect("a runtime");
    let session = runtime.create_session("s").await.expect("a session");
    std::fs::write(folder.path().join("a.txt"), format!("TOKEN={SECRET} and more\n")).expect("written");
    for most in 1..60 {
        let input = serde_json::json!({"file_path": "a.txt", "max_chars": most}).to_string();
        let outcome = runtime.call(session, "read", &input).await.expect("no fault");
        let CallOutcome::Observed(seen) = outcome else { panic!("{outcome:?}") };
        let shown = serde_json::to_string(seen.session_view()).expect("JSON");
        assert!(seen.ok() && !shown.contains(&SECRET[..4]), "{most}: {shown}");
    }
}
