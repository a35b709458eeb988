//! Rows of `intents`, `asks`, `queued_wakes` and `sessions`: what the shared plan computed from the events (S15).

use std::collections::BTreeMap;

use portcullis_base::IntentId;
use portcullis_event::RowChange;
use portcullis_store::{AskRow, Commit, IntentRow, SessionKey};
use rusqlite::{Connection, params};

use crate::codec::{id, json, word};
use crate::wakes;

/// Writes the projections. An intent that begins in this commit is written once, as it stands at
/// the commit's end: an inert call costs one row and not five changes of it.
pub(crate) fn write(conn: &Connection, commit: &Commit, changes: Vec<RowChange>) -> rusqlite::Result<()> {
    let key = commit.key;
    let mut begun: BTreeMap<IntentId, IntentRow> = BTreeMap::new();
    for change in changes {
        match change {
            admitted @ RowChange::IntentAdmitted { .. } => {
                begun.extend(IntentRow::admitted(key.session, admitted).map(|row| (row.intent_id, row)));
            }
            RowChange::IntentMoved { intent_id, state, invocation_id, seq } => match begun.get_mut(&intent_id) {
                Some(row) => row.moved(state, invocation_id, seq),
                // As `IntentRow::moved`: what is settled stays so.
                None => {
                    conn.prepare_cached(
                        "UPDATE intents SET state = ?4, invocation_id = coalesce(?5, invocation_id), \
                         updated_seq = ?6, sealed = CASE WHEN ?4 = 'observed' THEN NULL ELSE sealed END \
                         WHERE tenant = ?1 AND session = ?2 AND intent_id = ?3 AND state <> 'observed'",
                    )?
                    .execute(params![
                        id(key.tenant.as_u128()),
                        id(key.session.as_u128()),
                        id(intent_id.as_u128()),
                        word(&state)?,
                        invocation_id.map(|i| id(i.as_u128())),
                        seq
                    ])?;
                }
            },
            other => write_row(conn, key, other)?,
        }
    }
    for row in begun.into_values() {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO intents (tenant, session, intent_id, call_key, tool, \
             definition_version, state, invocation_id, updated_seq) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            id(key.tenant.as_u128()),
            id(key.session.as_u128()),
            id(row.intent_id.as_u128()),
            row.call_key,
            row.tool,
            row.definition_version,
            word(&row.state)?,
            row.invocation_id.map(|i| id(i.as_u128())),
            row.updated_seq
        ])?;
    }
    for (intent, bytes) in &commit.sealed {
        // A settled intent keeps no sensitive value, sealed or not.
        conn.prepare_cached(
            "UPDATE intents SET sealed = ?4 WHERE tenant = ?1 AND session = ?2 AND intent_id = ?3 \
             AND state <> 'observed'",
        )?
        .execute(params![id(key.tenant.as_u128()), id(key.session.as_u128()), id(intent.as_u128()), bytes])?;
    }
    Ok(())
}

fn write_row(conn: &Connection, key: SessionKey, change: RowChange) -> rusqlite::Result<()> {
    let tenant = id(key.tenant.as_u128());
    match change {
        // Handled where intents of one commit are gathered.
        RowChange::IntentAdmitted { .. } | RowChange::IntentMoved { .. } => {}
        RowChange::Session(row) => {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO sessions (tenant, session, root, parent, title, tags, \
                 created_at, config_hash, workspace) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                tenant,
                id(key.session.as_u128()),
                id(row.root_session_id.as_u128()),
                row.parent_session_id.map(|s| id(s.as_u128())),
                row.title,
                json(&row.tags)?,
                row.created_at.as_micros(),
                row.config_hash.as_bytes(),
                row.workspace
            ])?;
        }
        opened @ RowChange::AskOpened { .. } => {
            let Some(ask) = AskRow::opened(key.session, opened) else { return Ok(()) };
            conn.prepare_cached(
                "INSERT OR REPLACE INTO asks (tenant, ask_id, session, intent_id, tool_use_id, kind, \
                 state, pinned, input_hash, definition_version, facts, expires_at, asked_seq, \
                 root_session, root_tool_use_id, principal, asked_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params![
                tenant,
                id(ask.ask_id.as_u128()),
                id(ask.session_id.as_u128()),
                id(ask.intent_id.as_u128()),
                ask.tool_use_id.map(|e| id(e.as_u128())),
                ask.kind,
                ask.pinned,
                ask.input_hash.as_bytes(),
                ask.definition_version,
                json(&ask.facts)?,
                ask.expires_at.as_micros(),
                ask.asked_seq,
                ask.root.map(|root| id(root.session_id.as_u128())),
                ask.root.map(|root| id(root.tool_use_id.as_u128())),
                ask.principal,
                ask.asked_at.as_micros()
            ])?;
        }
        RowChange::AskAnswered { ask_id, reply, approver, seq } => {
            conn.prepare_cached(
                "UPDATE asks SET state = 'answered', reply = ?3, approver = ?4, answered_seq = ?5 \
                 WHERE tenant = ?1 AND ask_id = ?2",
            )?
            .execute(params![tenant, id(ask_id.as_u128()), word(&reply)?, approver, seq])?;
        }
        RowChange::AskClosed { ask_id, state, .. } => {
            conn.prepare_cached("UPDATE asks SET state = ?3 WHERE tenant = ?1 AND ask_id = ?2")?.execute(params![
                tenant,
                id(ask_id.as_u128()),
                word(&state)?
            ])?;
        }
        RowChange::WakeQueued { wake, at, seq } => wakes::queue(conn, key, &wake, at, seq)?,
        RowChange::WakesSettled { queued_wake_ids, state, seq } => {
            wakes::settle(conn, key, &queued_wake_ids, state, seq)?;
        }
    }
    Ok(())
}
