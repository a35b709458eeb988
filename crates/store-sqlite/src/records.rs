//! Ordinary rows with an optimistic version.

use portcullis_base::{TenantId, Timestamp};
use portcullis_store::{Record, RecordWrite, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::codec::{id, json, json_at, time_at};
use crate::error::Fail;

fn version(conn: &Connection, tenant: TenantId, kind: &str, id_: &str) -> rusqlite::Result<u64> {
    let version = conn
        .prepare_cached("SELECT version FROM records WHERE tenant = ?1 AND kind = ?2 AND id = ?3")?
        .query_row(params![id(tenant.as_u128()), kind, id_], |row| row.get(0))
        .optional()?;
    Ok(version.unwrap_or(0))
}

/// Whether every expected version holds, before any of them is written.
pub(crate) fn check(conn: &Connection, tenant: TenantId, writes: &[RecordWrite]) -> Result<(), Fail> {
    for write in writes {
        let Some(expected) = write.expected else {
            continue;
        };
        let found = version(conn, tenant, &write.kind, &write.id)?;
        if expected != found {
            return Err(Fail::Refused(StoreError::VersionConflict {
                kind: write.kind.clone(),
                id: write.id.clone(),
                expected,
                found,
            }));
        }
    }
    Ok(())
}

/// Writes one record and returns its new version.
pub(crate) fn write(conn: &Connection, tenant: TenantId, write: &RecordWrite, now: Timestamp) -> rusqlite::Result<u64> {
    let version = version(conn, tenant, &write.kind, &write.id)? + 1;
    match &write.body {
        Some(body) => conn
            .prepare_cached(
                "INSERT INTO records (tenant, kind, id, version, body, updated_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT (tenant, kind, id) DO UPDATE SET version = ?4, body = ?5, updated_at = ?6",
            )?
            .execute(params![id(tenant.as_u128()), write.kind, write.id, version, json(body)?, now.as_micros()])?,
        None => conn
            .prepare_cached("DELETE FROM records WHERE tenant = ?1 AND kind = ?2 AND id = ?3")?
            .execute(params![id(tenant.as_u128()), write.kind, write.id])?,
    };
    Ok(version)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        kind: row.get(0)?,
        id: row.get(1)?,
        version: row.get(2)?,
        body: json_at(row, 3)?,
        updated_at: time_at(row, 4)?,
    })
}

/// One record.
pub(crate) fn one(conn: &Connection, tenant: TenantId, kind: &str, id_: &str) -> rusqlite::Result<Option<Record>> {
    conn.prepare_cached(
        "SELECT kind, id, version, body, updated_at FROM records \
         WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
    )?
    .query_row(params![id(tenant.as_u128()), kind, id_], record)
    .optional()
}

/// All records of a kind, by id.
pub(crate) fn all(conn: &Connection, tenant: TenantId, kind: &str) -> rusqlite::Result<Vec<Record>> {
    conn.prepare_cached(
        "SELECT kind, id, version, body, updated_at FROM records \
         WHERE tenant = ?1 AND kind = ?2 ORDER BY id",
    )?
    .query_map(params![id(tenant.as_u128()), kind], record)?
    .collect()
}
