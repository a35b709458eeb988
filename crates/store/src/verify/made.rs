//! Rows of artifacts against the events that made them. A row is only a copy: what it serves must be what the log names.

use std::collections::BTreeMap;

use portcullis_base::{ArtifactId, ArtifactRef, SessionId, TenantId};
use portcullis_event::facts::{ArtifactStored, Asked, TaskCompleted};
use portcullis_event::{Event, EventBody as _, EventType, Observed};

use crate::{ArtifactRow, SessionKey, Store, StoreError, artifacts_named};

/// Artifacts by id, each as its events name it and in whose log. Events of one artifact say the same of it, unless a log is
/// older than a fact of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(BTreeMap<ArtifactId, Vec<(SessionId, ArtifactRef)>>);

impl Named {
    /// The next event of a log.
    pub fn take_in(&mut self, session: SessionId, event: &Event) {
        if !NAMING.contains(&event.kind) {
            return;
        }
        for artifact in artifacts_named(event) {
            let named = self.0.entry(artifact.id).or_default();
            if !named.iter().any(|(of, known)| *of == session && *known == artifact) {
                named.push((session, artifact));
            }
        }
    }

    /// Whether any event names it.
    pub(super) fn names(&self, artifact: ArtifactId) -> bool {
        self.0.contains_key(&artifact)
    }

    /// What is wrong with a row.
    pub(super) fn fault(&self, row: &ArtifactRow) -> Option<&'static str> {
        match self.0.get(&row.artifact.id) {
            None => Some("no event made it"),
            Some(named)
                if named.iter().any(|(session, artifact)| (session, artifact) == (&row.session, &row.artifact)) =>
            {
                None
            }
            Some(_) => Some("its row says something else than the event that made it"),
        }
    }

    /// Those that none of `rows` is of.
    pub(super) fn without<'a>(
        &'a self,
        rows: &'a std::collections::HashSet<ArtifactId>,
    ) -> impl Iterator<Item = (SessionId, ArtifactId)> + 'a {
        let missing = self.0.iter().filter(|(id, _)| !rows.contains(id));
        missing.filter_map(|(id, named)| Some((named.first()?.0, *id)))
    }
}

/// Types whose events name artifacts.
pub(super) const NAMING: [EventType; 4] = [ArtifactStored::KIND, Asked::KIND, Observed::KIND, TaskCompleted::KIND];

/// Whether an event of its session made a row as it stands. The events that keep artifacts are looked at first, because
/// they are few and small.
///
/// # Errors
/// If the log cannot be read.
pub async fn is_made(store: &dyn Store, tenant: TenantId, row: &ArtifactRow) -> Result<bool, StoreError> {
    let key = SessionKey { tenant, session: row.session };
    for kinds in [&NAMING[..1], &NAMING[1..]] {
        let events = store.of_kinds(key, kinds).await?;
        if events.iter().rev().any(|event| artifacts_named(event).contains(&row.artifact)) {
            return Ok(true);
        }
    }
    Ok(false)
}
