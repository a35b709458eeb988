//! Lists of sessions, asks, records and unknown outcomes: what can be asked for, in which order, and how a reader goes on
//! from one page to the next.
//!
//! The order of a list never changes for what is in it: sessions stand by the time of their creation, asks by the time
//! they were raised, records by id. So a reader who goes on sees nothing twice and misses nothing that was there when it
//! began, whatever is written meanwhile.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use portcullis_base::{AgentId, AskId, Digest, EventId, InvocationId, SessionId, TenantId, Timestamp, fingerprint};
use portcullis_event::facts::OutcomeStatus;
use portcullis_event::{AskState, SessionStatus};
use serde::Serialize;

use crate::{AskRow, Record, SessionListing, StoreError, UnknownCall};

/// The most items of one page: a page is held in memory whole, and longer lists have a cursor.
pub const PAGE_MOST: usize = 1_000;

/// Which end of a list comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// A span of time: from `since` on, and before `before`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TimeBounds {
    pub since: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

impl TimeBounds {
    /// Whether a time lies in it.
    #[must_use]
    pub fn holds(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= at) && self.before.is_none_or(|before| at < before)
    }
}

/// Which sessions a reader wants; every condition must hold. Reserved logs are no sessions, and what was erased is not
/// listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionQuery {
    pub agent: Option<AgentId>,
    pub status: Option<SessionStatus>,
    pub parent: Option<SessionId>,
    /// Every session of a tree, its root included.
    pub root: Option<SessionId>,
    pub tag: Option<String>,
    /// How it stands to its outcome; a session without one is not listed then.
    pub outcome: Option<OutcomeStatus>,
    pub workspace: Option<String>,
    pub created: TimeBounds,
    /// When its newest event was. No index has it: it is looked at in what the other conditions leave.
    pub active: TimeBounds,
    pub order: ListOrder,
}

/// Which asks a reader wants; every condition must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AskQuery {
    pub session: Option<SessionId>,
    pub state: Option<AskState>,
    /// The managed event that clients answer to, or its copy at the root of the session's tree.
    pub tool_use: Option<EventId>,
    pub principal: Option<String>,
    pub asked: TimeBounds,
    pub order: ListOrder,
}

/// Which records of a kind a reader wants, by id. Each field must be one that [`crate::index_fields`] declares for the
/// kind, else [`StoreError::NotIndexed`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordQuery {
    pub kind: String,
    /// Name and value, all of which must hold; each field is named once.
    pub fields: Vec<(String, String)>,
}

/// Which calls of unknown outcome a reader wants, those of the oldest session first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnknownQuery {
    pub session: Option<SessionId>,
    pub invocation: Option<InvocationId>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where to go on; `None`: this is the end.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The page of `found`, which holds one item more than `limit` if there is another page.
    #[must_use]
    pub fn of<Q: ListQuery<Item = T>>(tenant: TenantId, query: &Q, mut found: Vec<T>, limit: usize) -> Self {
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| Cursor::after(tenant, query, &Q::place(last)));
        Self { items: found, next }
    }
}

/// How many items a page of `limit` may have, and how many a backend looks for to know whether there are more.
#[must_use]
pub fn page_size(limit: usize) -> (usize, usize) {
    let limit = limit.min(PAGE_MOST);
    (limit, limit + 1)
}

/// A question with a list for an answer.
pub trait ListQuery: Serialize {
    /// Its name in cursors: equal conditions of two kinds of lists are not the same question.
    const LIST: &'static str;
    type Item;
    /// What the list is ordered by; no two items have the same.
    type Place: Place;

    /// Where an item stands.
    fn place(item: &Self::Item) -> Self::Place;
}

/// A time and an id, a pair of ids, or a text, by which a list is ordered.
pub trait Place: Sized {
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl Place for (Timestamp, u128) {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.0.as_micros().to_be_bytes()[..], &self.1.to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, id) = bytes.split_at_checked(size_of::<i64>())?;
        let at = Timestamp::from_micros(i64::from_be_bytes(at.try_into().ok()?));
        Some((at, u128::from_be_bytes(id.try_into().ok()?)))
    }
}

impl Place for (u128, u128) {
    fn to_bytes(&self) -> Vec<u8> {
        [self.0.to_be_bytes(), self.1.to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (first, second) = bytes.split_at_checked(size_of::<u128>())?;
        Some((u128::from_be_bytes(first.try_into().ok()?), u128::from_be_bytes(second.try_into().ok()?)))
    }
}

impl Place for String {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

impl ListQuery for SessionQuery {
    const LIST: &'static str = "sessions";
    type Item = SessionListing;
    type Place = (Timestamp, u128);

    fn place(item: &SessionListing) -> Self::Place {
        (item.row.created_at, item.session_id.as_u128())
    }
}

impl SessionQuery {
    /// Whether a session is one of those.
    #[must_use]
    pub fn takes(&self, listing: &SessionListing) -> bool {
        let SessionListing { row, facts, .. } = listing;
        self.agent.is_none_or(|agent| facts.agent_id == Some(agent))
            && self.status.is_none_or(|status| facts.status == status)
            && self.parent.is_none_or(|parent| row.parent_session_id == Some(parent))
            && self.root.is_none_or(|root| row.root_session_id == root)
            && self.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
            && self.outcome.is_none_or(|wanted| facts.outcome.as_ref().is_some_and(|found| found.status == wanted))
            && (self.workspace.is_none() || row.workspace == self.workspace)
            && self.created.holds(row.created_at)
            && self.active.holds(facts.last_activity_at)
    }
}

impl ListQuery for AskQuery {
    const LIST: &'static str = "asks";
    type Item = AskRow;
    type Place = (Timestamp, u128);

    fn place(item: &AskRow) -> Self::Place {
        let ask: AskId = item.ask_id;
        (item.asked_at, ask.as_u128())
    }
}

impl AskQuery {
    /// Whether an ask is one of those.
    #[must_use]
    pub fn takes(&self, ask: &AskRow) -> bool {
        self.session.is_none_or(|session| ask.session_id == session)
            && self.state.is_none_or(|state| ask.state == state)
            && self.principal.as_ref().is_none_or(|principal| ask.principal == *principal)
            && self.asked.holds(ask.asked_at)
            && self.tool_use.is_none_or(|used| {
                ask.tool_use_id == Some(used) || ask.root.is_some_and(|root| root.tool_use_id == used)
            })
    }
}

impl ListQuery for RecordQuery {
    const LIST: &'static str = "records";
    type Item = Record;
    type Place = String;

    fn place(item: &Record) -> Self::Place {
        item.id.clone()
    }
}

impl ListQuery for UnknownQuery {
    const LIST: &'static str = "unknown";
    type Item = UnknownCall;
    type Place = (u128, u128);

    fn place(item: &UnknownCall) -> Self::Place {
        (item.session_id.as_u128(), item.outcome.invocation_id.as_u128())
    }
}

impl UnknownQuery {
    /// Whether a call is one of those.
    #[must_use]
    pub fn takes(&self, call: &UnknownCall) -> bool {
        self.session.is_none_or(|session| call.session_id == session)
            && self.invocation.is_none_or(|invocation| call.outcome.invocation_id == invocation)
    }
}

/// Bytes of the digest that binds a cursor: half a SHA-256, which nobody meets by accident. It is no secret and proves
/// nothing to anyone; a transport that hands cursors to strangers signs them.
const BOUND_BYTES: usize = 16;

/// Where a list goes on. It is bound to its question and its tenant, and means nothing elsewhere. As text it is opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    bound: [u8; BOUND_BYTES],
    place: Vec<u8>,
}

impl Cursor {
    /// The cursor behind a place in the list of a question.
    #[must_use]
    pub fn after<Q: ListQuery>(tenant: TenantId, query: &Q, place: &Q::Place) -> Self {
        Self { bound: bound(tenant, query), place: place.to_bytes() }
    }

    /// The place behind which the list goes on.
    ///
    /// # Errors
    /// [`StoreError::ForeignCursor`] if it came from another question or another tenant.
    pub fn place<Q: ListQuery>(&self, tenant: TenantId, query: &Q) -> Result<Q::Place, StoreError> {
        if self.bound != bound(tenant, query) {
            return Err(StoreError::ForeignCursor);
        }
        Q::Place::from_bytes(&self.place).ok_or(StoreError::ForeignCursor)
    }
}

/// The place of a cursor, if there is one.
///
/// # Errors
/// [`StoreError::ForeignCursor`] if it came from another question or another tenant.
pub fn place_of<Q: ListQuery>(
    tenant: TenantId,
    query: &Q,
    cursor: Option<&Cursor>,
) -> Result<Option<Q::Place>, StoreError> {
    cursor.map(|cursor| cursor.place(tenant, query)).transpose()
}

fn bound<Q: ListQuery>(tenant: TenantId, query: &Q) -> [u8; BOUND_BYTES] {
    // Invariant: a question is structs, words, numbers and texts, which always have a canonical form.
    let asked = fingerprint(&(Q::LIST, tenant.to_string(), query)).expect("a question is always JSON");
    std::array::from_fn(|i| Digest::as_bytes(&asked)[i])
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(2 * (BOUND_BYTES + self.place.len()));
        for byte in self.bound.iter().chain(&self.place) {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    /// # Errors
    /// [`StoreError::ForeignCursor`] for a text that no cursor has.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let digits = text.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let bytes: Option<Vec<u8>> = if is_hex { digits.chunks(2).map(byte).collect() } else { None };
        let bytes = bytes.ok_or(StoreError::ForeignCursor)?;
        let (bound, place) = bytes.split_at_checked(BOUND_BYTES).ok_or(StoreError::ForeignCursor)?;
        let bound = bound.try_into().map_err(|_| StoreError::ForeignCursor)?;
        Ok(Self { bound, place: place.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId::from_u128(1);

    fn cursor() -> Cursor {
        Cursor::after(TENANT, &SessionQuery::default(), &(Timestamp::from_micros(-7), 9))
    }

    #[test]
    fn a_cursor_survives_being_text() {
        let again: Cursor = cursor().to_string().parse().expect("a cursor");
        assert_eq!(again, cursor());
        assert_eq!(again.place(TENANT, &SessionQuery::default()), Ok((Timestamp::from_micros(-7), 9)));
    }

    #[test]
    fn s14_a_cursor_of_another_question_or_tenant_is_refused() {
        let other = SessionQuery { tag: Some("x".to_owned()), ..SessionQuery::default() };
        assert_eq!(cursor().place(TENANT, &other), Err(StoreError::ForeignCursor));
        assert_eq!(cursor().place(TenantId::from_u128(2), &SessionQuery::default()), Err(StoreError::ForeignCursor));
        assert_eq!(cursor().place(TENANT, &AskQuery::default()), Err(StoreError::ForeignCursor));
    }

    #[test]
    fn text_that_is_no_cursor_is_refused() {
        let whole = cursor().to_string();
        let wrong = ["", "0", "zz", "+1", &whole[..20], &whole[..whole.len() - 2], &format!("{whole}00"), "ä"];
        for text in wrong {
            let read = text.parse::<Cursor>().and_then(|cursor| cursor.place(TENANT, &SessionQuery::default()));
            assert_eq!(read, Err(StoreError::ForeignCursor), "{text}");
        }
    }
}
