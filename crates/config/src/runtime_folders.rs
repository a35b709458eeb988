//! What is ours on a machine: the folders that configure, trust or record Portcullis, and the homes in which another start
//! would look for them. No tool sees them, makes them or replaces them.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use portcullis_policy::EnterprisePolicy;

use crate::home::user_config;
use crate::settings::Settings;

/// Where a start without any variable or flag looks, in each home.
const IN_A_HOME: [&str; 2] = [".config/portcullis", ".local/share/portcullis"];

/// Where homes usually are.
const HOMES: &str = "/home";

/// A folder beside a home is one, too, if it has one of these.
const MARKS: [&str; 8] = [".config", ".local", ".cache", ".ssh", ".profile", ".bashrc", ".zshrc", ".bash_history"];

/// Accounts with these instead of a shell belong to services.
const NO_SHELL: [&str; 5] = ["nologin", "false", "sync", "shutdown", "halt"];

/// The configuration folder, if there is a place for one.
pub fn config_folder() -> Option<PathBuf> {
    user_config().and_then(|file| file.parent().map(Path::to_owned))
}

/// The folder of the organisation's file.
pub fn enterprise_folder() -> &'static Path {
    Path::new(EnterprisePolicy::PATH).parent().unwrap_or(Path::new("/"))
}

/// Every place of ours that a command in this workspace could come upon, there or not.
pub fn places(settings: &Settings, workspace: &Path) -> Vec<PathBuf> {
    let mut places = vec![settings.home.root().to_owned(), settings.artifacts.clone(), settings.database.clone()];
    places.extend(config_folder());
    places.extend(settings.user_file.clone());
    places.push(enterprise_folder().to_owned());
    places.extend(homes_in(workspace).iter().flat_map(|home| IN_A_HOME.map(|name| home.join(name))));
    places.sort();
    places.dedup();
    places
}

/// Home folders that are, or lie in, a workspace, links resolved: the user's own, those of accounts that somebody can log
/// in to, all in `/home`, and those beside the user's own.
pub fn homes_in(workspace: &Path) -> Vec<PathBuf> {
    let own = own_home();
    let mut found: Vec<PathBuf> = own.iter().cloned().collect();
    found.extend(accounts(&fs::read_to_string("/etc/passwd").unwrap_or_default()));
    // One that is the workspace itself may be any folder: from above it is guarded, from inside only an account tells.
    let is_above = |folder: &Path| folder.canonicalize().is_ok_and(|real| real.starts_with(workspace));
    if is_above(Path::new(HOMES)) {
        found.extend(folders_in(Path::new(HOMES)));
    }
    if let Some(beside) = own.as_deref().and_then(Path::parent).filter(|folder| folder.parent().is_some())
        && is_above(beside)
    {
        found.extend(folders_in(beside).filter(|folder| MARKS.iter().any(|name| folder.join(name).exists())));
    }
    let mut found: Vec<PathBuf> = found.iter().filter_map(|home| home.canonicalize().ok()).collect();
    found.retain(|home| home.starts_with(workspace));
    found.sort();
    found.dedup();
    found
}

/// What `HOME` says.
pub fn own_home() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Homes of the accounts that somebody can log in to, and of this process's own.
fn accounts(passwd: &str) -> Vec<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, uid, _, _, home, shell] = fields[..] else { return None };
        let (uid, home) = (uid.parse::<u32>().ok()?, PathBuf::from(home));
        let has_shell = !NO_SHELL.iter().any(|name| Path::new(shell).ends_with(name));
        let is_theirs = || home.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
        (home.is_absolute() && (uid == me || (has_shell && is_theirs()))).then_some(home)
    };
    passwd.lines().filter_map(account).collect()
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// Makes our folders that are not there, empty and for their owner alone, so that masks and pins have something to stand
/// on. Gives those in the workspace that cannot be made, with the reason: no command can make them either, because the
/// folder that would hold them is read-only in its view.
pub fn prepare(workspace: &Path) -> Vec<(PathBuf, io::Error)> {
    // The data folder is made by whoever opens the store.
    let own = config_folder().into_iter().map(|folder| (folder, 0o700));
    let homes = homes_in(workspace).into_iter().filter(|home| is_mine(home));
    let of_homes = homes.flat_map(|home| IN_A_HOME.map(|name| (home.join(name), 0o700)));
    // Everybody reads the organisation's file.
    let enterprise =
        Some(enterprise_folder()).filter(|folder| folder.starts_with(workspace) && is_mine(Path::new("/")));
    let of_all = enterprise.into_iter().map(|folder| (folder.to_owned(), 0o755));
    let made = own.chain(of_homes).chain(of_all).filter_map(|(folder, mode)| {
        let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&folder);
        Some((folder, made.err()?))
    });
    let is_inside =
        |folder: &Path| portcullis_sandbox::hand::way_to(folder).iter().any(|step| step.place.starts_with(workspace));
    made.filter(|(folder, _)| is_inside(folder)).collect()
}

/// A folder made in somebody else's home would be in its owner's way.
fn is_mine(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_services_have_no_home_to_guard_and_ones_own_always_has() {
        let me = rustix::process::geteuid().as_raw();
        let scratch = tempfile::tempdir().expect("a folder");
        let mine = scratch.path().display();
        let passwd = format!(
            "me:x:{me}:{me}::{mine}:/usr/sbin/nologin\n\
             service:x:{other}:1::{mine}:/usr/sbin/nologin\n\
             notowner:x:{other}:1::{mine}/x:/bin/sh\nbroken line\n",
            other = me + 1
        );
        assert_eq!(accounts(&passwd), [scratch.path()]);
    }
}
