//! The head row: concurrency control, and when a worker should take the session up.

use std::time::Duration;

use portcullis_base::{Digest, SessionId, Timestamp};
use portcullis_event::facts::Priority;
use portcullis_event::{SessionStatus, first_prev_hash};

use crate::HeadColumns::{Holder, Line, Log, Until};
use crate::{HeadUpdate, Lease, LeaseOwner, Liveness, LivenessOracle, PreviousLease};

/// The pending wake of a session that is due first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextWake {
    pub due_at: Timestamp,
    pub priority: Priority,
}

/// One row a log, narrow: every append changes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    pub last_seq: u64,
    pub last_hash: Digest,
    pub fence: u64,
    pub lease_owner: Option<LeaseOwner>,
    pub lease_until: Option<Timestamp>,
    /// Since when there is work that waits for no time: input, an answer, or what a holder has not given back.
    pub work_due_at: Option<Timestamp>,
    /// Work that waits for its time.
    pub wake: Option<NextWake>,
    /// When a worker should take the session up, and how urgent that is; both follow from the two above.
    pub next_due_at: Option<Timestamp>,
    pub priority: Priority,
    pub status: SessionStatus,
    /// Asks that are pending.
    pub blocked_n: u64,
    /// Wakes that failed in a row (store §6).
    pub failure_streak: u32,
    /// The last seq that has a checkpoint, 0 if none.
    pub checkpoint_seq: u64,
    pub updated_at: Timestamp,
}

impl Head {
    /// The head of a log that has no events yet.
    #[must_use]
    pub fn new(session: SessionId, now: Timestamp) -> Self {
        Self {
            last_seq: 0,
            last_hash: first_prev_hash(session),
            fence: 0,
            lease_owner: None,
            lease_until: None,
            work_due_at: None,
            wake: None,
            next_due_at: None,
            priority: Priority::Normal,
            status: SessionStatus::Idle,
            blocked_n: 0,
            failure_streak: 0,
            checkpoint_seq: 0,
            updated_at: now,
        }
    }

    /// There is work now; if there was before, it has waited since then.
    pub fn has_work(&mut self, now: Timestamp) {
        self.work_due_at = Some(self.work_due_at.map_or(now, |since| since.min(now)));
        self.reckon();
    }

    /// Sets when the session is due. A wake waits while an ask does, or a client's result (store §4); what is terminated is
    /// never due.
    pub fn reckon(&mut self) {
        // A holder that gives back a session without a pending ask leaves work, so its wakes do not wait for ever.
        let waits = self.blocked_n > 0 || self.status == SessionStatus::RequiresAction;
        let wake = self.wake.filter(|_| !waits);
        let due = [self.work_due_at, wake.map(|wake| wake.due_at)].into_iter().flatten().min();
        self.next_due_at = due.filter(|_| self.status != SessionStatus::Terminated);
        self.priority = match (self.work_due_at, wake) {
            _ if self.next_due_at.is_none() => Priority::Normal,
            (Some(_), _) => Priority::High,
            (None, wake) => wake.map_or(Priority::Normal, |wake| wake.priority),
        };
    }

    fn updated(&self, rests_on: &'static [crate::HeadColumns], change: impl FnOnce(&mut Self)) -> HeadUpdate {
        let mut after = self.clone();
        change(&mut after);
        HeadUpdate::new(self.clone(), after, rests_on)
    }

    /// A sweep found an expired ask of this session: there is work. `None` if that was told before, or nobody needs it.
    #[must_use]
    pub fn swept(&self, now: Timestamp) -> Option<HeadUpdate> {
        let asleep = self.work_due_at.is_none() && self.status != SessionStatus::Terminated;
        asleep.then(|| self.updated(&[Log, Line], |head| head.has_work(now)))
    }

    /// Gives the session to a new holder; `oracle` tells what became of one that did not give it back. It is due from now on, until the holder gives it back: a holder that dies
    /// leaves work behind, whatever it was called for (S11).
    pub fn granted(
        &self,
        session: SessionId,
        owner: LeaseOwner,
        (now, ttl): (Timestamp, Duration),
        oracle: &dyn LivenessOracle,
    ) -> (Lease, HeadUpdate) {
        let until = now.plus(ttl);
        let before = match self.lease_owner.as_ref().map(|gone| oracle.liveness(gone)) {
            None => PreviousLease::GivenBack,
            Some(Liveness::Dead) => PreviousLease::Dead,
            Some(Liveness::Alive | Liveness::Unknown) => PreviousLease::RanOut,
        };
        let fence = self.fence + 1;
        let update = self.updated(&[Log, Holder, Until, Line], |head| {
            (head.fence, head.lease_owner, head.lease_until) = (fence, Some(owner.clone()), Some(until));
            head.has_work(now);
        });
        (Lease { session, fence, owner, until, last_seq: self.last_seq, before }, update)
    }

    /// Its holder has it for longer. An append says nothing of that, and the other way round.
    #[must_use]
    pub fn renewed(&self, until: Timestamp) -> HeadUpdate {
        self.updated(&[Holder, Until], |head| head.lease_until = Some(until))
    }

    /// Takes the session back from a holder that could do nothing with it: it is due again at `until`, and its wakes with it.
    #[must_use]
    pub fn deferred(&self, until: Timestamp) -> HeadUpdate {
        self.updated(&[Log, Holder, Until, Line], |head| {
            (head.lease_owner, head.lease_until) = (None, None);
            head.work_due_at = Some(until);
            head.reckon();
            head.next_due_at = head.next_due_at.map(|due| due.max(until));
        })
    }

    /// Takes the session back from its holder. If that had nothing left to do and saw the whole log, only wakes make it
    /// due again; else it is due at once, so that what a client appended behind its back is never forgotten (S11).
    #[must_use]
    pub fn released(&self, idle_at: Option<u64>, now: Timestamp) -> HeadUpdate {
        let is_idle = idle_at.is_some_and(|seen| seen >= self.last_seq);
        self.updated(&[Log, Holder, Until, Line], |head| {
            (head.lease_owner, head.lease_until) = (None, None);
            // It was served just now: what is left waits from here on, behind those who waited longer
            // (agent-runtime 5.2, fairness).
            head.work_due_at = (!is_idle).then_some(now);
            head.reckon();
        })
    }
}
