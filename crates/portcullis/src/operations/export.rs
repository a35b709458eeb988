//! A log as NDJSON that anyone can verify with the lines of store §2: one event a line, its payload
//! the exact stored bytes, then, if wanted, one line for each content the events name, then one line with the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use data_encoding::BASE64;
use portcullis_base::{ArtifactId, ArtifactRef, Digest, SessionId, TenantId, Window};
use portcullis_event::{Event, ledger_of};
use portcullis_store::{Artifacts, Log, Pages, SessionKey, StoreError, artifacts_named, contents_named};
use serde::{Deserialize, Serialize};

/// The form of the lines; a change of it is another number.
pub(super) const FORMAT: &str = "portcullis-export-1";

/// `SEQ:HASH` of a log's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadLine {
    /// The last event.
    pub seq: u64,
    /// Its hash, which stands for the whole log.
    pub hash: Digest,
}

impl std::fmt::Display for HeadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// The last line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the lines.
    pub format: String,
    /// Whose log it is.
    pub session_id: SessionId,
    /// How many events there are.
    pub events: u64,
    /// Of the log.
    pub head: Option<HeadLine>,
    /// Where the ledger stood: what a saved head is compared with.
    pub ledger_head: Option<HeadLine>,
    /// Events by type.
    pub types: BTreeMap<String, u64>,
    /// Artifacts that events name, by id. Their hashes are always in an export, their bytes if they were asked for.
    pub artifacts: BTreeMap<ArtifactId, ExportedArtifact>,
    /// Bodies of menus and setups, by hash.
    pub menus: BTreeSet<Digest>,
    /// Artifacts whose bytes a retention policy took: nobody can ask for them here either.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub expired: BTreeSet<ArtifactId>,
}

/// What a manifest says of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedArtifact {
    /// Its hash.
    pub sha256: Digest,
    /// Its size.
    pub bytes: u64,
    /// Whether it holds all there was.
    pub complete: bool,
}

/// The bytes of an artifact or a menu, in a line of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct Content {
    /// Their hash.
    pub sha256: Digest,
    /// Base64.
    pub data: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContentLine {
    pub content: Content,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ManifestLine {
    pub manifest: Manifest,
}

impl Content {
    /// The bytes, if they have their hash.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let bytes = BASE64.decode(self.data.as_bytes()).map_err(|e| format!("content {}: {e}", self.sha256))?;
        if Digest::of(&bytes) != self.sha256 {
            return Err(format!("the bytes of content {} have another hash", self.sha256));
        }
        Ok(bytes)
    }
}

/// A log that cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// What the log names is not there, or not as it was.
    #[error("the content {sha256}, which the log names, cannot be read: {error}")]
    Content {
        /// Its hash.
        sha256: Digest,
        /// Why.
        error: io::Error,
    },
    /// An event that cannot be written as a line.
    #[error("{0}")]
    Line(#[from] serde_json::Error),
}

/// The ledger's head.
pub(super) async fn ledger_head(log: &dyn Log, tenant: TenantId) -> Result<Option<HeadLine>, StoreError> {
    let head = log.head(SessionKey { tenant, session: ledger_of(tenant) }).await?;
    Ok(head.map(|head| HeadLine { seq: head.last_seq, hash: head.last_hash }))
}

/// A log on its way out.
pub struct Export<'a> {
    log: &'a dyn Log,
    tenant: TenantId,
    artifacts: Option<&'a dyn Artifacts>,
    pages: Pages<'a>,
    contents: BTreeSet<Digest>,
    manifest: Manifest,
    part: Part,
}

/// What comes next.
enum Part {
    Events,
    Contents(std::collections::btree_set::IntoIter<Digest>),
    End,
}

impl<'a> Export<'a> {
    /// The log of `key`; with `artifacts`, the contents that it names as well.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn of(
        log: &'a dyn Log,
        key: SessionKey,
        artifacts: Option<&'a dyn Artifacts>,
    ) -> Result<Self, StoreError> {
        let manifest = Manifest::new(key.session, ledger_head(log, key.tenant).await?);
        let (pages, contents) = (Pages::of(log, key), BTreeSet::new());
        Ok(Self { log, tenant: key.tenant, artifacts, pages, contents, manifest, part: Part::Events })
    }

    /// The next lines, each whole; `None` after the last one, which is the manifest.
    ///
    /// # Errors
    /// If something that belongs into the export cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ExportError> {
        let mut lines = Vec::new();
        loop {
            match &mut self.part {
                Part::Events => {
                    let Some(page) = self.pages.next().await? else {
                        self.part = Part::Contents(self.contents_to_come().await?.into_iter());
                        continue;
                    };
                    for event in &page {
                        self.manifest.take_in(event);
                        self.contents.extend(contents_named(event));
                        push_line(&mut lines, event)?;
                    }
                }
                Part::Contents(contents) => match contents.next() {
                    Some(sha256) => {
                        let data = BASE64.encode(&self.content(sha256).await?);
                        push_line(&mut lines, &ContentLine { content: Content { sha256, data } })?;
                    }
                    None => {
                        self.part = Part::End;
                        push_line(&mut lines, &ManifestLine { manifest: self.manifest.clone() })?;
                    }
                },
                Part::End => return Ok(None),
            }
            return Ok(Some(lines));
        }
    }

    /// What was written; all of it after the last line.
    #[must_use]
    pub fn manifest(self) -> Manifest {
        self.manifest
    }

    /// The contents to write, none if nobody wants them; which artifacts expired is known then too.
    async fn contents_to_come(&mut self) -> Result<BTreeSet<Digest>, StoreError> {
        for id in self.manifest.artifacts.keys() {
            let row = self.log.artifact(self.tenant, *id).await?;
            if row.is_some_and(|row| row.tombstone.is_some()) {
                self.manifest.expired.insert(*id);
            }
        }
        let named = std::mem::take(&mut self.contents);
        let gone = self.manifest.expired_contents();
        Ok(if self.artifacts.is_some() { &named - &gone } else { BTreeSet::new() })
    }

    /// The bytes of an artifact or a menu.
    async fn content(&self, sha256: Digest) -> Result<Vec<u8>, ExportError> {
        if let Some(bytes) = self.log.blob(self.tenant, sha256).await? {
            return Ok(bytes);
        }
        let opened = match self.artifacts {
            Some(artifacts) => artifacts.open(self.tenant, sha256),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        opened.and_then(|window| whole(&*window)).map_err(|error| ExportError::Content { sha256, error })
    }
}

fn push_line(lines: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *lines, value)?;
    lines.push(b'\n');
    Ok(())
}

fn whole(window: &dyn Window) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buf) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match window.read_at(bytes.len() as u64, &mut buf)? {
            0 => return Ok(bytes),
            n => bytes.extend_from_slice(&buf[..n]),
        }
    }
}

impl Manifest {
    /// Of a log without events.
    pub(super) fn new(session: SessionId, ledger_head: Option<HeadLine>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            session_id: session,
            events: 0,
            head: None,
            ledger_head,
            types: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            menus: BTreeSet::new(),
            expired: BTreeSet::new(),
        }
    }

    /// Contents that only expired artifacts have.
    pub(super) fn expired_contents(&self) -> BTreeSet<Digest> {
        let (gone, kept): (Vec<_>, Vec<_>) = self.artifacts.iter().partition(|(id, _)| self.expired.contains(id));
        let kept: BTreeSet<Digest> = kept.into_iter().map(|(_, artifact)| artifact.sha256).collect();
        let gone = gone.into_iter().map(|(_, artifact)| artifact.sha256);
        gone.filter(|sha256| !kept.contains(sha256) && !self.menus.contains(sha256)).collect()
    }

    /// Whether an event names a content.
    pub(super) fn names(&self, sha256: &Digest) -> bool {
        self.menus.contains(sha256) || self.artifacts.values().any(|artifact| artifact.sha256 == *sha256)
    }

    /// What another manifest says of the same events that is not so.
    pub(super) fn difference(&self, said: &Self) -> Option<String> {
        let head = |head: Option<HeadLine>| head.map_or("none".to_owned(), |head| head.to_string());
        if self.events != said.events {
            return Some(format!("there are {} events, the manifest says {}", self.events, said.events));
        }
        if self.head != said.head {
            return Some(format!("its head is {}, the manifest says {}", head(self.head), head(said.head)));
        }
        if let Some(stranger) = said.expired.iter().find(|id| !self.artifacts.contains_key(id)) {
            return Some(format!("the manifest says that {stranger} expired, and no event names it"));
        }
        // Which ones expired does not follow from the events.
        let said = Self { expired: self.expired.clone(), ..said.clone() };
        (*self != said).then(|| "the manifest lists other types, artifacts or menus than the events name".to_owned())
    }

    pub(super) fn take_in(&mut self, event: &Event) {
        self.events += 1;
        self.head = Some(HeadLine { seq: event.seq, hash: event.hash });
        *self.types.entry(event.kind.to_string()).or_default() += 1;
        artifacts_named(event).iter().for_each(|artifact| self.name(artifact));
        self.menus.extend(event.body_ref().names().contents);
    }

    fn name(&mut self, artifact: &ArtifactRef) {
        let facts = ExportedArtifact { sha256: artifact.sha256, bytes: artifact.bytes, complete: artifact.complete };
        self.artifacts.insert(artifact.id, facts);
    }
}
