//! Lists without an index: everything of the tenant is looked at and put in order. The answers are those of every backend.

use portcullis_base::TenantId;
use portcullis_event::FactsChange;

use super::Tables;
use crate::query::{ListQuery, Place, place_of};
use crate::{
    AskQuery, AskRow, Cursor, ListOrder, Page, Record, RecordQuery, SessionKey, SessionListing, SessionQuery,
    StoreError, UnknownCall, UnknownQuery, indexed_values, page_size,
};

impl Tables {
    /// Brings the facts of a session forward.
    pub(super) fn apply_facts(&mut self, key: SessionKey, change: &FactsChange) {
        let mut facts = self.facts.remove(&key);
        change.apply_to(&mut facts);
        let has_facts = facts.is_some();
        self.facts.extend(facts.map(|facts| (key, facts)));
        if !has_facts {
            return;
        }
        for outcome in &change.unknown {
            self.unknown.entry((key, outcome.invocation_id)).or_insert(*outcome);
        }
        for invocation in &change.resolved {
            self.unknown.remove(&(key, *invocation));
        }
    }

    pub(super) fn listing(&self, key: SessionKey) -> Option<SessionListing> {
        Some(SessionListing { children: self.children(key), ..self.childless(key)? })
    }

    /// A session whose children were not counted yet.
    fn childless(&self, key: SessionKey) -> Option<SessionListing> {
        let (row, facts) = (self.sessions.get(&key)?.clone(), self.facts.get(&key)?.clone());
        let head = self.heads.get(&key)?.clone();
        Some(SessionListing { session_id: key.session, row, head, facts, children: 0 })
    }

    fn children(&self, parent: SessionKey) -> u64 {
        let of_tenant = self.sessions.iter().filter(|(key, _)| key.tenant == parent.tenant);
        of_tenant.filter(|(_, row)| row.parent_session_id == Some(parent.session)).count() as u64
    }

    pub(super) fn find_sessions(
        &self,
        tenant: TenantId,
        query: &SessionQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SessionListing>, StoreError> {
        let mine = self.facts.keys().filter(|key| key.tenant == tenant);
        let all = mine.filter_map(|key| self.childless(*key)).filter(|listing| query.takes(listing)).collect();
        let mut page = page(tenant, query, query.order, all, (limit, cursor))?;
        for listing in &mut page.items {
            listing.children = self.children(SessionKey { tenant, session: listing.session_id });
        }
        Ok(page)
    }

    pub(super) fn find_asks(
        &self,
        tenant: TenantId,
        query: &AskQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<AskRow>, StoreError> {
        let mine = self.asks.iter().filter(|((of, _), ask)| *of == tenant && query.takes(ask));
        let all = mine.map(|(_, ask)| ask.clone()).collect();
        page(tenant, query, query.order, all, (limit, cursor))
    }

    pub(super) fn unknown_outcomes(
        &self,
        tenant: TenantId,
        query: &UnknownQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<UnknownCall>, StoreError> {
        let call = |(key, _): &(SessionKey, _), outcome: &portcullis_event::UnknownOutcome| UnknownCall {
            session_id: key.session,
            outcome: *outcome,
            tool: self.intents.get(key).and_then(|rows| rows.get(&outcome.intent_id)).map(|row| row.tool.clone()),
        };
        let mine = self.unknown.iter().filter(|((key, _), _)| key.tenant == tenant);
        let all = mine.map(|(at, outcome)| call(at, outcome)).filter(|call| query.takes(call)).collect();
        page(tenant, query, ListOrder::OldestFirst, all, (limit, cursor))
    }

    pub(super) fn find_records(
        &self,
        tenant: TenantId,
        query: &RecordQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Record>, StoreError> {
        let wanted = query.wanted()?;
        let fits = |row: &Record| {
            let values = indexed_values(&row.kind, &row.body);
            wanted.iter().zip(&values).all(|(wanted, found)| wanted.is_none() || *wanted == found.as_deref())
        };
        let mine = self.records.iter().filter(|((of, kind, _), _)| *of == tenant && *kind == query.kind);
        let all = mine.map(|(_, row)| row).filter(|row| fits(row)).cloned().collect();
        page(tenant, query, ListOrder::OldestFirst, all, (limit, cursor))
    }
}

fn page<Q: ListQuery>(
    tenant: TenantId,
    query: &Q,
    order: ListOrder,
    mut all: Vec<Q::Item>,
    (limit, cursor): (usize, Option<&Cursor>),
) -> Result<Page<Q::Item>, StoreError>
where
    Q::Place: Place + Ord,
{
    let after = place_of(tenant, query, cursor)?;
    all.sort_by_key(Q::place);
    if order == ListOrder::NewestFirst {
        all.reverse();
    }
    let (limit, looked_for) = page_size(limit);
    let behind = |item: &Q::Item| match (&after, order) {
        (None, _) => true,
        (Some(after), ListOrder::OldestFirst) => Q::place(item) > *after,
        (Some(after), ListOrder::NewestFirst) => Q::place(item) < *after,
    };
    let found = all.into_iter().filter(behind).take(looked_for).collect();
    Ok(Page::of(tenant, query, found, limit))
}
