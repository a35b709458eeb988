//! The restore drill (store §10): a backup made under load is a store, whole, and goes on.

use crate::common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portcullis_store::{Log as _, Query, Search as _, deliver_outbox, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::assert_sound;

fn open(world: &World, path: &Path) -> SqliteStore {
    common::open(path, world, Some(world.key.clone()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_under_load_opens_proves_and_holds_all_that_was_acknowledged_before_it() {
    let world = Arc::new(World::new(1));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Arc::new(open(&world, &folder.path().join("store.db")));
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    let mut keys = Vec::new();
    for n in 0..4 {
        let key = world.session(&*store).await.expect("a session");
        let lease = world.claim(&*store, key, n).await.expect("a lease");
        keys.push(key);
        let (world, store, stop) = (world.clone(), store.clone(), stop.clone());
        tasks.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                store.commit(world.work(key, &lease, world.inert_call("quokka"))).await.expect("an append");
                deliver_outbox(&*store).await.expect("deliveries");
            }
        }));
    }
    let mut before = Vec::new();
    for key in &keys {
        while store.head(*key).await.expect("a head").expect("it").last_seq < 100 {
            tokio::task::yield_now().await;
        }
        before.push(store.head(*key).await.expect("a head").expect("it").last_seq);
    }
    let copy = folder.path().join("backup.db");
    let bytes = store.backup_to(&copy).await.expect("a backup, while others write");
    stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("no writer met an error");
    }
    let file = copy.metadata().expect("it is there");
    assert_eq!((file.len(), file.permissions().mode() & 0o777), (bytes, 0o600));
    let error = store.backup_to(&copy).await.expect_err("nothing is overwritten");
    assert!(error.to_string().contains("new file"), "{error}");
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|f| f.expect("f").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with("partial")), "{names:?}");

    let restored = open(&world, &copy);
    deliver_outbox(&restored).await.expect("what waited is delivered");
    let audit = verify_tenant(&restored, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "every chain and checkpoint: {:?}", audit.faults);
    for (key, before) in keys.iter().zip(before) {
        assert!(restored.head(*key).await.expect("a head").expect("the session").last_seq >= before);
        restored.commit(world.input(*key, "life goes on")).await.expect("an append");
        assert_sound(&restored, *key).await;
    }
    while restored.catch_up(world.tenant, 1_000).await.expect("a batch") > 0 {}
    let query = Query::new(&["quokka"]).expect("a word");
    assert_eq!(restored.search(world.tenant, &query, 5).await.expect("an answer").len(), 5);
}
