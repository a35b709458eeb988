//! The index in the file: words only, and none of what was erased.

use crate::common;

use std::time::Duration;

use portcullis_store::{Log as _, Query, Search as _, SessionKey};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use rusqlite::{Connection, params};

async fn scene() -> (World, SqliteStore, SessionKey, Connection, tempfile::TempDir) {
    let world = World::new(1);
    let (store, path, folder) = common::scratch(&world, None);
    let key = world.session(&store).await.expect("a session");
    (world, store, key, Connection::open(path).expect("the file opens"), folder)
}

async fn all_in(store: &SqliteStore, world: &World) {
    while store.catch_up(world.tenant, 100).await.expect("a batch") > 0 {}
}

#[tokio::test]
async fn an_erased_payload_is_not_found_and_its_words_leave_the_index() {
    let (world, store, key, raw, _folder) = scene().await;
    store.commit(world.input(key, "the zanzibar plan")).await.expect("an append");
    store.commit(world.input(key, &format!("zanzibar {}", "long ".repeat(200)))).await.expect("an append");
    store.commit(world.input(key, "zanzibar stays")).await.expect("an append");
    all_in(&store, &world).await;
    let query = Query::new(&["Zanzibar"]).expect("a word");
    let found = async || -> Vec<u64> {
        let hits = store.search(world.tenant, &query, 10).await.expect("an answer");
        hits.iter().map(|hit| hit.seq).collect()
    };
    assert_eq!(found().await, [4, 3, 2]);
    raw.execute("UPDATE runs SET payloads = NULL WHERE run IN (SELECT run FROM events WHERE seq IN (2, 3))", params![])
        .expect("erased");
    assert_eq!(found().await, [4]);
    let matching = |word: &str| -> u64 {
        let sql = "SELECT count(*) FROM search_index WHERE search_index MATCH ?1";
        raw.query_row(sql, params![word], |row| row.get(0)).expect("a number")
    };
    assert_eq!((matching("zanzibar"), matching("plan")), (1, 0), "the index forgot it, not the answer alone");
    // Erased before it was taken in: it is passed over, and what follows is not.
    store.commit(world.input(key, "zanzibar, erased early")).await.expect("an append");
    store.commit(world.input(key, "zanzibar, kept")).await.expect("an append");
    raw.execute("UPDATE runs SET payloads = NULL WHERE run IN (SELECT run FROM events WHERE seq = 5)", params![])
        .expect("erased");
    all_in(&store, &world).await;
    assert_eq!((found().await, matching("zanzibar")), (vec![6, 4], 2));
}

#[tokio::test]
async fn a_payload_is_not_stored_a_second_time() {
    let (world, store, key, raw, _folder) = scene().await;
    let pages = || -> u64 { raw.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("a number") };
    for _ in 0..50 {
        store.commit(world.input(key, &"all the same words again ".repeat(400))).await.expect("an append");
    }
    let before = pages();
    all_in(&store, &world).await;
    let payloads = 50 * 25 * 400;
    assert!((pages() - before) * 4_096 < payloads / 2, "{} pages for {payloads} bytes of payloads", pages() - before);
    let columns: String = raw
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'search_index'", [], |row| row.get(0))
        .expect("the table");
    assert!(columns.contains("content = ''"), "{columns}");
}

#[tokio::test]
async fn taking_in_is_no_part_of_an_append() {
    let (world, store, key, raw, _folder) = scene().await;
    for n in 0..20 {
        world.clock.advance(Duration::from_millis(1));
        store.commit(world.input(key, &format!("n{n}"))).await.expect("an append");
    }
    let docs: u64 = raw.query_row("SELECT count(*) FROM search_docs", [], |row| row.get(0)).expect("a number");
    assert_eq!((docs, store.search_lag(world.tenant).await), (0, Ok(21)));
}

#[tokio::test]
async fn a_batch_is_full_by_its_bytes_as_well() {
    let (world, store, key, _raw, _folder) = scene().await;
    let large = "word ".repeat(120_000);
    for _ in 0..4 {
        store.commit(world.input(key, &large)).await.expect("an append");
    }
    // The session's creation and two inputs are more than 1 MiB; what is left waits for the next batch.
    assert_eq!(store.catch_up(world.tenant, 100).await, Ok(3));
    assert_eq!(store.catch_up(world.tenant, 100).await, Ok(2));
    assert_eq!(store.catch_up(world.tenant, 100).await, Ok(0));
}
