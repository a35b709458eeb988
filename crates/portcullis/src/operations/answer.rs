//! An answer to an ask, from the reply to the end of its call: recorded once, then run here or by whoever holds the session.

use std::error::Error;
use std::time::Duration;

use portcullis_base::{EventId, GrantId, SessionId};
use portcullis_event::{AskState, Observed};
use portcullis_store::{AskRow, LeaseOwner, StoreError};
use tokio_util::sync::CancellationToken;

use super::{Archive, AskContentError, AskView, AskViewError};
use crate::{AskAnswer, Runtime, RuntimeError};

/// How long the process that answered first has to claim the session before it counts as dead. It claims right after its
/// answer.
const FIRST_ANSWER_GRACE: Duration = Duration::from_secs(2);
/// How often this process looks whether it did.
const LOOK_FOR_HOLDER: Duration = Duration::from_millis(20);

/// An ask that is answered through a runtime, which can carry its call out.
#[derive(Clone, Copy)]
pub struct AskAnswering<'a> {
    /// Where it is.
    pub archive: &'a Archive,
    /// What runs its call.
    pub runtime: &'a Runtime,
    /// The ask, as it was shown.
    pub row: &'a AskRow,
}

/// What became of a reply.
pub enum ReplyEnd {
    /// It counts, and its call is to be seen through. An allow that is remembered has an id.
    Counts(Option<GrantId>),
    /// The session was interrupted, or the caller took the call back: nothing changed, and nothing runs.
    Withdrawn,
    /// Another answer was first, and it counts.
    Late {
        /// The ask as it stands.
        row: Box<AskRow>,
        /// How its call ended, if it has.
        observed: Option<Box<Observed>>,
    },
}

/// How far the call of an answered ask came.
pub enum CallEnd {
    /// It ended.
    Observed(Box<Observed>),
    /// Its client runs it, and was told by this event.
    WithClient(EventId),
    /// The process that holds the session has yet to run it.
    InUse(LeaseOwner),
    /// Nobody holds the session, and it has not run.
    NotRun,
}

/// An answer that was not recorded, or whose call could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// What it allows cannot be shown.
    #[error(transparent)]
    Content(#[from] AskContentError),
    /// The ask cannot be read.
    #[error(transparent)]
    View(#[from] AskViewError),
    /// The runtime or the store refused or failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for AnswerError {
    fn from(error: StoreError) -> Self {
        Self::Runtime(error.into())
    }
}

impl AnswerError {
    /// The error that this one passes on, whose kind and hint count.
    #[must_use]
    pub fn bare(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Content(error) => Some(error),
            Self::View(error) => Some(error),
            Self::Runtime(error) => Some(error),
        }
    }
}

impl AskAnswering<'_> {
    /// Records an answer. Nobody allows what nobody could be shown.
    ///
    /// # Errors
    /// If the ask expired, cannot be shown or remembered, or the store fails; nothing is recorded then.
    pub async fn reply(&self, answer: AskAnswer) -> Result<ReplyEnd, AnswerError> {
        let (row, runtime) = (self.row, self.runtime);
        if answer.reply.allows() && row.state == AskState::Pending {
            self.archive.diff(row).await?;
        }
        match runtime.reply(row.ask_id, answer).await {
            Ok(grant) => Ok(ReplyEnd::Counts(grant)),
            Err(RuntimeError::Store(StoreError::AskSettled { state: AskState::Superseded, .. })) => {
                self.close_withdrawn().await?;
                Ok(ReplyEnd::Withdrawn)
            }
            Err(RuntimeError::Store(StoreError::AskSettled { .. })) => self.late().await,
            Err(error @ RuntimeError::Store(StoreError::AskExpired(_))) => {
                // Its call is still to be told that nobody answered.
                runtime.attend(row.session_id).await?;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An ask that was withdrawn and is still open is closed here, unless somebody holds the session and does it.
    async fn close_withdrawn(&self) -> Result<(), RuntimeError> {
        if self.row.state != AskState::Pending {
            return Ok(());
        }
        match self.runtime.withdraw_asks(self.row.session_id).await {
            Ok(_) | Err(RuntimeError::Held(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn late(&self) -> Result<ReplyEnd, AnswerError> {
        let observed = self.observed().await?.map(Box::new);
        let row = self.archive.ask(self.row.ask_id, self.runtime.process.clock.now()).await?.row;
        // The same words as the first time: that its call was told meanwhile changes nothing for a person.
        if row.state == AskState::Expired {
            return Err(StoreError::AskExpired(row.ask_id).into());
        }
        Ok(ReplyEnd::Late { row: Box::new(row), observed })
    }

    async fn observed(&self) -> Result<Option<Observed>, StoreError> {
        let AskRow { session_id, intent_id, asked_seq, .. } = self.row;
        self.runtime.observation(*session_id, *intent_id, *asked_seq).await
    }

    /// Whether another process runs the call of an ask that was answered before. Then a second answer came too late,
    /// however far the call is by then.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn is_carried_out_elsewhere(&self) -> Result<bool, StoreError> {
        let clock = &self.runtime.process.clock;
        let until = clock.monotonic() + FIRST_ANSWER_GRACE;
        loop {
            let held = self.archive.holder(self.row.session_id, clock.now()).await?.is_some();
            if held || self.observed().await?.is_some() {
                return Ok(true);
            }
            if clock.monotonic() >= until {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_FOR_HOLDER).await;
        }
    }

    /// Waits for the call of an answered ask: run here, or by the live process that holds the session. `cancel` interrupts
    /// the call if it runs here, and ends the wait for a holder.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn see_through(&self, cancel: &CancellationToken) -> Result<CallEnd, RuntimeError> {
        match self.runtime.see_through_until(self.row.ask_id, cancel).await {
            Ok(settled) => return Ok(CallEnd::Observed(Box::new(settled.observed))),
            Err(RuntimeError::NoObservation(_)) => {}
            Err(error) => return Err(error),
        }
        let state = self.archive.state(self.row.session_id).await?;
        let intent = Some(self.row.intent_id);
        if let Some(event) = state.progress.asked_of_client().find(|request| request.intent_id == intent) {
            return Ok(CallEnd::WithClient(event.event_id));
        }
        let head = self.archive.head(self.row.session_id).await?;
        Ok(head.and_then(|head| head.lease_owner).map_or(CallEnd::NotRun, CallEnd::InUse))
    }

    /// Whether a model works in the session, nothing in it waits for an answer any more, and no process is about to tell
    /// the model of this one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn model_is_untold(&self) -> Result<bool, StoreError> {
        let session = self.row.session_id;
        let state = self.archive.state(session).await?;
        Ok(state.progress.last_wake.is_some()
            && state.asks.pending().next().is_none()
            && self.archive.holder(session, self.runtime.process.clock.now()).await?.is_none())
    }
}

/// Answers every ask of a session that waits, as `answer` says; `answered` hears of each. Gives how many those were.
///
/// # Errors
/// If one cannot be shown, or the store fails.
pub async fn answer_waiting(
    archive: &Archive,
    runtime: &Runtime,
    session: SessionId,
    answer: impl Fn(&AskView) -> Option<AskAnswer>,
    mut answered: impl FnMut(&AskView, bool),
) -> Result<usize, AnswerError> {
    let mut count = 0;
    let asks = archive.pending_asks(runtime.process.clock.now()).await?;
    for ask in asks.into_iter().filter(|ask| ask.row.session_id == session) {
        let Some(answer) = answer(&ask) else { continue };
        let allows = answer.reply.allows();
        if allows {
            // Nobody allows what nobody could be shown.
            archive.diff(&ask.row).await?;
        }
        match runtime.reply(ask.row.ask_id, answer).await {
            Ok(_) => {}
            // Somebody was quicker, or its time ran out.
            Err(RuntimeError::Store(StoreError::AskSettled { .. } | StoreError::AskExpired(_))) => continue,
            Err(error) => return Err(error.into()),
        }
        count += 1;
        answered(&ask, allows);
    }
    Ok(count)
}
