//! Which session began which, and which was forked from which.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::facts::SessionForked;
use portcullis_event::{Body, EventBody as _};
use portcullis_store::{Log, Pages, SessionKey, SessionSummary, StoreError};

/// Sessions that are looked at, the newest.
pub const SESSIONS: usize = 10_000;

/// Sessions by the one that began them.
pub struct Forest {
    sessions: BTreeMap<SessionId, SessionSummary>,
    children: BTreeMap<SessionId, Vec<SessionId>>,
    roots: Vec<SessionId>,
    /// Forks by what they were forked from.
    forks: BTreeMap<SessionId, SessionId>,
}

/// One session of a tree.
pub struct Branch<'a> {
    pub summary: &'a SessionSummary,
    pub forked_from: Option<SessionId>,
    /// How many stand above it in the tree.
    pub depth: usize,
    /// Whether it is the last of its parent's.
    pub is_last: bool,
}

impl Forest {
    /// That of a tenant.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read(log: &dyn Log, tenant: TenantId) -> Result<Self, StoreError> {
        let all = log.sessions(tenant, SESSIONS).await?;
        let forks = forks(log, tenant, &all).await?;
        Ok(Self::of(all, forks))
    }

    /// Oldest first at every level. A session whose parent is not here, or leads back to itself, is a root.
    #[must_use]
    pub fn of(all: Vec<SessionSummary>, forks: BTreeMap<SessionId, SessionId>) -> Self {
        let sessions: BTreeMap<_, _> = all.into_iter().map(|summary| (summary.session_id, summary)).collect();
        let began_by = |id: SessionId| sessions.get(&id).and_then(|s| s.row.parent_session_id);
        let parent = |id: SessionId| began_by(id).or_else(|| forks.get(&id).copied());
        let mut order: Vec<&SessionSummary> = sessions.values().collect();
        order.sort_by_key(|summary| (summary.row.created_at, summary.session_id));
        let (mut children, mut roots) = (BTreeMap::<SessionId, Vec<SessionId>>::new(), Vec::new());
        let mut sound = BTreeSet::new();
        for id in order.into_iter().map(|summary| summary.session_id) {
            match parent(id).filter(|parent| sessions.contains_key(parent)) {
                Some(up) if !leads_back(id, &parent, &mut sound) => children.entry(up).or_default().push(id),
                _ => roots.push(id),
            }
        }
        Self { sessions, children, roots, forks }
    }

    /// The sessions that none began, or the one that is asked for.
    ///
    /// # Errors
    /// [`StoreError::NoSession`] if that one is not among those that were looked at.
    pub fn roots(&self, of: Option<SessionId>) -> Result<Vec<SessionId>, StoreError> {
        match of {
            Some(session) if !self.sessions.contains_key(&session) => Err(StoreError::NoSession(session)),
            Some(session) => Ok(vec![session]),
            None => Ok(self.roots.clone()),
        }
    }

    /// Whether there may be older ones that were not looked at.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.sessions.len() == SESSIONS
    }

    /// A session with all beneath it, parents before children. Without recursion: a log from elsewhere may be as deep as
    /// it likes.
    #[must_use]
    pub fn beneath(&self, root: SessionId) -> Vec<Branch<'_>> {
        let (mut found, mut open) = (Vec::new(), vec![(root, 0, true)]);
        while let Some((id, depth, is_last)) = open.pop() {
            let Some(summary) = self.sessions.get(&id) else { continue };
            let children = self.children.get(&id).map(Vec::as_slice).unwrap_or_default();
            let placed = children.iter().enumerate().rev();
            open.extend(placed.map(|(at, child)| (*child, depth + 1, at + 1 == children.len())));
            found.push(Branch { summary, forked_from: self.forks.get(&id).copied(), depth, is_last });
        }
        found
    }
}

/// The sessions that were forked from this one, as far as the newest are looked at.
///
/// # Errors
/// If the store cannot be read.
pub async fn forks_of(log: &dyn Log, key: SessionKey) -> Result<Vec<SessionId>, StoreError> {
    let all = log.sessions(key.tenant, SESSIONS).await?;
    let forks = forks(log, key.tenant, &all).await?;
    Ok(forks.into_iter().filter(|(_, from)| *from == key.session).map(|(fork, _)| fork).collect())
}

/// Where forks come from, which only their logs say. A fork begins with the events of the first session, times included:
/// only logs that began in the same instant are read.
async fn forks(
    log: &dyn Log,
    tenant: TenantId,
    all: &[SessionSummary],
) -> Result<BTreeMap<SessionId, SessionId>, StoreError> {
    let mut began: BTreeMap<Timestamp, Vec<SessionId>> = BTreeMap::new();
    for summary in all {
        began.entry(summary.row.created_at).or_default().push(summary.session_id);
    }
    let mut found = BTreeMap::new();
    for session in began.into_values().filter(|same| same.len() > 1).flatten() {
        let mut pages = Pages::of(log, SessionKey { tenant, session });
        while let Some(page) = pages.next().await? {
            for event in page.iter().filter(|event| event.kind == SessionForked::KIND) {
                // The last one is its own: a fork of a fork has the other's as well.
                if let Body::SessionForked(fact) = event.body() {
                    found.insert(session, fact.from_session_id);
                }
            }
        }
    }
    Ok(found)
}

/// Whether the parents of a session come round to one seen before, which only a made-up log can do. `sound` are those
/// whose parents end, so that a deep tree is walked once.
fn leads_back(id: SessionId, parent: &dyn Fn(SessionId) -> Option<SessionId>, sound: &mut BTreeSet<SessionId>) -> bool {
    let mut path = BTreeSet::new();
    let mut at = Some(id);
    while let Some(here) = at.filter(|here| !sound.contains(here)) {
        if !path.insert(here) {
            return true;
        }
        at = parent(here);
    }
    sound.append(&mut path);
    false
}
