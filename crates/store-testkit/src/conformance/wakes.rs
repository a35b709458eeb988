//! Queued wakes: work that waits for its time and is taken up once (store §6).

use std::time::Duration;

use portcullis_base::limits::PENDING_WAKES;
use portcullis_base::{SessionId, TenantId};
use portcullis_event::facts::{Priority, Reply, StatusIdle, StopReason, WakeState, retry_key};
use portcullis_store::{Claim, Commit, Fairness, Liveness, SessionKey, Store, StoreError, SweepResult};

use super::{Make, TTL, assert_sound, head, setup};
use crate::World;

const SOON: Duration = Duration::from_secs(100);

async fn claimed(store: &dyn Store, world: &World, limit: usize) -> Vec<SessionId> {
    let claims = store.claim(world.tenant, world.owner(1), limit, TTL).await.expect("claims");
    claims.into_iter().filter_map(Claim::granted).map(|lease| lease.session).collect()
}

pub async fn s12_a_wake_is_due_at_its_time_and_taken_up_once(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let (wake, queued) = world.wake(SOON, Priority::Low, None);
    store.commit(world.client(key, queued.clone())).await.expect("a wake");
    let due_at = world.now().plus(SOON);
    let now = head(store, key).await;
    assert_eq!((now.next_due_at, now.priority), (Some(due_at), Priority::Low));
    assert_eq!(claimed(store, &world, 9).await, [], "it is not due yet");
    world.clock.advance(SOON);
    assert_eq!(claimed(store, &world, 9).await, [key.session]);
    let fence = head(store, key).await.fence;

    // A crash before the first append: it is delivered again.
    world.clock.advance(TTL);
    assert_eq!(claimed(store, &world, 9).await, [key.session]);
    let lease = world_lease(&world, store, key, fence + 1).await;
    store.commit(world.work(key, &lease, vec![world.consumed(wake)])).await.expect("taken up");
    let settled = |state| Err(StoreError::WakeSettled { wake, state });
    let again = store.commit(world.work(key, &lease, vec![world.consumed(wake)])).await;
    assert_eq!(again, settled(WakeState::Consumed), "a wake is consumed once");
    assert_eq!(store.commit(world.client(key, world.cancelled(wake))).await, settled(WakeState::Consumed));
    let mut requeued = queued;
    requeued.id = portcullis_base::EventId::make(&*world.ids, world.now());
    assert_eq!(store.commit(world.client(key, requeued)).await, settled(WakeState::Consumed), "an id is used once");
    assert_eq!(store.wakes(key, true).await, Ok(Vec::new()));
    assert_eq!(store.wakes(key, false).await.expect("all")[0].state, WakeState::Consumed);

    // A crash after it: the work is not lost, though no wake is pending any more.
    world.clock.advance(TTL);
    assert_eq!(claimed(store, &world, 9).await, [key.session]);
    let lease = world_lease(&world, store, key, fence + 2).await;
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    assert_eq!(head(store, key).await.next_due_at, None, "now nothing is left");
    assert_sound(store, key).await;
}

/// The lease that the last `claim` of worker 1 gave.
async fn world_lease(world: &World, store: &dyn Store, key: SessionKey, fence: u64) -> portcullis_store::Lease {
    let head = head(store, key).await;
    assert_eq!(head.fence, fence);
    let until = head.lease_until.expect("it is held");
    portcullis_store::Lease {
        session: key.session,
        fence,
        owner: world.owner(1),
        until,
        last_seq: head.last_seq,
        before: portcullis_store::PreviousLease::GivenBack,
    }
}

pub async fn s12_of_equal_wakes_the_first_stays_and_the_earlier_time_wins(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let (first, queued) = world.wake(SOON, Priority::Low, Some("same"));
    store.commit(world.client(key, queued)).await.expect("a wake");
    let before = store.wakes(key, true).await.expect("wakes");
    let due = async || head(store, key).await.next_due_at.expect("it is due some time");
    let original = due().await;

    let (second, later) = world.wake(SOON * 2, Priority::High, Some("same"));
    store.commit(world.client(key, later)).await.expect("the same again");
    assert_eq!(due().await, original, "a later one changes nothing");
    assert_eq!(store.wakes(key, true).await.expect("wakes")[0].wake, before[0].wake);
    let (_, earlier) = world.wake(SOON / 2, Priority::High, Some("same"));
    store.commit(world.client(key, earlier)).await.expect("the same again");
    let rows = store.wakes(key, false).await.expect("wakes");
    assert_eq!(rows.len(), 1);
    let (row, old) = (&rows[0].wake, &before[0].wake);
    assert_eq!((row.queued_wake_id, &row.reason, &row.note), (first, &old.reason, &old.note));
    assert_eq!((row.priority, row.due_at), (Priority::Low, world.now().plus(SOON / 2)));
    assert_eq!((due().await, head(store, key).await.priority), (row.due_at, Priority::Low));
    assert_eq!(store.commit(world.client(key, world.cancelled(second))).await, Err(StoreError::NoWake(second)));

    // Another key, and no key, are other wakes; a key that is free again can be used again.
    for dedupe in [Some("other"), None, None] {
        let (_, queued) = world.wake(SOON * 3, Priority::Normal, dedupe);
        store.commit(world.client(key, queued)).await.expect("a wake");
    }
    assert_eq!(store.wakes(key, true).await.expect("wakes").len(), 4);
    store.commit(world.client(key, world.cancelled(first))).await.expect("cancelled");
    assert_eq!(due().await, world.now().plus(SOON * 3), "the next one counts");
    let (_, again) = world.wake(SOON, Priority::Normal, Some("same"));
    store.commit(world.client(key, again)).await.expect("a wake");
    assert_eq!(store.wakes(key, true).await.expect("wakes").len(), 4);
    assert_eq!(due().await, world.now().plus(SOON));
}

pub async fn s11_a_release_remembers_pending_wakes(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let (_, queued) = world.wake(SOON, Priority::Normal, None);
    store.commit(world.client(key, queued)).await.expect("a wake");
    let wake_at = world.now().plus(SOON);
    store.commit(world.input(key, "now")).await.expect("input");
    let due = async || {
        let head = head(store, key).await;
        (head.next_due_at, head.priority)
    };
    assert_eq!(due().await, (Some(world.now()), Priority::High), "input is immediate");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    assert_eq!(due().await, (Some(wake_at), Priority::Normal), "what is pending is not forgotten");

    // While an ask waits no wake does; its answer, and its end, bring them back.
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let parked = world.parked();
    store.commit(world.work(key, &lease, parked.events)).await.expect("a park");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    assert_eq!(due().await.0, None, "only the answer moves a blocked session");
    store.commit(world.client(key, world.replied(parked.ask, Reply::Deny))).await.expect("an answer");
    assert_eq!(due().await, (Some(world.now()), Priority::High));
    let lease = world.claim(store, key, 1).await.expect("a lease");
    store.commit(world.work(key, &lease, vec![world.observed(parked.intent, "no")])).await.expect("settled");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    assert_eq!(due().await, (Some(wake_at), Priority::Normal));
}

pub async fn s11_what_a_dead_holder_left_is_due_whatever_it_did(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (lost, kept) = (world.session(store).await.expect("one"), world.session(store).await.expect("another"));
    // Neither was due: someone called a tool in each.
    for (key, number) in [(lost, 7), (kept, 8)] {
        let lease = world.claim(store, key, number).await.expect("a lease");
        let (intent, proposed) = world.intent();
        store.commit(world.work(key, &lease, vec![proposed, world.started(intent).1])).await.expect("an append");
    }
    assert_eq!(claimed(store, &world, 9).await, [], "both are held");
    world.liveness.set(world.owner(7).worker, Liveness::Dead);
    assert_eq!(claimed(store, &world, 9).await, [lost.session], "at once, not after the lease");
    assert_eq!(head(store, lost).await.fence, 2);
    world.clock.advance(TTL);
    let mut both = claimed(store, &world, 9).await;
    both.sort();
    let mut expected = [lost.session, kept.session];
    expected.sort();
    assert_eq!(both, expected, "a lease that ran out is a holder that is gone");
}

pub async fn s12_claim_takes_the_most_urgent_first_and_age_counts(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut made = Vec::new();
    for priority in [Priority::Low, Priority::Normal, Priority::High] {
        let key = world.session(store).await.expect("a session");
        let (_, queued) = world.wake(Duration::from_secs(1), priority, None);
        store.commit(world.client(key, queued)).await.expect("a wake");
        made.push(key);
    }
    let [low, normal, high] = [made[0].session, made[1].session, made[2].session];
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(claimed(store, &world, 2).await, [high, normal]);
    assert_eq!(claimed(store, &world, 2).await, [low]);
    for key in &made {
        let fence = head(store, *key).await.fence;
        store.release(*key, fence, Some(u64::MAX)).await.expect("a release");
    }
    let input = world.session(store).await.expect("a session");
    world.clock.advance(Duration::from_secs(58));
    store.commit(world.input(input, "now")).await.expect("input");
    world.clock.advance(Duration::from_secs(1));
    // All wakes have waited 59 s: input is as urgent as the highest, and came later.
    assert_eq!(claimed(store, &world, 1).await, [high]);
    assert_eq!(claimed(store, &world, 1).await, [input.session]);
    world.clock.advance(Duration::from_secs(1));
    let another = world.session(store).await.expect("a session");
    store.commit(world.input(another, "now")).await.expect("input");
    assert_eq!(claimed(store, &world, 1).await, [normal], "after a minute it counts as high, and came first");
    assert_eq!(claimed(store, &world, 2).await, [another.session, low]);
}

pub async fn f13_a_flooding_tenant_leaves_the_others_their_share(make: Make) {
    let (mut world, backend) = setup(make);
    let store = &*backend.store;
    let (flood, quiet) = (world.tenant, TenantId::from_u128(9));
    for _ in 0..20 {
        let key = world.session(store).await.expect("a session");
        store.commit(world.input(key, "flood")).await.expect("input");
    }
    world.clock.advance(SOON);
    world.tenant = quiet;
    let key = world.session(store).await.expect("a session");
    let (_, queued) = world.wake(Duration::ZERO, Priority::Low, None);
    store.commit(world.client(key, queued)).await.expect("a wake");
    let take = async |owner: u32, limit| {
        let fairness = Fairness { per_tenant_max: 6 };
        let taken = store.claim_any(world.owner(owner), limit, TTL, fairness).await.expect("claims");
        taken
            .into_iter()
            .map(|(key, lease)| {
                assert_eq!(key.session, lease.session);
                key.tenant
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(take(1, 4).await, [flood, quiet, flood, flood]);
    assert_eq!(take(2, 9).await, [flood, flood, flood], "six leases are its limit, whoever holds them");
    assert_eq!(take(3, 9).await, []);
    world.liveness.set(world.owner(2).worker, Liveness::Dead);
    assert_eq!(take(3, 9).await, [flood, flood, flood], "those of the dead do not count");
    world.clock.advance(TTL);
    let all = take(4, 99).await;
    assert_eq!(all.iter().filter(|tenant| **tenant == flood).count(), 6);
    assert_eq!(all.iter().filter(|tenant| **tenant == quiet).count(), 1);
}

pub async fn the_failures_of_wakes_are_counted_in_a_row(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let retry = || world.wake(SOON, Priority::Normal, Some(&retry_key(key.session))).1;
    let streak = async || head(store, key).await.failure_streak;
    store.commit(world.client(key, retry())).await.expect("a wake");
    assert_eq!(streak().await, 0, "a client cannot say that a wake failed");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    for n in 1..=3 {
        store.commit(world.work(key, &lease, vec![retry()])).await.expect("a failed wake");
        assert_eq!(streak().await, n);
    }
    assert_eq!(store.wakes(key, true).await.expect("wakes").len(), 1, "there is one next try");
    store.commit(world.input(key, "try this")).await.expect("input");
    assert_eq!(streak().await, 0, "new input starts anew");
    store.commit(world.work(key, &lease, vec![retry(), retry()])).await.expect("failed wakes");
    assert_eq!(streak().await, 2);
    let idle = StatusIdle { previous_status: "running".to_owned(), stop_reason: StopReason::EndTurn, summary: None };
    store.commit(world.work(key, &lease, vec![retry(), world.draft(&idle), retry()])).await.expect("an append");
    assert_eq!(streak().await, 1, "what went well in between ends the row");
}

pub async fn a_session_plans_only_so_many_wakes(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let many = |n: usize| (0..n).map(|_| world.wake(SOON, Priority::Low, None).1).collect::<Vec<_>>();
    store.commit(Commit::client(key, world.append(), many(PENDING_WAKES - 1))).await.expect("almost full");
    let refused = Err(StoreError::TooManyWakes { limit: PENDING_WAKES });
    assert_eq!(store.commit(Commit::client(key, world.append(), many(2))).await, refused);
    store.commit(Commit::client(key, world.append(), many(1))).await.expect("full");
    assert_eq!(store.commit(Commit::client(key, world.append(), many(1))).await, refused);
    assert_eq!(store.wakes(key, true).await.expect("wakes").len(), PENDING_WAKES);
}

pub async fn s11_a_sweep_makes_sessions_with_expired_asks_due(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let mut keys = Vec::new();
    for _ in 0..3 {
        let key = world.session(store).await.expect("a session");
        let lease = world.claim(store, key, 1).await.expect("a lease");
        store.commit(world.work(key, &lease, world.parked().events)).await.expect("a park");
        store.commit(world.work(key, &lease, world.parked().events)).await.expect("another");
        store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
        keys.push(key);
    }
    let swept = async || store.sweep().await.expect("a sweep");
    assert_eq!(swept().await, SweepResult::default());
    world.clock.advance(Duration::from_secs(3_600));
    let lease = world.claim(store, keys[0], 1).await.expect("a lease");
    assert_eq!(swept().await, SweepResult { expired: 2, forgotten: 0 }, "one is at work already");
    assert_eq!(swept().await, SweepResult::default(), "once is enough");
    store.release(keys[0], lease.fence, Some(u64::MAX)).await.expect("a release that left the ask alone");
    assert_eq!(swept().await.expired, 1, "as long as it waits it is found again");
    let due = claimed(store, &world, 9).await;
    assert_eq!(due.len(), 3);
    assert_eq!(head(store, keys[1]).await.blocked_n, 2, "closing them is the worker's");
}

pub async fn s17_a_response_is_forgotten_after_a_day(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let ask = async || {
        let mut commit = world.input(key, "once");
        commit.idempotency = Some(portcullis_store::Idempotency {
            route: "r".to_owned(),
            key: "k".to_owned(),
            body_hash: portcullis_base::Digest::of(b"body"),
            response: serde_json::json!("done"),
        });
        store.commit(commit).await.expect("an answer").repeat
    };
    assert!(!ask().await);
    world.clock.advance(Duration::from_secs(24 * 3_600 - 1));
    assert_eq!(store.sweep().await, Ok(SweepResult::default()));
    assert!(ask().await, "within a day it is the same request");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(store.sweep().await, Ok(SweepResult { expired: 0, forgotten: 1 }));
    assert!(!ask().await);
}

pub async fn f18_a_clock_that_jumps_loses_no_wake_and_lets_no_old_fence_write(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let (wake, queued) = world.wake(Duration::from_secs(60), Priority::Normal, None);
    store.commit(world.client(key, queued)).await.expect("a wake");
    let jump = |secs: i64| {
        let to = world.now().as_micros() + secs * 1_000_000;
        world.clock.jump_to(portcullis_base::Timestamp::from_micros(to));
    };
    // Ten minutes back: later than asked for, and not lost.
    jump(-600);
    assert_eq!(claimed(store, &world, 9).await, []);
    jump(660);
    assert_eq!(claimed(store, &world, 9).await, [key.session]);
    let first = world_lease(&world, store, key, 1).await;
    // Ten minutes ahead under a lease: an early takeover, which the fence makes safe.
    jump(600);
    world.liveness.set(first.owner.worker, Liveness::Alive);
    let second = world.claim(store, key, 2).await.expect("by this clock the lease ran out");
    let late = store.commit(world.work(key, &first, vec![world.consumed(wake)])).await;
    assert_eq!(late, Err(StoreError::FenceLost { session: key.session, ours: 1, found: 2 }));
    // And back again: the lease seems long, the fence is what counts, and the work is still due afterwards.
    jump(-600);
    assert!(world.claim(store, key, 3).await.is_err(), "a clock that went back delays a takeover");
    store.commit(world.work(key, &second, vec![world.consumed(wake)])).await.expect("the newest fence writes");
    store.renew(key, second.fence, TTL).await.expect("a renewal");
    assert!(head(store, key).await.next_due_at.is_some_and(|due| due <= world.now().plus(Duration::from_secs(600))));
    // A pause of the whole machine: the holder wakes up to a lease that ran out, and someone else's fence.
    jump(31);
    let third = world.claim(store, key, 3).await.expect("it ran out");
    assert!(matches!(store.renew(key, second.fence, TTL).await, Err(StoreError::FenceLost { .. })));
    assert!(matches!(store.release(key, second.fence, Some(u64::MAX)).await, Err(StoreError::FenceLost { .. })));
    store.release(key, third.fence, Some(u64::MAX)).await.expect("a release");
    assert_sound(store, key).await;
}
