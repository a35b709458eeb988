//! Files that hold secrets and that no rule opens: no command sees what is in one, whatever it was allowed to do. A person or
//! a rule can show one with `read`.
//!
//! One that git ignores looks empty, which does not disturb programs that only look for it. Any other is closed to commands
//! that may write: git would stage an empty file in its place, and the next `git stash` would put that over the real one.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use portcullis_contract::{Caller, Resource, ToolFailure};
use portcullis_sandbox::matching::{self, MatchedPlace, PlaceMatcher};
use portcullis_sandbox::tree::SightedEntry;
use portcullis_secret::file_names;

use super::fold::{PLACES_MAX, fold};
use super::view::{ViewPlaces, join};
use super::{Hand, Masks, Reach};
use crate::files::class;
use crate::files::ignored::IgnoreFiles;

/// Under these actions a command is said to read.
const READING: &[&str] = &["read"];

/// Paths that a walk is led to one by one. For more of them everything is walked.
const ANCHORS_MAX: usize = 64;

/// Files that one warning names.
const NAMED: usize = 8;

/// Sessions of which it is known what they were told.
const SESSIONS: usize = 1_024;

/// Files that hold secrets and are shown empty, or closed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EmptiedFiles {
    found: Vec<MatchedPlace>,
    /// What lies in folders that are shown empty as a whole.
    folded: Vec<MatchedPlace>,
}

/// What a find is: shown empty; closed because git's index names it; closed because git would add it.
const EMPTY: usize = 0;
const LISTED: usize = 1;
const NOT_IGNORED: usize = 2;

/// Exactly these paths, each as one of the three.
struct ExactPaths {
    paths: HashMap<String, usize>,
    anchors: Vec<String>,
}

impl ExactPaths {
    fn of(paths: HashMap<String, usize>) -> Self {
        let few = paths.len() <= ANCHORS_MAX;
        let anchors = if few { paths.keys().cloned().collect() } else { vec![String::new()] };
        Self { paths, anchors }
    }
}

impl PlaceMatcher for ExactPaths {
    fn is(&self, path: &str) -> Option<usize> {
        self.paths.get(path).copied()
    }

    fn anchors(&self) -> &[String] {
        &self.anchors
    }
}

impl EmptiedFiles {
    /// Places of a view that are shown empty.
    pub(super) fn empty<'s>(&'s self, shown: &'s ViewPlaces) -> impl Iterator<Item = PathBuf> + 's {
        self.places(shown, |which| which == EMPTY)
    }

    /// Places of a view that cannot be opened: git would commit an empty file.
    pub(super) fn closed<'s>(&'s self, shown: &'s ViewPlaces) -> impl Iterator<Item = PathBuf> + 's {
        self.places(shown, |which| which != EMPTY)
    }

    /// Places of a view that hold secrets only where they are, or only by the link that leads there: a command that moves a
    /// folder on the way to one would open it for the next command.
    pub(super) fn pinned<'s>(&'s self, shown: &'s ViewPlaces) -> impl Iterator<Item = PathBuf> + 's {
        let stays = |found: &&MatchedPlace| {
            let name = found.beneath.file_name().and_then(OsStr::to_str).unwrap_or_default();
            file_names::outlasts_renames(name)
        };
        let writable =
            |found: &&MatchedPlace| shown.mounts.iter().any(|mount| mount.root == found.mount && mount.writable);
        let found = self.found.iter().filter(writable).filter(move |found| !stays(found));
        found.flat_map(|found| shown.places_of(&found.mount, &found.beneath))
    }

    fn places<'s>(&'s self, shown: &'s ViewPlaces, which: fn(usize) -> bool) -> impl Iterator<Item = PathBuf> + 's {
        let found = self.found.iter().filter(move |found| which(found.which));
        found.flat_map(|found| shown.places_of(&found.mount, &found.beneath))
    }

    /// Virtual paths, sorted, each with what it is.
    fn paths(&self) -> Vec<(String, usize)> {
        let path =
            |found: &MatchedPlace| (join(found.mount.as_ref(), &found.beneath).display().to_string(), found.which);
        let mut all: Vec<(String, usize)> = self.found.iter().chain(&self.folded).map(path).collect();
        all.sort();
        all
    }
}

/// What a command is and what was decided about it.
pub(super) struct Shown<'d> {
    pub(super) reach: Reach,
    /// Secrets that it was allowed to see.
    pub(super) decided: &'d [Resource],
}

impl Hand {
    /// Whether a file holds secrets now that a command launched with `since` sees as it is, or sees empty although git would
    /// add it now: it must not go on with its old view.
    pub(crate) async fn secrets_changed(
        &self,
        caller: &Caller,
        masks: &Masks,
        since: &EmptiedFiles,
        sighted: Arc<Vec<SightedEntry>>,
    ) -> Result<bool, ToolFailure> {
        let now = self.emptied(caller, masks, Shown { reach: Reach::Writable, decided: &[] }, sighted).await?;
        let key = |one: &MatchedPlace| (one.mount.clone(), one.beneath.clone(), one.object);
        let known: HashMap<_, _> = since.found.iter().chain(&since.folded).map(|one| (key(one), one.which)).collect();
        let same = |one: &MatchedPlace| known.get(&key(one)).is_some_and(|which| *which != EMPTY || one.which == EMPTY);
        Ok(!now.found.iter().all(same))
    }

    /// What a command of this caller sees empty now, or cannot open, besides what rules close to it.
    pub(super) async fn emptied(
        &self,
        caller: &Caller,
        masks: &Masks,
        Shown { reach, decided }: Shown<'_>,
        sighted: Arc<Vec<SightedEntry>>,
    ) -> Result<EmptiedFiles, ToolFailure> {
        let decided: HashSet<String> =
            decided.iter().filter(|one| one.class.is_some()).map(|one| one.canonical.clone()).collect();
        // Most trees have none, and need no other thread to say so.
        let may_be =
            |one: &SightedEntry| one.beneath.file_name().and_then(OsStr::to_str).is_some_and(file_names::may_be_secret);
        if !sighted.iter().any(|one| !one.git && may_be(one)) {
            return Ok(EmptiedFiles::default());
        }
        let hand = self.clone();
        let open = self.0.rules.now(caller, READING, "/workspace");
        let closed: HashSet<PathBuf> = masks.closed().map(|(path, _)| path).collect();
        crate::off_thread(move || {
            let cannot = |error: std::io::Error| {
                let text = format!("the files that hold secrets cannot be found, so no command may run: {error}");
                ToolFailure::sandbox_unavailable(text)
            };
            let mut candidates = Vec::new();
            for one in sighted.iter().filter(|one| !one.git) {
                let Some(mount) = hand.mounts().mounts().find(|mount| mount.root().as_str() == one.mount) else {
                    continue;
                };
                candidates.extend(class::beginning_at(hand.mounts(), mount, &one.beneath));
            }
            candidates.retain(|one| {
                !decided.contains(&one.path) && !Path::new(&one.path).ancestors().any(|around| closed.contains(around))
            });
            let mut paths = HashMap::new();
            let mut ignores = IgnoreFiles::default();
            for secret in class::secrets_among(candidates, Some(&hand.0.own)) {
                let which = match reach {
                    _ if secret.listed => LISTED,
                    // What cannot write stages nothing.
                    Reach::ReadOnly => EMPTY,
                    Reach::Writable if secret.is_ignored(&mut ignores) => EMPTY,
                    Reach::Writable => NOT_IGNORED,
                };
                if !open.may_show(&secret.path, secret.class) {
                    paths.insert(secret.path, which);
                }
            }
            if paths.is_empty() {
                return Ok(EmptiedFiles::default());
            }
            // Other names of the same files too.
            let mut found = matching::find(hand.mounts(), &ExactPaths::of(paths)).map_err(cannot)?;
            let folded = fold(&mut found, hand.mounts());
            // A folder is what the strictest in it is.
            let strict: HashMap<(&str, &Path), usize> = folded
                .iter()
                .filter(|one| one.which != EMPTY)
                .flat_map(|one| one.beneath.ancestors().map(|folder| ((one.mount.as_str(), folder), one.which)))
                .collect();
            for one in &mut found {
                one.which = strict.get(&(one.mount.as_str(), one.beneath.as_path())).copied().unwrap_or(one.which);
            }
            if found.len() > PLACES_MAX {
                return Err(ToolFailure::sandbox_unavailable(format!(
                    "{} files here look as if they held secrets, and at most {PLACES_MAX} can be kept from a command; \
                     write a rule that allows reading those that do not (`action = \"read\"`, `path = …`)",
                    found.len()
                )));
            }
            Ok(EmptiedFiles { found, folded })
        })
        .await
    }

    /// What a session has not been told yet of what it sees empty, in one sentence.
    pub(super) fn tell_emptied(&self, caller: &Caller, emptied: &EmptiedFiles, full: bool) -> Option<String> {
        let mut sessions = self.0.told_empty.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS && !sessions.contains_key(&caller.session_id) {
            sessions.clear();
        }
        let told = sessions.entry(caller.session_id).or_default();
        let new: Vec<(String, usize)> =
            emptied.paths().into_iter().filter(|(path, _)| told.insert(path.clone())).collect();
        let (first, _) = new.first()?;
        let rule = format!(
            "a rule (action = \"read\", path = \"{first}\", effect = \"allow\") opens it to `read` and to commands"
        );
        if !full {
            let all: Vec<&String> = new.iter().map(|(path, _)| path).collect();
            return Some(format!(
                "files that hold secrets can be read by commands at this isolation level: {}; only level `full` keeps them \
                 from commands",
                listed(&all)
            ));
        }
        let of = |kind: usize| new.iter().filter(|(_, which)| *which == kind).map(|(path, _)| path).collect::<Vec<_>>();
        let mut told = Vec::new();
        for (paths, how) in [
            (of(EMPTY), "shown empty to commands"),
            (of(LISTED), "closed to commands (git has other content under this name)"),
            (
                of(NOT_IGNORED),
                "closed to commands (git does not ignore it and would commit it empty; once .gitignore names it, commands \
                 see it empty)",
            ),
        ] {
            match paths.len() {
                0 => {}
                1 => told.push(format!("1 file that may hold secrets is {how}: {}", listed(&paths))),
                many => told.push(format!("{many} files that may hold secrets are {how}: {}", listed(&paths))),
            }
        }
        Some(format!("{}; `read` asks before it shows one, and {rule}", told.join("; ")))
    }
}

/// The first of them, and how many more there are.
fn listed(paths: &[&String]) -> String {
    let mut text = paths.iter().take(NAMED).map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text
}
