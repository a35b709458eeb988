//! What an append costs on disk.

use crate::common;

use portcullis_store::Log as _;
use portcullis_store_testkit::World;

#[tokio::test]
async fn a_call_of_nine_events_costs_at_most_4_kib_beyond_its_payloads() {
    let world = World::new(1);
    let (store, path, _folder) = common::scratch(&world, Some(world.key.clone()));
    let raw = rusqlite::Connection::open(&path).expect("it opens");
    let pages = || -> u64 { raw.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("a number") };
    // Several sessions in turn: none of them is always the last in the tree.
    let mut leases = Vec::new();
    for _ in 0..4 {
        world.clock.advance(std::time::Duration::from_millis(7));
        let key = world.session(&store).await.expect("a session");
        leases.push((key, world.claim(&store, key, 1).await.expect("a lease")));
    }
    const CALLS: usize = 200;
    for content in [0, 700, 4_096, 20_000] {
        let before = pages();
        let mut payloads = 0;
        for i in 0..CALLS {
            let (key, lease) = &leases[i % leases.len()];
            world.clock.advance(std::time::Duration::from_millis(3));
            let call = world.work(*key, lease, world.inert_call(&"x".repeat(content)));
            payloads += call.bytes() as u64;
            store.commit(call).await.expect("an append");
        }
        let overhead = (pages() - before).saturating_mul(4_096).saturating_sub(payloads) / CALLS as u64;
        assert!(overhead <= 4_096, "content of {content} bytes: {overhead} bytes beyond the payloads");
    }
}
