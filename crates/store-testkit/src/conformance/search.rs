//! Full text: it lags, it is brought up to date in batches, and it finds the same in every backend.

use std::time::Duration;

use portcullis_base::TenantId;
use portcullis_store::{Hit, Query, SessionKey, Store, deliver_outbox};

use super::{Make, setup};

fn query(items: &[&str]) -> Query {
    Query::new(items).expect("it has words")
}

async fn find(store: &dyn Store, tenant: TenantId, items: &[&str], limit: usize) -> Vec<Hit> {
    store.search(tenant, &query(items), limit).await.expect("an answer")
}

async fn all_in(store: &dyn Store, tenant: TenantId) {
    while store.catch_up(tenant, 3).await.expect("a batch") > 0 {}
}

fn places(hits: &[Hit]) -> Vec<(SessionKey, u64)> {
    let tenant = portcullis_event::LOCAL_TENANT;
    hits.iter().map(|hit| (SessionKey { tenant, session: hit.session_id }, hit.seq)).collect()
}

pub async fn search_finds_whole_words_newest_first_once_taken_in(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (a, b) = (world.session(store).await.expect("a session"), world.session(store).await.expect("a session"));
    deliver_outbox(store).await.expect("the ledger has entries");
    for (key, text) in [(a, "the Parser broke"), (b, "parser\u{1b} fixed: src/main.rs"), (a, "unparsed"), (a, "PARSER")]
    {
        world.clock.advance(Duration::from_secs(1));
        store.commit(world.input(key, text)).await.expect("an append");
    }
    assert_eq!(find(store, a.tenant, &["parser"], 10).await, [], "nothing was taken in yet");
    assert_eq!(store.search_lag(a.tenant).await, Ok(6), "four inputs and two creations; the ledger is no session");
    assert_eq!(store.catch_up(a.tenant, 2).await, Ok(2), "no more than asked for");
    assert_eq!(store.search_lag(a.tenant).await, Ok(4));
    all_in(store, a.tenant).await;
    assert_eq!((store.search_lag(a.tenant).await, store.catch_up(a.tenant, 9).await), (Ok(0), Ok(0)));

    let hits = find(store, a.tenant, &["parser"], 10).await;
    assert_eq!(places(&hits), [(a, 4), (b, 2), (a, 2)]);
    assert_eq!(places(&find(store, a.tenant, &["parser"], 2).await), [(a, 4), (b, 2)]);
    let event = store.read(b, 1, 1).await.expect("a page").remove(0);
    assert_eq!((hits[1].at, &hits[1].kind), (event.at, &event.kind));
    assert_eq!(
        (hits[1].snippet.found.as_str(), hits[1].snippet.after.as_str()),
        ("parser", "\u{1b} fixed: src/main.rs")
    );
    assert_eq!(places(&find(store, a.tenant, &["fixed", "Parser"], 10).await), [(b, 2)], "every phrase, in any order");
    assert_eq!(places(&find(store, a.tenant, &["main.rs"], 10).await), [(b, 2)]);
    assert_eq!(find(store, a.tenant, &["main src"], 10).await, [], "words of one phrase stand beside each other");
    assert_eq!(find(store, a.tenant, &["text"], 10).await, [], "the name of a field is no content");

    store.commit(world.input(a, "parser again")).await.expect("an append");
    assert_eq!(places(&find(store, a.tenant, &["again"], 10).await), [], "it lags");
    all_in(store, a.tenant).await;
    assert_eq!(places(&find(store, a.tenant, &["again"], 10).await), [(a, 5)]);
}

pub async fn search_takes_any_text_as_words(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let texts = [
        "x NOT y",
        "text:x",
        "x*",
        "\"x",
        "x OR OR y",
        "(x",
        "NEAR(x y, 2)",
        "^x + y",
        "x'; DROP TABLE events; --",
        "été",
        "日本語の文",
        "a\0b",
        "İstanbul",
        "ß",
        "x\u{301}",
        "1e400",
        "{col} : x",
        "\\",
        "- -x",
    ];
    for text in texts {
        store.commit(world.input(key, text)).await.expect("an append");
    }
    all_in(store, key.tenant).await;
    for (n, text) in texts.iter().enumerate() {
        let Ok(query) = Query::new(&[text]) else { continue };
        let hits = store.search(key.tenant, &query, 100).await.expect("an answer, whatever the text");
        assert!(hits.iter().any(|hit| hit.seq == n as u64 + 2), "`{text}` finds itself");
    }
    assert_eq!(find(store, key.tenant, &["本語"], 9).await.len(), 1, "a part of a text without gaps");
}

pub async fn s14_search_reaches_no_other_tenant(make: Make) {
    let (mut world, backend) = setup(make);
    let store = &*backend.store;
    let ours = world.session(store).await.expect("a session");
    store.commit(world.input(ours, "ours alone")).await.expect("an append");
    let us = world.tenant;
    world.tenant = TenantId::from_u128(77);
    let theirs = world.session(store).await.expect("a session");
    store.commit(world.input(theirs, "theirs alone")).await.expect("an append");
    all_in(store, us).await;
    assert_eq!(store.search_lag(world.tenant).await, Ok(2), "one tenant's search does nothing for another");
    all_in(store, world.tenant).await;
    for (tenant, mine, other) in [(us, "ours", "theirs"), (world.tenant, "theirs", "ours")] {
        assert_eq!(find(store, tenant, &["alone"], 9).await.len(), 1);
        assert_eq!((find(store, tenant, &[mine], 9).await.len(), find(store, tenant, &[other], 9).await.len()), (1, 0));
    }
}
