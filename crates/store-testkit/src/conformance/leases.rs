//! Leases and fences: who may write, and who no longer may.

use std::collections::HashMap;
use std::time::Duration;

use portcullis_base::WorkerId;
use portcullis_event::facts::Priority;
use portcullis_store::{Claim, Head, Liveness, PreviousLease, StoreError};

use super::{Make, TTL, assert_sound, head, setup, whole};

pub async fn s03_fences_rise_and_belong_to_one_worker(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    for round in 1..=6 {
        let lease = world.claim(store, key, round).await.expect("a lease");
        store.commit(world.work(key, &lease, world.inert_call("x"))).await.expect("an append");
        if round % 2 == 0 {
            store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
        } else {
            world.clock.advance(TTL);
        }
    }
    let mut owners: HashMap<u64, WorkerId> = HashMap::new();
    let mut last = 0;
    for event in whole(store, key).await {
        if let (Some(fence), Some(worker)) = (event.fence, event.worker_id) {
            assert!(fence >= last, "fences never decrease along seq");
            last = fence;
            assert_eq!(*owners.entry(fence).or_insert(worker), worker);
        }
    }
    assert_eq!(owners.len(), 6);
}

pub async fn s04_older_fence_never_commits(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let old = world.claim(store, key, 1).await.expect("a lease");
    // Proven dead (wrongly, as it turns out): the lease has not run out by any clock.
    world.liveness.set(old.owner.worker, Liveness::Dead);
    let new = world.claim(store, key, 2).await.expect("a takeover");
    assert_eq!(new.fence, old.fence + 1);
    let before = store.head(key).await.expect("a head");
    let refused = store.commit(world.work(key, &old, world.inert_call("late"))).await;
    assert_eq!(refused, Err(StoreError::FenceLost { session: key.session, ours: old.fence, found: new.fence }));
    assert_eq!(store.head(key).await.expect("a head"), before, "nothing of it was written");
    let mut future = new.clone();
    future.fence += 1;
    assert!(matches!(
        store.commit(world.work(key, &future, world.inert_call("x"))).await,
        Err(StoreError::FenceLost { .. })
    ));
    store.commit(world.work(key, &new, world.inert_call("in time"))).await.expect("the newest fence writes");
    assert_sound(store, key).await;
}

pub async fn check06_l75_with_two_workers_only_the_newest_fence_writes(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let mut leases = Vec::new();
    for number in 1..=4 {
        leases.push(world.claim(store, key, number).await.expect("a lease"));
        for (at, lease) in leases.iter().enumerate() {
            let newest = at + 1 == leases.len();
            let answer = store.commit(world.work(key, lease, vec![world.intent().1])).await;
            assert_eq!(answer.is_ok(), newest, "worker {number}, fence {}", lease.fence);
        }
        world.clock.advance(TTL);
    }
}

pub async fn a_live_owner_is_held_and_a_dead_one_taken_over(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    assert_eq!((lease.last_seq, lease.before), (1, PreviousLease::GivenBack));
    for known in [Liveness::Alive, Liveness::Unknown] {
        world.liveness.set(lease.owner.worker, known);
        let held = store.claim_session(key, world.owner(2), TTL).await.expect("an answer");
        assert_eq!(held, Claim::Held { owner: lease.owner.clone(), until: lease.until }, "{known:?}");
    }
    world.liveness.set(lease.owner.worker, Liveness::Dead);
    let taken = world.claim(store, key, 2).await.expect("a takeover before the lease's end");
    assert_eq!((taken.fence, taken.before), (2, PreviousLease::Dead));
    world.clock.advance(TTL);
    assert_eq!(world.claim(store, key, 3).await.expect("it ran out").before, PreviousLease::RanOut);
    let missing = world.key();
    let none = store.claim_session(missing, world.owner(2), TTL).await;
    assert_eq!(none, Err(StoreError::NoSession(missing.session)));
}

pub async fn a_lease_runs_out_by_the_clock(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    world.liveness.set(lease.owner.worker, Liveness::Alive);
    world.clock.advance(TTL - Duration::from_micros(1));
    assert!(world.claim(store, key, 2).await.is_err(), "a microsecond is left");
    let until = store.renew(key, lease.fence, TTL).await.expect("a renewal");
    assert_eq!(until, lease.until.plus(TTL - Duration::from_micros(1)));
    world.clock.advance(TTL - Duration::from_micros(1));
    assert!(world.claim(store, key, 2).await.is_err(), "it was renewed");
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(world.claim(store, key, 2).await.expect("it ran out").fence, 2);
}

pub async fn renew_and_release_know_their_fence(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lost = |ours, found| StoreError::FenceLost { session: key.session, ours, found };
    assert_eq!(store.renew(key, 0, TTL).await, Err(lost(0, 0)), "nobody holds it");
    let first = world.claim(store, key, 1).await.expect("a lease");
    world.clock.advance(TTL);
    let second = world.claim(store, key, 2).await.expect("a takeover");
    assert_eq!(store.renew(key, first.fence, TTL).await, Err(lost(1, 2)));
    let before = store.head(key).await.expect("a head");
    assert_eq!(store.release(key, first.fence, None).await, Err(lost(1, 2)), "it is not ours to give back");
    assert_eq!(store.head(key).await.expect("a head"), before, "and nothing changes");
    store.release(key, second.fence, None).await.expect("a release");
    let head = head(store, key).await;
    assert_eq!((head.lease_owner, head.lease_until, head.fence), (None, None, 2));
    assert!(head.next_due_at.is_some(), "more work was announced");
    assert_eq!(store.renew(key, second.fence, TTL).await, Err(lost(2, 2)), "given back is given back");
    assert_eq!(store.release(key, second.fence, None).await, Err(lost(2, 2)), "and only once");
}

/// Each operation changes its own columns of the head row and leaves the others.
pub async fn a_head_is_changed_by_column(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let head = async || head(store, key).await;
    let tick = || world.clock.advance(Duration::from_secs(1));

    let free = head().await;
    tick();
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let held = head().await;
    let (owner, until) = (Some(lease.owner.clone()), Some(lease.until));
    let (due, priority) = (Some(world.now()), Priority::High);
    let line = Head { work_due_at: due, next_due_at: due, priority, ..free.clone() };
    assert_eq!(held, Head { fence: 1, lease_owner: owner, lease_until: until, ..line }, "a claim");

    tick();
    let until = store.renew(key, lease.fence, TTL).await.expect("a renewal");
    let renewed = Head { lease_until: Some(until), ..held.clone() };
    assert_eq!(head().await, renewed, "a renewal");

    tick();
    let parked = world.parked();
    let committed = store.commit(world.work(key, &lease, parked.events)).await.expect("a park");
    let last_hash = committed.events.last().expect("events").hash;
    let log = Head { last_seq: 4, last_hash, blocked_n: 1, updated_at: world.now(), ..renewed };
    assert_eq!(head().await, log, "an append");

    tick();
    store.release(key, lease.fence, Some(4)).await.expect("a release");
    let idle = Head { lease_owner: None, lease_until: None, work_due_at: None, next_due_at: None, ..log };
    let idle = Head { priority: Priority::Normal, ..idle };
    assert_eq!(head().await, idle, "a release");

    world.clock.advance(Duration::from_secs(3_600));
    assert_eq!(store.sweep().await.expect("a sweep").expired, 1);
    let due = Some(world.now());
    assert_eq!(head().await, Head { work_due_at: due, next_due_at: due, priority, ..idle }, "a sweep");
}

pub async fn s12_work_put_off_is_due_later_or_when_somebody_speaks(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let due = async || head(store, key).await.next_due_at;
    let (_, queued) = world.wake(Duration::ZERO, portcullis_event::facts::Priority::Normal, None);
    store.commit(world.client(key, queued)).await.expect("a wake that is due");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let later = world.now().plus(Duration::from_secs(8));
    store.defer(key, lease.fence, later).await.expect("put off");
    assert_eq!(due().await, Some(later), "the wake that is due waits with it");
    let head = head(store, key).await;
    assert_eq!((head.lease_owner, head.lease_until), (None, None), "and anybody may take it up by its name");
    store.commit(world.input(key, "hello?")).await.expect("input");
    assert!(due().await.is_some_and(|at| at <= world.now()), "whoever speaks is heard");
    let second = world.claim(store, key, 2).await.expect("a lease");
    let lost = StoreError::FenceLost { session: key.session, ours: lease.fence, found: second.fence };
    assert_eq!(store.defer(key, lease.fence, later).await, Err(lost), "not ours any more");
}

pub async fn s12_input_makes_a_session_due_and_a_block_holds_it(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let due = async || head(store, key).await.next_due_at;
    assert_eq!(due().await, None, "a new session has nothing to do");
    store.commit(world.input(key, "hello")).await.expect("input");
    let first = due().await.expect("input makes it due");
    world.clock.advance(Duration::from_secs(1));
    store.commit(world.input(key, "again")).await.expect("input");
    assert_eq!(due().await, Some(first), "the earlier time stays");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    assert_eq!(due().await, Some(first), "a claim leaves it: a worker that dies must be followed");
    let parked = world.parked();
    store.commit(world.work(key, &lease, parked.events)).await.expect("a park");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    assert_eq!(due().await, None);
    store.commit(world.input(key, "while blocked")).await.expect("input");
    assert_eq!(due().await, None, "while an ask waits, input does not wake the session");
    let reply = world.replied(parked.ask, portcullis_event::facts::Reply::AllowOnce);
    store.commit(world.client(key, reply)).await.expect("an answer");
    assert!(due().await.is_some(), "an answer does");
}

pub async fn s11_a_release_does_not_forget_what_came_meanwhile(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let seen = head(store, key).await.last_seq;
    store.commit(world.input(key, "behind its back")).await.expect("input");
    store.release(key, lease.fence, Some(seen)).await.expect("a release");
    let due = head(store, key).await.next_due_at;
    assert!(due.is_some(), "the holder never saw the input, so it is still to be done");
    let again = world.claim(store, key, 2).await.expect("a lease");
    let seen = head(store, key).await.last_seq;
    store.release(key, again.fence, Some(seen)).await.expect("a release");
    let due = head(store, key).await.next_due_at;
    assert_eq!(due, None, "this one saw it all");
}

pub async fn s12_claim_takes_due_sessions_only(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut due = Vec::new();
    for i in 0..5 {
        let key = world.session(store).await.expect("a session");
        if i > 0 {
            world.clock.advance(Duration::from_secs(1));
            store.commit(world.input(key, "work")).await.expect("input");
            due.push(key.session);
        }
    }
    let taken = async |owner, limit| -> Vec<_> {
        let claims = store.claim(world.tenant, world.owner(owner), limit, TTL).await.expect("claims");
        claims.into_iter().filter_map(Claim::granted).map(|lease| lease.session).collect()
    };
    assert_eq!(taken(1, 2).await, due[..2], "the longest due first, no more than asked for");
    assert_eq!(taken(2, 9).await, due[2..], "those under a lease are left alone");
    world.clock.advance(TTL);
    assert_eq!(taken(3, 9).await, due, "a lease that ran out is due again at once");
}
