//! Calls that had begun when their process died, so that nobody knows how they ended.

use portcullis_base::{InvocationId, SessionId, TenantId};
use portcullis_pipeline::folded;
use portcullis_store::{IntentRow, Log, SessionKey, Store, StoreError, created};

/// One such call.
pub struct UnknownCall {
    pub session: SessionId,
    pub invocation: InvocationId,
    pub row: Option<IntentRow>,
}

/// Those of one session, or of all.
///
/// # Errors
/// If there is no such session, or the store cannot be read.
pub async fn unknown_calls(
    store: &dyn Store,
    tenant: TenantId,
    session: Option<SessionId>,
) -> Result<Vec<UnknownCall>, StoreError> {
    let sessions = match session {
        Some(session) => {
            created(store, SessionKey { tenant, session }).await?;
            vec![session]
        }
        None => store.logs(tenant).await?,
    };
    let mut found = Vec::new();
    for session in sessions {
        let key = SessionKey { tenant, session };
        let unknown = folded(store, key).await?.progress.unknown;
        if unknown.is_empty() {
            continue;
        }
        let rows = store.intents(key, false).await?;
        found.extend(unknown.into_iter().map(|invocation| UnknownCall {
            session,
            invocation,
            row: rows.iter().find(|row| row.invocation_id == Some(invocation)).cloned(),
        }));
    }
    Ok(found)
}

/// The session in which a call ran, if any is known.
///
/// # Errors
/// If the store cannot be read.
pub async fn session_of(
    log: &dyn Log,
    tenant: TenantId,
    invocation: InvocationId,
) -> Result<Option<SessionId>, StoreError> {
    for session in log.logs(tenant).await? {
        let rows = log.intents(SessionKey { tenant, session }, false).await?;
        if rows.iter().any(|row| row.invocation_id == Some(invocation)) {
            return Ok(Some(session));
        }
    }
    Ok(None)
}
