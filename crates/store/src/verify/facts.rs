//! The computed facts of a session held against its log (S15).

use std::collections::BTreeMap;

use portcullis_base::InvocationId;
use portcullis_event::{Event, SessionFacts, UnknownOutcome, facts_change};

use super::LogFault;
use crate::{PAGE_MOST, SessionKey, Store, StoreError, UnknownQuery};

/// The facts as the events of one log give them.
#[derive(Default)]
pub(super) struct FoldedFacts {
    facts: Option<SessionFacts>,
    unknown: BTreeMap<InvocationId, UnknownOutcome>,
}

impl FoldedFacts {
    pub(super) fn take_in(&mut self, event: &Event) {
        let change = facts_change(std::slice::from_ref(event));
        change.apply_to(&mut self.facts);
        for outcome in change.unknown {
            self.unknown.entry(outcome.invocation_id).or_insert(outcome);
        }
        for invocation in change.resolved {
            self.unknown.remove(&invocation);
        }
    }

    /// What the tables say otherwise. A log that went on since `last_seq` is not looked at: its rows went on with it.
    pub(super) async fn faults(
        self,
        store: &dyn Store,
        key: SessionKey,
        last_seq: u64,
    ) -> Result<Vec<LogFault>, StoreError> {
        let stored = store.session(key).await?;
        let mut unknown: BTreeMap<InvocationId, UnknownOutcome> = BTreeMap::new();
        let query = UnknownQuery { session: Some(key.session), invocation: None };
        let mut cursor = None;
        loop {
            let page = store.unknown_outcomes(key.tenant, &query, PAGE_MOST, cursor.as_ref()).await?;
            unknown.extend(page.items.iter().map(|call| (call.outcome.invocation_id, call.outcome)));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        if store.head(key).await?.is_none_or(|head| head.last_seq != last_seq) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut fault = |what: &str| found.push(LogFault::Row { session: key.session, what: what.to_owned() });
        match (stored.map(|listing| listing.facts), self.facts) {
            (None, None) => {}
            (Some(stored), Some(folded)) if stored == folded => {}
            (Some(_), Some(_)) => fault("the facts of the session are not those of its log"),
            (None, Some(_)) => fault("the session has no row of facts"),
            (Some(_), None) => fault("there is a row of facts, and its log begins no session"),
        }
        if unknown != self.unknown {
            fault("the calls of unknown outcome are not those of its log");
        }
        Ok(found)
    }
}
