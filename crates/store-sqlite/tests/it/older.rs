//! A store from before there were lists: its rows are computed from its logs when it is opened (F19, S15).

use std::path::Path;

use portcullis_base::{AgentId, SessionId};
use portcullis_event::facts::{CallRecovered, OutcomeStatus, Reply, SpanResult};
use portcullis_store::{
    AskQuery, Log as _, RecordQuery, RecordWrite, Records as _, SessionKey, SessionQuery, UnknownQuery, verify_tenant,
};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::common;

/// Takes out everything that migration 9 brought.
fn as_before_lists(path: &Path) -> Connection {
    let raw = Connection::open(path).expect("the file");
    raw.execute_batch(
        "DROP TABLE session_facts; DROP TABLE session_tags; DROP TABLE unknown_outcomes; DROP TABLE record_kinds;
         DROP INDEX asks_asked; DROP INDEX asks_session; DROP INDEX asks_state; DROP INDEX asks_principal;
         DROP INDEX asks_tool_use; DROP INDEX asks_root_tool_use;
         ALTER TABLE asks DROP COLUMN principal; ALTER TABLE asks DROP COLUMN asked_at;
         DROP INDEX records_field_1; DROP INDEX records_field_2; DROP INDEX records_field_3;
         ALTER TABLE records DROP COLUMN field_1; ALTER TABLE records DROP COLUMN field_2;
         ALTER TABLE records DROP COLUMN field_3;
         DROP INDEX outbox_inside; DROP INDEX outbox_due;
         ALTER TABLE outbox DROP COLUMN next_at; ALTER TABLE outbox DROP COLUMN attempts;
         DELETE FROM schema_meta WHERE version >= 9;",
    )
    .expect("as it was");
    raw
}

/// Everything that lists show.
async fn lists(store: &SqliteStore, world: &World) -> String {
    let tagged = SessionQuery { tag: Some("old".to_owned()), ..SessionQuery::default() };
    let given = vec![("given_in".to_owned(), "somewhere".to_owned())];
    let records = RecordQuery { kind: "grant".to_owned(), fields: given };
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        store.find_sessions(world.tenant, &SessionQuery::default(), 99, None).await.expect("a page"),
        store.find_sessions(world.tenant, &tagged, 99, None).await.expect("a page").items.len(),
        store.find_asks(world.tenant, &AskQuery::default(), 99, None).await.expect("a page"),
        store.unknown_outcomes(world.tenant, &UnknownQuery::default(), 99, None).await.expect("a page"),
        store.find_records(world.tenant, &records, 99, None).await.expect("a page"),
    )
}

async fn filled(store: &SqliteStore, world: &World) -> SessionId {
    let mut last = None;
    for n in 0..3u32 {
        let key = world.key();
        let created = world.created_with(key, |created| {
            created.agent_id = Some(AgentId::from_u128(u128::from(n)));
            created.tags = vec!["old".to_owned()];
            created.parent_session_id = last;
        });
        store.commit(world.client(key, created)).await.expect("a session");
        let lease = world.claim(store, key, 1).await.expect("a lease");
        let (intent_id, proposed) = world.intent();
        let (invocation_id, started) = world.started(intent_id);
        let parked = world.parked();
        let mut events = world.wake_span(SpanResult::Success, "what came of it");
        events.extend(world.model_request(7));
        events.extend(parked.events);
        events.extend([proposed, started]);
        store.commit(world.work(key, &lease, events)).await.expect("work");
        let recovered = CallRecovered { invocation_id, intent_id, decision: "outcome_unknown".to_owned() };
        store.commit(world.work(key, &lease, vec![world.draft(&recovered)])).await.expect("settled");
        store.commit(world.client(key, world.replied(parked.ask, Reply::Deny))).await.expect("answered");
        last = Some(key.session);
    }
    let body = Some(json!({"given_in": "somewhere"}));
    let grant = RecordWrite { kind: "grant".to_owned(), id: "a".to_owned(), expected: None, body };
    store.put_record(world.tenant, grant).await.expect("a record");
    last.expect("sessions")
}

#[tokio::test(flavor = "multi_thread")]
async fn f19_the_lists_of_an_older_store_are_computed_from_its_logs() {
    let world = World::new(1);
    let (store, path, _folder) = common::scratch(&world, Some(world.key.clone()));
    filled(&store, &world).await;
    let before = lists(&store, &world).await;
    assert!(before.contains("what came of it") && before.contains("somewhere"));
    drop(store);
    drop(as_before_lists(&path));

    let store = common::open(&path, &world, Some(world.key.clone()));
    assert_eq!(lists(&store, &world).await, before);
    let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "{:?}", audit.faults);
    let key = world.session(&store).await.expect("and it goes on");
    assert!(store.session(key).await.expect("a look").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn f19_a_store_from_before_outcomes_takes_them_up() {
    let world = World::new(1);
    let (store, path, _folder) = common::scratch(&world, Some(world.key.clone()));
    let session = filled(&store, &world).await;
    let before = lists(&store, &world).await;
    drop(store);
    let raw = Connection::open(&path).expect("the file");
    raw.execute_batch(
        "DROP INDEX facts_outcome; ALTER TABLE session_facts DROP COLUMN outcome;
         ALTER TABLE session_facts DROP COLUMN outcome_title; ALTER TABLE session_facts DROP COLUMN outcome_trend;
         DELETE FROM schema_meta WHERE version >= 11;",
    )
    .expect("as it was");
    drop(raw);

    let store = common::open(&path, &world, Some(world.key.clone()));
    assert_eq!(lists(&store, &world).await, before);
    let key = SessionKey { tenant: world.tenant, session };
    store.commit(world.client(key, world.outcome("a goal"))).await.expect("an outcome");
    let open = SessionQuery { outcome: Some(OutcomeStatus::Open), ..SessionQuery::default() };
    let page = store.find_sessions(world.tenant, &open, 99, None).await.expect("a page");
    assert_eq!(page.items.iter().map(|one| one.session_id).collect::<Vec<_>>(), [session]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f19_a_damaged_log_keeps_nobody_from_the_lists_of_the_others() {
    let world = World::new(1);
    let (store, path, _folder) = common::scratch(&world, Some(world.key.clone()));
    let damaged = filled(&store, &world).await;
    drop(store);
    let raw = as_before_lists(&path);
    let log = "(SELECT log FROM logs WHERE session = ?1)";
    let spoilt = format!("UPDATE runs SET payloads = x'0001' WHERE log = {log}");
    raw.execute(&spoilt, params![damaged.as_u128().to_be_bytes()]).expect("someone damages it");
    drop(raw);

    let store = common::open(&path, &world, Some(world.key.clone()));
    let page = store.find_sessions(world.tenant, &SessionQuery::default(), 99, None).await.expect("a page");
    assert!(page.items.len() >= 2, "the others are there");
    let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(!audit.holds(), "and the damage is found");
}

/// A program that declares other fields for a kind finds its rows by them at once.
#[tokio::test(flavor = "multi_thread")]
async fn records_are_indexed_anew_when_their_kind_declares_other_fields() {
    let world = World::new(1);
    let (store, path, _folder) = common::scratch(&world, Some(world.key.clone()));
    filled(&store, &world).await;
    let before = lists(&store, &world).await;
    drop(store);
    let raw = Connection::open(&path).expect("the file");
    raw.execute_batch(
        "UPDATE record_kinds SET fields = '[\"id\"]'; UPDATE records SET field_1 = 'other', field_2 = NULL;",
    )
    .expect("as another program left it");
    drop(raw);
    let store = common::open(&path, &world, Some(world.key.clone()));
    assert_eq!(lists(&store, &world).await, before);
}
