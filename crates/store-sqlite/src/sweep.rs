//! What time alone asks for (store §4 `sweep`): a batch of each kind inside the writer's transaction.

use portcullis_base::limits::{IDEMPOTENCY_KEPT, SWEEP_BATCH};
use portcullis_base::{SessionId, TenantId};
use portcullis_store::{SessionKey, SweepResult, Topic};
use rusqlite::params;

use crate::codec::id_at;
use crate::error::Fail;
use crate::heads;
use crate::op::Tx;
use crate::query::bounded;

pub(crate) fn sweep(tx: &Tx<'_>) -> Result<SweepResult, Fail> {
    let now = tx.env.clock.now();
    // Sessions that are due already have been told; without this condition they would fill every batch.
    let overdue: Vec<SessionKey> = tx
        .conn
        .prepare_cached(
            "SELECT DISTINCT a.tenant, a.session FROM asks a INDEXED BY asks_expiry \
             JOIN session_heads h ON h.tenant = a.tenant AND h.session = a.session \
             WHERE a.state = 'pending' AND a.expires_at <= ?1 AND h.work_due_at IS NULL AND h.status <> 'terminated' \
             LIMIT ?2",
        )?
        .query_map(params![now.as_micros(), bounded(SWEEP_BATCH)], |row| {
            let (tenant, session) = (TenantId::from_u128(id_at(row, 0)?), SessionId::from_u128(id_at(row, 1)?));
            Ok(SessionKey { tenant, session })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut swept = SweepResult::default();
    for key in overdue {
        if let Some(update) = heads::read(tx.conn, key)?.and_then(|head| head.swept(now)) {
            heads::update(tx.conn, key, &update)?;
            swept.expired += 1;
            tx.topics.borrow_mut().push(Topic::Due);
        }
    }
    let kept = i64::try_from(IDEMPOTENCY_KEPT.as_micros()).unwrap_or(i64::MAX);
    swept.forgotten = tx
        .conn
        .prepare_cached(
            "DELETE FROM idempotency WHERE (tenant, route, key) IN \
             (SELECT tenant, route, key FROM idempotency WHERE at <= ?1 ORDER BY at LIMIT ?2)",
        )?
        .execute(params![now.as_micros().saturating_sub(kept), bounded(SWEEP_BATCH)])?;
    Ok(swept)
}
