//! What of a repository decides what git runs: hooks, configuration, and the files that say where both are read.
//!
//! `commondir` is one of the latter. Where there is one, git takes configuration and hooks from the folder it names, so
//! that a guard on `.git/config` alone keeps nothing. Submodules and linked working trees have such files of their own,
//! which the person's `git status` reads as well. Where `.git` is a file, it is that file which says where git looks.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use portcullis_sandbox::tree::kind_at;
use portcullis_sandbox::{Kind, Mount};

/// In every git folder.
const NAMES: &[&str] = &["hooks", "config", "config.worktree", "commondir", "info/attributes"];

/// Settings of git whose value may be a file or folder of the working tree from which git runs something.
const SETTINGS: &[&str] = &["hookspath", "path", "fsmonitor", "attributesfile"];

/// Git folders of one repository that are looked at, and how deep: a submodule's name may hold slashes.
const FOLDERS_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// Bytes of a configuration that are looked at. Real ones have a few hundred.
const CONFIG_BYTES: u64 = 256 << 10;

/// The places to guard of the git folder that lies at `folder` beneath the mount, there or not.
pub(super) fn deciding(mount: &Mount, folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    inner(mount, folder, DEPTH_MAX, &mut folders);
    for at in 0..folders.len().min(FOLDERS_MAX) {
        let named = text(mount, &folders[at].join("commondir")).and_then(|name| within(&folders[at], name.trim()));
        folders.extend(named.filter(|named| !folders.contains(named)));
    }
    let mut places: Vec<PathBuf> =
        folders.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name))).collect();
    for folder in &folders {
        places.extend(named_by_settings(mount, folder));
    }
    places
}

/// The same of the folder that a `.git` file names, if that lies beneath the mount.
pub(super) fn linked(mount: &Mount, file: &Path) -> Vec<PathBuf> {
    let folder = text(mount, file).and_then(|text| {
        let name = text.strip_prefix("gitdir:")?.trim().to_owned();
        within(file.parent()?, &name)
    });
    folder.map(|folder| deciding(mount, &folder)).unwrap_or_default()
}

/// Files and folders of the tree that the configuration of a git folder names as what it runs.
fn named_by_settings(mount: &Mount, folder: &Path) -> Vec<PathBuf> {
    let Some(config) = text(mount, &folder.join("config")) else { return Vec::new() };
    let tree = folder.parent().unwrap_or(Path::new(""));
    let value = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let wanted = SETTINGS.iter().any(|setting| name.trim().eq_ignore_ascii_case(setting));
        wanted.then(|| value.trim().trim_matches('"').to_owned())
    };
    let named = config.lines().filter_map(value).filter(|value| !value.is_empty());
    named.flat_map(|value| [within(tree, &value), within(folder, &value)]).flatten().collect()
}

/// A path that is named from `folder`, beneath the mount; `None` if it leads out of it.
fn within(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut out: Vec<Component<'_>> = folder.components().collect();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(_) => out.push(part),
            Component::ParentDir => drop(out.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out.into_iter().collect::<PathBuf>()).filter(|path| !path.as_os_str().is_empty())
}

fn text(mount: &Mount, beneath: &Path) -> Option<String> {
    // A pipe would be waited for.
    kind_at(mount, beneath).filter(|(kind, _)| *kind == Kind::File)?;
    let mut text = String::new();
    mount.dir().open(beneath).ok()?.take(CONFIG_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The git folders of the submodules and working trees of the one at `folder`.
fn inner(mount: &Mount, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for part in ["modules", "worktrees"] {
        search(mount, &folder.join(part), depth, found);
    }
}

fn search(mount: &Mount, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // A link is nothing that git makes there.
    if kind_at(mount, folder).is_none_or(|(kind, _)| kind != Kind::Directory) {
        return;
    }
    let Ok(entries) = mount.dir().read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if depth == 0 || found.len() >= FOLDERS_MAX {
            return;
        }
        let inside = folder.join(entry.file_name());
        if kind_at(mount, &inside.join("HEAD")).is_some() {
            found.push(inside.clone());
            inner(mount, &inside, depth - 1, found);
        } else {
            search(mount, &inside, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_sandbox::{MountTable, TreeOwner};

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, MountTable) {
        let tree = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            let path = tree.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, content).expect("written");
        }
        let table = MountTable::workspace(tree.path(), TreeOwner::PersonsTree).expect("a mount");
        (tree, table)
    }

    fn found(table: &MountTable, look: fn(&Mount, &Path) -> Vec<PathBuf>, at: &str) -> Vec<PathBuf> {
        look(table.mounts().next().expect("a mount"), Path::new(at))
    }

    #[test]
    fn h08_what_git_reads_is_found_in_submodules_and_working_trees() {
        let head = "ref: refs/heads/x";
        let (_tree, table) = tree(&[
            (".git/HEAD", head),
            (".git/modules/lib/a/HEAD", head),
            (".git/modules/lib/a/modules/b/HEAD", head),
            (".git/worktrees/w/HEAD", head),
        ]);
        let found = found(&table, deciding, ".git");
        for place in [
            ".git/hooks",
            ".git/config",
            ".git/commondir",
            ".git/config.worktree",
            ".git/info/attributes",
            ".git/modules/lib/a/config",
            ".git/modules/lib/a/modules/b/hooks",
            ".git/worktrees/w/commondir",
        ] {
            assert!(found.contains(&PathBuf::from(place)), "{place} is not in {found:?}");
        }
        assert_eq!(found.len(), 4 * NAMES.len());
    }

    #[test]
    fn h08_folders_and_files_that_git_is_sent_to_decide_as_well() {
        let (_tree, table) = tree(&[
            ("a/.git/commondir", "../../elsewhere\n"),
            (
                "a/.git/config",
                "[core]\n\thooksPath = scripts/hooks\n\tbare = false\n[include]\n\tPath = ../local.conf\n",
            ),
            ("b/.git", "gitdir: ../real/b\n"),
            ("c/.git", "gitdir: ../../outside\n"),
        ]);
        let deciding = found(&table, deciding, "a/.git");
        for place in ["elsewhere/config", "elsewhere/hooks", "a/scripts/hooks", "a/local.conf"] {
            assert!(deciding.contains(&PathBuf::from(place)), "{place} is not in {deciding:?}");
        }
        assert!(found(&table, linked, "b/.git").contains(&PathBuf::from("real/b/config")));
        assert_eq!(found(&table, linked, "c/.git"), Vec::<PathBuf>::new());
    }
}
