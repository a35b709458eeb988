//! Ordinary rows.

use async_trait::async_trait;
use portcullis_base::{TenantId, Timestamp};

use super::{MemoryStore, Tables};
use crate::{Cursor, Page, Record, RecordQuery, RecordWrite, Records, StoreError};

impl Tables {
    pub(super) fn check_records(&self, tenant: TenantId, writes: &[RecordWrite]) -> Result<(), StoreError> {
        for write in writes {
            let found = self.records.get(&(tenant, write.kind.clone(), write.id.clone())).map_or(0, |r| r.version);
            if let Some(expected) = write.expected
                && expected != found
            {
                return Err(StoreError::VersionConflict {
                    kind: write.kind.clone(),
                    id: write.id.clone(),
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    pub(super) fn write_record(&mut self, tenant: TenantId, write: RecordWrite, now: Timestamp) -> u64 {
        let key = (tenant, write.kind.clone(), write.id.clone());
        let version = self.records.get(&key).map_or(0, |r| r.version) + 1;
        match write.body {
            Some(body) => {
                self.records.insert(key, Record { kind: write.kind, id: write.id, version, body, updated_at: now });
            }
            None => {
                self.records.remove(&key);
            }
        }
        version
    }
}

#[async_trait]
impl Records for MemoryStore {
    async fn record(&self, tenant: TenantId, kind: &str, id: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.tables().records.get(&(tenant, kind.to_owned(), id.to_owned())).cloned())
    }

    async fn records(&self, tenant: TenantId, kind: &str) -> Result<Vec<Record>, StoreError> {
        let tables = self.tables();
        let rows = tables.records.iter().filter(|((t, k, _), _)| *t == tenant && k == kind);
        Ok(rows.map(|(_, row)| row.clone()).collect())
    }

    async fn find_records(
        &self,
        tenant: TenantId,
        query: &RecordQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Record>, StoreError> {
        self.tables().find_records(tenant, query, limit, cursor)
    }

    async fn put_record(&self, tenant: TenantId, write: RecordWrite) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        tables.check_records(tenant, std::slice::from_ref(&write))?;
        let now = self.clock.now();
        Ok(tables.write_record(tenant, write, now))
    }
}
