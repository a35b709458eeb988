//! Every artifact that an event names has its row, every row is as its event says, and its bytes have the hash of both. Where
//! a row says that a policy took the bytes, the operator log says so too. The content of every menu and setup is there.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use portcullis_base::{ArtifactId, Digest, SessionId, TenantId};

use super::LogFault;
use super::named_artifacts::{NAMING, NamedArtifacts, is_made};
use crate::{ArtifactRow, Artifacts, CONTENT_KINDS, Store, StoreError};

/// Rows that are held at once.
const PAGE: usize = 512;

/// Compares the rows of a tenant's artifacts with what its logs name ([`crate::Audit::named`]), and hashes the bytes of every
/// artifact anew, the small ones in the store and the large ones beside it.
///
/// # Errors
/// If the store cannot be read at all. A lost or changed artifact is no error: it is among the faults.
pub async fn verify_artifacts(
    store: &dyn Store,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
    named: &NamedArtifacts,
) -> Result<Vec<LogFault>, StoreError> {
    let mut faults = Vec::new();
    let mut rows: HashSet<ArtifactId> = HashSet::new();
    let mut sound: HashSet<Digest> = HashSet::new();
    let mut after = None;
    loop {
        let page = store.artifacts(tenant, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.artifact.id);
        for row in page {
            rows.insert(row.artifact.id);
            if let Some(why) = named.fault(&row)
                && !made_since(store, tenant, &row).await?
            {
                faults.push(LogFault::Artifact { session: row.session, artifact: row.artifact.id, why });
                continue;
            }
            if row.tombstone.is_some() && !has_expired(store, tenant, named, row.artifact.id).await? {
                let why = "its row says that a policy took it, and no event does";
                faults.push(LogFault::Artifact { session: row.session, artifact: row.artifact.id, why });
                continue;
            }
            let sha256 = row.artifact.sha256;
            // Equal contents are kept once and hashed once; of what a policy took nothing is promised but the hash.
            if sound.contains(&sha256) || row.tombstone.is_some() {
                continue;
            }
            match content(store, &artifacts, tenant, sha256).await? {
                None => drop(sound.insert(sha256)),
                Some(why) => {
                    faults.push(LogFault::Artifact { session: row.session, artifact: row.artifact.id, why });
                }
            }
        }
    }
    for (session, artifact) in named.without(&rows) {
        // One whose session was erased since its log was read went with it.
        if store.artifact(tenant, artifact).await?.is_none() && still_named(store, tenant, session, artifact).await? {
            faults.push(LogFault::Artifact { session, artifact, why: "its row is gone, though an event names it" });
        }
    }
    for (sha256, session) in named.contents().filter(|(sha256, _)| !sound.contains(sha256)) {
        let Some(why) = content(store, &artifacts, tenant, sha256).await? else { continue };
        // That of a session which was erased since went with it.
        let now = NamedArtifacts::again(store, tenant, session, &CONTENT_KINDS).await?;
        if now.contents().any(|(named, _)| named == sha256) {
            faults.push(LogFault::Content { session, sha256, why });
        }
    }
    Ok(faults)
}

/// What is wrong with a content.
async fn content(
    store: &dyn Store,
    artifacts: &Arc<dyn Artifacts>,
    tenant: TenantId,
    sha256: Digest,
) -> Result<Option<&'static str>, StoreError> {
    match store.blob(tenant, sha256).await {
        Ok(Some(bytes)) if Digest::of(&bytes) == sha256 => Ok(None),
        Ok(Some(_)) | Err(StoreError::Corrupt(_)) => Ok(Some("its bytes have another hash")),
        Ok(None) => Ok(large(artifacts, tenant, sha256).await),
        Err(error) => Err(error),
    }
}

/// Whether a policy took it, by the operator log as it was read or as it is now.
async fn has_expired(
    store: &dyn Store,
    tenant: TenantId,
    named: &NamedArtifacts,
    artifact: ArtifactId,
) -> Result<bool, StoreError> {
    if named.expired(artifact) {
        return Ok(true);
    }
    match NamedArtifacts::expired_by_now(store, tenant).await {
        // The walk over that log has told of it.
        Err(StoreError::Corrupt(_)) => Ok(false),
        now => Ok(now?.expired(artifact)),
    }
}

/// Rows that came after their log was read are held against it now.
async fn made_since(store: &dyn Store, tenant: TenantId, row: &ArtifactRow) -> Result<bool, StoreError> {
    match is_made(store, tenant, row).await {
        // The walk over that log has told of it.
        Err(StoreError::Corrupt(_)) => Ok(false),
        made => made,
    }
}

async fn still_named(
    store: &dyn Store,
    tenant: TenantId,
    session: SessionId,
    artifact: ArtifactId,
) -> Result<bool, StoreError> {
    match NamedArtifacts::again(store, tenant, session, &NAMING).await {
        Err(StoreError::Corrupt(_)) => Ok(true),
        now => Ok(now?.names(artifact)),
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
