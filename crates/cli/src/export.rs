//! A log as NDJSON that anyone can verify with the lines of store §2: one event a line, its payload
//! the exact stored bytes, then one line with the manifest.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{ArtifactId, ArtifactRef, Digest, SessionId};
use portcullis_event::{Body, Event, LOCAL_TENANT, ledger_of};
use portcullis_store::{Log as _, StoreError};
use serde::{Deserialize, Serialize};

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
    /// Artifacts that events name, by id. Their bytes are not in an export; their hashes are.
    pub artifacts: BTreeMap<ArtifactId, Artifact>,
    /// Bodies of menus, by hash.
    pub menus: BTreeSet<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub sha256: Digest,
    pub bytes: u64,
    pub complete: bool,
}

#[derive(Serialize)]
struct Last<'a> {
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
    mut write: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Manifest> {
    let mut manifest = Manifest::new(session, ledger_head(world).await?);
    world
        .each_page(session, 0, |page| {
            let mut lines = Vec::new();
            for event in page {
                manifest.take_in(event);
                serde_json::to_writer(&mut lines, event)?;
                lines.push(b'\n');
            }
            write(&lines)
        })
        .await?;
    let mut line = serde_json::to_vec(&Last { manifest: &manifest })?;
    line.push(b'\n');
    write(&line)?;
    Ok(manifest)
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
        }
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
        (self != said).then(|| "the manifest lists other types, artifacts or menus than the events name".to_owned())
    }

    pub fn take_in(&mut self, event: &Event) {
        self.events += 1;
        self.head = Some(HeadLine { seq: event.seq, hash: event.hash });
        *self.types.entry(event.kind.to_string()).or_default() += 1;
        match event.body() {
            Body::ArtifactStored(stored) => self.name(&stored.artifact),
            Body::MenuFrozen(menu) => {
                self.menus.insert(menu.hash);
            }
            Body::Asked(asked) => {
                let diff = asked.facts.get("diff").cloned();
                if let Some(artifact) = diff.and_then(|value| serde_json::from_value::<ArtifactRef>(value).ok()) {
                    self.name(&artifact);
                }
            }
            Body::Observed(observed) => observed.artifacts.iter().for_each(|artifact| self.name(artifact)),
            _ => {}
        }
    }

    fn name(&mut self, artifact: &ArtifactRef) {
        let facts = Artifact { sha256: artifact.sha256, bytes: artifact.bytes, complete: artifact.complete };
        self.artifacts.insert(artifact.id, facts);
    }
}
