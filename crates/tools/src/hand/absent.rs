//! Programs that a command surely did not find.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use portcullis_sandbox::hand::{Bind, BindAccess, Source};

use super::SYSTEM_FOLDERS;
use super::denial::VisiblePlaces;

/// Places of a view that are what they are on the host, and that no command can write.
pub(super) fn as_on_host(binds: &[Bind]) -> Vec<PathBuf> {
    let same = |bind: &&Bind| {
        bind.access == BindAccess::ReadOnly && matches!(&bind.source, Source::Path(source) if *source == bind.place)
    };
    binds.iter().filter(same).map(|bind| bind.place.clone()).collect()
}

impl VisiblePlaces {
    /// Whether no folder of this `PATH` has the program. A folder that a command could have filled may have it.
    pub(crate) fn surely_lack(&self, program: &str, path: &str) -> bool {
        let is_known = |folder: &Path| {
            SYSTEM_FOLDERS.iter().any(|system| folder == Path::new(system))
                || self.as_on_host.iter().any(|place| folder.starts_with(place))
        };
        let lacks = |folder: &Path| {
            folder.join(program).symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        !path.is_empty() && path.split(':').map(Path::new).all(|folder| is_known(folder) && lacks(folder))
    }
}
