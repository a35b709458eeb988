//! Asks leave `pending` once (S10).

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{AskId, SessionId};
use portcullis_event::AskState;
use portcullis_event::facts::{AskClosed, Closing, Reply, StatusTerminated};
use portcullis_store::{AskFilter, Commit, SessionKey, Store, StoreError};

use super::{Make, head, setup, whole};
use crate::World;

async fn park(world: &World, store: &dyn Store) -> (SessionKey, AskId) {
    let key = world.session(store).await.expect("a session");
    let lease = world.claim(store, key, 1).await.expect("a lease");
    let parked = world.parked();
    store.commit(world.work(key, &lease, parked.events)).await.expect("a park");
    store.release(key, lease.fence, Some(u64::MAX)).await.expect("a release");
    (key, parked.ask)
}

pub async fn s10_two_answers_one_wins(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, ask) = park(&world, store).await;
    let pending = AskFilter { session: Some(key.session), pending: true };
    let waiting = store.asks(key.tenant, pending).await.expect("asks");
    assert_eq!(waiting.len(), 1);
    assert!(waiting[0].tool_use_id.is_some(), "clients answer to the managed event");
    let root = waiting[0].root.expect("and to its copy at the root");
    assert!(Some(root.tool_use_id) != waiting[0].tool_use_id && root.session_id == SessionId::from_u128(9));
    assert_eq!(head(store, key).await.blocked_n, 1);

    store.commit(world.client(key, world.replied(ask, Reply::AllowOnce))).await.expect("the first answer");
    let second = store.commit(world.client(key, world.replied(ask, Reply::Deny))).await;
    assert_eq!(second, Err(StoreError::AskSettled { ask, state: AskState::Answered }));

    let row = store.ask(key.tenant, ask).await.expect("an ask").expect("it exists");
    assert_eq!((row.state, row.reply), (AskState::Answered, Some(Reply::AllowOnce)));
    let last = whole(store, key).await.len() as u64;
    assert_eq!((row.approver.as_deref(), row.answered_seq, row.asked_seq), (Some("user:test"), Some(last), last - 1));
    assert_eq!(store.asks(key.tenant, pending).await, Ok(Vec::new()));
    assert_eq!(head(store, key).await.blocked_n, 0);

    let both = vec![world.replied(ask, Reply::Deny), world.replied(ask, Reply::Deny)];
    assert!(store.commit(Commit::client(key, world.append(), both)).await.is_err());
}

pub async fn s10_racing_answers_have_one_winner(make: Make) {
    let (world, backend) = setup(make);
    let (world, store) = (Arc::new(world), backend.store.clone());
    for _ in 0..5 {
        let (key, ask) = park(&world, &*store).await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (world, store) = (world.clone(), store.clone());
            tasks.spawn(async move { store.commit(world.client(key, world.replied(ask, Reply::AllowOnce))).await });
        }
        let mut won = 0;
        while let Some(answer) = tasks.join_next().await {
            match answer.expect("no task panics") {
                Ok(_) => won += 1,
                Err(error) => assert_eq!(error, StoreError::AskSettled { ask, state: AskState::Answered }),
            }
        }
        assert_eq!(won, 1);
    }
}

pub async fn s10_an_expired_ask_takes_no_answer(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, ask) = park(&world, store).await;
    world.clock.advance(Duration::from_secs(3_600));
    let late = store.commit(world.client(key, world.replied(ask, Reply::AllowOnce))).await;
    assert_eq!(late, Err(StoreError::AskExpired(ask)));
    assert_eq!(store.ask(key.tenant, ask).await.expect("an ask").map(|a| a.state), Some(AskState::Pending));

    let closed = world.draft(&AskClosed { ask_id: ask, state: Closing::Expired, by: "worker".to_owned() });
    let lease = world.claim(store, key, 2).await.expect("a lease");
    store.commit(world.work(key, &lease, vec![closed])).await.expect("the holder closes it");
    let late = store.commit(world.client(key, world.replied(ask, Reply::AllowOnce))).await;
    assert_eq!(late, Err(StoreError::AskSettled { ask, state: AskState::Expired }));
    assert_eq!(head(store, key).await.blocked_n, 0);
}

pub async fn s10_an_unknown_ask_takes_no_answer(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, _) = park(&world, store).await;
    let nobody = AskId::from_u128(99);
    let answer = store.commit(world.client(key, world.replied(nobody, Reply::AllowOnce))).await;
    assert_eq!(answer, Err(StoreError::NoAsk(nobody)));
}

/// Whoever closed it may die before the call is settled, and input may have come while it was pending (store §4).
pub async fn s11_an_ask_that_is_closed_unanswered_makes_its_session_due(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    for state in [Closing::Expired, Closing::Superseded, Closing::Voided] {
        let (key, ask) = park(&world, store).await;
        store.commit(world.input(key, "behind the ask")).await.expect("input");
        let due = head(store, key).await.next_due_at;
        assert_eq!(due, None, "while blocked only the end of the ask makes it due");
        let lease = world.claim(store, key, 2).await.expect("a lease");
        let closed = world.draft(&AskClosed { ask_id: ask, state, by: "test".to_owned() });
        store.commit(world.work(key, &lease, vec![closed])).await.expect("closed");
        let due = head(store, key).await.next_due_at;
        assert!(due.is_some(), "{state:?}: if its holder dies now, somebody comes");
    }
}

/// Refused in the append itself, not queued (agent-runtime 3.3).
pub async fn h18_a_terminated_session_takes_no_input(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (key, ask) = park(&world, store).await;
    let ended = StatusTerminated { previous_status: "idle".to_owned(), stop_reason: "terminated".to_owned() };
    store.commit(world.client(key, world.draft(&ended))).await.expect("terminated");
    let before = whole(store, key).await.len();
    for input in [world.queued("more"), world.replied(ask, Reply::AllowOnce)] {
        assert_eq!(store.commit(world.client(key, input)).await, Err(StoreError::Terminated(key.session)));
    }
    assert_eq!(whole(store, key).await.len(), before);
}

/// What a client decided by reading is written only if the log still ends where it read.
pub async fn a_decision_made_on_an_older_log_is_not_committed(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let seen = whole(store, key).await.len() as u64;
    let decided = || Commit { only_at: Some(seen), ..world.input(key, "decided") };
    store.commit(decided()).await.expect("nobody came between");
    let late = store.commit(decided()).await;
    assert_eq!(late, Err(StoreError::MovedOn { session: key.session, found: seen + 1 }));
    assert_eq!(whole(store, key).await.len() as u64, seen + 1);
}
