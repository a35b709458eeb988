//! Files that a write replaced. The last one to close such a file pays for freeing its blocks, which can take longer
//! than the write itself, so they are closed a little later and several at a time, where nobody waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis_sandbox::ReplacedFile;

/// Long enough to gather what a busy session replaces, short enough that nobody misses the room.
const SOON: Duration = Duration::from_millis(10);

#[derive(Clone, Default)]
pub(crate) struct LetGo(Arc<Mutex<Vec<ReplacedFile>>>);

impl LetGo {
    /// Takes over what a write replaced.
    pub(crate) fn take(&self, replaced: ReplacedFile) {
        let alone = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.push(replaced);
            held.len() == 1
        };
        if alone {
            let held = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(SOON).await;
                let gone = std::mem::take(&mut *held.0.lock().unwrap_or_else(PoisonError::into_inner));
                drop(tokio::task::spawn_blocking(move || drop(gone)));
            });
        }
    }
}
