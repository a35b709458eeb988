//! Where a file lies, in one form. A tool's `a.rs`, a command's `../a.rs` below `src` and a person's `/workspace/a.rs` are one
//! place. A claim may name a file by its last components, and never has more of a path than the fact.

use portcullis_command::path_text::{join, within};

pub const WORKSPACE: &str = "/workspace";

/// The place of `path` for whoever stands at `from`.
pub fn place(path: &str, from: &str) -> String {
    if path.starts_with('~') { format!("/{path}") } else { join(from, path) }
}

pub fn shown(place: &str) -> &str {
    place.strip_prefix(WORKSPACE).map_or(place, |rest| rest.trim_start_matches('/'))
}

pub fn is_in(place: &str, folder: &str) -> bool {
    place != folder && within(place, folder)
}

/// A path as an answer names it. `whole`: from a root or `./`; `folder`: what lies in it is meant, too.
pub struct NamedPath {
    place: String,
    whole: bool,
    folder: bool,
}

impl NamedPath {
    /// `host` is where the workspace lies on the host.
    pub fn new(path: &str, host: Option<&str>) -> Self {
        let inside = host.filter(|host| host.len() > 1 && within(path, host)).and_then(|host| path.strip_prefix(host));
        let place = place(&inside.map_or(path.to_owned(), |rest| format!("{WORKSPACE}/{rest}")), WORKSPACE);
        Self { place, whole: path.starts_with(['/', '~', '.']), folder: path.ends_with('/') }
    }

    /// Whether this is the place that is meant.
    pub fn is(&self, place: &str) -> bool {
        let name = self.place.strip_prefix(WORKSPACE).unwrap_or(&self.place);
        let tail = !self.whole && name.len() > 1 && place.ends_with(name);
        let within = self.folder && (is_in(place, &self.place) || (!self.whole && place.contains(&format!("{name}/"))));
        (place == self.place && name.len() > 1) || tail || within
    }

    /// Whether it may be meant: it lies in this folder, or `./a.rs` is said carelessly of a file in another.
    pub fn may_be(&self, place: &str) -> bool {
        let name = self.place.strip_prefix(WORKSPACE).filter(|name| name.len() > 1);
        is_in(&self.place, place) || name.is_some_and(|name| self.whole && place.ends_with(name))
    }
}
