//! Which sessions this process holds, and what they know of files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use portcullis_base::SessionId;
use portcullis_event::fold::Baseline;

use crate::sessions::session::SessionShared;

/// The register of the sessions that this process holds. Tools ask it for the baseline of a file: what was delivered of it
/// to a session (tool-contract §19).
#[derive(Clone, Default)]
pub struct HeldSessions {
    sessions: Arc<Mutex<HashMap<SessionId, Weak<SessionShared>>>>,
}

impl HeldSessions {
    /// What a session was shown of a file.
    #[must_use]
    pub fn baseline(&self, session: SessionId, path: &str) -> Option<Baseline> {
        let shared = self.held(session)?;
        // By the name it was written under (L69).
        let path = shared.scope.redactor.redact_text(path);
        shared.state().baselines.get(&path).cloned()
    }

    pub(crate) fn held(&self, session: SessionId) -> Option<Arc<SessionShared>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&session)?.upgrade()
    }

    pub(crate) fn all_held(&self) -> Vec<Arc<SessionShared>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn enter(&self, shared: &Arc<SessionShared>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, held| held.strong_count() > 0);
        sessions.insert(shared.key.session, Arc::downgrade(shared));
    }
}
