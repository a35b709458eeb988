//! What a list says of a session, computed from its events like every other row (S15): whose it is, how it stands, what
//! it has used, and which of its calls ended without anyone knowing how.

use portcullis_base::{AgentId, Digest, IntentId, InvocationId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::facts::{OutcomeStatus, OutcomeTrend, SessionUsage, SpanResult, StopReason};
use crate::rows::status_after;
use crate::{Body, Event, SessionStatus};

/// Characters of a summary that a row keeps. A list shows one line of each session; the log has the whole text.
pub const FACT_SUMMARY_CHARS: usize = 400;

/// The row of facts of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// Whose session it is; `None`: no agent was defined for it.
    pub agent_id: Option<AgentId>,
    pub agent_version: u32,
    /// The fingerprint of what it runs as.
    pub setup: Digest,
    pub status: SessionStatus,
    /// Why it last stopped; none while it goes on by itself.
    pub stop_reason: Option<StopReason>,
    /// How its last wake was summed up, at most [`FACT_SUMMARY_CHARS`] characters of it.
    pub last_summary: Option<String>,
    /// What it is to reach, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeFacts>,
    pub usage: SessionUsage,
    /// The time of its newest event.
    pub last_activity_at: Timestamp,
}

/// What a session is to reach, and what was last found of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeFacts {
    /// At most [`FACT_SUMMARY_CHARS`] characters of it.
    pub title: String,
    pub status: OutcomeStatus,
    /// None before there is a verdict.
    pub trend: Option<OutcomeTrend>,
}

impl SessionFacts {
    /// The facts after a change.
    pub fn take_in(&mut self, change: &FactsChange) {
        self.status = change.status.unwrap_or(self.status);
        if let Some(stopped) = &change.stop_reason {
            self.stop_reason.clone_from(stopped);
        }
        if change.last_summary.is_some() {
            self.last_summary.clone_from(&change.last_summary);
        }
        if let Some(title) = &change.outcome {
            self.outcome = Some(OutcomeFacts { title: title.clone(), status: OutcomeStatus::Open, trend: None });
        }
        if let (Some(outcome), Some((status, trend))) = (&mut self.outcome, change.verdict) {
            (outcome.status, outcome.trend) = (status, Some(trend));
        }
        self.usage.add(&change.usage);
        self.last_activity_at = change.last_activity_at.unwrap_or(self.last_activity_at);
    }

    /// The facts of a whole log; `None` if it does not begin with the creation of a session.
    #[must_use]
    pub fn fold(events: &[Event]) -> Option<Self> {
        let mut facts = None;
        facts_change(events).apply_to(&mut facts);
        facts
    }
}

/// A call that was settled without anyone knowing whether it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownOutcome {
    pub invocation_id: InvocationId,
    pub intent_id: IntentId,
    /// When that was recorded.
    pub at: Timestamp,
    pub seq: u64,
}

/// What an append changes in the facts of its session. It needs no look at them, so that a backend changes columns and
/// does not write the row whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactsChange {
    /// The session begins here; the fields below come after it.
    pub began: Option<SessionFacts>,
    pub status: Option<SessionStatus>,
    /// `Some(None)`: what it stopped for before is over.
    pub stop_reason: Option<Option<StopReason>>,
    pub last_summary: Option<String>,
    /// The title of a new outcome; nothing is known of how the session stands to it.
    pub outcome: Option<String>,
    /// How it stands to its outcome. It comes after `outcome`, and says nothing where there is none.
    pub verdict: Option<(OutcomeStatus, OutcomeTrend)>,
    /// To be added.
    pub usage: SessionUsage,
    pub last_activity_at: Option<Timestamp>,
    /// Calls whose outcome is unknown from here on.
    pub unknown: Vec<UnknownOutcome>,
    /// Calls of which somebody said what became of them. It comes after `unknown`.
    pub resolved: Vec<InvocationId>,
}

impl FactsChange {
    /// Brings the facts of a session forward. A log that does not begin with the creation of a session has none.
    pub fn apply_to(&self, facts: &mut Option<SessionFacts>) {
        if let Some(began) = &self.began {
            *facts = Some(began.clone());
        }
        if let Some(facts) = facts {
            facts.take_in(self);
        }
    }
}

/// What consecutive events of one session change in its facts.
#[must_use]
pub fn facts_change(events: &[Event]) -> FactsChange {
    let mut change = FactsChange::default();
    for event in events {
        let body = &*event.body_ref();
        change.usage.count(body);
        change.status = status_after(body).or(change.status);
        change.last_activity_at = Some(event.at);
        match body {
            Body::SessionCreated(created) => {
                change.began = Some(SessionFacts {
                    agent_id: created.agent_id,
                    agent_version: created.agent_version,
                    setup: created.config_hash,
                    status: SessionStatus::default(),
                    stop_reason: None,
                    last_summary: None,
                    outcome: None,
                    usage: SessionUsage::default(),
                    last_activity_at: event.at,
                });
            }
            Body::StatusIdle(idle) => change.stop_reason = Some(Some(idle.stop_reason.clone())),
            // It goes on by itself: what it stopped for before is over (agent-runtime 3.4).
            Body::StatusRescheduled(_) => change.stop_reason = Some(None),
            Body::SpanCompleted(span) => {
                change.last_summary = Some(cut(&span.summary));
                // A paused wake counts, a failed one does not (agent-runtime 2.3).
                if span.result != SpanResult::Error {
                    change.usage.wakes = change.usage.wakes.saturating_add(1);
                }
            }
            Body::OutcomeDefined(defined) => (change.outcome, change.verdict) = (Some(cut(&defined.title)), None),
            Body::OutcomeEvaluated(evaluated) => change.verdict = Some((evaluated.result, evaluated.trend)),
            Body::CallRecovered(recovered) => change.unknown.push(UnknownOutcome {
                invocation_id: recovered.invocation_id,
                intent_id: recovered.intent_id,
                at: event.at,
                seq: event.seq,
            }),
            Body::InvocationResolved(resolved) => change.resolved.push(resolved.invocation_id),
            _ => {}
        }
    }
    change
}

fn cut(text: &str) -> String {
    text.chars().take(FACT_SUMMARY_CHARS).collect()
}
