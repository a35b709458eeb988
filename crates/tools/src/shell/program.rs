//! Which program a name leads to: links are followed as a command would come upon them, so that a rule about a program
//! also means its other names.

use std::path::{Component, Path, PathBuf};

use portcullis_command::is_of_a_process;
use portcullis_sandbox::MountTable;

use crate::hand::SYSTEM_FOLDERS;

/// Links that are followed, as many as matter and few enough to cost nothing.
const LINKS_MAX: usize = 8;

/// Links among the folders of one path, as many as the kernel follows.
const FOLDER_LINKS_MAX: usize = 40;

/// Programs that do what the name says which they are called by: each of many names is a program of its own.
const MANY_IN_ONE: &[&str] = &[
    "busybox",
    "toybox",
    "coreutils",
    "rustup",
    "systemctl",
    "ccache",
    "distcc",
    "icecc",
    "xtables-nft-multi",
    "xtables-legacy-multi",
    "kmod",
    "mtools",
    "lvm",
    "mise",
    "asdf",
    "volta",
    "volta-shim",
    "pyenv",
    "rbenv",
    "proto-shim",
    "libtree",
    "nix",
    "multitool",
];

/// The names of the links and of the file that `program` leads to, seen from `cwd`, other than the one that is written. `None`
/// if the way leads to what a process has open, which becomes known only when the line runs.
pub(super) fn names(mounts: &MountTable, cwd: &str, program: &str) -> Option<Vec<String>> {
    let base = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut at = if program.contains('/') {
        Path::new(cwd).join(program)
    } else {
        let found = SYSTEM_FOLDERS.iter().map(|folder| Path::new(folder).join(program));
        match found.into_iter().find(|place| place.symlink_metadata().is_ok()) {
            Some(place) => place,
            None => return Some(Vec::new()),
        }
    };
    let written = base(&at);
    let mut out: Vec<String> = Vec::new();
    for _ in 0..LINKS_MAX {
        at = in_its_folder(mounts, &at);
        if is_of_a_process(&at.to_string_lossy()) {
            return None;
        }
        let Ok(target) = std::fs::read_link(host_place(mounts, &at)) else { break };
        at = at.parent().unwrap_or(Path::new("/")).join(target);
        let Some(name) = base(&at) else { break };
        if MANY_IN_ONE.contains(&name.as_str()) {
            break;
        }
        if Some(&name) != written.as_ref() && !out.contains(&name) {
            out.push(name);
        }
    }
    Some(out)
}

/// The same place with the links of its folder followed, as a command comes upon them. Folders of the system lead nowhere
/// else, unless the way goes up again from one of them.
fn in_its_folder(mounts: &MountTable, place: &Path) -> PathBuf {
    let beneath = |place: &Path| mounts.mounts().any(|mount| place.starts_with(mount.root().as_str()));
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return lexical(place) };
    let goes_up = folder.components().any(|part| part == Component::ParentDir);
    if !beneath(folder) && !goes_up {
        return lexical(place);
    }
    let mut todo: Vec<PathBuf> = vec![folder.to_owned()];
    let (mut real, mut links) = (PathBuf::from("/"), 0);
    while let Some(path) = todo.pop() {
        let mut parts = path.components();
        let Some(part) = parts.next() else { continue };
        let rest = parts.as_path().to_owned();
        todo.push(rest);
        match part {
            Component::RootDir => real = PathBuf::from("/"),
            Component::ParentDir => _ = real.pop(),
            Component::CurDir | Component::Prefix(_) => {}
            Component::Normal(part) => {
                let inside = real.join(part);
                if is_of_a_process(&inside.to_string_lossy()) {
                    return inside.join(name);
                }
                match std::fs::read_link(host_place(mounts, &inside)) {
                    Ok(target) if links < FOLDER_LINKS_MAX && (goes_up || beneath(&inside)) => {
                        links += 1;
                        todo.push(target);
                    }
                    _ => real = inside,
                }
            }
        }
    }
    real.join(name)
}

/// Where a place of a command's view is on this machine.
fn host_place(mounts: &MountTable, place: &Path) -> PathBuf {
    let beneath = |mount: &portcullis_sandbox::Mount| {
        let rest = place.strip_prefix(mount.root().as_str()).ok()?;
        Some((mount.root().as_str().len(), mount.host_place()?.join(rest)))
    };
    let inner = mounts.mounts().filter_map(beneath).max_by_key(|(length, _)| *length);
    inner.map_or_else(|| place.to_owned(), |(_, host)| host)
}

/// A path without `.` and `..`, by its text alone.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}
