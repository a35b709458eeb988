//! L59 and L60: projections are functions of input and encoded output, and of nothing else.
#![allow(clippy::disallowed_methods, reason = "these are the tests of the seam")]
#![allow(clippy::expect_used, reason = "a test")]

use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis_contract::{Content, Semantics, Tool, UserText, seam};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Input {
    words: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    count: u32,
    rows: Vec<String>,
}

fn tool() -> Tool {
    Tool::builder::<Input, Output>("Counts.")
        .semantics(Semantics::read_only())
        .execute(|input, _| async move { Ok(Output { count: 0, rows: input.words }) })
        .to_model(|input, output| vec![Content::text(format!("{:?} {output}", input.words))])
        .to_user(|input, output| UserText {
            title: format!("{} words", input.words.len()),
            summary: output.to_string(),
        })
        .to_structured(|input, output| serde_json::json!({"of": input.words.len(), "rows": output["rows"]}))
        .build()
        .expect("a sound tool")
}

type Views = (Option<Vec<Content>>, Option<UserText>, Value);

fn views(tool: &Tool, raw: &str, output: &Value) -> Views {
    let Ok(input) = seam::decode(tool, raw) else { panic!("`{raw}` must decode") };
    (
        seam::to_model(tool, &input, output),
        seam::to_user(tool, &input, output),
        seam::to_structured(tool, &input, output),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l59_equal_inputs_give_equal_views_twice_and_on_any_thread(
        words in prop::collection::vec(".{0,6}", 0..5),
        rows in prop::collection::vec(".{0,6}", 0..5),
        count in any::<u32>(),
    ) {
        let tool = tool();
        let raw = serde_json::to_string(&Input { words }).expect("json");
        let output = serde_json::to_value(Output { count, rows }).expect("json");
        let first = views(&tool, &raw, &output);
        prop_assert_eq!(&first, &views(&tool, &raw, &output));
        let elsewhere: Vec<Views> = std::thread::scope(|scope| {
            let spawned: Vec<_> = (0..3).map(|_| scope.spawn(|| views(&tool, &raw, &output))).collect();
            spawned.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for view in elsewhere {
            prop_assert_eq!(&first, &view);
        }
        // Another value of the same definition is the same function.
        prop_assert_eq!(&first, &views(&self::tool(), &raw, &output));
    }
}

#[test]
fn l59_without_projections_the_encoded_output_is_what_is_kept() {
    let tool = Tool::builder::<Input, Output>("Counts.")
        .semantics(Semantics::read_only())
        .execute(|_, _| async { Ok(Output { count: 1, rows: Vec::new() }) })
        .build()
        .expect("a sound tool");
    let output = serde_json::json!({"count": 1, "rows": ["x"]});
    assert_eq!(views(&tool, r#"{"words":[]}"#, &output), (None, None, output));
}

#[test]
fn l05_projections_see_the_encoded_value_and_never_run_the_executor() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let tool = Tool::builder::<Input, String>("Counts.")
        .semantics(Semantics::read_only())
        .execute(|_, _| async {
            RUNS.fetch_add(1, Ordering::SeqCst);
            Ok(String::new())
        })
        .to_structured(|_, output| output.clone())
        .build()
        .expect("a sound tool");
    let given = serde_json::json!("exactly this");
    assert_eq!(views(&tool, r#"{"words":["a"]}"#, &given).2, given);
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
}
