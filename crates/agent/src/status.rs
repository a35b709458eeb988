//! Where a session stands (agent-runtime 5.10), and who holds it.

use portcullis_base::Timestamp;
use portcullis_event::facts::{SessionCreated, SpanCompleted, SpanStarted, StopReason};
use portcullis_event::{Body, EventBody as _, SessionStatus, State};
use portcullis_pipeline::folded;
use portcullis_store::{
    AskFilter, AskRow, Head, HostLiveness, LeaseOwner, Liveness, LivenessOracle as _, Log, SessionKey, Store,
    StoreError, created,
};

/// Where a session stands.
pub struct Standing {
    pub created: SessionCreated,
    pub head: Head,
    pub state: State,
    /// Asks that wait for an answer, oldest first.
    pub asks: Vec<AskRow>,
    /// The newest wake.
    pub activation: Option<Activation>,
}

/// A wake of the activation journal (agent-runtime 5.3).
pub struct Activation {
    pub began: SpanStarted,
    /// `None`: it has not ended.
    pub ended: Option<SpanCompleted>,
}

impl Standing {
    /// Reads it from the store.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be read.
    pub async fn read(store: &dyn Store, key: SessionKey) -> Result<Self, StoreError> {
        let created = created(store, key).await?;
        let head = store.head(key).await?.ok_or(StoreError::NoSession(key.session))?;
        let state = folded(store, key).await?;
        let asks = store.asks(key.tenant, AskFilter { session: Some(key.session), pending: true }).await?;
        Ok(Self { created, head, state, asks, activation: activation(store, key).await? })
    }

    /// A session that is idle and has input, or whose ask was answered and whose model has yet to hear of it, reads as
    /// `rescheduling`; no event says so (agent-runtime 3.3).
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        let waits = self.waits();
        match self.state.session.status {
            SessionStatus::RequiresAction if !waits => SessionStatus::Rescheduling,
            // Calls that nobody's model made ask as well.
            SessionStatus::Idle if waits => SessionStatus::RequiresAction,
            SessionStatus::Idle if self.runnable().is_some() => SessionStatus::Rescheduling,
            status => status,
        }
    }

    /// What it stopped for, which is over once it works, or is about to (agent-runtime 3.4).
    #[must_use]
    pub fn stop_reason(&self) -> Option<&StopReason> {
        let rests =
            matches!(self.status(), SessionStatus::Idle | SessionStatus::RequiresAction | SessionStatus::Terminated);
        self.state.progress.last_stop.as_ref().filter(|_| rests)
    }

    /// Whether somebody has to answer. What was asked before an interrupt takes no answer.
    fn waits(&self) -> bool {
        let asked = self.state.asks.pending().any(|ask| !self.state.inbox.interrupted_after(ask.seq));
        asked || !self.state.progress.handed_over.is_empty()
    }

    /// The input that a wake would take up first.
    #[must_use]
    pub fn runnable(&self) -> Option<&'static str> {
        let inbox = &self.state.inbox;
        inbox.pending().first().filter(|_| !self.waits() || inbox.interrupted()).map(|input| input.kind())
    }

    /// How many inputs have not been taken up.
    #[must_use]
    pub fn pending_inputs(&self) -> usize {
        self.state.inbox.pending().len() + self.state.session.queued.len()
    }

    /// When a failed wake is tried again.
    #[must_use]
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.state.wakes.pending().filter(|wake| wake.is_retry()).map(|wake| wake.due_at).min()
    }
}

/// The status of a row in a list, from its head alone: nothing waits in it, and there is work.
#[must_use]
pub fn head_reads_as(head: &Head) -> SessionStatus {
    match head.status {
        SessionStatus::RequiresAction if head.blocked_n == 0 && head.work_due_at.is_some() => {
            SessionStatus::Rescheduling
        }
        SessionStatus::Idle if head.blocked_n > 0 => SessionStatus::RequiresAction,
        status => status,
    }
}

async fn activation(log: &dyn Log, key: SessionKey) -> Result<Option<Activation>, StoreError> {
    let mut newest: Option<Activation> = None;
    for event in log.of_kinds(key, &[SpanStarted::KIND, SpanCompleted::KIND]).await? {
        match event.body() {
            Body::SpanStarted(span) => newest = Some(Activation { began: *span, ended: None }),
            Body::SpanCompleted(span) => {
                if let Some(newest) = &mut newest {
                    newest.ended = Some(*span);
                }
            }
            _ => {}
        }
    }
    Ok(newest)
}

/// Who holds a session, or held it and went without giving it back: then whoever comes next goes on with it.
pub enum Holder<'a> {
    Holds {
        owner: &'a LeaseOwner,
        until: Timestamp,
    },
    /// The process has surely ended, as the store asks before it gives the session to another.
    Gone(&'a LeaseOwner),
    /// The lease ran out.
    RanOut(&'a LeaseOwner),
}

impl<'a> Holder<'a> {
    /// That of a session with this head, if it has one.
    #[must_use]
    pub fn of(head: &'a Head, now: Timestamp) -> Option<Self> {
        let owner = head.lease_owner.as_ref()?;
        if HostLiveness::new().liveness(owner) == Liveness::Dead {
            return Some(Self::Gone(owner));
        }
        Some(match head.lease_until {
            Some(until) if until > now => Self::Holds { owner, until },
            _ => Self::RanOut(owner),
        })
    }
}
