//! Scheduler keys (tool-contract §14): hierarchical, shared by every session of a location.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::limits::EFFECT_GRACE;
use portcullis_base::{LocationId, SessionId, Timestamp};

use crate::{Commit, StoreError};

/// One key in one location, such as `fs:/workspace/src/a.rs`. The key `*` is the whole location.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey {
    pub location: LocationId,
    pub key: String,
}

/// A key that somebody has in a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    pub key: String,
    pub session: SessionId,
    /// Its holder was lost: it is free from then on.
    pub until: Option<Timestamp>,
}

impl HeldLock {
    /// Whether it keeps a session from a key. Its own keys do not, unless their holder was lost.
    fn excludes(&self, session: SessionId, key: &str, now: Timestamp) -> bool {
        let is_held = self.until.map_or(self.session != session, |until| lingers(until, now));
        is_held && conflicts(&self.key, key)
    }
}

/// Whether a commit may take the keys it wants; `held` gives all keys of a location, by name. Which keys exclude each other
/// shows only when all of a location are compared, so two commits must not compare at the same time: a backend with several
/// writers has a row for each location, and `held` locks it before it reads. Locations are asked for in the order of their
/// ids, each once, so that two commits never wait for each other.
pub(crate) fn check_locks(
    commit: &Commit,
    now: Timestamp,
    held: &dyn Fn(LocationId) -> Vec<HeldLock>,
) -> Result<(), StoreError> {
    let places: BTreeSet<LocationId> = commit.take.iter().map(|lock| lock.location).collect();
    let held: BTreeMap<LocationId, Vec<HeldLock>> = places.into_iter().map(|place| (place, held(place))).collect();
    for wanted in &commit.take {
        let mut there = held.get(&wanted.location).into_iter().flatten();
        if let Some(lock) = there.find(|lock| lock.excludes(commit.key.session, &wanted.key, now)) {
            let HeldLock { key, session, until } = lock.clone();
            return Err(StoreError::LockHeld { key, session, until });
        }
    }
    Ok(())
}

/// Until when a key lingers whose holder was lost just now.
#[must_use]
pub fn lingers_until(now: Timestamp) -> Timestamp {
    now.plus(EFFECT_GRACE)
}

/// Whether a lingering key still excludes others. One that seems to linger for longer than it can was marked by a clock
/// that has been set back since: it is free, for no lock may stay for ever.
#[must_use]
pub fn lingers(until: Timestamp, now: Timestamp) -> bool {
    now < until && until <= lingers_until(now)
}

/// Whether two keys of one location exclude each other: equal, or one an ancestor of the other.
#[must_use]
pub fn conflicts(a: &str, b: &str) -> bool {
    if a == "*" || b == "*" || a == b {
        return true;
    }
    let beneath = |parent: &str, child: &str| {
        child.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/') || parent.ends_with('/'))
    };
    beneath(a, b) || beneath(b, a)
}

#[cfg(test)]
mod tests {
    use super::conflicts;

    #[test]
    fn l42_a_folder_conflicts_with_what_is_in_it_and_not_with_its_neighbour() {
        assert!(conflicts("fs:/repo", "fs:/repo/src/a"));
        assert!(conflicts("fs:/repo/src/a", "fs:/repo"));
        assert!(conflicts("fs:/", "fs:/repo"));
        assert!(conflicts("fs:/repo/a", "fs:/repo/a"));
        assert!(conflicts("*", "mcp:github"));
        assert!(!conflicts("fs:/repo/a", "fs:/repo/ab"));
        assert!(!conflicts("fs:/repo/a", "mcp:repo"));
    }
}
