//! What goes: the content of an erased session, and what a policy takes.

use std::collections::HashSet;

use portcullis_base::{Digest, TenantId, Timestamp};
use portcullis_event::DecodedBody;

use super::Tables;
use crate::{ArtifactRow, Retain, SessionKey, StoreError, Tombstone, VARIABLE, variable_ids, was_erased};

impl Tables {
    pub(super) fn check_not_erased(&self, key: SessionKey) -> Result<(), StoreError> {
        let last = || self.events.get(&key).and_then(|events| events.last()).cloned();
        match self.heads.get(&key) {
            Some(head) if was_erased(head, last) => Err(StoreError::Erased(key.session)),
            _ => Ok(()),
        }
    }

    /// Takes out what a session holds but its hashes.
    pub(super) fn erase(&mut self, key: SessionKey) {
        for event in self.events.get_mut(&key).into_iter().flatten() {
            event.payload = None;
            event.typed = DecodedBody::default();
        }
        self.sessions.remove(&key);
        self.facts.remove(&key);
        self.unknown.retain(|(of, _), _| *of != key);
        self.intents.remove(&key);
        self.wakes.remove(&key);
        self.snapshots.remove(&key);
        self.asks.retain(|(tenant, _), row| *tenant != key.tenant || row.session_id != key.session);
        self.sealed.retain(|(of, _), _| *of != key);
        let (first, end) = variable_ids(key.session);
        let is_variable = |kind: &str, id: &str| kind == VARIABLE && *id >= *first && *id < *end;
        self.records.retain(|(tenant, kind, id), _| *tenant != key.tenant || !is_variable(kind, id));
        self.locks.retain(|(tenant, _), row| *tenant != key.tenant || row.session != key.session);
        let mine = |tenant: TenantId, row: &ArtifactRow| tenant == key.tenant && row.session == key.session;
        let held = self.artifacts.iter().filter(|((tenant, _), row)| mine(*tenant, row));
        let contents: HashSet<Digest> = held.map(|(_, row)| row.artifact.sha256).collect();
        self.artifacts.retain(|(tenant, _), row| !mine(*tenant, row));
        let others = self.artifacts.iter().filter(|((tenant, _), _)| *tenant == key.tenant);
        let mut named: HashSet<Digest> = others.map(|(_, row)| row.artifact.sha256).collect();
        named.extend(self.plain_contents(key.tenant));
        for sha256 in contents.difference(&named) {
            self.blobs.remove(&(key.tenant, *sha256));
        }
    }

    pub(super) fn retain(&mut self, tenant: TenantId, change: Retain, now: Timestamp) -> Vec<ArtifactRow> {
        let kept = self.plain_contents(tenant);
        let mut changed = Vec::new();
        match change {
            Retain::Pin { artifact, pinned } => {
                let row = self.artifacts.get_mut(&(tenant, artifact));
                if let Some(row) = row.filter(|row| row.pinned != pinned && row.tombstone.is_none()) {
                    row.pinned = pinned;
                    changed.push(row.clone());
                }
            }
            Retain::Bury(artifacts) => {
                for artifact in artifacts {
                    let row = self.artifacts.get_mut(&(tenant, artifact));
                    if let Some(row) = row.filter(|row| !row.pinned && row.tombstone.is_none()) {
                        row.tombstone = Some(Tombstone { at: now, freed: false });
                        changed.push(row.clone());
                    }
                }
            }
            Retain::Free { contents, before } => {
                for sha256 in contents {
                    let mut rows: Vec<&mut ArtifactRow> = self
                        .artifacts
                        .iter_mut()
                        .filter(|((of, _), row)| *of == tenant && row.artifact.sha256 == sha256)
                        .map(|(_, row)| row)
                        .collect();
                    let all = rows.iter().all(|row| row.tombstone.is_some_and(|stone| stone.at < before));
                    if rows.is_empty() || !all || kept.contains(&sha256) {
                        continue;
                    }
                    for row in &mut rows {
                        row.tombstone = row.tombstone.map(|stone| Tombstone { freed: true, ..stone });
                        changed.push(row.clone());
                    }
                    self.blobs.remove(&(tenant, sha256));
                }
            }
        }
        changed.sort_by_key(|row| row.artifact.id);
        changed
    }

    /// Contents that are no artifacts: menus and setups.
    fn plain_contents(&self, tenant: TenantId) -> HashSet<Digest> {
        let events = self.events.iter().filter(|(key, _)| key.tenant == tenant).flat_map(|(_, events)| events);
        events.flat_map(|event| event.body_ref().names().contents).collect()
    }
}
