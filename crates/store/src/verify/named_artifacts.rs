//! Rows of artifacts against the events that made them. A row is only a copy: what it serves must be what the log names.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{ArtifactId, ArtifactRef, Digest, SessionId, TenantId};
use portcullis_event::facts::{ArtifactStored, ArtifactsExpired, PermissionAsked, TaskCompleted};
use portcullis_event::{Body, Event, EventBody as _, EventType, Observed, operator_log_of};

use crate::{ArtifactRow, CONTENT_KINDS, SessionKey, Store, StoreError, artifacts_named};

/// Artifacts by id, each as its events name it and in whose log. Events of one artifact say the same of it, unless a log is
/// older than a fact of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedArtifacts {
    /// Whose word it is that an artifact expired.
    operator_log: SessionId,
    artifacts: BTreeMap<ArtifactId, Vec<(SessionId, ArtifactRef)>>,
    /// Menus and setups by the hash of their content, and a log that names each.
    contents: BTreeMap<Digest, SessionId>,
    /// Artifacts of which the operator log says that they expired.
    expired: BTreeSet<ArtifactId>,
}

impl NamedArtifacts {
    /// Nothing yet.
    #[must_use]
    pub fn by_logs_of(tenant: TenantId) -> Self {
        let operator_log = operator_log_of(tenant);
        Self { operator_log, artifacts: BTreeMap::new(), contents: BTreeMap::new(), expired: BTreeSet::new() }
    }

    /// The next event of a log.
    pub fn take_in(&mut self, session: SessionId, event: &Event) {
        if let Body::ArtifactsExpired(gone) = &*event.body_ref()
            && session == self.operator_log
        {
            self.expired.extend(&gone.artifacts);
        }
        if CONTENT_KINDS.contains(&event.kind) {
            for hash in event.body_ref().names().contents {
                self.contents.entry(hash).or_insert(session);
            }
        }
        if !NAMING.contains(&event.kind) {
            return;
        }
        for artifact in artifacts_named(event) {
            let named = self.artifacts.entry(artifact.id).or_default();
            if !named.iter().any(|(of, known)| *of == session && *known == artifact) {
                named.push((session, artifact));
            }
        }
    }

    /// Whether any event names it.
    pub(super) fn names(&self, artifact: ArtifactId) -> bool {
        self.artifacts.contains_key(&artifact)
    }

    /// Whether the operator log says that it expired.
    pub(super) fn expired(&self, artifact: ArtifactId) -> bool {
        self.expired.contains(&artifact)
    }

    /// Every menu and setup, with a log that names it.
    pub(super) fn contents(&self) -> impl Iterator<Item = (Digest, SessionId)> + '_ {
        self.contents.iter().map(|(hash, session)| (*hash, *session))
    }

    /// What the logs of these say now of what may have come or gone since they were read.
    pub(super) async fn again(
        store: &dyn Store,
        tenant: TenantId,
        session: SessionId,
        kinds: &[EventType],
    ) -> Result<Self, StoreError> {
        let mut now = Self::by_logs_of(tenant);
        let events = store.of_kinds(SessionKey { tenant, session }, kinds).await?;
        events.iter().for_each(|event| now.take_in(session, event));
        Ok(now)
    }

    /// The same of what the operator log says.
    pub(super) async fn expired_by_now(store: &dyn Store, tenant: TenantId) -> Result<Self, StoreError> {
        Self::again(store, tenant, operator_log_of(tenant), &[ArtifactsExpired::KIND]).await
    }

    /// What is wrong with a row.
    pub(super) fn fault(&self, row: &ArtifactRow) -> Option<&'static str> {
        match self.artifacts.get(&row.artifact.id) {
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
        let missing = self.artifacts.iter().filter(|(id, _)| !rows.contains(id));
        missing.filter_map(|(id, named)| Some((named.first()?.0, *id)))
    }
}

/// Types whose events name artifacts.
pub(super) const NAMING: [EventType; 4] =
    [ArtifactStored::KIND, PermissionAsked::KIND, Observed::KIND, TaskCompleted::KIND];

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
