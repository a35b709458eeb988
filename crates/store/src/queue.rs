//! Who is served first (store §6): a pure order of due sessions, and how tenants share what there is. Backends only find
//! the candidates.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use portcullis_base::limits::{SWEEP_BATCH, WAKE_AGE_STEP};
use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::facts::Priority;

use crate::{Head, SessionKey};

/// A session that could be claimed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub key: SessionKey,
    pub priority: Priority,
    pub due_at: Timestamp,
}

impl Due {
    /// `None` if the session is not due yet.
    #[must_use]
    pub fn of(key: SessionKey, head: &Head, now: Timestamp) -> Option<Self> {
        let due_at = head.next_due_at.filter(|at| *at <= now)?;
        Some(Self { key, priority: head.priority, due_at })
    }

    /// The place in the line; smaller is served first.
    fn rank(&self, now: Timestamp) -> (Reverse<Priority>, Timestamp, SessionId) {
        (Reverse(urgency(self.priority, self.due_at, now)), self.due_at, self.key.session)
    }
}

/// How urgent something is that is due since `due_at`: one level more for each minute it has waited. What has reached the
/// highest stands before everything that became due later, so nothing waits for ever.
#[must_use]
pub fn urgency(priority: Priority, due_at: Timestamp, now: Timestamp) -> Priority {
    let steps = now.since(due_at).as_micros() / WAKE_AGE_STEP.as_micros();
    Priority::of_level(u64::from(priority.level()).saturating_add(u64::try_from(steps).unwrap_or(u64::MAX)))
}

/// The first `limit` of one tenant's candidates: the most urgent, then the longest due.
///
/// Within one priority the longest due are the most urgent, so the first `limit` of each priority are candidates enough.
#[must_use]
pub fn by_urgency(mut due: Vec<Due>, limit: usize, now: Timestamp) -> Vec<Due> {
    due.sort_by_key(|due| due.rank(now));
    due.truncate(limit);
    due
}

/// How tenants share the workers of one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fairness {
    /// Live leases that one tenant may have at once, whichever processes hold them.
    pub per_tenant_max: usize,
}

/// What a sweep changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepResult {
    /// Sessions that became due because an ask of theirs has expired.
    pub expired: usize,
    /// Responses of idempotent requests that were forgotten.
    pub forgotten: usize,
}

impl SweepResult {
    /// Whether a batch was full: there may be more.
    #[must_use]
    pub fn more(&self) -> bool {
        self.expired.max(self.forgotten) >= SWEEP_BATCH
    }
}

/// Up to `limit` of the candidates of several tenants. The tenant with the fewest leases is next: a priority is a
/// tenant's own word, so it says nothing to the others. `held` = live leases of each tenant.
#[must_use]
pub fn fair_share(
    due: BTreeMap<TenantId, Vec<Due>>,
    mut held: BTreeMap<TenantId, usize>,
    limit: usize,
    fairness: Fairness,
    now: Timestamp,
) -> Vec<Due> {
    let mut lines: BTreeMap<TenantId, VecDeque<Due>> =
        due.into_iter().map(|(tenant, due)| (tenant, by_urgency(due, limit, now).into())).collect();
    let mut chosen = Vec::new();
    while chosen.len() < limit {
        let next = lines
            .iter()
            .filter_map(|(tenant, line)| {
                Some((held.get(tenant).copied().unwrap_or(0), line.front()?.rank(now), *tenant))
            })
            .filter(|(held, ..)| *held < fairness.per_tenant_max)
            .min();
        let Some((_, _, tenant)) = next else { break };
        chosen.extend(lines.get_mut(&tenant).and_then(VecDeque::pop_front));
        *held.entry(tenant).or_default() += 1;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn ago(secs: i64) -> Timestamp {
        Timestamp::from_micros(NOW.as_micros() - secs * 1_000_000)
    }

    fn due(tenant: u128, session: u128, priority: Priority, secs: i64) -> Due {
        let key = SessionKey { tenant: TenantId::from_u128(tenant), session: SessionId::from_u128(session) };
        Due { key, priority, due_at: ago(secs) }
    }

    fn sessions(due: &[Due]) -> Vec<u128> {
        due.iter().map(|due| due.key.session.as_u128()).collect()
    }

    #[test]
    fn f13_a_minute_of_waiting_is_one_level_and_the_longest_waiting_overtakes_all() {
        use Priority::{High, Low, Normal};
        assert_eq!(urgency(Low, ago(59), NOW), Low);
        assert_eq!(urgency(Low, ago(60), NOW), Normal);
        assert_eq!(urgency(Low, ago(120), NOW), High);
        assert_eq!(urgency(Normal, ago(60), NOW), High);
        assert_eq!(urgency(High, ago(10_000), NOW), High);
        // A clock that went back: due in the future has not waited.
        assert_eq!(urgency(Low, NOW.plus(Duration::from_secs(600)), NOW), Low);
        let line = vec![
            due(1, 1, High, 0),
            due(1, 2, Low, 121),
            due(1, 3, Normal, 59),
            due(1, 4, Low, 61),
            due(1, 5, High, 0),
            due(1, 6, Low, 5),
        ];
        assert_eq!(sessions(&by_urgency(line.clone(), 9, NOW)), [2, 1, 5, 4, 3, 6]);
        assert_eq!(sessions(&by_urgency(line, 2, NOW)), [2, 1]);
    }

    #[test]
    fn f13_tenants_take_turns_and_none_passes_its_limit() {
        let flood: Vec<Due> = (0..100).map(|n| due(1, n, Priority::High, 500)).collect();
        let few = vec![due(2, 200, Priority::Low, 0), due(2, 201, Priority::Low, 1)];
        let all = BTreeMap::from([(TenantId::from_u128(1), flood), (TenantId::from_u128(2), few)]);
        let share = |held: BTreeMap<TenantId, usize>, limit, per_tenant_max| {
            sessions(&fair_share(all.clone(), held, limit, Fairness { per_tenant_max }, NOW))
        };
        assert_eq!(share(BTreeMap::new(), 4, 10), [0, 201, 1, 200]);
        assert_eq!(share(BTreeMap::new(), 9, 3), [0, 201, 1, 200, 2], "three of the flood, and no more");
        let busy = BTreeMap::from([(TenantId::from_u128(1), 3)]);
        assert_eq!(share(busy.clone(), 9, 3), [201, 200], "those it has already count");
        assert_eq!(share(busy, 3, 9), [201, 200, 3 - 3], "without a limit in the way it goes on after the others");
    }
}
