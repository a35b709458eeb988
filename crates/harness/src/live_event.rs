//! Events of a wake for a watcher, while the wake goes on. They decide nothing and are not stored.

use portcullis_base::{AskId, EventId, SessionId, WakeId};
use portcullis_event::Observed;
use portcullis_event::facts::FinalChecked;

/// A live event and where it belongs, so that one watcher can serve many sessions.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a> {
    pub session_id: SessionId,
    /// The `span.model_request_start` of the newest request of this wake, which is durable by then: whose words these are,
    /// and whose calls. `None` before this process has made one.
    pub event_id: Option<EventId>,
    pub event: LiveEvent<'a>,
}

/// One event of a wake, while it happens.
#[derive(Debug, Clone, Copy)]
pub enum LiveEvent<'a> {
    WakeBegan {
        wake_id: WakeId,
    },
    /// A request goes out; the n-th of this wake.
    Asking {
        turn: u32,
    },
    Text(&'a str),
    Thinking(&'a str),
    /// The model's message is whole.
    MessageEnd,
    /// The request failed after some of its text or thinking was told. Those pieces belong to no message, and the log does
    /// not have them. If the model is asked again, the next [`LiveEvent::Asking`] begins the message anew.
    BrokeOff,
    /// Again for a call that was held back behind one that waited: its id is the same.
    CallBegan {
        call_id: &'a str,
        tool: &'a str,
        input: &'a str,
    },
    CallEnded {
        input: &'a str,
        observed: &'a Observed,
    },
    /// A call waits for a person.
    Waiting {
        ask: AskId,
    },
    /// A call was handed to the client that runs it, by this event.
    HandedOver {
        event_id: EventId,
        tool: &'a str,
    },
    /// The model said something odd, and how it was read.
    Warning(&'a str),
    /// What a person typed meanwhile reached the model.
    Heard {
        words: usize,
    },
    Compacted {
        messages: usize,
        /// The tokens that a conversation may have because nothing is known of the model: neither its window nor a budget
        /// is configured. `None` where one of them is.
        assumed: Option<u64>,
    },
    Checked(&'a FinalChecked),
}

/// Hears it.
pub trait Watcher: Send + Sync {
    fn see(&self, live: Live<'_>);
}

/// A watcher that ignores every event.
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn see(&self, _live: Live<'_>) {}
}

impl<F: Fn(Live<'_>) + Send + Sync> Watcher for F {
    fn see(&self, live: Live<'_>) {
        self(live);
    }
}
