//! Who wakes when something is committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis_base::TenantId;
use portcullis_event::facts::{Priority, Reply};
use portcullis_store::{SessionKey, Topic};
use tokio::sync::watch;

use super::{Make, setup};

/// How many readers wait at once.
const READERS: usize = 1_000;
/// For how long the session is written to: long enough that a backend which looks for other processes' commits (store §7)
/// looks several times, and does not take ours for theirs.
const BUSY: Duration = Duration::from_millis(350);
/// How long a wake-up may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);

pub async fn only_the_readers_of_a_session_wake_for_it(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let woken: Arc<Vec<AtomicU64>> = Arc::new((0..READERS).map(|_| AtomicU64::new(0)).collect());
    let mut readers = tokio::task::JoinSet::new();
    for at in 0..READERS {
        // Readers of sessions that are not there yet wait like any others.
        let topic = Topic::Session(if at == 0 { key } else { world.key() });
        let (mut changes, woken) = (store.changes_of(topic), woken.clone());
        readers.spawn(async move {
            while changes.changed().await.is_ok() {
                woken[at].fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let mut all = store.changes();
    all.mark_unchanged();
    let begun = Instant::now();
    let mut commits: u64 = 0;
    while begun.elapsed() < BUSY {
        store.commit(world.input(key, "more")).await.expect("an append");
        commits += 1;
    }
    while woken[0].load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < PATIENCE, "its own reader wakes");
        tokio::task::yield_now().await;
    }
    assert!(all.has_changed().expect("the store lives"), "whoever wants everything hears it too");
    let counts: Vec<u64> = woken.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert!(counts[0] <= commits, "at most once a commit");
    assert_eq!(counts[1..].iter().sum::<u64>(), 0, "nobody else wakes in {commits} commits");
    readers.abort_all();
}

fn seen(changes: &mut watch::Receiver<u64>) -> bool {
    let seen = changes.has_changed().expect("the store lives");
    changes.mark_unchanged();
    seen
}

pub async fn a_listener_hears_of_its_topic_only(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let theirs = TenantId::from_u128(77);
    let topics = [
        Topic::Session(key),
        Topic::Session(SessionKey { tenant: theirs, ..key }),
        Topic::Asks(key.tenant),
        Topic::Asks(theirs),
        Topic::Due,
        Topic::Outbox,
    ];
    let mut listeners = topics.map(|topic| store.changes_of(topic));
    let mut heard = move || listeners.each_mut().map(seen);
    heard();

    let lease = world.claim(store, key, 1).await.expect("a lease");
    heard();
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("released");
    assert_eq!(heard(), [true, false, false, false, false, false], "whoever waits for the lease");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let parked = world.parked();
    let mut park = world.work(key, &lease, parked.events);
    park.idle = true;
    store.commit(park).await.expect("a park");
    assert_eq!(heard(), [true, false, true, false, true, true], "an ask, a held session, a checkpoint for the ledger");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("released");
    heard();
    store.commit(world.client(key, world.replied(parked.ask, Reply::AllowOnce))).await.expect("answered");
    assert_eq!(heard(), [true, false, true, false, true, false], "there is work");
    let (_, queued) = world.wake(Duration::from_secs(60), Priority::Low, None);
    store.commit(world.client(key, queued)).await.expect("a wake");
    assert_eq!(heard(), [true, false, false, false, true, false]);
    let other = SessionKey { tenant: theirs, ..key };
    store.commit(world.creation(other)).await.expect("a session of the same name");
    assert_eq!(heard(), [false, true, false, false, false, true], "S14");
}
