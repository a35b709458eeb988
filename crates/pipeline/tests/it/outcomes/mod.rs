//! Every outcome that the gate can give today, with what its row of the table (tool-contract §12) promises; and the
//! laws of the path: what runs, when, how often, and what is written of it.

mod after_start;
mod before_start;
mod laws;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    Effects, Note, Process, World, acting, acts, call_in, call_on, change, follow_tokio, fresh_message, happened, look,
    name, observed, parked, proposal, row, runtime, tool, touches, turn_of,
};
use after_start::*;
use before_start::*;
use portcullis_base::{Clock as _, Code, IntentId, Phase, Reason, Recovery, SessionId, SideEffectState, SideEffects};
use portcullis_contract::{
    Concurrency, Content, DefaultPolicy, Interrupt, Precondition, Prepared, Resolved, Semantics, Timeout, Tool,
    ToolFailure, Variable, VariableKind,
};
use portcullis_event::facts::{Exit, InvocationCompleted, Reply};
use portcullis_event::{Body, Event, Observed};
use portcullis_pipeline::{Append, Approvals, Disposition, Halt, Placement};
use portcullis_store::Store;
use portcullis_store_testkit::CountingStore;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tokio::sync::Notify;

const INPUT: &str = r#"{"text":"x"}"#;
const NONE: SideEffectState = SideEffectState::None;
const OCCURRED: SideEffectState = SideEffectState::Occurred;
const UNKNOWN: SideEffectState = SideEffectState::Unknown;

/// One call of one tool in a world of its own.
async fn outcome(tool: Tool) -> (World, Observed) {
    outcome_of(tool, INPUT).await
}

async fn outcome_of(tool: Tool, input: &str) -> (World, Observed) {
    let world = World::new().await;
    let process = world.process([("t", tool)]);
    let seen = process.call_raw("t", input).await;
    (world, observed(&seen).clone())
}

fn failing(semantics: Semantics, failure: ToolFailure) -> Tool {
    let fail = move |_, _| {
        let failure = failure.clone();
        async move { Err::<String, _>(failure) }
    };
    acting(semantics, fail).build().expect("a sound tool")
}

async fn completed(world: &World) -> Vec<InvocationCompleted> {
    let bodies = world.events().await.into_iter().map(|event| event.body());
    bodies.filter_map(|body| if let Body::InvocationCompleted(c) = body { Some(*c) } else { None }).collect()
}

fn text(seen: &Observed) -> String {
    seen.content.iter().filter_map(|part| part.text.clone()).collect()
}
