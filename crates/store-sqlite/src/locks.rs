//! Scheduler keys: which are held in a location, and how an append takes and gives them back.

use portcullis_base::{LocationId, SessionId, TenantId, Timestamp};
use portcullis_store::{Commit, HeldLock, Writer, lingers_until};
use rusqlite::{Connection, params};

use crate::codec::{id, id_at};

/// All keys that are held in a location, by name.
pub(crate) fn held(conn: &Connection, tenant: TenantId, location: LocationId) -> rusqlite::Result<Vec<HeldLock>> {
    conn.prepare_cached("SELECT key, session, until FROM locks WHERE tenant = ?1 AND location = ?2 ORDER BY key")?
        .query_map(params![id(tenant.as_u128()), id(location.as_u128())], |row| {
            let session = SessionId::from_u128(id_at(row, 1)?);
            Ok(HeldLock { key: row.get(0)?, session, until: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_micros) })
        })?
        .collect()
}

/// Writes what a commit does to keys; whether it may take them was decided before.
pub(crate) fn write(conn: &Connection, commit: &Commit, now: Timestamp) -> rusqlite::Result<()> {
    let (tenant, session) = (id(commit.key.tenant.as_u128()), id(commit.key.session.as_u128()));
    for lock in &commit.free {
        conn.prepare_cached("DELETE FROM locks WHERE tenant = ?1 AND location = ?2 AND key = ?3 AND session = ?4")?
            .execute(params![tenant, id(lock.location.as_u128()), lock.key, session])?;
    }
    let until = lingers_until(now).as_micros();
    for lock in &commit.linger {
        conn.prepare_cached(
            "UPDATE locks SET until = ?5 WHERE tenant = ?1 AND location = ?2 AND key = ?3 AND session = ?4",
        )?
        .execute(params![tenant, id(lock.location.as_u128()), lock.key, session, until])?;
    }
    let fence = match &commit.writer {
        Writer::Worker { fence, .. } => Some(*fence),
        Writer::Client | Writer::Outbox { .. } => None,
    };
    for lock in &commit.take {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO locks (tenant, location, key, session, fence) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![tenant, id(lock.location.as_u128()), lock.key, session, fence])?;
    }
    Ok(())
}
