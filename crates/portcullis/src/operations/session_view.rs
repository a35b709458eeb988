//! One session for a page about it, and the newest session of a folder.

use std::path::Path;

use portcullis_agent::calls::SessionCalls;
use portcullis_base::{InvocationId, SessionId};
use portcullis_event::facts::{SessionCreated, text_of};
use portcullis_event::{Body, SessionStatus};
use portcullis_store::{AskRow, Head, SessionSummary, StoreError, WakeRow};

use super::Archive;

/// How many sessions are looked through at first for the newest of a folder.
const LOOKED_AT: usize = 1_000;
/// Events of a conversation that are looked through for its first message.
const FIRST_EVENTS: usize = 20;

/// What a page about a session shows.
pub struct SessionView {
    /// How it was made.
    pub created: SessionCreated,
    /// Its head.
    pub head: Head,
    /// Asks that wait for an answer.
    pub asks: Vec<AskRow>,
    /// Wakes that are queued.
    pub wakes: Vec<WakeRow>,
    /// What was done in it.
    pub done: SessionCalls,
}

impl Archive {
    /// What a page about a session shows.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be read.
    pub async fn session_view(&self, session: SessionId) -> Result<SessionView, StoreError> {
        Ok(SessionView {
            created: self.created(session).await?,
            head: self.head(session).await?.ok_or(StoreError::NoSession(session))?,
            asks: self.waiting_asks(session).await?,
            wakes: self.store.wakes(self.key(session), true).await?,
            done: self.calls(session).await?,
        })
    }

    /// The newest session of a folder, that of its calls included.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn newest_of(&self, folder: &Path) -> Result<Option<SessionId>, StoreError> {
        let here = folder.to_string_lossy();
        let all = self.sessions(LOOKED_AT).await?;
        let found = all.iter().find(|summary| summary.row.workspace.as_deref() == Some(&*here));
        Ok(found.map(|summary| summary.session_id))
    }

    /// The newest session of a folder to go on with, which is none of `besides`. One in which nothing was said yet counts
    /// only if there is no other: somebody opened a conversation and left.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn newest_conversation(
        &self,
        folder: &Path,
        besides: &[SessionId],
    ) -> Result<Option<SessionSummary>, StoreError> {
        let here = folder.to_string_lossy();
        let of_here = |summary: &SessionSummary| {
            summary.row.workspace.as_deref() == Some(&*here)
                && summary.head.status != SessionStatus::Terminated
                && !besides.contains(&summary.session_id)
        };
        let mut most = LOOKED_AT;
        loop {
            let all = self.sessions(most).await?;
            let whole = all.len() < most;
            let (begun, empty): (Vec<_>, Vec<_>) =
                all.into_iter().filter(of_here).partition(|found| found.head.last_seq > 1);
            match begun.into_iter().next() {
                Some(found) => return Ok(Some(found)),
                None if whole => return Ok(empty.into_iter().next()),
                // Further back: the store may serve many folders.
                None => most = most.saturating_mul(10),
            }
        }
    }

    /// What was said first in a session. A log that cannot be read is told by whoever needs it.
    pub async fn first_message(&self, session: SessionId) -> Option<String> {
        let begun = self.events(session, 0, FIRST_EVENTS).await.unwrap_or_default();
        begun.iter().find_map(|event| match event.body() {
            Body::UserMessage(message) => Some(text_of(&message.content)),
            _ => None,
        })
    }

    /// The session in which a call ran, if any is known.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_of_call(&self, invocation: InvocationId) -> Result<Option<SessionId>, StoreError> {
        portcullis_agent::unknown::session_of(&*self.store, self.tenant, invocation).await
    }
}
