//! Remembered allows (tool-contract 13.5) as records: made in the transaction of the reply that gave them (S10), read
//! where the gate decides, counted where they answer.
//!
//! Three kinds of record. `grant/ID` is the grant itself. `grant_uses/ID` is written with every use, so that its
//! version *is* the number of uses, whichever processes used it at once. `grants/revision` is written with every
//! grant and revocation: a reader whose copy bears its version has all there is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{AppendId, AskId, Digest, GrantId, SessionId, TenantId, Timestamp};
use portcullis_event::facts::{GrantCreated, GrantRevoked, PermissionAsked, Reply};
use portcullis_event::{Body, Draft, Event, EventBody as _, Stamp, operator_log_of};
use portcullis_policy::{Grant, GrantScope, RuleId, Satisfies, SuggestedRule};
use portcullis_store::{Commit, Record, RecordWrite, SessionKey, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::scope::Scope;

const GRANT: &str = "grant";
const USES: &str = "grant_uses";
const REVISION: (&str, &str) = ("grants", "revision");

/// Why an answer is not remembered, or a grant not revoked. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("ask {ask} cannot be remembered: {why}; allow it once")]
    NotRemembered { ask: AskId, why: &'static str },
    #[error("there is no grant {0}")]
    Unknown(GrantId),
    #[error("grant {id} was revoked already, by {by} at {at}")]
    Revoked { id: GrantId, by: String, at: Timestamp },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who took a grant back, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    pub by: String,
    pub at: Timestamp,
}

/// A grant with where it was given and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RememberedGrant {
    #[serde(flatten)]
    pub grant: Grant,
    /// Whose log holds its `grant.created`.
    pub given_in: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

impl RememberedGrant {
    /// Whether it can still answer.
    #[must_use]
    pub fn in_force(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.grant.expires_at.is_none_or(|end| now < end)
    }
}

/// What a reply that remembers adds to its commit.
pub struct NewGrant {
    pub id: GrantId,
    pub event: GrantCreated,
    pub records: Vec<RecordWrite>,
}

/// The grants that have not been revoked, as of one revision.
struct Copy {
    revision: u64,
    grants: Arc<[Grant]>,
}

/// The grants of one tenant.
pub struct GrantBook {
    store: Arc<dyn Store>,
    tenant: TenantId,
    copy: Mutex<Option<Copy>>,
}

impl GrantBook {
    /// Those that `store` keeps.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tenant: TenantId) -> Self {
        Self { store, tenant, copy: Mutex::default() }
    }

    /// Every grant there ever was, oldest first, with its uses.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn all(&self) -> Result<Vec<RememberedGrant>, StoreError> {
        let uses = self.store.records(self.tenant, USES).await?;
        let records = self.store.records(self.tenant, GRANT).await?;
        records
            .into_iter()
            .map(|record| {
                let mut found = read(&record)?;
                let used = uses.binary_search_by(|uses| uses.id.cmp(&record.id));
                found.grant.uses = used.map_or(0, |at| uses[at].version);
                Ok(found)
            })
            .collect()
    }

    /// Grants whose records are not what the log says was given; each with the reason.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn altered(&self) -> Result<Vec<(String, &'static str)>, StoreError> {
        let mut given = GrantLogs::new(&*self.store, self.tenant);
        let mut altered = Vec::new();
        for record in self.store.records(self.tenant, GRANT).await? {
            let why = match read(&record) {
                Ok(found) => given.fault(&record, &found).await?,
                Err(_) => Some("its record cannot be read"),
            };
            altered.extend(why.map(|why| (record.id.clone(), why)));
        }
        Ok(altered)
    }

    /// What may answer an ask now; who asks, what and when is for the policy to compare.
    async fn standing(&self) -> Result<Arc<[Grant]>, StoreError> {
        let (kind, id) = REVISION;
        // Read before the grants: one that comes between the two reads is read again next time.
        let Some(Record { version: revision, .. }) = self.store.record(self.tenant, kind, id).await? else {
            return Ok(Arc::default());
        };
        if let Some(copy) = &*self.copy.lock().unwrap_or_else(PoisonError::into_inner)
            && copy.revision == revision
        {
            return Ok(Arc::clone(&copy.grants));
        }
        let records = self.store.records(self.tenant, GRANT).await?;
        let all: Vec<RememberedGrant> = records.iter().map(read).collect::<Result<_, _>>()?;
        let mut given = GrantLogs::new(&*self.store, self.tenant);
        let mut standing = Vec::new();
        for (found, record) in all.into_iter().zip(&records).filter(|(found, _)| found.revoked.is_none()) {
            match given.fault(record, &found).await? {
                None => standing.push(found.grant),
                Some(why) => tracing::warn!(grant = %record.id, "a remembered allow is not used: {why}"),
            }
        }
        let grants: Arc<[Grant]> = standing.into();
        let copy = Copy { revision, grants: Arc::clone(&grants) };
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
        Ok(grants)
    }

    /// The grant that a reply gives: the rule that its ask suggested and a person saw, no other.
    ///
    /// # Errors
    /// If the ask is pinned, or suggested no rule.
    pub fn given(
        &self,
        asked: &PermissionAsked,
        session: SessionId,
        id: GrantId,
        terms: &Terms<'_>,
    ) -> Result<NewGrant, GrantError> {
        let not = |why| GrantError::NotRemembered { ask: asked.ask_id, why };
        if asked.pinned {
            return Err(not(
                "it is pinned, so that every call asks every time, and no rule and no earlier answer allows it",
            ));
        }
        let suggested = asked.suggested_rules.first().cloned().and_then(|rule| serde_json::from_value(rule).ok());
        let suggested: SuggestedRule = suggested.ok_or_else(|| {
            not("no one rule could allow exactly what it is about, though you may write one that allows more")
        })?;
        let satisfies = asked.grantable.as_ref().and_then(|from| {
            // A tool's default has a name that no person may choose.
            let rule_id: RuleId = serde_json::from_value(Value::String(from.rule_id.clone())).ok()?;
            Some((Satisfies { rule_id, rule_hash: from.rule_hash }, from))
        });
        let (satisfies, from) = satisfies.ok_or_else(|| not("it was asked by a version that could not remember"))?;
        let scope = GrantScope {
            project: Some(from.project.clone()),
            agent: Some(from.agent.clone()),
            session: (*terms.reply == Reply::AllowSession).then_some(session),
        };
        let grant = Grant {
            id,
            rule: suggested.rule(),
            satisfies,
            scope,
            created_by: terms.by.to_owned(),
            created_at: terms.now,
            expires_at: terms.expires_at,
            uses: 0,
        };
        let event = GrantCreated { grant_id: id, grant: json(&grant) };
        let records = vec![write(id, Some(0), &RememberedGrant { grant, given_in: session, revoked: None }), revised()];
        Ok(NewGrant { id, event, records })
    }

    /// Takes a grant back: `grant.revoked` in the log where it was given, or in the operator log if that was erased. The
    /// next decision, in whatever process, knows.
    ///
    /// # Errors
    /// If there is no such grant, it was revoked before, or the store fails.
    pub async fn revoke(&self, id: GrantId, by: &str, stamp: &Stamp<'_>) -> Result<RememberedGrant, GrantError> {
        let record = self.store.record(self.tenant, GRANT, &id.to_string()).await?.ok_or(GrantError::Unknown(id))?;
        let mut found = read(&record)?;
        if let Some(Revocation { by, at }) = found.revoked {
            return Err(GrantError::Revoked { id, by, at });
        }
        let now = stamp.clock.now();
        found.revoked = Some(Revocation { by: by.to_owned(), at: now });
        let draft: Draft = stamp.draft(&GrantRevoked { grant_id: id, by: by.to_owned() });
        let key = SessionKey { tenant: self.tenant, session: found.given_in };
        let mut commit = Commit::client(key, AppendId::make(stamp.ids, now), vec![draft]);
        // Two who revoke at once: the second is told that the first was quicker.
        commit.records = vec![write(id, Some(record.version), &found), revised()];
        match self.store.commit(commit.clone()).await {
            // Nothing is added to an erased log, but what was remembered in it stayed, and must stay revocable.
            Err(StoreError::Erased(_)) => {
                commit.key.session = operator_log_of(self.tenant);
                self.store.commit(commit).await?;
            }
            done => drop(done?),
        }
        Ok(found)
    }
}

/// What the logs say of grants, each log read once. A record is only a copy of it, and nothing is allowed by a copy alone.
struct GrantLogs<'a> {
    store: &'a dyn Store,
    tenant: TenantId,
    logs: HashMap<SessionId, Vec<Event>>,
}

impl<'a> GrantLogs<'a> {
    fn new(store: &'a dyn Store, tenant: TenantId) -> Self {
        Self { store, tenant, logs: HashMap::new() }
    }

    async fn of(&mut self, session: SessionId) -> Result<&[Event], StoreError> {
        Ok(match self.logs.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let key = SessionKey { tenant: self.tenant, session };
                new.insert(self.store.of_kinds(key, &[GrantCreated::KIND, GrantRevoked::KIND]).await?)
            }
        })
    }

    /// What is wrong with the record of a grant.
    async fn fault(&mut self, record: &Record, found: &RememberedGrant) -> Result<Option<&'static str>, StoreError> {
        let id = found.grant.id;
        if record.id != id.to_string() {
            return Ok(Some("its record has the name of another grant"));
        }
        let event = GrantCreated { grant_id: id, grant: json(&found.grant) };
        let payload_hash = Digest::of(event.to_payload().as_bytes());
        let is_given = |event: &Event| match &*event.body_ref() {
            Body::GrantCreated(given) if given.grant_id == id => {
                serde_json::from_value::<Grant>(given.grant.clone()).is_ok_and(|given| given == found.grant)
            }
            // Its log was erased; what it hashes to is still there.
            _ => event.payload.is_none() && event.kind == GrantCreated::KIND && event.payload_hash == payload_hash,
        };
        if !self.of(found.given_in).await?.iter().any(is_given) {
            return Ok(Some("nobody gave it as its record says"));
        }
        let revokes = |event: &Event| matches!(&*event.body_ref(), Body::GrantRevoked(fact) if fact.grant_id == id);
        let operator = operator_log_of(self.tenant);
        let revoked =
            self.of(found.given_in).await?.iter().any(revokes) || self.of(operator).await?.iter().any(revokes);
        Ok(match (revoked, found.revoked.is_some()) {
            (true, false) => Some("it was revoked, and its record does not say so"),
            (false, true) => Some("its record says that it was revoked, and nobody did"),
            _ => None,
        })
    }
}

/// How an answer is to be remembered.
pub struct Terms<'a> {
    pub reply: &'a Reply,
    pub by: &'a str,
    pub now: Timestamp,
    pub expires_at: Option<Timestamp>,
}

impl Scope {
    /// What may answer an ask. If it cannot be read nothing answers, and a person is asked.
    pub(crate) async fn remembered(&self) -> Arc<[Grant]> {
        self.books.grants.standing().await.unwrap_or_else(|error| {
            tracing::warn!("remembered allows cannot be read, so everything asks: {error}");
            Arc::default()
        })
    }
}

/// One use more.
pub(crate) fn used(id: GrantId) -> RecordWrite {
    RecordWrite { kind: USES.to_owned(), id: id.to_string(), expected: None, body: Some(json!({})) }
}

fn revised() -> RecordWrite {
    let (kind, id) = REVISION;
    RecordWrite { kind: kind.to_owned(), id: id.to_owned(), expected: None, body: Some(json!({})) }
}

fn write(id: GrantId, expected: Option<u64>, grant: &RememberedGrant) -> RecordWrite {
    RecordWrite { kind: GRANT.to_owned(), id: id.to_string(), expected, body: Some(json(grant)) }
}

fn json(value: &impl Serialize) -> Value {
    // Invariant: grants are texts, numbers and times, which JSON always takes.
    serde_json::to_value(value).expect("a grant is JSON")
}

fn read(record: &Record) -> Result<RememberedGrant, StoreError> {
    serde_json::from_value(record.body.clone())
        .map_err(|error| StoreError::Corrupt(format!("the record of grant {} cannot be read: {error}", record.id)))
}
