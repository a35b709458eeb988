//! Calls that somebody else fulfils: the client of the session (R11, agent-runtime 7.13), the worker of its environment, or a
//! child session (ruling 54). Such a call goes through the gate like any other, is handed over where another would start,
//! and comes back with its result through the same phases; from `normalize` on it is a call like any other. While it waits
//! it holds no lease, lane, key or place of a worker.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use portcullis_base::{Code, EventId, Fulfiller, IntentId, Reason, Recorded, Recovery, SideEffects};
use portcullis_contract::seam::{self, ToolReport};
use portcullis_contract::{Arrival, Content, Tool, ToolName, ToolOrigin};
use portcullis_event::facts::{Block, CustomTool, CustomToolUse, ToolUse, text_of};
use portcullis_event::{Body, fold};
use portcullis_secret::{SENSITIVE_KEYWORD, marks_sensitive, redact_sensitive};
use portcullis_store::StoreError;
use serde_json::{Value, json};

use crate::gate::{Disposition, write_back};
use crate::phases::execute::{Outcome, RawResult};
use crate::phases::normalize::Settled;
use crate::phases::permission::Authorized;
use crate::phases::refuse::{Refusal, refuse, refuse_and_void};
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::phases::validate::{broken, failed};
use crate::registry::registrations::{Placement, RegistrationGuard};
use crate::sessions::append::Append;
use crate::sessions::attend::stored;
use crate::sessions::session::{Session, SessionShared};

/// The result of a call that was handed over.
#[derive(Debug, Clone)]
pub(crate) struct ArrivedResult(Arrival);

/// Who fulfils a call, if it has not come back yet and its executor does not.
pub(crate) fn fulfilled_by(authorized: &Authorized) -> Option<Fulfiller> {
    let visible = &authorized.validated.visible;
    seam::fulfiller(visible.tool()).filter(|_| visible.intent.arrived().is_none())
}

/// Hands a call over. It is durable, with the right to run it, before anybody can see it (L21).
pub(crate) async fn hand_over(
    session: &SessionShared,
    authorized: Authorized,
    by: Fulfiller,
    mut facts: Append,
) -> Result<(Append, Disposition), Halt> {
    let validated = &authorized.validated;
    let intent = &validated.visible.intent;
    match by {
        Fulfiller::Client => {
            let mut input = validated.input.value().clone();
            let _ = redact_sensitive(seam::input_schema(validated.visible.tool()), &mut input);
            session.scope.redactor.redact_value(&mut input);
            let name = validated.visible.name.to_string();
            session.note(&mut facts, intent.turn_id, &CustomToolUse { intent_id: Some(intent.id), name, input });
        }
        Fulfiller::Environment => {
            let evaluated_permission = "allow".to_owned();
            let evaluation = if intent.ask().is_some() { "user" } else { "policy" }.to_owned();
            let used = ToolUse { intent_id: intent.id, evaluated_permission, evaluation, by_environment: true };
            session.note(&mut facts, intent.turn_id, &used);
        }
        Fulfiller::Child => return to_child(session, authorized, facts).await,
    }
    // Invariant: it was added right above.
    let event = facts.events.last().expect("a fact that was just noted").id;
    facts.idle();
    session.flush(facts).await?;
    Ok((Append::new(), Disposition::Elsewhere(event)))
}

/// Makes the child and hands it the call, in one append: it names the child, and the outbox creates it (ruling 49).
async fn to_child(
    session: &SessionShared,
    authorized: Authorized,
    mut facts: Append,
) -> Result<(Append, Disposition), Halt> {
    let validated = &authorized.validated;
    let (visible, intent) = (&validated.visible, &validated.visible.intent);
    let place = session.effect_desk.open_handing_over(intent.id, &mut facts);
    let caller = (*validated.caller).clone();
    let preparing =
        async { seam::hand_over(visible.tool(), &validated.input, validated.resolved.clone(), caller).await };
    let prepared = AssertUnwindSafe(preparing).catch_unwind().await;
    let effect = place.close_prepared(&mut facts);
    let refused = match prepared {
        Ok(Ok(())) => match session.append_effect(facts, effect.unwrap_or_default()).await {
            Ok(()) => match session.handed_over_as(intent.id) {
                Some(event) => return Ok((Append::new(), Disposition::Elsewhere(event))),
                None => return Err(Halt::TaskLost(format!("{} prepared no child session", visible.name))),
            },
            Err((start, StoreError::VersionConflict { kind, id, expected, found })) => {
                facts = start;
                let text = format!("{kind} `{id}` was changed meanwhile (expected version {expected}, found {found})");
                let conflict =
                    Refusal::new(Code::RuntimePreconditionFailed, text).reason(Some(Reason::VersionMismatch));
                refuse_and_void(session, intent, conflict, &mut facts)
            }
            Err((_, error)) => return Err(error.into()),
        },
        Ok(Err(found)) => refuse_and_void(session, intent, failed(found), &mut facts),
        Err(panic) => broken(session, visible, &*panic, &mut facts),
    };
    Ok(write_back(session, *refused, facts))
}

impl ArrivedResult {
    /// The result as an execution that ended. What was done elsewhere is not for us to see, so nothing is said of it.
    pub(crate) fn raw(&self, invocation: Invocation) -> RawResult {
        let executed = seam::receive(&invocation.tool, &invocation.authorized.validated.input, &self.0);
        RawResult {
            invocation,
            outcome: Outcome::Done(executed),
            reported: ToolReport::default(),
            streams: Vec::new(),
            duration: Duration::ZERO,
            stop: None,
        }
    }

    /// The words of others about a failure stand where a result stands, never among the facts.
    pub(crate) fn explain(&self, settled: &mut Settled) {
        if self.0.is_error {
            settled.content = Some(vec![Content::text(&self.0.text)]);
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

    /// The event that handed this call over, while its result has not come.
    fn handed_over_as(&self, intent: IntentId) -> Option<EventId> {
        let state = self.state();
        state.progress.handed_over.values().find(|request| request.intent_id == Some(intent)).map(|one| one.event_id)
    }

    /// What came back for this call.
    pub(crate) async fn result_of(&self, intent: IntentId) -> Result<Option<ArrivedResult>, Halt> {
        let Some(seq) = self.state().progress.arrived.get(&intent).copied() else { return Ok(None) };
        let events = self.gate.store.read(self.key, seq.saturating_sub(1), 1).await?;
        let arrival = |content: &[Block], is_error| Arrival {
            child: None,
            text: text_of(content),
            is_error,
            details: Value::Null,
        };
        Ok(events.first().and_then(|event| match event.body() {
            Body::UserCustomToolResult(result) => Some(ArrivedResult(arrival(&result.content, result.is_error))),
            Body::UserToolResult(result) => Some(ArrivedResult(arrival(&result.content, result.is_error))),
            Body::ThreadMessageReceived(said) => Some(ArrivedResult(Arrival {
                child: Some(said.from_session_thread_id),
                details: json!({ "outcome": said.outcome }),
                ..arrival(&said.content, false)
            })),
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
    /// Calls that were handed over and have no observation.
    #[must_use]
    pub fn handed_over(&self) -> Vec<IntentId> {
        self.shared.state().intents.open().filter(|intent| intent.handed_over).map(|intent| intent.intent_id).collect()
    }

    /// Nobody waits for the result of a handed-over call any more: the call is settled, whether one came meanwhile or not (H26).
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
        let text = "the session was interrupted before the result counted; what was done elsewhere is not known";
        self.settle_unseen(intent, Code::ApprovalSuperseded, text).await
    }

    /// A client's result that cannot be brought back to its call: the call happened, and must not be made again unseen.
    pub(crate) async fn settle_unopened(&self, intent: &fold::Intent) -> Result<Disposition, Halt> {
        let text = "the result came, but the input of the call cannot be opened any more; look at what was done";
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
