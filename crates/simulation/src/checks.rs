//! What must hold of every log once a run is at rest: S1–S17 as far as they can be seen from here, L19, L21, L73, L75,
//! and that a log folds to the same state by whichever way (F15).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portcullis_base::{AskId, Code, Digest, EventId, IntentId, SideEffectState, WorkerId};
use portcullis_event::facts::Verdict;
use portcullis_event::{Body, Event, Observed, State, ledger_of};
use portcullis_store::{Blob, Import, Log as _, MemoryStore, SessionKey, verify_tenant};
use portcullis_store_testkit::conformance;

use crate::dice::Dice;
use crate::ground::Ground;
use crate::oracle::Word;
use crate::run::Outcome;

/// One run in this many is also moved into another store.
const MOVED: u64 = 4;

/// Checks everything and says what the run was.
///
/// # Errors
/// A fault of the simulation itself, in words.
pub async fn all(ground: &Arc<Ground>) -> Result<Outcome, String> {
    let oracle = &ground.oracle;
    let words = |error: portcullis_store::StoreError| error.to_string();
    for tenant in &ground.tenants {
        let audit = verify_tenant(&*ground.store, *tenant, Some(&ground.checkpoint_key), None).await.map_err(words)?;
        for fault in &audit.faults {
            oracle.breach("S1/S2", fault);
        }
    }
    ground.post.check(ground).await;
    if !ground.store.outbox(1).await.map_err(words)?.is_empty() {
        oracle.breach("S2", "the outbox is not empty");
    }
    let mut ids = BTreeSet::new();
    let (mut digests, mut events, mut intents) = (String::new(), 0, 0);
    for key in ground.known().await {
        let log = ground.store.read(key, 0, usize::MAX).await.map_err(words)?;
        conformance::compare(&*ground.store, key).await;
        is_found_by_its_tenant_alone(ground, key).await?;
        asks_name_their_principals(ground, &log);
        intents += Log { ground, key, events: &log }.check();
        folds_alike(ground, &log);
        if ground.options.seed.is_multiple_of(MOVED) {
            moves(ground, key, &log).await;
        }
        artifacts_are_there(ground, key, &log).await?;
        events += log.len();
        ids.extend(log.iter().map(|event| event.id));
        digests.extend(log.iter().map(|event| event.hash.to_string()));
    }
    for tenant in &ground.tenants {
        let ledger = SessionKey { tenant: *tenant, session: ledger_of(*tenant) };
        let log = ground.store.read(ledger, 0, usize::MAX).await.map_err(words)?;
        ids.extend(log.iter().map(|event| event.id));
        digests.extend(log.iter().map(|event| event.hash.to_string()));
    }
    acknowledged_is_durable(ground, &ids);
    Ok(Outcome {
        options: ground.options.clone(),
        breaches: oracle.breaches(),
        digest: Digest::of(digests.as_bytes()),
        events,
        effects: oracle.effects_in_all(),
        intents,
        children: ground.known().await.len() - ground.sessions.len(),
        longest_wait: oracle.longest_wait(),
    })
}

/// S6: what was acknowledged is there, and what was refused is not.
fn acknowledged_is_durable(ground: &Ground, there: &BTreeSet<EventId>) {
    for (id, key, word) in ground.oracle.words() {
        match (word, there.contains(&id)) {
            (Word::Acknowledged, false) => ground.oracle.breach("S6", format!("{id} of {} is lost", key.session)),
            (Word::Refused, true) => {
                ground.oracle.breach("S6", format!("{id} of {} was refused and is there", key.session));
            }
            _ => {}
        }
    }
}

/// S14: no other tenant of the run finds a session by its id.
async fn is_found_by_its_tenant_alone(ground: &Ground, key: SessionKey) -> Result<(), String> {
    for tenant in ground.tenants.iter().filter(|tenant| **tenant != key.tenant) {
        let theirs = SessionKey { tenant: *tenant, session: key.session };
        let found = ground.store.head(theirs).await.map_err(|error| error.to_string())?;
        if found.is_some() {
            ground.oracle.breach("S14", format!("{} is found by {tenant}", key.session));
        }
    }
    Ok(())
}

/// An ask says on whose behalf its call would run: that of the process that raised it.
fn asks_name_their_principals(ground: &Ground, log: &[Event]) {
    for event in log {
        if let (Body::PermissionAsked(asked), Some(worker)) = (&*event.body_ref(), event.worker_id)
            && ground.oracle.principal(worker).as_ref() != Some(&asked.principal)
        {
            ground.oracle.breach("S14", format!("{} was raised for {}", asked.ask_id, asked.principal));
        }
    }
}

/// F15, S16: a snapshot at any event and the tail after it give the state that the whole log gives.
fn folds_alike(ground: &Ground, log: &[Event]) {
    let dice = Dice::of(ground.options.seed, "folds");
    let at = dice.index(log.len() + 1);
    let kept = serde_json::to_string(&State::fold(&log[..at])).unwrap_or_default();
    let Ok(mut state) = serde_json::from_str::<State>(&kept) else {
        return ground.oracle.breach("S16", "a snapshot cannot be read back");
    };
    for event in &log[at..] {
        state.apply(event);
    }
    if state.digest() != State::fold(log).digest() {
        ground.oracle.breach("S16/F15", format!("a snapshot at {at} and its tail is another state"));
    }
}

/// F15: taken into another store it is the same log, with the same rows.
async fn moves(ground: &Ground, key: SessionKey, log: &[Event]) {
    let clock = Arc::clone(&ground.clock);
    let other = MemoryStore::new(clock, ground.ids.clone(), ground.liveness.clone(), None);
    let mut blobs = Vec::new();
    for event in log {
        if let Body::ArtifactStored(stored) = &*event.body_ref()
            && let Ok(Some(bytes)) = ground.store.blob(key.tenant, stored.artifact.sha256).await
        {
            blobs.push(Blob { sha256: stored.artifact.sha256, bytes });
        }
    }
    if let Err(error) = other.import(Import { key, events: log.to_vec(), blobs, expired: BTreeSet::new() }).await {
        return ground.oracle.breach("F15", format!("a log is not taken in: {error}"));
    }
    conformance::compare(&other, key).await;
    let moved = other.read(key, 0, usize::MAX).await.unwrap_or_default();
    if State::fold(&moved).digest() != State::fold(log).digest() {
        ground.oracle.breach("F15", "a moved log is another state");
    }
}

/// S13: what an event names is there, with the bytes it names.
async fn artifacts_are_there(ground: &Ground, key: SessionKey, log: &[Event]) -> Result<(), String> {
    for event in log {
        let Body::ArtifactStored(stored) = &*event.body_ref() else { continue };
        let sha256 = stored.artifact.sha256;
        let bytes = ground.store.blob(key.tenant, sha256).await.map_err(|error| error.to_string())?;
        if bytes.is_none_or(|bytes| Digest::of(&bytes) != sha256) {
            ground.oracle.breach("S13", format!("the bytes of {} are not there", stored.artifact.id));
        }
    }
    Ok(())
}

/// What the log tells of one intent.
#[derive(Default)]
struct IntentAccount {
    acts: bool,
    asked: bool,
    allowed: bool,
    replied: bool,
    validated: bool,
    starts: u32,
    observations: Vec<(Code, bool, SideEffectState)>,
}

struct Log<'a> {
    ground: &'a Ground,
    key: SessionKey,
    events: &'a [Event],
}

impl Log<'_> {
    fn breach(&self, rule: &str, what: impl std::fmt::Display) {
        self.ground.oracle.breach(rule, format!("{what} (session {})", self.key.session));
    }

    /// How many intents it has.
    fn check(&self) -> usize {
        self.one_writer();
        self.asks_leave_pending_once();
        self.input_is_consumed_once();
        let intents = self.intents();
        for (id, told) in &intents {
            self.intent(*id, told);
        }
        intents.len()
    }

    /// S3, L75: fences never fall, and each belongs to one worker.
    fn one_writer(&self) {
        let mut owners: BTreeMap<u64, WorkerId> = BTreeMap::new();
        let mut last = 0;
        for event in self.events {
            let (Some(fence), Some(worker)) = (event.fence, event.worker_id) else { continue };
            if fence < last {
                self.breach("S3/L75", format!("fence {fence} after {last} at {}", event.seq));
            }
            last = fence;
            if *owners.entry(fence).or_insert(worker) != worker {
                self.breach("S3/L75", format!("fence {fence} belongs to two workers"));
            }
        }
    }

    /// S10.
    fn asks_leave_pending_once(&self) {
        let mut left: BTreeSet<AskId> = BTreeSet::new();
        let mut answered: BTreeSet<AskId> = BTreeSet::new();
        for event in self.events {
            match &*event.body_ref() {
                Body::AskReplied(replied) => {
                    if !left.insert(replied.ask_id) {
                        self.breach("S10", format!("{} was answered after it was settled", replied.ask_id));
                    }
                    answered.insert(replied.ask_id);
                }
                // An approval may be void at dispatch: that is no second answer.
                Body::AskClosed(closed) if !left.insert(closed.ask_id) && !answered.remove(&closed.ask_id) => {
                    self.breach("S10", format!("{} was closed twice", closed.ask_id));
                }
                _ => {}
            }
        }
    }

    /// S12, S17: each queued call is taken up once.
    fn input_is_consumed_once(&self) {
        let mut waiting: BTreeSet<EventId> = BTreeSet::new();
        for event in self.events {
            match &*event.body_ref() {
                Body::ToolQueued(_) => {
                    waiting.insert(event.id);
                }
                Body::InputConsumed(consumed) => {
                    for id in &consumed.event_ids {
                        if !waiting.remove(id) {
                            self.breach("S12", format!("{id} was taken up twice"));
                        }
                    }
                }
                _ => {}
            }
        }
        for id in waiting {
            self.breach("S11/S12", format!("{id} was never taken up"));
        }
    }

    fn intents(&self) -> BTreeMap<IntentId, IntentAccount> {
        let mut all: BTreeMap<IntentId, IntentAccount> = BTreeMap::new();
        let mut asks: BTreeMap<AskId, IntentId> = BTreeMap::new();
        for event in self.events {
            match &*event.body_ref() {
                Body::IntentProposed(intent) => {
                    let acts = matches!(intent.tool.as_str(), "change" | "ask" | "finish" | "alone");
                    if all.insert(intent.intent_id, IntentAccount { acts, ..IntentAccount::default() }).is_some() {
                        self.breach("S7", format!("{} was proposed twice", intent.intent_id));
                    }
                }
                Body::InputValidated(checked) => all.entry(checked.intent_id).or_default().validated |= checked.ok,
                Body::PermissionDecided(decided) => {
                    let told = all.entry(decided.intent_id).or_default();
                    told.allowed |= decided.decision == Verdict::Allow;
                }
                Body::PermissionAsked(asked) => {
                    asks.insert(asked.ask_id, asked.intent_id);
                    all.entry(asked.intent_id).or_default().asked = true;
                }
                Body::AskReplied(replied) => {
                    if let Some(intent) = asks.get(&replied.ask_id) {
                        all.entry(*intent).or_default().replied |= replied.reply.allows();
                    }
                }
                Body::InvocationStarted(started) => {
                    let told = all.entry(started.intent_id).or_default();
                    told.starts += 1;
                    if !told.validated || !(told.allowed || told.replied) {
                        self.breach("L21", format!("{} started without its right", started.intent_id));
                    }
                }
                Body::Observed(seen) => all.entry(seen.intent_id).or_default().observations.push(facts(seen)),
                _ => {}
            }
        }
        all
    }

    fn intent(&self, id: IntentId, told: &IntentAccount) {
        if told.starts > 1 {
            self.breach("S7", format!("{id} started {} times", told.starts));
        }
        let [(code, ok, effects)] = told.observations.as_slice() else {
            return self.breach("L19/S9", format!("{id} has {} observations", told.observations.len()));
        };
        let happened = self.ground.oracle.effects(id);
        if happened > 0 && told.starts == 0 {
            self.breach("L21/S8", format!("the effect of {id} happened without a start"));
        }
        if happened > 0 && *effects == SideEffectState::None {
            self.breach("L23", format!("the effect of {id} happened and {code:?} tells of none"));
        }
        if *ok && told.acts && happened != 1 {
            self.breach("L23", format!("{id} is told as done and happened {happened} times"));
        }
        if told.starts == 0 && *effects != SideEffectState::None {
            self.breach("L21", format!("{id} never started and {code:?} tells of effects"));
        }
    }
}

fn facts(seen: &Observed) -> (Code, bool, SideEffectState) {
    (seen.code.known().unwrap_or(Code::InternalError), seen.ok, seen.side_effects.state)
}
