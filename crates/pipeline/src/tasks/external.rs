//! Tools that a client runs (R11, agent-runtime 7.13). Such a call goes through the gate like any other, is handed over
//! where another would start, and comes back with its result through the same phases; from `normalize` on it is a call
//! like any other.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_base::{Code, IntentId, Recorded, Recovery, SideEffects};
use portcullis_contract::seam::{self, ToolReport};
use portcullis_contract::{Content, ExecutorKind, Tool, ToolFailure, ToolName, ToolOrigin};
use portcullis_event::facts::{CustomTool, CustomToolUse, text_of};
use portcullis_event::{Body, fold};
use portcullis_secret::{SENSITIVE_KEYWORD, marks_sensitive, redact_sensitive};
use serde_json::Value;

use crate::gate::Disposition;
use crate::phases::execute::{Outcome, RawResult};
use crate::phases::normalize::Settled;
use crate::phases::permission::Authorized;
use crate::phases::refuse::{Refusal, refuse};
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::registry::registrations::{Placement, RegistrationGuard};
use crate::sessions::append::Append;
use crate::sessions::attend::stored;
use crate::sessions::session::{Session, SessionShared};

/// The result of a call that its client gave.
#[derive(Debug, Clone)]
pub(crate) struct ClientResult {
    text: String,
    is_error: bool,
}

/// Whether a client runs it, and has not yet.
pub(crate) fn is_elsewhere(authorized: &Authorized) -> bool {
    let visible = &authorized.validated.visible;
    seam::executor(visible.tool()).kind == ExecutorKind::External && visible.intent.arrived().is_none()
}

/// Hands a call over. It is durable, with the right to run it, before the client can see it (L21).
pub(crate) async fn hand_over(
    session: &SessionShared,
    authorized: Authorized,
    mut facts: Append,
) -> Result<(Append, Disposition), Halt> {
    let validated = &authorized.validated;
    let mut input = validated.input.value().clone();
    let _ = redact_sensitive(seam::input_schema(validated.visible.tool()), &mut input);
    session.scope.redactor.redact_value(&mut input);
    let intent = &validated.visible.intent;
    let name = validated.visible.name.to_string();
    session.note(&mut facts, intent.turn_id, &CustomToolUse { intent_id: Some(intent.id), name, input });
    // Invariant: it was added on the line above.
    let event = facts.events.last().expect("a fact that was just noted").id;
    facts.idle();
    session.flush(facts).await?;
    Ok((Append::new(), Disposition::Elsewhere(event)))
}

impl ClientResult {
    /// The result as an execution that ended. What the client did is not for us to see, so nothing is said of it.
    pub(crate) fn raw(&self, invocation: Invocation) -> RawResult {
        let executed = match self.is_error {
            true => Err(ToolFailure::external("the client says that it failed")),
            false => Ok(Ok(Value::String(self.text.clone()))),
        };
        RawResult {
            invocation,
            outcome: Outcome::Done(executed),
            reported: ToolReport::default(),
            streams: Vec::new(),
            duration: Duration::ZERO,
            stop: None,
        }
    }

    /// The client's words about a failure stand where a result stands, never among the facts.
    pub(crate) fn explain(&self, settled: &mut Settled) {
        if self.is_error {
            settled.content = Some(vec![Content::text(&self.text)]);
        }
    }
}

impl SessionShared {
    /// Offers what the client of this session runs, while it is held here.
    pub(crate) fn offer_custom(&self) -> Option<RegistrationGuard> {
        let declared = self.state().session.custom_tools.clone();
        if declared.is_empty() {
            return None;
        }
        let registrar = self.gate.registrar(Placement::Session(self.key.session), ToolOrigin::External);
        // They were looked at when the session was made. One that does not fit any more is not offered.
        match custom_tools(&declared)
            .map_err(|why| why.to_string())
            .and_then(|tools| registrar.register(tools).map_err(|why| why.to_string()))
        {
            Ok(guard) => Some(guard),
            Err(why) => {
                tracing::warn!(session = %self.key.session, "its client's tools are not offered: {why}");
                None
            }
        }
    }

    /// What a client gave for this call.
    pub(crate) async fn result_of(&self, intent: IntentId) -> Result<Option<ClientResult>, Halt> {
        let Some(seq) = self.state().progress.arrived.get(&intent).copied() else { return Ok(None) };
        let events = self.gate.store.read(self.key, seq.saturating_sub(1), 1).await?;
        Ok(events.first().and_then(|event| match event.body() {
            Body::UserCustomToolResult(result) => {
                Some(ClientResult { text: text_of(&result.content), is_error: result.is_error })
            }
            _ => None,
        }))
    }
}

/// Tools that one session may declare: each costs the model tokens in every request.
const CUSTOM_TOOLS: usize = 64;
/// Bytes of all their declarations: they stand in the event that makes the session.
const CUSTOM_BYTES: usize = 256 << 10;

/// Why a declared tool cannot be offered.
#[derive(Debug, thiserror::Error)]
#[error("the custom tool `{name}` cannot be offered: {why}")]
pub struct CustomToolError {
    name: String,
    why: String,
}

/// The tools that a client declared, as they are registered.
///
/// # Errors
/// The first that has no proper name or schema, whose name another one has, or that is one too many.
pub fn custom_tools(declared: &[CustomTool]) -> Result<BTreeMap<ToolName, Tool>, CustomToolError> {
    let mut tools: BTreeMap<ToolName, Tool> = BTreeMap::new();
    let mut bytes = 0;
    for custom in declared {
        let fault = |why: String| CustomToolError { name: custom.name.clone(), why };
        bytes += custom.name.len() + custom.description.len() + custom.input_schema.to_string().len();
        if tools.len() >= CUSTOM_TOOLS || bytes > CUSTOM_BYTES {
            let most = CUSTOM_BYTES >> 10;
            return Err(fault(format!("a session has at most {CUSTOM_TOOLS} of them, and {most} KiB in all")));
        }
        if marks_sensitive(&custom.input_schema) {
            return Err(fault(format!(
                "`{SENSITIVE_KEYWORD}` fields would reach its client masked; leave the mark out"
            )));
        }
        let name: ToolName =
            custom.name.parse().map_err(|why: portcullis_contract::InvalidName| fault(why.to_string()))?;
        let tool = Tool::external(&custom.description, custom.input_schema.clone());
        let tool = tool.map_err(|why| fault(why.to_string()))?;
        if tools.keys().any(|other| other.as_str().eq_ignore_ascii_case(name.as_str())) {
            return Err(fault("another one has that name".to_owned()));
        }
        tools.insert(name, tool);
    }
    Ok(tools)
}

impl Session {
    /// Calls that a client was asked to run and that have no observation.
    #[must_use]
    pub fn handed_over(&self) -> Vec<IntentId> {
        self.shared.state().intents.open().filter(|intent| intent.handed_over).map(|intent| intent.intent_id).collect()
    }

    /// Nobody waits for a client's result any more: the call is settled, whether one came meanwhile or not (H26).
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn give_up(&self, intent: IntentId) -> Result<Option<Disposition>, Halt> {
        let _attending = self.shared.attending.lock().await;
        let found = self.shared.state().intents.get(intent).filter(|intent| intent.handed_over).cloned();
        match found {
            Some(intent) => self.settle_given_up(&intent).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn settle_given_up(&self, intent: &fold::Intent) -> Result<Disposition, Halt> {
        let text = "the session was interrupted before the client's result counted; what the client did is not known";
        self.settle_unseen(intent, Code::ApprovalSuperseded, text).await
    }

    /// A client's result that cannot be brought back to its call: the call happened, and must not be made again unseen.
    pub(crate) async fn settle_unopened(&self, intent: &fold::Intent) -> Result<Disposition, Halt> {
        let text =
            "the client gave its result, but the input of the call cannot be opened any more; look at what it did";
        self.settle_unseen(intent, Code::OutcomeUnknown, text).await
    }

    /// What a client may have done is not for us to know.
    async fn settle_unseen(&self, intent: &fold::Intent, code: Code, text: &str) -> Result<Disposition, Halt> {
        let entry = stored(intent, String::new(), None);
        let mut observed = *refuse(&self.shared, &entry, Refusal::new(code, text));
        observed.side_effects = SideEffects::unknown(Vec::new());
        observed.recovery = Recorded::Known(Recovery::InspectThenDecide);
        observed.retryable = false;
        self.finish(intent, observed, Append::new()).await
    }
}
