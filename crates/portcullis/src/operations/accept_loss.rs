//! Giving up events that were recorded and are gone, once a person said so.

use portcullis_base::{SessionId, WorkerId};
use portcullis_event::facts::{LossAccepted, LostLog};
use portcullis_event::{ledger_of, operator_log_of};
use portcullis_pipeline::Opened;
use portcullis_store::{HostLiveness, LossBook, StoreError, is_erased};

use super::Operator;
use crate::{Runtime, RuntimeError};

/// Said to the session itself, so that a model reads it, and a person who looks at it.
const INTERRUPTED: &str = "the end of this session's log was lost; what was done after its last event is not known, so \
                           look before anything is done again";

/// What was given up.
pub struct AcceptedLoss {
    /// The logs that go on without their end.
    pub logs: Vec<LostLog>,
    /// Calls of which nobody knows whether they ran.
    pub calls_unknown: usize,
}

/// Gives up what is lost. Every call that is open in such a log is settled as one of which nobody knows whether it ran.
/// `appending` makes a runtime that appends to the log of a session.
///
/// # Errors
/// If a live process holds such a session, or the store fails; the loss is then told again.
pub async fn accept_loss<E: From<StoreError> + From<RuntimeError>>(
    operator: &Operator,
    book: &dyn LossBook,
    appending: impl AsyncFn(SessionId) -> Result<Runtime, E>,
) -> Result<AcceptedLoss, E> {
    // In this order: if this is broken off, the loss is told again, and nothing that was open has run.
    book.set_lost_aside();
    let mut calls_unknown = 0;
    for session in book.lost().iter().map(|lost| lost.key.session) {
        if goes_on(operator, session).await? {
            calls_unknown += give_up_calls(operator, &appending(session).await?, session).await?;
        }
    }
    let fact = |lost: &portcullis_store::LostEnd| LostLog {
        session_id: lost.key.session,
        recorded: lost.recorded,
        found: lost.found,
    };
    let logs: Vec<LostLog> = book.lost().iter().map(fact).collect();
    operator.record(&LossAccepted { by: operator.by.clone(), logs: logs.clone() }).await?;
    book.accept_lost()?;
    Ok(AcceptedLoss { logs, calls_unknown })
}

/// Whether anything of a session is left that goes on.
async fn goes_on(operator: &Operator, session: SessionId) -> Result<bool, StoreError> {
    let (store, key) = (&*operator.store, operator.key(session));
    if [ledger_of(operator.tenant), operator_log_of(operator.tenant)].contains(&session) {
        return Ok(false);
    }
    match store.head(key).await? {
        Some(head) => Ok(!is_erased(store, key, &head).await?),
        None => Ok(false),
    }
}

async fn give_up_calls(operator: &Operator, runtime: &Runtime, session: SessionId) -> Result<usize, RuntimeError> {
    let worker = WorkerId::make(&*operator.ids, operator.clock.now());
    let owner = HostLiveness::new().this_process(worker, &operator.called);
    let given_up = match runtime.gate().open(session, owner).await? {
        Opened::Held(owner) => return Err(RuntimeError::Held(owner)),
        Opened::Ready(held) => {
            let given_up = held.give_up_what_is_open().await;
            let released = held.release().await;
            let given_up = given_up?;
            released?;
            given_up
        }
    };
    // What was about to begin by itself does not: the next wake settles this, and then waits for somebody.
    match runtime.interrupt(session, &operator.by, Some(INTERRUPTED)).await {
        Ok(_) | Err(RuntimeError::Store(StoreError::Terminated(_))) => Ok(given_up),
        Err(error) => Err(error),
    }
}
