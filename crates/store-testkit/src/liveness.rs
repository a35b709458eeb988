//! A liveness oracle that says what a test told it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use portcullis_base::WorkerId;
use portcullis_store::{LeaseOwner, Liveness, LivenessOracle};

/// Everyone is of unknown fate until a test decides it.
#[derive(Debug, Default)]
pub struct FixedLiveness {
    known: Mutex<HashMap<WorkerId, Liveness>>,
}

impl FixedLiveness {
    /// From now on this is what is known of the worker.
    pub fn set(&self, worker: WorkerId, liveness: Liveness) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(worker, liveness);
    }
}

impl LivenessOracle for FixedLiveness {
    fn liveness(&self, owner: &LeaseOwner) -> Liveness {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&owner.worker).copied().unwrap_or(Liveness::Unknown)
    }
}
