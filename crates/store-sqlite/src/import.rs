//! A whole log of another store inside the writer's transaction; the shared plan decides, as for every commit.

use std::cell::RefCell;

use portcullis_base::EventId;
use portcullis_event::fold::Wakes;
use portcullis_store::{Import, Imported, Plan, SessionKey, plan_import};

use crate::error::Fail;
use crate::op::{Trace, Tx};
use crate::{apply, heads, query, tail};

/// Takes a log in. Nothing is written before every check has passed.
pub(crate) fn import(tx: &Tx<'_>, import: &Import) -> Result<(Imported, Option<EventId>), Fail> {
    let now = tx.env.clock.now();
    let key = import.key;
    let head = heads::read(tx.conn, key)?;
    tail::check(tx, key, head.as_ref())?;
    // The plan asks without being able to fail; what SQLite answered instead is looked at after.
    let failed = RefCell::new(None);
    let plan = Plan {
        now,
        ids: &*tx.env.ids,
        key: tx.env.key.as_ref(),
        head,
        ask: &|ask| {
            apply::ask_now(tx.conn, key, ask).unwrap_or_else(|error| {
                failed.replace(Some(error));
                None
            })
        },
        intent: &|_| None,
        wake: &|_| None,
        wakes: &Wakes::default,
        locks: &|_| Vec::new(),
    };
    let planned = plan_import(import, plan, &|artifact| match query::artifact(tx.conn, key.tenant, artifact) {
        Ok(row) => row.is_some(),
        Err(error) => {
            failed.replace(Some(error));
            false
        }
    });
    if let Some(error) = failed.into_inner() {
        return Err(Fail::Sqlite(error));
    }
    let last_seq = import.events.len() as u64;
    let Some((commit, planned)) = planned? else {
        return Ok((Imported { last_seq, repeat: true }, None));
    };
    apply::insert_blobs(tx.conn, key, &import.blobs)?;
    let committed = apply::write(tx, &commit, planned, now)?;
    Ok((Imported { last_seq, repeat: false }, committed.events.first().map(|event| event.id)))
}

/// An import is recognised by its first event.
pub(crate) fn trace((_, first): &(Imported, Option<EventId>), key: Option<SessionKey>) -> Option<Trace> {
    Some(Trace::Event(key?, (*first)?))
}
