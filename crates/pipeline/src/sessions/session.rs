//! One session under one lease: its folded state, and the only way to append to its log.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use portcullis_base::{AppendId, IntentId, Timestamp, TurnId, WakeId, limits};
use portcullis_contract::Caller;
use portcullis_event::{
    Actor, Draft, Event, EventBody, FOLD_VERSION, IntentState, Observed, SessionStatus, Stamp, State,
};
use portcullis_store::{Commit, Lease, SessionKey, Snapshot, Store, StoreError, Witness};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument as _, debug_span};

use crate::gate::{Gate, GateInner};
use crate::output::quota::QuotaReservation;
use crate::phases::intent::Intent;
use crate::phases::step::Halt;
use crate::registry::loop_guard::LoopGuard;
use crate::registry::registrations::{Registered, RegistrationGuard};
use crate::registry::tool_choice::{ChosenTools, ToolChoice};
use crate::scope::Scope;
use crate::sessions::append::Append;
use crate::sessions::fold_cache::FoldedSession;
use crate::sessions::running_calls::AtWork;
use crate::tasks::effect_book::EffectDesk;
use crate::tasks::running_tasks::TaskList;

/// Events read at once while a log is folded.
const PAGE: usize = 1_000;
/// A snapshot saves folding this many events the next time.
const SNAPSHOT_EVERY: u64 = 1_000;
/// How often a lease is offered back to a store whose disk is full.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(500);
/// How often an append whose answer was lost is asked about before the turn halts.
const AMBIGUOUS_TRIES: u32 = 3;

pub(crate) struct SessionShared {
    pub(crate) gate: Arc<GateInner>,
    /// What it acts by.
    pub(crate) scope: Arc<Scope>,
    tools: RwLock<ChosenTools>,
    pub(crate) key: SessionKey,
    pub(crate) lease: Lease,
    pub(crate) actor: Actor,
    /// Fires when the lease is lost: everything that runs for this session stops.
    pub(crate) lost: CancellationToken,
    /// The fault that lost it, where it was no other holder and no clock.
    pub(crate) lost_by: OnceLock<StoreError>,
    /// Each owner keeps the lease renewed: the session itself, and the calls that go on when it is dropped.
    renewing: Mutex<Weak<DropGuard>>,
    /// Fires when nobody does any more, or the lease was given back.
    given_back: CancellationToken,
    /// One call that can touch the world at a time: width 1 is the meaning (R1). First come, first served.
    pub(crate) lane: Arc<tokio::sync::Mutex<()>>,
    /// Those who stand in that line.
    pub(crate) in_line: AtomicUsize,
    pub(crate) at_work: AtWork,
    /// Those of them that may make an effect in the log.
    pub(crate) effect_desk: EffectDesk,
    /// Calls on their way that were allowed by an answer which may not be durable yet.
    pub(crate) answered: AtWork,
    /// Calls that go on after their observation.
    pub(crate) tasks: TaskList,
    pub(crate) loops: Arc<LoopGuard>,
    /// Held while the session is attended.
    pub(crate) attending: tokio::sync::Mutex<()>,
    /// The wake that everything written now belongs to.
    wake: Mutex<Option<WakeId>>,
    state: Mutex<State>,
    /// Where the newest snapshot in the store is.
    snapshot_seq: AtomicU64,
    /// Tools that the client of this session runs: they are offered while it is held.
    custom: Mutex<Option<RegistrationGuard>>,
}

impl SessionShared {
    /// Folds the log from its newest snapshot on.
    pub(crate) async fn load(scoped: &Gate, key: SessionKey, lease: Lease) -> Result<Self, StoreError> {
        let (gate, scope) = (Arc::clone(&scoped.inner), Arc::clone(&scoped.scope));
        let (state, snapshot_seq) = match gate.fold_cache.take(key) {
            Some(FoldedSession { state, snapshot_seq }) => (caught_up(&*gate.store, key, state).await?, snapshot_seq),
            None => load_state(&*gate.store, key).await?,
        };
        check_fold(&*gate.store, key, &state, &lease).await?;
        let actor = Actor::worker(lease.owner.worker);
        let lost = CancellationToken::new();
        let loops = gate.loops.of(key.session);
        Ok(Self {
            gate,
            tools: RwLock::new(scope.tools.clone()),
            scope,
            key,
            lease,
            actor,
            lost,
            lost_by: OnceLock::new(),
            renewing: Mutex::default(),
            given_back: CancellationToken::new(),
            lane: Arc::default(),
            in_line: AtomicUsize::new(0),
            at_work: AtWork::default(),
            effect_desk: EffectDesk::default(),
            answered: AtWork::default(),
            tasks: TaskList::default(),
            loops,
            attending: tokio::sync::Mutex::default(),
            wake: Mutex::default(),
            state: Mutex::new(state),
            snapshot_seq: AtomicU64::new(snapshot_seq),
            custom: Mutex::default(),
        })
    }

    /// Offers the tools of its client from now on.
    pub(crate) fn offer_tools(&self) {
        *self.custom.lock().unwrap_or_else(PoisonError::into_inner) = self.offer_custom();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A fold step cannot panic between two of its changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which tools it is offered.
    pub(crate) fn tools(&self) -> ChosenTools {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a name means for it now.
    pub(crate) fn effective(&self, name: &str) -> Option<Registered> {
        self.gate.registry.effective(name, self.scope.places(self.key.session))
    }

    /// Keeps the lease renewed until it is dropped; none if nobody does any more.
    pub(crate) fn keep(&self) -> Option<Arc<DropGuard>> {
        self.renewing.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    pub(crate) fn caller(&self, intent: &Intent) -> Caller {
        Caller {
            tenant: self.key.tenant,
            session_id: self.key.session,
            principal: self.scope.principal.clone(),
            actor: intent.proposal.actor.clone(),
            agent: self.scope.agent.clone(),
            message_id: intent.proposal.message_id,
            call_id: intent.proposal.call_id.clone(),
            turn_id: intent.turn_id,
            intent_id: intent.id,
            asker_env: intent.ask().map(|ask| ask.asker_env.clone()).unwrap_or_default(),
        }
    }

    /// Words of a tool or a model as they may be written: known secrets and keys masked (L69), and no longer than a
    /// line that is read at once. A name that a pattern matched is such a word: nobody typed it. Masked first, so that a cut cannot hide half a secret from the search.
    pub(crate) fn tidy(&self, text: &str, most: usize) -> String {
        let masked = self.scope.output_redactor.redact_text(text);
        if masked.len() <= most {
            return masked.into_owned();
        }
        format!("{}… ({} bytes in all)", &masked[..masked.floor_char_boundary(most)], masked.len())
    }

    /// A tool's name as proposed, which may be anything.
    pub(crate) fn tool_name(&self, intent: &Intent) -> String {
        self.scope.redactor.redact_text(&intent.proposal.tool).chars().take(128).collect()
    }

    fn stamp(&self, turn_id: TurnId) -> Stamp<'_> {
        Stamp {
            ids: &*self.gate.ids,
            clock: &*self.gate.clock,
            actor: &self.actor,
            turn_id: Some(turn_id),
            wake_id: self.wake(),
        }
    }

    pub(crate) fn wake(&self) -> Option<WakeId> {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_wake(&self, wake: Option<WakeId>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = wake;
    }

    /// Adds a fact to an append.
    pub(crate) fn note<B: EventBody>(&self, facts: &mut Append, turn_id: TurnId, body: &B) {
        facts.events.push(self.stamp(turn_id).draft(body));
    }

    /// The same for a fact that is not this runner's: an intent is its proposer's.
    pub(crate) fn note_by<B: EventBody>(&self, actor: &Actor, facts: &mut Append, turn_id: TurnId, body: &B) {
        facts.events.push(Stamp { actor, ..self.stamp(turn_id) }.draft(body));
    }

    /// The same draft with another payload: for facts that are completed before they are written.
    pub(crate) fn redraft<B: EventBody>(&self, draft: &Draft, body: &B) -> Draft {
        let fresh =
            Stamp { turn_id: draft.turn_id, ..self.stamp(draft.turn_id.unwrap_or(TurnId::from_u128(0))) }.draft(body);
        Draft { id: draft.id, at: draft.at, ..fresh }
    }

    /// The commit of an append, and the room that what it names takes of the quota.
    pub(crate) fn commit_of(&self, facts: Append) -> (Commit, Vec<QuotaReservation>) {
        let id = AppendId::make(&*self.gate.ids, self.gate.clock.now());
        let seq = self.state().seq;
        let mut facts = facts.whole();
        let reserved = std::mem::take(&mut facts.reserved);
        (facts.into_commit(self.key, self.lease.owner.worker, self.lease.fence, id, seq), reserved)
    }

    /// Makes an append durable and folds it in.
    pub(crate) async fn flush(&self, mut facts: Append) -> Result<(), Halt> {
        if facts.is_empty() {
            return Ok(());
        }
        let slots = std::mem::take(&mut facts.slots);
        let (commit, reserved) = self.commit_of(facts);
        let copies = !commit.outbox.is_empty();
        let span = debug_span!("commit", events = commit.events.len());
        let committed = self.try_commit(commit).instrument(span).await;
        if committed.is_ok() {
            reserved.into_iter().for_each(QuotaReservation::record);
        }
        drop(slots);
        committed?;
        self.deliver(copies).await;
        Ok(())
    }

    /// Delivers what was committed for other logs, at once: a caller may wait for it at the root. What fails here waits in
    /// the outbox for the next who delivers.
    pub(crate) async fn deliver(&self, any: bool) {
        if any && let Err(error) = portcullis_store::deliver_outbox(&*self.gate.store).await {
            tracing::warn!(session = %self.key.session, "other sessions were not told yet: {error}");
        }
    }

    /// One durable append. A lost answer is never assumed to be a yes or a no: the same commit is
    /// offered again, and the log knows it by its event ids.
    pub(crate) async fn try_commit(&self, commit: Commit) -> Result<(), StoreError> {
        // Its fence may still be the newest: nobody came yet. But the next holder finds what this process left
        // (agent-runtime 5.3), and a call that it would settle as cancelled now could not be taken up any more.
        if self.lost.is_cancelled() {
            let ran_out = || StoreError::LeaseRanOut(self.key.session);
            return Err(self.lost_by.get().cloned().unwrap_or_else(ran_out));
        }
        let mut tries = 0;
        loop {
            match self.gate.store.commit(commit.clone()).await {
                Ok(committed) => {
                    let repeat = committed.repeat;
                    return self.take_in(committed.events, repeat).await;
                }
                Err(StoreError::Ambiguous(_)) if tries < AMBIGUOUS_TRIES => tries += 1,
                Err(error) => {
                    if error.lost_record() {
                        self.lose_to(&error);
                    } else if matches!(error, StoreError::FenceLost { .. }) {
                        self.lost.cancel();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// What is recorded cannot be relied on: everything that runs for this session stops, and nothing more is written.
    fn lose_to(&self, fault: &StoreError) {
        let _ = self.lost_by.set(fault.clone());
        self.lost.cancel();
    }

    /// Folds what was committed. Clients may have appended before it, and a repeat comes without
    /// its events: then the log is read from where the state stands.
    async fn take_in(&self, events: Vec<Event>, repeat: bool) -> Result<(), StoreError> {
        let next = self.state().seq + 1;
        let gap = repeat || events.first().is_some_and(|event| event.seq != next);
        if gap {
            return self.catch_up().await;
        }
        let mut state = self.state();
        for event in &events {
            state.apply(event);
        }
        Ok(())
    }

    /// Folds what others appended meanwhile: replies, above all.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        loop {
            let after = self.state().seq;
            let events = self.gate.store.read(self.key, after, PAGE).await?;
            let done = events.len() < PAGE;
            let mut state = self.state();
            for event in &events {
                state.apply(event);
            }
            if done {
                return Ok(());
            }
        }
    }

    /// The stored input of an intent: as it was proposed, sensitive values included.
    pub(crate) async fn stored_input(&self, intent: IntentId) -> Result<Option<Vec<u8>>, StoreError> {
        self.gate.store.sealed(self.key, intent).await
    }

    /// Keeps the fold for the next process, if enough happened since the last time.
    pub(crate) async fn save_snapshot(&self) -> Result<(), StoreError> {
        let snapshot = {
            let state = self.state();
            if state.seq < self.snapshot_seq.load(Ordering::Relaxed) + SNAPSHOT_EVERY {
                return Ok(());
            }
            let Ok(text) = serde_json::to_string(&*state) else { return Ok(()) };
            let digest = portcullis_base::Digest::of(text.as_bytes());
            Snapshot { seq: state.seq, code_version: FOLD_VERSION, state: text, digest }
        };
        let seq = snapshot.seq;
        self.gate.store.put_snapshot(self.key, snapshot).await?;
        self.snapshot_seq.store(seq, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for SessionShared {
    /// The next opener reads only what is new.
    fn drop(&mut self) {
        // Who panicked in a fold step may have left half of it.
        if let Ok(state) = self.state.get_mut().map(std::mem::take) {
            self.gate
                .fold_cache
                .keep(self.key, FoldedSession { state, snapshot_seq: self.snapshot_seq.load(Ordering::Relaxed) });
        }
    }
}

/// The folded state of a session, and the seq its snapshot had. A snapshot that does not hold is
/// ignored: it is a cache, the log is the truth.
pub(crate) async fn load_state(store: &dyn Store, key: SessionKey) -> Result<(State, u64), StoreError> {
    let kept = store.snapshot(key, FOLD_VERSION).await?;
    let kept = kept.filter(|s| portcullis_base::Digest::of(s.state.as_bytes()) == s.digest);
    let state = kept.and_then(|s| serde_json::from_str::<State>(&s.state).ok()).unwrap_or_default();
    let snapshot_seq = state.seq;
    Ok((caught_up(store, key, state).await?, snapshot_seq))
}

/// A fold that knows more than its log has: the end of the log is gone since it was folded, and what stood there would be
/// done a second time.
async fn check_fold(store: &dyn Store, key: SessionKey, state: &State, lease: &Lease) -> Result<(), StoreError> {
    // Clients may have appended since the claim, and a snapshot may know that.
    if state.seq <= lease.last_seq {
        return Ok(());
    }
    let found = store.head(key).await?.map_or(0, |head| head.last_seq);
    if state.seq <= found {
        return Ok(());
    }
    Err(StoreError::Damaged { session: key.session, witness: Witness::Fold, recorded: state.seq, found })
}

/// A fold with what the log has beyond it.
pub(crate) async fn caught_up(store: &dyn Store, key: SessionKey, mut state: State) -> Result<State, StoreError> {
    loop {
        let events = store.read(key, state.seq, PAGE).await?;
        for event in &events {
            state.apply(event);
        }
        if events.len() < PAGE {
            return Ok(state);
        }
    }
}

/// A claimed session. While it is held its lease is renewed; dropping it stops that, once calls and tasks that go on by
/// themselves have ended.
pub struct Session {
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) _renewing: Arc<DropGuard>,
}

impl Session {
    /// Chooses other tools for it than its scope does, from the next turn on.
    pub fn choose_tools(&self, choice: Arc<ToolChoice>) {
        let number = self.shared.gate.fresh_choice();
        *self.shared.tools.write().unwrap_or_else(PoisonError::into_inner) = ChosenTools { number, choice };
    }

    /// Which session.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.shared.key
    }

    /// The state as of the last append this process took in.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.state().clone()
    }

    /// Makes an append durable.
    ///
    /// # Errors
    /// If the log refused it; the turn halts then.
    pub async fn commit(&self, append: Append) -> Result<(), Halt> {
        self.shared.flush(append).await
    }

    /// Gives the lease back, delivers the ledger's entries, and keeps a snapshot if it is worth it.
    /// It waits for a call or a background task that is still at work; [`Session::cancel_tasks`] ends those. What fails
    /// here changes nothing of what was settled: a snapshot is a cache, the outbox waits, and a lease that is not given
    /// back runs out.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn release(self) -> Result<(), StoreError> {
        self.release_until(None).await
    }

    /// The same with the work undone, for `later`: this process could not work on it (agent-runtime 5.7).
    ///
    /// # Errors
    /// As [`Session::release`].
    pub async fn release_until(self, later: Option<Timestamp>) -> Result<(), StoreError> {
        let shared = &self.shared;
        let _lane = shared.lane.lock().await;
        shared.at_work.done().await;
        shared.tasks.all_ended().await;
        let snapshot = shared.save_snapshot().await;
        let idle_at = {
            let state = shared.state();
            let nothing_left = state.movable_asks().next().is_none() && state.session.queued.is_empty();
            // A wake that is open is work by itself, and so is input, unless it has to wait for an answer
            // (agent-runtime 3.3).
            let waits = state.asks.pending().next().is_some() || !state.progress.handed_over.is_empty();
            let said = !state.inbox.pending().is_empty() && !waits;
            // What waited was run by a process that asks no model (`approvals allow`): the model has yet to hear of it.
            let unheard = !waits && state.session.status == SessionStatus::RequiresAction;
            let nothing_left = nothing_left && !said && !unheard && state.progress.open.is_none();
            // A call that was begun here and could not be settled is work for the next one, who comes only to what
            // is due (S9, S11).
            let all_wait = state.intents.open().all(|intent| intent.state == IntentState::Parked);
            (nothing_left && all_wait).then_some(state.seq)
        };
        let store = &shared.gate.store;
        // Together: the store's group commit makes one sync of both.
        let give_back = async {
            match later {
                Some(later) => store.defer(shared.key, shared.lease.fence, later).await,
                None => store.release(shared.key, shared.lease.fence, idle_at).await,
            }
        };
        let (released, delivered) = tokio::join!(give_back, portcullis_store::deliver_outbox(&**store));
        shared.given_back.cancel();
        // A caller that still has a handle of it offers nothing any more.
        *shared.custom.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // Before the others are looked at: where they failed, this one may have failed with them.
        let released = match released {
            // Someone took the session over meanwhile: there is nothing left to give back.
            Err(StoreError::FenceLost { .. }) => Ok(()),
            Err(fault) if fault.may_pass() => {
                give_back_later(shared, idle_at);
                Err(fault)
            }
            other => other,
        };
        snapshot?;
        delivered?;
        released
    }
}

/// The store did not take a lease back, on a full disk for one. It is offered again until it is taken, or the lease has
/// run out by itself: the next holder should not wait for that once there is room.
fn give_back_later(shared: &Arc<SessionShared>, idle_at: Option<u64>) {
    let session = Arc::clone(shared);
    shared.scope.tracker.spawn(async move {
        let until = session.gate.clock.monotonic() + limits::LEASE_TTL;
        while session.gate.clock.monotonic() < until {
            tokio::time::sleep(LOOK_FOR_ROOM).await;
            let released = session.gate.store.release(session.key, session.lease.fence, idle_at).await;
            if !released.is_err_and(|fault| fault.may_pass()) {
                return;
            }
        }
    });
}

/// Renews a lease until it is dropped or lost. A holder that cannot renew stops itself before the
/// lease ends: it writes nothing more and cancels what it runs. `claimed` is the time from before the
/// claim was sent: its answer and the log may have been long under way.
pub(crate) fn keep_lease(shared: &Arc<SessionShared>, claimed: Duration) -> Arc<DropGuard> {
    let stop = shared.given_back.clone();
    let guard = Arc::new(stop.clone().drop_guard());
    *shared.renewing.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&guard);
    let session = Arc::clone(shared);
    shared.scope.tracker.spawn(async move {
        let mut good_until = claimed + limits::LEASE_TTL - limits::LEASE_MARGIN;
        loop {
            let left = good_until.saturating_sub(session.gate.clock.monotonic());
            tokio::select! {
                // In a fixed order, like every choice of this crate: a run can be repeated from its seed.
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(limits::LEASE_RENEW.min(left)) => {}
            }
            // Measured from before the request: the backend counts from when it answers.
            let asked = session.gate.clock.monotonic();
            let left = good_until.saturating_sub(asked);
            let renewing = session.gate.store.renew(session.key, session.lease.fence, limits::LEASE_TTL);
            match tokio::time::timeout(left.max(limits::LEASE_LAST_ASK), renewing).await {
                Ok(Ok(_)) => good_until = asked + limits::LEASE_TTL - limits::LEASE_MARGIN,
                Ok(Err(StoreError::FenceLost { .. })) | Err(_) => return session.lost.cancel(),
                // What runs could not be recorded any more, also if its process waited for it.
                Ok(Err(fault)) if fault.lost_record() => return session.lose_to(&fault),
                Ok(Err(_)) if left.is_zero() => return session.lost.cancel(),
                Ok(Err(_)) => {}
            }
        }
    });
    guard
}

/// A settled intent, as its three readers see it. Only this crate makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation(pub(crate) Observed);

impl Observation {
    /// The session projection: everything.
    #[must_use]
    pub fn session_view(&self) -> &Observed {
        &self.0
    }

    /// The model projection.
    #[must_use]
    pub fn model_view(&self) -> serde_json::Value {
        self.0.model_view()
    }

    /// Whether it is a success.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.0.ok
    }
}
