//! What of a repository decides what git runs: hooks, configuration, and the files that say where both are read.
//!
//! `commondir` is one of the latter. Where there is one, git takes configuration and hooks from the folder it names, so
//! that a guard on `.git/config` alone keeps nothing. Submodules and linked working trees have such files of their own,
//! which the person's `git status` reads as well. Where `.git` is a file, it is that file which says where git looks.

use std::path::{Path, PathBuf};

/// In every git folder.
const NAMES: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Git folders of one repository that are looked at, and how deep: a submodule's name may hold slashes.
const FOLDERS_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// The places to guard, from the root of a mount that lies at `host`.
pub(super) fn deciding(host: Option<&Path>) -> Vec<PathBuf> {
    let git = PathBuf::from(".git");
    let is_folder = |host: &Path| host.join(&git).metadata().is_ok_and(|meta| meta.is_dir());
    if host.is_some_and(|host| !is_folder(host)) {
        return vec![git];
    }
    let mut folders = vec![git.clone()];
    if let Some(host) = host {
        inner(host, &git, DEPTH_MAX, &mut folders);
    }
    folders.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name))).collect()
}

/// The git folders of the submodules and working trees of the one at `folder`.
fn inner(host: &Path, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for part in ["modules", "worktrees"] {
        search(host, &folder.join(part), depth, found);
    }
}

fn search(host: &Path, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(host.join(folder)) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if depth == 0 || found.len() >= FOLDERS_MAX {
            return;
        }
        let inside = folder.join(entry.file_name());
        if host.join(&inside).join("HEAD").symlink_metadata().is_ok() {
            found.push(inside.clone());
            inner(host, &inside, depth - 1, found);
        } else {
            search(host, &inside, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h08_what_git_reads_is_found_in_submodules_and_working_trees() {
        let tree = tempfile::tempdir().expect("a folder");
        for head in
            [".git/HEAD", ".git/modules/lib/a/HEAD", ".git/modules/lib/a/modules/b/HEAD", ".git/worktrees/w/HEAD"]
        {
            let head = tree.path().join(head);
            std::fs::create_dir_all(head.parent().expect("a parent")).expect("folders");
            std::fs::write(head, "ref: refs/heads/x").expect("written");
        }
        let found = deciding(Some(tree.path()));
        for place in [
            ".git/hooks",
            ".git/config",
            ".git/commondir",
            ".git/config.worktree",
            ".git/modules/lib/a/config",
            ".git/modules/lib/a/modules/b/hooks",
            ".git/worktrees/w/commondir",
        ] {
            assert!(found.contains(&PathBuf::from(place)), "{place} is not in {found:?}");
        }
        assert_eq!(found.len(), 4 * NAMES.len());
        assert_eq!(deciding(None).len(), NAMES.len());
        std::fs::rename(tree.path().join(".git"), tree.path().join("away")).expect("renamed");
        assert_eq!(deciding(Some(tree.path())), [PathBuf::from(".git")], "what is not there is looked for");
        std::fs::write(tree.path().join(".git"), "gitdir: away").expect("written");
        assert_eq!(deciding(Some(tree.path())), [PathBuf::from(".git")]);
    }
}
