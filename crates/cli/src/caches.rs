//! What toolchains fetched and built for each workspace, in the data folder: how much that takes, and whose it is.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::home::Home;

/// The bytes of one block, in which the kernel counts what a file takes.
const BLOCK: u64 = 512;

/// The caches of one workspace.
pub struct Cache {
    pub folder: PathBuf,
    /// Whose they are; a workspace of which no session tells cannot be named.
    pub workspace: Option<PathBuf>,
    /// What they take on the disk.
    pub bytes: u64,
}

/// Every one there is, largest first.
pub fn found(home: &Home, workspaces: &[PathBuf]) -> Vec<Cache> {
    let Ok(entries) = fs::read_dir(home.all_caches()) else { return Vec::new() };
    let cache = |folder: PathBuf| {
        let workspace = workspaces.iter().find(|workspace| home.caches(workspace) == folder).cloned();
        Cache { bytes: taken(&folder), workspace, folder }
    };
    let mut all: Vec<Cache> = entries.flatten().map(|entry| cache(entry.path())).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.folder.cmp(&b.folder)));
    all
}

/// What a folder takes with all that is in it; links are not followed, and what cannot be read counts nothing.
fn taken(folder: &Path) -> u64 {
    let (mut bytes, mut left) = (0, vec![folder.to_owned()]);
    while let Some(place) = left.pop() {
        let Ok(facts) = fs::symlink_metadata(&place) else { continue };
        bytes += facts.blocks() * BLOCK;
        if facts.is_dir()
            && let Ok(entries) = fs::read_dir(&place)
        {
            left.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
