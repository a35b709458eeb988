//! Lists of sessions and asks: which indexes their conditions have, and the rows of what was found.

use portcullis_base::{AskId, SessionId, TenantId, Timestamp};
use portcullis_store::{AskQuery, AskRow, ListOrder, SessionKey, SessionListing, SessionQuery};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::codec::{id, word};
use crate::strands::{ListPlace, Strand, Stretch, places};
use crate::{facts, heads, query};

const SESSION_ORDER: (&str, &str) = ("created_at", "session");
const ASK_ORDER: (&str, &str) = ("asked_at", "ask_id");
/// Columns of a head before those of the facts.
const HEAD_COLUMNS: usize = 15;

fn blob(number: u128) -> Value {
    Value::Blob(id(number).to_vec())
}

/// One session with what a page about it shows.
pub(crate) fn session(conn: &Connection, key: SessionKey) -> rusqlite::Result<Option<SessionListing>> {
    let sql = session_sql();
    conn.prepare_cached(&sql)?
        .query_row(params![id(key.tenant.as_u128()), id(key.session.as_u128())], |row| {
            let (session_id, columns) = query::session_row(row)?;
            Ok(SessionListing {
                session_id,
                row: columns,
                head: heads::head_at(row, 8)?,
                facts: facts::facts_at(row, 8 + HEAD_COLUMNS)?,
                children: row.get("children")?,
            })
        })
        .optional()
}

pub(crate) fn session_sql() -> String {
    format!(
        "SELECT {}, {}, {}, (SELECT count(*) FROM session_facts c WHERE c.tenant = ?1 AND c.parent = ?2) AS children \
         FROM session_facts f JOIN sessions s ON s.tenant = f.tenant AND s.session = f.session \
         JOIN session_heads h ON h.tenant = f.tenant AND h.session = f.session \
         WHERE f.tenant = ?1 AND f.session = ?2",
        query::SESSION,
        heads::COLUMNS,
        facts::COLUMNS
    )
}

/// Sessions that a question is about, behind a place.
pub(crate) fn sessions(
    conn: &Connection,
    tenant: TenantId,
    asked: &SessionQuery,
    (after, limit): (Option<(Timestamp, u128)>, usize),
) -> rusqlite::Result<Vec<SessionListing>> {
    let Some(stretch) = Stretch::of(asked.order, asked.created, after) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    places(conn, &id(tenant.as_u128()), session_strands(asked)?, stretch, |(_, session_id)| {
        let key = SessionKey { tenant, session: SessionId::from_u128(session_id) };
        found.extend(session(conn, key)?.filter(|listing| asked.active.holds(listing.facts.last_activity_at)));
        Ok(found.len() < limit)
    })?;
    Ok(found)
}

pub(crate) fn session_strands(asked: &SessionQuery) -> rusqlite::Result<Vec<Strand>> {
    let by = |index, column, value| Strand {
        table: "session_facts",
        index,
        condition: Some((column, value)),
        order_by: SESSION_ORDER,
    };
    let mut strands: Vec<Strand> = Vec::new();
    strands.extend(asked.parent.map(|parent| by("facts_parent", "parent", blob(parent.as_u128()))));
    strands.extend(asked.root.map(|root| by("facts_root", "root", blob(root.as_u128()))));
    strands.extend(asked.agent.map(|agent| by("facts_agent", "agent", blob(agent.as_u128()))));
    strands.extend(asked.status.map(|status| by("facts_status", "status", Value::Text(heads::status(status)))));
    if let Some(outcome) = asked.outcome {
        strands.push(by("facts_outcome", "outcome", Value::Text(word(&outcome)?)));
    }
    strands.extend(asked.workspace.clone().map(|place| by("facts_workspace", "workspace", Value::Text(place))));
    // The table of tags is its own index.
    strands.extend(asked.tag.clone().map(|tag| Strand { table: "session_tags", ..by("", "tag", Value::Text(tag)) }));
    if strands.is_empty() {
        strands.push(Strand { condition: None, ..by("facts_created", "", Value::Null) });
    }
    Ok(strands)
}

/// Asks that a question is about, behind a place.
pub(crate) fn asks(
    conn: &Connection,
    tenant: TenantId,
    asked: &AskQuery,
    (after, limit): (Option<(Timestamp, u128)>, usize),
) -> rusqlite::Result<Vec<AskRow>> {
    let Some(stretch) = Stretch::of(asked.order, asked.asked, after) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    if asked.tool_use.is_some() {
        return asks_of_tool_use(conn, tenant, asked, (stretch, limit));
    }
    places(conn, &id(tenant.as_u128()), ask_strands(asked)?, stretch, |(_, ask)| {
        found.extend(query::ask(conn, tenant, AskId::from_u128(ask))?);
        Ok(found.len() < limit)
    })?;
    Ok(found)
}

pub(crate) fn ask_strands(asked: &AskQuery) -> rusqlite::Result<Vec<Strand>> {
    let by =
        |index, column, value| Strand { table: "asks", index, condition: Some((column, value)), order_by: ASK_ORDER };
    let mut strands: Vec<Strand> = Vec::new();
    strands.extend(asked.session.map(|session| by("asks_session", "session", blob(session.as_u128()))));
    if let Some(state) = &asked.state {
        strands.push(by("asks_state", "state", Value::Text(word(state)?)));
    }
    strands.extend(asked.principal.clone().map(|who| by("asks_principal", "principal", Value::Text(who))));
    if strands.is_empty() {
        strands.push(Strand { condition: None, ..by("asks_asked", "", Value::Null) });
    }
    Ok(strands)
}

/// The asks of one managed event: a few at most, found by it or by its copy at the root.
fn asks_of_tool_use(
    conn: &Connection,
    tenant: TenantId,
    asked: &AskQuery,
    (stretch, limit): (Stretch, usize),
) -> rusqlite::Result<Vec<AskRow>> {
    let used = asked.tool_use.map(|used| id(used.as_u128()));
    let mut rows: Vec<AskRow> = conn
        .prepare_cached(&tool_use_sql())?
        .query_map(params![id(tenant.as_u128()), used], query::ask_row)?
        .collect::<rusqlite::Result<_>>()?;
    let place = |row: &AskRow| -> ListPlace { (row.asked_at.as_micros(), row.ask_id.as_u128()) };
    rows.retain(|row| asked.takes(row) && stretch.holds(place(row)));
    rows.sort_by_key(place);
    if asked.order == ListOrder::NewestFirst {
        rows.reverse();
    }
    rows.truncate(limit);
    Ok(rows)
}

pub(crate) fn tool_use_sql() -> String {
    let ask = query::ASK;
    format!("{ask} WHERE tenant = ?1 AND tool_use_id = ?2 UNION {ask} WHERE tenant = ?1 AND root_tool_use_id = ?2")
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
