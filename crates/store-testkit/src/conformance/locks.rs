//! Scheduler keys: taken and given back by appends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use portcullis_base::limits::EFFECT_GRACE;
use portcullis_base::{Clock as _, LocationId, Timestamp};
use portcullis_store::{Commit, Committed, LockKey, SessionKey, StoreError};

use tokio::task::JoinSet;

use super::{Backend, Make, head, setup};
use crate::World;

fn lock(location: u128, key: &str) -> LockKey {
    LockKey { location: LocationId::from_u128(location), key: key.to_owned() }
}

/// How a commit is refused while `session` has `key`.
fn held(key: &LockKey, session: SessionKey, until: Option<Timestamp>) -> Result<Committed, StoreError> {
    Err(StoreError::LockHeld { key: key.key.clone(), session: session.session, until })
}

/// Two sessions that want the same keys.
struct Rivals {
    world: World,
    backend: Backend,
    a: SessionKey,
    b: SessionKey,
}

impl Rivals {
    async fn new(make: Make) -> Self {
        let (world, backend) = setup(make);
        let a = world.session(&*backend.store).await.expect("a session");
        let b = world.session(&*backend.store).await.expect("a session");
        Self { world, backend, a, b }
    }

    async fn commit(&self, by: SessionKey, change: impl FnOnce(&mut Commit)) -> Result<Committed, StoreError> {
        let mut commit = self.world.input(by, "locks");
        change(&mut commit);
        self.backend.store.commit(commit).await
    }

    async fn take(&self, by: SessionKey, locks: &[&LockKey]) -> Result<Committed, StoreError> {
        self.commit(by, |commit| commit.take = locks.iter().copied().cloned().collect()).await
    }

    async fn free(&self, by: SessionKey, lock: &LockKey) -> Result<Committed, StoreError> {
        self.commit(by, |commit| commit.free = vec![lock.clone()]).await
    }

    /// Marks a key as lost: what its holder had begun may still take effect.
    async fn lose(&self, by: SessionKey, lock: &LockKey) -> Result<Committed, StoreError> {
        self.commit(by, |commit| commit.linger = vec![lock.clone()]).await
    }
}

pub async fn a_lock_excludes_its_ancestors_and_descendants(make: Make) {
    let rivals = Rivals::new(make).await;
    let (a, b) = (rivals.a, rivals.b);
    let key = lock(1, "fs:/repo/src");
    rivals.take(a, &[&key]).await.expect("a free key");
    for wanted in ["fs:/repo/src", "fs:/repo", "fs:/repo/src/a.rs", "*"] {
        let refused = rivals.take(b, &[&lock(1, "mcp:free"), &lock(1, wanted)]).await;
        assert_eq!(refused, held(&key, a, None), "{wanted}");
    }
    assert_eq!(head(&*rivals.backend.store, b).await.last_seq, 1, "nothing was written");
    rivals.take(b, &[&lock(1, "fs:/repo/srcs"), &lock(2, "fs:/repo")]).await.expect("no conflict");
    rivals.take(a, &[&lock(1, "fs:/repo/src/x")]).await.expect("its own keys do not exclude it");
}

/// Sessions that race for keys of one location, some of them of others as well, in any order.
pub async fn l42_racing_takers_of_a_folder_and_what_is_in_it_have_one_winner(make: Make) {
    const RIVALS: u32 = 8;
    const ROUNDS: u32 = 12;
    let (world, backend) = setup(make);
    let (world, store) = (Arc::new(world), Arc::clone(&backend.store));
    let inside = Arc::new(AtomicU32::new(0));
    let mut rivals = JoinSet::new();
    for n in 0..RIVALS {
        let key = world.session(&*store).await.expect("a session");
        let (world, store, inside) = (Arc::clone(&world), Arc::clone(&store), Arc::clone(&inside));
        rivals.spawn(async move {
            let path = ["fs:/repo", "fs:/repo/src", "*", "fs:/repo/src/a.rs"][n as usize % 4];
            let mut keys = vec![lock(1, path), lock(2, path)];
            if n % 2 == 0 {
                keys.reverse();
            }
            let mut won = 0;
            for _ in 0..ROUNDS {
                let mut take = world.input(key, "take");
                take.take.clone_from(&keys);
                match store.commit(take).await {
                    Ok(_) => {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "another one has conflicting keys");
                        won += 1;
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        let mut free = world.input(key, "free");
                        free.free.clone_from(&keys);
                        store.commit(free).await.expect("given back");
                    }
                    Err(StoreError::LockHeld { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
            won
        });
    }
    let mut won = 0;
    while let Some(rival) = rivals.join_next().await {
        won += rival.expect("a rival ends");
    }
    assert!(won > 0, "somebody wins");
    let left = world.session(&*store).await.expect("a session");
    let mut all = world.input(left, "all");
    all.take = vec![lock(2, "*"), lock(1, "*")];
    store.commit(all).await.expect("nothing stays behind");
}

pub async fn a_lock_is_freed_only_by_its_session(make: Make) {
    let rivals = Rivals::new(make).await;
    let (a, b) = (rivals.a, rivals.b);
    let key = lock(1, "fs:/a");
    rivals.take(a, &[&key]).await.expect("a free key");
    rivals.free(b, &key).await.expect("freeing what is not held changes nothing");
    assert!(rivals.take(b, &[&key]).await.is_err(), "still held");
    rivals.free(a, &key).await.expect("it gives its key back");
    rivals.take(b, &[&key]).await.expect("the key is free");
}

pub async fn f05_a_lost_key_excludes_everybody_until_its_grace_is_over(make: Make) {
    let rivals = Rivals::new(make).await;
    let (a, b, clock) = (rivals.a, rivals.b, &rivals.world.clock);
    let (key, below) = (lock(1, "fs:/a"), lock(1, "fs:/a/b"));
    rivals.take(a, &[&key]).await.expect("a free key");
    rivals.lose(b, &key).await.expect("what another holds is not its to mark");
    assert_eq!(rivals.take(b, &[&below]).await, held(&key, a, None));

    let until = Some(clock.now().plus(EFFECT_GRACE));
    rivals.lose(a, &key).await.expect("a recovery");
    clock.advance(EFFECT_GRACE - Duration::from_micros(1));
    assert_eq!(rivals.take(b, &[&below]).await, held(&key, a, until));
    assert_eq!(rivals.take(a, &[&key]).await, held(&key, a, until), "its own session waits too");
    clock.advance(Duration::from_micros(1));
    rivals.take(b, &[&key]).await.expect("free by itself");
    assert_eq!(rivals.take(a, &[&key]).await, held(&key, b, None), "held anew");
}

pub async fn f05_no_lost_key_stays_when_the_clock_is_set_back(make: Make) {
    let rivals = Rivals::new(make).await;
    let (a, clock, key) = (rivals.a, &rivals.world.clock, lock(1, "fs:/a"));
    rivals.take(a, &[&key]).await.expect("a free key");
    rivals.lose(a, &key).await.expect("a recovery");
    clock.jump_to(Timestamp::from_micros(clock.now().as_micros() - 3_600_000_000));
    rivals.take(a, &[&key]).await.expect("an hour is longer than any grace");
}
