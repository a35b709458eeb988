//! Our own folders and files inside a writable mount: what configures, trusts or records the next start.
//!
//! What is there is masked, and the folders on the way to it are pinned ([`masks`](super::masks)). Neither helps where
//! nothing stands, and a mount cannot stand on a link. There the folder that holds the name becomes read-only, so that
//! nobody can make or replace it.

use std::path::{Path, PathBuf};

use portcullis_contract::ToolFailure;
use portcullis_sandbox::hand::{Guard, OnUnheld, Step, can_change, way_to};

use super::Hand;
use super::view::{ViewPlaces, join};

/// The folders of this view that must be read-only.
///
/// # Errors
/// If such a folder is the mount itself: then no command can run there.
pub(super) fn held(hand: &Hand, shown: &ViewPlaces) -> Result<Vec<Guard>, ToolFailure> {
    let ours = &hand.settings().ours;
    let masked: Vec<PathBuf> = ours.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut guards: Vec<Guard> = Vec::new();
    for path in ours {
        for (name, folder) in unheld(&way_to(path), &masked) {
            for mount in shown.mounts.iter().filter(|mount| mount.writable) {
                let Some(host) = &mount.host else { continue };
                let Ok(rest) = folder.strip_prefix(host) else { continue };
                if rest.as_os_str().is_empty() {
                    if !can_change(&folder) {
                        continue;
                    }
                    return Err(nothing_to_hold(&join(mount.root.as_ref(), name.strip_prefix(host).unwrap_or(&name))));
                }
                for place in mount.places.iter().map(|place| join(place, rest)) {
                    if !guards.iter().any(|guard| guard.place == place) {
                        guards.push(Guard { place, hold: OnUnheld::Must });
                    }
                }
            }
        }
    }
    Ok(guards)
}

/// The names on a way that no mask and no pin can hold, each with the folder it is in.
fn unheld(way: &[Step], masked: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
    let links = way.iter().filter(|step| step.is_link).map(|step| &step.place);
    let missing = way.iter().map(|step| &step.place).find(|place| place.symlink_metadata().is_err());
    let in_sight = |folder: &Path| !masked.iter().any(|masked| folder.starts_with(masked));
    let names = links.chain(missing).filter_map(|name| Some((name.clone(), name.parent()?.to_owned())));
    names.filter(|(_, folder)| in_sight(folder)).collect()
}

fn nothing_to_hold(place: &Path) -> ToolFailure {
    ToolFailure::sandbox_unavailable(format!(
        "{} is missing, or is a link, on the way to what configures or records the runtime, and a command could put a \
         configuration of its own there; start again so that it is made, put a folder in the place of the link, or work in \
         another folder",
        place.display()
    ))
}
