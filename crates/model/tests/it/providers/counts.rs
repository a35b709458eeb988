//! What the servers count, and what they do not.

use portcullis_model::{Answer, HttpModel, Usage};
use serde_json::{Value, json};

use crate::providers::fake::{Fake, Reply, ask, events, said};
use crate::providers::{anthropic, chat, gemini, responses};

/// What is no count.
fn odd() -> [Value; 6] {
    [Value::Null, json!(-1), json!("3"), json!({}), json!([1]), json!(1e300)]
}

async fn answers(
    open: impl Fn(&Fake) -> HttpModel,
    streams: impl IntoIterator<Item = String>,
) -> Vec<(String, Answer)> {
    let streams: Vec<String> = streams.into_iter().collect();
    let fake = Fake::start(streams.iter().map(|stream| Reply::stream(stream))).await;
    let model = open(&fake);
    let mut answers = Vec::new();
    for stream in streams {
        let answer = ask(&model, &said("go")).await.answer.unwrap_or_else(|error| panic!("{error}: {stream}"));
        answers.push((stream, answer));
    }
    answers
}

/// An odd value counts nothing, a count as a fraction is one, and the answer is there.
async fn reads(open: impl Fn(&Fake) -> HttpModel, stream: impl Fn(Value) -> String) {
    let values = odd().into_iter().map(|value| (value, 0)).chain([(json!(2.0), 2)]);
    let (values, counts): (Vec<Value>, Vec<u64>) = values.unzip();
    let answers = answers(open, values.into_iter().map(stream)).await;
    for ((stream, answer), count) in answers.into_iter().zip(counts) {
        assert_eq!(answer.text(), "hello", "{stream}");
        assert_eq!(answer.usage.map(|usage| usage.output), Some(count), "{stream}");
    }
}

fn of_gemini(counted: &Value) -> String {
    let parts = json!([{"text": "hello"}]);
    let chunk =
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": counted});
    format!("data: {chunk}\n\n")
}

fn of_anthropic(counted: &Value) -> String {
    events(&[
        json!({"type": "message_start", "message": {"content": null, "usage": counted}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hello"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counted}),
        json!({"type": "message_stop"}),
    ])
}

fn of_responses(counted: &Value) -> String {
    responses::stream(&[responses::message("hello")], "completed", json!({"usage": counted}))
}

fn of_chat(counted: &Value) -> String {
    let choices = json!([{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]);
    format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": choices, "usage": counted}))
}

#[tokio::test]
async fn a_count_that_is_none_costs_no_answer() {
    let one = |name: &'static str| move |value: Value| json!({ name: value });
    reads(gemini::model, |value| of_gemini(&one("candidatesTokenCount")(value))).await;
    reads(anthropic::model, |value| of_anthropic(&one("output_tokens")(value))).await;
    reads(responses::model, |value| of_responses(&one("output_tokens")(value))).await;
    reads(chat::model, |value| of_chat(&one("completion_tokens")(value))).await;
    // Details, and counts as a whole.
    let cached = |value: Value| json!({"input_tokens": 3, "input_tokens_details": {"cached_tokens": value}});
    for (stream, answer) in answers(responses::model, odd().map(|odd| of_responses(&cached(odd)))).await {
        assert_eq!(answer.usage.map(|usage| usage.input), Some(3), "{stream}");
    }
    let none = || [json!("none"), json!(7)];
    answers(gemini::model, none().map(|counted| of_gemini(&counted))).await;
    answers(anthropic::model, none().map(|counted| of_anthropic(&counted))).await;
    answers(responses::model, none().map(|counted| of_responses(&counted))).await;
}

#[tokio::test]
async fn gemini_a_list_that_is_null_is_an_empty_one() {
    let end = gemini::chunks(&[&gemini::parts(r#"{"text":"hello"}"#), gemini::END]);
    let nulls = [r#"{"candidates":null}"#, r#"{"candidates":[{"content":{"parts":null},"finishReason":null}]}"#];
    let streams = nulls.map(|null| format!("{}{end}", gemini::chunks(&[null])));
    for (stream, answer) in answers(gemini::model, streams).await {
        assert_eq!(answer.text(), "hello", "{stream}");
    }
}

#[tokio::test]
async fn counts_past_every_number_are_the_largest_number() {
    let most = u64::MAX;
    let counted = json!({"promptTokenCount": most, "toolUsePromptTokenCount": most, "candidatesTokenCount": most, "thoughtsTokenCount": most});
    let all = answers(gemini::model, [of_gemini(&counted)]).await;
    assert_eq!(all[0].1.usage, Some(Usage { input: most, output: most, cache_read: 0, cache_write: 0 }));
}

#[tokio::test]
async fn a_server_that_never_counts_is_told_of_once() {
    let twice = |stream: String| [stream.clone(), stream];
    let null = Value::Null;
    let each = [
        answers(gemini::model, twice(of_gemini(&null))).await,
        answers(anthropic::model, twice(of_anthropic(&null))).await,
        answers(responses::model, twice(of_responses(&null))).await,
        answers(chat::model, twice(of_chat(&null))).await,
    ];
    for all in each {
        let told: Vec<usize> = all.iter().map(|(_, answer)| answer.warnings.len()).collect();
        assert_eq!(told, [1, 0], "{}: {:?}", all[0].0, all[0].1.warnings);
        assert!(all[0].1.warnings[0].contains("did not count"), "{:?}", all[0].1.warnings);
    }
}
