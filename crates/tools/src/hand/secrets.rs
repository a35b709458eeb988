//! Files that hold secrets and that no rule opens: every command sees them empty, whatever it was allowed to do. A person
//! or a rule can show one with `read`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use portcullis_contract::{Caller, Resource, ToolFailure};
use portcullis_policy::secrets;
use portcullis_sandbox::matching::{self, Found, Wanted};
use portcullis_sandbox::tree::Sighted;

use super::fold::{PLACES_MAX, fold};
use super::view::{Shown, join};
use super::{Hand, Masks};
use crate::files::class;

/// Under these actions a command is said to read.
const READING: &[&str] = &["read"];

/// Paths that a walk is led to one by one. For more of them everything is walked.
const ANCHORS_MAX: usize = 64;

/// Files that one warning names.
const NAMED: usize = 8;

/// Sessions of which it is known what they were told.
const SESSIONS: usize = 1_024;

/// What is shown empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    found: Vec<Found>,
    /// What lies in folders that are shown empty as a whole.
    folded: Vec<Found>,
}

/// Exactly these paths.
struct Exactly {
    paths: HashSet<String>,
    anchors: Vec<String>,
}

impl Exactly {
    fn of(paths: HashSet<String>) -> Self {
        let few = paths.len() <= ANCHORS_MAX;
        let anchors = if few { paths.iter().cloned().collect() } else { vec![String::new()] };
        Self { paths, anchors }
    }
}

impl Wanted for Exactly {
    fn is(&self, path: &str) -> Option<usize> {
        self.paths.contains(path).then_some(0)
    }

    fn anchors(&self) -> &[String] {
        &self.anchors
    }
}

impl Emptied {
    pub(super) fn places(&self, shown: &Shown) -> Vec<PathBuf> {
        self.found.iter().flat_map(|found| shown.places_of(&found.mount, &found.beneath)).collect()
    }

    /// Virtual paths, sorted.
    fn paths(&self) -> Vec<String> {
        let path = |found: &Found| join(found.mount.as_ref(), &found.beneath).display().to_string();
        let mut all: Vec<String> = self.found.iter().chain(&self.folded).map(path).collect();
        all.sort();
        all
    }
}

impl Hand {
    /// Whether a file holds secrets now that a command launched with `since` sees as it is: it must not go on with its old
    /// view.
    pub(crate) async fn secrets_changed(
        &self,
        caller: &Caller,
        masks: &Masks,
        since: &Emptied,
    ) -> Result<bool, ToolFailure> {
        let now = self.emptied(caller, masks, &[], self.sighted().await?).await?;
        let key = |one: &Found| (one.mount.clone(), one.beneath.clone(), one.object);
        let known: HashSet<_> = since.found.iter().chain(&since.folded).map(key).collect();
        Ok(!now.found.iter().all(|one| known.contains(&key(one))))
    }

    /// What a command of this caller sees empty now, besides what is closed to it.
    pub(super) async fn emptied(
        &self,
        caller: &Caller,
        masks: &Masks,
        decided: &[Resource],
        sighted: Arc<Vec<Sighted>>,
    ) -> Result<Emptied, ToolFailure> {
        let decided: HashSet<String> =
            decided.iter().filter(|one| one.class.is_some()).map(|one| one.canonical.clone()).collect();
        // Most trees have none, and need no other thread to say so.
        let may_be =
            |one: &Sighted| one.beneath.file_name().and_then(OsStr::to_str).is_some_and(secrets::may_be_secret);
        if !sighted.iter().any(|one| !one.git && may_be(one)) {
            return Ok(Emptied::default());
        }
        let hand = self.clone();
        let open = self.0.rules.now(caller, READING, "/workspace");
        let closed: HashSet<PathBuf> = masks.closed().map(|(path, _)| path).collect();
        crate::off_thread(move || {
            let cannot = |error: std::io::Error| {
                let text = format!("the files that hold secrets cannot be found, so no command may run: {error}");
                ToolFailure::sandbox_unavailable(text)
            };
            let mut paths = HashSet::new();
            for one in sighted.iter().filter(|one| !one.git) {
                let Some(mount) = hand.mounts().mounts().find(|mount| mount.root().as_str() == one.mount) else {
                    continue;
                };
                let names = class::beginning_at(mount, &one.beneath);
                for (path, class) in names {
                    let masked = Path::new(&path).ancestors().any(|around| closed.contains(around));
                    if !masked && !decided.contains(&path) && !open.may_show(&path, class) {
                        paths.insert(path);
                    }
                }
            }
            if paths.is_empty() {
                return Ok(Emptied::default());
            }
            // Other names of the same files too.
            let mut found = matching::find(hand.mounts(), &Exactly::of(paths)).map_err(cannot)?;
            let folded = fold(&mut found, hand.mounts());
            if found.len() > PLACES_MAX {
                return Err(ToolFailure::sandbox_unavailable(format!(
                    "{} files here look as if they held secrets, and at most {PLACES_MAX} can be kept from a command; \
                     write a rule that allows reading those that do not (`action = \"read\"`, `path = …`)",
                    found.len()
                )));
            }
            Ok(Emptied { found, folded })
        })
        .await
    }

    /// What a session has not been told yet of what it sees empty, in one sentence.
    pub(super) fn tell_emptied(&self, caller: &Caller, emptied: &Emptied, full: bool) -> Option<String> {
        let mut sessions = self.0.told_empty.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS && !sessions.contains_key(&caller.session_id) {
            sessions.clear();
        }
        let told = sessions.entry(caller.session_id).or_default();
        let new: Vec<String> = emptied.paths().into_iter().filter(|path| told.insert(path.clone())).collect();
        let first = new.first()?;
        let named = new.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match new.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = if new.len() == 1 {
            "1 file that holds secrets is".to_owned()
        } else {
            format!("{} files that hold secrets are", new.len())
        };
        if !full {
            return Some(format!(
                "files that hold secrets can be read by commands at this isolation level: {named}{more}; only level `full` \
                 shows them empty (`portcullis doctor` says what is missing for it)"
            ));
        }
        Some(format!(
            "{count} shown empty to commands: {named}{more}; `read` asks before it shows one, and a rule (action = \"read\", \
             path = \"{first}\", effect = \"allow\") opens it to both"
        ))
    }
}
