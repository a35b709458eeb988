//! What an operation changes in a head row, by column. Appends, leases and sweeps change the same row for different
//! reasons; none of them writes what it did not mean to change.
//!
//! A backend in which only one writer is at work applies an update as it is. One with several writers applies it only to a
//! row that [`HeadUpdate::holds_for`], in one conditional statement, and else reads the row again and decides anew. So no
//! writer takes back what another did meanwhile.

use crate::Head;

/// Columns that are written together, because each follows from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadColumns {
    /// `last_seq`, `last_hash`, `status`, `blocked_n`, `failure_streak`, `checkpoint_seq`, `updated_at`: what appends say.
    Log,
    /// `fence` and `lease_owner`.
    Holder,
    /// `lease_until`, which a holder moves without saying anything else.
    Until,
    /// `work_due_at`, the next wake, and `next_due_at` and `priority`, which follow from these and from [`Self::Log`].
    Line,
}

impl HeadColumns {
    pub const ALL: [Self; 4] = [Self::Log, Self::Holder, Self::Until, Self::Line];

    /// Whether two rows have the same in them.
    fn are_equal(self, a: &Head, b: &Head) -> bool {
        let mut copied = a.clone();
        self.copy(b, &mut copied);
        copied == *a
    }

    fn copy(self, from: &Head, to: &mut Head) {
        match self {
            Self::Log => {
                (to.last_seq, to.last_hash, to.status) = (from.last_seq, from.last_hash, from.status);
                (to.blocked_n, to.failure_streak) = (from.blocked_n, from.failure_streak);
                (to.checkpoint_seq, to.updated_at) = (from.checkpoint_seq, from.updated_at);
            }
            Self::Holder => {
                to.fence = from.fence;
                to.lease_owner.clone_from(&from.lease_owner);
            }
            Self::Until => to.lease_until = from.lease_until,
            Self::Line => {
                (to.work_due_at, to.wake) = (from.work_due_at, from.wake);
                (to.next_due_at, to.priority) = (from.next_due_at, from.priority);
            }
        }
    }
}

/// A change of one head row.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadUpdate {
    before: Head,
    /// The row after it, if nobody else changed it.
    pub after: Head,
    rests_on: &'static [HeadColumns],
}

impl HeadUpdate {
    /// The update that makes `after` of `before`. It was decided by the columns that it rests on, and sets no others.
    pub(crate) fn new(before: Head, after: Head, rests_on: &'static [HeadColumns]) -> Self {
        let update = Self { before, after, rests_on };
        debug_assert!(update.sets().all(|columns| rests_on.contains(&columns)), "{update:?}");
        update
    }

    /// The append ends the log and its lease: nothing is left to do.
    pub(crate) fn erased(self) -> Self {
        let mut after = Head { blocked_n: 0, work_due_at: None, wake: None, ..self.after };
        (after.lease_owner, after.lease_until) = (None, None);
        after.reckon();
        Self::new(self.before, after, &HeadColumns::ALL)
    }

    /// The columns that it sets: those that change.
    pub fn sets(&self) -> impl Iterator<Item = HeadColumns> {
        HeadColumns::ALL.into_iter().filter(|columns| !columns.are_equal(&self.before, &self.after))
    }

    /// Whether it may be applied to a row: what it was decided by is still so.
    #[must_use]
    pub fn holds_for(&self, row: &Head) -> bool {
        self.rests_on.iter().all(|columns| columns.are_equal(&self.before, row))
    }

    /// Changes a row, and leaves in it what others have set.
    pub fn apply_to(&self, row: &mut Head) {
        for columns in self.sets() {
            columns.copy(&self.after, row);
        }
    }
}
