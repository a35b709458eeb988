//! What operators say to a session beside messages (agent-runtime 3.3, 5.10): answers to calls that a client runs, and what
//! became of calls whose outcome nobody knew. Each is checked in the very append that records it.

use portcullis_base::{AppendId, EventId, InvocationId, SessionId};
use portcullis_event::facts::{Block, InvocationResolved, Resolution, UserCustomToolResult};
use portcullis_event::{Actor, EventBody, State};
use portcullis_store::{Commit, StoreError};

use crate::RuntimeError;
use crate::runtime::Runtime;

/// Why an operator's word was refused; nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No call of that session waits for a client.
    #[error("session {0} waits for no result of a custom tool; nothing was recorded")]
    NothingWaits(SessionId),
    /// Unknown, answered before, superseded, or of another session.
    #[error(
        "{0} names no custom call that waits: it was answered before, was given up, or never was; nothing was recorded"
    )]
    NotWaiting(EventId),
    /// More than one waits, and none was named.
    #[error("several custom calls wait, and none was named: {}", listed(.0))]
    WhichOne(Vec<EventId>),
    /// A result says something.
    #[error("a result must not be empty; nothing was recorded")]
    Empty,
    /// Its outcome is known, or a person said already what became of it.
    #[error("{0} is no call whose outcome is unknown; nothing was recorded")]
    NotUnknown(InvocationId),
}

fn listed(ids: &[EventId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// Gives the result of a custom call: `which`, or the only one that waits. The first one counts.
    ///
    /// # Errors
    /// [`Refused`] if nothing such waits; if the session is terminated or unknown; if the store fails.
    pub async fn answer(
        &self,
        session: SessionId,
        by: &str,
        which: Option<EventId>,
        (text, is_error): (&str, bool),
    ) -> Result<EventId, RuntimeError> {
        if text.trim().is_empty() {
            return Err(Refused::Empty.into());
        }
        let content = vec![Block::text(self.gate.masked(text))];
        self.append_checked(session, by, |state| {
            let waiting: Vec<EventId> = state.progress.asked_of_client().map(|request| request.event_id).collect();
            let custom_tool_use_id = match (which, &waiting[..]) {
                (Some(event), _) if waiting.contains(&event) => event,
                (Some(event), _) => return Err(Refused::NotWaiting(event)),
                (None, []) => return Err(Refused::NothingWaits(session)),
                (None, [only]) => *only,
                (None, _) => return Err(Refused::WhichOne(waiting)),
            };
            Ok(UserCustomToolResult { custom_tool_use_id, content: content.clone(), is_error })
        })
        .await
    }

    /// Records what a person found out about a call whose outcome was unknown. It changes nothing of the call: it is never
    /// run again by itself.
    ///
    /// # Errors
    /// [`Refused::NotUnknown`] if its outcome is known or was told before; if the store fails.
    pub async fn resolve(
        &self,
        session: SessionId,
        by: &str,
        (invocation_id, resolution): (InvocationId, Resolution),
        note: Option<&str>,
    ) -> Result<EventId, RuntimeError> {
        let note = note.map(|note| self.gate.masked(note));
        self.append_checked(session, by, |state| {
            if !state.progress.unknown.contains(&invocation_id) {
                return Err(Refused::NotUnknown(invocation_id));
            }
            Ok(InvocationResolved { invocation_id, resolution, by: by.to_owned(), note: note.clone() })
        })
        .await
    }

    /// Appends what `decide` makes of the state, only if the log still is as it was decided on; else it decides again.
    async fn append_checked<B: EventBody>(
        &self,
        session: SessionId,
        by: &str,
        decide: impl Fn(&State) -> Result<B, Refused>,
    ) -> Result<EventId, RuntimeError> {
        let key = self.key(session);
        let actor = Actor::user(by);
        if self.gate.store().head(key).await?.is_none() {
            return Err(StoreError::NoSession(session).into());
        }
        for _ in 0..LOOKS {
            let state = self.gate.state(session).await?;
            let draft = self.stamp(&actor).draft(&decide(&state)?);
            let id = draft.id;
            let append = AppendId::make(&*self.process.ids, self.process.clock.now());
            let commit = Commit { only_at: Some(state.seq), ..Commit::client(key, append, vec![draft]) };
            match self.gate.store().commit(commit).await {
                Ok(_) => return Ok(id),
                Err(StoreError::MovedOn { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // The caller may be cancelled meanwhile.
            tokio::task::yield_now().await;
        }
        Err(moves_on(session))
    }
}

/// How often something is decided anew because the log moved on meanwhile. Each time another process committed in the
/// very moment between; where that seems to happen a hundred times in a row, trying again will not end it.
pub(crate) const LOOKS: u32 = 100;

pub(crate) fn moves_on(session: SessionId) -> RuntimeError {
    let text = format!("session {session} moved on {LOOKS} times while this was decided; try again");
    StoreError::Unavailable(text).into()
}
