//! Head rows, and the two orders in which they are looked for: those that are free and due, and those that are held.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::facts::Priority;

use crate::{Due, Head, HeadUpdate, SessionKey};

/// The least and the greatest id: the ends of a tenant's range.
const FIRST: SessionId = SessionId::from_u128(0);
const LAST: SessionId = SessionId::from_u128(u128::MAX);

#[derive(Default)]
pub(super) struct Heads {
    rows: BTreeMap<SessionKey, Head>,
    /// Free sessions that are due at some time.
    ready: BTreeSet<(TenantId, Priority, Timestamp, SessionId)>,
    leased: BTreeSet<SessionKey>,
}

impl Heads {
    pub(super) fn get(&self, key: &SessionKey) -> Option<&Head> {
        self.rows.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&SessionKey, &Head)> {
        self.rows.iter()
    }

    /// Changes a row by column; a row that is not there is written whole.
    pub(super) fn apply(&mut self, key: SessionKey, update: HeadUpdate) {
        match self.rows.get(&key).cloned() {
            Some(mut head) => {
                update.apply_to(&mut head);
                self.put(key, head);
            }
            None => self.put(key, update.after),
        }
    }

    /// The only way in: the orders always fit the rows.
    fn put(&mut self, key: SessionKey, head: Head) {
        if let Some(place) = self.rows.get(&key).and_then(|old| place(key, old)) {
            self.ready.remove(&place);
        }
        self.ready.extend(place(key, &head));
        if head.lease_owner.is_some() {
            self.leased.insert(key);
        } else {
            self.leased.remove(&key);
        }
        self.rows.insert(key, head);
    }

    /// The first `limit` free sessions of each priority that are due now.
    pub(super) fn ready(&self, tenant: TenantId, limit: usize, now: Timestamp) -> Vec<Due> {
        let due = |priority| {
            let range = (tenant, priority, Timestamp::from_micros(i64::MIN), FIRST)..=(tenant, priority, now, LAST);
            self.ready.range(range).take(limit)
        };
        let place =
            |&(tenant, priority, due_at, session): &_| Due { key: SessionKey { tenant, session }, priority, due_at };
        Priority::ALL.into_iter().flat_map(due).map(place).collect()
    }

    /// Tenants with a session that is free and due at some time, and those with a held one.
    pub(super) fn tenants(&self) -> BTreeSet<TenantId> {
        let mut found: BTreeSet<TenantId> = self.leased.iter().map(|key| key.tenant).collect();
        let mut next = self.ready.first();
        while let Some((tenant, ..)) = next {
            found.insert(*tenant);
            let end = (*tenant, Priority::High, Timestamp::from_micros(i64::MAX), LAST);
            next = self.ready.range((std::ops::Bound::Excluded(end), std::ops::Bound::Unbounded)).next();
        }
        found
    }

    pub(super) fn leased(&self, tenant: TenantId) -> impl Iterator<Item = (SessionKey, &Head)> {
        let all = SessionKey { tenant, session: FIRST }..=SessionKey { tenant, session: LAST };
        self.leased.range(all).filter_map(|key| Some((*key, self.rows.get(key)?)))
    }
}

fn place(key: SessionKey, head: &Head) -> Option<(TenantId, Priority, Timestamp, SessionId)> {
    let due_at = head.next_due_at.filter(|_| head.lease_owner.is_none())?;
    Some((key.tenant, head.priority, due_at, key.session))
}
