//! Proving that the logs of a store are whole and unaltered (store §2), with their rows, contents and grants.

use std::collections::BTreeSet;
use std::sync::Arc;

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::{CheckpointKey, ledger_of, operator_log_of};
use portcullis_pipeline::GrantBook;
use portcullis_store::{
    Artifacts, Audit, HeldArtifacts, LogFault, LostEnd, Proof, SessionKey, Store, StoreError, VerifiedLog,
    altered_rows, deliver_outbox, is_erased, session_rows, verify_artifacts, verify_session_seen, verify_tenant_seen,
};
use serde_json::{Value, json};

use super::export::ledger_head;
use super::{EventsSeen, HeadLine};

/// The logs of a tenant, to be verified.
pub struct StoreAudit<'a> {
    /// Where they are.
    pub store: Arc<dyn Store>,
    /// Whose they are.
    pub tenant: TenantId,
    /// With it more is proved than that they agree with themselves.
    pub checkpoint_key: Option<&'a CheckpointKey>,
    /// What the store knows to be missing.
    pub lost: &'a [LostEnd],
}

/// One log, verified.
pub struct VerifiedSession {
    /// What was found.
    pub log: VerifiedLog,
    /// Its content is gone, so only its hashes were checked.
    pub erased: bool,
}

/// What was found of everything there is.
pub struct AuditReport {
    /// Every log and every fault.
    pub walk: Audit,
    /// How many artifacts lost their bytes to the retention policy.
    pub expired: usize,
    /// Sessions whose content is gone, so that only their hashes were checked.
    pub erased: BTreeSet<SessionId>,
}

impl StoreAudit<'_> {
    fn key(&self, session: SessionId) -> SessionKey {
        SessionKey { tenant: self.tenant, session }
    }

    /// Logs that are no session.
    fn is_reserved(&self, session: SessionId) -> bool {
        [ledger_of(self.tenant), operator_log_of(self.tenant)].contains(&session)
    }

    /// Whether a log is a tombstone: its chain can be walked, what stood in it cannot be looked at.
    async fn is_erased(&self, session: SessionId) -> Result<bool, StoreError> {
        let key = self.key(session);
        match self.store.head(key).await? {
            Some(head) => is_erased(&*self.store, key, &head).await,
            None => Ok(false),
        }
    }

    /// How many events one log has, or all of them.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn events(&self, of: Option<SessionId>) -> Result<u64, StoreError> {
        let logs = match of {
            Some(session) => vec![session],
            None => self.store.logs(self.tenant).await?,
        };
        let mut total = 0;
        for log in logs {
            total += self.store.head(self.key(log)).await?.map_or(0, |head| head.last_seq);
        }
        Ok(total)
    }

    /// The ledger's head, once the ledger was told everything.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn ledger_head(&self) -> Result<Option<HeadLine>, StoreError> {
        deliver_outbox(&*self.store).await?;
        ledger_head(&*self.store, self.tenant).await
    }

    /// Verifies one log with its rows.
    ///
    /// # Errors
    /// If there is no such log, or the store cannot be read.
    pub async fn session(&self, session: SessionId, seen: EventsSeen<'_>) -> Result<VerifiedSession, StoreError> {
        let (store, key) = (&*self.store, self.key(session));
        if store.head(key).await?.is_none() && store.read(key, 0, 1).await?.is_empty() {
            return Err(StoreError::NoSession(session));
        }
        let mut log = verify_session_seen(store, key, self.checkpoint_key, seen).await?;
        log.fault = log.fault.or_else(|| self.lost.iter().find(|lost| lost.key == key).map(missing_end));
        let erased = self.is_erased(session).await?;
        if log.fault.is_none() && !erased && !self.is_reserved(session) {
            let own = session_rows(store, self.tenant).await?.remove(&session);
            let altered = altered_rows(store, key, own).await?.into_iter().next();
            log.fault = altered.map(|what| LogFault::Row { session, what });
        }
        Ok(VerifiedSession { log, erased })
    }

    /// Verifies every log and the ledger; [`Self::rest`] verifies what goes with them. `against` is a head of the ledger
    /// that was saved before.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn logs(&self, against: Option<HeadLine>, seen: EventsSeen<'_>) -> Result<Audit, StoreError> {
        let against = against.map(|head| (head.seq, head.hash));
        let mut walk = verify_tenant_seen(&*self.store, self.tenant, self.checkpoint_key, against, seen).await?;
        for lost in self.lost {
            let fault = missing_end(lost);
            // A log that agrees with itself and lost its end is broken, and nothing else.
            let log = walk.logs.iter_mut().find(|log| log.session == lost.key.session && log.fault.is_none());
            if let Some(log) = log {
                log.fault = Some(fault.clone());
            }
            walk.faults.push(fault);
        }
        Ok(walk)
    }

    /// Verifies the bytes of every artifact, the grants, and the rows of every sound log.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn rest(
        &self,
        mut walk: Audit,
        artifacts: Arc<dyn Artifacts>,
        now: Timestamp,
    ) -> Result<AuditReport, StoreError> {
        let store = &*self.store;
        walk.faults.extend(verify_artifacts(store, artifacts, self.tenant, &walk.named).await?);
        let grants = GrantBook::new(Arc::clone(&self.store), self.tenant).altered().await?;
        walk.faults.extend(grants.into_iter().map(|(grant, why)| LogFault::Grant { grant, why }));
        let held = HeldArtifacts::read(store, self.tenant, now).await?;
        let mut erased = BTreeSet::new();
        for log in &walk.logs {
            if self.is_erased(log.session).await? {
                erased.insert(log.session);
            }
        }
        let mut own = session_rows(store, self.tenant).await?;
        let sound = walk.logs.iter().filter(|log| log.fault.is_none()).map(|log| log.session);
        for session in sound.filter(|session| !self.is_reserved(*session)) {
            let own = own.remove(&session);
            if !erased.contains(&session) {
                let altered = altered_rows(store, self.key(session), own).await?;
                walk.faults.extend(altered.into_iter().map(|what| LogFault::Row { session, what }));
            } else if own.is_some() {
                let what = "the session was erased, and has a row".to_owned();
                walk.faults.push(LogFault::Row { session, what });
            }
        }
        Ok(AuditReport { walk, expired: held.expired_before(), erased })
    }
}

/// What the mark beside the database proves.
fn missing_end(lost: &LostEnd) -> LogFault {
    LogFault::NotAsMarked { session: lost.key.session, recorded: lost.recorded, found: lost.found }
}

/// One log as programs read it.
fn log_document(log: &VerifiedLog, tenant: TenantId, erased: bool) -> Value {
    let (proved, words) = match log.proof {
        Proof::ProvedUpTo(seq) => (Some(seq), "proved"),
        Proof::Consistent => (None, "consistent"),
        Proof::Empty => (None, "empty"),
    };
    json!({
        "session_id": log.session,
        "ledger": log.session == ledger_of(tenant),
        "last_seq": log.last_seq,
        "proof": words,
        "proved_up_to": proved,
        "erased": erased,
        "fault": log.fault.as_ref().map(ToString::to_string),
    })
}

impl VerifiedSession {
    /// As programs read it.
    #[must_use]
    pub fn document(&self, tenant: TenantId) -> Value {
        log_document(&self.log, tenant, self.erased)
    }
}

impl AuditReport {
    /// As programs read it; `against` is the head that was compared with.
    #[must_use]
    pub fn document(&self, tenant: TenantId, against: Option<HeadLine>) -> Value {
        let Self { walk, expired, erased } = self;
        let log = |log: &VerifiedLog| log_document(log, tenant, erased.contains(&log.session));
        let logs: Vec<Value> = walk.logs.iter().map(log).collect();
        let faults: Vec<String> = walk.faults.iter().map(ToString::to_string).collect();
        json!({
            "holds": walk.holds(),
            "logs": logs,
            "ledger_head": walk.ledger_head.map(|(seq, hash)| HeadLine { seq, hash }.to_string()),
            "against": against.map(|head| head.to_string()),
            "faults": faults,
            "expired_artifacts": expired,
            "erased_sessions": erased.len(),
        })
    }
}
