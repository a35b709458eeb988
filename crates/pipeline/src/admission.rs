//! A call on its way: who moves it, who may stop it, and what becomes of it if nobody waits.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use portcullis_base::IntentId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

use crate::calls::Order;
use crate::gate::{Disposition, pass};
use crate::phases::execute::words;
use crate::phases::intent::Intent;
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;
use crate::spans;

/// A call in flight. It moves while [`Admission::settled`] is awaited; dropped before its end it
/// detaches, which means that it goes on in a task of its own and settles by itself.
#[must_use = "a call moves while it is awaited; dropped, it runs by itself"]
pub struct Admission {
    path: Option<Path>,
    cancel: CancellationToken,
    intent_id: IntentId,
    session: Arc<SessionShared>,
    /// A shutdown waits for the call, also where the call moves in a task of its own.
    tracked: TaskTrackerToken,
}

/// What the path of an intent gave: its append and how it ended.
type AdmissionResult = Result<(Append, Disposition), Halt>;
type Path = Pin<Box<dyn Future<Output = AdmissionResult> + Send>>;

impl Admission {
    /// The intent's id.
    #[must_use]
    pub fn intent_id(&self) -> IntentId {
        self.intent_id
    }

    /// What cancels the call.
    #[must_use]
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Moves it in a task of its own from now on: for a caller that does something else before it waits.
    pub fn spawned(mut self) -> Self {
        if let Some(path) = self.path.take() {
            let task = tokio::spawn(path);
            let joined = async move { task.await.unwrap_or_else(|lost| Err(Halt::TaskLost(lost.to_string()))) };
            self.path = Some(Box::pin(joined));
        }
        self
    }

    /// Goes to the end of the path. The append holds what is not durable yet; commit it.
    ///
    /// # Errors
    /// If the log refused a write: the turn halts.
    pub async fn settled(mut self) -> Result<(Append, Disposition), Halt> {
        // Borrowed, not taken: if this future is dropped, `drop` below still finds the path.
        let Some(path) = self.path.as_mut() else { return Err(Halt::TaskLost("it was asked twice".to_owned())) };
        let ended = path.await;
        self.path = None;
        ended
    }
}

impl Admission {
    /// The same, stopped on the way by `cancel` as the tool's semantics allow.
    ///
    /// # Errors
    /// If the log refused a write: the turn halts.
    pub async fn settled_until(self, cancel: &CancellationToken) -> Result<(Append, Disposition), Halt> {
        let stop = self.canceller();
        let mut settled = std::pin::pin!(self.settled());
        tokio::select! {
            // The cancel first: after it nothing begins (L24).
            biased;
            () = cancel.cancelled() => {
                stop.cancel();
                settled.await
            }
            ended = &mut settled => ended,
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else { return };
        // Without a runtime nothing runs any more: a kill, and a kill is the same as a crash.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (session, tracked) = (Arc::clone(&self.session), self.tracked.clone());
        let kept = session.keep();
        tokio::spawn(async move {
            let (_tracked, _kept) = (tracked, kept);
            let kept = match path.await {
                Ok((facts, _)) => session.flush(facts).await,
                Err(halt) => Err(halt),
            };
            if let Err(halt) = kept {
                tracing::error!(session = %session.key.session, "a detached call could not be settled: {halt}");
            }
        });
    }
}

/// Sets an intent on its path. Nothing moves before a caller waits for it: a task of its own would
/// cost every call two wake-ups, and only a call that nobody waits for needs one.
pub(crate) fn start(session: &Arc<SessionShared>, facts: Append, intent: Intent, order: Order) -> Admission {
    let cancel = session.lost.child_token();
    let (intent_id, tracked) = (intent.id, session.scope.tracker.token());
    let span = spans::call(session, &intent);
    let (moved, stop, kept) = (Arc::clone(session), cancel.clone(), session.keep());
    let path = async move {
        // A caller may drop its handle. The task keeps running and stays registered until it settles.
        let _kept = kept;
        let path = AssertUnwindSafe(pass(&moved, intent, stop, facts, order)).catch_unwind();
        let ended = path.await.unwrap_or_else(|panic| {
            Err(Halt::TaskLost(moved.scope.redactor.redact_text(&words(&*panic)).into_owned()))
        });
        spans::ended(&ended);
        ended
    };
    Admission { path: Some(Box::pin(path.instrument(span))), cancel, intent_id, session: Arc::clone(session), tracked }
}
