//! What a session holds is erased; its hashes stay, and that it was erased (store §11).

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use portcullis_agent::tree::forks_of;
use portcullis_base::{AppendId, Digest, GrantId, SessionId, Timestamp, WorkerId};
use portcullis_event::facts::{GrantCreated, SessionErased};
use portcullis_event::{Actor, Body, EventBody as _, Stamp, ledger_of, operator_log_of};
use portcullis_pipeline::{GrantBook, RememberedGrant};
use portcullis_store::{
    AskFilter, Claim, Commit, HostLiveness, LeaseOwner, StoreError, SweepArtifacts, deliver_outbox, is_erased,
};

use super::Operator;

/// The lease of an erasure: it is one transaction.
const TTL: Duration = Duration::from_secs(30);
/// A file that was put so lately may be about to be named by another session; it is left to a sweep.
const PUT_GRACE: Duration = Duration::from_secs(600);
/// Rows read at once.
const PAGE: usize = 500;

/// A session that is not erased, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// The ledger and the operator log stay.
    #[error("that log is the store's own record and is never erased")]
    Reserved,
    /// It was erased before.
    #[error("session {0} was erased already")]
    Repeated(SessionId),
    /// A live process holds it.
    #[error("session {0} is in use by {1}; end it, then erase the session")]
    Held(SessionId, LeaseOwner),
    /// The store does not take it.
    #[error("session {0} cannot be erased")]
    Impossible(SessionId),
    /// A file stays though its session is gone.
    #[error("the session is erased, but its content {sha256} cannot be deleted: {error}")]
    File {
        /// What it holds.
        sha256: Digest,
        /// Why.
        error: io::Error,
    },
    /// The store refused or failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// What erasing a session would take, and what it would not reach.
pub struct Erasure<'a> {
    operator: &'a Operator,
    session: SessionId,
    contents: HashSet<Digest>,
    /// How many events it has.
    pub events: u64,
    /// How many asks in it wait for an answer.
    pub waiting: u64,
    /// Allows that were remembered in it, for itself or for its project, and stay in force.
    pub grants: Vec<GrantId>,
    /// Sessions that were forked from it, which have what it held up to there.
    pub forks: Vec<SessionId>,
}

/// A session that was erased.
pub struct ErasedSession {
    /// How many events lost their content.
    pub events: u64,
    /// Why the ledger could not be told yet; it is later.
    pub ledger_waits: Option<StoreError>,
}

impl<'a> Erasure<'a> {
    /// Looks at a session that is to be erased.
    ///
    /// # Errors
    /// If it cannot be.
    pub async fn of(operator: &'a Operator, session: SessionId) -> Result<Self, ErasureError> {
        let (store, tenant, key) = (&*operator.store, operator.tenant, operator.key(session));
        if session == ledger_of(tenant) || session == operator_log_of(tenant) {
            return Err(ErasureError::Reserved);
        }
        let head = store.head(key).await?.ok_or(StoreError::NoSession(session))?;
        if is_erased(store, key, &head).await? {
            return Err(ErasureError::Repeated(session));
        }
        let contents = contents_of(operator, Some(session)).await?;
        let waiting = store.asks(tenant, AskFilter { session: Some(session), pending: true }).await?.len() as u64;
        let grants = grants_of(operator, session).await?;
        let forks = forks_of(store, key).await?;
        Ok(Self { operator, session, contents, events: head.last_seq, waiting, grants, forks })
    }

    /// How many artifacts it has.
    #[must_use]
    pub fn artifacts(&self) -> usize {
        self.contents.len()
    }

    /// Takes the lease and erases. Files of large artifacts stay until [`Self::delete_files`].
    ///
    /// # Errors
    /// If somebody holds the session, or the store refuses.
    pub async fn carry_out(&self, reason: Option<String>) -> Result<ErasedSession, ErasureError> {
        let Operator { store, ids, clock, by, called, .. } = self.operator;
        let key = self.operator.key(self.session);
        let worker = WorkerId::make(&**ids, clock.now());
        let owner = HostLiveness::new().this_process(worker, called);
        let lease = match store.claim_session(key, owner, TTL).await? {
            Claim::Granted(lease) => lease,
            Claim::Held { owner, .. } => return Err(ErasureError::Held(self.session, owner)),
            Claim::Refused(error) => return Err(error.into()),
        };
        let actor = Actor::worker(worker);
        let stamp = Stamp { ids: &**ids, clock: &**clock, actor: &actor, turn_id: None, wake_id: None };
        let mut to_seq = lease.last_seq;
        loop {
            let fact = SessionErased { from_seq: 1, to_seq, by: by.clone(), reason: reason.clone() };
            let append = AppendId::make(&**ids, clock.now());
            let mut commit = Commit::worker(key, worker, lease.fence, append, vec![stamp.draft(&fact)]);
            commit.idle = true;
            match store.erase(commit).await {
                Ok(_) => break,
                // A client appended meanwhile; that goes as well.
                Err(StoreError::NotTheirs { .. }) => {
                    let head = store.head(key).await?.ok_or(StoreError::NoSession(self.session))?;
                    if head.last_seq == to_seq {
                        return Err(ErasureError::Impossible(self.session));
                    }
                    to_seq = head.last_seq;
                }
                Err(error) => {
                    // Else it would be held until it runs out.
                    let _ = store.release(key, lease.fence, None).await;
                    return Err(error.into());
                }
            }
        }
        let ledger_waits = deliver_outbox(&**store).await.err();
        Ok(ErasedSession { events: to_seq, ledger_waits })
    }

    /// Deletes the files that no other session has, once the session is erased: how many went, and how many are too young
    /// to be sure.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub async fn delete_files(&self, artifacts: &dyn SweepArtifacts) -> Result<(u64, u64), ErasureError> {
        let others = contents_of(self.operator, None).await?;
        let grace = i64::try_from(PUT_GRACE.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp::from_micros(self.operator.clock.now().as_micros().saturating_sub(grace));
        let (mut gone, mut left) = (0, 0);
        for sha256 in self.contents.difference(&others).copied() {
            let cannot = |error| ErasureError::File { sha256, error };
            let Some(file) = artifacts.file_of(self.operator.tenant, sha256).map_err(cannot)? else { continue };
            match artifacts.sweep(&file, before).map_err(cannot)? {
                true => gone += 1,
                false => left += 1,
            }
        }
        Ok((gone, left))
    }
}

/// Allows that were remembered in a session and are in force.
async fn grants_of(operator: &Operator, session: SessionId) -> Result<Vec<GrantId>, StoreError> {
    let mut given = HashSet::new();
    for event in operator.store.of_kinds(operator.key(session), &[GrantCreated::KIND]).await? {
        if let Body::GrantCreated(fact) = event.body() {
            given.insert(fact.grant_id);
        }
    }
    let now = operator.clock.now();
    let of_it = |found: &RememberedGrant| {
        (given.contains(&found.grant.id) || found.grant.scope.session == Some(session)) && found.in_force(now)
    };
    let grants = GrantBook::new(operator.store.clone(), operator.tenant).all().await?;
    Ok(grants.iter().filter(|found| of_it(found)).map(|found| found.grant.id).collect())
}

/// The contents that rows have: of one session, or of all.
async fn contents_of(operator: &Operator, session: Option<SessionId>) -> Result<HashSet<Digest>, StoreError> {
    let (mut found, mut after) = (HashSet::new(), None);
    loop {
        let page = operator.store.artifacts(operator.tenant, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.artifact.id);
        let mine = page.iter().filter(|row| session.is_none_or(|session| row.session == session));
        found.extend(mine.map(|row| row.artifact.sha256));
    }
}
