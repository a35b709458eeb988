//! A call that another process runs: how it gets into the log, and what the log says became of it.

use portcullis_base::{Actor, AskId, EventId, IntentId, SessionId, limits};
use portcullis_contract::seam;
use portcullis_event::Body;
use portcullis_secret::redact_sensitive;
use portcullis_store::{SessionKey, StoreError};
use serde_json::Value;

use crate::gate::{Disposition, Gate};
use crate::phases::stored_input;
use crate::sessions::session::Observation;

/// Events looked at at once.
const PAGE: usize = 500;

/// A call whose end is looked for in the log, and how far the log was read.
#[derive(Debug, Clone)]
pub struct SoughtCall {
    session: SessionId,
    after: u64,
    /// What its `tool.queued` is called, while its intent is not known.
    queued: Option<String>,
    intent: Option<IntentId>,
    ask: Option<AskId>,
}

impl SoughtCall {
    /// The end of a known intent, after `seq`. That it waits for an answer is not its end.
    #[must_use]
    pub fn intent(session: SessionId, intent: IntentId, seq: u64) -> Self {
        Self { session, after: seq, queued: None, intent: Some(intent), ask: None }
    }

    /// What becomes of the `tool.queued` with this id, which stands at `seq`.
    #[must_use]
    pub fn queued(session: SessionId, event: EventId, seq: u64) -> Self {
        Self { session, after: seq, queued: Some(event.to_string()), intent: None, ask: None }
    }

    fn take_in(&mut self, body: &Body) -> Option<Disposition> {
        match body {
            Body::IntentProposed(fact) if self.intent.is_none() && self.queued.as_ref() == Some(&fact.call_id) => {
                self.intent = Some(fact.intent_id);
            }
            Body::PermissionAsked(fact) if self.queued.is_some() && self.intent == Some(fact.intent_id) => {
                self.ask = Some(fact.ask_id);
            }
            Body::Observed(fact) if self.intent == Some(fact.intent_id) => {
                return Some(Disposition::Settled(Box::new(Observation((**fact).clone()))));
            }
            _ => {}
        }
        None
    }
}

impl Gate {
    /// Reads on where the last look ended. `None`: the log does not say yet.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn look_for(&self, sought: &mut SoughtCall) -> Result<Option<Disposition>, StoreError> {
        let key = SessionKey { tenant: self.scope.tenant, session: sought.session };
        loop {
            let events = self.inner.store.read(key, sought.after, PAGE).await?;
            for event in &events {
                sought.after = event.seq;
                if let Some(settled) = sought.take_in(&event.body()) {
                    return Ok(Some(settled));
                }
            }
            if events.len() < PAGE {
                return Ok(sought.ask.map(Disposition::Parked));
            }
        }
    }

    /// The input of a call as `tool.queued` may hold it. `None` where it would put a secret or a
    /// sensitive value into the log in the open (L69), or is over the limit: such a call is made by
    /// the holder of the session, or not at all.
    #[must_use]
    pub fn open_input(&self, session: SessionId, tool: &str, input: &str) -> Option<Value> {
        if input.len() > limits::INPUT_MAX {
            return None;
        }
        let value = serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()));
        let mut masked = value.clone();
        if let Some(registered) = self.effective(tool, session) {
            let _ = redact_sensitive(seam::input_schema(&registered.tool), &mut masked);
        }
        self.scope.redactor.redact_value(&mut masked);
        let name = self.scope.redactor.redact_text(tool);
        (masked == value && name == tool).then_some(value)
    }

    /// What may be kept of the arguments of a call: masked as its `tool.intent` masks them, and no longer (L69). `None`:
    /// all of it, to the byte.
    #[must_use]
    pub fn masked_input(&self, session: SessionId, tool: &str, input: &str) -> Option<String> {
        let live = self.effective(tool, session);
        let schemas: Vec<&Value> = live.iter().map(|registered| seam::input_schema(&registered.tool)).collect();
        let written = stored_input::written(input, &schemas, &self.scope.redactor).value;
        let proposed = serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()));
        if written == proposed {
            // Of a name that stands there twice the value keeps only the last: the text is looked at as well.
            let text = self.scope.redactor.redact_text(input);
            return (text != input).then(|| text.into_owned());
        }
        Some(match written {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }

    /// Who makes the calls that no model proposes.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.scope.actor
    }
}
