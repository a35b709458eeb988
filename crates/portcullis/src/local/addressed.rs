//! What operators say to a session. Each is one durable append, checked in it; a folder that is gone does not matter.

use portcullis_base::{AskId, Clock as _, EventId, InvocationId, SessionId, SystemClock};
use portcullis_event::facts::Resolution;
use portcullis_store::LeaseOwner;

use super::{Installation, InstallationError, ProcessRole};
use crate::{Runtime, RuntimeError};

/// A session that something is said to.
pub struct AddressedSession {
    /// Appends to its log.
    pub runtime: Runtime,
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
