//! The session of calls in a workspace: the same for every process, made by the first call there.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use portcullis_base::{Digest, SessionId};
use portcullis_store::StoreError;

use super::{Installation, InstallationError, ProcessRole};
use crate::Runtime;

/// The session of calls in a workspace.
#[must_use]
pub fn call_session(workspace: &Path) -> SessionId {
    session_of(&[b"portcullis-call-session-1:", workspace.as_os_str().as_bytes()].concat())
}

/// The one that takes the place of a workspace's session that was erased.
#[must_use]
pub fn next_call_session(erased: SessionId) -> SessionId {
    session_of(format!("portcullis-call-session-after-1:{erased}").as_bytes())
}

fn session_of(name: &[u8]) -> SessionId {
    let digest = Digest::of(name);
    SessionId::from_u128(u128::from_be_bytes(std::array::from_fn(|i| digest.as_bytes()[i])))
}

/// The session of calls that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CallSessionError {
    /// Its log says that it was made elsewhere: an answer to an ask would run its call there.
    #[error("session {session} was not made in this folder")]
    MadeElsewhere {
        /// Which.
        session: SessionId,
        /// Where its log says that it was made.
        made_in: Option<String>,
    },
    /// The runtime cannot be made, or the store fails.
    #[error(transparent)]
    Installation(#[from] InstallationError),
}

impl From<StoreError> for CallSessionError {
    fn from(error: StoreError) -> Self {
        Self::Installation(error.into())
    }
}

impl Installation {
    /// A runtime for calls in a workspace, and their session.
    ///
    /// # Errors
    /// If the runtime cannot be made, the session is of another folder, or the store fails.
    pub async fn call_session(
        &self,
        folder: &Path,
        role: ProcessRole,
    ) -> Result<(Runtime, SessionId), CallSessionError> {
        let runtime = self.runtime(folder, role)?;
        let mut session = call_session(folder);
        while let Some(head) = self.archive.head(session).await? {
            if !self.archive.is_erased(session, &head).await? {
                // A log that was taken in from a file may say something else than where this one is.
                let made_in = self.archive.created(session).await?.workspace;
                return match made_in.as_deref() == Some(&*folder.to_string_lossy()) {
                    true => Ok((runtime, session)),
                    false => Err(CallSessionError::MadeElsewhere { session, made_in }),
                };
            }
            session = next_call_session(session);
        }
        let name = folder.file_name().map_or_else(|| folder.to_string_lossy(), |name| name.to_string_lossy());
        runtime.create_session_as(session, &format!("calls in {name}")).await?;
        Ok((runtime, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_one_call_session_whoever_asks() {
        let here = call_session(Path::new("/a"));
        assert_eq!(here, call_session(Path::new("/a")));
        assert_ne!(here, call_session(Path::new("/b")));
    }
}
