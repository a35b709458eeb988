//! The order of paths: name by name, so that what lies in a directory stands together.

use std::cmp::Ordering;

/// A relative path in the order of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathKey(pub(crate) String);

impl Ord for PathKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for PathKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As if `/` came before every other character: no name holds a NUL.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let weight = |byte: u8| if byte == b'/' { 0 } else { byte };
    a.bytes().map(weight).cmp(b.bytes().map(weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_directory_stands_together() {
        let mut paths = ["a-b", "a/z", "b", "a.txt", "a/b/c", "a", "a/b.c"];
        paths.sort_by(|a, b| compare(a, b));
        assert_eq!(paths, ["a", "a/b/c", "a/b.c", "a/z", "a-b", "a.txt", "b"]);
    }
}
