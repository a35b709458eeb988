//! Scheduler keys (tool-contract §14): hierarchical, shared by every session of a location.

use portcullis_base::limits::EFFECT_GRACE;
use portcullis_base::{LocationId, Timestamp};

/// One key in one location, such as `fs:/workspace/src/a.rs`. The key `*` is the whole location.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey {
    pub location: LocationId,
    pub key: String,
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
