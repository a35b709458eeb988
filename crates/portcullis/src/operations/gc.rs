//! What could be freed, and freeing it. What an event names is among it only where a retention policy says so: its row
//! becomes a tombstone first, and its bytes go a day later.

use std::io;
use std::sync::Arc;

use portcullis_base::{ArtifactId, Digest};
use portcullis_event::facts::ArtifactsExpired;
use portcullis_store::{
    ArtifactRow, HeldArtifacts, Leftover, Retain, Retention, RetentionLimit, StoreError, SweepArtifacts, grace,
    unreferenced,
};

use super::Operator;

/// From this size on an artifact is worth naming, even if nothing lets it go.
const LARGE: u64 = 1 << 20;
/// So many of the large ones are named.
const LARGE_SHOWN: usize = 10;
/// Artifacts that become tombstones in one transaction.
const BURIED_AT_ONCE: usize = 500;

/// What was found, each kind largest first.
pub struct Garbage {
    /// Files that nothing names.
    pub unreferenced: Vec<Leftover>,
    /// Artifacts over a limit of the policy.
    pub expired: Vec<(ArtifactRow, RetentionLimit)>,
    /// Contents of tombstones whose grace is over.
    pub buried: Vec<ArtifactRow>,
    /// The largest that stay.
    pub large: Vec<ArtifactRow>,
}

/// Garbage that stays, at least in part.
#[derive(Debug, thiserror::Error)]
pub enum GarbageError {
    /// A file that nothing names cannot be deleted.
    #[error("{} cannot be deleted: {error}; {gone} {} went before it", leftover_words(file), if *gone == 1 { "file" } else { "files" })]
    Leftover {
        /// Which.
        file: Box<Leftover>,
        /// How many went before it.
        gone: usize,
        /// Why.
        error: io::Error,
    },
    /// The content of a tombstone cannot be deleted.
    #[error("content {sha256} cannot be deleted: {error}")]
    Content {
        /// Which.
        sha256: Digest,
        /// Why.
        error: io::Error,
    },
    /// The store refused or failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// What a leftover is.
#[must_use]
pub fn leftover_words(leftover: &Leftover) -> String {
    leftover.sha256.map_or_else(|| "never finished".to_owned(), |sha256| format!("content {sha256}, named by nothing"))
}

impl Garbage {
    /// Looks for what can go.
    ///
    /// # Errors
    /// If the store or the artifacts cannot be read.
    pub async fn find(
        operator: &Operator,
        artifacts: Arc<dyn SweepArtifacts>,
        retention: &Retention,
    ) -> Result<Self, StoreError> {
        let (store, tenant, now) = (&*operator.store, operator.tenant, operator.clock.now());
        let unreferenced = unreferenced(store, artifacts, tenant, now).await?;
        let held = HeldArtifacts::read(store, tenant, now).await?;
        let expired = held.expired(retention, now);
        let going = |row: &ArtifactRow| expired.iter().any(|(other, _)| other.artifact.sha256 == row.artifact.sha256);
        let mut large = held.large(LARGE, LARGE_SHOWN + expired.len());
        large.retain(|row| !going(row));
        large.truncate(LARGE_SHOWN);
        Ok(Self { unreferenced, buried: held.freeable(now), large, expired })
    }

    /// Frees it, and gives back what went: what was put again meanwhile stays.
    ///
    /// # Errors
    /// If something cannot be deleted, or the store refuses.
    pub async fn free(self, operator: &Operator, artifacts: &dyn SweepArtifacts) -> Result<Self, GarbageError> {
        let unreferenced = swept(operator, artifacts, self.unreferenced)?;
        let buried = freed(operator, artifacts, self.buried).await?;
        let expired = bury(operator, self.expired).await?;
        Ok(Self { unreferenced, buried, expired, large: self.large })
    }
}

fn swept(
    operator: &Operator,
    artifacts: &dyn SweepArtifacts,
    found: Vec<Leftover>,
) -> Result<Vec<Leftover>, GarbageError> {
    let before = grace(operator.clock.now());
    let mut gone = Vec::new();
    for leftover in found {
        match artifacts.sweep(&leftover, before) {
            Ok(true) => gone.push(leftover),
            Ok(false) => {}
            Err(error) => {
                return Err(GarbageError::Leftover { file: Box::new(leftover), gone: gone.len(), error });
            }
        }
    }
    Ok(gone)
}

/// The rows become tombstones, durably; only a later run takes the bytes.
async fn bury(
    operator: &Operator,
    expired: Vec<(ArtifactRow, RetentionLimit)>,
) -> Result<Vec<(ArtifactRow, RetentionLimit)>, StoreError> {
    let mut buried = Vec::new();
    for some in expired.chunks(BURIED_AT_ONCE) {
        let ids: Vec<ArtifactId> = some.iter().map(|(row, _)| row.artifact.id).collect();
        // First, so that no row says it alone; what is said of an artifact that then stays changes nothing.
        operator.record(&ArtifactsExpired { by: operator.by.clone(), artifacts: ids.clone() }).await?;
        let changed = operator.store.retain(operator.tenant, Retain::Bury(ids)).await?;
        buried.extend(some.iter().filter(|(row, _)| is_among(row, &changed)).cloned());
    }
    Ok(buried)
}

/// Takes the bytes of tombstones: the file first, then the row says that they are gone. A crash in between is made up
/// for by the next run.
async fn freed(
    operator: &Operator,
    artifacts: &dyn SweepArtifacts,
    buried: Vec<ArtifactRow>,
) -> Result<Vec<ArtifactRow>, GarbageError> {
    let before = grace(operator.clock.now());
    let mut gone: Vec<Digest> = Vec::new();
    for sha256 in buried.iter().map(|row| row.artifact.sha256) {
        let found = artifacts.file_of(operator.tenant, sha256);
        let swept = found.and_then(|file| file.map_or(Ok(true), |file| artifacts.sweep(&file, before)));
        // One that was put again meanwhile is about to be named.
        if swept.map_err(|error| GarbageError::Content { sha256, error })? {
            gone.push(sha256);
        }
    }
    let freed = operator.store.retain(operator.tenant, Retain::Free { contents: gone, before }).await?;
    Ok(buried.into_iter().filter(|row| is_among(row, &freed)).collect())
}

fn is_among(row: &ArtifactRow, rows: &[ArtifactRow]) -> bool {
    rows.iter().any(|other| other.artifact.id == row.artifact.id)
}
