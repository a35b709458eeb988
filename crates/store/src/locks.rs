//! Scheduler keys (tool-contract §14): hierarchical, shared by every session of a location.

use portcullis_base::LocationId;

/// One key in one location, such as `fs:/workspace/src/a.rs`. The key `*` is the whole location.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey {
    pub location: LocationId,
    pub key: String,
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
