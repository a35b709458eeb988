//! A quick look at whether a store can be trusted: it takes writes, and the chains of its newest session and of the ledger
//! hold. A full audit reads everything.

use portcullis_base::SessionId;
use portcullis_event::{CheckpointKey, ledger_of};
use portcullis_store::{RecordWrite, StoreError, VerifiedLog, verify_session};
use serde_json::json;

use super::Archive;

/// The kind of the record that comes and goes.
const PROBE: &str = "doctor";

/// What a look at the chains found.
pub struct ChainHealth {
    /// How many sessions there are.
    pub sessions: usize,
    /// The newest session and the ledger, each verified, or why it could not be.
    pub chains: Vec<(SessionId, Result<VerifiedLog, StoreError>)>,
}

impl Archive {
    /// Writes a row and deletes it: only a write proves that writing works. `id` must not be in use.
    ///
    /// # Errors
    /// If the store takes no writes.
    pub async fn probe(&self, id: &str) -> Result<(), StoreError> {
        for body in [Some(json!({})), None] {
            let write = RecordWrite { kind: PROBE.to_owned(), id: id.to_owned(), expected: None, body };
            self.store.put_record(self.tenant, write).await?;
        }
        Ok(())
    }

    /// Verifies the newest session and the ledger: enough to see a broken disk, quick enough for a check of everything.
    ///
    /// # Errors
    /// If the logs cannot be listed.
    pub async fn chain_health(&self, key: Option<&CheckpointKey>) -> Result<ChainHealth, StoreError> {
        let ledger = ledger_of(self.tenant);
        let sessions = self.store.logs(self.tenant).await?.iter().filter(|log| **log != ledger).count();
        let newest = self.sessions(1).await.ok().and_then(|all| all.first().map(|summary| summary.session_id));
        let mut chains = Vec::new();
        for log in newest.into_iter().chain([ledger]) {
            chains.push((log, verify_session(&*self.store, self.key(log), key).await));
        }
        Ok(ChainHealth { sessions, chains })
    }
}
