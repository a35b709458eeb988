//! A call that is told to stop is told why, whatever its own clock says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{World, acting, acts, call_in, follow_tokio, fresh_message, proposal, turn_of};
use portcullis_contract::{Background, Cancelled, Interrupt, Semantics, StopCause, Timeout, Tool};
use portcullis_pipeline::Append;
use portcullis_store::Liveness;
use tokio::sync::Notify;

const CALL: Duration = Duration::from_secs(1);
const TASK: Duration = Duration::from_secs(30);

/// What a call was told.
#[derive(Clone, Default)]
struct Told {
    begun: Arc<Notify>,
    cause: Arc<Mutex<Option<StopCause>>>,
}

impl Told {
    fn cause(&self) -> Option<StopCause> {
        *self.cause.lock().expect("not poisoned")
    }
}

/// A tool that begins its work late, waits to be stopped, and keeps why. `task`: it goes on in the background.
fn stopped(told: &Told, late: Duration, task: bool) -> Tool {
    let semantics = Semantics {
        backgroundable: true,
        interrupt: Interrupt::Cancel,
        timeout: Timeout { default_ms: CALL.as_millis() as u64, max_ms: TASK.as_millis() as u64 },
        ..acts()
    };
    let told = told.clone();
    let run = move |_, context: portcullis_contract::ToolContext| {
        let told = told.clone();
        async move {
            tokio::time::sleep(late).await;
            if task {
                context.background(Background::default())?;
            }
            told.begun.notify_one();
            let Cancelled { cause } = context.cancelled().await;
            assert_eq!(context.timed_out(), cause == StopCause::Deadline);
            *told.cause.lock().expect("not poisoned") = Some(cause);
            Ok("stopped".to_owned())
        }
    };
    acting(semantics, run).build().expect("a sound tool")
}

#[tokio::test(start_paused = true)]
async fn a_call_at_its_deadline_is_told_so_however_late_its_work_began() {
    for late in [0, 400, 999] {
        let told = Told::default();
        let world = World::new().await;
        let process = world.process([("t", stopped(&told, Duration::from_millis(late), false))]);
        process.call_raw("t", r#"{"text":"x"}"#).await;
        assert_eq!(told.cause(), Some(StopCause::Deadline), "{late} ms late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_at_its_deadline_is_told_so() {
    let told = Told::default();
    let world = World::new().await;
    let process = world.process([("t", stopped(&told, CALL / 2, true))]);
    let _clock = follow_tokio(&world.clock);
    let session = process.open().await;
    call_in(&session, "t", r#"{"text":"x"}"#).await.expect("no halt");
    session.tasks_ended().await;
    assert_eq!(told.cause(), Some(StopCause::Deadline));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_call_or_task_is_told_so() {
    let told = Told::default();
    let world = World::new().await;
    let process = world.process([("t", stopped(&told, Duration::ZERO, false))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let admission =
        session.admit(Append::new(), &turn, proposal("c", fresh_message(), "t", r#"{"text":"x"}"#)).spawned();
    told.begun.notified().await;
    admission.canceller().cancel();
    let (facts, _) = admission.settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    assert_eq!(told.cause(), Some(StopCause::Interrupt));

    let told = Told::default();
    let world = World::new().await;
    let process = world.process([("t", stopped(&told, Duration::ZERO, true))]);
    let session = process.open().await;
    call_in(&session, "t", r#"{"text":"x"}"#).await.expect("no halt");
    session.cancel_tasks().await;
    assert_eq!(told.cause(), Some(StopCause::Interrupt));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_session_another_process_took_is_told_so() {
    let told = Told::default();
    let world = World::new().await;
    let old = world.process([("t", stopped(&told, Duration::ZERO, true))]);
    let zombie = old.open().await;
    call_in(&zombie, "t", r#"{"text":"x"}"#).await.expect("no halt");
    world.liveness.set(old.owner.worker, Liveness::Dead);
    let new = world.process([("t", stopped(&Told::default(), Duration::ZERO, true))]);
    let _session = new.open().await;
    zombie.tasks_ended().await;
    assert_eq!(told.cause(), Some(StopCause::Shutdown));
}
