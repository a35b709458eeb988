//! When the model cannot be asked, and when a person interrupts (agent-runtime 5.7).

use std::time::Duration;

use portcullis_base::{Entropy, QueuedWakeId};
use portcullis_event::facts::{
    Disposition, ErrorFact, Priority, SessionError, SpanResult, StatusRescheduled, StopReason, WakeQueued, retry_key,
};
use portcullis_event::fold::InputContent;
use portcullis_model::ModelError;
use portcullis_pipeline::Halt;

use super::{Wake, WakeEnd, WakeStop};
use crate::Settings;

impl Wake<'_> {
    /// The request failed. What was consumed is in the conversation; the next try takes it up from there.
    pub(super) async fn failed(&mut self, error: ModelError) -> Result<WakeEnd, Halt> {
        let settings = &self.harness.settings;
        let key = self.session.key();
        let streak = self.session.gate().store().head(key).await?.map_or(0, |head| head.failure_streak) + 1;
        let retryable = error.failure.retryable();
        let tries = if retryable { settings.retryable_tries } else { settings.other_tries };
        let exhausted = streak >= tries;
        let message = self.session.gate().masked(&error.message);
        let fact = SessionError {
            error: ErrorFact {
                kind: error.failure.as_str().to_owned(),
                message: message.clone(),
                retry_status: if exhausted { "exhausted" } else { "retrying" }.to_owned(),
            },
        };
        self.session.note(&mut self.facts, None, &fact);
        // The next wake tells the model how this one ended; what a provider wrote is no part of that (L67).
        let ended = format!("The model could not be asked: {}.", error.failure.as_str());
        let stop = if exhausted {
            self.rests(StopReason::RetriesExhausted, &message);
            self.span(SpanResult::Error, Disposition::Abandoned, &ended, None, Some(error.failure.as_str()));
            WakeStop::GaveUp { error }
        } else {
            let wait = wait(settings, streak, retryable, error.retry_after, &*self.harness.entropy);
            let at = self.now().plus(wait);
            // The time that counts is that of the newest failure.
            self.cancel_retry();
            let what = if retryable { "transient provider failure" } else { "provider failure" };
            let wake = WakeQueued {
                queued_wake_id: QueuedWakeId::make(&*self.harness.ids, self.now()),
                due_at: at,
                reason: self.reason.clone(),
                note: Some(format!("retry after {what}: {}", error.failure.as_str())),
                dedupe_key: Some(retry_key(key.session)),
                priority: Priority::Normal,
            };
            self.session.note(&mut self.facts, None, &wake);
            let status = StatusRescheduled {
                previous_status: "running".to_owned(),
                summary: Some(message.clone()),
                next_due_at: Some(at),
            };
            self.session.note(&mut self.facts, None, &status);
            self.span(SpanResult::Error, Disposition::Requeued, &ended, None, Some(error.failure.as_str()));
            WakeStop::Retrying { error, at }
        };
        self.facts.idle();
        self.flush().await?;
        Ok(self.end(stop))
    }

    /// A try that waits is not needed any more.
    pub(super) fn cancel_retry(&mut self) {
        let key = retry_key(self.session.key().session);
        self.cancel_queued("session.retry", |wake| wake.dedupe_key.as_ref() == Some(&key));
    }

    /// A person wants it to stop: the wake ends, and with it what was to come by itself. The next one begins with what
    /// they said.
    pub(super) async fn interrupted(&mut self) -> Result<WakeEnd, Halt> {
        self.cut_short().await?;
        let pending = self.session.with_state(|state| state.inbox.pending().to_vec());
        let interrupts = pending.into_iter().filter(|input| {
            matches!(input.said, InputContent::Interrupt { .. }) && !self.processed.contains(&input.event_id)
        });
        let interrupts: Vec<_> = interrupts.collect();
        if !interrupts.is_empty() {
            self.consume(&interrupts);
            self.cancel_wakes();
        }
        let refused = self.session.with_state(|state| state.progress.stop_wished).is_some();
        let summary = match (refused, self.only_stop) {
            (true, _) => "A person refused a call and wanted the session to stop",
            (false, true) => "User interrupted prior blocked or scheduled work",
            (false, false) => "User interrupted the running work",
        };
        let note = self.stop_note.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let summary = match note.is_empty() {
            false => format!("{summary}: {}", &note[..note.floor_char_boundary(NOTE_MAX)]),
            true => format!("{summary}."),
        };
        self.idle(StopReason::Interrupted, &summary).await
    }
}

/// Bytes of a note in a summary, which is one line; the whole stands in its event.
const NOTE_MAX: usize = 200;

/// How long until the next try: 5 s after a first failure that may pass and 2 s after another, then 4, 8, 16, 30 s with
/// jitter; never sooner than the provider asked for.
fn wait(
    settings: &Settings,
    streak: u32,
    retryable: bool,
    retry_after: Option<Duration>,
    entropy: &dyn Entropy,
) -> Duration {
    let base =
        if retryable && streak == 1 { settings.first_retry } else { jittered(backoff(settings, streak), entropy) };
    base.max(retry_after.unwrap_or_default())
}

/// Before jitter: 2, 4, 8, 16, 30 s.
pub(crate) fn backoff(settings: &Settings, streak: u32) -> Duration {
    let doubled = settings.backoff_base.saturating_mul(1u32 << streak.saturating_sub(1).min(16));
    doubled.min(settings.backoff_max)
}

/// A fifth more or less, so that many sessions that failed together do not come back together.
fn jittered(span: Duration, entropy: &dyn Entropy) -> Duration {
    let mut byte = [0u8; 1];
    entropy.fill(&mut byte);
    span.mul_f64(0.8 + 0.4 * f64::from(byte[0]) / 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check07_the_backoff_series_is_2_4_8_16_30() {
        let settings = Settings::default();
        let series: Vec<u64> = (1..=7).map(|streak| backoff(&settings, streak).as_secs()).collect();
        assert_eq!(series, [2, 4, 8, 16, 30, 30, 30]);
    }
}
