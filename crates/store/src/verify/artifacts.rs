//! Every artifact that a row names is there and has the hash of its row.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use portcullis_base::{Digest, TenantId};

use super::LogFault;
use crate::{Artifacts, Store, StoreError};

/// Rows that are held at once.
const PAGE: usize = 512;

/// Hashes the bytes of every artifact of a tenant anew, the small ones in the store and the large ones beside it.
///
/// # Errors
/// If the store cannot be read at all. A lost or changed artifact is no error: it is among the faults.
pub async fn verify_artifacts(
    store: &dyn Store,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
) -> Result<Vec<LogFault>, StoreError> {
    let mut faults = Vec::new();
    let mut sound: HashSet<Digest> = HashSet::new();
    let mut after = None;
    loop {
        let page = store.artifacts(tenant, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(faults) };
        after = Some(last.artifact.id);
        for row in page {
            let sha256 = row.artifact.sha256;
            // Equal contents are kept once and hashed once; of what a policy took nothing is promised but the hash.
            if sound.contains(&sha256) || row.tombstone.is_some() {
                continue;
            }
            let why = match store.blob(tenant, sha256).await {
                Ok(Some(bytes)) if Digest::of(&bytes) == sha256 => None,
                Ok(Some(_)) | Err(StoreError::Corrupt(_)) => Some("its bytes have another hash"),
                Ok(None) => large(&artifacts, tenant, sha256).await,
                Err(error) => return Err(error),
            };
            match why {
                None => drop(sound.insert(sha256)),
                Some(why) => {
                    faults.push(LogFault::Artifact { session: row.session, artifact: row.artifact.id, why });
                }
            }
        }
    }
}

/// What is wrong with a large one; opening it hashes it.
async fn large(artifacts: &Arc<dyn Artifacts>, tenant: TenantId, sha256: Digest) -> Option<&'static str> {
    let artifacts = Arc::clone(artifacts);
    let opened = tokio::task::spawn_blocking(move || artifacts.open(tenant, sha256).map(drop)).await;
    match opened.unwrap_or_else(|_| Err(io::Error::other("the thread that read it is gone"))) {
        Ok(()) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("its bytes are gone"),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Some("its bytes have another hash"),
        Err(_) => Some("its bytes cannot be read"),
    }
}
