//! H44: one tool for many asks, locks, runs and shows exactly what the chosen one would by its own name.

use std::collections::BTreeMap;

use crate::common::{Process, World, change, look, observed, parked};
use portcullis_base::{Code, Phase, SideEffectState};
use portcullis_contract::{ChoiceFace, DefaultPolicy, ExecutorId, ExecutorKind, Semantics, Tool};
use portcullis_event::Body;
use portcullis_event::facts::{PermissionAsked, Reply};
use portcullis_store::AskFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The face itself would be allowed everything: nothing of it may count.
fn face() -> ChoiceFace {
    ChoiceFace {
        description: "Does one of several things.".to_owned(),
        semantics: Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::mutating() },
        executor: ExecutorId { kind: ExecutorKind::Builtin, id: "test.many".to_owned(), impl_version: "1".to_owned() },
    }
}

fn process(world: &World) -> Process {
    let (look, change) = (look(&world.effects), change(&world.effects, DefaultPolicy::Ask));
    let choices = BTreeMap::from([("look".to_owned(), look.clone()), ("change".to_owned(), change.clone())]);
    let many = Tool::one_of(face(), choices).expect("sound");
    world.process([("many", many), ("look", look), ("change", change)])
}

fn chosen(name: &str, text: &str) -> String {
    json!({"name": name, "input": {"text": text}}).to_string()
}

async fn asked(world: &World) -> Vec<PermissionAsked> {
    let bodies = world.events().await.into_iter().map(|event| event.body());
    bodies.filter_map(|body| if let Body::PermissionAsked(asked) = body { Some(*asked) } else { None }).collect()
}

#[tokio::test]
async fn h44_a_chosen_reader_is_inert_and_runs_unasked() {
    let world = World::new().await;
    let process = process(&world);
    process.call("look", "a").await;
    let direct = world.types().await;
    let seen = process.call_raw("many", &chosen("look", "a")).await;
    let seen = observed(&seen);
    assert_eq!((seen.code.known(), seen.side_effects.state), (Some(Code::Ok), SideEffectState::None));
    // The same events once more: one append, no lock, no ask.
    let both = world.types().await;
    let calls = |types: &[String]| types.iter().filter(|kind| kind.starts_with("tool.")).cloned().collect::<Vec<_>>();
    assert_eq!(calls(&both)[calls(&direct).len()..], calls(&direct)[..]);
}

#[tokio::test]
async fn h44_a_chosen_tool_asks_what_it_asks_by_its_own_name() {
    let world = World::new().await;
    let process = process(&world);
    parked(&process.call("change", "a").await);
    let ask = parked(&process.call_raw("many", &chosen("change", "a")).await);
    let [own, other] = &asked(&world).await[..] else { panic!("two asks") };
    let fact = |asked: &PermissionAsked, name: &str| asked.facts.get(name).cloned().unwrap_or(Value::Null);
    for name in ["actions", "resources", "input", "risk", "reversible", "sandbox"] {
        assert_eq!(fact(own, name), fact(other, name), "{name}");
    }
    assert_eq!(world.effects.count(), 0, "nothing ran");
    world.reply(ask, Reply::AllowOnce).await.expect("an answer");
    let session = process.open().await;
    session.attend().await.expect("attended");
    assert_eq!(world.effects.all(), ["a"], "once, with the stored input");
    let pending = world.store.asks(portcullis_event::LOCAL_TENANT, AskFilter::default()).await.expect("rows");
    assert_eq!(pending.iter().filter(|row| row.ask_id != ask).count(), 1, "the other still waits");
}

#[tokio::test]
async fn h44_a_rule_on_the_chosen_action_holds() {
    let mut world = World::new().await;
    world.rules = "[[rules]]\naction = \"change\"\npath = \"**\"\neffect = \"deny\"\n".to_owned();
    let process = process(&world);
    let seen = process.call_raw("many", &chosen("change", "a")).await;
    assert_eq!(observed(&seen).code.known(), Some(Code::PolicyDenied));
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn a_wrong_choice_or_input_is_named_with_its_place() {
    let world = World::new().await;
    let process = process(&world);
    for (input, place) in [
        (r#"{"name":"format_disk"}"#, "/name"),
        (r#"{"input":{"text":"a"}}"#, ""),
        (r#"{"name":"look"}"#, "/input"),
        (r#"{"name":"look","input":{"text":"a","more":1}}"#, "/input"),
        (r#"{"name":"look","input":{"text":1}}"#, "/input/text"),
    ] {
        let seen = process.call_raw("many", input).await;
        let seen = observed(&seen);
        assert_eq!(
            (seen.code.known(), seen.phase.known()),
            (Some(Code::SchemaInvalid), Some(Phase::Validate)),
            "{input}"
        );
        assert_eq!(seen.errors[0].path, place, "{input}: {:?}", seen.errors);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Secretive {
    #[schemars(extend("x-portcullis-sensitive" = true))]
    token: String,
}

#[tokio::test]
async fn l69_what_a_choice_takes_in_confidence_is_in_no_event() {
    let world = World::new().await;
    let tool = Tool::builder::<Secretive, String>("Keeps a secret.")
        .semantics(Semantics::read_only())
        .execute(|input, _| async move { Ok(format!("{} letters", input.token.len())) })
        .build()
        .expect("sound");
    let many = Tool::one_of(face(), BTreeMap::from([("keep".to_owned(), tool)])).expect("sound");
    let process = world.process([("many", many)]);
    let seen = process.call_raw("many", r#"{"name":"keep","input":{"token":"correct-horse"}}"#).await;
    assert_eq!(observed(&seen).code.known(), Some(Code::Ok));
    for event in world.events().await {
        assert!(!event.payload.as_deref().unwrap_or_default().contains("correct-horse"), "{}", event.kind);
    }
}
