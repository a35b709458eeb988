//! What a wake takes up, and its first facts.

use portcullis_base::{Timestamp, WakeId};
use portcullis_event::facts::{
    Activation, ActivationKind, InputConsumed, Priority, SpanStarted, StatusRunning, StopReason, WakeCancelled,
    WakeConsumed, WakeQueued,
};
use portcullis_event::facts::{ThreadMessageKind, text_of};
use portcullis_event::fold::{Input, InputContent, OpenRequest};
use portcullis_event::{SessionStatus, State};
use portcullis_pipeline::{Append, Disposition, Halt, Session};
use tokio_util::sync::CancellationToken;

use super::{Harness, Wake, WokenFor, spans};
use crate::context::{AddedPart, UnshownInput, fence, interrupted, wake_message, woken_by};
use crate::live_event::LiveEvent;

/// The work that a wake finds in its session.
struct PendingWork {
    inputs: Vec<Input>,
    due: Vec<WakeQueued>,
    interrupted: bool,
    /// Where a person refused a call and wanted the session to stop (R4).
    stop_wished: Option<u64>,
    /// The last wake gave up. The caller of another one wants it tried again (agent-runtime 5.7).
    gave_up: bool,
    /// A request that a dead process left.
    request: Option<OpenRequest>,
    /// An ask was answered or closed, or a dead holder left something.
    unsettled: bool,
    open: Option<WakeId>,
    /// Asks that are pending, or a client's result that is.
    waits: bool,
    status: &'static str,
}

/// Whether there is anything for a wake to take up.
pub(super) fn is_due(state: &State, now: Timestamp) -> bool {
    let found = found(state, now, WokenFor::Due);
    if found.stops() || found.unsettled {
        return true;
    }
    let came = !found.inputs.is_empty() || !found.due.is_empty();
    let expired = state.asks.pending().any(|ask| ask.expires_at <= now);
    if found.waits { expired } else { came }
}

fn found(state: &State, now: Timestamp, whom: WokenFor) -> PendingWork {
    let waits = state.asks.pending().next().is_some() || !state.progress.handed_over.is_empty();
    // Another process may have run what waited (`approvals allow`): the model has yet to hear of it.
    let moved_on = !waits && state.session.status == SessionStatus::RequiresAction;
    PendingWork {
        inputs: state.inbox.pending().to_vec(),
        due: {
            let early = |wake: &&WakeQueued| whom == WokenFor::Operator && wake.is_retry();
            state.wakes.pending().filter(|wake| wake.due_at <= now || early(wake)).cloned().collect()
        },
        interrupted: state.inbox.interrupted(),
        stop_wished: state.progress.stop_wished,
        gave_up: whom == WokenFor::Operator && !waits && state.progress.last_stop == Some(StopReason::RetriesExhausted),
        request: state.progress.request.clone(),
        unsettled: moved_on
            || state.movable_asks().next().is_some()
            || !state.session.queued.is_empty()
            || state.intents.open().any(|intent| intent.ask_id.is_none() && !state.awaits(intent.intent_id)),
        open: state.progress.open.as_ref().map(|open| open.wake_id),
        waits,
        status: status_word(state.session.status),
    }
}

impl PendingWork {
    /// A person wants it to stop what it does.
    fn stops(&self) -> bool {
        self.interrupted || self.stop_wished.is_some()
    }
}

/// The word of a status in events.
pub(crate) fn status_word(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Idle => "idle",
        SessionStatus::Running => "running",
        SessionStatus::Rescheduling => "rescheduling",
        SessionStatus::RequiresAction => "requires_action",
        SessionStatus::Terminated => "terminated",
    }
}

impl<'a> Wake<'a> {
    /// Looks at what is there. `None`: nothing, and nothing was written (check 4).
    pub(super) async fn begin(
        harness: &'a Harness,
        session: &'a Session,
        whom: WokenFor,
        cancel: &'a CancellationToken,
    ) -> Result<Option<Self>, Halt> {
        session.catch_up().await?;
        let now = harness.clock.now();
        let mut found = session.with_state(|state| found(state, now, whom));
        if session.with_state(|state| state.session.status) == SessionStatus::Terminated {
            return Ok(None);
        }
        if found.stops() {
            // Those that an interrupt does not cancel are taken up by the next wake.
            found.due.clear();
        } else if found.waits && !found.unsettled && found.open.is_none() {
            // A transcript cannot go on past an unanswered call: the rest waits with it (agent-runtime 3.3).
            let expired = session.with_state(|state| state.asks.pending().any(|ask| ask.expires_at <= now));
            if !expired {
                return Ok(None);
            }
            found.unsettled = true;
        }
        let nothing_said = found.inputs.is_empty();
        let nothing_came = nothing_said && found.due.is_empty();
        if nothing_came && !found.unsettled && !found.gave_up && found.open.is_none() {
            return Ok(None);
        }
        let mut folded = harness.known.0.take(session.key().session);
        folded.go_on(session).await?;
        let mut context = folded.context.copied();
        let unshown = std::mem::take(&mut context.unshown);
        let only_unsettled = nothing_came && !found.gave_up && found.open.is_none();
        let said = found.status == status_word(SessionStatus::RequiresAction);
        if only_unsettled && !said && context.newest.as_ref().is_none_or(|newest| newest.asked.is_empty()) {
            // Calls that no model made, in a session of `portcullis call` for one: they are seen through, and no model is
            // asked about them.
            harness.known.0.keep(session.key().session, folded);
            session.attend_until(cancel).await?;
            return Ok(None);
        }
        // The model goes on as if nothing were between: no notes, no message.
        let carries_on = nothing_said && found.due.iter().any(WakeQueued::carries_on);
        let wake_id = found.open.unwrap_or_else(|| WakeId::make(&*harness.ids, now));
        session.enter_wake(Some(wake_id));
        spans::found(wake_id);
        let mut wake = Self {
            harness,
            session,
            wake_id,
            context,
            folded,
            facts: Append::new(),
            turn: None,
            tools: None,
            request: None,
            turns: session.with_state(|state| match &state.progress.open {
                Some(open) => open.turns,
                None => state.progress.turns_before(&activation(&found)),
            }),
            requests: session.with_state(|state| match &state.progress.open {
                Some(_) => state.progress.message_requests,
                None => state.progress.requests_before(&activation(&found)),
            }),
            loops: Default::default(),
            limit: None,
            asked_here: false,
            carried_on: false,
            began: harness.clock.monotonic(),
            began_at: session.with_state(|state| state.progress.open.as_ref().map_or(now, |open| open.at)),
            processed: Vec::new(),
            reason: session.with_state(|state| match &state.progress.open {
                Some(open) => open.activation.reason.clone(),
                None => activation(&found).reason,
            }),
            added: Vec::new(),
            cancel,
            said: std::collections::HashMap::new(),
            only_stop: found.stops() && found.inputs.iter().all(is_no_word),
            stop_calls: found.stops(),
            stop_note: None,
            heeded: found.stop_wished.unwrap_or_default(),
            stop: None,
            unknown: Vec::new(),
            noted: carries_on,
            shrunk: 0,
            learned: None,
            settled_wakes: found.due.iter().map(|wake| wake.queued_wake_id).collect(),
        };
        wake.tell(LiveEvent::WakeBegan { wake_id });
        wake.first_facts(&found, &unshown);
        if found.interrupted {
            wake.supersede().await?;
        }
        if found.unsettled {
            // What an answer lets run belongs to this wake, so the wake is in the log before it (agent-runtime 5.4,
            // step 9).
            wake.flush().await?;
            for attended in &session.attend_until(cancel).await? {
                wake.attended(attended);
            }
            wake.reload().await?;
        }
        // What a dead process left is told, whether it ran a wake or not, and however often a person must answer first.
        wake.unknown = session.with_state(|state| match found.open.is_some() || state.progress.untold_unknown {
            true => state.progress.unknown.clone(),
            false => Vec::new(),
        });
        Ok(Some(wake))
    }

    fn first_facts(&mut self, found: &PendingWork, unshown: &UnshownInput) {
        if let Some(OpenRequest { event_id, started }) = &found.request {
            // The caller that waited for its answer is gone (store §9).
            self.request_failed(started.turn_id, *event_id, started.message_id, "lost");
        }
        if found.open.is_none() {
            let activation = activation(found);
            let summary = match &activation.kind {
                ActivationKind::QueuedWake => {
                    format!("Wake reason={} note={}", activation.reason, activation.note.as_deref().unwrap_or("-"))
                }
                ActivationKind::PendingEvents => "Wake triggered by pending session events.".to_owned(),
            };
            let span = SpanStarted {
                span_id: self.wake_id,
                span_kind: "wake".to_owned(),
                name: "session_run".to_owned(),
                summary,
                activation,
            };
            self.session.note(&mut self.facts, None, &span);
            let running = StatusRunning { previous_status: found.status.to_owned() };
            self.session.note(&mut self.facts, None, &running);
            if self.harness.settings.directive && !self.noted {
                let session = self.session.key().session;
                self.added.extend(self.session.with_state(|state| wake_message(session, state)).map(AddedPart::Text));
            }
        }
        self.show(&unshown.inputs);
        self.added.extend(woken_by(&unshown.wakes).map(AddedPart::Text));
        self.consume(&found.inputs);
        if found.interrupted {
            self.cancel_wakes();
        } else if !found.due.is_empty() {
            let queued_wake_ids = found.due.iter().map(|wake| wake.queued_wake_id).collect();
            self.session.note(&mut self.facts, None, &WakeConsumed { queued_wake_ids });
            self.added.extend(woken_by(&found.due).map(AddedPart::Text));
        }
    }

    /// Takes input up: it is consumed in this append, and shown with the next request.
    pub(super) fn consume(&mut self, inputs: &[Input]) {
        if inputs.is_empty() {
            return;
        }
        self.show(inputs);
        for input in inputs {
            match &input.said {
                InputContent::Interrupt { note } => self.stop_note.clone_from(note),
                // What a person says is work of its own.
                InputContent::Message { .. } => (self.requests, self.loops, self.limit) = (0, Default::default(), None),
                InputContent::System { .. } | InputContent::Result { .. } | InputContent::FromThread { .. } => {}
            }
        }
        let event_ids: Vec<_> = inputs.iter().map(|input| input.event_id).collect();
        self.processed.extend(&event_ids);
        self.session.note(&mut self.facts, None, &InputConsumed { event_ids });
    }

    /// Puts what people said into the next request.
    fn show(&mut self, inputs: &[Input]) {
        for input in inputs {
            match &input.said {
                InputContent::Message { content } | InputContent::System { content } => {
                    self.said.insert(input.event_id, content.clone());
                    self.added.push(AddedPart::Said(input.event_id));
                }
                InputContent::Interrupt { note } => {
                    self.context.digested.interrupted(input.event_id, note.as_deref());
                    self.added.push(AddedPart::Text(interrupted(note.as_deref())));
                }
                // It stands where the result of its call stands.
                InputContent::Result { of, .. } if self.context.handed_over.contains(of) => {}
                InputContent::FromThread { from, kind: ThreadMessageKind::Completion, .. }
                    if self.context.awaited_children.contains(from) => {}
                InputContent::Result { of, content, is_error } => {
                    let how = if *is_error { "failed" } else { "answered" };
                    let line = format!("[custom-tool-result] {of} {how}");
                    self.added.push(AddedPart::Text(fence::answered(line, text_of(content))));
                }
                InputContent::FromThread { from, content, .. } => {
                    let line = format!("[thread-message] from {from}");
                    self.added.push(AddedPart::Text(fence::answered(line, text_of(content))));
                }
            }
        }
    }

    /// An interrupt also ends what was to come by itself.
    pub(super) fn cancel_wakes(&mut self) {
        self.cancel_queued("user.interrupt", |_| true);
    }

    /// Cancels queued wakes, unless this wake has taken them up or cancelled them: what it gathered may not be folded yet.
    pub(super) fn cancel_queued(&mut self, by: &str, which: impl Fn(&WakeQueued) -> bool) {
        let pending = self.session.with_state(|state| state.wakes.pending().cloned().collect::<Vec<_>>());
        let meant = pending.iter().filter(|wake| which(wake)).map(|wake| wake.queued_wake_id);
        let queued_wake_ids: Vec<_> = meant.filter(|wake| self.settled_wakes.insert(*wake)).collect();
        if !queued_wake_ids.is_empty() {
            let cancelled = WakeCancelled { queued_wake_ids, by: by.to_owned() };
            self.session.note(&mut self.facts, None, &cancelled);
        }
    }

    /// An interrupt ends whatever waits for an answer; an answer that comes in the same moment is void (H26).
    async fn supersede(&mut self) -> Result<(), Halt> {
        let pending: Vec<_> = self.session.with_state(|state| {
            let open = state.asks.pending().map(|ask| ask.ask_id);
            open.chain(state.asks.answered().map(|ask| ask.ask_id)).collect()
        });
        let handed_over = self.session.handed_over();
        if pending.is_empty() && handed_over.is_empty() {
            return Ok(());
        }
        self.flush().await?;
        let mut settled = Vec::new();
        for ask in pending {
            settled.push(self.session.supersede(ask).await?);
        }
        for intent in handed_over {
            settled.push(self.session.give_up(intent).await?);
        }
        for disposition in settled {
            if let Some(Disposition::Settled(observation)) = disposition {
                self.tell(LiveEvent::CallEnded { input: "", observed: observation.session_view() });
            }
        }
        self.reload().await
    }

    /// Others wrote to the log: the conversation is what it says now.
    async fn reload(&mut self) -> Result<(), Halt> {
        self.folded.go_on(self.session).await?;
        self.context.give_back(&self.folded.context);
        self.context = self.folded.context.copied();
        Ok(())
    }
}

/// Whether an input asks for nothing: an interrupt, or a client's result, which the interrupt made void (H26).
fn is_no_word(input: &Input) -> bool {
    matches!(input.said, InputContent::Interrupt { .. } | InputContent::Result { .. } | InputContent::FromThread { .. })
}

fn activation(found: &PendingWork) -> Activation {
    let earliest = found.due.iter().min_by_key(|wake| wake.due_at);
    match (found.inputs.first(), earliest) {
        (None, Some(wake)) => Activation {
            kind: ActivationKind::QueuedWake,
            priority: wake.priority,
            due_at: Some(wake.due_at),
            reason: wake.reason.clone(),
            note: wake.note.clone(),
            queued_wake_ids: found.due.iter().map(|wake| wake.queued_wake_id).collect(),
        },
        (input, _) => Activation {
            kind: ActivationKind::PendingEvents,
            priority: Priority::High,
            due_at: None,
            reason: input
                .map_or(if found.gave_up { "session.retry" } else { Activation::REPLIED }, Input::kind)
                .to_owned(),
            note: None,
            queued_wake_ids: found.due.iter().map(|wake| wake.queued_wake_id).collect(),
        },
    }
}
