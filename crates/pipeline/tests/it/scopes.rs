//! One gate for many: sessions of different tenants, principals, agents, rules and tools, at the same time.

use std::collections::BTreeMap;

use portcullis_base::{Code, LocationId, SessionId, TenantId};
use portcullis_contract::{DefaultPolicy, Semantics, ToolName, ToolOrigin};
use portcullis_event::{Actor, Body, Event, LOCAL_TENANT};
use portcullis_pipeline::{Gate, Opened, Placement, ScopeParts, Session};
use portcullis_policy::{Layer, PolicyBuilder, parse_rules};
use portcullis_secret::Redactor;
use portcullis_store::{SessionKey, StoreError};

use crate::common::{Process, World, call_in, change, observed, tool};

const OTHER_TENANT: TenantId = TenantId::from_u128(77);
const SECRET: &str = "hunter2-hunter2-hunter2";

async fn opened(gate: &Gate, process: &Process, session: SessionId) -> Session {
    match gate.open(session, process.owner.clone()).await.expect("open") {
        Opened::Ready(session) => session,
        Opened::Held(owner) => panic!("held by {owner}"),
    }
}

/// A scope of another tenant beside the world's own, with a tool that says who called it.
fn beside(world: &World, process: &Process) -> (Gate, portcullis_pipeline::RegistrationGuard) {
    let rules = parse_rules("[[rules]]\neffect = \"deny\"\naction = \"change\"\n", "other.toml", Layer::User);
    let scope = ScopeParts {
        tenant: OTHER_TENANT,
        principal: "bob".to_owned(),
        actor: Actor::key("key_1"),
        agent: "reviewer".to_owned(),
        location: LocationId::from_u128(99),
        project: "elsewhere".to_owned(),
        policy: PolicyBuilder::new().rules(rules.expect("rules")).build().expect("a policy"),
        redactor: Redactor::new([SECRET.as_bytes()]).expect("a redactor"),
        ..world.scope(&process.registry)
    };
    let says = tool(Semantics::read_only(), |_, context| async move {
        let caller = context.caller();
        Ok(format!("{} {} {} {SECRET}", caller.principal, caller.agent, caller.actor))
    });
    let name: ToolName = "whoami".parse().expect("a name");
    let changes: ToolName = "change".parse().expect("a name");
    let tools = BTreeMap::from([(name, says), (changes, change(&world.effects, DefaultPolicy::Allow))]);
    let toolset = Placement::Toolset(scope.toolset);
    let guard = process.registry.registrar(toolset, ToolOrigin::Builtin).register(tools).expect("registered");
    (process.gate.beside(scope), guard)
}

async fn log(world: &World, tenant: TenantId, session: SessionId) -> Vec<Event> {
    world.store.read(SessionKey { tenant, session }, 0, 1_000).await.expect("read")
}

fn proposers(log: &[Event]) -> Vec<&str> {
    log.iter().filter(|event| matches!(event.body(), Body::IntentProposed(_))).map(|e| e.actor.as_str()).collect()
}

#[tokio::test]
async fn one_gate_serves_scopes_of_two_tenants_at_once_and_each_log_is_true_to_its_own() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Allow))]);
    let (other_gate, _guard) = beside(&world, &process);
    let theirs = world.create_for(OTHER_TENANT).await;
    let (ours, other) = (process.open().await, opened(&other_gate, &process, theirs).await);
    for n in 0..3 {
        let (seen, _) = call_in(&ours, "change", &format!(r#"{{"text":"a{n}"}}"#)).await.expect("no halt");
        assert!(observed(&seen).ok, "the first scope allows it");
        let (seen, _) = call_in(&other, "change", r#"{"text":"b"}"#).await.expect("no halt");
        assert_eq!(
            observed(&seen).code.known(),
            Some(Code::ToolNotVisible),
            "the rules of the second deny it altogether"
        );
        let (seen, _) = call_in(&other, "whoami", r#"{"text":"x"}"#).await.expect("no halt");
        let text = observed(&seen).model_view().to_string();
        assert!(text.contains("bob reviewer agent:tester"), "{text}");
        assert!(!text.contains(SECRET), "masked by the second scope: {text}");
        let (seen, _) = call_in(&ours, "whoami", r#"{"text":"x"}"#).await.expect("no halt");
        assert_eq!(observed(&seen).code.known(), Some(Code::UnknownTool), "a toolset is its own scope's alone");
    }
    assert_eq!(world.effects.all(), ["a0", "a1", "a2"]);
    ours.release().await.expect("released");
    other.release().await.expect("released");
    let (ours, theirs) = (world.events().await, log(&world, OTHER_TENANT, theirs).await);
    assert_eq!(proposers(&ours), vec!["agent:tester"; 6]);
    assert_eq!(proposers(&theirs), vec!["agent:tester"; 6]);
    assert!(ours.iter().chain(&theirs).all(|event| !event.payload.as_deref().unwrap_or_default().contains(SECRET)));
}

#[tokio::test]
async fn a_session_of_another_tenant_is_not_found() {
    let world = World::new().await;
    let process = world.process([]);
    let (other_gate, _guard) = beside(&world, &process);
    let theirs = world.create_for(OTHER_TENANT).await;
    let found = process.gate.open(theirs, process.owner.clone()).await.map(drop);
    assert!(matches!(found, Err(StoreError::NoSession(_))), "{found:?}");
    let found = other_gate.open(world.session, process.owner.clone()).await.map(drop);
    assert!(matches!(found, Err(StoreError::NoSession(_))), "{found:?}");
    assert_eq!(log(&world, LOCAL_TENANT, theirs).await.len(), 0);
}

#[tokio::test]
async fn all_scopes_of_a_gate_report_their_progress_in_one_place() {
    let world = World::new().await;
    let process = world.process([]);
    let (other_gate, _guard) = beside(&world, &process);
    let (one, two) = (process.gate.progress(), other_gate.progress());
    assert!(one.same_channel(&two));
}
