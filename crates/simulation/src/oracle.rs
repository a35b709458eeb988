//! What really happened, beside what the log says: the effects of tools, who was inside which keys, and what each
//! writer was told. It breaks off nothing: it notes every breach of a rule, and the run fails at its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_base::{EventId, IntentId, InvocationId, SessionId, TenantId, WorkerId, limits};
use portcullis_event::Body;
use portcullis_store::{Committed, Head, SessionKey, StoreError, Writer};

use tokio::time::Instant;

use crate::link::Link;

/// Breaches that are told; a broken rule breaks often.
const TOLD: usize = 12;

/// What a writer was told of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It is durable.
    Acknowledged,
    /// Nothing of it was written.
    Refused,
    /// One or the other.
    Unsaid,
}

/// What the simulation knows of one event so far.
struct EventAccount {
    key: SessionKey,
    word: Word,
    /// Tries that nobody has heard of yet; those of the dead stay so.
    under_way: u32,
}

/// An executor at work.
struct Span {
    number: u64,
    worker: WorkerId,
    session: SessionId,
    tenant: Option<TenantId>,
    keys: Vec<String>,
    begun: Instant,
}

#[derive(Default)]
struct Inner {
    breaches: Vec<String>,
    links: BTreeMap<WorkerId, Arc<Link>>,
    starts: BTreeMap<InvocationId, (IntentId, WorkerId)>,
    effects: BTreeMap<IntentId, u32>,
    inside: Vec<Span>,
    spans: u64,
    words: BTreeMap<EventId, EventAccount>,
    jumped: Option<Instant>,
    /// Free sessions that are due, and since when.
    due: BTreeMap<SessionId, Instant>,
    longest_wait: Duration,
    tenants: BTreeMap<SessionId, TenantId>,
    principals: BTreeMap<WorkerId, String>,
}

/// The one who sees everything.
#[derive(Default)]
pub struct Oracle {
    inner: Mutex<Inner>,
}

/// An executor at work, until it is dropped.
pub struct RunningExecutor {
    oracle: Arc<Oracle>,
    number: u64,
}

impl Drop for RunningExecutor {
    fn drop(&mut self) {
        self.oracle.lock().inside.retain(|span| span.number != self.number);
    }
}

impl Oracle {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a rule is broken.
    pub fn breach(&self, rule: &str, what: impl std::fmt::Display) {
        let mut inner = self.lock();
        if inner.breaches.len() < TOLD {
            inner.breaches.push(format!("{rule}: {what}"));
        }
    }

    /// Every rule that was broken.
    #[must_use]
    pub fn breaches(&self) -> Vec<String> {
        self.lock().breaches.clone()
    }

    /// A process that may act from now on.
    pub fn born(&self, worker: WorkerId, link: Arc<Link>, principal: String) {
        let mut inner = self.lock();
        inner.links.insert(worker, link);
        inner.principals.insert(worker, principal);
    }

    /// On whose behalf a process acts.
    #[must_use]
    pub fn principal(&self, worker: WorkerId) -> Option<String> {
        self.lock().principals.get(&worker).cloned()
    }

    /// Whose a session is, whether it is there yet or not.
    pub fn belongs(&self, key: SessionKey) {
        self.lock().tenants.insert(key.session, key.tenant);
    }

    /// A process that acts no more: whatever it was inside of, it is not any longer.
    pub fn died(&self, worker: WorkerId) {
        self.lock().inside.retain(|span| span.worker != worker);
    }

    /// The store's clock jumped: leases may end early, and an effect may overlap its successor's (store §5).
    pub fn store_clock_jumped(&self) {
        self.lock().jumped = Some(Instant::now());
    }

    /// An append took effect, and left the head like this.
    pub fn committed(&self, key: SessionKey, writer: &Writer, head: &Head, committed: &Committed) {
        if *writer == Writer::Client && head.next_due_at.is_some() && head.lease_owner.is_none() {
            self.lock().due.entry(key.session).or_insert_with(Instant::now);
        }
        if let Writer::Worker { worker, fence } = writer {
            if *fence != head.fence && !committed.repeat {
                let text = format!("{worker} wrote to {} under fence {fence}, not {}", key.session, head.fence);
                self.breach("S4", text);
            }
            let mut inner = self.lock();
            for event in &committed.events {
                if let Body::InvocationStarted(started) = &*event.body_ref() {
                    inner.starts.insert(started.invocation_id, (started.intent_id, *worker));
                }
            }
        }
    }

    /// A worker took up what was due.
    pub fn taken_up(&self, session: SessionId) {
        let mut inner = self.lock();
        if let Some(since) = inner.due.remove(&session) {
            inner.longest_wait = inner.longest_wait.max(since.elapsed());
        }
    }

    /// The longest that a free session was due before a worker came.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.lock().longest_wait
    }

    /// A writer sends its append.
    pub fn sent(&self, key: SessionKey, events: &[EventId]) {
        let mut inner = self.lock();
        for id in events {
            let heard = inner.words.entry(*id).or_insert(EventAccount { key, word: Word::Refused, under_way: 0 });
            heard.under_way += 1;
        }
    }

    /// It hears what became of it.
    pub fn told(&self, events: &[EventId], answer: &Result<Committed, StoreError>) {
        let word = match answer {
            Ok(_) => Word::Acknowledged,
            Err(StoreError::Ambiguous(_)) => Word::Unsaid,
            Err(_) => Word::Refused,
        };
        let mut inner = self.lock();
        for id in events {
            let Some(heard) = inner.words.get_mut(id) else { continue };
            heard.under_way -= 1;
            // Once nobody knows, only a yes tells more: a later try may be refused although the first was written.
            if heard.word == Word::Refused || word == Word::Acknowledged {
                heard.word = word;
            }
        }
    }

    /// What every writer was told last.
    #[must_use]
    pub fn words(&self) -> Vec<(EventId, SessionKey, Word)> {
        let inner = self.lock();
        let last = |heard: &EventAccount| match heard.word {
            Word::Refused if heard.under_way > 0 => Word::Unsaid,
            word => word,
        };
        inner.words.iter().map(|(id, heard)| (*id, heard.key, last(heard))).collect()
    }

    /// An executor of a call that is not inert begins: its start must be durable (L21, S8). The line of its process.
    pub fn begins(&self, invocation: InvocationId, intent: IntentId) -> Option<Arc<Link>> {
        let inner = self.lock();
        let found = inner.starts.get(&invocation).filter(|(of, _)| *of == intent);
        let link = found.and_then(|(_, worker)| inner.links.get(worker).cloned());
        drop(inner);
        if link.is_none() {
            self.breach("L21/S8", format!("the executor of {intent} runs before its start is durable"));
        }
        link
    }

    /// An executor that changes things is at work on `keys`.
    pub fn enters(
        self: &Arc<Self>,
        invocation: InvocationId,
        session: SessionId,
        keys: Vec<String>,
    ) -> RunningExecutor {
        let mut inner = self.lock();
        let worker = inner.starts.get(&invocation).map_or(WorkerId::from_u128(0), |(_, worker)| *worker);
        let (jumped, number) = (inner.jumped, inner.spans);
        let tenant = inner.tenants.get(&session).copied();
        inner.spans += 1;
        let mut clashes = Vec::new();
        // A jump of the store's clock ends leases early that were given before it: then the successor cannot know what
        // still runs. A lease that was renewed since is whole again.
        let settled = |span: &&Span| jumped.is_none_or(|at| at + limits::LEASE_TTL < span.begun);
        // What one tenant does is nowhere near what another does (S14).
        for span in inner.inside.iter().filter(settled).filter(|span| span.tenant == tenant) {
            if span.keys.iter().any(|held| keys.iter().any(|key| conflict(held, key))) {
                clashes.push(("L42", format!("{:?} of {} and {keys:?} of {session}", span.keys, span.session)));
            } else if span.session == session {
                clashes.push(("L41", format!("two calls of {session} change things at once")));
            }
        }
        inner.inside.push(Span { number, worker, session, tenant, keys, begun: Instant::now() });
        drop(inner);
        for (rule, what) in clashes {
            self.breach(rule, what);
        }
        RunningExecutor { oracle: Arc::clone(self), number }
    }

    /// The effect itself.
    pub fn effect(&self, intent: IntentId) {
        let times = {
            let mut inner = self.lock();
            let times = inner.effects.entry(intent).or_default();
            *times += 1;
            *times
        };
        if times > 1 {
            self.breach("L73", format!("the effect of {intent} happened {times} times"));
        }
    }

    /// How often the effect of an intent happened.
    #[must_use]
    pub fn effects(&self, intent: IntentId) -> u32 {
        self.lock().effects.get(&intent).copied().unwrap_or(0)
    }

    /// How many effects there were in all.
    #[must_use]
    pub fn effects_in_all(&self) -> usize {
        self.lock().effects.len()
    }
}

/// Equal, one the folder of the other, or one of them everything. Written anew: an oracle shares no code.
fn conflict(one: &str, other: &str) -> bool {
    if one == "*" || other == "*" {
        return true;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (one.split('/').collect(), other.split('/').collect());
    let shared = a.len().min(b.len());
    a[..shared] == b[..shared]
}
