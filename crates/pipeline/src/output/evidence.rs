//! Artifacts: large evidence, kept whole or the settlement fails (R2). Small ones ride in the
//! append that names them; larger ones are durable before it (S13).

use std::io;
use std::sync::Arc;

use portcullis_base::{
    ArtifactId, ArtifactKind, ArtifactRef, Code, Digest, IntentId, SessionId, TenantId, Trust, TurnId, Window, limits,
};
use portcullis_event::facts::ArtifactStored;
use portcullis_store::{ArtifactRow, Artifacts, Blob, Store, StoreError, StoredBlob, is_made};

use crate::phases::refuse::Refusal;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// Why evidence could not be kept; the text names the remedy.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RetainError {
    #[error(
        "artifacts use {used} of {quota} bytes, and this needs {wanted} more; nothing more is kept until artifacts are removed or \
         the quota is raised"
    )]
    OverQuota { used: u64, quota: u64, wanted: u64 },
    #[error("it could not be written: {0}; make room on the disk of the data directory")]
    Io(String),
    #[error(
        "the tool handed over {more} pieces of evidence more than the {} that one call may keep",
        limits::KEPT_ITEMS
    )]
    TooMany { more: usize },
    #[error("the tool reported more than one record can hold, so the record is cut; do the work in several calls")]
    TooMuch,
}

/// Room a call must find before it may touch the world: one small artifact. How much evidence it will
/// leave is known only afterwards; what does not fit then is `retention_failed` with its effect told.
const ROOM_TO_START: u64 = limits::ARTIFACT_INLINE_MAX as u64;

impl SessionShared {
    /// The quota, before anything happens (store §8).
    pub(crate) async fn room_to_start(&self) -> Result<(), RetainError> {
        self.scope.books.usage.room(&*self.gate.store, self.key.tenant, ROOM_TO_START).await
    }

    /// Takes `wanted` bytes of the quota for what rides in this append, or is named by it.
    pub(crate) async fn reserve(&self, wanted: u64, facts: &mut Append) -> Result<(), RetainError> {
        facts.reserved.push(self.scope.books.usage.reserve(&*self.gate.store, self.key.tenant, wanted).await?);
        Ok(())
    }
}

/// Nothing was done, because what it leaves behind could not be kept.
pub(crate) fn no_room(error: &RetainError) -> Refusal {
    Refusal::new(Code::RetentionFailed, format!("it was not started, because its evidence could not be kept: {error}"))
}

/// What an artifact is, besides its bytes.
pub(crate) struct Label<'a> {
    pub(crate) id: ArtifactId,
    pub(crate) kind: ArtifactKind,
    pub(crate) mime: &'a str,
    pub(crate) lines: Option<u64>,
    pub(crate) complete: bool,
}

/// Puts evidence of one intent, or of the session itself, into its append.
pub(crate) struct Evidence<'a> {
    pub(crate) session: &'a SessionShared,
    pub(crate) turn_id: TurnId,
    pub(crate) intent_id: Option<IntentId>,
}

impl Evidence<'_> {
    pub(crate) fn fresh_id(&self) -> ArtifactId {
        ArtifactId::make(&*self.session.gate.ids, self.session.gate.clock.now())
    }

    /// Keeps bytes that are at hand.
    pub(crate) async fn keep(
        &self,
        label: Label<'_>,
        bytes: Vec<u8>,
        facts: &mut Append,
    ) -> Result<ArtifactRef, RetainError> {
        let artifact = self.put(label, bytes, facts).await?;
        self.name(artifact.clone(), facts);
        Ok(artifact)
    }

    /// Keeps bytes that another fact of the same append names: their row is the caller's to add.
    pub(crate) async fn put(
        &self,
        label: Label<'_>,
        bytes: Vec<u8>,
        facts: &mut Append,
    ) -> Result<ArtifactRef, RetainError> {
        self.session.reserve(bytes.len() as u64, facts).await?;
        // Past its budget an append takes no more bytes: the piece is durable before it instead, like a large one.
        let rides = facts.blob_bytes() + bytes.len() <= limits::APPEND_BLOBS;
        if rides && bytes.len() <= limits::ARTIFACT_INLINE_MAX {
            let sha256 = Digest::of(&bytes);
            let artifact = artifact(&label, sha256, bytes.len() as u64);
            facts.blobs.push(Blob { sha256, bytes });
            return Ok(artifact);
        }
        let window: Arc<dyn Window> = Arc::new(bytes);
        let stored = self.write(window).await?;
        Ok(artifact(&label, stored.sha256, stored.bytes))
    }

    /// Keeps everything a window shows.
    pub(crate) async fn keep_window(
        &self,
        label: Label<'_>,
        window: Arc<dyn Window>,
        facts: &mut Append,
    ) -> Result<ArtifactRef, RetainError> {
        if window.len() <= limits::ARTIFACT_INLINE_MAX as u64 {
            let bytes = window.slice(0, window.len()).map_err(|e| RetainError::Io(e.to_string()))?;
            return self.keep(label, bytes, facts).await;
        }
        self.session.reserve(window.len(), facts).await?;
        let stored = self.write(window).await?;
        Ok(self.name_stored(&label, &stored, facts))
    }

    /// Names bytes that a spool made durable already: they are not copied.
    pub(crate) async fn name_spool(
        &self,
        label: Label<'_>,
        stored: &StoredBlob,
        facts: &mut Append,
    ) -> Result<ArtifactRef, RetainError> {
        self.session.reserve(stored.bytes, facts).await?;
        Ok(self.name_stored(&label, stored, facts))
    }

    async fn write(&self, window: Arc<dyn Window>) -> Result<StoredBlob, RetainError> {
        let artifacts = Arc::clone(&self.session.gate.artifacts);
        let tenant = self.session.key.tenant;
        let written = tokio::task::spawn_blocking(move || copy(&*artifacts, tenant, &*window)).await;
        written.map_err(|e| RetainError::Io(e.to_string()))?.map_err(|e| RetainError::Io(e.to_string()))
    }

    fn name_stored(&self, label: &Label<'_>, stored: &StoredBlob, facts: &mut Append) -> ArtifactRef {
        let artifact = artifact(label, stored.sha256, stored.bytes);
        self.name(artifact.clone(), facts);
        artifact
    }

    fn name(&self, artifact: ArtifactRef, facts: &mut Append) {
        let fact = ArtifactStored { artifact: artifact.clone(), intent_id: self.intent_id };
        self.session.note(facts, self.turn_id, &fact);
        facts.artifacts.push(ArtifactRow::new(self.session.key.session, artifact));
    }
}

fn artifact(label: &Label<'_>, sha256: Digest, bytes: u64) -> ArtifactRef {
    ArtifactRef {
        id: label.id,
        kind: label.kind,
        mime: label.mime.to_owned(),
        bytes,
        lines: label.lines,
        sha256,
        complete: label.complete,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    }
}

fn copy(artifacts: &dyn Artifacts, tenant: TenantId, window: &dyn Window) -> io::Result<StoredBlob> {
    let mut writer = artifacts.begin(tenant)?;
    let mut chunk = vec![0u8; limits::ARTIFACT_INLINE_MAX];
    let mut at = 0;
    loop {
        let n = window.read_at(at, &mut chunk)?;
        if n == 0 {
            return writer.finish();
        }
        writer.write(&chunk[..n])?;
        at += n as u64;
    }
}

/// Why an artifact cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ShelfError {
    #[error("there is no artifact {0} that this session may see")]
    NotFound(ArtifactId),
    #[error("the bytes of artifact {0} are lost: the store is damaged")]
    Lost(ArtifactId),
    #[error(
        "artifact {id} has expired by the retention policy: its {bytes} bytes (SHA-256 {sha256}) are no longer kept; what \
         was shown of it before stands in the log"
    )]
    Expired { id: ArtifactId, sha256: Digest, bytes: u64 },
    #[error("{0}")]
    Store(StoreError),
}

/// Reads artifacts by id, for `artifact_read` and for people.
#[derive(Clone)]
pub struct ArtifactShelf {
    store: Arc<dyn Store>,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
}

impl ArtifactShelf {
    /// A shelf over a store and its large objects.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, artifacts: Arc<dyn Artifacts>, tenant: TenantId) -> Self {
        Self { store, artifacts, tenant }
    }

    /// Opens an artifact. With `session`, only one of that session's own.
    ///
    /// # Errors
    /// If it is not there, not this session's, or its bytes are gone.
    pub async fn open(
        &self,
        id: ArtifactId,
        session: Option<SessionId>,
    ) -> Result<(ArtifactRef, Arc<dyn Window>), ShelfError> {
        let row = self.store.artifact(self.tenant, id).await.map_err(ShelfError::Store)?;
        let row = row.filter(|row| session.is_none_or(|s| s == row.session)).ok_or(ShelfError::NotFound(id))?;
        let sha256 = row.artifact.sha256;
        if !is_made(&*self.store, self.tenant, &row).await.map_err(ShelfError::Store)? {
            return Err(ShelfError::Lost(id));
        }
        if row.tombstone.is_some() {
            return Err(ShelfError::Expired { id, sha256, bytes: row.artifact.bytes });
        }
        match self.store.blob(self.tenant, sha256).await {
            Ok(Some(bytes)) => return Ok((row.artifact, Arc::new(bytes))),
            Ok(None) => {}
            // Other bytes are as good as none, and trying again brings nothing back.
            Err(StoreError::Corrupt(_)) => return Err(ShelfError::Lost(id)),
            Err(error) => return Err(ShelfError::Store(error)),
        }
        match self.artifacts.open(self.tenant, sha256) {
            Ok(window) => Ok((row.artifact, window)),
            Err(_) => Err(ShelfError::Lost(id)),
        }
    }
}
