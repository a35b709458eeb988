//! Calls in a session that someone else holds (tool-contract 13.7): wait for a holder that lets go by itself, queue for
//! one that stays, and take the queued call up oneself once nobody holds the session any more.

use std::time::Duration;

use portcullis_base::{AppendId, SessionId, limits};
use portcullis_event::facts::ToolQueued;
use portcullis_pipeline::{Opened, Session, SoughtCall};
use portcullis_store::{Commit, HolderKind, LeaseOwner, StoreError, Topic};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::runtime::{LEASE_POLL, Runtime, give_back_until};
use crate::{CallOutcome, RuntimeError};

/// Notices are hints and may be lost, so a waiter looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How often this process takes up a session for its queued call. Once is enough; another may have come between before it
/// looked for the result.
const ATTENDED_MOST: u32 = 10;

/// What came of claiming a session for one call.
pub(crate) enum ClaimOutcome {
    /// The session is ours.
    Ours(Session),
    /// Its holder stays; this is the input to queue.
    Queue(Value),
}

impl Runtime {
    /// Whether a holder keeps the session for longer than a call.
    fn stays(&self, session: SessionId, owner: &LeaseOwner) -> bool {
        if owner.worker == self.owner.worker {
            return self.serves(session);
        }
        owner.kind == HolderKind::Standing
    }

    /// Waits for a session that another call holds, but not for one that a worker holds.
    pub(crate) async fn claim_for(
        &self,
        session: SessionId,
        tool: &str,
        input: &str,
        cancel: &CancellationToken,
    ) -> Result<ClaimOutcome, RuntimeError> {
        let give_up = self.process.clock.monotonic() + limits::CALL_LEASE_WAIT;
        loop {
            let owner = match self.open(session).await? {
                Opened::Ready(session) => return Ok(ClaimOutcome::Ours(session)),
                Opened::Held(owner) => owner,
            };
            if self.stays(session, &owner)
                && let Some(input) = self.gate.open_input(session, tool, input)
            {
                return Ok(ClaimOutcome::Queue(input));
            }
            if self.process.clock.monotonic() >= give_up {
                return Err(RuntimeError::Held(owner));
            }
            tokio::select! {
                () = tokio::time::sleep(LEASE_POLL) => {}
                () = cancel.cancelled() => return Err(RuntimeError::Withdrawn(owner)),
            }
        }
    }

    /// Appends a call for the holder of the session, and waits for its end.
    pub(crate) async fn queue(
        &self,
        session: SessionId,
        tool: String,
        input: Value,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, RuntimeError> {
        let draft = self.stamp(self.gate.actor()).draft(&ToolQueued { name: tool, input, by: self.owner.to_string() });
        let (event, append) = (draft.id, AppendId::make(&*self.process.ids, self.process.clock.now()));
        let mut changes = self.gate.store().changes_of(Topic::Session(self.key(session)));
        let committed = self.gate.store().commit(Commit::client(self.key(session), append, vec![draft])).await?;
        let mut sought = SoughtCall::queued(session, event, committed.events.first().map_or(0, |event| event.seq));
        let mut held_by_us = 0;
        loop {
            changes.mark_unchanged();
            if let Some(found) = self.gate.look_for(&mut sought).await? {
                return Ok(found.into());
            }
            if cancel.is_cancelled() {
                return Ok(CallOutcome::Queued(event));
            }
            match self.open(session).await? {
                // Its holder is gone: nothing waits for nobody.
                Opened::Ready(held) => {
                    let attended = held.attend_until(cancel).await;
                    give_back_until(held, cancel).await;
                    attended?;
                    held_by_us += 1;
                    if held_by_us > ATTENDED_MOST {
                        let text = format!("the queued call {event} of session {session} is not found any more");
                        return Err(StoreError::Corrupt(text).into());
                    }
                }
                Opened::Held(_) => news(&mut changes, cancel).await,
            }
        }
    }
}

/// Waits until something may have changed, or `cancel`.
pub(crate) async fn news(changes: &mut watch::Receiver<u64>, cancel: &CancellationToken) {
    let changed = async {
        // A store that is closing tells nobody; the next read says so.
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        // A busy store changes all the time; a claim is not free.
        tokio::time::sleep(LEASE_POLL).await;
    };
    tokio::select! {
        () = changed => {}
        () = tokio::time::sleep(LOOK_AGAIN) => {}
        () = cancel.cancelled() => {}
    }
}
