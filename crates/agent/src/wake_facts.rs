//! What the log says of a wake that ended: what it took up, what it queued, which events it wrote.

use std::collections::HashSet;

use portcullis_base::{EventId, WakeId};
use portcullis_event::facts::{WakeQueued, text_of};
use portcullis_event::fold::{Input, InputContent};
use portcullis_event::{Body, Event, EventType};
use portcullis_store::{Log, SessionKey, StoreError};

/// Events read at once.
const PAGE: u64 = 500;
/// Events of a wake that are listed, the newest; their count is told beside them.
const WAKE_EVENTS: usize = 200;

/// What a wake did, each kind oldest first.
#[derive(Default)]
pub struct WakeFacts {
    /// What the inputs said that it took up.
    pub inputs: Vec<String>,
    /// The wakes that it queued.
    pub queued: Vec<WakeQueued>,
    /// The newest events that it wrote.
    pub events: Vec<WakeEvent>,
    /// How many events it wrote.
    pub count: usize,
}

/// An event of a wake.
pub struct WakeEvent {
    pub seq: u64,
    pub id: EventId,
    pub kind: EventType,
}

impl WakeFacts {
    /// Reads those of a wake that took up the inputs `processed`.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read(log: &dyn Log, key: SessionKey, wake: WakeId, processed: &[EventId]) -> Result<Self, StoreError> {
        let mut wanted: HashSet<EventId> = processed.iter().copied().collect();
        let (mut facts, mut begun) = (Self::default(), false);
        let mut last = log.head(key).await?.map_or(0, |head| head.last_seq);
        // Backwards: a wake is at the end of its log, however long that is.
        while last > 0 && !(begun && wanted.is_empty()) {
            let after = last.saturating_sub(PAGE);
            let page = log.read(key, after, usize::try_from(last - after).unwrap_or(usize::MAX)).await?;
            for event in page.iter().rev() {
                begun |= facts.take(event, wake, wanted.remove(&event.id));
            }
            last = after;
        }
        facts.inputs.reverse();
        facts.queued.reverse();
        facts.events.reverse();
        Ok(facts)
    }

    /// Whether the wake began with this event.
    fn take(&mut self, event: &Event, wake: WakeId, consumed: bool) -> bool {
        let of_wake = event.wake_id == Some(wake);
        if of_wake {
            self.count += 1;
            if self.events.len() < WAKE_EVENTS {
                self.events.push(WakeEvent { seq: event.seq, id: event.id, kind: event.kind.clone() });
            }
        }
        if !of_wake && !consumed {
            return false;
        }
        let body = event.body();
        if consumed {
            let said = Input::of(event, &body).map(|input| match input.said {
                InputContent::Message { content }
                | InputContent::System { content }
                | InputContent::Result { content, .. }
                | InputContent::FromThread { content, .. } => text_of(&content),
                InputContent::Interrupt { note } => format!("interrupt {}", note.unwrap_or_default()),
            });
            self.inputs.push(said.unwrap_or_else(|| event.kind.as_str().to_owned()));
        }
        match body {
            Body::SpanStarted(span) => span.span_id == wake,
            Body::WakeQueued(queued) if of_wake => {
                self.queued.push(*queued);
                false
            }
            _ => false,
        }
    }
}
