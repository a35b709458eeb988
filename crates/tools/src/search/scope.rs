//! Where a search looks: a place the call named, and what of it the rules leave open.

use std::sync::{Arc, OnceLock};

use portcullis_base::{Effect, EffectSet, Risk};
use portcullis_contract::{AccessRequest, Caller, Precondition, Prepared, Resolved, Semantics, Strategy};
use portcullis_pipeline::OpenPaths;
use portcullis_sandbox::{self as sandbox, Entry, FileError, Kind};
use portcullis_secret::file_names;

use crate::files::{FileTools, access, precondition};

/// The field that names the place.
const FIELD: &str = "/path";

/// What `glob` and `grep` are.
pub(crate) fn semantics(truncation: Strategy) -> Semantics {
    Semantics {
        effects: EffectSet::from([Effect::ResourceRead, Effect::SandboxExecute]),
        truncation,
        ..Semantics::read_only()
    }
}

/// Names the place that `path` means, the workspace if it means none.
pub(crate) fn name(parts: &FileTools, path: Option<&str>) -> Result<Resolved, Precondition> {
    let path = path.map(str::trim).filter(|path| !path.is_empty()).unwrap_or(".");
    parts.named(path, FIELD)
}

/// A search reads: what `read` may not, it may not either.
pub(crate) fn plan(action: &str, resolved: &Resolved) -> Vec<AccessRequest> {
    let mut plan = access(action, Risk::Read, Effect::ResourceRead, resolved);
    plan.extend(access("read", Risk::Read, Effect::ResourceRead, resolved));
    plan
}

/// There must be something to search.
pub(crate) fn check(parts: &FileTools, resolved: &Resolved, wanted: Kind) -> Result<Prepared, Precondition> {
    let place = parts.place(resolved).map_err(precondition)?;
    require(&place, wanted).map_err(precondition)?;
    Ok(Prepared::default())
}

/// A directory, or a file where a file will do.
pub(crate) fn require(place: &sandbox::ResolvedPlace, wanted: Kind) -> Result<(), FileError> {
    let path = place.path().clone();
    match place.kind() {
        Some(Kind::Directory) => Ok(()),
        Some(Kind::File) if wanted == Kind::File => Ok(()),
        Some(found) => Err(FileError::WrongKind { path, wanted, found }),
        None => Err(FileError::NotFound { path }),
    }
}

/// What of a place one call may look at.
pub(crate) struct Scope {
    pub(crate) parts: Arc<FileTools>,
    pub(crate) place: sandbox::ResolvedPlace,
    open: OpenPaths,
    caller: Caller,
    action: &'static str,
    /// Files that rules close and that have other names; found when the first file with more than one name is met.
    /// `None` if that could not be found out.
    closed: OnceLock<Option<Vec<(u64, u64)>>>,
}

impl Scope {
    pub(crate) fn new(
        parts: Arc<FileTools>,
        place: sandbox::ResolvedPlace,
        caller: &Caller,
        action: &'static str,
    ) -> Self {
        let open = parts.rules.now(caller, &[action, "read"], place.path().as_str());
        Self { parts, place, open, caller: caller.clone(), action, closed: OnceLock::new() }
    }

    /// Whether rules close what stands at `relative`, under any name that the place was reached by.
    pub(crate) fn closes(&self, relative: impl FnOnce() -> String) -> bool {
        if self.open.everything() || self.place.kind() != Some(Kind::Directory) {
            return false;
        }
        let relative = relative();
        let mut names = std::iter::once(self.place.path()).chain(self.place.also_named());
        !names.all(|name| self.open.may_see(&format!("{}/{relative}", name.as_str().trim_end_matches('/'))))
    }

    /// Whether a file holds secrets that no rule opens: a search does not show what `read` would ask about. The file that
    /// the call named was asked about.
    pub(crate) fn keeps_secret(&self, entry: &Entry<'_>) -> bool {
        if self.place.kind() != Some(Kind::Directory) || !file_names::may_lead_to_secret(entry.parents(), entry.name())
        {
            return false;
        }
        let path = entry.path();
        self.parts.secret_at(&path).is_some_and(|class| !self.open.may_show(&path, class))
    }

    /// Whether rules close a file under another name that it has.
    pub(crate) fn closes_elsewhere(&self, entry: &Entry<'_>) -> bool {
        if self.open.everything() || entry.kind() != Kind::File {
            return false;
        }
        let Some(object) = entry.stat().and_then(|stat| stat.linked) else { return false };
        let closed = self.closed.get_or_init(|| {
            let linked = self.parts.denied_with_other_names(&self.caller, &[self.action, "read"]).ok()?;
            Some(linked.into_iter().map(|linked| linked.object).collect())
        });
        closed.as_ref().is_none_or(|closed| closed.contains(&object))
    }

    /// The place at a path that was found, if it still is that place: nothing on the way was moved or
    /// replaced by a link since.
    pub(crate) fn still(&self, path: &str, kind: Kind) -> Option<sandbox::ResolvedPlace> {
        // What is neither file nor directory is a link perhaps, which resolving would follow.
        let found = self.parts.mounts.resolve(path).ok()?;
        (found.path().as_str() == path && found.kind() == Some(kind)).then_some(found)
    }
}

/// A virtual path as a model and a person see it.
pub(crate) fn shown_path(path: &str) -> &str {
    path.strip_prefix("/workspace/").unwrap_or(path)
}

/// A path in a text of lines: what would break the line is shown as an escape.
pub(crate) fn in_line(path: &str) -> String {
    if !path.chars().any(char::is_control) {
        return path.to_owned();
    }
    path.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}
