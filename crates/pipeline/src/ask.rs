//! Raising an ask (13.4): facts a person can judge by, not "allow bash?".

use portcullis_base::{ArtifactId, ArtifactKind, ArtifactRef, AskId, Digest, InvocationId, RiskSet, Trust, limits};
use portcullis_contract::{AccessRequest, Diff, seam};
use portcullis_event::facts::{Asked, Grantable, ToolUse};
use portcullis_policy::{Ask, Policy};
use portcullis_store::{ArtifactRow, Blob};
use serde_json::{Map, Value, json};

use crate::append::Append;
use crate::evidence::RetainError;
use crate::isolation::Isolated;
use crate::refuse::SUMMARY_MAX;
use crate::session::SessionShared;
use crate::validate::Validated;

/// How much of one text an ask shows.
const SHOWN_TEXT: usize = 2_000;

/// What is decided, and what a person is asked about if the rules say so: the accesses that a call planned, or one
/// that it came upon while it ran.
pub(crate) struct Question<'a> {
    pub(crate) validated: &'a Validated,
    pub(crate) access: &'a [AccessRequest],
    /// The invocation that is held live meanwhile; none for a call that has not started.
    pub(crate) held_by: Option<InvocationId>,
}

impl<'a> Question<'a> {
    /// About a call as a whole, before it starts.
    pub(crate) fn of(validated: &'a Validated) -> Self {
        Self { validated, access: &validated.access, held_by: None }
    }

    /// Of the call as a whole; an access that was found midway has none.
    fn diff(&self) -> Option<&'a Diff> {
        self.validated.prepared.diff.as_ref().filter(|_| self.held_by.is_none())
    }

    fn risk(&self) -> RiskSet {
        match self.held_by {
            None => seam::semantics(self.validated.visible.tool()).risk.clone(),
            Some(_) => self.access.iter().flat_map(|request| request.risk.iter().copied()).collect(),
        }
    }
}

/// Writes `agent.tool_use` and `tool.permission.asked`; the door commits them before anybody is asked.
///
/// # Errors
/// If the diff it shows cannot be kept; nothing is written then.
pub(crate) async fn raise(
    session: &SessionShared,
    question: &Question<'_>,
    ask: Ask,
    policy: &Policy,
    facts: &mut Append,
) -> Result<AskId, RetainError> {
    let validated = question.validated;
    let intent = &validated.visible.intent;
    let now = session.gate.clock.now();
    let ask_id = AskId::make(&*session.gate.ids, now);
    let diff = match question.diff() {
        Some(diff) => Some(keep_diff(session, diff.text(), facts).await?),
        None => None,
    };
    let facts_shown = ask_facts(session, question, &ask, diff);
    let used = ToolUse {
        intent_id: intent.id,
        evaluated_permission: "ask".to_owned(),
        evaluation: session.tidy(&ask.reason, SUMMARY_MAX),
    };
    session.note(facts, intent.turn_id, &used);
    let root = session.surface_ask(ask_id, &used, facts);
    let suggested = ask.suggested_rules.iter().map(|rule| serde_json::to_value(rule).unwrap_or(Value::Null));
    // A rule that names a secret is not suggested: masked it would be another rule, and a wider one. Nor is
    // one that is too long to be read.
    let suggested = suggested.filter(|rule| !holds_secret(session, rule) && rule.to_string().len() <= SHOWN_TEXT);
    let suggested: Vec<Value> = suggested.collect();
    let grantable = ask.deciding.filter(|_| !suggested.is_empty() && !ask.pinned).map(|rule| Grantable {
        rule_id: rule.id.to_string(),
        rule_hash: rule.hash,
        project: session.gate.project.clone(),
        agent: session.agent.clone(),
    });
    let asked = Asked {
        ask_id,
        intent_id: intent.id,
        kind: "tool_confirmation".to_owned(),
        facts: facts_shown,
        suggested_rules: suggested,
        pinned: ask.pinned,
        input_hash: intent.input_hash,
        expires_at: now.plus(session.gate.ask_expiry),
        definition_version: seam::version(validated.visible.tool()).to_string(),
        policy_revision: policy.revision(),
        principal: session.gate.principal.clone(),
        shown: shown(session, question),
        grantable,
        held_by: question.held_by,
        root,
    };
    session.note(facts, intent.turn_id, &asked);
    Ok(ask_id)
}

/// What an approval is bound to besides the input: the project, the accesses by their canonical names, and
/// the whole diff. Another folder that stands at `/workspace`, a link that points elsewhere, or a file that
/// reads otherwise, is another call.
pub(crate) fn shown(session: &SessionShared, question: &Question<'_>) -> Digest {
    let mut accesses: Vec<String> = question
        .access
        .iter()
        .flat_map(|request| request.resources().map(|resource| (request.action.as_str(), &resource.canonical)))
        .map(|(action, canonical)| format!("{action}\0{canonical}"))
        .collect();
    accesses.sort();
    let diff = question.diff().map_or("", Diff::text);
    let project = &session.gate.project;
    Digest::of(format!("{project}\0\0{}\0\0{diff}", accesses.join("\0")).as_bytes())
}

/// What `approvals show` prints, in the order it prints it.
fn ask_facts(session: &SessionShared, question: &Question<'_>, ask: &Ask, diff: Option<ArtifactRef>) -> Value {
    let Question { validated, access, held_by } = *question;
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
    let resources: Vec<Value> = access
        .iter()
        .flat_map(|request| request.resources())
        .map(|resource| json!({"kind": resource.kind, "name": resource.canonical, "as_written": resource.raw}))
        .collect();
    put("resources", Value::Array(resources));
    let mut input = validated.input.value().clone();
    let _ = portcullis_secret::redact_sensitive(seam::input_schema(validated.visible.tool()), &mut input);
    put("input", input);
    put("risk", json!(question.risk()));
    put("reversible", json!(access.iter().all(|request| request.reversible)));
    put("project_scripts", json!(question.risk().contains(&portcullis_base::Risk::Execute)));
    let isolated = session.gate.isolated(semantics.sandbox.as_deref());
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
    put("rule", serde_json::to_value(&ask.deciding).unwrap_or(Value::Null));
    // What the tool itself says stands apart: it never takes the place of a fact of the runtime.
    let of_the_call = validated.prepared.facts.iter().filter(|_| held_by.is_none());
    let said = of_the_call.chain(access.iter().flat_map(|r| &r.summary_facts));
    let said: Map<String, Value> = said.map(|(name, value)| (name.clone(), json!(value))).collect();
    if !said.is_empty() {
        put("tool_says", Value::Object(said));
    }
    if let Some(diff) = diff {
        put("diff", json!(diff));
    }
    let mut value = Value::Object(shown);
    // Masked first: a cut could hide half a secret from the search.
    session.gate.redactor.redact_value(&mut value);
    brief(&mut value);
    value
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
    session.gate.redactor.redact_value(&mut masked);
    masked != *value
}

/// A person judges by the diff and the resources; a megabyte of arguments would hide them.
fn brief(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHOWN_TEXT => {
            let cut = text.floor_char_boundary(SHOWN_TEXT);
            *text = format!("{}… ({} bytes in all)", &text[..cut], text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(brief),
        Value::Object(object) => object.values_mut().for_each(brief),
        _ => {}
    }
}

/// The diff rides in the append that names it. One over the inline limit is cut there, and says so.
async fn keep_diff(session: &SessionShared, diff: &str, facts: &mut Append) -> Result<ArtifactRef, RetainError> {
    let redacted = session.gate.redactor.redact_text(diff);
    let cut = redacted.floor_char_boundary(limits::ARTIFACT_INLINE_MAX.min(redacted.len()));
    let bytes = redacted.as_bytes()[..cut].to_vec();
    session.reserve(bytes.len() as u64, facts).await?;
    let artifact = ArtifactRef {
        id: ArtifactId::make(&*session.gate.ids, session.gate.clock.now()),
        kind: ArtifactKind::Diff,
        mime: "text/x-diff".to_owned(),
        bytes: bytes.len() as u64,
        lines: Some(redacted[..cut].lines().count() as u64),
        sha256: Digest::of(&bytes),
        complete: cut == redacted.len(),
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    };
    facts.blobs.push(Blob { sha256: artifact.sha256, bytes });
    facts.artifacts.push(ArtifactRow::new(session.key.session, artifact.clone()));
    Ok(artifact)
}
