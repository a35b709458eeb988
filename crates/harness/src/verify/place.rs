//! Where a file lies, in one form: what a tool calls `a.rs`, a command below `src` `../a.rs` and a person
//! `/workspace/a.rs` or by its path on the host is one place.
//!
//! A claim may name a file by its last components ("`a.rs`" for `src/a.rs`); it never has more of a path than the fact.

/// Where the model sees the workspace.
const WORKSPACE: &str = "/workspace";

/// A file or folder, without `.`, `..` and links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// In the workspace, relative to it; else from the root of the host.
    inside: bool,
    parts: Vec<String>,
}

impl Place {
    /// The workspace itself.
    pub(super) fn workspace() -> Self {
        Self { inside: true, parts: Vec::new() }
    }

    /// The place of `path` for whoever stands at `from`; `host` is where the workspace lies on the host.
    pub(super) fn of(path: &str, from: &Self, host: Option<&str>) -> Self {
        let below = |root: &str| match path.strip_prefix(root.trim_end_matches('/')) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest),
            _ => None,
        };
        let inside = below(WORKSPACE).or_else(|| host.filter(|host| host.len() > 1).and_then(below));
        let (mut place, rest) = match inside {
            Some(rest) => (Self::workspace(), rest),
            None if path.starts_with(['/', '~']) => (Self { inside: false, parts: Vec::new() }, path),
            None => (from.clone(), path),
        };
        for part in rest.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part != ".." {
                place.parts.push(part.to_owned());
            } else if place.parts.pop().is_none() && place.inside {
                // Beside the workspace: nothing that is named from inside lies there.
                place = Self { inside: false, parts: vec!["..".to_owned()] };
            }
        }
        place
    }

    /// Whether it lies in this folder.
    pub(super) fn is_in(&self, folder: &Self) -> bool {
        self.inside == folder.inside && self.parts.len() > folder.parts.len() && self.parts.starts_with(&folder.parts)
    }

    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    /// For a sentence.
    pub(super) fn shown(&self) -> String {
        let path = self.parts.join("/");
        if self.inside || path.starts_with("..") { path } else { format!("/{path}") }
    }
}

/// A path as an answer names it.
#[derive(Debug, Clone)]
pub(super) struct Named {
    place: Place,
    /// From a root or `./`: these are all of its components.
    whole: bool,
    /// `a/`: what lies in it is meant, too.
    folder: bool,
}

impl Named {
    pub(super) fn new(path: &str, host: Option<&str>) -> Self {
        let place = Place::of(path, &Place::workspace(), host);
        Self { place, whole: path.starts_with(['/', '~', '.']), folder: path.ends_with('/') }
    }

    /// Whether this is the place that is meant.
    pub(super) fn is(&self, place: &Place) -> bool {
        let parts = &self.place.parts;
        if parts.is_empty() || place.parts.is_empty() {
            return false;
        }
        if self.whole || !self.place.inside {
            return *place == self.place || (self.folder && place.is_in(&self.place));
        }
        let within = || place.parts.windows(parts.len()).any(|part| part == parts);
        place.parts.ends_with(parts) || (self.folder && within())
    }

    /// Whether this place may be meant by `./a.rs`, carelessly: it has that name in another folder.
    pub(super) fn may_be(&self, place: &Place) -> bool {
        self.whole && self.place.inside && !self.place.parts.is_empty() && place.parts.ends_with(&self.place.parts)
    }

    /// Whether what is meant may lie in this folder.
    pub(super) fn lies_in(&self, folder: &Place) -> bool {
        self.place.is_in(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l76_a_path_has_one_form_and_a_claim_no_more_of_it_than_the_fact() {
        let from = |path: &str, folder: &str| {
            let folder = Place::of(folder, &Place::workspace(), None);
            Place::of(path, &folder, Some("/home/me/proj"))
        };
        let a = from("a.rs", "src");
        for same in ["/workspace/src/a.rs", "/home/me/proj/src/a.rs", "../src/./a.rs"] {
            assert_eq!(from(same, "src"), a, "{same}");
        }
        let named = |claim: &str, place: &Place| Named::new(claim, Some("/home/me/proj")).is(place);
        for same in ["src/a.rs", "a.rs", "./src/a.rs", "/workspace/src/a.rs", "/home/me/proj/src/a.rs", "src/"] {
            assert!(named(same, &a), "{same}");
        }
        for other in
            ["./a.rs", "lib/src/a.rs", "/etc/src/a.rs", "/home/me/src/a.rs", "/a.rs", "rc/a.rs", "~/a.rs", "../a.rs"]
        {
            assert!(!named(other, &a), "{other}");
        }
        assert!(!named("docs/README.md", &from("README.md", "")), "another file of that name");
        assert!(Named::new("out/a/b.txt", None).lies_in(&from("out", "")));
        assert_eq!(from("../x.md", "").shown(), "../x.md");
        assert!(!from("../x.md", "").is_inside());
    }
}
