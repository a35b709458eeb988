//! Programs that rules deny as a whole, closed to commands where they lie: a script cannot run them, either.
//!
//! A mask stands on a file. Where the name is a link, its file is closed if that is the program's own; a file that bears
//! several names (busybox, rustup) stays, and the rule then holds for lines alone.

use std::path::{Path, PathBuf};

use portcullis_policy::DeniedProgram;
use portcullis_sandbox::hand::Source;

use super::masks::ClosedPlace;
use super::view::ViewPlaces;

/// Where programs of the system lie, and where a bare name is looked for.
pub(crate) const SYSTEM_FOLDERS: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games", "/usr/local/games"];

/// Programs that lie in a folder of their own as well.
const ALSO: &[(&str, &[&str])] = &[("git", &["/usr/lib/git-core", "/usr/libexec/git-core"])];

/// What runs every line. A rule that denies one of these denies the lines that call it.
const SHELLS: &[&str] = &["/bin/sh", "/bin/bash", "/usr/bin/env"];

/// Every place of the view that is closed because of these rules.
pub(super) fn closed(shown: &ViewPlaces, denied: &[DeniedProgram]) -> Vec<ClosedPlace> {
    let mut out: Vec<ClosedPlace> = Vec::new();
    let folders = folders(shown);
    for DeniedProgram { rule, program } in denied {
        let names: Vec<PathBuf> = if program.starts_with('/') {
            vec![PathBuf::from(program)]
        } else if program.contains('/') {
            Vec::new()
        } else {
            folders.iter().map(|folder| folder.join(program)).collect()
        };
        let also = ALSO.iter().filter(|(name, _)| name == program).flat_map(|(_, places)| *places).map(PathBuf::from);
        for place in
            names.iter().filter_map(|name| own_file(shown, name, &folders)).chain(also.filter(|place| is_plain(place)))
        {
            if !out.iter().any(|known| known.place == place || place.starts_with(&known.place)) {
                let path = place.display().to_string();
                out.push(ClosedPlace { place, path, rule: Some(rule.to_string()) });
            }
        }
    }
    out
}

/// The folders of the system and those that toolchains bring.
fn folders(shown: &ViewPlaces) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = SYSTEM_FOLDERS.iter().map(PathBuf::from).collect();
    let path = shown.toolchain_env.iter().find(|(name, _)| name == "PATH");
    let brought = path.iter().flat_map(|(_, value)| std::env::split_paths(value)).filter(|folder| folder.is_absolute());
    for folder in brought {
        if !out.contains(&folder) {
            out.push(folder);
        }
    }
    out
}

fn is_plain(place: &Path) -> bool {
    place.canonicalize().is_ok_and(|real| real == place)
}

/// The place in the view of the file that a name stands for, if the file is that program and no other.
fn own_file(shown: &ViewPlaces, name: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let real = on_host(shown, name).canonicalize().ok()?;
    let place = in_view(shown, &real)?;
    let is_shell = |shell: &&str| Path::new(shell).canonicalize().is_ok_and(|shell| shell == real);
    if !real.is_file() || SHELLS.iter().any(is_shell) {
        return None;
    }
    let shared = real.file_name() != name.file_name() && has_other_name(shown, &real, name, folders);
    (!shared).then_some(place)
}

/// Whether a link of another name leads to the file.
fn has_other_name(shown: &ViewPlaces, real: &Path, name: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().filter_map(|folder| std::fs::read_dir(on_host(shown, folder)).ok()).flatten().flatten().any(
        |entry| {
            let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            link && Some(entry.file_name().as_os_str()) != name.file_name()
                && entry.path().canonicalize().is_ok_and(|target| target == real)
        },
    )
}

/// Where a place of the view is on this machine.
fn on_host(shown: &ViewPlaces, place: &Path) -> PathBuf {
    let around = shown.binds.iter().filter_map(|bind| match &bind.source {
        Source::Path(source) => {
            Some((bind.place.components().count(), source.join(place.strip_prefix(&bind.place).ok()?)))
        }
        Source::Handle(_) => None,
    });
    around.max_by_key(|(depth, _)| *depth).map_or_else(|| place.to_owned(), |(_, host)| host)
}

/// Where a file of this machine is in the view; none if it is not there.
fn in_view(shown: &ViewPlaces, real: &Path) -> Option<PathBuf> {
    let around = shown.binds.iter().filter_map(|bind| match &bind.source {
        Source::Path(source) => {
            let source = source.canonicalize().ok()?;
            Some((source.components().count(), bind.place.join(real.strip_prefix(&source).ok()?)))
        }
        Source::Handle(_) => None,
    });
    let system = ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|folder| real.starts_with(folder));
    around.max_by_key(|(depth, _)| *depth).map(|(_, place)| place).or_else(|| system.then(|| real.to_owned()))
}
