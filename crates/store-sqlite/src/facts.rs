//! The computed row of facts of a session, its tags, and its calls of unknown outcome (S15).

use portcullis_base::{AgentId, IntentId, InvocationId, SessionId, TenantId};
use portcullis_event::facts::{OutcomeStatus, SessionUsage};
use portcullis_event::{FactsChange, OutcomeFacts, SessionFacts, SessionRow, UnknownOutcome};
use portcullis_store::{SessionKey, UnknownCall, UnknownQuery};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::codec::{digest_at, id, id_at, json, opt_id_at, opt_json_at, opt_word_at, time_at, word, word_at};
use crate::heads::status;
use crate::query::bounded;

/// Columns of [`facts_at`].
pub(crate) const COLUMNS: &str = "f.agent, f.agent_version, f.setup, f.status, f.stop_reason, f.summary, f.active_at, \
                                  f.wakes, f.turns, f.tool_calls, f.input_tokens, f.output_tokens, f.cache_read, \
                                  f.cache_written, f.outcome_title, f.outcome, f.outcome_trend";

/// Reads the facts from [`COLUMNS`] that begin at `at`.
pub(crate) fn facts_at(row: &Row<'_>, at: usize) -> rusqlite::Result<SessionFacts> {
    Ok(SessionFacts {
        agent_id: opt_id_at(row, at)?.map(AgentId::from_u128),
        agent_version: row.get(at + 1)?,
        setup: digest_at(row, at + 2)?,
        status: word_at(row, at + 3)?,
        stop_reason: opt_json_at(row, at + 4)?,
        last_summary: row.get(at + 5)?,
        outcome: match row.get(at + 14)? {
            Some(title) => {
                Some(OutcomeFacts { title, status: word_at(row, at + 15)?, trend: opt_word_at(row, at + 16)? })
            }
            None => None,
        },
        last_activity_at: time_at(row, at + 6)?,
        usage: SessionUsage {
            wakes: row.get(at + 7)?,
            turns: row.get(at + 8)?,
            tool_calls: row.get(at + 9)?,
            input_tokens: row.get(at + 10)?,
            output_tokens: row.get(at + 11)?,
            cache_read_input_tokens: row.get(at + 12)?,
            cache_creation_input_tokens: row.get(at + 13)?,
        },
    })
}

/// Writes what an append changes. `row` is that of a session which begins here.
pub(crate) fn write(
    conn: &Connection,
    key: SessionKey,
    row: Option<&SessionRow>,
    change: &FactsChange,
) -> rusqlite::Result<()> {
    let mut begun = None;
    change.apply_to(&mut begun);
    let has_facts = match (row, &begun) {
        (Some(row), Some(facts)) => {
            insert(conn, key, row, facts)?;
            write_outcome(conn, key, change)?;
            true
        }
        _ => update(conn, key, change)?,
    };
    if has_facts {
        write_unknown(conn, key, &change.unknown, &change.resolved)?;
    }
    Ok(())
}

/// A count as SQLite adds it up: more than it can hold stays at that.
fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Writes the facts of a session that has none yet, its outcome aside: migration 9 writes them, and then no session has one.
pub(crate) fn insert(
    conn: &Connection,
    key: SessionKey,
    row: &SessionRow,
    facts: &SessionFacts,
) -> rusqlite::Result<()> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    let usage = &facts.usage;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO session_facts (tenant, session, created_at, agent, agent_version, parent, root, \
         workspace, setup, status, stop_reason, summary, active_at, wakes, turns, tool_calls, input_tokens, \
         output_tokens, cache_read, cache_written) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    )?
    .execute(params![
        tenant,
        session,
        row.created_at.as_micros(),
        facts.agent_id.map(|agent| id(agent.as_u128())),
        facts.agent_version,
        row.parent_session_id.map(|parent| id(parent.as_u128())),
        id(row.root_session_id.as_u128()),
        row.workspace,
        facts.setup.as_bytes(),
        status(facts.status),
        facts.stop_reason.as_ref().map(json).transpose()?,
        facts.last_summary,
        facts.last_activity_at.as_micros(),
        count(usage.wakes),
        count(usage.turns),
        count(usage.tool_calls),
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cache_read_input_tokens),
        count(usage.cache_creation_input_tokens),
    ])?;
    let mut tag_row = conn.prepare_cached(
        "INSERT OR IGNORE INTO session_tags (tenant, tag, created_at, session) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for tag in &row.tags {
        tag_row.execute(params![tenant, tag, row.created_at.as_micros(), session])?;
    }
    Ok(())
}

/// Changes the facts by column; `false` if the log has none. The status stands in an index, so it is named only where it
/// changes.
fn update(conn: &Connection, key: SessionKey, change: &FactsChange) -> rusqlite::Result<bool> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    let Some(at) = change.last_activity_at else { return Ok(false) };
    let usage = &change.usage;
    let changed = conn
        .prepare_cached(
            "UPDATE session_facts SET active_at = ?3, wakes = wakes + ?4, turns = turns + ?5, \
             tool_calls = tool_calls + ?6, input_tokens = input_tokens + ?7, output_tokens = output_tokens + ?8, \
             cache_read = cache_read + ?9, cache_written = cache_written + ?10, summary = coalesce(?11, summary), \
             stop_reason = CASE WHEN ?12 THEN ?13 ELSE stop_reason END WHERE tenant = ?1 AND session = ?2",
        )?
        .execute(params![
            tenant,
            session,
            at.as_micros(),
            count(usage.wakes),
            count(usage.turns),
            count(usage.tool_calls),
            count(usage.input_tokens),
            count(usage.output_tokens),
            count(usage.cache_read_input_tokens),
            count(usage.cache_creation_input_tokens),
            change.last_summary,
            change.stop_reason.is_some(),
            change.stop_reason.as_ref().and_then(Option::as_ref).map(json).transpose()?,
        ])?;
    write_outcome(conn, key, change)?;
    if let Some(now) = change.status.filter(|_| changed > 0) {
        conn.prepare_cached(
            "UPDATE session_facts SET status = ?3 WHERE tenant = ?1 AND session = ?2 AND status <> ?3",
        )?
        .execute(params![tenant, session, status(now)])?;
    }
    Ok(changed > 0)
}

/// Writes a new outcome and then a verdict, which says nothing where there is no outcome.
fn write_outcome(conn: &Connection, key: SessionKey, change: &FactsChange) -> rusqlite::Result<()> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    if let Some(title) = &change.outcome {
        conn.prepare_cached(
            "UPDATE session_facts SET outcome_title = ?3, outcome = ?4, outcome_trend = NULL \
             WHERE tenant = ?1 AND session = ?2",
        )?
        .execute(params![tenant, session, title, word(&OutcomeStatus::Open)?])?;
    }
    if let Some((status, trend)) = change.verdict {
        conn.prepare_cached(
            "UPDATE session_facts SET outcome = ?3, outcome_trend = ?4 \
             WHERE tenant = ?1 AND session = ?2 AND outcome_title IS NOT NULL",
        )?
        .execute(params![tenant, session, word(&status)?, word(&trend)?])?;
    }
    Ok(())
}

/// Writes calls whose outcome became unknown, then takes out those of which somebody said what became of them.
pub(crate) fn write_unknown(
    conn: &Connection,
    key: SessionKey,
    unknown: &[UnknownOutcome],
    resolved: &[InvocationId],
) -> rusqlite::Result<()> {
    let (tenant, session) = (id(key.tenant.as_u128()), id(key.session.as_u128()));
    for call in unknown {
        conn.prepare_cached(
            "INSERT OR IGNORE INTO unknown_outcomes (tenant, session, invocation_id, intent_id, at, seq) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            tenant,
            session,
            id(call.invocation_id.as_u128()),
            id(call.intent_id.as_u128()),
            call.at.as_micros(),
            call.seq
        ])?;
    }
    for invocation in resolved {
        conn.prepare_cached("DELETE FROM unknown_outcomes WHERE tenant = ?1 AND session = ?2 AND invocation_id = ?3")?
            .execute(params![tenant, session, id(invocation.as_u128())])?;
    }
    Ok(())
}

/// Calls of unknown outcome behind a place, by session and invocation.
pub(crate) fn unknown(
    conn: &Connection,
    tenant: TenantId,
    query: &UnknownQuery,
    (after, limit): (Option<(u128, u128)>, usize),
) -> rusqlite::Result<Vec<UnknownCall>> {
    let (sql, values) = unknown_sql(tenant, query, after, limit);
    conn.prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok(UnknownCall {
                session_id: SessionId::from_u128(id_at(row, 0)?),
                outcome: UnknownOutcome {
                    invocation_id: InvocationId::from_u128(id_at(row, 1)?),
                    intent_id: IntentId::from_u128(id_at(row, 2)?),
                    at: time_at(row, 3)?,
                    seq: row.get(4)?,
                },
                tool: row.get(5)?,
            })
        })?
        .collect()
}

pub(crate) fn unknown_sql(
    tenant: TenantId,
    query: &UnknownQuery,
    after: Option<(u128, u128)>,
    limit: usize,
) -> (String, Vec<Value>) {
    let blob = |number: u128| Value::Blob(id(number).to_vec());
    let mut values = vec![blob(tenant.as_u128())];
    let mut conditions = String::new();
    if let Some((session, invocation)) = after {
        conditions.push_str(" AND (u.session, u.invocation_id) > (?, ?)");
        values.extend([blob(session), blob(invocation)]);
    }
    if let Some(session) = query.session {
        conditions.push_str(" AND u.session = ?");
        values.push(blob(session.as_u128()));
    }
    if let Some(invocation) = query.invocation {
        conditions.push_str(" AND u.invocation_id = ?");
        values.push(blob(invocation.as_u128()));
    }
    values.push(Value::Integer(bounded(limit)));
    let sql = format!(
        "SELECT u.session, u.invocation_id, u.intent_id, u.at, u.seq, i.tool FROM unknown_outcomes u \
         LEFT JOIN intents i ON i.tenant = u.tenant AND i.session = u.session AND i.intent_id = u.intent_id \
         WHERE u.tenant = ?{conditions} ORDER BY u.session, u.invocation_id LIMIT ?"
    );
    (sql, values)
}
