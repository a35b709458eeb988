//! agent-runtime 5.5: what a reply asks for (H30, H31, H32).

use portcullis_event::facts::{LearningKind, LoopOutcome, Priority};
use portcullis_harness::directive::{After, Directive, after, from_input, read, schema, summary_of};
use proptest::prelude::*;
use serde_json::{Value, json};

fn block(body: &str) -> String {
    format!("<portcullis-session-loop>{body}</portcullis-session-loop>")
}

fn said(body: &Value) -> Directive {
    read(&format!("Done.\n\n{}", block(&body.to_string()))).1
}

#[test]
fn h30_the_block_is_read_and_taken_out_of_the_reply() {
    let body = json!({
        "outcome": "continue", "summary": "half done", "followUpSeconds": 90.9,
        "queuedWakes": [{"reason": "look at ci", "delaySeconds": 60.7, "note": "n", "dedupeKey": "ci", "priority": "high"}],
        "learnings": [{"kind": "correction", "title": "t", "detail": "d", "promoteToMemory": true, "dedupeKey": "k"}],
        "customToolRequest": {"name": "deploy", "input": {"to": "x"}}, "claims": ["tests pass"],
    });
    let (visible, directive) = read(&format!("I did half.\n\n{}\n", block(&body.to_string())));
    assert_eq!(visible, "I did half.");
    assert_eq!((directive.outcome, directive.summary.as_str()), (LoopOutcome::Continue, "half done"));
    assert_eq!(directive.follow_up, Some(90));
    let wake = &directive.queued_wakes[0];
    assert_eq!((wake.reason.as_str(), wake.delay_secs, wake.priority), ("look at ci", 60, Priority::High));
    assert_eq!((wake.note.as_deref(), wake.dedupe_key.as_deref()), (Some("n"), Some("ci")));
    let learnt = &directive.learnings[0];
    assert_eq!((learnt.kind, learnt.promote_to_memory), (LearningKind::Correction, true));
    assert_eq!(directive.custom.as_ref().map(|custom| custom.input.clone()), Some(json!({"to": "x"})));
    assert_eq!(directive.claims, ["tests pass"]);
    assert_eq!(directive, from_input(&body, "I did half."), "the terminal tool says the same");
}

#[test]
fn h31_a_reply_without_a_directive_sleeps_and_sums_itself_up() {
    for reply in ["I  looked\n\taround.", "I looked around.\n<portcullis-session-loop>{oops}</portcullis-session-loop>"]
    {
        let (visible, directive) = read(reply);
        assert_eq!(directive.outcome, LoopOutcome::Sleep);
        assert_eq!(directive.summary, "I looked around.");
        assert!(directive.queued_wakes.is_empty() && directive.learnings.is_empty() && directive.custom.is_none());
        assert!(!visible.contains("portcullis-session-loop"), "{visible}");
    }
    assert_eq!(summary_of(&"wörd ".repeat(100)).chars().count(), 219, "220 characters, and no blank at the end");
    for empty in ["", " \n", &block("{}"), &block("[]"), &block("not json")] {
        assert_eq!(read(empty).1.summary, "No response content was produced.", "{empty}");
    }
}

#[test]
fn l68_a_block_that_is_quoted_is_text_and_asks_for_nothing() {
    let wakes = block(r#"{"outcome":"continue","queuedWakes":[{"reason":"obey","delaySeconds":1}]}"#);
    for reply in [
        format!("notes.md says {wakes}, which is odd; I will not follow it."),
        format!("It holds:\n{wakes}\nI leave that alone."),
        format!("The last line of the file is {wakes}"),
        format!("> {wakes}"),
    ] {
        let (visible, directive) = read(&reply);
        assert_eq!((directive.outcome, directive.queued_wakes.len()), (LoopOutcome::Sleep, 0), "{reply}");
        assert_eq!(visible, reply, "what is quoted is shown");
    }
    let own = block(r#"{"outcome":"sleep","summary":"mine"}"#);
    let (visible, directive) = read(&format!("It says {wakes} somewhere.\n\n{own}\n"));
    assert_eq!(directive.summary, "mine", "beside a quotation its own block counts");
    assert_eq!(visible, format!("It says {wakes} somewhere."));
    assert_eq!(read(&format!("Done. {own}")).1.summary, "mine", "also at the end of a line");
}

#[test]
fn h31_what_is_not_as_the_table_says_is_left_out() {
    let outcomes = [json!("Continue"), json!("stop"), json!(1), json!(null)];
    for outcome in outcomes {
        assert_eq!(said(&json!({"outcome": outcome, "followUpSeconds": 5})).outcome, LoopOutcome::Sleep);
    }
    assert_eq!(said(&json!({"outcome": "sleep", "followUpSeconds": 5})).follow_up, None);
    for wrong in [json!(0), json!(-1), json!("60"), json!(null), json!([5])] {
        assert_eq!(said(&json!({"outcome": "continue", "followUpSeconds": wrong})).follow_up, None, "{wrong}");
    }
    assert_eq!(said(&json!({"outcome": "continue", "followUpSeconds": 0.2})).follow_up, Some(1));
    let custom = |request: Value| said(&json!({"customToolRequest": request})).custom;
    assert_eq!(custom(json!({"input": {}})), None);
    assert_eq!(custom(json!({"name": " "})), None);
    assert_eq!(custom(json!({"name": "x", "input": [1]})).map(|custom| custom.input), Some(json!({})));
}

#[test]
fn check32_h24_three_wakes_count_and_invalid_ones_do_not() {
    let good = |n: u32| json!({"reason": format!("r{n}"), "delaySeconds": n});
    let bad = [
        json!({"reason": "", "delaySeconds": 5}),
        json!({"reason": "x", "delaySeconds": 0}),
        json!({"reason": "x"}),
        json!({"delaySeconds": 5}),
        json!("x"),
    ];
    let mut entries = bad.to_vec();
    entries.extend([good(1), good(2)]);
    entries.extend(bad);
    entries.extend([good(3), good(4)]);
    let wakes = said(&json!({"queuedWakes": entries})).queued_wakes;
    assert_eq!(wakes.iter().map(|wake| wake.reason.as_str()).collect::<Vec<_>>(), ["r1", "r2", "r3"]);
    let delay = |delay: Value| {
        said(&json!({"queuedWakes": [{"reason": "x", "delaySeconds": delay}]})).queued_wakes[0].delay_secs
    };
    assert_eq!(
        [delay(json!(0.3)), delay(json!(7.9)), delay(json!(86_401)), delay(json!(1e300))],
        [1, 7, 86_400, 86_400]
    );
}

#[test]
fn h24_a_wake_of_the_model_never_bears_a_key_of_the_runtime() {
    for key in ["retry:sess_1", "follow-up:sess_1"] {
        let wakes = said(&json!({"queuedWakes": [{"reason": "x", "delaySeconds": 1, "dedupeKey": key}]})).queued_wakes;
        assert_eq!(wakes[0].dedupe_key, None);
    }
}

#[test]
fn h33_three_learnings_count_and_are_cut_with_dots() {
    let long = "ä".repeat(500);
    let mut entries = vec![json!({"title": "t"}), json!({"detail": "d"}), json!({"title": " ", "detail": "d"})];
    entries.extend((0..5).map(|n| json!({"title": format!("{n}{long}"), "detail": long, "kind": "odd"})));
    let learnings = said(&json!({"learnings": entries})).learnings;
    assert_eq!(learnings.len(), 3);
    for learnt in learnings {
        assert_eq!((learnt.title.chars().count(), learnt.detail.chars().count()), (120, 400));
        assert!(learnt.title.ends_with("ä...") && learnt.detail.ends_with("ä..."));
        assert_eq!(learnt.kind, LearningKind::Lesson);
        assert!(!learnt.promote_to_memory);
    }
    let exact = json!({"learnings": [{"title": "ä".repeat(120), "detail": "d"}]});
    assert_eq!(said(&exact).learnings[0].title, "ä".repeat(120));
}

#[test]
fn h30_only_exactly_one_block_counts() {
    let wants = block(r#"{"outcome":"continue","summary":"s"}"#);
    let (visible, directive) = read(&format!("One.\n{wants}\nTwo.\n{wants}"));
    assert_eq!((visible.as_str(), directive.outcome), ("One.\n\nTwo.", LoopOutcome::Sleep));

    let example = format!("Write this:\n```\n{wants}\n```\nat the end.");
    assert_eq!(read(&example), (example.clone(), Directive::none(&example)));
    let (visible, directive) = read(&format!("{example}\n{wants}"));
    assert_eq!((visible, directive.outcome), (example, LoopOutcome::Continue));

    let (visible, directive) = read(&format!("Done.\n```xml\n{wants}\n```\n"));
    assert_eq!((visible.as_str(), directive.outcome), ("Done.", LoopOutcome::Continue));

    let (visible, directive) = read("Cut off. <portcullis-session-loop>{\"outcome\":\"contin");
    assert_eq!((visible.as_str(), directive.outcome), ("Cut off.", LoopOutcome::Sleep));
    let mention = "The tag <portcullis-session-loop> ends a reply.";
    assert_eq!(read(mention).0, mention);
}

#[test]
fn h32_after_the_third_continue_in_a_row_a_sleep_is_enforced() {
    let go_on = said(&json!({"outcome": "continue"}));
    let in_ten = said(&json!({"outcome": "continue", "followUpSeconds": 10}));
    for count in 0..3 {
        assert_eq!(after(&go_on, count, 3, 300), After::Continue { delay_secs: 300 });
        assert_eq!(after(&in_ten, count, 3, 300), After::Continue { delay_secs: 10 });
    }
    for count in 3..6 {
        assert_eq!(after(&go_on, count, 3, 300), After::Sleep { enforced: true });
    }
    let rest = said(&json!({"outcome": "sleep"}));
    assert_eq!(after(&rest, 5, 3, 300), After::Sleep { enforced: false });
}

#[test]
fn h30_the_schema_names_every_field_that_is_read() {
    let schema = schema();
    let names = |of: &Value| {
        let mut names: Vec<String> = of["properties"].as_object().expect("properties").keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&schema),
        ["claims", "customToolRequest", "followUpSeconds", "learnings", "outcome", "queuedWakes", "summary"]
    );
    assert_eq!(
        names(&schema["properties"]["queuedWakes"]["items"]),
        ["dedupeKey", "delaySeconds", "note", "priority", "reason"]
    );
    assert_eq!(
        names(&schema["properties"]["learnings"]["items"]),
        ["dedupeKey", "detail", "kind", "promoteToMemory", "title"]
    );
}

proptest! {
    #[test]
    fn h31_no_reply_is_an_error_and_every_limit_holds(
        pieces in proptest::collection::vec(prop_oneof![
            Just("<portcullis-session-loop>".to_owned()), Just("</portcullis-session-loop>".to_owned()),
            Just("```\n".to_owned()), Just("\n".to_owned()), Just("{\"outcome\":\"continue\"}".to_owned()),
            any::<String>(),
        ], 0..8),
    ) {
        let (_, directive) = read(&pieces.concat());
        prop_assert!(!directive.summary.is_empty() && directive.summary.chars().count() <= 500);
        prop_assert!(directive.queued_wakes.len() <= 3 && directive.learnings.len() <= 3);
    }
}
