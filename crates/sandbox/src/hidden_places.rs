//! What no session sees, wherever it lies: the store, its keys, a person's rules.
//!
//! A folder that is there is known as an object, so a rename or another name does not show it. What is not there yet, and
//! a file, which an editor replaces when it saves, are known by their place as well: what stands there is hidden, and
//! nothing may be made there. The same holds for a folder beneath a mount, because its owner may remove it and make it
//! anew.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

use crate::handle::{Identity, kind_of};
use crate::{FileError, Kind, Mount, VirtualPath};

/// Host folders that no walk enters and files that nothing opens.
#[derive(Clone, Default)]
pub(crate) struct HiddenPlaces {
    objects: Arc<[Identity]>,
    places: Arc<[PathBuf]>,
}

impl HiddenPlaces {
    /// The same and these. `mounts` are the host places of the mounts.
    pub(crate) fn and<'p>(&self, paths: impl IntoIterator<Item = &'p Path>, mounts: &[PathBuf]) -> Self {
        let (mut objects, mut places) = (self.objects.to_vec(), self.places.to_vec());
        for path in paths {
            let found = rustix::fs::stat(path).ok();
            objects.extend(found.as_ref().map(Identity::of));
            let beneath = || path.canonicalize().is_ok_and(|real| mounts.iter().any(|host| real.starts_with(host)));
            if found.is_none_or(|stat| kind_of(&stat) != Kind::Directory) || beneath() {
                // Without a working directory a relative path leads nowhere, now and later.
                places.extend(std::path::absolute(path));
            }
        }
        // A hidden folder keeps what is in it; each place costs a look at every step of a walk.
        places.retain(|place| !place.ancestors().skip(1).filter_map(there).any(|above| objects.contains(&above)));
        Self { objects: objects.into(), places: places.into() }
    }

    /// Refuses an object that is hidden. `from` is the last place that can be seen.
    pub(crate) fn check(&self, found: Identity, from: &VirtualPath) -> Result<(), FileError> {
        if self.contains(found) { Err(escape(from)) } else { Ok(()) }
    }

    /// Whether this object is hidden.
    pub(crate) fn contains(&self, found: Identity) -> bool {
        self.objects.contains(&found) || self.places.iter().any(|place| there(place) == Some(found))
    }

    /// Whether nothing is.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.places.is_empty()
    }

    /// Refuses to make `names`, of which none stands in `dir` yet, if a hidden place is on the way. In any case of the
    /// letters, as for [`Mount::names_config`]. A caller that makes something asks [`HiddenPlaces::check`] about it
    /// afterwards: a link may lead here from the hidden place.
    pub(crate) fn check_new<'n>(
        &self,
        dir: &Dir,
        names: impl Iterator<Item = &'n str> + Clone,
        from: &VirtualPath,
    ) -> Result<(), FileError> {
        if self.places.is_empty() {
            return Ok(());
        }
        let here = Identity::of_dir(dir).map_err(|e| FileError::io(from, e))?;
        for place in &*self.places {
            let Some(above) = place.ancestors().find(|above| there(above).is_some()) else { continue };
            let Ok(rest) = place.strip_prefix(above) else { continue };
            let mut names = names.clone();
            let mut on_the_way = rest.iter().map(|part| part.to_str().zip(names.next()));
            if there(above) == Some(here) && on_the_way.all(|pair| pair.is_some_and(|(a, b)| a.eq_ignore_ascii_case(b)))
            {
                return Err(escape(from));
            }
        }
        Ok(())
    }

    /// [`HiddenPlaces::check`] of an opened directory; asks nothing of the kernel while nothing is hidden.
    pub(crate) fn check_dir(&self, dir: &Dir, from: &VirtualPath) -> Result<(), FileError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check(Identity::of_dir(dir).map_err(|e| FileError::io(from, e))?, from)
    }

    /// The same for the directory of a mount: what lies in a hidden folder is as hidden as the folder.
    pub(crate) fn check_mount(&self, mount: &Mount) -> Result<(), FileError> {
        mount.itself_and_above().try_for_each(|found| self.check(found, mount.root()))
    }
}

impl fmt::Debug for HiddenPlaces {
    /// Without the places, which are host paths (H6).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hidden").field("objects", &self.objects).finish_non_exhaustive()
    }
}

/// What stands at a host path, links followed.
fn there(path: &Path) -> Option<Identity> {
    rustix::fs::stat(path).ok().map(|stat| Identity::of(&stat))
}

fn escape(from: &VirtualPath) -> FileError {
    FileError::PathEscape { at: Some(from.clone()) }
}
