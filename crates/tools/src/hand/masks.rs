//! What rules and the runtime close to every command: found on the mounts anew at each launch.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_contract::{Caller, ToolFailure};
use portcullis_policy::{DeniedPath, DeniedProgram, PathPattern};
use portcullis_sandbox::MountTable;
use portcullis_sandbox::matching::{self, MatchedPlace};

use super::fold::{FOLDED_FROM, PLACES_MAX, fold};
use super::view::ViewPlaces;
use super::{Hand, Reach};
use crate::files::hard_links::Patterns;

/// Under these actions a command is said to read: who denies one of them for a path means the command as well.
const READING: &[&str] = &["read", "bash", "shell_run", "shell_exec"];

/// The same for commands that only read, and that nobody was asked about.
const ONLY_READING: &[&str] = &["read", "bash"];

/// Under these actions a command is run: who denies a program under one of them means the program as well.
const RUNNING: &[&str] = &["shell_run", "shell_exec", "bash"];

/// One place of a view that is closed.
#[derive(Debug, Clone)]
pub(super) struct ClosedPlace {
    pub(super) place: PathBuf,
    /// Its virtual path.
    pub(super) path: String,
    /// The rule that closes it; `None` = the runtime.
    pub(super) rule: Option<String>,
}

/// What is closed to a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masks {
    found: Vec<MatchedPlace>,
    /// The rule of each number in `found`; `None` = hidden by the runtime.
    rules: Vec<Option<String>>,
    /// The pattern of each of those rules.
    patterns: Vec<Option<PathPattern>>,
    /// What lies in folders that are closed as one.
    folded: Vec<MatchedPlace>,
    /// Programs that no command may run.
    pub(super) programs: Vec<DeniedProgram>,
}

impl Masks {
    /// Whether every one of these is one of those, the same object at the same place.
    pub(super) fn are_all_in(&self, others: &Self) -> bool {
        others.have_all(&self.found) && self.programs.iter().all(|program| others.programs.contains(program))
    }

    /// The same of what the runtime hides.
    pub(super) fn hidden_is_all_in(&self, others: &Self) -> bool {
        let hidden = |found: &&MatchedPlace| self.rules.get(found.which).is_some_and(Option::is_none);
        others.have_all(self.found.iter().filter(hidden))
    }

    fn have_all<'f>(&self, found: impl IntoIterator<Item = &'f MatchedPlace>) -> bool {
        let mine: HashSet<_> = self.all().map(|found| (&found.mount, &found.beneath, found.object)).collect();
        found.into_iter().all(|found| mine.contains(&(&found.mount, &found.beneath, found.object)))
    }

    fn all(&self) -> impl Iterator<Item = &MatchedPlace> {
        self.found.iter().chain(&self.folded)
    }

    /// Whether nothing is closed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.programs.is_empty()
    }

    /// Whether this object, by device and number, is closed under any name, and by which rule; `None` in it is the
    /// runtime.
    pub(crate) fn closes(&self, object: (u64, u64)) -> Option<Option<&str>> {
        let found = self.all().find(|found| found.object == object)?;
        Some(self.rules.get(found.which).and_then(Option::as_deref))
    }

    /// The virtual paths that are closed, each with the rule that closes it.
    pub fn closed(&self) -> impl Iterator<Item = (PathBuf, Option<&str>)> {
        self.found.iter().map(|found| {
            let path = super::view::join(found.mount.as_ref(), &found.beneath);
            (path, self.rules.get(found.which).and_then(Option::as_deref))
        })
    }

    /// Sorted, each once. What lies in another is closed with it, and a mask in there would have nothing to stand on.
    fn tidy(&mut self) {
        let outer: HashSet<(String, PathBuf)> =
            self.found.iter().map(|found| (found.mount.clone(), found.beneath.clone())).collect();
        let inside = |found: &MatchedPlace| {
            let mut around = found.beneath.ancestors().skip(1);
            around.any(|folder| outer.contains(&(found.mount.clone(), folder.to_owned())))
        };
        self.found.retain(|found| !inside(found));
        self.found.sort_by(|a, b| (&a.mount, &a.beneath).cmp(&(&b.mount, &b.beneath)));
        self.found.dedup_by(|a, b| (&a.mount, &a.beneath) == (&b.mount, &b.beneath));
    }

    fn tidied(mut self, mounts: &MountTable) -> Result<Self, ToolFailure> {
        self.tidy();
        if self.found.len() > FOLDED_FROM {
            // A folder that is closed as one cannot be listed.
            self.folded = fold(&mut self.found, mounts);
            self.tidy();
        }
        if self.found.len() > PLACES_MAX {
            let rule = self.found.last().and_then(|found| self.rules.get(found.which).cloned().flatten());
            return Err(ToolFailure::sandbox_unavailable(format!(
                "rules deny reading {} files and folders here (rule `{}` among them), and at most {PLACES_MAX} can be kept \
                 from a command; name the folders they lie in instead",
                self.found.len(),
                rule.unwrap_or_default()
            )));
        }
        Ok(self)
    }

    /// Places of the view that are closed by where they are: a command that moves a folder on the way to one would
    /// open it for the next command.
    pub(super) fn pinned<'s>(&'s self, shown: &'s ViewPlaces) -> impl Iterator<Item = PathBuf> + 's {
        let by_place = |found: &&MatchedPlace| {
            let pattern = self.patterns.get(found.which).and_then(Option::as_ref);
            !pattern.is_some_and(|pattern| pattern.outlasts_renames_beneath(&found.mount))
        };
        let writable =
            |found: &&MatchedPlace| shown.mounts.iter().any(|mount| mount.root == found.mount && mount.writable);
        let found = self.found.iter().filter(writable).filter(by_place);
        found.flat_map(move |found| shown.places_of(&found.mount, &found.beneath))
    }

    /// Every place of the view that is closed.
    pub(super) fn places<'s>(&'s self, shown: &'s ViewPlaces) -> impl Iterator<Item = ClosedPlace> + 's {
        self.found.iter().zip(self.closed()).flat_map(move |(found, (path, rule))| {
            let places = shown.places_of(&found.mount, &found.beneath);
            let closed = (path.display().to_string(), rule.map(str::to_owned));
            places.map(move |place| ClosedPlace { place, path: closed.0.clone(), rule: closed.1.clone() })
        })
    }
}

impl Hand {
    /// What is closed to a command of this caller now.
    pub(super) async fn masks(&self, caller: &Caller, reach: Reach) -> Result<Masks, ToolFailure> {
        let actions = if reach == Reach::ReadOnly { ONLY_READING } else { READING };
        let Some(mut denied) = self.0.rules.denied(caller, actions) else {
            return Err(ToolFailure::sandbox_unavailable("the runtime is shutting down"));
        };
        // What `read` would ask about first, a line that runs unasked does not come upon, either.
        if reach == Reach::ReadOnly {
            denied.extend(self.0.rules.asked(caller, actions));
        }
        let mut masks = self.hidden();
        if !denied.is_empty() {
            let mounts = Arc::clone(self.mounts());
            let found = crate::off_thread(move || look(&mounts, denied)).await?;
            let from = masks.rules.len();
            masks.rules.extend(found.rules);
            masks.patterns.extend(found.patterns);
            masks
                .found
                .extend(found.found.into_iter().map(|found| MatchedPlace { which: found.which + from, ..found }));
        }
        masks.programs = self.0.rules.denied_programs(caller, RUNNING);
        let mounts = Arc::clone(self.mounts());
        if masks.found.len() <= FOLDED_FROM {
            return masks.tidied(&mounts);
        }
        crate::off_thread(move || masks.tidied(&mounts)).await
    }

    /// What the runtime hides and lies beneath a mount.
    fn hidden(&self) -> Masks {
        use std::os::unix::fs::MetadataExt as _;
        let mut masks = Masks { rules: vec![None], patterns: vec![None], ..Masks::default() };
        for path in &self.settings().hidden {
            let Ok(real) = path.canonicalize() else { continue };
            let Ok(meta) = real.metadata() else { continue };
            for mount in self.mounts().mounts() {
                let Some(host) = mount.host_place() else { continue };
                let Ok(beneath) = real.strip_prefix(&host) else { continue };
                masks.found.push(MatchedPlace {
                    mount: mount.root().as_str().to_owned(),
                    beneath: beneath.to_owned(),
                    which: 0,
                    object: (meta.dev(), meta.ino()),
                });
            }
        }
        masks
    }
}

fn look(mounts: &MountTable, denied: Vec<DeniedPath>) -> Result<Masks, ToolFailure> {
    if let Some(DeniedPath { rule, .. }) = denied.iter().find(|denied| denied.what.is_none()) {
        return Err(ToolFailure::sandbox_unavailable(format!(
            "rule `{rule}` denies reading everything, so nothing is left that a command could run on"
        )));
    }
    let rules: Vec<_> = denied.iter().map(|denied| Some(denied.rule.to_string())).collect();
    let patterns: Vec<_> = denied.iter().map(|denied| denied.what.clone()).collect();
    let wanted = Patterns::of(denied);
    let found = matching::find(mounts, &wanted).map_err(|error| {
        let text = format!(
            "the files that rules deny reading cannot be found, so no command may run: {error}; name the folders they lie \
             in in the rules"
        );
        ToolFailure::sandbox_unavailable(text)
    })?;
    if let Some(root) = found.iter().find(|found| found.beneath.as_os_str().is_empty()) {
        let rule = rules.get(root.which).cloned().flatten().unwrap_or_default();
        let text = format!("rule `{rule}` denies reading all of {}, so no command can run there", root.mount);
        return Err(ToolFailure::sandbox_unavailable(text));
    }
    Ok(Masks { found, rules, patterns, ..Masks::default() })
}
