//! Lists: every condition holds, pages follow one another, and nothing of another tenant is in them.

use std::time::Duration;

use portcullis_base::{AgentId, AskId, EventId, InvocationId, SessionId, TenantId};
use portcullis_event::facts::{
    CallRecovered, InvocationResolved, OutcomeStatus, OutcomeTrend, Reply, Resolution, StatusIdle, StatusRunning,
    StopReason,
};
use portcullis_event::{AskState, SessionFacts, SessionStatus};
use portcullis_store::{
    AskQuery, AskRow, Commit, Cursor, ListOrder, RecordQuery, RecordWrite, SessionKey, SessionListing, SessionQuery,
    Store, StoreError, TimeBounds, UnknownQuery,
};
use serde_json::json;

use super::erasure::erase_session;
use super::{Make, setup, whole};
use crate::World;

/// Small enough that the lists of these tests have several pages.
const PAGE: usize = 4;
const OTHER: TenantId = TenantId::from_u128(77);

/// Sessions of two agents, three workspaces, some tags and several statuses, some of them children; two are made at the
/// same moment.
async fn sessions(world: &World, store: &dyn Store, count: u32) -> Vec<SessionKey> {
    let mut keys: Vec<SessionKey> = Vec::new();
    for n in 0..count {
        if n % 2 == 0 {
            world.clock.advance(Duration::from_secs(1));
        }
        let key = world.key();
        let parent = (n % 4 == 3).then(|| keys[0].session);
        let created = world.created_with(key, |created| {
            created.agent_id = (n % 3 > 0).then(|| AgentId::from_u128(u128::from(n % 3)));
            created.workspace = (n % 5 > 0).then(|| format!("/work/{}", n % 2));
            created.tags = (0..n % 3).map(|tag| format!("tag {tag}")).collect();
            created.parent_session_id = parent;
            created.root_session_id = parent.unwrap_or(key.session);
        });
        store.commit(world.client(key, created)).await.expect("a session");
        let lease = world.claim(store, key, 1).await.expect("a lease");
        let running = world.draft(&StatusRunning { previous_status: "idle".to_owned() });
        let stop_reason = match n % 7 {
            0 => StopReason::RequiresAction { event_ids: vec![EventId::from_u128(1)] },
            _ => StopReason::EndTurn,
        };
        let idle = StatusIdle { previous_status: "running".to_owned(), stop_reason, summary: None };
        let mut events = if n % 4 == 1 { vec![running] } else { vec![running, world.draft(&idle)] };
        // Some have an outcome, some of these a verdict; a verdict alone says nothing.
        events.extend((n % 3 == 0).then(|| world.outcome("all is done")));
        events.extend((n % 2 == 0).then(|| world.verdict(OutcomeStatus::Pass, OutcomeTrend::Improving)));
        store.commit(world.work(key, &lease, events)).await.expect("a status");
        store.release(key, lease.fence, Some(u64::MAX)).await.expect("released");
        keys.push(key);
    }
    keys
}

/// Every page of a list, one after the other.
async fn all_sessions(store: &dyn Store, tenant: TenantId, query: &SessionQuery) -> Vec<SessionListing> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.find_sessions(tenant, query, PAGE, cursor.as_ref()).await.expect("a page");
        assert!(page.items.len() == PAGE || page.next.is_none(), "only the last page is short");
        items.extend(page.items);
        let Some(next) = page.next else { return items };
        // As a client keeps it.
        cursor = Some(next.to_string().parse::<Cursor>().expect("a cursor"));
    }
}

async fn all_asks(store: &dyn Store, tenant: TenantId, query: &AskQuery) -> Vec<AskRow> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.find_asks(tenant, query, PAGE, cursor.as_ref()).await.expect("a page");
        assert!(page.items.len() == PAGE || page.next.is_none(), "only the last page is short");
        items.extend(page.items);
        let Some(next) = page.next else { return items };
        cursor = Some(next);
    }
}

pub async fn sessions_are_listed_by_every_condition(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let start = world.now();
    let keys = sessions(&world, store, 40).await;
    let mut every = Vec::new();
    for key in &keys {
        every.push(store.session(*key).await.expect("a look").expect("it is there"));
    }
    assert_eq!(every[0].children, 10, "every fourth is its child");
    assert_eq!(every[1].children, 0);
    for listing in &every {
        let key = SessionKey { tenant: world.tenant, session: listing.session_id };
        assert_eq!(Some(&listing.facts), SessionFacts::fold(&whole(store, key).await).as_ref());
        assert_eq!(listing.head.status, listing.facts.status);
    }
    let parent = Some(keys[0].session);
    let middle = TimeBounds {
        since: Some(start.plus(Duration::from_secs(5))),
        before: Some(start.plus(Duration::from_secs(15))),
    };
    let agent = Some(AgentId::from_u128(1));
    let tag = Some("tag 0".to_owned());
    let workspace = Some("/work/1".to_owned());
    let (running, idle) = (Some(SessionStatus::Running), Some(SessionStatus::Idle));
    let all = SessionQuery::default;
    let asked = [
        all(),
        SessionQuery { agent, ..all() },
        SessionQuery { agent: Some(AgentId::from_u128(9)), ..all() },
        SessionQuery { status: running, ..all() },
        SessionQuery { status: Some(SessionStatus::RequiresAction), ..all() },
        SessionQuery { status: Some(SessionStatus::Terminated), ..all() },
        SessionQuery { parent, ..all() },
        SessionQuery { root: parent, ..all() },
        SessionQuery { tag: tag.clone(), ..all() },
        SessionQuery { outcome: Some(OutcomeStatus::Open), ..all() },
        SessionQuery { outcome: Some(OutcomeStatus::Pass), ..all() },
        SessionQuery { outcome: Some(OutcomeStatus::Fail), ..all() },
        SessionQuery { outcome: Some(OutcomeStatus::Pass), root: parent, tag: tag.clone(), ..all() },
        SessionQuery { workspace: workspace.clone(), ..all() },
        SessionQuery { created: middle, ..all() },
        SessionQuery { active: middle, ..all() },
        SessionQuery { created: TimeBounds { since: middle.before, before: middle.since }, ..all() },
        SessionQuery { agent, status: idle, ..all() },
        SessionQuery { agent, tag: tag.clone(), created: middle, ..all() },
        SessionQuery { root: parent, status: idle, workspace, ..all() },
        SessionQuery { parent, agent, status: running, tag, active: middle, ..all() },
    ];
    let count =
        |status| every.iter().filter(|one| one.facts.outcome.as_ref().is_some_and(|of| of.status == status)).count();
    assert_eq!(
        (count(OutcomeStatus::Open), count(OutcomeStatus::Pass)),
        (7, 7),
        "every third has one, half are judged"
    );
    let mut longest = 0;
    for query in asked {
        for order in [ListOrder::NewestFirst, ListOrder::OldestFirst] {
            let query = SessionQuery { order, ..query.clone() };
            let mut expected: Vec<SessionListing> = every.iter().filter(|one| query.takes(one)).cloned().collect();
            expected.sort_by_key(|one| (one.row.created_at, one.session_id));
            if order == ListOrder::NewestFirst {
                expected.reverse();
            }
            assert_eq!(all_sessions(store, world.tenant, &query).await, expected, "{query:?}");
            longest = longest.max(expected.len());
        }
    }
    assert_eq!(longest, keys.len(), "no reserved log is among them");
}

pub async fn a_list_is_not_disturbed_by_what_is_written_meanwhile(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let keys = sessions(&world, store, 12).await;
    let query = SessionQuery::default();
    let first = store.find_sessions(world.tenant, &query, 5, None).await.expect("a page");
    // Everything there is changes, and something new comes.
    for key in &keys {
        store.commit(world.input(*key, "more")).await.expect("input");
    }
    let newer = sessions(&world, store, 3).await;
    let rest = store.find_sessions(world.tenant, &query, 100, first.next.as_ref()).await.expect("a page");
    let seen: Vec<SessionId> = first.items.iter().chain(&rest.items).map(|one| one.session_id).collect();
    assert_eq!(seen.len(), keys.len(), "nothing twice");
    assert!(keys.iter().all(|key| seen.contains(&key.session)), "nothing missed");
    assert!(!newer.iter().any(|key| seen.contains(&key.session)), "what is newer stands before the first page");
    assert_eq!(rest.next, None);
}

/// Sessions with asks of several states, a minute apart.
async fn asks(world: &World, store: &dyn Store) -> (Vec<SessionKey>, Vec<AskId>) {
    let (mut keys, mut asks) = (Vec::new(), Vec::new());
    for n in 0..6u32 {
        let key = world.session(store).await.expect("a session");
        let lease = world.claim(store, key, 1).await.expect("a lease");
        for m in 0..3u32 {
            world.clock.advance(Duration::from_secs(60));
            let parked = world.parked();
            store.commit(world.work(key, &lease, parked.events)).await.expect("a park");
            if (n + m) % 2 == 0 {
                store.commit(world.client(key, world.replied(parked.ask, Reply::AllowOnce))).await.expect("answered");
            }
            asks.push(parked.ask);
        }
        store.release(key, lease.fence, None).await.expect("released");
        keys.push(key);
    }
    (keys, asks)
}

pub async fn asks_are_listed_by_every_condition(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let start = world.now();
    let (keys, ids) = asks(&world, store).await;
    let mut every = Vec::new();
    for ask in ids {
        every.push(store.ask(world.tenant, ask).await.expect("a look").expect("it is there"));
    }
    assert!(every.iter().all(|ask| ask.principal == "user:test" && ask.asked_at > start));
    let middle = TimeBounds {
        since: Some(start.plus(Duration::from_secs(300))),
        before: Some(start.plus(Duration::from_secs(900))),
    };
    let (session, state) = (Some(keys[2].session), Some(AskState::Pending));
    let principal = Some("user:test".to_owned());
    let all = AskQuery::default;
    let asked = [
        all(),
        AskQuery { session, ..all() },
        AskQuery { state, ..all() },
        AskQuery { state: Some(AskState::Voided), ..all() },
        AskQuery { principal: principal.clone(), ..all() },
        AskQuery { principal: Some("user:other".to_owned()), ..all() },
        AskQuery { asked: middle, ..all() },
        AskQuery { session, state, ..all() },
        AskQuery { state, principal, asked: middle, ..all() },
        AskQuery { tool_use: every[4].tool_use_id, ..all() },
        AskQuery { tool_use: every[4].root.map(|root| root.tool_use_id), ..all() },
        AskQuery { tool_use: every[4].tool_use_id, state: Some(AskState::Voided), ..all() },
        AskQuery { tool_use: Some(EventId::from_u128(5)), ..all() },
    ];
    for query in asked {
        for order in [ListOrder::NewestFirst, ListOrder::OldestFirst] {
            let query = AskQuery { order, ..query.clone() };
            let mut expected: Vec<AskRow> = every.iter().filter(|ask| query.takes(ask)).cloned().collect();
            expected.sort_by_key(|ask| (ask.asked_at, ask.ask_id));
            if order == ListOrder::NewestFirst {
                expected.reverse();
            }
            assert_eq!(all_asks(store, world.tenant, &query).await, expected, "{query:?}");
        }
    }
    let copy = AskQuery { tool_use: every[4].root.map(|root| root.tool_use_id), ..all() };
    assert_eq!(all_asks(store, world.tenant, &copy).await, [every[4].clone()], "the copy at the root finds it");
}

/// Calls that a dead holder left, two in each of so many sessions.
async fn left_unknown(world: &World, store: &dyn Store, sessions: usize) -> Vec<(SessionKey, InvocationId)> {
    let mut left: Vec<(SessionKey, InvocationId)> = Vec::new();
    for _ in 0..sessions {
        let key = world.session(store).await.expect("a session");
        let lease = world.claim(store, key, 1).await.expect("a lease");
        for _ in 0..2 {
            let (intent_id, proposed) = world.intent();
            let (invocation_id, started) = world.started(intent_id);
            let decision = "outcome_unknown".to_owned();
            let recovered = world.draft(&CallRecovered { invocation_id, intent_id, decision });
            store.commit(world.work(key, &lease, vec![proposed, started])).await.expect("begun");
            store.commit(world.work(key, &lease, vec![recovered])).await.expect("settled");
            left.push((key, invocation_id));
        }
    }
    left
}

/// A call that a dead holder left is settled as unknown until a person says what became of it.
pub async fn unknown_outcomes_are_listed_until_they_are_resolved(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut left = left_unknown(&world, store, 3).await;
    left.sort_by_key(|(key, invocation)| (key.session, *invocation));
    let list = async |query: &UnknownQuery| {
        let (mut items, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.unknown_outcomes(world.tenant, query, PAGE, cursor.as_ref()).await.expect("a page");
            items.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return items;
            }
        }
    };
    let all = list(&UnknownQuery::default()).await;
    let found: Vec<_> = all.iter().map(|call| (call.session_id, call.outcome.invocation_id)).collect();
    assert_eq!(found, left.iter().map(|(key, invocation)| (key.session, *invocation)).collect::<Vec<_>>());
    assert!(all.iter().all(|call| call.tool.as_deref() == Some("read")));
    let (key, invocation) = left[3];
    let of_one = UnknownQuery { session: Some(key.session), invocation: None };
    assert_eq!(list(&of_one).await.len(), 2);
    let one = UnknownQuery { invocation: Some(invocation), ..UnknownQuery::default() };
    assert_eq!(list(&one).await.len(), 1);

    let resolved = InvocationResolved {
        invocation_id: invocation,
        resolution: Resolution::Happened,
        by: "user:ada".to_owned(),
        note: None,
    };
    store.commit(world.client(key, world.draft(&resolved))).await.expect("resolved");
    assert_eq!(list(&one).await, []);
    assert_eq!(list(&UnknownQuery::default()).await.len(), 5);
    let other = store.unknown_outcomes(OTHER, &UnknownQuery::default(), 9, None).await.expect("a page");
    assert_eq!(other.items, [], "S14");
}

pub async fn records_are_listed_by_their_declared_fields(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    for n in 0..9u32 {
        let body = json!({"given_in": format!("s{}", n % 2), "created_by": format!("u{}", n % 3), "n": n});
        let write =
            RecordWrite { kind: "grant".to_owned(), id: format!("g{n}"), expected: None, body: Some(body.clone()) };
        store.put_record(world.tenant, write.clone()).await.expect("a record");
        store.put_record(world.tenant, RecordWrite { kind: "rule".to_owned(), ..write }).await.expect("a record");
    }
    let ask = |fields: &[(&str, &str)]| RecordQuery {
        kind: "grant".to_owned(),
        fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let list = async |query: &RecordQuery| {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.find_records(world.tenant, query, 2, cursor.as_ref()).await.expect("a page");
            ids.extend(page.items.into_iter().map(|record| record.id));
            cursor = page.next;
            if cursor.is_none() {
                return ids;
            }
        }
    };
    assert_eq!(list(&ask(&[])).await.len(), 9);
    assert_eq!(list(&ask(&[("given_in", "s1")])).await, ["g1", "g3", "g5", "g7"]);
    assert_eq!(list(&ask(&[("created_by", "u2")])).await, ["g2", "g5", "g8"]);
    assert_eq!(list(&ask(&[("created_by", "u2"), ("given_in", "s1")])).await, ["g5"]);
    assert_eq!(list(&ask(&[("given_in", "s9")])).await, Vec::<String>::new());
    let refused = store.find_records(world.tenant, &ask(&[("n", "1")]), 9, None).await;
    assert_eq!(refused, Err(StoreError::NotIndexed { kind: "grant".to_owned(), field: "n".to_owned() }));

    // A row that changes or goes is found by what it says now.
    let body = Some(json!({"given_in": "s9"}));
    let changed = RecordWrite { kind: "grant".to_owned(), id: "g1".to_owned(), expected: Some(1), body };
    store.put_record(world.tenant, changed.clone()).await.expect("changed");
    store.put_record(world.tenant, RecordWrite { id: "g3".to_owned(), body: None, ..changed }).await.expect("removed");
    assert_eq!(list(&ask(&[("given_in", "s1")])).await, ["g5", "g7"]);
    assert_eq!(list(&ask(&[("given_in", "s9")])).await, ["g1"]);
    let other = store.find_records(OTHER, &ask(&[("given_in", "s9")]), 9, None).await.expect("a page");
    assert_eq!(other.items, [], "S14");
}

pub async fn s14_a_cursor_of_another_list_is_refused(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    sessions(&world, store, 6).await;
    let query = SessionQuery::default();
    let page = store.find_sessions(world.tenant, &query, 2, None).await.expect("a page");
    let next = page.next.expect("there are more");
    let foreign = Err(StoreError::ForeignCursor);
    let other = SessionQuery { status: Some(SessionStatus::Idle), ..query.clone() };
    assert_eq!(store.find_sessions(world.tenant, &other, 2, Some(&next)).await, foreign);
    let order = SessionQuery { order: ListOrder::OldestFirst, ..query.clone() };
    assert_eq!(store.find_sessions(world.tenant, &order, 2, Some(&next)).await, foreign);
    assert_eq!(store.find_sessions(OTHER, &query, 2, Some(&next)).await, foreign);
    assert!(store.find_sessions(world.tenant, &query, 3, Some(&next)).await.is_ok(), "another size is the same list");

    // Every list refuses the cursor of every other one, of another question and of another tenant.
    asks(&world, store).await;
    left_unknown(&world, store, 3).await;
    for n in 0..3 {
        let (kind, id, body) = ("grant".to_owned(), format!("g{n}"), Some(json!({"given_in": "s"})));
        store.put_record(world.tenant, RecordWrite { kind, id, expected: None, body }).await.expect("a record");
    }
    let asked = AskQuery::default();
    let answered = AskQuery { state: Some(AskState::Answered), ..asked.clone() };
    let unknown = UnknownQuery::default();
    let of_one = UnknownQuery { invocation: Some(InvocationId::from_u128(1)), ..unknown.clone() };
    let records = RecordQuery { kind: "grant".to_owned(), fields: Vec::new() };
    let given = RecordQuery { fields: vec![("given_in".to_owned(), "s".to_owned())], ..records.clone() };
    let mine = world.tenant;
    let after_ask = store.find_asks(mine, &asked, 2, None).await.expect("a page").next.expect("more");
    let after_call = store.unknown_outcomes(mine, &unknown, 2, None).await.expect("a page").next.expect("more");
    let after_record = store.find_records(mine, &records, 2, None).await.expect("a page").next.expect("more");
    let all = [&next, &after_ask, &after_call, &after_record];
    for (at, cursor) in all.into_iter().enumerate() {
        let taken = [
            store.find_sessions(mine, &query, 2, Some(cursor)).await.is_ok(),
            store.find_asks(mine, &asked, 2, Some(cursor)).await.is_ok(),
            store.unknown_outcomes(mine, &unknown, 2, Some(cursor)).await.is_ok(),
            store.find_records(mine, &records, 2, Some(cursor)).await.is_ok(),
        ];
        assert_eq!(taken, std::array::from_fn(|list| list == at), "only its own list takes cursor {at}");
        let foreign = Some(StoreError::ForeignCursor);
        assert_eq!(store.find_sessions(OTHER, &query, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.find_asks(OTHER, &asked, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.unknown_outcomes(OTHER, &unknown, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.find_records(OTHER, &records, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.find_asks(mine, &answered, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.unknown_outcomes(mine, &of_one, 2, Some(cursor)).await.err(), foreign);
        assert_eq!(store.find_records(mine, &given, 2, Some(cursor)).await.err(), foreign);
    }
}

pub async fn s14_no_list_holds_anything_of_another_tenant(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (keys, ids) = asks(&world, store).await;
    let parent = Some(keys[0].session);
    let row = store.ask(world.tenant, ids[0]).await.expect("a look").expect("it is there");
    for key in &keys {
        let theirs = SessionKey { tenant: OTHER, session: key.session };
        assert_eq!(store.session(theirs).await, Ok(None));
    }
    for query in [
        SessionQuery::default(),
        SessionQuery { root: parent, ..SessionQuery::default() },
        SessionQuery { parent, ..SessionQuery::default() },
        SessionQuery { tag: Some("one".to_owned()), ..SessionQuery::default() },
        SessionQuery { workspace: Some("/work/tree".to_owned()), ..SessionQuery::default() },
        SessionQuery { status: Some(SessionStatus::Idle), ..SessionQuery::default() },
    ] {
        assert_eq!(all_sessions(store, OTHER, &query).await, []);
    }
    for query in [
        AskQuery::default(),
        AskQuery { session: Some(row.session_id), ..AskQuery::default() },
        AskQuery { tool_use: row.tool_use_id, ..AskQuery::default() },
        AskQuery { principal: Some(row.principal.clone()), ..AskQuery::default() },
        AskQuery { state: Some(row.state), ..AskQuery::default() },
    ] {
        assert_eq!(all_asks(store, OTHER, &query).await, []);
    }
    // A child of the same name in another tenant is not counted either.
    let theirs = SessionKey { tenant: OTHER, session: SessionId::from_u128(5) };
    let created = world.created_with(theirs, |created| created.parent_session_id = parent);
    store.commit(Commit::client(theirs, world.append(), vec![created])).await.expect("their session");
    let mine = store.session(keys[0]).await.expect("a look").expect("it is there");
    assert_eq!(mine.children, 0);
}

pub async fn an_erased_session_is_in_no_list(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let keys = sessions(&world, store, 5).await;
    let tagged = SessionQuery { tag: Some("tag 0".to_owned()), ..SessionQuery::default() };
    assert_eq!(all_sessions(store, world.tenant, &tagged).await.len(), 3);
    erase_session(&world, store, keys[4]).await;
    assert_eq!(store.session(keys[4]).await, Ok(None));
    assert_eq!(all_sessions(store, world.tenant, &SessionQuery::default()).await.len(), 4);
    assert_eq!(all_sessions(store, world.tenant, &tagged).await.len(), 2, "nor by its tags");
}
