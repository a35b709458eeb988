//! Files that the file tools wrote, as they left them. Their content came from the model, or stood in a file that was open to
//! it, so no command and no call learns anything from them.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_base::Timestamp;

/// How many files are remembered. Only files whose names say that they hold secrets are, and a session writes few of them.
const MOST: usize = 4_096;

/// One file in one state: device, number, time of change, size. A write to it changes the time.
type Stamp = (u64, u64, i64, i64, u64);

/// What this process wrote.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites(Mutex<HashSet<Stamp>>);

fn stamp(meta: &Metadata) -> Stamp {
    (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.len())
}

impl OwnWrites {
    fn stamps(&self) -> MutexGuard<'_, HashSet<Stamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a file that was just written, if it still is what was written.
    pub(crate) fn add(&self, meta: &Metadata, size: u64, mtime: Timestamp) {
        let changed = Timestamp::from_micros(meta.mtime().saturating_mul(1_000_000) + meta.mtime_nsec() / 1_000);
        if meta.len() != size || changed != mtime {
            return;
        }
        let mut stamps = self.stamps();
        if stamps.len() >= MOST {
            stamps.clear();
        }
        stamps.insert(stamp(meta));
    }

    /// Whether a file is as this process left it.
    pub(crate) fn has(&self, meta: &Metadata) -> bool {
        self.stamps().contains(&stamp(meta))
    }
}
