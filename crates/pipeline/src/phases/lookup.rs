//! Phase 1, `Intent → Visible`: which registration does the name mean, and may this turn see it?
//! The first fact of every intent is written here.

use portcullis_base::{Code, Reason, Recorded};
use portcullis_contract::seam::{self, Decoded};
use portcullis_contract::{Caller, Tool, ToolName};
use portcullis_event::facts::{IntentProposed, LookedUp};
use portcullis_policy::probably_meant;
use portcullis_secret::Aad;
use serde_json::Value;

use crate::phases::intent::{Intent, Origin};
use crate::phases::refuse::{ERROR_MAX, Refusal, SUMMARY_MAX, refuse_and_void};
use crate::phases::step::Step;
use crate::phases::stored_input;
use crate::registry::registrations::Registered;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// An intent whose tool this turn offers, and the registration that was offered.
pub(crate) struct Visible {
    pub(crate) intent: Intent,
    pub(crate) name: ToolName,
    pub(crate) registered: Registered,
}

impl Visible {
    pub(crate) fn tool(&self) -> &Tool {
        &self.registered.tool
    }

    /// Puts the tool in that the input chose, and gives its own input.
    pub(crate) fn choose(&mut self, input: Decoded, caller: &Caller) -> Decoded {
        let (tool, input) = seam::chosen(&self.registered.tool, input, caller);
        self.registered.tool = tool;
        input
    }
}

pub(crate) fn lookup(session: &SessionShared, intent: Intent, facts: &mut Append) -> Step<Visible> {
    let found = find(session, &intent, facts);
    if intent.is_fresh() {
        record(session, &intent, &found, facts);
    }
    match found {
        Ok((name, registered)) => Step::Next(Visible { intent, name, registered }),
        Err(refusal) => Step::Refused(refuse_and_void(session, &intent, *refusal, facts)),
    }
}

/// The tool that a name means, or why it means none here.
type LookupResult = Result<(ToolName, Registered), Box<Refusal>>;

fn find(session: &SessionShared, intent: &Intent, facts: &Append) -> LookupResult {
    let tool = &intent.proposal.tool;
    let live = session.effective(tool);
    if let Origin::Stored { definition_version, executor_id, .. } = &intent.origin {
        // A client has run it already: whatever the tool has become since, its result belongs to this call.
        if intent.arrived().is_some()
            && let (Some(registered), Ok(name)) = (&live, tool.parse::<ToolName>())
        {
            return Ok((name, registered.clone()));
        }
        return same_identity(tool, live, definition_version.as_deref(), executor_id.as_deref());
    }
    let call = (intent.proposal.message_id, intent.proposal.call_id.clone());
    // Its records would hold a part of it, and two such calls could not be told apart.
    if call.1.len() > ERROR_MAX {
        let text =
            format!("the call id is {} bytes long and may be {ERROR_MAX}; call again with a short one", call.1.len());
        return Err(Refusal::new(Code::InputUnparseable, text).into());
    }
    let stored = session.state().intents.is_duplicate(call.0, &call.1);
    if stored || facts.calls.contains(&call) {
        let text = format!("the call id `{}` was used twice in one message; only the first counts", call.1);
        return Err(Refusal::new(Code::DuplicateCall, text).into());
    }
    let Some((name, entry)) = intent.turn.as_ref().and_then(|turn| turn.offer.entries.get_key_value(tool.as_str()))
    else {
        return Err(not_offered(session, intent, live.is_some()).into());
    };
    match (live, entry.registration_id) {
        (Some(registered), Some(id)) if registered.id == id => Ok((name.clone(), registered)),
        (live, None) => {
            let (version, executor) = (entry.definition.version.as_str(), entry.executor_id.to_string());
            same_identity(tool, live, Some(version), Some(&executor))
        }
        _ => Err(stale(tool).into()),
    }
}

/// After a park or a restart registration ids cannot match: the durable identity must (tool-contract 8.3).
fn same_identity(
    tool: &str,
    live: Option<Registered>,
    definition_version: Option<&str>,
    executor_id: Option<&str>,
) -> LookupResult {
    let (Some(registered), Ok(name)) = (live, tool.parse::<ToolName>()) else { return Err(stale(tool).into()) };
    let same_definition = definition_version.is_none_or(|v| v == seam::version(&registered.tool).as_str());
    let same_executor = executor_id.is_none_or(|id| id == seam::executor(&registered.tool).to_string());
    if same_definition && same_executor { Ok((name, registered)) } else { Err(stale(tool).into()) }
}

pub(crate) fn stale(tool: &str) -> Refusal {
    let text = format!("`{tool}` has changed since it was offered; look at its current definition and call it again");
    Refusal::new(Code::StaleTool, text)
}

/// The name that a misspelt one is nearest to, as a question.
pub(crate) fn did_you_mean<'a>(tool: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    probably_meant(tool, names).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

fn not_offered(session: &SessionShared, intent: &Intent, exists: bool) -> Refusal {
    let tool: String = intent.proposal.tool.chars().take(128).collect();
    let hidden = intent.turn.as_ref().and_then(|turn| turn.offer.hidden.iter().find(|h| h.name == tool));
    match hidden.and_then(|h| h.reason.known()) {
        Some(reason) => {
            let rule = session
                .scope
                .wholly_denied(&tool, session.key.session, session.gate.clock.now())
                .filter(|_| reason == Reason::WhollyDenied);
            let by = rule.map(|rule| format!(": rule `{rule}` denies it altogether")).unwrap_or_default();
            let text = format!("`{tool}` is not offered in this turn ({reason}){by}");
            Refusal::new(Code::ToolNotVisible, text).reason(Some(reason))
        }
        None if exists => {
            let text = format!("`{tool}` is not offered in this turn");
            Refusal::new(Code::ToolNotVisible, text).reason(Some(Reason::NotDiscovered))
        }
        None => {
            let names = || intent.turn.iter().flat_map(|turn| turn.offer.entries.keys().map(ToolName::as_str));
            let known: Vec<&str> = names().take(NAMED).collect();
            let more = names().count().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let meant = did_you_mean(&tool, names());
            let text =
                format!("there is no tool `{tool}`{meant}; the tools of this turn are: {}{more}", known.join(", "));
            Refusal::new(Code::UnknownTool, text)
        }
    }
}

/// Tools that are named to a model that named none; the others are counted.
const NAMED: usize = 64;

/// `tool.intent` and `tool.lookup`. Sensitive values and known secrets never enter the event; the
/// sensitive ones are sealed beside it until the intent settles, so that an approved call still runs.
fn record(session: &SessionShared, intent: &Intent, found: &LookupResult, facts: &mut Append) {
    let raw = &intent.proposal.input;
    let offered = intent.turn.as_ref().and_then(|turn| turn.offer.entries.get(intent.proposal.tool.as_str()));
    // By every schema that may speak of it: a refused call holds the same values as one that runs.
    let live = session.effective(&intent.proposal.tool);
    let schemas = live.iter().map(|registered| seam::input_schema(&registered.tool));
    let schemas: Vec<&Value> = schemas.chain(offered.map(|entry| &entry.definition.input_schema)).collect();
    let written = stored_input::written(raw, &schemas, &session.scope.redactor);
    if !written.exact {
        seal(session, intent, facts);
    }
    session.note_by(
        &intent.proposal.actor,
        facts,
        intent.turn_id,
        &IntentProposed {
            intent_id: intent.id,
            call_id: session.tidy(&intent.proposal.call_id, ERROR_MAX),
            message_id: intent.proposal.message_id,
            tool: session.tool_name(intent),
            raw_input: written.value,
            input_hash: intent.input_hash,
            stated_reason: intent.proposal.stated_reason.as_ref().map(|reason| session.tidy(reason, SUMMARY_MAX)),
            menu_id: intent.menu_id,
            definition_version: offered.map(|entry| entry.definition.version.to_string()),
            parent_invocation_id: None,
        },
    );
    facts.calls.push((intent.proposal.message_id, intent.proposal.call_id.clone()));
    let registered = found.as_ref().ok().map(|(_, registered)| registered);
    session.note(
        facts,
        intent.turn_id,
        &LookedUp {
            intent_id: intent.id,
            found: registered.is_some(),
            registration_id: registered.map(|registered| registered.id),
            executor_id: registered.map(|registered| seam::executor(&registered.tool).to_string()),
            code: found.as_ref().err().map(|refusal| Recorded::Known(refusal.code)),
        },
    );
}

/// Seals the whole input as proposed: what is restored later is exactly what was asked for.
fn seal(session: &SessionShared, intent: &Intent, facts: &mut Append) {
    let name = sealed_name(intent.id);
    let aad = Aad { tenant: session.key.tenant, name: &name, version: 1 };
    // Sealing fails only for inputs beyond what the cipher can count; decode bounds them at 1 MiB.
    if let Ok(sealed) = session.gate.sealer.seal(aad, intent.proposal.input.as_bytes(), &*session.gate.entropy) {
        facts.sealed.push((intent.id, sealed.into_bytes()));
    }
}

pub(crate) fn sealed_name(intent: portcullis_base::IntentId) -> String {
    format!("intent-input:{intent}")
}
