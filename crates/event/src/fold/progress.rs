//! How far a session is with its wakes: the one that is open, the request that is, what it has used, and what is left
//! unanswered.

use std::collections::BTreeMap;

use portcullis_base::{EventId, Fulfiller, IntentId, QueuedWakeId, SessionId, Timestamp, WakeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::{Activation, LoopOutcome, ModelRequestStart, Reply, SessionUsage, StopReason, ThreadMessageKind};
use crate::{Body, Event};

/// A wake that began and has not ended. If nobody is at it, it is work for the next who comes (agent-runtime 5.4, step
/// 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenWake {
    pub wake_id: WakeId,
    pub seq: u64,
    pub at: Timestamp,
    pub activation: Activation,
    /// Model requests made in it.
    pub turns: u32,
}

/// A request whose answer is not in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenRequest {
    pub event_id: EventId,
    pub started: ModelRequestStart,
}

/// A call that was handed over and whose result has not come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    pub event_id: EventId,
    /// Who fulfils it.
    pub by: Fulfiller,
    /// The child session that does, if one does.
    pub child: Option<SessionId>,
    /// The call that it answers; none where a reply's directive asked for it.
    pub intent_id: Option<IntentId>,
    /// What the client was asked for; of a child, its agent. Empty for an environment: its intent has the tool.
    pub name: String,
    pub input: Value,
    pub requested_at: Timestamp,
}

/// The wakes of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub open: Option<OpenWake>,
    pub request: Option<OpenRequest>,
    pub handed_over: BTreeMap<EventId, HandedOver>,
    /// Calls whose result came and that have no observation yet; at which seq it stands.
    pub arrived: BTreeMap<IntentId, u64>,
    pub usage: SessionUsage,
    pub last_wake: Option<WakeId>,
    pub last_summary: Option<String>,
    pub last_stop: Option<StopReason>,
    /// Requests of the wakes that led up to a pause: what goes on after the answer goes on with their count.
    pub paused_turns: u32,
    /// Model requests since a person last spoke, or since the work began that came by itself: over pauses, over tries of a
    /// failed request, and over wakes that carry on.
    #[serde(default)]
    pub message_requests: u32,
    /// The queued wake that goes on with the same work, if there is one: a try of a failed request, or one that carries on.
    #[serde(default)]
    pub same_work: Option<QueuedWakeId>,
    /// `continue` in a row; only a sleep the model chose or a new word of a person ends it (H32).
    pub follow_ups: u32,
    /// The last sleep was not the model's wish.
    pub enforced: bool,
    /// Calls that were settled as unknown, and nobody said what became of them.
    pub unknown: Vec<portcullis_base::InvocationId>,
    /// One was settled so since the model was last asked: the next request tells of it (H36).
    pub untold_unknown: bool,
    /// Where a person refused a call and wanted the session to stop, until it has (R4).
    pub stop_wished: Option<u64>,
    /// Up to here the messages gave way to a summary.
    pub kept_from_seq: u64,
    /// Keys of learnings that this session captured.
    pub learnt: Vec<String>,
}

impl Progress {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        self.usage.count(body);
        match body {
            Body::WakeQueued(wake) if wake.is_retry() || wake.carries_on() => {
                self.same_work = Some(wake.queued_wake_id);
            }
            Body::SpanStarted(span) => {
                self.message_requests = self.requests_before(&span.activation);
                self.open = Some(OpenWake {
                    wake_id: span.span_id,
                    seq: event.seq,
                    at: event.at,
                    activation: span.activation.clone(),
                    turns: self.turns_before(&span.activation),
                });
            }
            Body::SpanCompleted(span) => self.close(span),
            Body::ModelRequestStart(started) => {
                self.request = Some(OpenRequest { event_id: event.id, started: (**started).clone() });
                self.untold_unknown = false;
                self.message_requests = self.message_requests.saturating_add(1);
                if let Some(open) = &mut self.open {
                    open.turns += 1;
                    // A wake that began after it has stopped what there was, and goes on with what a person said.
                    self.stop_wished = self.stop_wished.filter(|wished| *wished > open.seq);
                }
            }
            Body::ModelRequestEnd(_) => self.request = None,
            Body::UserMessage(_) => (self.follow_ups, self.enforced, self.message_requests) = (0, false, 0),
            Body::StatusIdle(idle) => {
                if !matches!(idle.stop_reason, StopReason::RequiresAction { .. }) {
                    self.stop_wished = None;
                }
                self.last_stop = Some(idle.stop_reason.clone());
            }
            // It goes on by itself: what it stopped for before is over (agent-runtime 3.4).
            Body::StatusRescheduled(_) => self.last_stop = None,
            Body::AskReplied(replied) if replied.reply == Reply::DenyAndStop => self.stop_wished = Some(event.seq),
            Body::CustomToolUse(used) => {
                let request = HandedOver {
                    event_id: event.id,
                    by: Fulfiller::Client,
                    child: None,
                    intent_id: used.intent_id,
                    name: used.name.clone(),
                    input: used.input.clone(),
                    requested_at: event.at,
                };
                self.handed_over.insert(event.id, request);
            }
            Body::ToolUse(used) if used.by_environment => {
                let request = HandedOver {
                    event_id: event.id,
                    by: Fulfiller::Environment,
                    child: None,
                    intent_id: Some(used.intent_id),
                    name: String::new(),
                    input: Value::Null,
                    requested_at: event.at,
                };
                self.handed_over.insert(event.id, request);
            }
            Body::ThreadCreated(made) if made.intent_id.is_some() => {
                let request = HandedOver {
                    event_id: event.id,
                    by: Fulfiller::Child,
                    child: Some(made.session_thread_id),
                    intent_id: made.intent_id,
                    name: made.agent_name.clone(),
                    input: Value::Null,
                    requested_at: event.at,
                };
                self.handed_over.insert(event.id, request);
            }
            // It closes what a client was asked for, at once: an answer that comes after it is void (agent-runtime 3.3,
            // H26).
            Body::UserInterrupt(_) => self.handed_over.clear(),
            Body::UserCustomToolResult(result) => self.came(result.custom_tool_use_id, event.seq),
            Body::UserToolResult(result) => self.came(result.tool_use_id, event.seq),
            Body::ThreadMessageReceived(said) if said.kind == ThreadMessageKind::Completion => {
                let of_child = |request: &&HandedOver| request.child == Some(said.from_session_thread_id);
                if let Some(request) = self.handed_over.values().find(of_child).map(|request| request.event_id) {
                    self.came(request, event.seq);
                }
            }
            Body::Observed(observed) => {
                self.handed_over.retain(|_, request| request.intent_id != Some(observed.intent_id));
                self.arrived.remove(&observed.intent_id);
            }
            Body::CallRecovered(recovered) => {
                self.unknown.push(recovered.invocation_id);
                self.untold_unknown = true;
            }
            Body::InvocationResolved(resolved) => self.unknown.retain(|id| *id != resolved.invocation_id),
            Body::ContextCompacted(compacted) => self.kept_from_seq = compacted.kept_from_seq,
            Body::LearningCaptured(learning) => self.learnt.push(learning.dedupe_key.clone()),
            _ => {}
        }
    }

    /// The result of a handed-over call stands at `seq`.
    fn came(&mut self, request: EventId, seq: u64) {
        if let Some(intent) = self.handed_over.remove(&request).and_then(|request| request.intent_id) {
            self.arrived.insert(intent, seq);
        }
    }

    /// What the client of the session was asked for and has not given, oldest first.
    pub fn asked_of_client(&self) -> impl Iterator<Item = &HandedOver> {
        self.handed_over.values().filter(|request| request.by == Fulfiller::Client)
    }

    /// Requests that count in a wake from its beginning: one that only goes on with what was answered is the same work as
    /// the one that paused, and has the same limit.
    #[must_use]
    pub fn turns_before(&self, activation: &Activation) -> u32 {
        if activation.goes_on() { self.paused_turns } else { 0 }
    }

    /// Model requests that the work of a wake has made before it: none, unless the wake goes on with the same work.
    #[must_use]
    pub fn requests_before(&self, activation: &Activation) -> u32 {
        let same = self.same_work.is_some_and(|wake| activation.queued_wake_ids.contains(&wake));
        if same || activation.goes_on() { self.message_requests } else { 0 }
    }

    fn close(&mut self, span: &crate::facts::SpanCompleted) {
        let ended = self.open.take_if(|open| open.wake_id == span.span_id);
        if let Some(open) = &ended {
            let paused = span.result == crate::facts::SpanResult::Blocked;
            self.paused_turns = if paused { open.turns } else { 0 };
        }
        self.request = None;
        self.last_wake = Some(span.span_id);
        self.last_summary = Some(span.summary.clone());
        if span.result == crate::facts::SpanResult::Error {
            return;
        }
        if ended.is_some() {
            self.usage.wakes += 1;
        }
        // A wake that pauses for an answer chose nothing: it neither counts nor begins anew (H32).
        let chose = span.result == crate::facts::SpanResult::Success;
        match span.outcome {
            LoopOutcome::Continue => self.follow_ups += 1,
            LoopOutcome::Sleep if chose && !span.enforced_by_runtime => self.follow_ups = 0,
            LoopOutcome::Sleep => {}
        }
        if chose {
            self.enforced = span.enforced_by_runtime;
        }
    }
}
