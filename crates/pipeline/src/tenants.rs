//! What a process keeps of each tenant, once for all scopes of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::TenantId;
use portcullis_store::Store;

use crate::asks::grants::GrantBook;
use crate::output::quota::Usage;

/// The remembered allows of a tenant and its use of the artifact quota.
#[derive(Clone)]
pub(crate) struct TenantBooks {
    pub(crate) grants: Arc<GrantBook>,
    pub(crate) usage: Arc<Usage>,
}

/// The books of every tenant that this process has served.
pub(crate) struct Tenants {
    artifact_quota: u64,
    known: Mutex<HashMap<TenantId, TenantBooks>>,
}

impl Tenants {
    /// `artifact_quota` holds for each tenant.
    pub(crate) fn new(artifact_quota: u64) -> Self {
        Self { artifact_quota, known: Mutex::default() }
    }

    pub(crate) fn books(&self, store: &Arc<dyn Store>, tenant: TenantId) -> TenantBooks {
        let fresh = || TenantBooks {
            grants: Arc::new(GrantBook::new(Arc::clone(store), tenant)),
            usage: Usage::new(self.artifact_quota),
        };
        // A map is whole between two of its changes.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(tenant).or_insert_with(fresh).clone()
    }
}
