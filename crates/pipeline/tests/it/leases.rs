//! S9: a lease that its holder is done with is given back, also when the store does not take it at first.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{World, call_in, follow_tokio, look, observed};
use portcullis_pipeline::Opened;
use portcullis_store::Store;
use portcullis_store_testkit::FaultyStore;

#[tokio::test(start_paused = true)]
async fn s09_a_lease_that_was_not_taken_back_is_offered_again_once_there_is_room() {
    let world = World::new().await;
    let _clock = follow_tokio(&world.clock);
    let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), None));
    let process = world.process_over(Arc::clone(&store) as Arc<dyn Store>, [("look", look(&world.effects))]);
    let open = || process.gate.open(world.session, process.owner.clone());
    let Ok(Opened::Ready(session)) = open().await else { panic!("it is free") };
    let (seen, _) = call_in(&session, "look", r#"{"text":"a"}"#).await.expect("it runs");
    assert!(observed(&seen).ok);
    // Neither the lease nor the ledger's entries find room: whichever failed first, the other must not be forgotten.
    store.close(true);
    session.release().await.expect_err("no room");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(matches!(open().await, Err(_) | Ok(Opened::Held(_))), "nothing can be written yet");
    store.close(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(open().await, Ok(Opened::Ready(_))), "long before the lease ran out by itself");
}

#[tokio::test]
async fn a_session_that_was_held_before_opens_as_its_log_folds_whoever_wrote_meanwhile() {
    let world = World::new().await;
    let processes = [(); 2].map(|()| world.process([("look", look(&world.effects))]));
    for _ in 0..3 {
        for process in &processes {
            // Before it writes anything itself: the other one has written since it last held it.
            let session = process.open().await;
            let folded = portcullis_event::State::fold(&world.events().await);
            assert_eq!(session.with_state(portcullis_event::State::digest), folded.digest());
            session.release().await.expect("released");
            process.call("look", "a").await;
            // Whoever renewed its lease lets go of it, so that it is remembered.
            tokio::task::yield_now().await;
        }
    }
}
