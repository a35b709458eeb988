//! Writers of one head row that read it at the same time: whoever comes second takes nothing back that the first one did.

use std::time::Duration;

use portcullis_base::{SessionId, Timestamp};
use portcullis_event::facts::{Priority, StatusIdle, StatusTerminated, StopReason};
use portcullis_event::fold::Wakes;
use portcullis_store::{Commit, Head, HeadColumns, HeadUpdate, Plan, SessionKey, plan};
use portcullis_store_testkit::World;
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(30);

/// One thing that changes a head, by its number.
const OPERATIONS: u8 = 10;

/// Decides an operation by a row; `None` if the row does not let it.
fn decided(world: &World, key: SessionKey, operation: u8, row: &Head) -> Option<HeadUpdate> {
    let now = world.now();
    let worker = |events| Commit::worker(key, world.owner(1).worker, row.fence, world.append(), events);
    let held = row.lease_owner.is_some();
    let (_, queued) = world.wake(Duration::from_secs(5), Priority::Low, None);
    let ended = StatusTerminated { previous_status: "idle".to_owned(), stop_reason: "done".to_owned() };
    let idle = StatusIdle { previous_status: "running".to_owned(), stop_reason: StopReason::EndTurn, summary: None };
    match operation {
        0 => planned(world, row, &world.input(key, "work")),
        1 => planned(world, row, &worker(world.parked().events)),
        2 => planned(world, row, &worker(vec![world.draft(&idle)])),
        3 => planned(world, row, &world.client(key, queued)),
        4 => planned(world, row, &world.client(key, world.draft(&ended))),
        5 => (!held).then(|| row.granted(key.session, world.owner(1), (now, TTL), &*world.liveness).1),
        6 => held.then(|| row.renewed(now.plus(TTL))),
        7 => held.then(|| row.released(Some(row.last_seq), now)),
        8 => held.then(|| row.deferred(now.plus(TTL))),
        _ => row.swept(now),
    }
}

fn planned(world: &World, row: &Head, commit: &Commit) -> Option<HeadUpdate> {
    let plan_by = Plan {
        now: world.now(),
        ids: &*world.ids,
        key: None,
        head: Some(row.clone()),
        ask: &|_| None,
        intent: &|_| None,
        wake: &|_| None,
        wakes: &Wakes::default,
        locks: &|_| Vec::new(),
    };
    plan(commit, plan_by).ok().map(|planned| planned.head)
}

/// As a backend with several writers does it: what was decided by an older row is decided anew.
fn apply(update: Option<HeadUpdate>, row: &mut Head, anew: impl FnOnce(&Head) -> Option<HeadUpdate>) {
    let current = update.filter(|update| update.holds_for(row)).or_else(|| anew(row));
    if let Some(update) = current {
        assert!(update.holds_for(row));
        update.apply_to(row);
    }
}

/// What hashes and ids are does not matter here: an event that is written anew has others.
fn essence(row: &Head) -> Head {
    Head { last_hash: portcullis_base::Digest::of(b""), ..row.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s11_two_writers_of_one_head_lose_nothing(
        past in prop::collection::vec(0..OPERATIONS, 0..8),
        first in 0..OPERATIONS,
        second in 0..OPERATIONS,
    ) {
        let world = World::new(3);
        let key = world.key();
        let mut row = Head::new(key.session, world.now());
        for operation in past {
            world.clock.advance(Duration::from_secs(1));
            apply(None, &mut row, |row| decided(&world, key, operation, row));
        }
        world.clock.advance(Duration::from_secs(1));
        // One after the other.
        let mut serial = row.clone();
        for operation in [first, second] {
            apply(None, &mut serial, |row| decided(&world, key, operation, row));
        }
        // Both have read the row before either writes.
        let (one, other) = (decided(&world, key, first, &row), decided(&world, key, second, &row));
        apply(one, &mut row, |row| decided(&world, key, first, row));
        apply(other, &mut row, |row| decided(&world, key, second, row));
        prop_assert_eq!(essence(&row), essence(&serial), "{} and {}", first, second);
    }
}

#[test]
fn a_renewal_and_an_append_do_not_hinder_each_other() {
    let world = World::new(3);
    let key = SessionKey { tenant: world.tenant, session: SessionId::from_u128(1) };
    let mut row = Head::new(key.session, Timestamp::from_micros(0));
    row.granted(key.session, world.owner(1), (world.now(), TTL), &*world.liveness).1.apply_to(&mut row);
    world.clock.advance(Duration::from_secs(1));
    let renewal = row.renewed(world.now().plus(TTL));
    let append = planned(&world, &row, &world.input(key, "behind its back")).expect("input");
    assert_eq!(renewal.sets().collect::<Vec<_>>(), [HeadColumns::Until]);
    assert_eq!(append.sets().collect::<Vec<_>>(), [HeadColumns::Log], "there was work already");
    append.apply_to(&mut row);
    assert!(renewal.holds_for(&row));
    renewal.apply_to(&mut row);
    assert_eq!((row.last_seq, row.lease_until), (1, Some(world.now().plus(TTL))));
    let release = row.released(Some(1), world.now());
    planned(&world, &row, &world.input(key, "once more")).expect("input").apply_to(&mut row);
    assert!(!release.holds_for(&row), "it did not see that");
}
