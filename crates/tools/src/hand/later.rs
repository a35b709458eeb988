//! What exists in the mounts of the places that run later (`policy::places`), and what of them appears.
//!
//! What exists is read-only for commands. What does not exist yet cannot be kept away by a mount; it is looked for after
//! a command, and again when a shell ends, and told to the person.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_contract::{ToolContext, ToolFailure};
use portcullis_policy::places::{self, PLACES, PlaceKind};
use portcullis_sandbox::hand::{Guard, Hold};
use portcullis_sandbox::tree::{Sighted, kind_at};
use portcullis_sandbox::{Kind, Mount};

use super::view::{Shown, join};
use super::{Hand, git};

/// Folders that package managers and compilers fill. Nobody works in them, and what they hold is made anew often: only
/// repositories count there, which editors find by themselves.
const FILLED: &[&str] = &["node_modules", "site-packages", "vendor", "target", ".venv", "venv", ".tox"];

/// Guards of one view. Each is a mount, and a launch with more would take seconds.
const GUARDS_MAX: usize = 500;

/// The places that exist, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Later {
    found: Vec<Found>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    /// The virtual path of its mount.
    mount: String,
    beneath: PathBuf,
    /// Which object it is: another one at the same place is new.
    object: (u64, u64),
    kind: Kind,
    /// A git folder as a whole: git writes in it, so only what decides in it is guarded.
    whole_repository: bool,
}

/// Whether a name begins a place, for the index of the tree.
pub(super) fn begins(name: &OsStr) -> bool {
    name.to_str().is_some_and(places::may_begin)
}

impl Hand {
    /// Lists the tree before a command needs it, while its call is still decided and written down. What it finds is only
    /// kept: the command looks again.
    pub(crate) fn warm(&self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && self.0.tree.is_cold()
        {
            let hand = self.clone();
            runtime.spawn_blocking(move || drop(hand.0.tree.look(hand.mounts())));
        }
    }

    /// Where the names stand that need a guard or hold secrets.
    ///
    /// # Errors
    /// If a mount cannot be listed.
    pub(crate) async fn sighted(&self) -> Result<Arc<Vec<Sighted>>, ToolFailure> {
        let hand = self.clone();
        let looked = crate::off_thread(move || hand.0.tree.look(hand.mounts())).await;
        looked.map(Arc::new).map_err(|error| {
            let text = format!("the files that must be kept from commands cannot be found, so none may run: {error}");
            ToolFailure::sandbox_unavailable(text)
        })
    }

    /// What of it runs later.
    pub(super) fn later(&self, sighted: &[Sighted]) -> Later {
        let mut later = Later::default();
        for mount in self.mounts().mounts() {
            let here: Vec<&Sighted> = sighted.iter().filter(|one| one.mount == mount.root().as_str()).collect();
            for one in &here {
                later.take(mount, one, &here);
            }
        }
        self.follow_links(&mut later);
        later
    }

    /// Where a place is a link, what it leads to decides.
    fn follow_links(&self, later: &mut Later) {
        let links: Vec<PathBuf> = later
            .found
            .iter()
            .filter(|one| one.kind == Kind::Other)
            .map(|one| join(one.mount.as_ref(), &one.beneath))
            .collect();
        for link in links {
            let Some(target) = link.to_str().and_then(|link| self.mounts().resolve(link).ok()) else { continue };
            let beneath: PathBuf = target.names().iter().map(|name| name.as_str()).collect();
            later.add(target.mount(), &beneath, false);
        }
    }

    /// Whether there is a place that a command launched with `since` could change.
    pub(crate) fn places_changed(&self, since: &Later, sighted: &[Sighted]) -> bool {
        !self.later(sighted).found.iter().all(|one| since.found.contains(one))
    }

    /// What is there now and was not at the time of `before`, by virtual paths, outermost first. What cannot be looked at
    /// is told by the next command, which does not start then.
    pub(crate) async fn appeared_since(&self, before: &Later) -> (Arc<Later>, Vec<PathBuf>) {
        let Ok(sighted) = self.sighted().await else { return (Arc::default(), Vec::new()) };
        let now = Arc::new(self.later(&sighted));
        let new = now.found.iter().filter(|one| !before.found.contains(one));
        let mut paths: Vec<PathBuf> = new.map(|one| join(one.mount.as_ref(), &one.beneath)).collect();
        outermost(&mut paths);
        (now, paths)
    }
}

/// Sorted, each once, and nothing that lies in another one.
pub(crate) fn outermost(paths: &mut Vec<PathBuf>) {
    paths.sort();
    paths.dedup_by(|one, above| one.starts_with(above));
}

impl Later {
    fn take(&mut self, mount: &Mount, one: &Sighted, here: &[&Sighted]) {
        if one.git {
            self.add(mount, &one.beneath, true);
            for beneath in git::deciding(mount, &one.beneath) {
                self.add(mount, &beneath, false);
            }
            return;
        }
        let name = one.beneath.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let folder = one.beneath.parent().unwrap_or(Path::new(""));
        let is_root = || folder.as_os_str().is_empty() || here.iter().any(|other| other.beneath == folder.join(".git"));
        let filled = folder.iter().any(|part| FILLED.iter().any(|filled| part == *filled));
        for place in PLACES.iter().filter(|place| place.is_kept() && place.is_begun_by(name)) {
            let counts = match place.kind {
                // The rest of a repository is found with it.
                PlaceKind::Git => place.pattern == ".git" && one.kind != Kind::Directory,
                PlaceKind::Ci => !filled && is_root(),
                _ => !filled,
            };
            if counts {
                let rest: PathBuf = place.names().skip(1).collect();
                self.add(mount, &join(&one.beneath, &rest), false);
                if place.pattern == ".git" {
                    git::linked(mount, &one.beneath).iter().for_each(|beneath| self.add(mount, beneath, false));
                }
            }
        }
    }

    fn add(&mut self, mount: &Mount, beneath: &Path, whole_repository: bool) {
        let Some((kind, object)) = kind_at(mount, beneath) else { return };
        let found = Found {
            mount: mount.root().as_str().to_owned(),
            beneath: beneath.to_owned(),
            object,
            kind,
            whole_repository,
        };
        if !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    /// The guards of a view, and how many there would be too many.
    pub(super) fn guards(&self, shown: &Shown) -> (Vec<Guard>, usize) {
        let mut found: Vec<&Found> = self.found.iter().collect();
        // A mount cannot stand on a link. Where it leads to is guarded if that is a place itself.
        found.retain(|one| !one.whole_repository && one.kind != Kind::Other && !one.beneath.as_os_str().is_empty());
        found.sort_by_key(|one| one.beneath.components().count());
        let over = found.len().saturating_sub(GUARDS_MAX);
        found.truncate(GUARDS_MAX);
        let writable = |one: &Found| shown.mounts.iter().any(|mount| mount.root == one.mount && mount.writable);
        let guards = found.into_iter().filter(|one| writable(one)).flat_map(|one| {
            shown.places_of(&one.mount, &one.beneath).map(|place| Guard { place, hold: Hold::IfPossible })
        });
        (guards.collect(), over)
    }
}

/// Places that a command made, with what runs them.
pub(crate) fn tell_appeared(context: &ToolContext, appeared: &[PathBuf]) {
    appeared.iter().for_each(|place| context.warn(appeared_words(place)));
}

/// The same as a sentence.
pub(crate) fn appeared_words(place: &Path) -> String {
    let why = places::runs_later(&place.to_string_lossy()).map(|place| format!(" ({})", place.why));
    format!(
        "{} was not there before this command and is now{}; look at it before anything outside of the sandbox uses it",
        place.display(),
        why.unwrap_or_default()
    )
}
