//! What bounds a wake, and what bounds the work (agent-runtime 5.4, step 10).
//!
//! A wake that comes to its own bound ends, and the next one goes on at once: nobody notices. Only the limit of requests for
//! one message and the loop guard end work that would go on. Then one last request without tools sums it up.

use std::collections::VecDeque;

use portcullis_base::{Code, Phase, QueuedWakeId, limits};
use portcullis_event::Observed;
use portcullis_event::facts::{Disposition, Priority, SpanResult, StatusRescheduled, WakeQueued, carry_on_key};
use portcullis_model::{Call, Stop};
use portcullis_pipeline::Halt;

use super::{Limit, Wake, WakeEnd, WakeStop};
use crate::context::AddedPart;
use crate::directive::After;

/// The reason of a wake that goes on where the one before came to its bound.
const REASON: &str = "session.carry_on";

impl Wake<'_> {
    /// Whether this wake has made its requests, or taken its time.
    pub(super) fn is_at_its_bound(&self) -> bool {
        let settings = &self.harness.settings;
        let late = self.harness.clock.monotonic().saturating_sub(self.began) >= settings.wake_deadline;
        // One that has asked nothing yet has not used its time, however long its calls took: else none would ever ask.
        self.turns >= settings.max_turns_per_wake || (late && self.asked_here)
    }

    /// Ends this wake and queues the one that goes on with its work. Until that one's first append a crash leaves it due.
    pub(super) async fn carry_on(&mut self) -> Result<WakeEnd, Halt> {
        let at = self.now();
        let wake = WakeQueued {
            queued_wake_id: QueuedWakeId::make(&*self.harness.ids, at),
            due_at: at,
            reason: REASON.to_owned(),
            note: None,
            dedupe_key: Some(carry_on_key(self.session.key().session)),
            // A person waits for it.
            priority: Priority::High,
        };
        self.session.note(&mut self.facts, None, &wake);
        let status = StatusRescheduled { previous_status: "running".to_owned(), summary: None, next_due_at: Some(at) };
        self.session.note(&mut self.facts, None, &status);
        // The model chose nothing: its own wishes to go on neither count nor begin anew (H32).
        let after = After::Sleep { enforced: true };
        self.span_after(SpanResult::Success, Disposition::Requeued, "", after, None);
        self.facts.idle();
        self.flush().await?;
        self.carried_on = true;
        Ok(self.end(WakeStop::Rescheduled(at)))
    }

    /// Whether the request that goes out now is the last one of this work. What the model must know of that is added to it.
    pub(super) fn is_last_request(&mut self) -> bool {
        let most = self.harness.settings.max_requests_per_message;
        if self.requests + 1 >= most {
            self.limit = self.limit.or(Some(Limit::Requests(most)));
        }
        if self.limit.is_some() {
            self.added.push(AddedPart::last_request());
        } else if self.requests + 2 == most {
            self.added.push(AddedPart::last_but_one(most));
        }
        self.limit.is_some()
    }

    /// A call was settled. The loop guard of the gate sees calls that could be made; one that never gets that far (no such
    /// tool, an input that does not fit) is compared with those before it here.
    pub(super) fn counts_loops(&mut self, call: &Call, observed: &Observed) {
        let never_made = matches!(observed.phase.known(), Some(Phase::Lookup | Phase::Validate)) && !observed.ok;
        let loops = &mut self.loops;
        if observed.code.known() == Some(Code::LoopDetected) {
            loops.refused += 1;
        } else if never_made {
            let call = (call.name.clone(), call.arguments.clone());
            match loops.unfit.contains(&call) {
                true => loops.unfit_again += 1,
                false => {
                    loops.unfit_again = 0;
                    loops.unfit.push_back(call);
                    if loops.unfit.len() > limits::LOOP_CYCLE {
                        loops.unfit.pop_front();
                    }
                }
            }
        } else {
            *loops = RefusedCalls::default();
        }
        if loops.refused >= limits::LOOP_END || loops.unfit_again >= limits::LOOP_STOP {
            self.limit = self.limit.or(Some(Limit::Loop));
        }
    }

    /// The limit that ended the work with this answer. After a crash the count of requests tells it as well.
    pub(super) fn ended_by(&self) -> Option<Limit> {
        let most = self.harness.settings.max_requests_per_message;
        let used_up = self.requests >= most && self.stop != Some(Stop::Refusal);
        self.limit.or(used_up.then_some(Limit::Requests(most)))
    }
}

/// Calls that were refused one after the other, without one in between that was made.
#[derive(Debug, Default)]
pub(crate) struct RefusedCalls {
    /// By the loop guard.
    refused: u32,
    /// The last that could not be made, by name and input.
    unfit: VecDeque<(String, String)>,
    /// How often one of those came again.
    unfit_again: u32,
}

impl Limit {
    /// In one sentence, for the log.
    pub(super) fn words(self) -> String {
        match self {
            Self::Requests(most) => format!("Stopped at the limit of {most} model requests for one message."),
            Self::Loop => "Stopped: the same calls were made again and again after they were refused.".to_owned(),
        }
    }
}
