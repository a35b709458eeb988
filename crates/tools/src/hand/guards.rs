//! What a command must leave as it is inside a writable mount: what would run, or decide, outside of the hand later
//! (agent-runtime 10.1).

use std::path::{Path, PathBuf};

use portcullis_sandbox::hand::{Bind, BindAccess, Guard, OnUnheld, Source};

use super::Hand;
use super::view::{ViewPlaces, join};

/// Beneath every writable mount: what Portcullis reads. What else runs later is found by [`later`](super::later).
const ALWAYS: &[&str] = &[".portcullis", ".portcullis-runtime"];

/// Beneath a home folder: what a person's next shell, login or connection runs.
const AT_HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".config/autostart",
    ".gitconfig",
    ".ssh",
    ".local/bin",
    "bin",
];

/// What is guarded in this view. Where a level cannot hold it the command runs all the same, and says so: project rules
/// need a person's trust anew when they change, and hooks are a person's to look at.
pub(super) fn of(hand: &Hand, shown: &ViewPlaces) -> Vec<Guard> {
    let settings = hand.settings();
    let homes = || settings.homes.iter().chain(settings.host.as_ref().map(|host| &host.home));
    let mut guards = Vec::new();
    for mount in shown.mounts.iter().filter(|mount| mount.writable) {
        let mut beneath: Vec<PathBuf> = ALWAYS.iter().map(PathBuf::from).collect();
        // Every home in the mount, which may itself be one.
        for home in homes().filter_map(|home| home.strip_prefix(mount.host.as_ref()?).ok()) {
            beneath.extend(AT_HOME.iter().map(|name| home.join(name)));
        }
        beneath.sort();
        beneath.dedup();
        // What is hidden and not there yet: no mask can stand where nothing is.
        let unmade = settings.hidden.iter().filter(|path| path.symlink_metadata().is_err());
        beneath.extend(unmade.filter_map(|path| {
            Some(path.strip_prefix(mount.host.as_ref()?).ok()?.to_owned()).filter(|rest| !rest.as_os_str().is_empty())
        }));
        for rest in beneath.iter().filter(|rest| is_plain(mount.host.as_deref(), rest)) {
            let places = mount.places.iter().map(|place| join(place, rest));
            guards.extend(places.map(|place| Guard { place, hold: OnUnheld::IfPossible }));
        }
    }
    guards
}

/// Folders with something guarded in them: a mount stands on each, so that it cannot be moved away and made anew.
pub(super) fn held_in_place(shown: &ViewPlaces) -> Vec<Bind> {
    let mut binds = Vec::new();
    for mount in shown.mounts.iter().filter(|mount| mount.writable) {
        let Some(host) = &mount.host else { continue };
        let rest = Path::new(".git");
        let folder = host.join(rest);
        if folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            let places = mount.places.iter().map(|place| join(place, rest));
            binds.extend(places.map(|place| Bind {
                source: Source::Path(folder.clone()),
                place,
                access: BindAccess::ReadWrite,
                optional: true,
            }));
        }
    }
    binds
}

/// A link on the way is nothing that a mount could stand on; what it leads to is guarded under its own name, or is
/// somewhere else.
fn is_plain(host: Option<&Path>, rest: &Path) -> bool {
    let Some(host) = host else { return true };
    let links = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    !rest.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| links(&host.join(part)))
}
