//! Ordinary rows with an optimistic version.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{TenantId, Timestamp};
use portcullis_store::{Record, RecordQuery, RecordWrite, StoreError, index_fields, indexed_kinds, indexed_values};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use crate::codec::{id, json, json_at, time_at};
use crate::error::Fail;
use crate::query::bounded;

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
        Some(body) => {
            let [first, second, third] = indexed_values(&write.kind, body);
            conn.prepare_cached(
                "INSERT INTO records (tenant, kind, id, version, body, updated_at, field_1, field_2, field_3) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                 ON CONFLICT (tenant, kind, id) DO UPDATE SET version = ?4, body = ?5, updated_at = ?6, \
                 field_1 = ?7, field_2 = ?8, field_3 = ?9",
            )?
            .execute(params![
                id(tenant.as_u128()),
                write.kind,
                write.id,
                version,
                json(body)?,
                now.as_micros(),
                first,
                second,
                third
            ])?
        }
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

/// Records of a kind behind an id, with these values in the declared fields. The first wanted field leads: its index is
/// gone through in the order of ids, and the others are looked at in what it gives.
pub(crate) fn find(
    conn: &Connection,
    tenant: TenantId,
    query: &RecordQuery,
    (after, limit): (Option<String>, usize),
) -> rusqlite::Result<Vec<Record>> {
    let (sql, values) = find_sql(tenant, query, after, limit);
    conn.prepare_cached(&sql)?.query_map(params_from_iter(values), record)?.collect()
}

pub(crate) fn find_sql(
    tenant: TenantId,
    query: &RecordQuery,
    after: Option<String>,
    limit: usize,
) -> (String, Vec<Value>) {
    let mut values = vec![Value::Blob(id(tenant.as_u128()).to_vec()), Value::Text(query.kind.clone())];
    let (mut by, mut conditions) = (String::new(), String::new());
    // A field that is not declared was refused before.
    for (at, value) in query.wanted().unwrap_or_default().into_iter().enumerate() {
        let Some(value) = value else { continue };
        let field = format!("field_{}", at + 1);
        if by.is_empty() {
            by = format!(" INDEXED BY records_{field}");
        }
        conditions.push_str(&format!(" AND {field} = ?"));
        values.push(Value::Text(value.to_owned()));
    }
    if let Some(after) = after {
        conditions.push_str(" AND id > ?");
        values.push(Value::Text(after));
    }
    values.push(Value::Integer(bounded(limit)));
    let sql = format!(
        "SELECT kind, id, version, body, updated_at FROM records{by} WHERE tenant = ? AND kind = ?{conditions} \
         ORDER BY id LIMIT ?"
    );
    (sql, values)
}

/// Whether rows of every kind were indexed by the fields that the kind declares now.
pub(crate) fn is_indexed(conn: &Connection) -> rusqlite::Result<bool> {
    let mut known: BTreeMap<String, String> = conn
        .prepare("SELECT kind, fields FROM record_kinds")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut same = true;
    for kind in indexed_kinds() {
        same &= known.remove(kind) == Some(json(&index_fields(kind))?);
    }
    Ok(same && known.is_empty())
}

/// Indexes the rows of every kind by the fields that it declares now.
pub(crate) fn index_all(conn: &Connection) -> rusqlite::Result<()> {
    let declared: BTreeSet<&str> = indexed_kinds().collect();
    conn.execute("UPDATE records SET field_1 = NULL, field_2 = NULL, field_3 = NULL", [])?;
    let mut of_kind = conn.prepare("SELECT tenant, id, body FROM records WHERE kind = ?1")?;
    let mut write = conn.prepare(
        "UPDATE records SET field_1 = ?4, field_2 = ?5, field_3 = ?6 WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
    )?;
    conn.execute("DELETE FROM record_kinds", [])?;
    for kind in declared {
        let rows: Vec<(Vec<u8>, String, String)> =
            of_kind.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
        for (tenant, id, body) in rows {
            // A body that is no JSON is found by no field; who reads it is told so.
            let body = serde_json::from_str(&body).unwrap_or_default();
            let [first, second, third] = indexed_values(kind, &body);
            write.execute(params![tenant, kind, id, first, second, third])?;
        }
        let fields = json(&index_fields(kind))?;
        conn.execute("INSERT INTO record_kinds (kind, fields) VALUES (?1, ?2)", params![kind, fields])?;
    }
    Ok(())
}
