//! Thousands of places in a few folders become those folders: each place of a view is a mount, and a launch with very
//! many takes seconds.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portcullis_sandbox::MountTable;
use portcullis_sandbox::matching::MatchedPlace;

/// Places of one view and kind. Each is a mount at up to two places, and a kernel has 100,000 mounts for a command.
pub(super) const PLACES_MAX: usize = 20_000;

/// From so many places on, a folder of which everything is among them takes their place.
pub(super) const FOLDED_FROM: usize = 2_000;

/// Puts a folder in the place of what lies in it, where all of that is among `found`. Returns what went.
pub(super) fn fold(found: &mut Vec<MatchedPlace>, mounts: &MountTable) -> Vec<MatchedPlace> {
    let mut folded = Vec::new();
    while found.len() > FOLDED_FROM || !folded.is_empty() {
        let mut folders: HashMap<(&str, &Path), usize> = HashMap::new();
        for one in &*found {
            if let Some(folder) = one.beneath.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                *folders.entry((&one.mount, folder)).or_default() += 1;
            }
        }
        let whole: HashMap<(String, PathBuf), (u64, u64)> = folders
            .into_iter()
            .filter_map(|(at, count)| Some(((at.0.to_owned(), at.1.to_owned()), whole(mounts, at, count)?)))
            .collect();
        if whole.is_empty() {
            break;
        }
        let key = |one: &MatchedPlace| Some((one.mount.clone(), one.beneath.parent()?.to_owned()));
        let (inside, mut left): (Vec<MatchedPlace>, Vec<MatchedPlace>) =
            std::mem::take(found).into_iter().partition(|one| key(one).is_some_and(|at| whole.contains_key(&at)));
        let mut made: HashSet<(String, PathBuf)> = HashSet::new();
        for one in &inside {
            let Some(at) = key(one).filter(|at| made.insert(at.clone())) else { continue };
            let object = whole[&at];
            left.push(MatchedPlace { mount: at.0, beneath: at.1, which: one.which, object });
        }
        folded.extend(inside);
        *found = left;
    }
    folded
}

/// The folder itself, if it has no more entries than these. What appears there meanwhile goes with it.
fn whole(mounts: &MountTable, (mount, folder): (&str, &Path), entries: usize) -> Option<(u64, u64)> {
    let mount = mounts.mounts().find(|known| known.root().as_str() == mount)?;
    let place = mount.host_place()?.join(folder);
    let whole = entries > 1 && std::fs::read_dir(&place).ok()?.count() <= entries;
    whole.then(|| place.metadata().ok()).flatten().map(|meta| (meta.dev(), meta.ino()))
}
