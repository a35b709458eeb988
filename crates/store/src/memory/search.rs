//! Search without an index: the cursors are kept as a table's would be, so that it lags like one.

use async_trait::async_trait;
use portcullis_base::TenantId;
use portcullis_event::{ledger_of, operator_log_of};

use super::{MemoryStore, Tables};
use crate::{Hit, Query, Search, SessionKey, StoreError};

/// Logs of a tenant that can be searched, with their last seq.
fn logs(tables: &Tables, tenant: TenantId) -> Vec<(SessionKey, u64)> {
    let reserved = [ledger_of(tenant), operator_log_of(tenant)];
    let mine = tables.heads.iter().filter(|(key, _)| key.tenant == tenant && !reserved.contains(&key.session));
    mine.map(|(key, head)| (*key, head.last_seq)).collect()
}

#[async_trait]
impl Search for MemoryStore {
    async fn catch_up(&self, tenant: TenantId, limit: usize) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut left = limit as u64;
        for (key, last) in logs(&tables, tenant) {
            let cursor = tables.searched.entry(key).or_default();
            let taken = (last - *cursor).min(left);
            *cursor += taken;
            left -= taken;
        }
        Ok(limit as u64 - left)
    }

    async fn search_lag(&self, tenant: TenantId) -> Result<u64, StoreError> {
        let tables = self.tables();
        let seen = |key: &SessionKey| tables.searched.get(key).copied().unwrap_or(0);
        Ok(logs(&tables, tenant).iter().map(|(key, last)| last - seen(key)).sum())
    }

    async fn search(&self, tenant: TenantId, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let tables = self.tables();
        let mut hits = Vec::new();
        for (key, cursor) in tables.searched.iter().filter(|(key, _)| key.tenant == tenant) {
            let events = tables.events.get(key).into_iter().flatten().take_while(|event| event.seq <= *cursor);
            hits.extend(events.filter_map(|event| query.hit(key.session, event)));
        }
        hits.sort_by_key(|hit| std::cmp::Reverse((hit.at.as_micros() / 1_000, hit.session_id, hit.seq)));
        hits.truncate(limit);
        Ok(hits)
    }
}
