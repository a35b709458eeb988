//! What really happened, beside what the log says: the effects of tools, who was inside which keys, and what each
//! writer was told. It breaks off nothing: it notes every breach of a rule, and the run fails at its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{EventId, IntentId, InvocationId, SessionId, WorkerId};
use portcullis_event::Body;
use portcullis_store::{Committed, SessionKey, StoreError, Writer};

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

/// An executor at work.
struct Span {
    number: u64,
    worker: WorkerId,
    session: SessionId,
    keys: Vec<String>,
    /// How often the store's clock had jumped when it began.
    jumps: u64,
}

#[derive(Default)]
struct Inner {
    breaches: Vec<String>,
    links: BTreeMap<WorkerId, Arc<Link>>,
    starts: BTreeMap<InvocationId, (IntentId, WorkerId)>,
    effects: BTreeMap<IntentId, u32>,
    inside: Vec<Span>,
    spans: u64,
    words: BTreeMap<EventId, (SessionKey, Word)>,
    jumps: u64,
}

/// The one who sees everything.
#[derive(Default)]
pub struct Oracle {
    inner: Mutex<Inner>,
}

/// An executor at work, until it is dropped.
pub struct Inside {
    oracle: Arc<Oracle>,
    number: u64,
}

impl Drop for Inside {
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
    pub fn born(&self, worker: WorkerId, link: Arc<Link>) {
        self.lock().links.insert(worker, link);
    }

    /// A process that acts no more: whatever it was inside of, it is not any longer.
    pub fn died(&self, worker: WorkerId) {
        self.lock().inside.retain(|span| span.worker != worker);
    }

    /// The store's clock jumped: leases may end early, and an effect may overlap its successor's (store §5).
    pub fn store_clock_jumped(&self) {
        self.lock().jumps += 1;
    }

    /// An append took effect, under the fence that the head has now.
    pub fn committed(&self, key: SessionKey, writer: &Writer, fence_now: u64, committed: &Committed) {
        if let Writer::Worker { worker, fence } = writer {
            if *fence != fence_now && !committed.repeat {
                let text = format!("{worker} wrote to {} under fence {fence}, which is {fence_now}", key.session);
                self.breach("S4", text);
            }
            let mut inner = self.lock();
            for event in &committed.events {
                if let Body::Started(started) = &*event.body_ref() {
                    inner.starts.insert(started.invocation_id, (started.intent_id, *worker));
                }
            }
        }
    }

    /// A writer hears of its append.
    pub fn told(&self, key: SessionKey, events: &[EventId], answer: &Result<Committed, StoreError>) {
        let word = match answer {
            Ok(_) => Word::Acknowledged,
            Err(StoreError::Ambiguous(_)) => Word::Unsaid,
            Err(_) => Word::Refused,
        };
        let mut inner = self.lock();
        for id in events {
            let heard = inner.words.entry(*id).or_insert((key, word));
            // Once nobody knows, only a yes tells more: a later try may be refused although the first was written.
            if heard.1 == Word::Refused || word == Word::Acknowledged {
                heard.1 = word;
            }
        }
    }

    /// What every writer was told last.
    #[must_use]
    pub fn words(&self) -> BTreeMap<EventId, (SessionKey, Word)> {
        self.lock().words.clone()
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
    pub fn enters(self: &Arc<Self>, invocation: InvocationId, session: SessionId, keys: Vec<String>) -> Inside {
        let mut inner = self.lock();
        let worker = inner.starts.get(&invocation).map_or(WorkerId::from_u128(0), |(_, worker)| *worker);
        let (jumps, number) = (inner.jumps, inner.spans);
        inner.spans += 1;
        let mut clashes = Vec::new();
        // A jump of the store's clock ends leases early: then the successor cannot know what still runs.
        for span in inner.inside.iter().filter(|span| span.jumps == jumps) {
            if span.keys.iter().any(|held| keys.iter().any(|key| conflict(held, key))) {
                clashes.push(("L42", format!("{:?} of {} and {keys:?} of {session}", span.keys, span.session)));
            } else if span.session == session {
                clashes.push(("L41", format!("two calls of {session} change things at once")));
            }
        }
        inner.inside.push(Span { number, worker, session, keys, jumps });
        drop(inner);
        for (rule, what) in clashes {
            self.breach(rule, what);
        }
        Inside { oracle: Arc::clone(self), number }
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
