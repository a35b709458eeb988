//! Which sessions could be claimed: index ranges, never a walk over sessions that are not due or that someone holds.

use portcullis_base::{SessionId, TenantId, Timestamp};
use portcullis_event::facts::Priority;
use portcullis_store::{Due, LeaseOwner, Liveness, LivenessOracle, SessionKey};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::codec::{id, id_at, json_at, time_at};
use crate::query::bounded;

/// Free and due, of one priority.
const FREE: &str = "SELECT session, next_due_at FROM session_heads INDEXED BY heads_ready \
                    WHERE tenant = ?1 AND priority = ?2 AND lease_owner IS NULL AND next_due_at IS NOT NULL \
                    AND next_due_at <= ?3 ORDER BY next_due_at, session LIMIT ?4";
/// Due, of one priority, under a lease of one holder that is over.
const LEFT: &str = "SELECT session, next_due_at FROM session_heads INDEXED BY heads_held \
                    WHERE tenant = ?1 AND lease_owner = ?2 AND priority = ?3 AND next_due_at <= ?4 \
                    AND lease_until <= ?5 ORDER BY next_due_at, session LIMIT ?6";
/// Leases of one holder that still count.
const LIVE: &str = "SELECT count(*) FROM session_heads INDEXED BY heads_held \
                    WHERE tenant = ?1 AND lease_owner = ?2 AND lease_until > ?3";
/// The next step over holders and over tenants.
const NEXT_HOLDER: &str = "SELECT lease_owner FROM session_heads INDEXED BY heads_held \
                           WHERE tenant = ?1 AND lease_owner > ?2 ORDER BY lease_owner LIMIT 1";
const NEXT_FREE_TENANT: &str = "SELECT tenant FROM session_heads INDEXED BY heads_ready WHERE tenant > ?1 \
                                AND lease_owner IS NULL AND next_due_at IS NOT NULL ORDER BY tenant LIMIT 1";
const NEXT_HELD_TENANT: &str = "SELECT tenant FROM session_heads INDEXED BY heads_held WHERE tenant > ?1 \
                                AND lease_owner IS NOT NULL ORDER BY tenant LIMIT 1";

/// Candidates of a tenant: the first `limit` of each priority that are free, and of each holder that is gone; with the
/// number of leases that still count.
pub(crate) fn of_tenant(
    conn: &Connection,
    liveness: &dyn LivenessOracle,
    (tenant, limit, now): (TenantId, usize, Timestamp),
) -> rusqlite::Result<(Vec<Due>, usize)> {
    let mut due = Vec::new();
    for priority in Priority::ALL {
        let mut free = conn.prepare_cached(FREE)?;
        let rows = free
            .query_map(params![id(tenant.as_u128()), priority.level(), now.as_micros(), bounded(limit)], |row| {
                due_at(row, tenant, priority)
            })?;
        due.extend(rows.collect::<rusqlite::Result<Vec<Due>>>()?);
    }
    let mut live = 0;
    for (text, owner) in holders(conn, tenant)? {
        // Of a dead holder every lease is over, of another one those that ran out.
        let over = if liveness.liveness(&owner) == Liveness::Dead { Timestamp::from_micros(i64::MAX) } else { now };
        live += conn
            .prepare_cached(LIVE)?
            .query_row(params![id(tenant.as_u128()), text, over.as_micros()], |row| row.get::<_, usize>(0))?;
        for priority in Priority::ALL {
            let mut left = conn.prepare_cached(LEFT)?;
            let values = params![
                id(tenant.as_u128()),
                text,
                priority.level(),
                now.as_micros(),
                over.as_micros(),
                bounded(limit)
            ];
            let rows = left.query_map(values, |row| due_at(row, tenant, priority))?;
            due.extend(rows.collect::<rusqlite::Result<Vec<Due>>>()?);
        }
    }
    Ok((due, live))
}

fn due_at(row: &rusqlite::Row<'_>, tenant: TenantId, priority: Priority) -> rusqlite::Result<Due> {
    let session = SessionId::from_u128(id_at(row, 0)?);
    Ok(Due { key: SessionKey { tenant, session }, priority, due_at: time_at(row, 1)? })
}

/// Everyone who holds a session of a tenant: one step in the index for each, however many sessions each has.
fn holders(conn: &Connection, tenant: TenantId) -> rusqlite::Result<Vec<(String, LeaseOwner)>> {
    let mut next = conn.prepare_cached(NEXT_HOLDER)?;
    let mut found: Vec<(String, LeaseOwner)> = Vec::new();
    loop {
        let after = found.last().map_or("", |(text, _)| text);
        let one = next
            .query_row(params![id(tenant.as_u128()), after], |row| Ok((row.get::<_, String>(0)?, json_at(row, 0)?)))
            .optional()?;
        match one {
            Some(owner) => found.push(owner),
            None => return Ok(found),
        }
    }
}

/// Tenants with a session that is due at some time or that someone holds, likewise in one step each.
pub(crate) fn tenants(conn: &Connection) -> rusqlite::Result<Vec<TenantId>> {
    let mut found = Vec::new();
    for sql in [NEXT_FREE_TENANT, NEXT_HELD_TENANT] {
        let mut next = conn.prepare_cached(sql)?;
        // Shorter than any id, so before the first one.
        let mut after: Vec<u8> = Vec::new();
        while let Some(tenant) = next.query_row(params![after], |row| id_at(row, 0)).optional()? {
            after = id(tenant).to_vec();
            found.push(TenantId::from_u128(tenant));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_found_by_index_and_never_by_a_walk_over_all_sessions() {
        let conn = Connection::open_in_memory().expect("SQLite opens in memory");
        crate::migrate::migrate(&conn, Timestamp::from_micros(1), std::path::Path::new("")).expect("the schema");
        for sql in [FREE, LEFT, LIVE, NEXT_HOLDER, NEXT_FREE_TENANT, NEXT_HELD_TENANT] {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it can be explained");
            let count = explain.parameter_count();
            let steps: Vec<String> = explain
                .query_map(rusqlite::params_from_iter(std::iter::repeat_n(0, count)), |row| row.get(3))
                .expect("a plan")
                .collect::<rusqlite::Result<_>>()
                .expect("steps");
            let sought = steps.iter().all(|step| step.starts_with("SEARCH") && step.contains("INDEX heads_"));
            assert!(sought, "{sql}: {steps:?}");
        }
    }
}
