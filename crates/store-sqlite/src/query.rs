//! What readers ask: one function a question, each a statement or two in one short transaction.

use portcullis_base::{
    ArtifactId, ArtifactRef, AskId, Digest, EventId, IntentId, InvocationId, SessionId, TenantId, Timestamp,
};
use portcullis_event::facts::AtRoot;
use portcullis_event::{Event, EventType, SessionRow, ledger_of, operator_log_of};
use portcullis_store::{
    ArtifactRow, AskFilter, AskRow, Checkpoint, IntentRow, SessionKey, SessionSummary, Snapshot, Tombstone,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::codec::{digest_at, flag_at, id, id_at, json_at, opt_id_at, opt_time_at, opt_word_at, time_at, word_at};
use crate::{heads, runs};

/// A limit as SQLite takes it.
pub(crate) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Events after a seq.
pub(crate) fn events(conn: &Connection, key: SessionKey, after: u64, limit: usize) -> rusqlite::Result<Vec<Event>> {
    let mut found = Vec::new();
    runs::events_while(conn, key, (after, limit), |event| {
        found.push(event);
        true
    })?;
    Ok(found)
}

/// Events of some types. Only those are unpacked.
pub(crate) fn of_kinds(conn: &Connection, key: SessionKey, kinds: &[EventType]) -> rusqlite::Result<Vec<Event>> {
    let Some(log) = runs::log_of(conn, key)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut typed = conn.prepare_cached("SELECT seq, type FROM events WHERE log = ?1 ORDER BY seq")?;
    let mut rows = typed.query(params![log])?;
    while let Some(row) = rows.next()? {
        let kind = row.get_ref(1)?.as_str()?;
        if kinds.iter().any(|wanted| wanted.as_str() == kind) {
            let seq: u64 = row.get(0)?;
            found.extend(events(conn, key, seq.saturating_sub(1), 1)?);
        }
    }
    Ok(found)
}

/// Columns of [`session_row`].
pub(crate) const SESSION: &str =
    "s.session, s.root, s.parent, s.title, s.tags, s.created_at, s.config_hash, s.workspace";

/// Reads a session's id and row from [`SESSION`], the first columns.
pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<(SessionId, SessionRow)> {
    let columns = SessionRow {
        root_session_id: SessionId::from_u128(id_at(row, 1)?),
        parent_session_id: opt_id_at(row, 2)?.map(SessionId::from_u128),
        title: row.get(3)?,
        tags: json_at(row, 4)?,
        created_at: time_at(row, 5)?,
        config_hash: digest_at(row, 6)?,
        workspace: row.get(7)?,
    };
    Ok((SessionId::from_u128(id_at(row, 0)?), columns))
}

/// Sessions of a tenant, newest first.
pub(crate) fn sessions(conn: &Connection, tenant: TenantId, limit: usize) -> rusqlite::Result<Vec<SessionSummary>> {
    let sql = format!(
        "SELECT {SESSION}, {} \
         FROM sessions s JOIN session_heads h ON h.tenant = s.tenant AND h.session = s.session \
         WHERE s.tenant = ?1 AND s.session NOT IN (?2, ?3) \
         ORDER BY h.updated_at DESC, s.session DESC LIMIT ?4",
        heads::COLUMNS
    );
    let (ledger, operator) = (ledger_of(tenant), operator_log_of(tenant));
    conn.prepare_cached(&sql)?
        .query_map(
            params![id(tenant.as_u128()), id(ledger.as_u128()), id(operator.as_u128()), bounded(limit)],
            |row| {
                let (session_id, columns) = session_row(row)?;
                Ok(SessionSummary { session_id, row: columns, head: heads::head_at(row, 8)? })
            },
        )?
        .collect()
}

/// Every log of a tenant, one that lost its head included.
pub(crate) fn logs(conn: &Connection, tenant: TenantId) -> rusqlite::Result<Vec<SessionId>> {
    conn.prepare_cached(
        "SELECT session FROM session_heads WHERE tenant = ?1 \
         UNION SELECT l.session FROM logs l \
         WHERE l.tenant = ?1 AND EXISTS (SELECT 1 FROM events e WHERE e.log = l.log) ORDER BY 1",
    )?
    .query_map(params![id(tenant.as_u128())], |row| id_at(row, 0).map(SessionId::from_u128))?
    .collect()
}

/// Intents of a session.
pub(crate) fn intents(conn: &Connection, key: SessionKey, open: bool) -> rusqlite::Result<Vec<IntentRow>> {
    let all = "SELECT intent_id, call_key, tool, definition_version, state, invocation_id, \
               updated_seq FROM intents WHERE tenant = ?1 AND session = ?2 ORDER BY intent_id";
    let open_only = "SELECT intent_id, call_key, tool, definition_version, state, invocation_id, \
                     updated_seq FROM intents WHERE tenant = ?1 AND session = ?2 \
                     AND state <> 'observed' ORDER BY intent_id";
    conn.prepare_cached(if open { open_only } else { all })?
        .query_map(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| {
            Ok(IntentRow {
                session_id: key.session,
                intent_id: IntentId::from_u128(id_at(row, 0)?),
                call_key: row.get(1)?,
                tool: row.get(2)?,
                definition_version: row.get(3)?,
                state: word_at(row, 4)?,
                invocation_id: opt_id_at(row, 5)?.map(InvocationId::from_u128),
                updated_seq: row.get(6)?,
            })
        })?
        .collect()
}

pub(crate) const ASK: &str = "SELECT ask_id, session, intent_id, tool_use_id, kind, state, pinned, input_hash, \
                   definition_version, facts, expires_at, reply, approver, answered_seq, asked_seq, \
                   root_session, root_tool_use_id, principal, asked_at FROM asks";

pub(crate) fn ask_row(row: &Row<'_>) -> rusqlite::Result<AskRow> {
    Ok(AskRow {
        ask_id: AskId::from_u128(id_at(row, 0)?),
        session_id: SessionId::from_u128(id_at(row, 1)?),
        intent_id: IntentId::from_u128(id_at(row, 2)?),
        tool_use_id: opt_id_at(row, 3)?.map(EventId::from_u128),
        root: opt_id_at(row, 15)?.zip(opt_id_at(row, 16)?).map(|(session, used)| AtRoot {
            session_id: SessionId::from_u128(session),
            tool_use_id: EventId::from_u128(used),
        }),
        kind: row.get(4)?,
        state: word_at(row, 5)?,
        pinned: row.get(6)?,
        input_hash: digest_at(row, 7)?,
        definition_version: row.get(8)?,
        facts: json_at(row, 9)?,
        expires_at: time_at(row, 10)?,
        reply: opt_word_at(row, 11)?,
        approver: row.get(12)?,
        answered_seq: row.get(13)?,
        asked_seq: row.get(14)?,
        principal: row.get(17)?,
        asked_at: time_at(row, 18)?,
    })
}

/// Asks of a tenant, oldest first.
pub(crate) fn asks(conn: &Connection, tenant: TenantId, filter: AskFilter) -> rusqlite::Result<Vec<AskRow>> {
    // The pending ones have an index of their own, so this condition must stand in the statement.
    let pending = if filter.pending { "AND state = 'pending'" } else { "" };
    let sql = format!("{ASK} WHERE tenant = ?1 {pending} AND (?2 IS NULL OR session = ?2) ORDER BY ask_id");
    conn.prepare_cached(&sql)?
        .query_map(params![id(tenant.as_u128()), filter.session.map(|s| id(s.as_u128()))], ask_row)?
        .collect()
}

/// One ask.
pub(crate) fn ask(conn: &Connection, tenant: TenantId, ask: AskId) -> rusqlite::Result<Option<AskRow>> {
    conn.prepare_cached(&format!("{ASK} WHERE tenant = ?1 AND ask_id = ?2"))?
        .query_row(params![id(tenant.as_u128()), id(ask.as_u128())], ask_row)
        .optional()
}

/// The sealed input of an open intent.
pub(crate) fn sealed(conn: &Connection, key: SessionKey, intent: IntentId) -> rusqlite::Result<Option<Vec<u8>>> {
    let found: Option<Option<Vec<u8>>> = conn
        .prepare_cached("SELECT sealed FROM intents WHERE tenant = ?1 AND session = ?2 AND intent_id = ?3")?
        .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128()), id(intent.as_u128())], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

/// The row of an artifact.
pub(crate) fn artifact(
    conn: &Connection,
    tenant: TenantId,
    artifact: ArtifactId,
) -> rusqlite::Result<Option<ArtifactRow>> {
    conn.prepare_cached(
        "SELECT session, sha256, kind, mime, bytes, lines, complete, trust, expires_at, artifact_id, pinned, tombstone, freed \
         FROM artifacts WHERE tenant = ?1 AND artifact_id = ?2",
    )?
    .query_row(params![id(tenant.as_u128()), id(artifact.as_u128())], artifact_row)
    .optional()
}

/// Rows of artifacts by id, those after `after`.
pub(crate) fn artifacts(
    conn: &Connection,
    tenant: TenantId,
    after: Option<ArtifactId>,
    limit: usize,
) -> rusqlite::Result<Vec<ArtifactRow>> {
    conn.prepare_cached(
        "SELECT session, sha256, kind, mime, bytes, lines, complete, trust, expires_at, artifact_id, pinned, tombstone, freed \
         FROM artifacts WHERE tenant = ?1 AND (?2 IS NULL OR artifact_id > ?2) ORDER BY artifact_id LIMIT ?3",
    )?
    .query_map(params![id(tenant.as_u128()), after.map(|after| id(after.as_u128())), limit], artifact_row)?
    .collect()
}

fn artifact_row(row: &Row<'_>) -> rusqlite::Result<ArtifactRow> {
    Ok(ArtifactRow {
        session: SessionId::from_u128(id_at(row, 0)?),
        artifact: ArtifactRef {
            id: ArtifactId::from_u128(id_at(row, 9)?),
            sha256: digest_at(row, 1)?,
            kind: word_at(row, 2)?,
            mime: row.get(3)?,
            bytes: row.get(4)?,
            lines: row.get(5)?,
            complete: flag_at(row, 6)?,
            trust: word_at(row, 7)?,
            expires_at: opt_time_at(row, 8)?,
        },
        pinned: flag_at(row, 10)?,
        tombstone: match (opt_time_at(row, 11)?, flag_at(row, 12)?) {
            (Some(at), freed) => Some(Tombstone { at, freed }),
            // No policy leaves this: the quota does not count it, so nobody serves it either, and `verify` names it.
            (None, true) => Some(Tombstone { at: Timestamp::from_micros(0), freed: true }),
            (None, false) => None,
        },
    })
}

/// The bytes of a small artifact.
pub(crate) fn blob(conn: &Connection, tenant: TenantId, sha256: Digest) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT bytes FROM blobs WHERE tenant = ?1 AND sha256 = ?2")?
        .query_row(params![id(tenant.as_u128()), sha256.as_bytes()], |row| row.get(0))
        .optional()
}

/// Bytes of all artifacts of a tenant that are still held; equal contents count once.
pub(crate) fn artifact_usage(conn: &Connection, tenant: TenantId) -> rusqlite::Result<u64> {
    conn.prepare_cached(
        "SELECT coalesce(sum(bytes), 0) FROM \
         (SELECT max(bytes) AS bytes FROM artifacts WHERE tenant = ?1 AND freed = 0 GROUP BY sha256)",
    )?
    .query_row(params![id(tenant.as_u128())], |row| row.get(0))
}

/// Checkpoints of a log, ascending.
pub(crate) fn checkpoints(conn: &Connection, key: SessionKey) -> rusqlite::Result<Vec<Checkpoint>> {
    conn.prepare_cached("SELECT seq, hash, mac FROM checkpoints WHERE tenant = ?1 AND session = ?2 ORDER BY seq")?
        .query_map(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| {
            Ok(Checkpoint { seq: row.get(0)?, hash: digest_at(row, 1)?, mac: row.get(2)? })
        })?
        .collect()
}

/// The newest snapshot of a code version.
pub(crate) fn snapshot(conn: &Connection, key: SessionKey, code_version: u32) -> rusqlite::Result<Option<Snapshot>> {
    conn.prepare_cached(
        "SELECT seq, code_version, state, digest FROM snapshots \
         WHERE tenant = ?1 AND session = ?2 AND code_version = ?3 ORDER BY seq DESC LIMIT 1",
    )?
    .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128()), code_version], |row| {
        Ok(Snapshot { seq: row.get(0)?, code_version: row.get(1)?, state: row.get(2)?, digest: digest_at(row, 3)? })
    })
    .optional()
}

/// Keeps one snapshot a session.
pub(crate) fn put_snapshot(conn: &Connection, key: SessionKey, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    conn.prepare_cached("DELETE FROM snapshots WHERE tenant = ?1 AND session = ?2")?
        .execute(params![tenant, session])?;
    conn.prepare_cached(
        "INSERT INTO snapshots (tenant, session, seq, code_version, state, digest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        tenant,
        session,
        snapshot.seq,
        snapshot.code_version,
        snapshot.state,
        snapshot.digest.as_bytes()
    ])?;
    Ok(())
}
