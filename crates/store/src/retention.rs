//! What a policy takes (store §8, §11): which artifacts have expired, and the two steps by which they go. First the row
//! becomes a tombstone, which keeps hash and size; a day later the bytes go, if no other row has them. Without a policy
//! nothing that an event names ever goes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use portcullis_base::{ArtifactId, Digest, SessionId, TenantId, Timestamp};
use portcullis_event::SessionStatus;

use crate::gc::grace;
use crate::{ArtifactRow, SessionKey, Store, StoreError};

/// Rows read at once.
const PAGE: usize = 500;

/// A change of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retain {
    /// No policy takes it from now on, or may again.
    Pin { artifact: ArtifactId, pinned: bool },
    /// These become tombstones, unless they are pinned or are tombstones already.
    Bury(Vec<ArtifactId>),
    /// The bytes of these contents go, where every row that has them became a tombstone before `before` and no menu is
    /// made of them. Files are the caller's to delete first.
    Free { contents: Vec<Digest>, before: Timestamp },
}

/// What someone set; nothing goes by a limit that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Artifacts of sessions in which nothing happened for so long.
    pub idle: Option<Duration>,
    /// The newest so many stay.
    pub count: Option<u64>,
    /// The newest that fit into so many bytes stay.
    pub bytes: Option<u64>,
}

/// Which limit an artifact is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetentionLimit {
    Idle,
    Count,
    Bytes,
}

impl RetentionLimit {
    /// The key of the configuration that says so.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Idle => "artifact_idle",
            Self::Count => "artifact_count",
            Self::Bytes => "artifact_bytes",
        }
    }
}

/// Every artifact of a tenant, and when its session was last written.
pub struct HeldArtifacts {
    rows: Vec<ArtifactRow>,
    /// `None`: the session is at work, or someone is asked about it; nothing of it goes.
    quiet_since: HashMap<SessionId, Option<Timestamp>>,
}

impl HeldArtifacts {
    /// Reads all rows.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read(store: &dyn Store, tenant: TenantId, now: Timestamp) -> Result<Self, StoreError> {
        let (mut rows, mut after): (Vec<ArtifactRow>, _) = (Vec::new(), None);
        loop {
            let page = store.artifacts(tenant, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.artifact.id);
            rows.extend(page);
        }
        let mut quiet_since = HashMap::new();
        for session in rows.iter().map(|row| row.session).collect::<HashSet<_>>() {
            let head = store.head(SessionKey { tenant, session }).await?;
            let at_work = head.as_ref().is_some_and(|head| {
                head.blocked_n > 0
                    || head.status == SessionStatus::Running
                    || head.lease_until.is_some_and(|until| until > now)
            });
            quiet_since.insert(session, head.filter(|_| !at_work).map(|head| head.updated_at));
        }
        Ok(Self { rows, quiet_since })
    }

    fn living(&self) -> impl Iterator<Item = &ArtifactRow> {
        self.rows.iter().filter(|row| row.tombstone.is_none())
    }

    /// How many are tombstones.
    #[must_use]
    pub fn expired_before(&self) -> usize {
        self.rows.len() - self.living().count()
    }

    /// What is over a limit of the policy, largest first. Pinned ones count, and stay.
    #[must_use]
    pub fn expired(&self, policy: &Retention, now: Timestamp) -> Vec<(ArtifactRow, RetentionLimit)> {
        let idle_since = policy.idle.map(|idle| earlier(now, idle));
        let (mut count, mut bytes, mut seen) = (0u64, 0u64, HashSet::new());
        let mut found = Vec::new();
        // Ids rise with time: from the newest on.
        for row in self.living().collect::<Vec<_>>().into_iter().rev() {
            count += 1;
            if seen.insert(row.artifact.sha256) {
                bytes = bytes.saturating_add(row.artifact.bytes);
            }
            let Some(since) = self.quiet_since.get(&row.session).copied().flatten() else { continue };
            let why = if idle_since.is_some_and(|limit| since < limit) {
                RetentionLimit::Idle
            } else if policy.count.is_some_and(|most| count > most) {
                RetentionLimit::Count
            } else if policy.bytes.is_some_and(|most| bytes > most) {
                RetentionLimit::Bytes
            } else {
                continue;
            };
            if !row.pinned {
                found.push((row.clone(), why));
            }
        }
        found.sort_by_key(|(row, _)| (std::cmp::Reverse(row.artifact.bytes), row.artifact.id));
        found
    }

    /// Tombstones whose grace is over and whose bytes no living row has: one for each content, largest first.
    #[must_use]
    pub fn freeable(&self, now: Timestamp) -> Vec<ArtifactRow> {
        let before = grace(now);
        let waits = |row: &ArtifactRow| row.tombstone.is_none_or(|stone| stone.at >= before);
        let mut kept: HashSet<Digest> =
            self.rows.iter().filter(|row| waits(row)).map(|row| row.artifact.sha256).collect();
        let buried = self.rows.iter().filter(|row| row.tombstone.is_some_and(|stone| !stone.freed));
        let mut found: Vec<ArtifactRow> = buried.filter(|row| kept.insert(row.artifact.sha256)).cloned().collect();
        found.sort_by_key(|row| (std::cmp::Reverse(row.artifact.bytes), row.artifact.id));
        found
    }

    /// The largest that stay, each content once.
    #[must_use]
    pub fn large(&self, least: u64, most: usize) -> Vec<ArtifactRow> {
        let mut seen = HashSet::new();
        let large = self.living().filter(|row| row.artifact.bytes >= least && seen.insert(row.artifact.sha256));
        let mut found: Vec<ArtifactRow> = large.cloned().collect();
        found.sort_by_key(|row| (std::cmp::Reverse(row.artifact.bytes), row.artifact.id));
        found.truncate(most);
        found
    }
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(by))
}
