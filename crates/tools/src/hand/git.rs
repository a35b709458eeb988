//! What of a repository decides what git runs: hooks, configuration, and the files that say where both are read.
//!
//! `commondir` is one of the latter. Where there is one, git takes configuration and hooks from the folder it names, so
//! that a guard on `.git/config` alone keeps nothing. Submodules and linked working trees have such files of their own,
//! which the person's `git status` reads as well. Where `.git` is a file, it is that file which says where git looks. What
//! the settings name is in [`git_config`](super::git_config).

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use portcullis_policy::places::LaterPlace;
use portcullis_sandbox::host_way::MountSpot;
use portcullis_sandbox::tree::kind_at;
use portcullis_sandbox::{Kind, VirtualPath, read_small_beneath};

use super::git_command::SettingCommand;
use super::git_config::{self, Setting, SettingValue};
use super::later_places::{Gather, MountedPath, at};
use super::view::join;
use crate::command::matched;

/// In every git folder.
const NAMES: &[&str] = &["hooks", "config", "config.worktree", "commondir", "info/attributes"];

/// Git folders that are looked at, and folders in which they are searched. There cannot be more guards than the first.
const FOLDERS_MAX: usize = 1_000;
const SEARCHED_MAX: usize = 20_000;

/// Bytes of a configuration that are looked at. Real ones have a few hundred.
const CONFIG_BYTES: u64 = 1 << 20;

/// Bytes of a file that names a folder.
const NAME_BYTES: u64 = 64 << 10;

/// Files of settings within each other: git goes no deeper.
const INCLUDES_MAX: usize = 10;

/// Paths that settings name, of all repositories.
const NAMED_MAX: usize = 20_000;

/// Folders in which the names of one setting are looked for.
const FOLDERS_OF_A_SETTING: usize = 32;

/// Folders and settings of git that one look has visited.
#[derive(Default)]
pub(super) struct VisitedConfig {
    folders: HashSet<(MountedPath, Option<MountedPath>)>,
    settings: HashSet<(MountedPath, MountedPath, Option<MountedPath>)>,
    searched: usize,
    named: usize,
}

/// The place with this pattern. Every pattern that this file names is in the list, which its tests prove.
fn place(pattern: &str) -> Option<&'static LaterPlace> {
    LaterPlace::by_pattern(pattern)
}

/// What decides in the git folder at `folder`, and in those of its submodules and working trees. `tree` is the working tree
/// whose `.git` leads there.
pub(super) fn repository<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>, tree: Option<&MountSpot<'t>>) {
    let mut todo = vec![(folder.clone(), tree.cloned())];
    while let Some((folder, tree)) = todo.pop() {
        if !gather.git.folders.insert((at(&folder), tree.as_ref().map(at))) {
            continue;
        }
        if gather.git.folders.len() > FOLDERS_MAX {
            gather.over();
            continue;
        }
        todo.extend(git_folder(gather, &folder, tree.as_ref()));
        todo.extend(inner(gather, &folder).into_iter().map(|inner| (inner, None)));
    }
}

/// What decides in one git folder. Gives the folder that `commondir` names, and the working tree in which its settings hold.
fn git_folder<'t>(
    gather: &mut Gather<'t>,
    folder: &MountSpot<'t>,
    tree: Option<&MountSpot<'t>>,
) -> Option<(MountSpot<'t>, Option<MountSpot<'t>>)> {
    gather.add(folder, place(".git")?, false);
    let mut trees: Vec<MountSpot<'t>> = tree.cloned().into_iter().collect();
    trees.extend(above(folder).filter(|_| folder.beneath.ends_with(".git")));
    // In the folder of a linked working tree, `gitdir` names the `.git` of that tree.
    trees.extend(named_folder(gather, folder, "gitdir").and_then(|git| above(&git)));
    trees.extend(linked_trees(gather, folder));
    trees.push(folder.clone());
    for name in NAMES {
        let Some(place) = in_git_folder(name) else { continue };
        let Some(end) = gather.follow(folder, Path::new(name), place) else { continue };
        match *name {
            "hooks" => hooks(gather, &end, place),
            "config" | "config.worktree" => Settings { folder, trees: trees.clone() }.file(gather, &end, 0),
            _ => {}
        }
    }
    named_folder(gather, folder, "commondir").map(|common| (common, trees.into_iter().next()))
}

/// A folder in which nobody looked: a repository may lie in it, so it is reported when it appears.
pub(super) fn unseen<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>) {
    gather.over();
    place(".git").into_iter().for_each(|place| gather.add(folder, place, false));
}

fn in_git_folder(name: &str) -> Option<&'static LaterPlace> {
    place(&format!(".git/{name}")).or_else(|| place(&format!(".git/{name}/")))
}

/// What `.git` leads to where it is no folder.
pub(super) fn linked<'t>(gather: &mut Gather<'t>, tree: &MountSpot<'t>, name: &Path) {
    let Some(place) = place(".git") else { return };
    let Some(end) = gather.watch(tree, name, place) else { return };
    match kind_at(end.mount, &end.beneath).map(|(kind, _)| kind) {
        Some(Kind::Directory) => repository(gather, &end, Some(tree)),
        Some(kind) => {
            gather.add(&end, place, true);
            if kind == Kind::File
                && let Some(text) = read_small_beneath(end.mount.dir(), &end.beneath, NAME_BYTES)
                && let Some(folder) = text.strip_prefix(b"gitdir:").map(name_in)
                && let Some(from) = above(&end)
                && let Some(folder) = gather.expect(&from, &folder, place)
            {
                repository(gather, &folder, Some(tree));
            }
        }
        None => {}
    }
}

/// The settings of a person whose home lies in the mounts: a file, or the folder that holds it.
pub(super) fn of_a_home<'t>(gather: &mut Gather<'t>, end: &MountSpot<'t>, home: &MountSpot<'t>) {
    let settings = Settings { folder: home, trees: vec![home.clone()] };
    match kind_at(end.mount, &end.beneath).map(|(kind, _)| kind) {
        Some(Kind::Directory) => {
            let file = place(".config/git/").and_then(|place| gather.follow(end, Path::new("config"), place));
            file.into_iter().for_each(|file| settings.file(gather, &file, 0));
        }
        _ => settings.file(gather, end, 0),
    }
}

/// What the links in a folder of hooks lead to.
pub(super) fn hooks<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>, place: &'static LaterPlace) {
    let Ok(entries) = folder.mount.dir().read_dir(&folder.beneath) else { return };
    let links = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let names: Vec<OsString> = links.map(|entry| entry.file_name()).collect();
    for name in names {
        run(gather, folder, Path::new(&name), place);
    }
}

/// Guards a file that something runs. A folder of that name is none.
fn run<'t>(gather: &mut Gather<'t>, from: &MountSpot<'t>, name: &Path, place: &'static LaterPlace) {
    // What has no slash in it is looked for in the folders of programs, or is a word like any other.
    let is_path = name.components().count() > 1;
    let end = if is_path { gather.expect(from, name, place) } else { gather.watch(from, name, place) };
    if let Some(end) = end
        && kind_at(end.mount, &end.beneath).is_some_and(|(kind, _)| kind == Kind::File)
    {
        gather.add(&end, place, true);
    }
}

fn above<'t>(spot: &MountSpot<'t>) -> Option<MountSpot<'t>> {
    Some(MountSpot { mount: spot.mount, beneath: spot.beneath.parent()?.to_owned() })
}

fn name_in(text: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(text.trim_ascii().to_owned()))
}

/// What a file in a git folder names.
fn named_folder<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>, file: &str) -> Option<MountSpot<'t>> {
    let place = place(".git/commondir")?;
    let file = gather.watch(folder, Path::new(file), place)?;
    let text = read_small_beneath(file.mount.dir(), &file.beneath, NAME_BYTES)?;
    let name = name_in(&text);
    if name.as_os_str().is_empty() {
        return None;
    }
    // Where it does not exist yet, whatever is made there decides.
    gather.expect(folder, &name, place)
}

/// The working trees that are linked to a repository: its settings hold in them too.
fn linked_trees<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>) -> Vec<MountSpot<'t>> {
    let folders = folders_in(&MountSpot { mount: folder.mount, beneath: folder.beneath.join("worktrees") });
    let mut trees = Vec::new();
    for folder in folders.iter().take(FOLDERS_MAX) {
        trees.extend(named_folder(gather, folder, "gitdir").and_then(|git| above(&git)));
    }
    trees
}

/// The git folders of the submodules and working trees of the one at `folder`. A submodule's name may hold slashes.
fn inner<'t>(gather: &mut Gather<'t>, folder: &MountSpot<'t>) -> Vec<MountSpot<'t>> {
    let within = |name| MountSpot { mount: folder.mount, beneath: folder.beneath.join(name) };
    let mut todo: Vec<MountSpot<'t>> = ["modules", "worktrees"].map(within).to_vec();
    let mut found = Vec::new();
    while let Some(folder) = todo.pop() {
        gather.git.searched += 1;
        if gather.git.searched > SEARCHED_MAX {
            gather.over();
            break;
        }
        for inside in folders_in(&folder) {
            let is_git = kind_at(inside.mount, &inside.beneath.join("HEAD")).is_some();
            if is_git { found.push(inside) } else { todo.push(inside) }
        }
    }
    found
}

/// The folders in a folder. A link is nothing that git makes there.
fn folders_in<'t>(folder: &MountSpot<'t>) -> Vec<MountSpot<'t>> {
    if kind_at(folder.mount, &folder.beneath).is_none_or(|(kind, _)| kind != Kind::Directory) {
        return Vec::new();
    }
    let Ok(entries) = folder.mount.dir().read_dir(&folder.beneath) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| MountSpot { mount: folder.mount, beneath: folder.beneath.join(entry.file_name()) }).collect()
}

/// Whose settings are read.
struct Settings<'s, 't> {
    folder: &'s MountSpot<'t>,
    /// Folders in which git runs what the settings name.
    trees: Vec<MountSpot<'t>>,
}

impl<'t> Settings<'_, 't> {
    /// Guards what the settings in a file name.
    fn file(&self, gather: &mut Gather<'t>, file: &MountSpot<'t>, depth: usize) {
        if depth > INCLUDES_MAX || !gather.git.settings.insert((at(file), at(self.folder), self.trees.first().map(at)))
        {
            return;
        }
        let Some(text) = read_small_beneath(file.mount.dir(), &file.beneath, CONFIG_BYTES) else {
            // A folder, a pipe or a device says nothing to git either.
            if kind_at(file.mount, &file.beneath).is_some_and(|(kind, _)| kind == Kind::File) {
                gather.over();
            }
            return;
        };
        let settings = git_config::parse(&text);
        let mut trees = self.trees.clone();
        for value in
            settings.iter().filter(|one| one.names() == SettingValue::Tree).filter_map(|one| one.value.as_ref())
        {
            let named = place(".git/config").and_then(|place| gather.watch(self.folder, &name_in(value), place));
            trees.extend(named);
        }
        let here = Settings { folder: self.folder, trees };
        for setting in &settings {
            if gather.git.named >= NAMED_MAX {
                gather.over();
                return;
            }
            here.setting(gather, setting, file, depth);
        }
    }

    fn setting(&self, gather: &mut Gather<'t>, setting: &Setting, file: &MountSpot<'t>, depth: usize) {
        let Some(value) = setting.value.as_ref().filter(|value| !value.is_empty()) else { return };
        let pattern = if setting.name == "hookspath" { ".git/hooks/" } else { ".git/config" };
        let (Some(place), Some(beside)) = (place(pattern), above(file)) else { return };
        match setting.names() {
            SettingValue::Settings => {
                for name in spelled(gather, value) {
                    let end = gather.follow(&beside, &name, place);
                    end.into_iter().for_each(|end| self.file(gather, &end, depth + 1));
                }
            }
            SettingValue::Path => {
                for name in spelled(gather, value) {
                    for tree in &self.trees {
                        self.path(gather, tree, &name, place);
                    }
                }
            }
            SettingValue::Command => self.command(gather, setting, value, file, place),
            SettingValue::Unknown => self.unknown(gather, value, place),
            SettingValue::Tree | SettingValue::Nothing => {}
        }
    }

    fn path(&self, gather: &mut Gather<'t>, tree: &MountSpot<'t>, name: &Path, place: &'static LaterPlace) {
        let Some(end) = gather.expect(tree, name, place) else { return };
        let around = |spot: &MountSpot<'t>| at(spot).0 == at(&end).0 && spot.beneath.starts_with(&end.beneath);
        // The working tree itself cannot be kept, or nobody could work.
        if around(self.folder) || self.trees.iter().any(around) {
            gather.over();
            return;
        }
        gather.add(&end, place, true);
        if kind_at(end.mount, &end.beneath).is_some_and(|(kind, _)| kind == Kind::Directory) {
            hooks(gather, &end, place);
        }
    }

    /// Guards what a setting that holds a command may run. Where its text does not tell that, every folder that it names is
    /// guarded as a whole, and the person is told.
    fn command(
        &self,
        gather: &mut Gather<'t>,
        setting: &Setting,
        value: &[u8],
        file: &MountSpot<'t>,
        place: &'static LaterPlace,
    ) {
        let command = SettingCommand::of(value, setting.section == "alias");
        let mut all = !command.cut;
        for tree in &self.trees {
            let (folders, every) = folders_of(gather, tree, &command, place);
            all &= every;
            for folder in &folders {
                files_of(gather, folder, &command, place, |_| true);
                let around = |spot: &MountSpot<'t>| {
                    spot.mount.root() == folder.mount.root() && spot.beneath.starts_with(&folder.beneath)
                };
                // The working tree itself cannot be kept, or nobody could work.
                if command.open && !around(self.folder) && !self.trees.iter().any(around) {
                    gather.add(folder, place, true);
                    hooks(gather, folder, place);
                }
            }
        }
        if command.open || !all {
            let file = join(file.mount.root().as_str().as_ref(), &file.beneath);
            gather.cannot_follow(format!("{}.{} of {}", setting.section, setting.name, file.display()));
        }
    }

    /// The same of a setting of which nobody knows whether it is a command: a word alone is none.
    fn unknown(&self, gather: &mut Gather<'t>, value: &[u8], place: &'static LaterPlace) {
        let command = SettingCommand::of(value, false);
        for tree in &self.trees {
            let (folders, _) = folders_of(gather, tree, &command, place);
            for folder in &folders {
                let is_top = at(folder) == at(tree);
                files_of(gather, folder, &command, place, |name| !is_top || name.contains(&b'/'));
            }
        }
    }
}

/// The top of a tree, and every folder to which names of a command lead from there, one after the other. Whether these are
/// all.
fn folders_of<'t>(
    gather: &mut Gather<'t>,
    tree: &MountSpot<'t>,
    command: &SettingCommand,
    place: &'static LaterPlace,
) -> (Vec<MountSpot<'t>>, bool) {
    let (mut folders, mut every) = (vec![tree.clone()], true);
    let mut next = 0;
    while let Some(from) = folders.get(next).cloned() {
        next += 1;
        for name in &command.names {
            for path in meant(gather, &from, name).unwrap_or_default() {
                let Some(end) = gather.watch(&from, &path, place) else { continue };
                let is_folder = kind_at(end.mount, &end.beneath).is_some_and(|(kind, _)| kind == Kind::Directory);
                if !is_folder || folders.iter().any(|known| at(known) == at(&end)) {
                    continue;
                }
                if folders.len() < FOLDERS_OF_A_SETTING { folders.push(end) } else { every = false }
            }
        }
    }
    (folders, every)
}

/// Guards the files of one folder that the names of a command lead to.
fn files_of<'t>(
    gather: &mut Gather<'t>,
    folder: &MountSpot<'t>,
    command: &SettingCommand,
    place: &'static LaterPlace,
    counts: impl Fn(&[u8]) -> bool,
) {
    for name in command.names.iter().filter(|name| counts(name)) {
        match meant(gather, folder, name) {
            Some(paths) => paths.iter().for_each(|path| run(gather, folder, path, place)),
            None => gather.over(),
        }
    }
    command.own_files.iter().for_each(|name| run(gather, folder, Path::new(name), place));
}

/// The paths that a name may mean, seen from a folder; `None` if a pattern matches too many. What is left of
/// `$(git rev-parse --show-toplevel)/x` or of `$x/y` begins with a slash and is meant from the folder as well.
fn meant(gather: &mut Gather<'_>, folder: &MountSpot<'_>, name: &[u8]) -> Option<Vec<PathBuf>> {
    gather.git.named += 1;
    if gather.git.named > NAMED_MAX {
        gather.over();
        return Some(Vec::new());
    }
    let mut paths = spelled(gather, name);
    let rest = paths.iter().filter_map(|path| path.strip_prefix("/").ok()).map(Path::to_owned);
    let rest: Vec<PathBuf> = rest.filter(|path| !path.as_os_str().is_empty()).collect();
    if let Ok(text) = std::str::from_utf8(name)
        && text.contains(['*', '?', '['])
        && let Some(cwd) = join(folder.mount.root().as_str().as_ref(), &folder.beneath).to_str()
        && let Ok(cwd) = VirtualPath::new(cwd)
    {
        paths.extend(matched(gather.table, &cwd, text)?.into_iter().map(PathBuf::from));
    }
    paths.extend(rest);
    Some(paths)
}

/// The paths that a text may mean: a home may stand in front.
fn spelled(gather: &mut Gather<'_>, value: &[u8]) -> Vec<PathBuf> {
    let plain = name_in(value);
    match plain.strip_prefix("~") {
        Ok(rest) => gather.homes.iter().map(|home| home.join(rest)).collect(),
        Err(_) => vec![plain],
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use portcullis_sandbox::tree::TreeIndex;
    use portcullis_sandbox::{MountTable, TreeOwner};

    use super::super::later_places::{LaterPlaces, begins};
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

    fn look(table: &MountTable, homes: &[PathBuf]) -> LaterPlaces {
        let sighted = TreeIndex::new(begins).look(table).expect("listed");
        LaterPlaces::of(table, homes.to_vec(), &sighted)
    }

    #[track_caller]
    fn guards(table: &MountTable, homes: &[PathBuf], wanted: &[&str]) {
        let later = look(table, homes);
        for place in wanted {
            assert!(later.guards_exactly(place), "{place} is not in {later:?}");
        }
    }

    const HEAD: &str = "ref: refs/heads/x";

    #[test]
    fn every_place_that_is_named_here_is_in_the_list() {
        for pattern in [".git", ".git/hooks/", ".git/config", ".git/commondir", ".config/git/"] {
            assert!(place(pattern).is_some(), "{pattern}");
        }
        assert!(NAMES.iter().all(|name| in_git_folder(name).is_some()));
    }

    #[test]
    fn h08_what_git_reads_is_found_in_submodules_and_working_trees() {
        let (_tree, table) = tree(&[
            (".git/HEAD", HEAD),
            (".git/hooks/x", ""),
            (".git/config", ""),
            (".git/commondir", ".."),
            (".git/config.worktree", ""),
            (".git/info/attributes", ""),
            (".git/modules/lib/a/HEAD", HEAD),
            (".git/modules/lib/a/config", ""),
            (".git/modules/lib/a/modules/b/HEAD", HEAD),
            (".git/modules/lib/a/modules/b/hooks/x", ""),
            (".git/modules/1/2/3/4/5/6/7/8/9/10/HEAD", HEAD),
            (".git/modules/1/2/3/4/5/6/7/8/9/10/config", ""),
            (".git/worktrees/w/HEAD", HEAD),
            (".git/worktrees/w/commondir", "../.."),
        ]);
        let wanted = [
            ".git/hooks",
            ".git/config",
            ".git/commondir",
            ".git/config.worktree",
            ".git/info/attributes",
            ".git/modules/lib/a/config",
            ".git/modules/lib/a/modules/b/hooks",
            ".git/modules/1/2/3/4/5/6/7/8/9/10/config",
            ".git/worktrees/w/commondir",
        ];
        guards(&table, &[], &wanted);
    }

    #[test]
    fn h08_folders_and_files_that_git_is_sent_to_decide_as_well() {
        let (outer, table) = tree(&[
            ("a/.git/commondir", "../../elsewhere\n"),
            ("elsewhere/config", "[core]\nsshCommand = tools/ssh.sh -v\n"),
            ("elsewhere/hooks/x", ""),
            ("a/tools/ssh.sh", ""),
            (
                "a/.git/config",
                "[core] hooksPath = scripts/hooks ; x\n[include]\n\tPath = ../local.conf\n[includeIf \"gitdir:/x\"]path=~/home.conf",
            ),
            ("a/scripts/hooks/x", ""),
            ("a/local.conf", "[include]\npath = further.conf\n"),
            ("a/further.conf", "[alias]\nx = !sh \"$(git rev-parse --show-toplevel)/my tools/x.sh\"\n[foo]bar=./odd"),
            ("a/odd", ""),
            ("home.conf", "[core]\nbare = false\n"),
            ("a/my tools/x.sh", ""),
            ("b/.git", "gitdir: ../real/b\n"),
            ("real/b/config", "[core]\nfsmonitor = ./watch.sh\n"),
            ("b/watch.sh", ""),
            ("c/.git", "gitdir: ../../outside\n"),
            (".git/modules/m/HEAD", HEAD),
            (".git/modules/m/config", "[core]\nworktree = ../../../m\nhooksPath = h\n"),
            ("m/h/x", ""),
            (".git/worktrees/w/HEAD", HEAD),
            (".git/config", "[core]\nattributesFile = attr\n"),
            ("w/attr", ""),
            ("w/.git", ""),
            ("far/HEAD", HEAD),
            ("far/commondir", "../common"),
            ("far/config.worktree", "[core]\nworktree = .\nfsmonitor = ./far.sh\n"),
            ("far/far.sh", ""),
            ("common/config", ""),
        ]);
        let home = outer.path().to_owned();
        std::fs::write(home.join(".git/worktrees/w/gitdir"), home.join("w/.git").display().to_string())
            .expect("written");
        std::fs::write(home.join("w/.git"), format!("gitdir: {}/.git/worktrees/w", home.display())).expect("written");
        let wanted = [
            "elsewhere/config",
            "elsewhere/hooks",
            "a/tools/ssh.sh",
            "a/scripts/hooks",
            "a/local.conf",
            "a/further.conf",
            "a/odd",
            "home.conf",
            "b/.git",
            "real/b/config",
            "b/watch.sh",
            "c/.git",
            "m/h",
            "w/attr",
            "far/commondir",
            "far/config.worktree",
            "far/far.sh",
            "common/config",
        ];
        guards(&table, &[home], &wanted);
    }

    #[test]
    fn a_pipe_or_a_device_in_place_of_a_git_file_is_not_waited_for() {
        let (outer, table) = tree(&[(".git/HEAD", HEAD), ("b/x", ""), ("c/.git/HEAD", HEAD)]);
        let at = |name: &str| outer.path().join(name);
        for pipe in [".git/commondir", "b/.git", ".git/config.worktree"] {
            let made = std::process::Command::new("mkfifo").arg(at(pipe)).status().expect("`mkfifo` runs");
            assert!(made.success());
        }
        symlink("/dev/zero", at(".git/config")).expect("a link");
        symlink("../../b/.git", at("c/.git/config")).expect("a link");
        look(&table, &[]);
    }

    #[test]
    fn a_folder_of_hooks_that_is_the_working_tree_is_told_and_the_tree_stays_open() {
        let (_outer, table) = tree(&[("a/.git/config", "[core]\nhooksPath = .\n"), ("a/x", "")]);
        let later = look(&table, &[]);
        assert!(!later.guards_exactly("a") && later.is_over());
    }
}
