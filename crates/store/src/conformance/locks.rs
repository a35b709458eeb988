//! Scheduler keys: taken and given back by appends.

use std::time::Duration;

use portcullis_base::limits::EFFECT_GRACE;
use portcullis_base::{Clock as _, LocationId, Timestamp};

use super::{Make, setup};
use crate::testkit::World;
use crate::{Commit, LockKey, SessionKey, StoreError};

fn lock(location: u128, key: &str) -> LockKey {
    LockKey { location: LocationId::from_u128(location), key: key.to_owned() }
}

fn taking(world: &World, key: SessionKey, locks: &[LockKey]) -> Commit {
    let mut commit = world.input(key, "take");
    commit.take = locks.to_vec();
    commit
}

pub async fn a_lock_excludes_its_ancestors_and_descendants(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let a = world.session(store).await.expect("a session");
    let b = world.session(store).await.expect("a session");
    let held = lock(1, "fs:/repo/src");
    store.commit(taking(&world, a, std::slice::from_ref(&held))).await.expect("a free key");
    for wanted in ["fs:/repo/src", "fs:/repo", "fs:/repo/src/a.rs", "*"] {
        let refused = store.commit(taking(&world, b, &[lock(1, "mcp:free"), lock(1, wanted)])).await;
        assert_eq!(
            refused,
            Err(StoreError::LockHeld { key: held.key.clone(), session: a.session, until: None }),
            "{wanted}"
        );
    }
    assert_eq!(store.head(b).await.expect("a head").expect("the session").last_seq, 1, "nothing was written");
    store.commit(taking(&world, b, &[lock(1, "fs:/repo/srcs"), lock(2, "fs:/repo")])).await.expect("no conflict");
    store.commit(taking(&world, a, &[lock(1, "fs:/repo/src/x")])).await.expect("its own keys do not exclude it");
}

pub async fn a_lock_is_freed_only_by_its_session(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let a = world.session(store).await.expect("a session");
    let b = world.session(store).await.expect("a session");
    let key = lock(1, "fs:/a");
    store.commit(taking(&world, a, std::slice::from_ref(&key))).await.expect("a free key");
    let mut theft = world.input(b, "free");
    theft.free = vec![key.clone()];
    store.commit(theft).await.expect("freeing what is not held changes nothing");
    assert!(store.commit(taking(&world, b, std::slice::from_ref(&key))).await.is_err(), "still held");
    let mut free = world.input(a, "free");
    free.free = vec![key.clone()];
    store.commit(free).await.expect("it gives its key back");
    store.commit(taking(&world, b, &[key])).await.expect("the key is free");
}

pub async fn f05_a_lost_key_excludes_everybody_until_its_grace_is_over(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let a = world.session(store).await.expect("a session");
    let b = world.session(store).await.expect("a session");
    let key = lock(1, "fs:/a");
    store.commit(taking(&world, a, std::slice::from_ref(&key))).await.expect("a free key");
    let mut theft = world.input(b, "lost");
    theft.linger = vec![key.clone()];
    store.commit(theft).await.expect("what another holds is not its to mark");
    let refused = store.commit(taking(&world, b, &[lock(1, "fs:/a/b")])).await;
    assert_eq!(refused, Err(StoreError::LockHeld { key: key.key.clone(), session: a.session, until: None }));

    let mut lost = world.input(a, "lost");
    lost.linger = vec![key.clone()];
    let until = Some(world.clock.now().plus(EFFECT_GRACE));
    store.commit(lost).await.expect("a recovery");
    let held = || Err(StoreError::LockHeld { key: key.key.clone(), session: a.session, until });
    world.clock.advance(EFFECT_GRACE - Duration::from_micros(1));
    assert_eq!(store.commit(taking(&world, b, &[lock(1, "fs:/a/b")])).await, held());
    assert_eq!(store.commit(taking(&world, a, std::slice::from_ref(&key))).await, held(), "its own session waits too");
    world.clock.advance(Duration::from_micros(1));
    store.commit(taking(&world, b, std::slice::from_ref(&key))).await.expect("free by itself");
    let held = store.commit(taking(&world, a, std::slice::from_ref(&key))).await;
    assert_eq!(held, Err(StoreError::LockHeld { key: key.key.clone(), session: b.session, until: None }), "held anew");
}

pub async fn f05_no_lost_key_stays_when_the_clock_is_set_back(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let a = world.session(store).await.expect("a session");
    let key = lock(1, "fs:/a");
    store.commit(taking(&world, a, std::slice::from_ref(&key))).await.expect("a free key");
    let mut lost = world.input(a, "lost");
    lost.linger = vec![key.clone()];
    store.commit(lost).await.expect("a recovery");
    world.clock.jump_to(Timestamp::from_micros(world.clock.now().as_micros() - 3_600_000_000));
    store.commit(taking(&world, a, &[key])).await.expect("an hour is longer than any grace");
}
