//! Proving a log (L74): its chain, its head, its checkpoints, and what the ledger says of it.
//!
//! Without a key and without a saved ledger head a log can only be *consistent*: a process that may write
//! the database may write all of it anew. Nothing here claims more.

mod artifacts;
mod erased;
mod facts;
mod fault;
mod named_artifacts;

use std::collections::BTreeMap;

use portcullis_base::{Digest, EventId, SessionId, TenantId};
use portcullis_event::{Body, Chain, ChainFault, CheckpointKey, Event, EventType, ledger_of};

pub use artifacts::verify_artifacts;
pub use erased::ErasedEvents;
pub use fault::{LogFault, Proof};
pub use named_artifacts::{NamedArtifacts, is_made};

use self::facts::FoldedFacts;
use crate::{OutboxKind, SessionKey, Store, StoreError, deliver_outbox};

/// Events a walk holds at once.
const PAGE: usize = 512;
/// Outbox entries that are looked at when they could not be delivered.
const WAITING: usize = 100_000;

/// What a verification of one log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLog {
    pub session: SessionId,
    /// The last seq that holds.
    pub last_seq: u64,
    /// What is proved of the events that hold.
    pub proof: Proof,
    /// The first thing that does not hold.
    pub fault: Option<LogFault>,
}

/// What a walk over every log of a tenant found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Every log, the ledger among them.
    pub logs: Vec<VerifiedLog>,
    /// Where the ledger stands now: what to save for the next time.
    pub ledger_head: Option<(u64, Digest)>,
    /// Everything that does not hold, the faults in `logs` included.
    pub faults: Vec<LogFault>,
    /// Artifacts as the logs name them, to hold their rows against ([`verify_artifacts`]).
    pub named: NamedArtifacts,
}

impl Audit {
    /// Whether everything holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A statement of the ledger about an event of a log.
#[derive(Debug, Clone, Copy)]
struct Statement {
    seq: u64,
    hash: Digest,
    /// `None`: it still waits in the outbox.
    ledger: Option<(u64, EventId)>,
}

/// Verifies one log: chain, head and checkpoints, in pages.
///
/// # Errors
/// If the store cannot be read at all. A damaged log is no error: it is [`VerifiedLog::fault`].
pub async fn verify_session(
    store: &dyn Store,
    key: SessionKey,
    checkpoint_key: Option<&CheckpointKey>,
) -> Result<VerifiedLog, StoreError> {
    verify_session_seen(store, key, checkpoint_key, &|_| {}).await
}

/// The same, and `seen` hears of every event.
///
/// # Errors
/// If the store cannot be read at all.
pub async fn verify_session_seen(
    store: &dyn Store,
    key: SessionKey,
    checkpoint_key: Option<&CheckpointKey>,
    seen: VerifyProgress<'_>,
) -> Result<VerifiedLog, StoreError> {
    let walked = walk(store, key, checkpoint_key, &[], &mut |_| seen(1)).await?;
    Ok(walked.verified)
}

/// A callback with the number of events that were verified since the last call.
pub type VerifyProgress<'a> = &'a (dyn Fn(u64) + Sync);

/// A log after its walk.
struct WalkedLog {
    verified: VerifiedLog,
    newest_checkpoint: Option<u64>,
    /// Statements that do not hold.
    contradicted: Vec<LogFault>,
}

/// Walks a log once and holds everything against it that is said of it. `said` is sorted by seq.
async fn walk(
    store: &dyn Store,
    key: SessionKey,
    checkpoint_key: Option<&CheckpointKey>,
    said: &[Statement],
    visit: &mut (dyn FnMut(&Event) + Send),
) -> Result<WalkedLog, StoreError> {
    let session = key.session;
    // In this order: a log that grows meanwhile then always reaches past what was said of it.
    let checkpoints = store.checkpoints(key).await?;
    let head = store.head(key).await?;
    let mut chain = Chain::start(session);
    let mut erased = ErasedEvents::default();
    let mut fault = None;
    let mut contradicted = Vec::new();
    let mut said = said.iter().peekable();
    let mut due = checkpoints.iter().peekable();
    let mut proved = None;
    let last = head.as_ref().map_or(0, |head| head.last_seq);
    'walk: while fault.is_none() {
        let page = match store.read(key, chain.seq(), PAGE).await {
            Ok(page) => page,
            Err(StoreError::Corrupt(_)) => match readable(store, key, chain.seq()).await? {
                Ok(page) => page,
                Err((seq, why)) => {
                    fault = Some(LogFault::Unreadable { session, seq, why });
                    break;
                }
            },
            Err(error) => return Err(error),
        };
        if page.is_empty() {
            break;
        }
        for event in &page {
            // What came after the head was read belongs to the next walk.
            if last > 0 && chain.seq() == last && still_ahead(store, key, last).await? {
                break 'walk;
            }
            if let Err(found) = chain.step(event) {
                fault = Some(LogFault::chain(session, Some(event), found));
                break;
            }
            visit(event);
            erased.take_in(event);
            while let Some(statement) = said.next_if(|s| s.seq <= event.seq) {
                if statement.seq != event.seq || statement.hash != event.hash {
                    contradicted.push(LogFault::NotAsRecorded {
                        session,
                        seq: event.seq,
                        id: event.id,
                        ledger_seq: statement.ledger.map_or(0, |(seq, _)| seq),
                    });
                }
            }
            while let Some(checkpoint) = due.next_if(|c| c.seq <= event.seq) {
                let seq = checkpoint.seq;
                if seq != event.seq || checkpoint.hash != event.hash {
                    let found = ChainFault::CheckpointHash { seq };
                    fault = Some(LogFault::chain(session, Some(event), found));
                } else if let Some(key) = checkpoint_key {
                    if key.verifies(session, seq, checkpoint.hash, &checkpoint.mac) {
                        proved = Some(seq);
                    } else {
                        let found = ChainFault::CheckpointMac { seq };
                        fault = Some(LogFault::chain(session, Some(event), found));
                    }
                }
                if fault.is_some() {
                    break 'walk;
                }
            }
        }
    }
    if fault.is_none() {
        fault = at_the_end(session, &chain, head.map(|h| (h.last_seq, h.last_hash)));
    }
    if fault.is_none()
        && let Some((seq, id)) = erased.unsaid()
    {
        fault = Some(LogFault::ErasedUnsaid { session, seq, id });
    }
    if fault.is_none()
        && let Some(checkpoint) = due.next()
    {
        fault = Some(LogFault::LostTail { session, checkpoint: checkpoint.seq, last: chain.seq() });
    }
    if fault.is_none() {
        contradicted.extend(said.map(|statement| LogFault::EndsEarly {
            session,
            seq: statement.seq,
            last: chain.seq(),
            ledger_seq: statement.ledger.map_or(0, |(seq, _)| seq),
        }));
    }
    let proof = match proved {
        Some(seq) => Proof::ProvedUpTo(seq),
        None if chain.seq() == 0 => Proof::Empty,
        None => Proof::Consistent,
    };
    Ok(WalkedLog {
        newest_checkpoint: checkpoints.last().map(|c| c.seq),
        verified: VerifiedLog { session, last_seq: chain.seq(), proof, fault },
        contradicted,
    })
}

/// Whether the head moved past `last` since it was read, so that more events are no fault.
async fn still_ahead(store: &dyn Store, key: SessionKey, last: u64) -> Result<bool, StoreError> {
    Ok(store.head(key).await?.is_some_and(|head| head.last_seq > last))
}

fn at_the_end(session: SessionId, chain: &Chain, head: Option<(u64, Digest)>) -> Option<LogFault> {
    let (seq, hash) = match head {
        Some(head) => head,
        None if chain.seq() == 0 => return None,
        // Events without a head row: the head was removed.
        None => (0, chain.hash()),
    };
    let found = chain.finish(seq, hash).err()?;
    Some(LogFault::chain(session, None, found))
}

/// A page with an unreadable event in it, one event at a time: what is readable before it, or the
/// seq of the one that is not.
async fn readable(
    store: &dyn Store,
    key: SessionKey,
    after: u64,
) -> Result<Result<Vec<Event>, (u64, String)>, StoreError> {
    let mut page: Vec<Event> = Vec::new();
    loop {
        let from = page.last().map_or(after, |event| event.seq);
        match store.read(key, from, 1).await {
            Ok(next) if next.is_empty() || page.len() == PAGE => return Ok(Ok(page)),
            Ok(next) => page.extend(next),
            Err(StoreError::Corrupt(_)) if !page.is_empty() => return Ok(Ok(page)),
            Err(StoreError::Corrupt(why)) => return Ok(Err((from + 1, why))),
            Err(error) => return Err(error),
        }
    }
}

/// What the ledger says, gathered from its events and from what still waits to be delivered.
#[derive(Default)]
struct Ledger {
    said: BTreeMap<SessionId, Vec<Statement>>,
    deleted: BTreeMap<SessionId, u64>,
}

impl Ledger {
    fn take_in(&mut self, body: Body, at: Option<(u64, EventId)>) {
        let (session, seq, hash) = match body {
            Body::LedgerSessionCreated(fact) => (fact.session_id, 1, fact.first_hash),
            Body::LedgerCheckpoint(fact) => (fact.session_id, fact.seq, fact.hash),
            Body::LedgerSessionDeleted(fact) => {
                self.deleted.insert(fact.session_id, fact.seq);
                return;
            }
            _ => return,
        };
        self.said.entry(session).or_default().push(Statement { seq, hash, ledger: at });
    }

    /// What waits in the outbox is as good as said.
    async fn take_in_waiting(&mut self, store: &dyn Store, tenant: TenantId) -> Result<(), StoreError> {
        for entry in store.outbox(WAITING).await? {
            let OutboxKind::Session { session_id, event_type, payload, .. } = entry.work else { continue };
            if entry.tenant == tenant && session_id == ledger_of(tenant) {
                self.take_in(decode(event_type, &payload), None);
            }
        }
        Ok(())
    }

    fn sorted(&mut self) {
        for said in self.said.values_mut() {
            said.sort_by_key(|statement| statement.seq);
        }
    }

    fn names(&self, session: SessionId, seq: u64) -> bool {
        self.said.get(&session).is_some_and(|said| said.iter().any(|statement| statement.seq == seq))
    }
}

fn decode(event_type: String, payload: &str) -> Body {
    Body::decode(&EventType::recorded(event_type), 1, Some(payload))
}

/// Verifies every log of a tenant, then the ledger's statements against the logs, then the ledger
/// against a head that was saved elsewhere.
///
/// # Errors
/// If the store cannot be read at all.
pub async fn verify_tenant(
    store: &dyn Store,
    tenant: TenantId,
    checkpoint_key: Option<&CheckpointKey>,
    against: Option<(u64, Digest)>,
) -> Result<Audit, StoreError> {
    verify_tenant_seen(store, tenant, checkpoint_key, against, &|_| {}).await
}

/// The same, and `seen` hears of every event.
///
/// # Errors
/// If the store cannot be read at all.
pub async fn verify_tenant_seen(
    store: &dyn Store,
    tenant: TenantId,
    checkpoint_key: Option<&CheckpointKey>,
    against: Option<(u64, Digest)>,
    seen: VerifyProgress<'_>,
) -> Result<Audit, StoreError> {
    let ledger_id = ledger_of(tenant);
    let key = |session| SessionKey { tenant, session };
    let sessions: Vec<SessionId> =
        store.logs(tenant).await?.into_iter().filter(|session| *session != ledger_id).collect();
    // A damaged store may not take deliveries; what waits is read where it stands then.
    let _ = deliver_outbox(store).await;

    let mut audit = Audit {
        logs: Vec::with_capacity(sessions.len() + 1),
        ledger_head: None,
        faults: Vec::new(),
        named: NamedArtifacts::by_logs_of(tenant),
    };
    let mut ledger = Ledger::default();
    let mut head = None;
    let mut saved = None;
    let walked = walk(store, key(ledger_id), checkpoint_key, &[], &mut |event| {
        head = Some((event.seq, event.hash));
        if against.is_some_and(|(seq, _)| seq == event.seq) {
            saved = Some((event.id, event.hash));
        }
        ledger.take_in(event.body(), Some((event.seq, event.id)));
        seen(1);
    })
    .await?;
    audit.ledger_head = head;
    let ledger_last = walked.verified.last_seq;
    // Every entry of the ledger comes with a checkpoint: with the key, its end is always proved.
    if checkpoint_key.is_some() && ledger_last > 0 && walked.verified.fault.is_none() {
        let proved = matches!(walked.verified.proof, Proof::ProvedUpTo(seq) if seq == ledger_last);
        if !proved {
            audit.faults.push(LogFault::Unproved { session: ledger_id, seq: ledger_last });
        }
    }
    audit.note(walked);
    match (against, saved) {
        (Some((seq, hash)), Some((id, found))) if found != hash => {
            audit.faults.push(LogFault::NotTheSavedHead { seq, id });
        }
        (Some((seq, _)), None) => audit.faults.push(LogFault::BehindSavedHead { seq, last: ledger_last }),
        _ => {}
    }
    if head.is_none() && !sessions.is_empty() {
        let sessions = sessions.len();
        audit.faults.push(LogFault::NoLedger { sessions });
    }
    ledger.take_in_waiting(store, tenant).await?;
    ledger.sorted();

    let mut unnamed = Vec::new();
    for session in &sessions {
        let said = ledger.said.get(session).map_or(&[][..], Vec::as_slice);
        let named = &mut audit.named;
        let mut facts = FoldedFacts::default();
        let visit = &mut |event: &Event| {
            named.take_in(*session, event);
            facts.take_in(event);
            seen(1);
        };
        let walked = walk(store, key(*session), checkpoint_key, said, visit).await?;
        let newest = walked.newest_checkpoint;
        let named = said.iter().filter(|statement| statement.ledger.is_some()).map(|statement| statement.seq).max();
        // The ledger names the first event of a session and then its checkpoints: those must be there.
        let missing = named.filter(|seq| *seq > 1 && newest.is_none_or(|newest| newest < *seq));
        if let (Some(_), Some(seq), None) = (checkpoint_key, missing, &walked.verified.fault) {
            audit.faults.push(LogFault::Unproved { session: *session, seq });
        }
        if walked.verified.fault.is_none() {
            match facts.faults(store, key(*session), walked.verified.last_seq).await {
                Ok(faults) => audit.faults.extend(faults),
                Err(StoreError::Corrupt(why)) => audit.faults.push(LogFault::Row { session: *session, what: why }),
                Err(error) => return Err(error),
            }
        }
        audit.note(walked);
        if said.is_empty() && head.is_some() {
            audit.faults.push(LogFault::NotInLedger { session: *session });
        } else if let Some(seq) = newest.filter(|seq| !ledger.names(*session, *seq)) {
            unnamed.push((*session, seq));
        }
    }
    if head.is_some() && !unnamed.is_empty() {
        audit.check_unnamed(store, tenant, ledger_last, unnamed).await?;
    }
    for (session, said) in &ledger.said {
        // One that was made since the list was read is there, and not gone.
        let gone = !sessions.contains(session)
            && !ledger.deleted.contains_key(session)
            && store.head(key(*session)).await?.is_none();
        if let Some((seq, id)) = said.iter().find_map(|s| s.ledger).filter(|_| gone) {
            let session = *session;
            audit.faults.push(LogFault::Deleted { session, seq, id });
        }
    }
    Ok(audit)
}

impl Audit {
    fn note(&mut self, walked: WalkedLog) {
        self.faults.extend(walked.verified.fault.clone());
        self.faults.extend(walked.contradicted);
        self.logs.push(walked.verified);
    }

    /// Checkpoints that the ledger did not name when it was read may have been made since.
    async fn check_unnamed(
        &mut self,
        store: &dyn Store,
        tenant: TenantId,
        mut after: u64,
        unnamed: Vec<(SessionId, u64)>,
    ) -> Result<(), StoreError> {
        let _ = deliver_outbox(store).await;
        let mut since = Ledger::default();
        let session = ledger_of(tenant);
        loop {
            let page = match store.read(SessionKey { tenant, session }, after, PAGE).await {
                Ok(page) => page,
                // The ledger's own walk has said so already.
                Err(StoreError::Corrupt(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let Some(last) = page.last() else { break };
            after = last.seq;
            for event in &page {
                since.take_in(event.body(), Some((event.seq, event.id)));
            }
        }
        since.take_in_waiting(store, tenant).await?;
        for (session, seq) in unnamed {
            if !since.names(session, seq) {
                self.faults.push(LogFault::CheckpointNotInLedger { session, seq });
            }
        }
        Ok(())
    }
}
