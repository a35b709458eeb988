//! Raising an ask (tool-contract 13.4): facts a person can judge by, not "allow bash?".

use portcullis_base::{ArtifactId, ArtifactKind, ArtifactRef, AskId, Digest, InvocationId, RiskSet, limits};
use portcullis_contract::{AccessRequest, Action, Diff, Resource, ResourceKind, SurroundingFacts, seam};
use portcullis_event::facts::{Grantable, PermissionAsked, ToolUse};
use portcullis_event::fold;
use portcullis_policy::{Ask, Policy};
use portcullis_store::ArtifactRow;
use serde_json::{Map, Value, json};

use crate::asks::{answer, binding};
use crate::isolation::Isolated;
use crate::output::evidence::{Evidence, Label, RetainError};
use crate::phases::refuse::SUMMARY_MAX;
use crate::phases::validate::Validated;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// A suggested rule that is longer cannot be read, so it is not suggested.
const RULE_TEXT: usize = 2_000;
/// Facts that make the event too long to scan ride beside it when all of them together are longer than the limit. What a
/// person must see is never cut.
const MAY_RIDE_BESIDE: [&str; 4] = ["input", "resources", "tool_says", "runs_with"];

/// What is decided, and what a person is asked about if the rules say so: the accesses that a call planned, or one
/// that it came upon while it ran.
pub(crate) struct PermissionQuestion<'a> {
    pub(crate) validated: &'a Validated,
    pub(crate) access: &'a [AccessRequest],
    /// The invocation that is held live meanwhile; none for a call that has not started.
    pub(crate) held_by: Option<InvocationId>,
}

impl<'a> PermissionQuestion<'a> {
    /// About a call as a whole, before it starts.
    pub(crate) fn of(validated: &'a Validated) -> Self {
        Self { validated, access: &validated.access, held_by: None }
    }

    /// Of the call as a whole; an access that was found midway has none.
    fn diff(&self) -> Option<&'a Diff> {
        self.validated.prepared.diff.as_ref().filter(|_| self.held_by.is_none())
    }

    /// What else decides what the call does. An access that was found midway is one of a call that runs already.
    pub(crate) fn around(&self) -> Option<&'a SurroundingFacts> {
        Some(&self.validated.around).filter(|_| self.held_by.is_none())
    }

    fn risk(&self) -> RiskSet {
        match self.held_by {
            None => seam::semantics(self.validated.visible.tool()).risk.clone(),
            Some(_) => self.access.iter().flat_map(|request| request.risk.iter().copied()).collect(),
        }
    }
}

/// What became of an ask when it was raised.
pub(crate) enum RaisedAsk {
    /// It waits for somebody.
    Waits(AskId),
    /// Its answer was known, and stands behind it in the same append.
    Answered(Box<fold::Ask>),
}

/// Writes `agent.tool_use` and `tool.permission.asked`; the door commits them before a person is asked. A known answer is
/// written with them.
///
/// # Errors
/// If what it shows cannot be kept whole; nothing is written then.
pub(crate) async fn raise(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    ask: Ask,
    policy: &Policy,
    facts: &mut Append,
) -> Result<RaisedAsk, RetainError> {
    let validated = question.validated;
    let intent = &validated.visible.intent;
    let now = session.gate.clock.now();
    let ask_id = AskId::make(&*session.gate.ids, now);
    let diff = match question.diff() {
        Some(diff) => Some(keep_diff(session, question, diff.text(), facts).await?),
        None => None,
    };
    let facts_shown = fitting(session, question, ask_facts(session, question, &ask, diff), facts).await?;
    let used = ToolUse {
        intent_id: intent.id,
        evaluated_permission: "ask".to_owned(),
        evaluation: session.tidy(&ask.reason, SUMMARY_MAX),
        by_environment: false,
    };
    session.note(facts, intent.turn_id, &used);
    let root = session.surface_ask(ask_id, &used, facts);
    let suggested = ask.suggested_rules.iter().map(|rule| serde_json::to_value(rule).unwrap_or(Value::Null));
    // A rule that names a secret is not suggested: masked it would be another rule, and a wider one. Nor is
    // one that is too long to be read.
    let suggested = suggested.filter(|rule| !holds_secret(session, rule) && rule.to_string().len() <= RULE_TEXT);
    let suggested: Vec<Value> = suggested.collect();
    let grantable = ask.deciding.filter(|_| !suggested.is_empty() && !ask.pinned).map(|rule| Grantable {
        rule_id: rule.id.to_string(),
        rule_hash: rule.hash,
        project: session.scope.project.clone(),
        agent: session.scope.agent.clone(),
    });
    let asked = PermissionAsked {
        ask_id,
        intent_id: intent.id,
        kind: "tool_confirmation".to_owned(),
        facts: facts_shown,
        suggested_rules: suggested,
        pinned: ask.pinned,
        only_a_person: ask.only_a_person,
        input_hash: intent.input_hash,
        expires_at: now.plus(session.scope.ask_expiry),
        definition_version: seam::version(validated.visible.tool()).to_string(),
        policy_revision: session.tools().choice.revision(policy),
        principal: session.scope.principal.clone(),
        shown: shown(session, question),
        bound: binding::to(session, question),
        asker_env: binding::asker_env(session, question),
        grantable,
        held_by: question.held_by,
        root,
    };
    session.note(facts, intent.turn_id, &asked);
    Ok(match answer::known(session, intent, &asked, facts) {
        Some(ask) => RaisedAsk::Answered(Box::new(ask)),
        None => RaisedAsk::Waits(ask_id),
    })
}

/// What an approval is bound to besides the input: the project, the accesses by their canonical names, and
/// the whole diff. Another folder that stands at `/workspace`, a link that points elsewhere, or a file that
/// reads otherwise, is another call.
pub(crate) fn shown(session: &SessionShared, question: &PermissionQuestion<'_>) -> Digest {
    let accesses = names(question.access);
    let diff = question.diff().map_or("", Diff::text);
    let project = &session.scope.project;
    Digest::of(format!("{project}\0\0{}\0\0{diff}", accesses.join("\0")).as_bytes())
}

/// Accesses by action and canonical name, in an order of their own.
pub(crate) fn names(access: &[AccessRequest]) -> Vec<String> {
    let mut names: Vec<String> = access
        .iter()
        .flat_map(|request| request.resources().map(|resource| (request.action.as_str(), &resource.canonical)))
        .map(|(action, canonical)| format!("{action}\0{canonical}"))
        .collect();
    names.sort();
    names
}

/// What `approvals show` prints, in the order it prints it.
fn ask_facts(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    ask: &Ask,
    diff: Option<ArtifactRef>,
) -> Value {
    let PermissionQuestion { validated, access, held_by } = *question;
    let semantics = seam::semantics(validated.visible.tool());
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("tool", json!(validated.visible.name));
    if held_by.is_some() {
        put("stage", json!("the call has started and waits for this answer; a no stops it where it is"));
    }
    let actions: Vec<&str> = access.iter().map(|request| request.action.as_str()).collect();
    put("actions", json!(actions));
    put("cwd", json!(validated.resolved.cwd));
    let fact = |action: &Action, resource: &Resource| {
        let mut fact = json!({"kind": resource.kind, "name": resource.canonical, "as_written": resource.raw});
        if resource.kind == ResourceKind::Opaque {
            // Its name does not tell a file that is written from code that runs.
            fact["action"] = json!(action);
        }
        fact
    };
    let resources: Vec<Value> =
        access.iter().flat_map(|one| one.resources().map(|resource| fact(&one.action, resource))).collect();
    put("resources", Value::Array(resources));
    let mut input = validated.input.value().clone();
    let _ = portcullis_secret::redact_sensitive(seam::input_schema(validated.visible.tool()), &mut input);
    put("input", input);
    put("risk", json!(question.risk()));
    // What was read cannot be called back, and nothing is there to undo.
    if question.risk().iter().any(|risk| *risk != portcullis_base::Risk::Read) {
        put("reversible", json!(access.iter().all(|request| request.reversible)));
    }
    put("project_scripts", json!(question.risk().contains(&portcullis_base::Risk::Execute)));
    let isolated = session.scope.isolated(semantics.sandbox.as_deref());
    put("sandbox", json!(sandbox_words(semantics.sandbox.as_deref(), isolated.as_ref())));
    let network = question.risk().contains(&portcullis_base::Risk::Network);
    put(
        "network",
        json!(match &isolated {
            Some(isolated) => isolated.network.as_str(),
            None if network => "used by the tool itself, not confined",
            None => "not used",
        }),
    );
    put("output_limit", json!(format!("{} lines or {} bytes", limits::MAX_MODEL_LINES, limits::MAX_MODEL_BYTES)));
    put("reason", json!(ask.reason));
    if let Some(warned) = since_last_answer(session) {
        put("since_last_answer", warned);
    }
    put("rule", serde_json::to_value(&ask.deciding).unwrap_or(Value::Null));
    // What the tool itself says stands apart: it never takes the place of a fact of the runtime.
    let of_the_call = validated.prepared.facts.iter().filter(|_| held_by.is_none());
    let said = of_the_call.chain(access.iter().flat_map(|r| &r.summary_facts));
    let map = |facts: &mut dyn Iterator<Item = &(String, String)>| {
        let mut map: Map<String, Value> = Map::new();
        for (name, value) in facts {
            // One name may have several facts: none takes another's place.
            let all = match map.get(name).and_then(Value::as_str) {
                Some(known) => format!("{known}; {value}"),
                None => value.clone(),
            };
            map.insert(name.clone(), Value::String(all));
        }
        (!map.is_empty()).then_some(Value::Object(map))
    };
    if let Some(said) = map(&mut said.into_iter()) {
        put("tool_says", said);
    }
    if let Some(with) = map(&mut question.around().into_iter().flat_map(|around| &around.facts)) {
        put("runs_with", with);
    }
    if let Some(diff) = diff {
        put("diff", json!(diff));
    }
    // A key in the input is what somebody typed, and what the call runs with. Any other comes from a file or its name.
    for (name, value) in &mut shown {
        let redactor = if name == "input" { &session.scope.redactor } else { &session.scope.output_redactor };
        redactor.redact_value(value);
    }
    Value::Object(shown)
}

/// Files that run later and that commands of the session made since a person answered an ask that showed them.
fn since_last_answer(session: &SessionShared) -> Option<Value> {
    let state = session.state();
    let older = Some(state.warned.older()).filter(|older| *older > 0);
    let older = older.map(|older| format!("{older} earlier warnings, which the log holds"));
    let all: Vec<&str> = older.as_deref().into_iter().chain(state.warned.lines()).collect();
    (!all.is_empty()).then(|| json!(all))
}

/// In which sandbox, and how far that goes here.
fn sandbox_words(profile: Option<&str>, isolated: Option<&Isolated>) -> String {
    let Some(profile) = profile else {
        return "none needed: the runtime does this itself, confined to the mounts".to_owned();
    };
    let Some(Isolated { level, minimum, missing, .. }) = isolated else { return profile.to_owned() };
    let missing: Vec<&str> = missing.iter().map(|line| line.split(':').next().unwrap_or(line)).collect();
    let mut text = format!("{profile}, isolation level {level}");
    if !missing.is_empty() {
        text.push_str(&format!(" (without {})", missing.join(", ")));
    }
    if level < minimum {
        text.push_str(&format!("; at least {minimum} is required, so it will not run"));
    }
    text
}

fn holds_secret(session: &SessionShared, value: &Value) -> bool {
    let mut masked = value.clone();
    session.scope.redactor.redact_value(&mut masked);
    masked != *value
}

/// The facts as the event holds them. Where they are too long for it, all of them are kept in an artifact that rides in
/// the same append, and the event names that artifact as `whole`.
async fn fitting(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    mut shown: Value,
    facts: &mut Append,
) -> Result<Value, RetainError> {
    let text = shown.to_string();
    if text.len() <= limits::STRUCTURED_INLINE_MAX {
        return Ok(shown);
    }
    let label =
        |id| Label { id, kind: ArtifactKind::Structured, mime: "application/json", lines: None, complete: true };
    let whole = keep(session, question, label, text.into_bytes(), facts).await?;
    if let Some(shown) = shown.as_object_mut() {
        MAY_RIDE_BESIDE.iter().for_each(|name| drop(shown.remove(*name)));
        shown.insert("whole".to_owned(), json!(whole));
    }
    Ok(shown)
}

/// The whole diff, in an artifact that rides in the append that names it.
async fn keep_diff(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    diff: &str,
    facts: &mut Append,
) -> Result<ArtifactRef, RetainError> {
    let diff = session.scope.output_redactor.redact_text(diff);
    let lines = Some(diff.lines().count() as u64);
    let label = |id| Label { id, kind: ArtifactKind::Diff, mime: "text/x-diff", lines, complete: true };
    keep(session, question, label, diff.into_owned().into_bytes(), facts).await
}

async fn keep(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    label: impl FnOnce(ArtifactId) -> Label<'static>,
    bytes: Vec<u8>,
    facts: &mut Append,
) -> Result<ArtifactRef, RetainError> {
    let intent = &question.validated.visible.intent;
    let evidence = Evidence { session, turn_id: intent.turn_id, intent_id: Some(intent.id) };
    let artifact = evidence.put(label(evidence.fresh_id()), bytes, facts).await?;
    facts.artifacts.push(ArtifactRow::new(session.key.session, artifact.clone()));
    Ok(artifact)
}
