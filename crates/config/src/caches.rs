//! What toolchains fetched and built for each workspace, in the data folder: how much that takes, and whose it is.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::Home;

/// The bytes of one block, in which the kernel counts what a file takes.
const BLOCK: u64 = 512;

/// What the owner of a folder needs to empty it.
const OWNERS_ALL: u32 = 0o700;

/// The caches of one workspace.
pub struct Cache {
    pub folder: PathBuf,
    /// Whose they are; a workspace of which no session tells cannot be named.
    pub workspace: Option<PathBuf>,
    /// What they take on the disk.
    pub bytes: u64,
}

impl Cache {
    /// Whether its workspace is known and no longer there, so that nothing uses it again.
    pub fn is_left_over(&self) -> bool {
        self.workspace.as_ref().is_some_and(|workspace| matches!(workspace.try_exists(), Ok(false)))
    }
}

/// Removes the caches of one workspace, if there are any. Some toolchains leave folders that not even their owner may
/// change.
pub fn remove(folder: &Path) -> io::Result<()> {
    let mut left = vec![folder.to_owned()];
    while let Some(place) = left.pop() {
        let facts = match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        if !facts.is_dir() {
            continue;
        }
        let mode = facts.permissions().mode();
        if mode & OWNERS_ALL != OWNERS_ALL {
            fs::set_permissions(&place, fs::Permissions::from_mode(mode | OWNERS_ALL))?;
        }
        for entry in fs::read_dir(&place)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
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
