//! Asks of descendants (tool-contract 13.6, L38): whoever watches the root of a session sees what every child of it
//! asks, and how that ended. The copies go through the outbox of the append that they tell of, so that neither is there
//! without the other.

use portcullis_base::{AppendId, AskId, EventId, OutboxId, SessionId};
use portcullis_event::facts::{AtRoot, ToolResult, ToolUse};
use portcullis_event::{Body, EventBody, Observed};
use portcullis_store::{OutboxEntry, OutboxKind};

use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

impl SessionShared {
    /// The root of the tree, if this session is somebody's child.
    fn root(&self) -> Option<SessionId> {
        self.state().session.root.filter(|root| *root != self.key.session)
    }

    /// Sends a copy of the `agent.tool_use` of an ask to the root, if there is one, and says where it will be.
    pub(crate) fn surface_ask(&self, ask: AskId, used: &ToolUse, facts: &mut Append) -> Option<AtRoot> {
        let session_id = self.root()?;
        let tool_use_id = self.copy_to(session_id, ask.to_string(), used, facts);
        Some(AtRoot { session_id, tool_use_id })
    }

    /// Tells the root how a call ended that it was asked about.
    pub(crate) fn surface_result(&self, observed: &Observed, facts: &mut Append) {
        if self.root().is_none() {
            return;
        }
        // Those that were raised and answered in this very append are not folded yet.
        let here = facts.bodies().filter_map(|body| match &*body {
            Body::PermissionAsked(asked) if asked.intent_id == observed.intent_id => Some((asked.ask_id, asked.root?)),
            _ => None,
        });
        let here: Vec<(AskId, AtRoot)> = here.collect();
        let asks: Vec<(AskId, AtRoot)> =
            self.state().asks.of(observed.intent_id).filter_map(|ask| Some((ask.ask_id, ask.root?))).collect();
        for (ask, root) in asks.into_iter().chain(here) {
            let result =
                ToolResult { tool_use_id: root.tool_use_id, intent_id: observed.intent_id, is_error: !observed.ok };
            self.copy_to(root.session_id, format!("{ask}:result"), &result, facts);
        }
    }

    fn copy_to<B: EventBody>(&self, root: SessionId, dedupe: String, body: &B, facts: &mut Append) -> EventId {
        let (ids, now) = (&*self.gate.ids, self.gate.clock.now());
        let event_id = EventId::make(ids, now);
        facts.outbox.push(OutboxEntry {
            id: OutboxId::make(ids, now),
            tenant: self.key.tenant,
            at: now,
            work: OutboxKind::Session {
                session_id: root,
                dedupe,
                event_id,
                append_id: AppendId::make(ids, now),
                event_type: B::KIND.as_str().to_owned(),
                payload: body.to_payload(),
                copied_from: Some(self.key.session),
            },
        });
        event_id
    }
}
