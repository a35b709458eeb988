//! What whoever runs a session writes beside its calls: facts of its own, and what they carry.

use portcullis_base::{ArtifactId, ArtifactKind, EventId, SessionId, TurnId, WakeId};
use portcullis_event::facts::{Carried, SessionUpdated};
use portcullis_event::{Actor, EventBody, Stamp, State};
use portcullis_store::{Blob, SessionKey, StoreError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;
use crate::output::evidence::{Evidence, Label, RetainError};
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::session::{Session, caught_up};

/// What is longer than this does not stand in an event: a log is read whole, and often.
const CARRIED_INLINE: usize = 32 * 1024;

impl Gate {
    /// The state of a session as the log says it is now, whoever holds it.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn state(&self, session: SessionId) -> Result<State, StoreError> {
        let key = SessionKey { tenant: self.tenant(), session };
        folded(&**self.store(), key).await
    }

    /// Whether somebody interrupted a session after the event at `seq`, and the last event that was looked at. Only what
    /// came since is read: whoever answers an ask pays for that, not for the whole log.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn interrupted_since(&self, session: SessionId, seq: u64) -> Result<(bool, u64), StoreError> {
        let key = SessionKey { tenant: self.tenant(), session };
        let since = caught_up(&**self.store(), key, State { seq, ..State::default() }).await?;
        Ok((since.inbox.interrupted_after(seq), since.seq))
    }
}

/// The state of a session from its newest snapshot and what came after, without claiming it.
///
/// # Errors
/// If the store failed.
pub async fn folded(
    store: &dyn portcullis_store::Store,
    key: portcullis_store::SessionKey,
) -> Result<State, StoreError> {
    Ok(crate::sessions::session::load_state(store, key).await?.0)
}

impl Session {
    /// From now on everything that is written belongs to this wake.
    pub fn enter_wake(&self, wake: Option<WakeId>) {
        self.shared.set_wake(wake);
    }

    /// Adds a fact to an append and gives the id it will have.
    pub fn note<B: EventBody>(&self, facts: &mut Append, turn: Option<TurnId>, body: &B) -> EventId {
        let gate = &self.shared.gate;
        let stamp = Stamp {
            ids: &*gate.ids,
            clock: &*gate.clock,
            actor: &self.shared.actor,
            turn_id: turn,
            wake_id: self.shared.wake(),
        };
        let draft = stamp.draft(body);
        let id = draft.id;
        facts.events.push(draft);
        id
    }

    /// Records that the session runs as another setup from here on, in an append of its own.
    ///
    /// # Errors
    /// If the log refused it.
    pub async fn adopt_setup(&self, setup: Blob) -> Result<(), Halt> {
        let mut facts = Append::new();
        let changed = SessionUpdated { config_hash: Some(setup.sha256), ..SessionUpdated::default() };
        self.note(&mut facts, None, &changed);
        facts.blobs.push(setup);
        self.commit(facts).await
    }

    /// What a fact is to carry: in itself if it is small, else as an artifact that rides in the same append.
    ///
    /// # Errors
    /// If it could not be kept.
    pub async fn carry(&self, facts: &mut Append, turn: TurnId, value: Value) -> Result<Carried, Halt> {
        let text = value.to_string();
        if text.len() <= CARRIED_INLINE {
            return Ok(Carried::Inline(value));
        }
        let shared = &self.shared;
        let evidence = Evidence { session: shared, turn_id: turn, intent_id: None };
        let label = Label {
            id: ArtifactId::make(&*shared.gate.ids, shared.gate.clock.now()),
            kind: ArtifactKind::ModelInput,
            mime: "application/json",
            lines: None,
            complete: true,
        };
        let kept = evidence.keep(label, text.into_bytes(), facts).await;
        kept.map(Carried::Artifact).map_err(|fault| {
            Halt::PersistFailed(match &fault {
                RetainError::Io(_) => StoreError::Unavailable(fault.to_string()),
                _ => StoreError::OverLimit(fault.to_string()),
            })
        })
    }

    /// Reads the state where it is, without a copy.
    pub fn with_state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.shared.state())
    }

    /// Takes in what others appended meanwhile.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        self.shared.catch_up().await
    }

    /// Fires when the lease is lost: nothing more may be written.
    #[must_use]
    pub fn lost(&self) -> &CancellationToken {
        &self.shared.lost
    }

    /// The fault of the store that lost it; none where another holder or a clock did.
    #[must_use]
    pub fn lost_by(&self) -> Option<StoreError> {
        self.shared.lost_by.get().cloned()
    }

    /// The agent whose model proposes here.
    #[must_use]
    pub fn agent(&self) -> Actor {
        Actor::agent(&self.shared.scope.agent)
    }

    /// The gate it belongs to.
    #[must_use]
    pub fn gate(&self) -> Gate {
        Gate { inner: std::sync::Arc::clone(&self.shared.gate), scope: std::sync::Arc::clone(&self.shared.scope) }
    }
}
