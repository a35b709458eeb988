//! Phase 5, `Invocation → RawResult`: the one place where user code runs. A panic, a timeout and a
//! cancel end here as facts; a tool cannot forge any of them.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use portcullis_base::limits;
use portcullis_contract::seam::{self, ContextParts, Executed, Reported};
use portcullis_contract::{Concurrency, Interrupt};
use tokio_util::sync::CancellationToken;

use crate::schedule::Invocation;
use crate::session::SessionShared;
use crate::spool::{Captured, InvocationHost};

/// How an execution ended.
pub(crate) enum Outcome {
    Done(Executed),
    /// A defect; its own words are for operators only.
    Panicked(String),
    TimedOut,
    Cancelled,
}

/// What happened, before anybody has looked at it.
pub(crate) struct RawResult {
    pub(crate) invocation: Invocation,
    pub(crate) outcome: Outcome,
    pub(crate) reported: Reported,
    pub(crate) streams: Vec<Captured>,
    pub(crate) duration: Duration,
}

pub(crate) async fn execute(session: &SessionShared, invocation: Invocation) -> RawResult {
    let gate = &session.gate;
    let host = Arc::new(InvocationHost::new(
        Arc::clone(&gate.artifacts),
        session.key.tenant,
        Arc::clone(&gate.redactor),
        Arc::clone(&gate.ids),
        Arc::clone(&gate.clock),
    ));
    let stop = CancellationToken::new();
    let semantics = seam::semantics(&invocation.tool);
    let variables =
        semantics.variables.iter().filter_map(|v| Some((v.name.clone(), gate.variables.get(&v.name)?.clone())));
    let (context, reports) = seam::context(ContextParts {
        caller: Arc::clone(&invocation.authorized.validated.caller),
        invocation_id: invocation.id,
        attempt: invocation.attempt,
        timeout: invocation.timeout,
        cancel: stop.clone(),
        variables: Arc::new(variables.collect()),
        host: Arc::clone(&host) as Arc<dyn seam::Host>,
    });
    let interrupt = semantics.interrupt;
    // Before the clock starts: time in the queue never counts (L46).
    let _beside = match semantics.concurrency {
        Concurrency::Safe => gate.beside.acquire().await.ok(),
        Concurrency::Exclusive | Concurrency::Keyed => None,
    };
    let validated = &invocation.authorized.validated;
    let begun = gate.clock.monotonic();
    let running = AssertUnwindSafe(async {
        // The call itself may panic before it gives a future.
        seam::execute(&invocation.tool, &validated.input, validated.resolved.clone(), context).await
    })
    .catch_unwind();
    // A tool that is let finish heeds no interrupt, but a lost lease it must: another process may
    // already be at work on the same thing.
    let stopped_by = if interrupt == Interrupt::Finish { &session.lost } else { &invocation.cancel };
    let outcome = watch(running, invocation.timeout, stopped_by, &stop).await;
    let duration = gate.clock.monotonic().saturating_sub(begun);
    let streams = collect(host).await;
    RawResult { outcome, reported: reports.take(), streams, duration, invocation }
}

/// Runs to the end, the deadline or the interrupt, whichever comes first.
async fn watch(
    running: impl Future<Output = Result<Executed, Box<dyn Any + Send>>>,
    timeout: Duration,
    interrupted: &CancellationToken,
    stop: &CancellationToken,
) -> Outcome {
    let mut running = std::pin::pin!(running);
    if interrupted.is_cancelled() {
        // Stopped while its start was being written: it never runs.
        return Outcome::Cancelled;
    }
    let ended = tokio::select! {
        // The interrupt first: a call that ends in the same moment has been cancelled all the same (L24).
        biased;
        () = interrupted.cancelled() => Outcome::Cancelled,
        done = &mut running => return finished(done),
        () = tokio::time::sleep(timeout) => Outcome::TimedOut,
    };
    // Asked to stop: it has a short grace to do so by itself. Whatever it returns now is not a success (L24).
    stop.cancel();
    match tokio::time::timeout(limits::KILL_GRACE, running).await {
        Ok(Err(panic)) => Outcome::Panicked(words(&*panic)),
        Ok(Ok(_)) | Err(_) => ended,
    }
}

fn finished(done: Result<Executed, Box<dyn Any + Send>>) -> Outcome {
    match done {
        Ok(executed) => Outcome::Done(executed),
        Err(panic) => Outcome::Panicked(words(&*panic)),
    }
}

/// What a panic said, for the audit log.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

async fn collect(host: Arc<InvocationHost>) -> Vec<Captured> {
    if !host.has_streams() {
        return Vec::new();
    }
    // Large streams are synced to disk here.
    tokio::task::spawn_blocking(move || host.collect()).await.unwrap_or_default()
}
