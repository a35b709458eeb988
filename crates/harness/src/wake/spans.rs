//! What a subscriber is told of a wake and its requests: ids, names, codes and counts. Never a prompt, an answer or a word
//! of either. With nobody listening nothing here is even formatted.

use portcullis_base::{MessageId, WakeId};
use portcullis_model::ModelName;
use portcullis_pipeline::{Halt, Session};
use tracing::Span;
use tracing::field::{Empty, display};

use super::request::{ResponseOutcome, stop_word};
use super::{WakeStop, Woken};

/// The span of one wake. What it found is told by [`found`] once it is known, how it ended by [`ended`].
pub(super) fn wake(session: &Session, model: &ModelName) -> Span {
    tracing::info_span!(
        "wake",
        session = %session.key().session,
        provider = model.provider,
        model = model.label(),
        wake = Empty,
        requests = Empty,
        end = Empty,
    )
}

/// There is something to do, and this is its wake.
pub(super) fn found(wake: WakeId) {
    Span::current().record("wake", display(wake));
}

/// How it ended. Recorded on the span it is called in.
pub(super) fn ended(woken: Result<&Woken, &Halt>) {
    let word = match woken {
        Err(_) => "halted",
        Ok(Woken::Idle) => "nothing",
        Ok(Woken::Executed(end)) => match &end.stop {
            WakeStop::Idle(reason) => reason.as_str(),
            WakeStop::RequiresAction(_) => "requires_action",
            WakeStop::Elsewhere => "elsewhere",
            WakeStop::Rescheduled(_) => "rescheduled",
            WakeStop::Retrying { .. } => "retrying",
            WakeStop::GaveUp { .. } => "gave_up",
            WakeStop::Broken => "broken_off",
        },
    };
    Span::current().record("end", word);
}

/// How many requests it made. Told once: a subscriber that writes lines would show every number.
pub(super) fn asked(requests: u32) {
    Span::current().record("requests", requests);
}

/// The span of one request to a model.
pub(super) fn request(session: &Session, model: &ModelName, message: MessageId) -> Span {
    tracing::info_span!(
        "model_request",
        session = %session.key().session,
        provider = model.provider,
        model = model.label(),
        // Not `message`, which is the word for the text of an event.
        message_id = %message,
        stop = Empty,
        input_tokens = Empty,
        output_tokens = Empty,
        cache_read_tokens = Empty,
        cache_write_tokens = Empty,
        error = Empty,
    )
}

/// What came of a request; its span ends here.
pub(super) fn heard(span: Span, heard: &ResponseOutcome) {
    if span.is_disabled() {
        return;
    }
    match heard {
        ResponseOutcome::Answer(answer) => {
            span.record("stop", stop_word(&answer.stop));
            if let Some(usage) = answer.usage {
                span.record("input_tokens", usage.input);
                span.record("output_tokens", usage.output);
                span.record("cache_read_tokens", usage.cache_read);
                span.record("cache_write_tokens", usage.cache_write);
            }
        }
        ResponseOutcome::Failed(error) => {
            span.record("error", error.failure.as_str());
        }
        ResponseOutcome::Interrupted => {
            span.record("error", "interrupted");
        }
        ResponseOutcome::Cancelled => {
            span.record("error", "cancelled");
        }
    }
}
