//! The tools of a run, and the calls that are made of them.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Risk, RiskSet, SideEffect};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Concurrency, Content, DefaultPolicy, Interrupt, Resolved, Resource, Semantics,
    Tool, ToolContext, ToolFailure,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::oracle::Oracle;

/// Files that calls work on: neighbours, folders and what is in them, and one that rules forbid.
const PLACES: [&str; 6] = ["a", "a/b", "a/b/c", "ab", "d", "no/entry"];
/// The rules of every process of a run.
pub const RULES: &str = "[[rules]]\naction = \"change\"\npath = \"no/**\"\neffect = \"deny\"\n";
/// An output that does not fit what a model is shown, so that it becomes an artifact. It stays below what rides in
/// an append: larger ones are written by another thread, whose pace no seed decides.
const LONG: usize = 55_000;

/// How a tool's work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    Well,
    WithMuch,
    Failing,
    Panicking,
}

/// What a tool is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    pub place: String,
    /// How long it takes.
    pub takes_ms: u64,
    pub timeout_ms: u64,
    pub end: JobEnd,
}

impl Job {
    fn roll(dice: &Dice) -> Self {
        Self {
            place: dice.pick(&PLACES).to_owned(),
            takes_ms: dice.pick(&[0, 1, 20, 200, 1_500, 6_000, 45_000]),
            timeout_ms: dice.pick(&[60_000, 60_000, 60_000, 1_000, 100]),
            end: dice.pick(&[
                JobEnd::Well,
                JobEnd::Well,
                JobEnd::Well,
                JobEnd::Well,
                JobEnd::WithMuch,
                JobEnd::Failing,
                JobEnd::Panicking,
            ]),
        }
    }
}

/// A call as a model or a person makes it: a tool's name and its input.
#[must_use]
pub fn roll_call(dice: &Dice) -> (&'static str, serde_json::Value) {
    let names = ["look", "look", "fetch", "change", "change", "ask", "ask", "finish", "alone", "nosuch"];
    let mut input = serde_json::to_value(Job::roll(dice)).unwrap_or_default();
    if dice.chance(4) {
        input = serde_json::json!({ "place": 7 });
    }
    (dice.pick(&names), input)
}

/// The tools that a run registers, under their names.
///
/// # Errors
/// If one of them contradicts itself.
pub fn tools(oracle: &Arc<Oracle>) -> Result<Vec<(&'static str, Tool)>, BuildError> {
    let keyed = Semantics {
        concurrency: Concurrency::Keyed,
        default_policy: DefaultPolicy::Allow,
        interrupt: Interrupt::Cancel,
        ..Semantics::mutating()
    };
    let network = Semantics { risk: RiskSet::from([Risk::Read, Risk::Network]), ..Semantics::read_only() };
    let ask = Semantics { default_policy: DefaultPolicy::Ask, ..keyed.clone() };
    let finish = Semantics { interrupt: Interrupt::Finish, ..keyed.clone() };
    let alone = Semantics { concurrency: Concurrency::Exclusive, ..keyed.clone() };
    Ok(vec![
        ("look", tool(oracle, Semantics::read_only())?),
        ("fetch", tool(oracle, network)?),
        ("change", tool(oracle, keyed)?),
        ("ask", tool(oracle, ask)?),
        ("finish", tool(oracle, finish)?),
        ("alone", tool(oracle, alone)?),
    ])
}

fn tool(oracle: &Arc<Oracle>, semantics: Semantics) -> Result<Tool, BuildError> {
    let oracle = Arc::clone(oracle);
    let reads = semantics.read_only;
    let (inert, alone) = (semantics.inert(), semantics.concurrency == Concurrency::Exclusive);
    let keyed = semantics.concurrency == Concurrency::Keyed;
    let builder = Tool::builder::<Job, String>("Works on a place.")
        .semantics(semantics)
        .plan_access(move |job, _| {
            let resource = Resource::path(format!("/workspace/{}", job.place), &job.place);
            let (action, risk) = if reads { ("look", Risk::Read) } else { ("change", Risk::Write) };
            vec![AccessRequest::new(Action::new(action), resource, [risk].into())]
        })
        .timeout(|job| Some(job.timeout_ms))
        .execute(move |job, context| {
            let oracle = Arc::clone(&oracle);
            async move {
                match (inert, reads) {
                    (true, _) => glance(&job).await,
                    (false, true) => fetch(&oracle, &job, &context).await,
                    (false, false) => change(&oracle, &job, alone, &context).await,
                }
                finish(&job)
            }
        })
        .to_model(|_, output| vec![Content::text(output.as_str().unwrap_or_default())]);
    if keyed {
        let resolve =
            |job: &Job, _: &_| Ok(Resolved { keys: vec![format!("fs:/{}", job.place)], ..Resolved::default() });
        return builder.resolve(resolve).keyed().build();
    }
    builder.build()
}

fn half(job: &Job) -> Duration {
    Duration::from_millis(job.takes_ms / 2)
}

async fn glance(job: &Job) {
    tokio::time::sleep(half(job)).await;
}

async fn fetch(oracle: &Arc<Oracle>, job: &Job, context: &ToolContext) {
    if let Some(link) = oracle.begins(context.invocation_id(), context.caller().intent_id) {
        link.alive().await;
        tokio::time::sleep(half(job)).await;
        link.alive().await;
    }
}

/// The one who touches the world: halfway through.
async fn change(oracle: &Arc<Oracle>, job: &Job, alone: bool, context: &ToolContext) {
    let (invocation, caller) = (context.invocation_id(), context.caller());
    let Some(link) = oracle.begins(invocation, caller.intent_id) else { return };
    link.alive().await;
    let keys = if alone { vec!["*".to_owned()] } else { vec![format!("fs:/{}", job.place)] };
    let _inside = oracle.enters(invocation, caller.session_id, keys);
    tokio::time::sleep(half(job)).await;
    link.alive().await;
    oracle.effect(caller.intent_id);
    context.did(SideEffect {
        kind: "changed".to_owned(),
        target: job.place.clone(),
        before: None,
        after: None,
        reversible: false,
    });
    tokio::time::sleep(half(job)).await;
    link.alive().await;
}

fn finish(job: &Job) -> Result<String, ToolFailure> {
    match job.end {
        JobEnd::Well => Ok(format!("worked on {}", job.place)),
        JobEnd::WithMuch => Ok(format!("{}\n", job.place).repeat(LONG / (job.place.len() + 1))),
        JobEnd::Failing => Err(ToolFailure::new("broken", "it went wrong, as the seed wanted")),
        // Without the panic hook: thousands of these are wanted, and nobody reads them.
        JobEnd::Panicking => std::panic::resume_unwind(Box::new("a panic of the simulation")),
    }
}
