//! What exists in the mounts of the places that run later (`policy::places`), and what of them appears.
//!
//! What exists is read-only for commands. What does not exist yet cannot be kept away by a mount, and neither can a link be
//! kept from being replaced; both are looked for after a command, and again when a shell ends, and told to the person.
//! Where a link leads to is guarded in its own place, whichever part of the way is the link.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_contract::{ToolContext, ToolFailure};
use portcullis_event::fold::RUNS_LATER;
use portcullis_policy::places::{self, LaterPlace, PLACES, PlaceKind};
use portcullis_sandbox::hand::{Guard, OnUnheld};
use portcullis_sandbox::host_way::{HostWay, MountSpot, host_way};
use portcullis_sandbox::tree::{Object, SightedEntry, object_at};
use portcullis_sandbox::{Kind, MountTable};

use super::view::{ViewPlaces, join};
use super::{Hand, git};

/// Folders that package managers and compilers fill. Nobody works in them, and what they hold is made anew often: only
/// repositories count there, which editors find by themselves.
const FILLED: &[&str] = &["node_modules", "site-packages", "vendor", "target", ".venv", "venv", ".tox"];

/// Guards of one view. Each is a mount, and a launch with more would take seconds.
const GUARDS_MAX: usize = 500;

/// Settings that are named in one warning.
const NOT_FOLLOWED_SHOWN: usize = 3;

/// Where something stands: the virtual path of its mount, and the way from there.
pub(super) type MountedPath = (String, PathBuf);

/// The places that run later and exist, at one moment.
#[derive(Debug, Default)]
pub(crate) struct LaterPlaces {
    found: HashMap<MountedPath, ExistingPlace>,
    /// Where nothing stands yet to which a link or a setting leads.
    unmade: HashMap<MountedPath, &'static LaterPlace>,
    /// How many were not looked for, because there are too many.
    over: usize,
    /// Settings of git that may run more than their text tells.
    not_followed: BTreeSet<String>,
}

/// A place that runs later and exists.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExistingPlace {
    /// Another one at the same place is new.
    object: Object,
    /// Not a git folder as a whole: git writes in it, so only what decides in it is guarded.
    guarded: bool,
    place: &'static LaterPlace,
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
    pub(crate) async fn sighted(&self) -> Result<Arc<Vec<SightedEntry>>, ToolFailure> {
        let hand = self.clone();
        let looked = crate::off_thread(move || hand.0.tree.look(hand.mounts())).await;
        looked.map(Arc::new).map_err(|error| {
            let text = format!("the files that must be kept from commands cannot be found, so none may run: {error}");
            ToolFailure::sandbox_unavailable(text)
        })
    }

    /// What of it runs later.
    pub(super) fn later(&self, sighted: &[SightedEntry]) -> LaterPlaces {
        let settings = self.settings();
        let homes = settings.homes.iter().chain(settings.host.as_ref().map(|host| &host.home));
        LaterPlaces::of(self.mounts(), homes.cloned().collect(), sighted)
    }

    /// What of the tree as it is now runs later; `None` if it cannot be listed.
    pub(crate) fn later_now(&self) -> Option<LaterPlaces> {
        self.0.tree.look(self.mounts()).ok().map(|sighted| self.later(&sighted))
    }

    /// Whether there is a place that a command launched with `since` could change.
    pub(crate) fn places_changed(&self, since: &LaterPlaces, sighted: &[SightedEntry]) -> bool {
        self.later(sighted).new_since(since).next().is_some()
    }

    /// What is there now and was not at the time of `before`, by virtual paths, outermost first. What cannot be looked at
    /// is told by the next command, which does not start then.
    pub(crate) async fn appeared_since(&self, before: &LaterPlaces) -> (Arc<LaterPlaces>, Vec<PathBuf>) {
        let Ok(sighted) = self.sighted().await else { return (Arc::default(), Vec::new()) };
        let now = Arc::new(self.later(&sighted));
        let mut paths: Vec<PathBuf> =
            now.new_since(before).map(|(mount, beneath)| join(mount.as_ref(), beneath)).collect();
        outermost(&mut paths);
        (now, paths)
    }
}

/// Sorted, each once, and nothing that lies in another one.
pub(crate) fn outermost(paths: &mut Vec<PathBuf>) {
    paths.sort();
    paths.dedup_by(|one, above| one.starts_with(above));
}

impl LaterPlaces {
    pub(super) fn of(table: &MountTable, homes: Vec<PathBuf>, sighted: &[SightedEntry]) -> Self {
        let mut gather = Gather { table, homes, later: Self::default(), git: git::VisitedConfig::default() };
        for mount in table.mounts() {
            let here: Vec<&SightedEntry> = sighted.iter().filter(|one| one.mount == mount.root().as_str()).collect();
            let roots: HashSet<&Path> = here
                .iter()
                .filter(|one| one.beneath.ends_with(".git"))
                .filter_map(|one| one.beneath.parent())
                .collect();
            for one in &here {
                gather.take(&MountSpot { mount, beneath: one.beneath.clone() }, one, &roots);
            }
        }
        gather.later
    }

    fn new_since<'l>(&'l self, before: &'l Self) -> impl Iterator<Item = &'l MountedPath> {
        self.found.iter().filter(|(at, found)| before.found.get(*at) != Some(*found)).map(|(at, _)| at)
    }

    /// What a path is by what exists, or by a setting or a link that leads to it; also if it lies in such a folder.
    pub(crate) fn place_at(&self, mount: &str, beneath: &Path) -> Option<&'static LaterPlace> {
        beneath.ancestors().filter(|part| !part.as_os_str().is_empty()).find_map(|part| {
            let at = (mount.to_owned(), part.to_owned());
            let found = self.found.get(&at).filter(|found| found.guarded).map(|found| found.place);
            found.or_else(|| self.unmade.get(&at).copied())
        })
    }

    /// What a person is told of settings that cannot be followed wholly.
    pub(super) fn not_followed(&self) -> Option<String> {
        let shown: Vec<&str> = self.not_followed.iter().map(String::as_str).take(NOT_FOLLOWED_SHOWN).collect();
        let more = self.not_followed.len().checked_sub(shown.len()).filter(|more| *more > 0);
        (!shown.is_empty()).then(|| {
            format!(
                "a setting of git cannot be followed wholly before git runs it: {}{}; every file and folder that it names is \
                 read-only for commands, and what else it may run is not",
                shown.join(", "),
                more.map(|more| format!(" and {more} more")).unwrap_or_default()
            )
        })
    }

    /// The guards of a view, and how many there would be too many.
    pub(super) fn guards(&self, shown: &ViewPlaces) -> (Vec<Guard>, usize) {
        // A mount cannot stand on a link. Where it leads to is here as well.
        let stands = |(at, found): &(&MountedPath, &ExistingPlace)| {
            found.guarded && found.object.kind != Kind::Other && !at.1.as_os_str().is_empty()
        };
        let writable = |at: &MountedPath| shown.mounts.iter().any(|mount| mount.root == at.0 && mount.writable);
        let mut found: Vec<&MountedPath> =
            self.found.iter().filter(stands).map(|(at, _)| at).filter(|at| writable(at)).collect();
        found.sort_by_cached_key(|at| (at.1.components().count(), *at));
        let over = found.len().saturating_sub(GUARDS_MAX) + self.over;
        found.truncate(GUARDS_MAX);
        let guards = found.into_iter().flat_map(|(mount, beneath)| {
            shown.places_of(mount, beneath).map(|place| Guard { place, hold: OnUnheld::IfPossible })
        });
        (guards.collect(), over)
    }
}

#[cfg(test)]
impl LaterPlaces {
    pub(super) fn guards_exactly(&self, beneath: &str) -> bool {
        let at = ("/workspace".to_owned(), PathBuf::from(beneath));
        self.found.get(&at).is_some_and(|found| found.guarded && found.object.kind != Kind::Other)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over > 0
    }
}

/// What a look has found so far.
pub(super) struct Gather<'t> {
    pub(super) table: &'t MountTable,
    /// Folders that `~` may stand for.
    pub(super) homes: Vec<PathBuf>,
    later: LaterPlaces,
    pub(super) git: git::VisitedConfig,
}

impl<'t> Gather<'t> {
    fn take(&mut self, spot: &MountSpot<'t>, one: &SightedEntry, roots: &HashSet<&Path>) {
        if one.git {
            git::repository(self, spot, None);
            return;
        }
        if one.has_unseen {
            git::unseen(self, spot);
            return;
        }
        let name = one.beneath.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let folder = one.beneath.parent().unwrap_or(Path::new(""));
        let filled = folder.iter().any(|part| FILLED.iter().any(|filled| part == *filled));
        let from = MountSpot { mount: spot.mount, beneath: folder.to_owned() };
        for place in PLACES.iter().filter(|place| place.is_kept() && place.is_begun_by(name)) {
            let way = || join(Path::new(name), &place.names().skip(1).collect::<PathBuf>());
            match place.kind {
                // The rest of a repository is found with it.
                PlaceKind::Git if place.pattern == ".git" && one.kind != Kind::Directory => {
                    git::linked(self, &from, Path::new(name));
                }
                PlaceKind::Git => {}
                PlaceKind::Ci if filled || !(folder.as_os_str().is_empty() || roots.contains(folder)) => {}
                _ if filled => {}
                _ => {
                    let end = self.follow(&from, &way(), place);
                    match (place.pattern, end) {
                        (".gitconfig" | ".config/git/", Some(end)) => git::of_a_home(self, &end, &from),
                        (".husky/" | ".githooks/" | ".git-hooks/", Some(end)) => git::hooks(self, &end, place),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Guards what a path leads to, and watches each link on the way. Gives what stands at its end.
    pub(super) fn follow(
        &mut self,
        from: &MountSpot<'t>,
        name: &Path,
        place: &'static LaterPlace,
    ) -> Option<MountSpot<'t>> {
        let end = self.expect(from, name, place)?;
        self.add(&end, place, true);
        Some(end)
    }

    /// The same without a guard.
    pub(super) fn expect(
        &mut self,
        from: &MountSpot<'t>,
        name: &Path,
        place: &'static LaterPlace,
    ) -> Option<MountSpot<'t>> {
        let (end, would_be) = self.go(from, name, place);
        if let Some(spot) = would_be {
            self.later.unmade.insert(at(&spot), place);
        }
        end
    }

    /// The same where nothing is expected if nothing is there.
    pub(super) fn watch(
        &mut self,
        from: &MountSpot<'t>,
        name: &Path,
        place: &'static LaterPlace,
    ) -> Option<MountSpot<'t>> {
        self.go(from, name, place).0
    }

    fn go(
        &mut self,
        from: &MountSpot<'t>,
        name: &Path,
        place: &'static LaterPlace,
    ) -> (Option<MountSpot<'t>>, Option<MountSpot<'t>>) {
        let HostWay { links, end, would_be } = host_way(self.table, from, name);
        for link in &links {
            self.add(link, place, false);
        }
        // What the runtime hides is closed to commands, whatever leads there.
        let by_its_name = links.is_empty() && place.kind != PlaceKind::Git;
        (end.filter(|end| by_its_name || !self.is_hidden(end)), would_be)
    }

    fn is_hidden(&self, spot: &MountSpot<'t>) -> bool {
        let path = join(spot.mount.root().as_str().as_ref(), &spot.beneath);
        path.to_str().is_some_and(|path| self.table.resolve(path).is_err())
    }

    pub(super) fn add(&mut self, spot: &MountSpot<'t>, place: &'static LaterPlace, guarded: bool) {
        let Some(object) = object_at(spot.mount, &spot.beneath) else { return };
        let found = self.later.found.entry(at(spot)).or_insert(ExistingPlace { object, guarded, place });
        if guarded && !found.guarded {
            (found.guarded, found.place) = (true, place);
        }
    }

    /// It becomes known only when git runs a setting which files that one runs.
    pub(super) fn cannot_follow(&mut self, setting: String) {
        self.later.not_followed.insert(setting);
    }

    /// Something could not be looked at, or not be kept.
    pub(super) fn over(&mut self) {
        self.later.over += 1;
    }
}

pub(super) fn at(spot: &MountSpot<'_>) -> MountedPath {
    (spot.mount.root().as_str().to_owned(), spot.beneath.clone())
}

/// Places that a command made, with what runs them.
pub(crate) fn tell_appeared(context: &ToolContext, appeared: &[PathBuf]) {
    appeared_words(appeared).into_iter().for_each(|words| context.warn(words));
}

/// So many places are told each in a sentence of its own. Of more, those of one kind share a sentence, so that many of one
/// kind leave room for another.
const EACH: usize = 12;
/// A kind with no more than this shares none even then.
const OF_ONE_KIND: usize = 4;
/// Places that a shared sentence names; the others are counted.
const NAMED: usize = 16;

/// The same as sentences.
pub(crate) fn appeared_words(appeared: &[PathBuf]) -> Vec<String> {
    let mut kinds: Vec<(Option<&LaterPlace>, Vec<&PathBuf>)> = Vec::new();
    for place in appeared {
        let kind = places::runs_later(&place.to_string_lossy());
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, all)) => all.push(place),
            None => kinds.push((kind, vec![place])),
        }
    }
    let sentence = |(kind, all): (Option<&LaterPlace>, &[&PathBuf])| {
        let why = kind.map(|place| format!(" ({})", place.why)).unwrap_or_default();
        let named: Vec<String> = all.iter().take(NAMED).map(|place| place.display().to_string()).collect();
        let (more, were) = match all.len() - named.len() {
            0 if named.len() == 1 => (String::new(), "was not there before this command, or was another file or link"),
            0 => (String::new(), "were not there before this command, or were other files or links"),
            more => (format!(" and {more} more"), "were not there before this command, or were other files or links"),
        };
        let (names, it) = (named.join(", "), if all.len() == 1 { ("it", "uses it") } else { ("them", "uses them") });
        format!(
            "{RUNS_LATER}{names}{more} {were}{why}; look at {} before anything outside of the sandbox {}",
            it.0, it.1
        )
    };
    let each = |(kind, all): (Option<&'static LaterPlace>, Vec<&PathBuf>)| -> Vec<String> {
        if appeared.len() > EACH && all.len() > OF_ONE_KIND {
            vec![sentence((kind, &all))]
        } else {
            all.iter().map(|place| sentence((kind, std::slice::from_ref(place)))).collect()
        }
    };
    kinds.into_iter().flat_map(each).collect()
}
