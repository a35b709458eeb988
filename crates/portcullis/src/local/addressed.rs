//! What operators say to a session. Each is one durable append, checked in it; a folder that is gone does not matter.

use std::path::Path;

use portcullis_agent::setup::Setup;
use portcullis_base::shown::safe_line;
use portcullis_base::{AskId, Clock as _, EventId, InvocationId, SessionId, SystemClock};
use portcullis_event::facts::{CustomTool, Resolution};
use portcullis_store::LeaseOwner;

use super::{Installation, InstallationError, ProcessRole};
use crate::{Runtime, RuntimeError};

/// Characters of a message that become a session's name.
const NAME_CHARS: usize = 60;

/// A session that is to be made.
#[derive(Default)]
pub struct NewSession {
    /// What it is called; without it, by its first message.
    pub name: Option<String>,
    /// What is said to it first.
    pub message: Option<String>,
    /// Tools that its client runs.
    pub custom_tools: Vec<CustomTool>,
}

/// A session that something is said to.
pub struct AddressedSession {
    runtime: Runtime,
    /// Which.
    pub session: SessionId,
    /// Who held it before: a process that hears it by itself.
    pub held: Option<LeaseOwner>,
}

/// What a person said of a call whose outcome was unknown.
pub struct ResolvedCall {
    /// The session in which it ran.
    pub session: SessionId,
    /// The event that records it.
    pub event: EventId,
}

impl Installation {
    /// Makes a session in a folder, and says the first message to it, whose event is returned.
    ///
    /// # Errors
    /// If the folder is refused, a tool cannot be offered, or the store fails.
    pub async fn open_session(
        &self,
        folder: &Path,
        NewSession { name, message, custom_tools }: NewSession,
        by: &str,
        role: ProcessRole,
    ) -> Result<(SessionId, Option<EventId>), InstallationError> {
        let runtime = self.runtime(folder, role)?;
        let first_words = || message.as_deref().map(|words| safe_line(&runtime.gate().masked(words), NAME_CHARS));
        let name = name.or_else(first_words).unwrap_or_else(|| "session".to_owned());
        let setup = Setup { custom_tools, model: self.settings.model.setup(None), ..runtime.setup().clone() };
        let session = runtime.create_session_by(&name, &setup).await?;
        let event = match &message {
            Some(words) => Some(runtime.say(session, by, words).await?),
            None => None,
        };
        Ok((session, event))
    }

    /// A session, to say something to it.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be read.
    pub async fn address(&self, session: SessionId, role: ProcessRole) -> Result<AddressedSession, InstallationError> {
        let runtime = self.appending(session, role).await?;
        let held = self.archive.holder(session, SystemClock::new().now()).await?;
        Ok(AddressedSession { runtime, session, held })
    }

    /// Records what a person found out about a call; `None` if no session has it.
    ///
    /// # Errors
    /// If its outcome is known or was told before, or the store fails.
    pub async fn resolve(
        &self,
        (invocation, resolution): (InvocationId, Resolution),
        by: &str,
        note: Option<&str>,
        role: ProcessRole,
    ) -> Result<Option<ResolvedCall>, InstallationError> {
        let Some(session) = self.archive.session_of_call(invocation).await? else { return Ok(None) };
        let runtime = self.appending(session, role).await?;
        let event = runtime.resolve(session, by, (invocation, resolution), note).await?;
        Ok(Some(ResolvedCall { session, event }))
    }
}

impl AddressedSession {
    /// Says something to it.
    ///
    /// # Errors
    /// If it is terminated, or the store fails.
    pub async fn post(&self, by: &str, words: &str) -> Result<EventId, RuntimeError> {
        self.runtime.say(self.session, by, words).await
    }

    /// Gives the result of a call that its client runs: of `request`, or of the only one that waits.
    ///
    /// # Errors
    /// If nothing such waits, or the store fails.
    pub async fn answer(
        &self,
        by: &str,
        request: Option<EventId>,
        (output, is_error): (&str, bool),
    ) -> Result<EventId, RuntimeError> {
        self.runtime.answer(self.session, by, request, (output, is_error)).await
    }

    /// Interrupts it. Asks that it withdraws by that are named; where somebody holds the session, they close them.
    ///
    /// # Errors
    /// If it is terminated, or the store fails.
    pub async fn interrupt(&self, by: &str, note: Option<&str>) -> Result<(EventId, Vec<AskId>), RuntimeError> {
        let event = self.runtime.interrupt(self.session, by, note).await?;
        match self.runtime.withdraw_asks(self.session).await {
            Err(RuntimeError::Held(_)) => Ok((event, Vec::new())),
            closed => Ok((event, closed?)),
        }
    }
}
