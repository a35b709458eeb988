//! Which sessions a live `run` sees through. While it waits at an ask it holds no lease, so that anybody may answer; a lock on
//! a small file in the data folder says that somebody is there all the same. It ends with its process, however that ends.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use portcullis_base::SessionId;

use crate::Home;

/// This process sees a session through, for as long as this lives.
pub struct Followed {
    path: PathBuf,
    _locked: File,
}

fn path(home: &Home, session: SessionId) -> PathBuf {
    home.root().join("followed").join(session.to_string())
}

impl Followed {
    /// `None` where it cannot be said: then others say a line too much.
    pub fn begin(home: &Home, session: SessionId) -> Option<Self> {
        let path = path(home, session);
        fs::create_dir_all(path.parent()?).ok()?;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).ok()?;
        file.try_lock_shared().ok()?;
        Some(Self { path, _locked: file })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // One that stays is locked by nobody, and says nothing.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a live process sees it through.
pub fn is_followed(home: &Home, session: SessionId) -> bool {
    File::open(path(home, session)).is_ok_and(|file| file.try_lock().is_err())
}
