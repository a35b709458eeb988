//! The calls of an answer, through the gate.

use std::sync::Arc;

use portcullis_base::{Code, EventId, Fulfiller};
use portcullis_event::State;
use portcullis_event::facts::{Disposition as Acked, SpanResult, StopReason};
use portcullis_event::fold::HandedOver;
use portcullis_pipeline::{Attended, Disposition, Halt, Proposal, Stopping};

use super::{Wake, WakeEnd, WakeStop};
use crate::context::{has_media, media_of, quoted, verifies};
use crate::live_event::LiveEvent;

impl Wake<'_> {
    /// Runs the calls of the newest answer that have no observation yet. `Some`: the wake pauses here.
    pub(super) async fn run_calls(&mut self) -> Result<Option<WakeEnd>, Halt> {
        // Of the calls that are open now: those of the next answer are what a person said since is for.
        let stop_calls = std::mem::take(&mut self.stop_calls);
        if self.any_waits() {
            return self.pause().await.map(Some);
        }
        let open = self.context.open_calls();
        let Some(newest) = self.context.newest.as_ref().filter(|_| !open.is_empty()) else { return Ok(None) };
        let message_id = newest.message_id;
        // After a crash or a pause the turn that showed the tools is in the log: its calls are compared with that menu, not
        // with today's (tool-contract 8.3).
        let shown = match &self.turn {
            Some(turn) => Some(Arc::clone(turn)),
            None => self.session.turn_shown(&self.context.pages).await?,
        };
        let turn = shown.unwrap_or_else(|| self.session.begin_loop_turn(&mut self.facts, &self.context.pages));
        // What is shown of a call is what the log holds of it (L69); it runs with what the model wrote.
        let shown: Vec<String> = open.iter().map(|call| self.session.gate().masked(&call.arguments)).collect();
        let proposer = self.session.agent();
        let proposals = open.iter().zip(&shown).map(|(call, input)| {
            self.tell(LiveEvent::CallBegan { call_id: &call.id, tool: &call.name, input });
            Proposal {
                actor: proposer.clone(),
                message_id,
                call_id: call.id.clone(),
                tool: call.name.clone(),
                input: call.arguments.clone(),
                stated_reason: None,
            }
        });
        let proposals = proposals.collect();
        let stop = self.cancel.child_token();
        // What a person has stopped is settled, in its order, and none of it is run or asked about (agent-runtime 3.3).
        self.session.catch_up().await?;
        let stopped = self.stop_wished().is_some() || self.session.with_state(|state| state.inbox.interrupted());
        if stop_calls || stopped {
            stop.cancel();
        }
        let facts = std::mem::take(&mut self.facts);
        let scheduling = self.harness.settings.scheduling;
        let ended = {
            // A process that ends leaves what it has not begun (agent-runtime 5.8).
            let stopping = Stopping { cancel: &stop, leave: Some(self.cancel) };
            let calls = self.session.calls(facts, &turn, proposals, scheduling, stopping);
            let mut calls = std::pin::pin!(calls);
            tokio::select! {
                biased;
                ended = &mut calls => ended?,
                () = self.interrupt_comes() => {
                    stop.cancel();
                    calls.await?
                }
            }
        };
        self.facts = ended.facts;
        let shows_media = |call: &Disposition| match call {
            Disposition::Settled(observation) => has_media(observation.session_view()),
            Disposition::Parked(_) | Disposition::Elsewhere(_) => false,
        };
        if ended.calls.iter().any(shows_media) {
            // Their bytes come from the store, live as after a restart; so they have to be there.
            self.flush().await?;
        }
        let mut waits = None;
        for ((disposition, call), input) in ended.calls.iter().zip(&open).zip(&shown) {
            match disposition {
                Disposition::Settled(observation) => {
                    let observed = observation.session_view();
                    self.tell(LiveEvent::CallEnded { input, observed });
                    self.counts_loops(call, observed);
                    let media = media_of(&self.session.gate().shelf(), self.session.key().session, observed).await;
                    let seq = self.session.with_state(|state| state.seq) + 1;
                    let verifies = verifies(self.session, &observed.tool);
                    for verification in self.context.observed(observed, media, seq, verifies) {
                        self.session.note(&mut self.facts, Some(turn.turn_id), &verification);
                    }
                }
                Disposition::Parked(ask) => waits = waits.or(Some(LiveEvent::Waiting { ask: *ask })),
                Disposition::Elsewhere(event_id) => {
                    waits = waits.or(Some(LiveEvent::HandedOver { event_id: *event_id, tool: &call.name }));
                }
            }
        }
        if let Some(waits) = waits {
            self.tell(waits);
            return self.pause().await.map(Some);
        }
        Ok(None)
    }

    /// What attending moved on, for a watcher.
    pub(super) fn attended(&self, attended: &Attended) {
        match &attended.disposition {
            Disposition::Settled(observation) => {
                let observed = observation.session_view();
                self.tell(LiveEvent::CallEnded { input: "", observed });
                if observed.code.known() == Some(Code::UserDenied) {
                    tracing::debug!(intent = %attended.intent_id, "a person said no");
                }
            }
            Disposition::Parked(ask) => self.tell(LiveEvent::Waiting { ask: *ask }),
            Disposition::Elsewhere(event_id) => {
                let of = |state: &State| state.intents.get(attended.intent_id).map(|intent| intent.tool.clone());
                let tool = self.session.with_state(of).unwrap_or_default();
                self.tell(LiveEvent::HandedOver { event_id: *event_id, tool: &tool });
            }
        }
    }

    fn any_waits(&self) -> bool {
        self.session.with_state(|state| {
            let handed_over = state.progress.handed_over.values().any(|request| request.intent_id.is_some());
            handed_over || state.asks.pending().next().is_some()
        })
    }

    /// Resolves when a person interrupts the session; never else.
    pub(super) async fn interrupt_comes(&self) {
        self.session.interrupted_after(0).await;
    }

    /// Ends the wake because a person must answer first (agent-runtime 5.4, step 15).
    async fn pause(&mut self) -> Result<WakeEnd, Halt> {
        self.flush().await?;
        let event_ids = self.blocking().await?;
        let summary = self.session.with_state(awaited);
        // Who waits for a child or an environment alone asks nobody to act: its session reads as running.
        if !event_ids.is_empty() {
            self.rests(StopReason::RequiresAction { event_ids: event_ids.clone() }, &summary);
        }
        self.span(SpanResult::Blocked, Acked::Acked, &summary, None, None);
        self.facts.idle();
        self.flush().await?;
        let stop = if event_ids.is_empty() { WakeStop::Elsewhere } else { WakeStop::RequiresAction(event_ids) };
        Ok(self.end(stop))
    }

    /// The `agent.*_use` events that wait for an answer, oldest first.
    async fn blocking(&self) -> Result<Vec<EventId>, Halt> {
        let asks = portcullis_store::AskFilter { session: Some(self.session.key().session), pending: true };
        let rows = self.session.gate().store().asks(self.session.key().tenant, asks).await?;
        let mut ids: Vec<EventId> = rows.iter().filter_map(|row| row.tool_use_id).collect();
        ids.extend(
            self.session
                .with_state(|state| state.progress.asked_of_client().map(|one| one.event_id).collect::<Vec<_>>()),
        );
        // Ids begin with their time.
        ids.sort_unstable();
        Ok(ids)
    }
}

/// What a session that pauses waits for, in words.
fn awaited(state: &State) -> String {
    let asked = state.asks.pending().filter_map(|ask| state.intents.get(ask.intent_id));
    let asked: Vec<String> = asked.map(|intent| quoted::name(&intent.tool)).collect();
    let of = |by: Fulfiller| {
        let requests = state.progress.handed_over.values().filter(move |request| request.by == by);
        let tool = |request: &HandedOver| Some(state.intents.get(request.intent_id?)?.tool.clone());
        let name = |request: &HandedOver| match request.name.is_empty() {
            true => quoted::name(&tool(request).unwrap_or_default()),
            false => quoted::name(&request.name),
        };
        requests.map(name).collect::<Vec<_>>().join(", ")
    };
    let mut words = Vec::new();
    if !asked.is_empty() {
        words.push(format!("Awaiting confirmation to run {}.", asked.join(", ")));
    }
    let whose = [
        (of(Fulfiller::Client), "Awaiting the client's result of"),
        (of(Fulfiller::Environment), "Awaiting the environment's result of"),
        (of(Fulfiller::Child), "Waiting for the child session of"),
    ];
    words.extend(whose.iter().filter(|(names, _)| !names.is_empty()).map(|(names, what)| format!("{what} {names}.")));
    words.join(" ")
}
