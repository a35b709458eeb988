//! A log as NDJSON that anyone can verify with the lines of store §2: one event a line, its payload
//! the exact stored bytes, then, if wanted, one line for each content the events name, then one line with the manifest.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use portcullis_base::{ArtifactId, ArtifactRef, Digest, SessionId, Window};
use portcullis_event::{Body, Event, LOCAL_TENANT, ledger_of};
use portcullis_store::{Artifacts as _, Log as _, StoreError, artifacts_named, contents_named};
use serde::{Deserialize, Serialize};

use crate::exit::failed;
use crate::world::{World, key};

/// The form of the lines; a change of it is another number.
pub const FORMAT: &str = "portcullis-export-1";

/// `SEQ:HASH` of a log's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadLine {
    pub seq: u64,
    pub hash: Digest,
}

/// The last line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub session_id: SessionId,
    pub events: u64,
    pub head: Option<HeadLine>,
    /// Where the ledger stood: what a saved head is compared with.
    pub ledger_head: Option<HeadLine>,
    /// Events by type.
    pub types: BTreeMap<String, u64>,
    /// Artifacts that events name, by id. Their hashes are always in an export, their bytes if they were asked for.
    pub artifacts: BTreeMap<ArtifactId, Artifact>,
    /// Bodies of menus, by hash.
    pub menus: BTreeSet<Digest>,
    /// Artifacts whose bytes a retention policy took: nobody can ask for them here either.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub expired: BTreeSet<ArtifactId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub sha256: Digest,
    pub bytes: u64,
    pub complete: bool,
}

/// The bytes of an artifact or a menu, in a line of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct Content {
    pub sha256: Digest,
    /// Base64.
    pub data: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ContentLine {
    pub content: Content,
}

impl Content {
    /// The bytes, if they have their hash.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let bytes = BASE64.decode(self.data.as_bytes()).map_err(|e| format!("content {}: {e}", self.sha256))?;
        if Digest::of(&bytes) != self.sha256 {
            return Err(format!("the bytes of content {} have another hash", self.sha256));
        }
        Ok(bytes)
    }
}

#[derive(Serialize)]
struct WrittenManifest<'a> {
    manifest: &'a Manifest,
}

/// The ledger's head.
pub async fn ledger_head(world: &World) -> Result<Option<HeadLine>, StoreError> {
    let head = world.store.head(key(ledger_of(LOCAL_TENANT))).await?;
    Ok(head.map(|head| HeadLine { seq: head.last_seq, hash: head.last_hash }))
}

/// Hands the lines of one log to `write`, page by page.
pub async fn write(
    world: &World,
    session: SessionId,
    with_contents: bool,
    mut write: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Manifest> {
    let mut contents = BTreeSet::new();
    let mut manifest = Manifest::new(session, ledger_head(world).await?);
    world
        .each_page(session, 0, |page| {
            let mut lines = Vec::new();
            for event in page {
                manifest.take_in(event);
                contents.extend(contents_named(event));
                serde_json::to_writer(&mut lines, event)?;
                lines.push(b'\n');
            }
            write(&lines)
        })
        .await?;
    for id in manifest.artifacts.keys() {
        let row = world.store.artifact(LOCAL_TENANT, *id).await?;
        if row.is_some_and(|row| row.tombstone.is_some()) {
            manifest.expired.insert(*id);
        }
    }
    let gone = manifest.expired_contents();
    if with_contents {
        for sha256 in contents.difference(&gone).copied() {
            let data = BASE64.encode(&content(world, sha256).await?);
            let mut line = serde_json::to_vec(&ContentLine { content: Content { sha256, data } })?;
            line.push(b'\n');
            write(&line)?;
        }
    }
    let mut line = serde_json::to_vec(&WrittenManifest { manifest: &manifest })?;
    line.push(b'\n');
    write(&line)?;
    Ok(manifest)
}

/// The bytes of an artifact or a menu.
async fn content(world: &World, sha256: Digest) -> anyhow::Result<Vec<u8>> {
    if let Some(bytes) = world.store.blob(LOCAL_TENANT, sha256).await? {
        return Ok(bytes);
    }
    let lost = |e: std::io::Error| failed(format!("the content {sha256}, which the log names, cannot be read: {e}"));
    let window = world.artifacts()?.open(LOCAL_TENANT, sha256).map_err(lost)?;
    whole(&*window).map_err(lost)
}

fn whole(window: &dyn Window) -> std::io::Result<Vec<u8>> {
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
    pub fn new(session: SessionId, ledger_head: Option<HeadLine>) -> Self {
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
    pub fn expired_contents(&self) -> BTreeSet<Digest> {
        let (gone, kept): (Vec<_>, Vec<_>) = self.artifacts.iter().partition(|(id, _)| self.expired.contains(id));
        let kept: BTreeSet<Digest> = kept.into_iter().map(|(_, artifact)| artifact.sha256).collect();
        let gone = gone.into_iter().map(|(_, artifact)| artifact.sha256);
        gone.filter(|sha256| !kept.contains(sha256) && !self.menus.contains(sha256)).collect()
    }

    /// What another manifest says of the same events that is not so.
    pub fn difference(&self, said: &Self) -> Option<String> {
        let head =
            |head: &Option<HeadLine>| head.as_ref().map_or("none".to_owned(), |h| format!("{}:{}", h.seq, h.hash));
        if self.events != said.events {
            return Some(format!("there are {} events, the manifest says {}", self.events, said.events));
        }
        if self.head != said.head {
            return Some(format!("its head is {}, the manifest says {}", head(&self.head), head(&said.head)));
        }
        if let Some(stranger) = said.expired.iter().find(|id| !self.artifacts.contains_key(id)) {
            return Some(format!("the manifest says that {stranger} expired, and no event names it"));
        }
        // Which ones expired does not follow from the events.
        let said = Self { expired: self.expired.clone(), ..said.clone() };
        (*self != said).then(|| "the manifest lists other types, artifacts or menus than the events name".to_owned())
    }

    pub fn take_in(&mut self, event: &Event) {
        self.events += 1;
        self.head = Some(HeadLine { seq: event.seq, hash: event.hash });
        *self.types.entry(event.kind.to_string()).or_default() += 1;
        artifacts_named(event).iter().for_each(|artifact| self.name(artifact));
        if let Body::MenuFrozen(menu) = event.body() {
            self.menus.insert(menu.hash);
        }
    }

    fn name(&mut self, artifact: &ArtifactRef) {
        let facts = Artifact { sha256: artifact.sha256, bytes: artifact.bytes, complete: artifact.complete };
        self.artifacts.insert(artifact.id, facts);
    }
}
