//! Rows that an older store does not have, computed from the logs in it when its schema is brought forward. A log is the
//! truth, so nothing is asked but its events, and the function is the one that computes them for every append.

use portcullis_base::{AskId, SessionId, TenantId, Timestamp};
use portcullis_event::{FactsChange, RowChange, SessionFacts, SessionRow, facts_change, rows};
use portcullis_store::SessionKey;
use rusqlite::{Connection, params};

use crate::codec::{id, id_at};
use crate::error::is_of_one_operation;
use crate::{facts, records, runs};

/// Fills what migration 9 adds, in its transaction: facts of sessions, calls of unknown outcome, principal and time of
/// asks, index fields of records.
pub(crate) fn fill_lists(conn: &Connection) -> rusqlite::Result<()> {
    let logs: Vec<SessionKey> = conn
        // A name that no program of ours wrote names no session.
        .prepare("SELECT tenant, session FROM logs WHERE length(tenant) = 16 AND length(session) = 16")?
        .query_map([], |row| {
            let (tenant, session) = (TenantId::from_u128(id_at(row, 0)?), SessionId::from_u128(id_at(row, 1)?));
            Ok(SessionKey { tenant, session })
        })?
        .collect::<rusqlite::Result<_>>()?;
    for key in logs {
        LogRows::of(conn, key)?.write(conn, key)?;
    }
    records::index_all(conn)
}

/// What one log says.
#[derive(Default)]
struct LogRows {
    row: Option<SessionRow>,
    facts: Option<SessionFacts>,
    outcomes: FactsChange,
    asks: Vec<(AskId, String, Timestamp)>,
}

impl LogRows {
    fn of(conn: &Connection, key: SessionKey) -> rusqlite::Result<Self> {
        let mut found = Self::default();
        let read = runs::events_while(conn, key, (0, usize::MAX), |event| {
            let event = [event];
            let change = facts_change(&event);
            change.apply_to(&mut found.facts);
            found.outcomes.unknown.extend(change.unknown);
            found.outcomes.resolved.extend(change.resolved);
            for change in rows(&event) {
                match change {
                    RowChange::Session(row) => found.row = Some(row),
                    RowChange::AskOpened { ask_id, principal, asked_at, .. } => {
                        found.asks.push((ask_id, principal, asked_at));
                    }
                    _ => {}
                }
            }
            true
        });
        match read {
            // A log that is damaged keeps nobody from the others; a verification says what is wrong with it.
            Err(error) if is_of_one_operation(&error) => Ok(found),
            Err(error) => Err(error),
            Ok(()) => Ok(found),
        }
    }

    fn write(&self, conn: &Connection, key: SessionKey) -> rusqlite::Result<()> {
        if let (Some(row), Some(session_facts)) = (&self.row, &self.facts) {
            facts::insert(conn, key, row, session_facts)?;
            facts::write_unknown(conn, key, &self.outcomes.unknown, &self.outcomes.resolved)?;
        }
        let mut ask = conn.prepare_cached(
            "UPDATE asks SET principal = ?3, asked_at = ?4 WHERE tenant = ?1 AND ask_id = ?2 AND session = ?5",
        )?;
        for (ask_id, principal, asked_at) in &self.asks {
            ask.execute(params![
                id(key.tenant.as_u128()),
                id(ask_id.as_u128()),
                principal,
                asked_at.as_micros(),
                id(key.session.as_u128())
            ])?;
        }
        Ok(())
    }
}
