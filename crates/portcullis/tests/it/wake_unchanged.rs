//! `file_unchanged` (tool-contract §19, L65): the model is not sent again what it has before it, and is sent everything else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use portcullis::harness::Settings;
use portcullis::model::AnswerPart;
use portcullis::{CallOutcome, Code, Layer, PolicyBuilder, Semantics, Tool, parse_rules};
use portcullis_event::{Body, Observed};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, world};

fn read(id: &str, file: &str) -> Vec<AnswerPart> {
    vec![call(id, "read", &json!({ "file_path": file }).to_string())]
}

fn lines(id: &str, file: &str, first: u64, last: u64) -> Vec<AnswerPart> {
    vec![call(id, "read", &json!({ "file_path": file, "view_range": [first, last] }).to_string())]
}

#[derive(Deserialize, JsonSchema)]
struct Put {
    file: String,
    text: String,
}

/// Changes a file as somebody else would: this runtime learns nothing of it.
fn meddling(folder: PathBuf) -> Tool {
    Tool::builder::<Put, String>("Puts text into a file.")
        .semantics(Semantics::read_only())
        .execute(move |put, _| {
            let file = folder.join(&put.file);
            async move {
                std::fs::write(file, put.text).expect("written");
                Ok("done".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

fn put(id: &str, file: &str, text: &str) -> Vec<AnswerPart> {
    vec![call(id, "meddle", &json!({ "file": file, "text": text }).to_string())]
}

/// A world whose workspace somebody else changes too.
async fn meddled(brain: Brain) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let mut world = World::with(brain, Settings::default(), |builder| {
        let builder = builder.workspace(&path);
        builder.tool("meddle", meddling(path.clone())).expect("a name")
    })
    .await;
    world.folder = folder;
    world
}

/// What every call came to, by its id.
async fn seen(world: &World) -> BTreeMap<String, Observed> {
    let events = world.events().await;
    let observed = events.iter().filter_map(|event| match event.body() {
        Body::Observed(observed) => Some((observed.call_id.clone(), *observed)),
        _ => None,
    });
    observed.collect()
}

fn text(observed: &Observed) -> String {
    observed.content.iter().filter_map(|part| part.text.as_deref()).collect()
}

/// The one it points to.
fn earlier(observed: &Observed) -> Option<&str> {
    assert_eq!(observed.unchanged_since.is_some(), observed.code.known() == Some(Code::FileUnchanged));
    if observed.unchanged_since.is_some() {
        assert!(observed.ok && observed.content.is_empty() && observed.artifacts.is_empty(), "{observed:?}");
    }
    observed.unchanged_since.as_ref().map(|earlier| earlier.call_id.as_str())
}

#[tokio::test]
async fn l65_lines_that_the_model_has_before_it_are_pointed_to_and_not_sent_again() {
    let answers = [read("c1", "a.txt"), read("c2", "a.txt"), lines("c3", "a.txt", 2, 3), lines("c4", "a.txt", 1, 3)];
    let world = world(Brain::new(answers.into_iter().chain([vec![said("Seen.")], read("c5", "a.txt")]))).await;
    std::fs::write(world.folder.path().join("a.txt"), "one\ntwo\nthree\n").expect("a file");
    world.say("read it").await;
    executed(world.wake().await);
    let told = seen(&world).await;
    assert_eq!((earlier(&told["c1"]), text(&told["c1"]).as_str()), (None, "one\ntwo\nthree\n"));
    assert_eq!(earlier(&told["c2"]), Some("c1"));
    assert_eq!(told["c2"].unchanged_since.as_ref().expect("it points").observation_id, told["c1"].observation_id);
    assert_eq!((earlier(&told["c3"]), text(&told["c3"]).as_str()), (None, "two\nthree\n"), "other lines are shown");
    assert_eq!(earlier(&told["c4"]), Some("c1"), "the same lines, however they were asked for");
    let heard = world.brain.requests();
    assert!(heard[2].contains(r#"\"unchangedSince\":{\"callId\":\"c1\"}"#), "the model is told: {}", heard[2]);
    assert_eq!(heard[2].matches(r"one\ntwo\nthree").count(), 1, "and has the lines once");

    // The next wake builds its context from the log, and knows what stands in it. Times say nothing.
    let file = std::fs::File::options().append(true).open(world.folder.path().join("a.txt")).expect("a file");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
    world.say("and again").await;
    let _ = world.wake().await;
    assert_eq!(earlier(&seen(&world).await["c5"]), Some("c1"));
}

#[tokio::test]
async fn l65_bytes_that_changed_are_shown_and_so_are_those_that_changed_back() {
    let answers = [
        read("c1", "a.txt"),
        put("c2", "a.txt", "new\n"),
        read("c3", "a.txt"),
        put("c4", "a.txt", "old\n"),
        read("c5", "a.txt"),
        read("c6", "a.txt"),
        vec![said("Seen.")],
    ];
    let world = meddled(Brain::new(answers)).await;
    std::fs::write(world.folder.path().join("a.txt"), "old\n").expect("a file");
    world.say("read it").await;
    executed(world.wake().await);
    let told = seen(&world).await;
    let shown = |id: &str| (earlier(&told[id]), text(&told[id]));
    assert_eq!(shown("c3"), (None, "new\n".to_owned()));
    assert_eq!(shown("c5"), (None, "old\n".to_owned()), "the model read something newer in between");
    assert_eq!(earlier(&told["c6"]), Some("c5"), "the newest that shows it");
}

#[tokio::test]
async fn l65_a_file_that_was_pointed_to_can_be_edited() {
    let edit = json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" }).to_string();
    let answers = [read("c1", "a.txt"), read("c2", "a.txt"), vec![call("c3", "edit", &edit)], read("c4", "a.txt")];
    let brain = Brain::new(answers.into_iter().chain([vec![said("Done.")]]));
    let rules =
        parse_rules("[[rules]]\naction = \"edit\"\neffect = \"allow\"\n", "rules.toml", Layer::User).expect("rules");
    let policy = PolicyBuilder::new().rules(rules).build().expect("a policy");
    let world = World::with(brain, Settings::default(), |builder| builder.policy(policy)).await;
    std::fs::write(world.folder.path().join("a.txt"), "one\ntwo\n").expect("a file");
    world.say("change it").await;
    executed(world.wake().await);
    let told = seen(&world).await;
    assert_eq!(earlier(&told["c2"]), Some("c1"));
    assert!(told["c3"].ok, "{}", told["c3"].summary);
    assert_eq!((earlier(&told["c4"]), text(&told["c4"]).as_str()), (None, "one\n2\n"), "its own change is shown");
}

/// What somebody else called in this session is in no context, and whoever calls from outside knows himself what he saw.
#[tokio::test]
async fn l65_calls_from_outside_are_always_shown_and_never_pointed_to() {
    let world = world(Brain::new([read("c1", "a.txt"), vec![said("Seen.")]])).await;
    std::fs::write(world.folder.path().join("a.txt"), "one\n").expect("a file");
    let outside = async || match world.runtime.call(world.session, "read", r#"{"file_path":"a.txt"}"#).await {
        Ok(CallOutcome::Observed(observed)) => observed.session_view().clone(),
        other => panic!("{other:?}"),
    };
    for _ in 0..2 {
        let told = outside().await;
        assert_eq!((earlier(&told), text(&told).as_str()), (None, "one\n"));
    }
    world.say("read it").await;
    executed(world.wake().await);
    let told = &seen(&world).await["c1"];
    assert_eq!((earlier(told), text(told).as_str()), (None, "one\n"), "the model has not seen it");
    assert_eq!(earlier(&outside().await), None);
}

/// Long enough that a few of them force a compaction.
fn long(n: usize) -> String {
    format!("words and more words of {n}\n").repeat(100)
}

#[tokio::test]
async fn l65_what_a_compaction_took_out_is_shown_again() {
    let mut answers = vec![read("c0", "a.txt"), read("c1", "a.txt")];
    answers.extend((0..10).map(|n| read(&format!("b{n}"), &format!("b{n}.txt"))));
    answers.extend([read("c2", "a.txt"), read("c3", "a.txt"), vec![said("Seen.")]]);
    let world = world(Brain::new(answers).with_window(12_000)).await;
    std::fs::write(world.folder.path().join("a.txt"), "the one\n").expect("a file");
    for n in 0..10 {
        std::fs::write(world.folder.path().join(format!("b{n}.txt")), long(n)).expect("a file");
    }
    world.say("read them").await;
    executed(world.wake().await);
    assert!(world.count("agent.thread_context_compacted").await > 0, "a compaction happened");
    let told = seen(&world).await;
    assert_eq!(earlier(&told["c1"]), Some("c0"));
    assert_eq!((earlier(&told["c2"]), text(&told["c2"]).as_str()), (None, "the one\n"), "it was gone, and is shown");
    assert_eq!(earlier(&told["c3"]), Some("c2"), "and then it is there again");
}

#[derive(Debug, Clone)]
enum Step {
    Read { file: usize, range: Option<(u64, u64)> },
    Change { file: usize, version: usize },
    Long { n: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = prop::option::of((1u64..4, 0u64..3).prop_map(|(first, more)| (first, first + more)));
    let step = prop_oneof![
        6 => (0usize..2, range).prop_map(|(file, range)| Step::Read { file, range }),
        2 => (0usize..2, 0usize..3).prop_map(|(file, version)| Step::Change { file, version }),
        2 => (0usize..6).prop_map(|n| Step::Long { n }),
    ];
    prop::collection::vec(step, 1..30)
}

fn version(file: usize, version: usize) -> String {
    (1..=4).map(|line| format!("file {file} version {version} line {line}\n")).collect()
}

/// The lines of a read, by another road than the tool's.
fn wanted(content: &str, range: Option<(u64, u64)>) -> String {
    let (first, last) = range.unwrap_or((1, u64::MAX));
    let numbered = (1u64..).zip(content.split_inclusive('\n'));
    numbered.filter(|(n, _)| (first..=last).contains(n)).map(|(_, line)| line).collect()
}

async fn walk(steps: &[Step]) {
    let answer = |(n, step): (usize, &Step)| match step {
        Step::Read { file, range: None } => read(&format!("c{n}"), &format!("{file}.txt")),
        Step::Read { file, range: Some((first, last)) } => {
            lines(&format!("c{n}"), &format!("{file}.txt"), *first, *last)
        }
        Step::Change { file, version: to } => put(&format!("c{n}"), &format!("{file}.txt"), &version(*file, *to)),
        Step::Long { n: long } => read(&format!("c{n}"), &format!("long{long}.txt")),
    };
    let answers = steps.iter().enumerate().map(answer).chain([vec![said("Seen.")]]);
    let world = meddled(Brain::new(answers).with_window(12_000)).await;
    let mut content: Vec<String> = (0..2).map(|file| version(file, 0)).collect();
    for (n, text) in content.iter().enumerate() {
        std::fs::write(world.folder.path().join(format!("{n}.txt")), text).expect("a file");
    }
    for n in 0..6 {
        std::fs::write(world.folder.path().join(format!("long{n}.txt")), long(n)).expect("a file");
    }
    world.say("go").await;
    executed(world.wake().await);
    let (told, heard) = (seen(&world).await, world.brain.requests());
    for (n, step) in steps.iter().enumerate() {
        let now = match step {
            Step::Change { file, version: to } => {
                content[*file] = version(*file, *to);
                continue;
            }
            Step::Read { file, range } => wanted(&content[*file], *range),
            Step::Long { n } => long(*n),
        };
        let Some(observed) = told.get(&format!("c{n}")).filter(|observed| observed.ok) else { continue };
        match earlier(observed) {
            None => assert_eq!(text(observed), now, "step {n}: {step:?}"),
            Some(id) => {
                let first = &told[id];
                assert_eq!(text(first), now, "step {n}: {step:?} says it is unchanged since {id}");
                let shown = json!(text(first)).to_string();
                // The request that this call answers. A result is text inside a message, so it stands escaped there.
                assert!(heard[n].contains(shown.trim_matches('"')), "step {n}: {id} was not in the context any more");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l65_whatever_happens_unchanged_means_these_bytes_in_this_context(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(walk(&steps));
    }
}
