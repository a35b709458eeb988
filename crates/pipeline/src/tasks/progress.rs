//! What a call says of itself while it runs (tool-contract §14): live deltas for a watcher, which are never
//! durable and may be dropped, and now and then a checkpoint in the log.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{IntentId, InvocationId, SessionId, TurnId, limits};
use portcullis_event::facts::InvocationProgressed;
use portcullis_secret::Redactor;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// A live delta: what a running call says of itself. Untrusted, like all that a tool says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub session_id: SessionId,
    pub intent_id: IntentId,
    pub invocation_id: InvocationId,
    /// The stream that it is a piece of, such as `stdout`: then more of it follows. `None`: the call's own words.
    pub stream: Option<String>,
    /// Of a stream: this comes after what was told and is not told for good, because a secret might begin in it. It takes the
    /// place of what was told so before, and the next piece of the stream takes its place.
    pub provisional: bool,
    /// At most [`limits::PROGRESS_LIVE`] bytes, secrets masked.
    pub text: String,
}

/// Where one invocation's words go.
pub(crate) struct Words {
    pub(crate) feed: broadcast::Sender<Progress>,
    pub(crate) session_id: SessionId,
    pub(crate) intent_id: IntentId,
    pub(crate) invocation_id: InvocationId,
    pub(crate) redactor: Arc<Redactor>,
    /// `None`: nothing of them is kept.
    pub(crate) newest: Option<Arc<LatestProgress>>,
}

impl Words {
    pub(crate) fn say(&self, text: &str) {
        let watched = self.feed.receiver_count() > 0;
        if !watched && self.newest.is_none() {
            return;
        }
        // Masked before it is cut: a cut must not hide half a secret from the search (L69).
        let text = self.redactor.redact_text(text);
        if let Some(newest) = &self.newest {
            newest.put(within(&text, limits::PROGRESS_CHECKPOINT));
        }
        if watched {
            let (session_id, intent_id, invocation_id) = (self.session_id, self.intent_id, self.invocation_id);
            let text = within(&text, limits::PROGRESS_LIVE);
            // Nobody watches any more: that is no fault.
            let _ = self.feed.send(Progress {
                session_id,
                intent_id,
                invocation_id,
                stream: None,
                provisional: false,
                text,
            });
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.feed.receiver_count() > 0
    }

    /// A piece of a captured stream, masked already: never durable, and dropped where nobody watches.
    pub(crate) fn wrote(&self, stream: &str, provisional: bool, text: String) {
        let (session_id, intent_id, invocation_id) = (self.session_id, self.intent_id, self.invocation_id);
        // As above.
        let stream = Some(stream.to_owned());
        let _ = self.feed.send(Progress { session_id, intent_id, invocation_id, stream, provisional, text });
    }
}

/// At most `most` bytes of a text; one that is cut says so.
fn within(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let note = format!("… ({} bytes in all)", text.len());
    format!("{}{note}", &text[..text.floor_char_boundary(most - note.len())])
}

/// The newest words that are not in the log yet: of those between two checkpoints only the last counts.
#[derive(Default)]
pub(crate) struct LatestProgress {
    text: Mutex<Option<String>>,
    told: Notify,
}

impl LatestProgress {
    fn put(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        self.told.notify_one();
    }

    async fn take(&self) -> String {
        loop {
            // A permit given between the look and the wait is kept by `Notify`.
            let found = self.text.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(text) = found {
                return text;
            }
            self.told.notified().await;
        }
    }
}

/// Writes checkpoints until `done`, each an append of its own. It ends between two of them, never within one, so that
/// none can come after the end of its call.
pub(crate) async fn write_checkpoints(
    session: Arc<SessionShared>,
    newest: Arc<LatestProgress>,
    turn_id: TurnId,
    invocation_id: InvocationId,
    done: CancellationToken,
) {
    for _ in 0..limits::PROGRESS_CHECKPOINTS {
        let checkpoint = tokio::select! {
            biased;
            () = done.cancelled() => return,
            text = newest.take() => text,
        };
        let mut facts = Append::new();
        session.note(&mut facts, turn_id, &InvocationProgressed { invocation_id, checkpoint });
        if let Err(halt) = session.flush(facts).await {
            // The call goes on: its end is what must be kept, and will say so if it cannot be.
            tracing::warn!(session = %session.key.session, "a checkpoint of a call was not kept: {halt}");
        }
        tokio::select! {
            biased;
            () = done.cancelled() => return,
            () = tokio::time::sleep(limits::PROGRESS_EVERY) => {}
        }
    }
    done.cancelled().await;
}
