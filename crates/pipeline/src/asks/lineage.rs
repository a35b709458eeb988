//! Asks of descendants (tool-contract 13.6, L38): whoever watches the root of a session sees what every child of it
//! asks, and how that ended; and the parent of a session hears when its child is done. The copies go through the outbox of the append that they tell of, so that neither is there
//! without the other.

use portcullis_base::{AppendId, AskId, EventId, OutboxId, SessionId};
use portcullis_event::facts::{AtRoot, Block, ThreadMessageKind, ThreadMessageReceived, ToolResult, ToolUse};
use portcullis_event::{Actor, Body, EventBody, Observed, Stamp};
use portcullis_store::{OutboxEntry, OutboxEvent, OutboxKind};

use crate::sessions::append::Append;
use crate::sessions::session::{Session, SessionShared};

impl Session {
    /// Tells the parent, if there is one, that this session is done with what it was asked: once a wake, in the append that
    /// says so here.
    pub fn complete_for_parent(&self, facts: &mut Append, words: &str, outcome: &str) {
        let shared = &self.shared;
        let Some(parent) = shared.state().session.parent else { return };
        let said = ThreadMessageReceived {
            from_session_thread_id: shared.key.session,
            from_agent_name: Some(shared.scope.agent.clone()),
            content: vec![Block::text(shared.scope.redactor.redact_text(words))],
            kind: ThreadMessageKind::Completion,
            outcome: Some(outcome.to_owned()),
        };
        let (ids, now) = (&*shared.gate.ids, shared.gate.clock.now());
        let actor = Actor::agent(&shared.scope.agent);
        let stamp = Stamp { ids, clock: &*shared.gate.clock, actor: &actor, turn_id: None, wake_id: None };
        let dedupe = match shared.wake() {
            Some(wake) => format!("completion:{}:{wake}", shared.key.session),
            None => format!("completion:{}:{}", shared.key.session, shared.state().seq),
        };
        let events = vec![OutboxEvent::of(&stamp.draft(&said), dedupe)];
        let append_id = AppendId::make(ids, now);
        let work = OutboxKind::Deliver { session_id: parent, append_id, actor, events };
        facts.outbox.push(OutboxEntry { id: OutboxId::make(ids, now), tenant: shared.key.tenant, at: now, work });
    }
}

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
