//! An exported log becomes a session of a store, verified first, whole or not at all.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use portcullis_base::limits::ARTIFACT_INLINE_MAX;
use portcullis_base::{Digest, SessionId};
use portcullis_event::facts::ArtifactsExpired;
use portcullis_event::{Body, Event, IntentState, State};
use portcullis_store::{
    Artifacts, Blob, Import, Imported, SessionKey, StoreError, SweepArtifacts, contents_named, deliver_outbox,
    is_erased,
};

use super::export::{ContentLine, HeadLine, Manifest};
use super::export_file::{CheckedExport, ExportFileError, ExportLines};
use super::{EventsSeen, Operator};

/// Bytes of events that are held at once: a session is taken in by one transaction.
const EVENTS_MOST: usize = 1 << 30;

/// Bytes of small contents that are held at once, to be rows of that transaction. Past it they are files, like large
/// ones: a reader finds both by their hash.
const CONTENTS_MOST: usize = 64 << 20;

/// An export that is not taken in. Nothing of its log was written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is no export.
    #[error("{0}")]
    File(#[from] ExportFileError),
    /// The export does not hold.
    #[error("{}: {fault}; nothing was written", file.display())]
    Broken {
        /// Its name.
        file: PathBuf,
        /// What does not hold.
        fault: String,
    },
    /// Something in it would still happen.
    #[error("{}: {left}; let it end where it comes from, then export again; nothing was written", file.display())]
    Unfinished {
        /// Its name.
        file: PathBuf,
        /// What is left to do.
        left: String,
    },
    /// What it names is nowhere.
    #[error(
        "{}: it names the content {sha256} (event {seq}), which is neither in it nor in this store", file.display()
    )]
    MissingContent {
        /// Its name.
        file: PathBuf,
        /// What is missing.
        sha256: Digest,
        /// The event that names it.
        seq: u64,
    },
    /// More than one transaction takes.
    #[error("{}: its events are more than 1 GiB, too many to take in", .0.display())]
    TooLarge(PathBuf),
    /// It changed after it was checked.
    #[error("{0}")]
    Content(String),
    /// What was erased here stays erased.
    #[error("session {0} was erased here and is not taken in again; nothing was written")]
    Erased(SessionId),
    /// Its contents cannot be kept.
    #[error("{0}")]
    Artifacts(#[from] io::Error),
    /// The store refused or failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// An export whose chain and manifest hold: what can be taken in.
pub struct SoundExport {
    file: PathBuf,
    manifest: Manifest,
    head: Option<HeadLine>,
}

impl SoundExport {
    /// Reads and verifies an export.
    ///
    /// # Errors
    /// If the file is no export, or does not hold.
    pub fn read(file: &Path) -> Result<Self, ImportError> {
        let checked = CheckedExport::of(file, Manifest::read(file)?, None)?;
        match checked.fault {
            Some(fault) => Err(ImportError::Broken { file: file.to_owned(), fault }),
            None => Ok(Self { file: file.to_owned(), manifest: checked.manifest, head: checked.head }),
        }
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.manifest.events
    }
}

/// A session that was taken in.
pub struct ImportedSession {
    /// Its id, the same as where it comes from.
    pub session: SessionId,
    /// How many events it has.
    pub events: u64,
    /// The last of them.
    pub head: Option<HeadLine>,
    /// It was here already, the same.
    pub repeat: bool,
}

/// Takes in the session of an export.
///
/// # Errors
/// If it would do something here by itself, was erased here, names what is nowhere, or the store refuses it.
pub async fn import_session(
    operator: &Operator,
    artifacts: &dyn SweepArtifacts,
    export: &SoundExport,
    seen: EventsSeen<'_>,
) -> Result<ImportedSession, ImportError> {
    let SoundExport { file, manifest, head } = export;
    let (store, key) = (&*operator.store, operator.key(manifest.session_id));
    // Not a byte of it is written: only the very log that is left of it is the same.
    if let Some(here) = store.head(key).await?
        && *head != Some(HeadLine { seq: here.last_seq, hash: here.last_hash })
        && is_erased(store, key, &here).await?
    {
        return Err(ImportError::Erased(key.session));
    }
    let (mut import, mut here) = read(file, artifacts, key, CONTENTS_MOST, seen)?;
    import.expired.clone_from(&manifest.expired);
    here.extend(manifest.expired_contents());
    if let Some(left) = left_to_do(&import.events) {
        return Err(ImportError::Unfinished { file: file.clone(), left });
    }
    for event in &import.events {
        for sha256 in contents_named(event) {
            if !here.contains(&sha256) && !is_kept(operator, artifacts, sha256).await? {
                return Err(ImportError::MissingContent { file: file.clone(), sha256, seq: event.seq });
            }
            here.insert(sha256);
        }
    }
    if !import.expired.is_empty() {
        let artifacts = import.expired.iter().copied().collect();
        operator.record(&ArtifactsExpired { by: operator.by.clone(), artifacts }).await?;
    }
    let Imported { last_seq, repeat, .. } = store.import(import).await?;
    deliver_outbox(store).await?;
    Ok(ImportedSession { session: key.session, events: last_seq, head: *head, repeat })
}

/// What in a log would still happen, or be asked, here. A file may say anything: whoever opens the session next would
/// run a call that nobody made or answered here, a worker would call a model by itself, and what a person is shown of an ask
/// and the rule that an answer would remember are only what the file says they are (tool-contract 13.4).
fn left_to_do(events: &[Event]) -> Option<String> {
    let mut waiting = BTreeSet::new();
    for event in events {
        match &*event.body_ref() {
            Body::PermissionAsked(asked) => drop(waiting.insert(asked.ask_id)),
            Body::AskReplied(replied) => drop(waiting.remove(&replied.ask_id)),
            Body::AskClosed(closed) => drop(waiting.remove(&closed.ask_id)),
            _ => {}
        }
    }
    let state = State::fold(events);
    if let Some(ask) = state.asks.answered().next() {
        return Some(format!("{} in it was answered and its call has not run yet", ask.ask_id));
    }
    if let Some(ask) = waiting.first() {
        return Some(format!("{ask} in it waits for an answer"));
    }
    if let Some(call) = state.session.queued.first() {
        return Some(format!("a call in it is queued ({}) and has not run yet", call.event_id));
    }
    // One that has started only ends, as unknown.
    if let Some(open) = state.intents.open().find(|intent| intent.state < IntentState::Started) {
        return Some(format!("{} in it has not run yet", open.intent_id));
    }
    // Whatever wakes a session has its model called here, with words that nobody here said.
    if let Some(input) = state.inbox.pending().first() {
        return Some(format!("a {} in it ({}) has not been taken up yet", input.kind(), input.event_id));
    }
    if let Some(wake) = state.wakes.pending().next() {
        return Some(format!("{} in it waits for its time", wake.queued_wake_id));
    }
    if let Some(request) = state.progress.handed_over.keys().next() {
        return Some(format!("a call in it ({request}) waits for its result"));
    }
    let open = state.progress.open.as_ref()?;
    Some(format!("{} in it has not ended", open.wake_id))
}

/// The events and small contents; large ones are made durable as they come, before anything can name them (S13). The
/// hashes of both come back too.
fn read(
    file: &Path,
    artifacts: &dyn Artifacts,
    key: SessionKey,
    contents_most: usize,
    seen: EventsSeen<'_>,
) -> Result<(Import, HashSet<Digest>), ImportError> {
    let mut import = Import { key, events: Vec::new(), blobs: Vec::new(), expired: Default::default() };
    let (mut here, mut bytes, mut held, mut line) = (HashSet::new(), 0, 0, Vec::new());
    let mut lines = ExportLines::open(file)?;
    while lines.next(&mut line)? {
        if let Ok(event) = serde_json::from_slice::<Event>(&line) {
            bytes += line.len();
            if bytes > EVENTS_MOST {
                return Err(ImportError::TooLarge(file.to_owned()));
            }
            import.events.push(event);
            seen(1);
        } else if let Ok(ContentLine { content }) = serde_json::from_slice(&line) {
            let bytes = content.bytes().map_err(ImportError::Content)?;
            if !here.insert(content.sha256) {
                continue;
            }
            if bytes.len() <= ARTIFACT_INLINE_MAX && held + bytes.len() <= contents_most {
                held += bytes.len();
                import.blobs.push(Blob { sha256: content.sha256, bytes });
            } else {
                let mut writer = artifacts.begin(key.tenant)?;
                writer.write(&bytes)?;
                writer.finish()?;
            }
        }
    }
    Ok((import, here))
}

/// Whether a content is here, sound; what is here as a file stays for the rows to come.
async fn is_kept(operator: &Operator, artifacts: &dyn SweepArtifacts, sha256: Digest) -> Result<bool, ImportError> {
    let tenant = operator.tenant;
    if operator.store.blob(tenant, sha256).await?.is_some() {
        return Ok(true);
    }
    Ok(artifacts.renew(tenant, sha256)? && artifacts.open(tenant, sha256).is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portcullis_base::SystemIds;
    use portcullis_event::LOCAL_TENANT;
    use portcullis_store::LocalArtifacts;
    use serde_json::json;

    use super::*;

    #[test]
    fn small_contents_past_the_budget_are_files_and_none_is_held_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = LocalArtifacts::open(&folder.path().join("kept"), Arc::new(SystemIds::new())).expect("opens");
        let file = folder.path().join("export.jsonl");
        let contents = ["a", "b", "a", "c", "d"].map(|letter| letter.repeat(1_000).into_bytes());
        let line = |bytes: &Vec<u8>| {
            let data = data_encoding::BASE64.encode(bytes);
            json!({"content": {"sha256": Digest::of(bytes), "data": data}}).to_string() + "\n"
        };
        std::fs::write(&file, contents.iter().map(line).collect::<String>()).expect("written");
        let key = SessionKey { tenant: LOCAL_TENANT, session: SessionId::from_u128(1) };
        let (import, here) = read(&file, &artifacts, key, 2_500, &|_| panic!("no event")).expect("read");
        assert_eq!(import.blobs.iter().map(|blob| blob.bytes[0]).collect::<Vec<_>>(), [b'a', b'b']);
        assert_eq!(here.len(), 4);
        for bytes in &contents[3..] {
            let window = artifacts.open(LOCAL_TENANT, Digest::of(bytes)).expect("durable already");
            assert_eq!(window.len(), 1_000);
        }
    }
}
