//! What is really in the file after a fault.

use portcullis_event::chain_hash;
use portcullis_store::SessionKey;
use rusqlite::Connection;

use crate::codec::json;
use crate::op::Trace;
use crate::runs::has_event;
use crate::{heads, query};

/// Whether the batch of these traces committed; `None` if that cannot be told. A batch is one
/// transaction, so one trace speaks for all of it.
pub(crate) fn landed(conn: &Connection, traces: &[Trace]) -> Option<bool> {
    let found = match traces.first()? {
        Trace::Event(key, event) => has_event(conn, *key, *event),
        Trace::Lease { key, fence, owner } => heads::read(conn, *key).and_then(|head| {
            let Some(head) = head else { return Ok(false) };
            let held_by = head.lease_owner.as_ref().map(json).transpose()?;
            Ok(head.fence == *fence && held_by.as_ref() == Some(owner))
        }),
    };
    found.ok()
}

/// The newest event of each log is whole, is what its head says, and nothing stands behind it.
pub(crate) fn check_tails(conn: &Connection, touched: &[SessionKey]) -> Result<(), String> {
    for key in touched {
        let head = heads::read(conn, *key).map_err(|error| error.to_string())?;
        let Some(head) = head.filter(|head| head.last_seq > 0) else {
            continue;
        };
        let tail = query::events(conn, *key, head.last_seq - 1, 2);
        let tail = tail.map_err(|error| error.to_string())?;
        let sound = matches!(tail.as_slice(), [last] if last.seq == head.last_seq
            && last.hash == head.last_hash && chain_hash(last) == last.hash);
        if !sound {
            return Err(format!(
                "the end of session {} does not agree with its head at event {}",
                key.session, head.last_seq
            ));
        }
    }
    Ok(())
}
