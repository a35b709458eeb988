//! A file that has other names: what a rule says of one of them holds for the file (check 38). Only a file that the file
//! system says has more than one name is looked at, and only where a rule denies something.

use portcullis_base::Reason;
use portcullis_contract::{Caller, Precondition, Resolved, Resource};
use portcullis_policy::{DeniedPath, PathPattern};
use portcullis_sandbox::matching::{self, LinkedFile, PlaceMatcher};

use super::FileTools;

/// Patterns of rules that deny.
pub(crate) struct Patterns {
    all: Vec<PathPattern>,
    anchors: Vec<String>,
}

impl Patterns {
    /// A rule that denies everything has no pattern; it needs no other name to do so.
    pub(crate) fn of(denied: Vec<DeniedPath>) -> Self {
        let all: Vec<PathPattern> = denied.into_iter().filter_map(|denied| denied.what).collect();
        let anchors = all.iter().map(|pattern| pattern.anchor().0.to_owned()).collect();
        Self { all, anchors }
    }
}

impl PlaceMatcher for Patterns {
    fn is(&self, path: &str) -> Option<usize> {
        self.all.iter().position(|pattern| pattern.matches(path))
    }

    fn anchors(&self) -> &[String] {
        &self.anchors
    }
}

impl FileTools {
    /// The files that rules deny a caller under these actions and that have more than one name.
    pub(crate) fn denied_with_other_names(
        &self,
        caller: &Caller,
        actions: &[&str],
    ) -> std::io::Result<Vec<LinkedFile>> {
        let denied = self.rules.denied(caller, actions).unwrap_or_default();
        let patterns = Patterns::of(denied);
        if patterns.all.is_empty() { Ok(Vec::new()) } else { matching::linked(&self.mounts, &patterns) }
    }

    /// What was named, and with it every denied name that the same file has: a rule on one of those counts too.
    pub(crate) fn under_every_name(
        &self,
        mut resolved: Resolved,
        caller: &Caller,
        actions: &[&str],
    ) -> Result<Resolved, Precondition> {
        if self.rules.denied(caller, actions).is_some_and(|denied| denied.is_empty()) {
            return Ok(resolved);
        }
        let object = self.place(&resolved).ok().and_then(|place| place.if_it_has_other_names());
        let (Some(object), Some(named)) = (object, resolved.resources.first().cloned()) else { return Ok(resolved) };
        let linked = self.denied_with_other_names(caller, actions).map_err(|error| {
            let text = format!(
                "`{}` has other names, and whether a rule denies one of them cannot be found out: {error}",
                named.raw
            );
            Precondition::failed(Reason::NotInScope, text)
        })?;
        let names = linked.into_iter().filter(|linked| linked.object == object && linked.path != named.canonical);
        resolved.resources.extend(names.map(|linked| Resource::path(linked.path, named.raw.clone())));
        Ok(resolved)
    }
}
