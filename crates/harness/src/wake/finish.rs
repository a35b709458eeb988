//! How a wake ends when the model has said what it wanted (agent-runtime 5.4, steps 11–14): one append.

use std::time::Duration;

use portcullis_base::{LearningId, QueuedWakeId, Timestamp, limits};
use portcullis_event::facts::{
    AgentMessage, Block, CustomToolUse, Disposition, FinalChecked, FinalVerdict, LearningCaptured, LoopOutcome,
    Priority, SpanCompleted, SpanResult, StatusIdle, StatusRescheduled, StopReason, WakeQueued, retry_key,
};
use portcullis_event::{Body, Event};
use portcullis_factcheck::check;
use portcullis_model::{Call, Stop};
use portcullis_pipeline::Halt;

use super::{Wake, WakeEnd, WakeStop};
use crate::context::NewestAnswer;
use crate::directive::{self, After, Directive, Learning};
use crate::live_event::LiveEvent;

/// An answer of the model that is in the log.
struct RecordedAnswer {
    /// Its words, without the directive.
    visible: String,
    directive: Directive,
    checked: FinalChecked,
}

impl Wake<'_> {
    pub(super) async fn finish(&mut self) -> Result<WakeEnd, Halt> {
        let Some(RecordedAnswer { visible, directive, checked }) = self.tell_answer().await? else {
            return self.idle(StopReason::EndTurn, "").await;
        };
        let called = self.context.newest.as_ref().is_some_and(|newest| !newest.asked.is_empty());
        let limit = self.ended_by();
        let after = match limit {
            // Work that a limit has ended does not go on by itself.
            Some(_) => After::Sleep { enforced: true },
            None => self.after(&directive),
        };
        let next = self.queue_wakes(&directive, after).filter(|_| limit.is_none());
        let custom = directive.custom.as_ref().filter(|wanted| self.may_ask_a_client(&wanted.name)).map(|wanted| {
            let used = CustomToolUse { intent_id: None, name: wanted.name.clone(), input: wanted.input.clone() };
            self.session.note(&mut self.facts, None, &used)
        });
        let mut end = match (custom, next) {
            (Some(event), _) => {
                let reason = StopReason::RequiresAction { event_ids: vec![event] };
                self.close(reason, &directive.summary, SpanResult::Blocked, &directive);
                self.end(WakeStop::RequiresAction(vec![event]))
            }
            (None, Some(due)) => {
                let status = StatusRescheduled {
                    previous_status: "running".to_owned(),
                    summary: Some(directive.summary.clone()),
                    next_due_at: Some(due),
                };
                self.session.note(&mut self.facts, None, &status);
                self.span(SpanResult::Success, Disposition::Requeued, &directive.summary, Some(&directive), None);
                self.end(WakeStop::Rescheduled(due))
            }
            (None, None) => {
                let reason = match self.stop {
                    Some(Stop::Refusal) => StopReason::Refusal,
                    _ if limit.is_some() => StopReason::BudgetReached,
                    // All of it went into thinking, or into calls that were one too many: that is no end of the work.
                    Some(Stop::MaxTokens | Stop::ToolUse) if visible.trim().is_empty() && !called => {
                        StopReason::BudgetReached
                    }
                    _ => StopReason::EndTurn,
                };
                let summary = match limit {
                    Some(limit) => format!("{} {}", limit.words(), directive.summary).trim_end().to_owned(),
                    None => directive.summary.clone(),
                };
                self.rests(reason.clone(), &summary);
                self.session.complete_for_parent(&mut self.facts, &visible, reason.as_str());
                self.span_after(SpanResult::Success, Disposition::Acked, &summary, after, None);
                WakeEnd { limit, ..self.end(WakeStop::Idle(reason)) }
            }
        };
        self.facts.idle();
        self.flush().await?;
        end.text = visible;
        end.checked = Some(checked);
        Ok(end)
    }

    /// Puts the newest answer into the log: its words, what they claim compared with what happened, what it learnt. `None`:
    /// there is none, or it was told before.
    async fn tell_answer(&mut self) -> Result<Option<RecordedAnswer>, Halt> {
        let Some(newest) = self.context.newest.clone().filter(|newest| !newest.checked) else { return Ok(None) };
        // Only where it was asked for: else a file that is quoted could queue wakes.
        let (visible, mut directive) = match self.harness.settings.directive {
            true => directive::read(&newest.text),
            false => (newest.text.clone(), Directive::none(&newest.text)),
        };
        if let Some(call) = self.last_call(&newest) {
            directive = directive::called(call, &visible);
        }
        let gate = self.session.gate();
        let directive = directive.masked(|text| gate.masked(text));
        // What stood beside calls is in the log with its answer.
        if newest.asked.is_empty() || visible.trim().is_empty() {
            let summary = Some(directive.summary.clone());
            let message = AgentMessage { message_id: newest.message_id, content: vec![in_log(&visible)], summary };
            self.session.note(&mut self.facts, None, &message);
        }
        self.hear_of_tasks().await?;
        let workspace = self.session.with_state(|state| state.session.workspace.clone());
        self.context.facts.lie_in(workspace.as_deref());
        let checked = self.check(&visible, &directive.claims);
        self.session.note(&mut self.facts, None, &checked);
        self.tell(LiveEvent::Checked(&checked));
        self.learn(&directive);
        if let Some(newest) = &mut self.context.newest {
            newest.checked = true;
        }
        Ok(Some(RecordedAnswer { visible, directive, checked }))
    }

    /// The model was done, and a person said something before that was told: it is told all the same, with the wakes it
    /// wants. What comes after this wake is for its next answer to say.
    pub(super) async fn overtaken(&mut self) -> Result<(), Halt> {
        if let Some(told) = self.tell_answer().await? {
            self.queue_wakes(&told.directive, After::Sleep { enforced: false });
        }
        Ok(())
    }

    /// The same where a person wants it to stop: nothing comes by itself.
    pub(super) async fn cut_short(&mut self) -> Result<(), Halt> {
        let ended = self.context.newest.as_ref().is_some_and(|newest| self.ends(newest));
        if ended {
            self.tell_answer().await?;
        }
        Ok(())
    }

    /// Whether the model is done with this answer.
    pub(super) fn ends(&self, newest: &NewestAnswer) -> bool {
        newest.asked.is_empty() || self.last_call(newest).is_some()
    }

    /// The call with which the model ended this wake, where that was asked for.
    pub(super) fn last_call<'n>(&self, newest: &'n NewestAnswer) -> Option<&'n Call> {
        newest.last_call().filter(|_| self.harness.settings.directive)
    }

    /// Takes in how background tasks ended while this wake went on: nothing shows it but the log.
    async fn hear_of_tasks(&mut self) -> Result<(), Halt> {
        for intent in self.context.facts.away() {
            let Some(end) = self.session.with_state(|state| state.tasks.of(intent)?.end) else { continue };
            let events = self.session.gate().store().read(self.session.key(), end.seq.saturating_sub(1), 1).await?;
            if let Some(Body::TaskCompleted(ended)) = events.first().map(Event::body) {
                self.context.facts.task_ended(&ended, end.seq);
            }
        }
        Ok(())
    }

    /// Whether a directive may put this to a client. What is a tool here is called, so that the gate decides about it; and
    /// who reads along at a terminal was asked for no directive.
    fn may_ask_a_client(&self, name: &str) -> bool {
        let is_tool = self.session.gate().offer(self.session.key().session).knows(name);
        if is_tool {
            let text =
                format!("the answer asks a client for `{name}`, which is a tool: it is called, or not run at all");
            self.tell(LiveEvent::Warning(&text));
        }
        self.harness.settings.directive && !is_tool
    }

    /// Compares what the answer claims with what happened (tool-contract §24). The words are never changed.
    fn check(&self, text: &str, claims: &[String]) -> FinalChecked {
        let claims = check(text, claims, &self.context.facts);
        let message_id = self.context.newest.as_ref().map(|newest| newest.message_id);
        FinalChecked {
            message_id: message_id.unwrap_or(portcullis_base::MessageId::from_u128(0)),
            verdict: FinalVerdict::of(&claims),
            claims,
        }
    }

    fn learn(&mut self, directive: &Directive) {
        let known = self.session.with_state(|state| (state.progress.learnt.clone(), state.session.agent_id));
        let (mut learnt, agent_id) = known;
        let source_event_id = self.processed.first().copied();
        for learning in &directive.learnings {
            let key = learnt_key(learning);
            if learnt.contains(&key) {
                continue;
            }
            learnt.push(key.clone());
            let fact = LearningCaptured {
                id: LearningId::make(&*self.harness.ids, self.now()),
                agent_id,
                session_id: self.session.key().session,
                source_event_id,
                source_reason: self.reason.clone(),
                kind: learning.kind,
                title: learning.title.clone(),
                detail: learning.detail.clone(),
                promote_to_memory: learning.promote_to_memory,
                dedupe_key: key,
            };
            self.session.note(&mut self.facts, None, &fact);
        }
    }

    /// The wakes the model wants, and its follow-up. Gives the earliest that is pending afterwards.
    fn queue_wakes(&mut self, directive: &Directive, after: After) -> Option<Timestamp> {
        let now = self.began_at;
        let session = self.session.key().session;
        let mut wakes: Vec<WakeQueued> = directive
            .queued_wakes
            .iter()
            .map(|wanted| WakeQueued {
                queued_wake_id: QueuedWakeId::make(&*self.harness.ids, now),
                due_at: now.plus(Duration::from_secs(wanted.delay_secs)),
                reason: wanted.reason.clone(),
                note: wanted.note.clone(),
                dedupe_key: wanted.dedupe_key.clone(),
                priority: wanted.priority,
            })
            .collect();
        if let After::Continue { delay_secs } = after {
            wakes.push(WakeQueued {
                queued_wake_id: QueuedWakeId::make(&*self.harness.ids, now),
                due_at: now.plus(Duration::from_secs(delay_secs)),
                reason: "session.follow_up".to_owned(),
                note: Some("Continue the same bounded session thread.".to_owned()),
                dedupe_key: Some(format!("follow-up:{session}")),
                priority: Priority::Normal,
            });
        }
        let pending = self.session.with_state(|state| state.wakes.len());
        wakes.truncate(MAX_WAKES.saturating_sub(pending));
        for wake in &wakes {
            self.session.note(&mut self.facts, None, wake);
        }
        let retry = retry_key(session);
        let earlier = self.session.with_state(|state| {
            let others = state.wakes.pending().filter(|wake| wake.dedupe_key.as_ref() != Some(&retry));
            others.map(|wake| wake.due_at).min()
        });
        wakes.iter().map(|wake| wake.due_at).chain(earlier).min()
    }

    fn after(&self, directive: &Directive) -> After {
        let settings = &self.harness.settings;
        let in_a_row = self.session.with_state(|state| state.progress.follow_ups);
        directive::after(directive, in_a_row, settings.max_follow_ups, settings.heartbeat.as_secs())
    }

    /// Status and span of a session that stops here.
    fn close(&mut self, reason: StopReason, summary: &str, result: SpanResult, directive: &Directive) {
        self.rests(reason, summary);
        self.span(result, Disposition::Acked, summary, Some(directive), None);
    }

    /// The status of a session that does nothing until something comes.
    pub(super) fn rests(&mut self, stop_reason: StopReason, summary: &str) {
        let summary = Some(summary.to_owned());
        let idle = StatusIdle { previous_status: "running".to_owned(), stop_reason, summary };
        self.session.note(&mut self.facts, None, &idle);
    }

    /// The end of the wake's span.
    pub(super) fn span(
        &mut self,
        result: SpanResult,
        disposition: Disposition,
        summary: &str,
        directive: Option<&Directive>,
        error_code: Option<&str>,
    ) {
        let after = directive.map_or(After::Sleep { enforced: false }, |directive| self.after(directive));
        self.span_after(result, disposition, summary, after, error_code);
    }

    /// The same where it is known already what comes after it.
    pub(super) fn span_after(
        &mut self,
        result: SpanResult,
        disposition: Disposition,
        summary: &str,
        after: After,
        error_code: Option<&str>,
    ) {
        if result != SpanResult::Error {
            self.cancel_retry();
        }
        let (outcome, enforced_by_runtime) = match after {
            After::Continue { .. } => (LoopOutcome::Continue, false),
            After::Sleep { enforced } => (LoopOutcome::Sleep, enforced),
        };
        // With the answer of this very append, and this wake.
        let mut usage = self.session.with_state(|state| state.progress.usage);
        self.facts.bodies().for_each(|fact| usage.count(&fact));
        usage.wakes += u64::from(result != SpanResult::Error);
        self.session.note(&mut self.facts, None, &usage);
        let span = SpanCompleted {
            span_id: self.wake_id,
            span_kind: "wake".to_owned(),
            name: "session_run".to_owned(),
            result,
            summary: summary.to_owned(),
            error_code: error_code.map(str::to_owned),
            disposition,
            outcome,
            enforced_by_runtime,
        };
        self.session.note(&mut self.facts, None, &span);
    }

    /// Ends a wake in which nothing was said.
    pub(super) async fn idle(&mut self, reason: StopReason, summary: &str) -> Result<WakeEnd, Halt> {
        self.rests(reason.clone(), summary);
        self.span(SpanResult::Success, Disposition::Acked, summary, None, None);
        self.facts.idle();
        self.flush().await?;
        Ok(self.end(WakeStop::Idle(reason)))
    }
}

/// The words of a message as its event holds them. An append has an end, and a model need not: past it the event says
/// so, and the whole answer is where the request's `parts` are.
pub(super) fn in_log(text: &str) -> Block {
    if text.len() <= limits::STRUCTURED_INLINE_MAX {
        return Block::text(text);
    }
    let head = &text[..text.floor_char_boundary(limits::STRUCTURED_INLINE_MAX)];
    Block::text(format!(
        "{head}… ({} of {} bytes; the whole answer is in the `parts` of its span.model_request_end)",
        head.len(),
        text.len()
    ))
}

/// What makes two learnings the same (agent-runtime 5.6).
fn learnt_key(learning: &Learning) -> String {
    let own = || format!("{:?}::{}::{}", learning.kind, learning.title, learning.detail).to_lowercase();
    learning.dedupe_key.clone().unwrap_or_else(own)
}

/// Wakes of one session that nobody took up yet; a model that queues more gets no more.
const MAX_WAKES: usize = 32;
