//! No list walks over a table: SQLite says of every statement how it finds its rows.

use portcullis_base::{AgentId, InvocationId, SessionId, TenantId};
use portcullis_event::facts::OutcomeStatus;
use portcullis_event::{AskState, SessionStatus};
use portcullis_store::{AskQuery, ListOrder, RecordQuery, SessionQuery, UnknownQuery};
use portcullis_store_testkit::World;
use rusqlite::Connection;

use super::{ask_strands, session_sql, session_strands, tool_use_sql};
use crate::{SqliteStore, facts, query, records, testing};

fn every_list() -> Vec<String> {
    let tenant = TenantId::from_u128(1);
    let session = Some(SessionId::from_u128(2));
    let sessions = SessionQuery {
        agent: Some(AgentId::from_u128(1)),
        status: Some(SessionStatus::Idle),
        parent: session,
        root: session,
        tag: Some("tag".to_owned()),
        outcome: Some(OutcomeStatus::Pass),
        workspace: Some("/work".to_owned()),
        ..SessionQuery::default()
    };
    let asks = AskQuery {
        session,
        state: Some(AskState::Pending),
        principal: Some("user:ada".to_owned()),
        ..AskQuery::default()
    };
    let mut strands = session_strands(&sessions).expect("words");
    assert_eq!(strands.len(), 7, "each condition has an index");
    strands.extend(session_strands(&SessionQuery::default()).expect("words"));
    strands.extend(ask_strands(&asks).expect("words"));
    strands.extend(ask_strands(&AskQuery::default()).expect("words"));
    assert_eq!(strands.len(), 12);
    let orders = [ListOrder::NewestFirst, ListOrder::OldestFirst];
    let mut all: Vec<String> = strands.iter().flat_map(|strand| orders.map(|order| strand.sql(order))).collect();
    all.extend([session_sql(), tool_use_sql(), format!("{} WHERE tenant = ?1 AND ask_id = ?2", query::ASK)]);
    let invocation = Some(InvocationId::from_u128(3));
    for unknown in [
        UnknownQuery::default(),
        UnknownQuery { session, invocation: None },
        UnknownQuery { session: None, invocation },
    ] {
        all.extend([None, Some((1, 2))].map(|after| facts::unknown_sql(tenant, &unknown, after, 9).0));
    }
    let field = |name: &str| (name.to_owned(), "x".to_owned());
    for fields in
        [vec![], vec![field("given_in")], vec![field("created_by")], vec![field("created_by"), field("given_in")]]
    {
        let records = RecordQuery { kind: "grant".to_owned(), fields };
        all.extend([None, Some("a".to_owned())].map(|after| records::find_sql(tenant, &records, after, 9).0));
    }
    all
}

#[tokio::test]
async fn every_list_is_found_by_an_index_and_in_its_order() {
    let world = World::new(1);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(testing::config(&world, &path)).expect("the store opens"));
    let raw = Connection::open(&path).expect("the file");
    for sql in every_list() {
        let mut plan = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
        let mut rows = plan.raw_query();
        let mut steps: Vec<String> = Vec::new();
        while let Some(row) = rows.next().expect("a step") {
            steps.push(row.get("detail").expect("words"));
        }
        assert!(!steps.iter().any(|step| step.starts_with("SCAN")), "{sql}\n{steps:#?}");
        // A few asks of one event are put in order by the program, and of the two ways to find them none counts twice.
        let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
        let is_short = sql == tool_use_sql() || sql.contains("u.invocation_id = ?");
        assert!(!sorts || is_short, "{sql}\n{steps:#?}");
        if let Some((_, bound)) = sql.split_once("<= (?2, ?3)").or(sql.split_once(">= (?2, ?3)")) {
            assert!(bound.contains("LIMIT 1"));
            assert!(
                steps.iter().all(|step| step.contains("(created_at,session)") || step.contains("(asked_at,ask_id)")),
                "straight to the place: {sql}\n{steps:#?}"
            );
        }
    }
}
