//! Many wakes at once: each is taken up once, and none waits for ever (F6, F13).

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_base::limits::WAKE_AGE_STEP;
use portcullis_base::{QueuedWakeId, SessionId, WorkerId};
use portcullis_event::facts::{Priority, WakeConsumed};
use portcullis_store::{Claim, Commit, Lease, Liveness, SessionKey, StoreError};
use tokio::runtime::Builder;

use super::{Backend, Make, TTL, assert_sound, setup, whole};
use crate::World;

/// Threads that claim at once.
const RACERS: u32 = 64;
/// Sessions one claim takes.
const BATCH: usize = 8;
/// Every how many-th lease its holder dies before its first append.
const DEATHS: usize = 7;

struct Race<'a> {
    world: &'a World,
    backend: &'a Backend,
    left: AtomicUsize,
    leases: AtomicUsize,
    /// Who took each wake up.
    taken: Mutex<HashMap<QueuedWakeId, u32>>,
}

/// `sessions` with `wakes` each, all due at one instant, and 64 threads that claim, take up and release, or die.
pub fn f06_of(make: Make, sessions: usize, wakes: usize) {
    let (world, backend) = setup(make);
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let keys: Vec<SessionKey> = runtime.block_on(async {
        let mut keys = Vec::with_capacity(sessions);
        for _ in 0..sessions {
            let key = world.key();
            let mut begin = vec![world.created(key)];
            begin.extend((0..wakes).map(|n| world.wake(Duration::from_secs(1), Priority::ALL[n % 3], None).1));
            backend.store.commit(Commit::client(key, world.append(), begin)).await.expect("a session with wakes");
            keys.push(key);
        }
        keys
    });
    world.clock.advance(Duration::from_secs(1));
    let race = Race {
        world: &world,
        backend: &backend,
        left: AtomicUsize::new(sessions * wakes),
        leases: AtomicUsize::new(0),
        taken: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for number in 1..=RACERS {
            let race = &race;
            scope.spawn(move || Builder::new_current_thread().build().expect("a runtime").block_on(race.run(number)));
        }
    });
    assert_eq!(race.taken.lock().expect("whole").len(), sessions * wakes, "each was taken up");
    runtime.block_on(async {
        for key in keys {
            assert_eq!(backend.store.wakes(key, true).await, Ok(Vec::new()));
            let mut owners: BTreeMap<u64, WorkerId> = BTreeMap::new();
            let mut last = 0;
            for event in whole(&*backend.store, key).await {
                if let (Some(fence), Some(worker)) = (event.fence, event.worker_id) {
                    assert!(fence >= last, "S3: fences never decrease");
                    last = fence;
                    assert_eq!(*owners.entry(fence).or_insert(worker), worker, "S3: a fence has one worker");
                }
            }
            assert_sound(&*backend.store, key).await;
        }
    });
}

impl Race<'_> {
    async fn run(&self, mut number: u32) {
        let (world, store) = (self.world, &*self.backend.store);
        while self.left.load(Ordering::SeqCst) > 0 {
            let owner = world.owner(number);
            let claims = store.claim(world.tenant, owner.clone(), BATCH, TTL).await.expect("claims");
            if claims.is_empty() {
                // Others are at work on the rest.
                std::thread::yield_now();
            }
            let mut died = false;
            for claim in claims {
                let Claim::Granted(lease) = claim else { panic!("a claim grants") };
                let key = SessionKey { tenant: world.tenant, session: lease.session };
                died = died || self.leases.fetch_add(1, Ordering::SeqCst) % DEATHS == DEATHS - 1;
                if died {
                    world.liveness.set(owner.worker, Liveness::Dead);
                }
                self.work(key, &lease, number, died).await;
            }
            if died {
                // Another process takes its place.
                number += RACERS;
            }
        }
    }

    async fn work(&self, key: SessionKey, lease: &Lease, number: u32, died: bool) {
        let (world, store) = (self.world, &*self.backend.store);
        let ids: Vec<QueuedWakeId> =
            store.wakes(key, true).await.expect("wakes").iter().map(|row| row.wake.queued_wake_id).collect();
        if !ids.is_empty() {
            let taken_up = world.draft(&WakeConsumed { queued_wake_ids: ids.clone() });
            match store.commit(world.work(key, lease, vec![taken_up])).await {
                Ok(_) => {
                    let mut taken = self.taken.lock().expect("whole");
                    for id in &ids {
                        assert_eq!(taken.insert(*id, number), None, "a wake is consumed once");
                    }
                    self.left.fetch_sub(ids.len(), Ordering::SeqCst);
                }
                // Only one that was declared dead can have lost what it held.
                Err(StoreError::FenceLost { .. } | StoreError::WakeSettled { .. }) if died => {}
                Err(error) => panic!("{error}"),
            }
        }
        if !died {
            store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
        }
    }
}

/// More urgent work comes in every second than can be done, for ever; what is not urgent is done all the same.
pub async fn f13_low_priority_is_served_although_urgent_work_never_ends(make: Make) {
    const CAPACITY: usize = 3;
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let session = async |priority| {
        let key = world.key();
        let events = vec![world.created(key), world.wake(Duration::ZERO, priority, None).1];
        store.commit(Commit::client(key, world.append(), events)).await.expect("a session with a wake");
        key.session
    };
    let low = session(Priority::Low).await;
    let normal = session(Priority::Normal).await;
    let begun = world.now();
    let mut served: HashMap<SessionId, Duration> = HashMap::new();
    for _ in 0..=2 * WAKE_AGE_STEP.as_secs() + 1 {
        for _ in 0..CAPACITY {
            session(Priority::High).await;
        }
        // Whatever is claimed is finished within the second.
        for claim in store.claim(world.tenant, world.owner(1), CAPACITY, TTL).await.expect("claims") {
            let Claim::Granted(lease) = claim else { panic!("a claim grants") };
            served.insert(lease.session, world.now().since(begun));
            let key = SessionKey { tenant: world.tenant, session: lease.session };
            let ids = store.wakes(key, true).await.expect("wakes").iter().map(|row| row.wake.queued_wake_id).collect();
            let taken_up = world.draft(&WakeConsumed { queued_wake_ids: ids });
            store.commit(world.work(key, &lease, vec![taken_up])).await.expect("taken up");
            store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
        }
        world.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(served.get(&normal), Some(&WAKE_AGE_STEP), "after a minute normal work is first in the line");
    assert_eq!(served.get(&low), Some(&(2 * WAKE_AGE_STEP)), "after two, low work is");
}
