//! Phase 5, `Invocation → RawResult`: the one place where a tool's executor runs. A panic, a timeout and a cancel end here
//! as facts; a tool cannot forge any of them. A call that goes on in the background leaves this phase as [`DetachedCall`],
//! still running. Other code of a tool, such as its decoding, its plan of accesses and its projections, runs in the phase
//! that needs it and has no effects.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, CatchUnwind};
use portcullis_base::{SideEffect, limits};
use portcullis_contract::seam::{self, ContextParts, Executed, Host as _, Reports, StopSignal, ToolReport};
use portcullis_contract::{Background, Concurrency, Interrupt, StopCause, ToolContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::asks::midway::{Inquiry, InquirySender, Midway, MidwayStop, inquiry_channel};
use crate::output::spool::{CapturedStream, Streams};
use crate::phases::schedule::Invocation;
use crate::phases::step::Halt;
use crate::sessions::session::SessionShared;
use crate::tasks::progress::{LatestProgress, Words, write_checkpoints};
use crate::tasks::tool_host::{BackgroundRequest, InvocationHost, WayOut};

/// How an execution ended.
pub(crate) enum Outcome {
    Done(Executed),
    /// A defect; its own words are for operators only.
    Panicked(String),
    TimedOut,
    Cancelled,
}

/// What happened, before the gate has looked at it.
pub(crate) struct RawResult {
    pub(crate) invocation: Invocation,
    pub(crate) outcome: Outcome,
    pub(crate) reported: ToolReport,
    pub(crate) streams: Vec<CapturedStream>,
    /// Without the time it was held.
    pub(crate) duration: Duration,
    /// Why the gate stopped it midway, if it did.
    pub(crate) stop: Option<MidwayStop>,
}

/// How the execute phase ended.
pub(crate) enum ExecutionEnd {
    Ended(Box<RawResult>),
    Away(Box<DetachedCall>),
}

/// A call that goes on in the background.
pub(crate) struct DetachedCall {
    pub(crate) invocation: Invocation,
    pub(crate) running: RunningTool,
    /// It ended before the gate could see to it.
    pub(crate) ended: Option<Outcome>,
    pub(crate) asked: BackgroundRequest,
}

/// # Errors
/// If the log would not take a decision of the gate, and does not say either what became of it.
pub(crate) async fn execute(session: &Arc<SessionShared>, invocation: Invocation) -> Result<ExecutionEnd, Halt> {
    let semantics = seam::semantics(&invocation.tool);
    let (inquiries, midway) = inquiry_channel(semantics.dynamic_access);
    let host = Arc::new(host(session, &invocation, inquiries));
    let stop = StopSignal::default();
    let (context, reports) = context(session, &invocation, &host, &stop);
    // A tool that is let finish heeds no interrupt, but a lost lease it must: another process may
    // already be at work on the same thing.
    let interrupt = semantics.interrupt;
    let interrupted = if interrupt == Interrupt::Finish { &session.lost } else { &invocation.cancel }.clone();
    // Before the clock starts: time in the queue never counts (L46). Who is stopped there waits no longer.
    let _beside = match semantics.concurrency {
        Concurrency::Safe => tokio::select! {
            biased;
            () = interrupted.cancelled() => None,
            room = session.gate.safe_call_permits.acquire() => room.ok(),
        },
        Concurrency::Exclusive | Concurrency::Keyed => None,
    };
    let mut running = RunningTool::new(session, (host, midway), reports, stop);
    running.grace = grace(&invocation);
    if interrupted.is_cancelled() {
        // Stopped while its start was being written: it never runs.
        return Ok(running.end(invocation, Outcome::Cancelled).await);
    }
    if let Err(panicked) = running.begin(session, &invocation, context) {
        return Ok(running.end(invocation, panicked).await);
    }
    let outcome = loop {
        break match running.watch(invocation.timeout, &interrupted).await {
            ExecutionEvent::AtGate(inquiry) => {
                // Apart: few calls come here, and all would carry what it needs.
                if Box::pin(running.at_gate(&invocation, inquiry)).await {
                    continue;
                }
                let ended = running.stopped(StopCause::Shutdown).await;
                // What became of it must be known before the end is written: an ask may be open.
                session.catch_up().await?;
                ended
            }
            ExecutionEvent::Ended(outcome, None) => outcome,
            ExecutionEvent::Ended(outcome, Some(asked)) => return Ok(away(invocation, running, Some(outcome), asked)),
            ExecutionEvent::Asked(asked) => return Ok(away(invocation, running, None, asked)),
            ExecutionEvent::TimedOut => running.stopped(StopCause::Deadline).await,
            ExecutionEvent::Interrupted => {
                if interrupt == Interrupt::Detach
                    && !session.lost.is_cancelled()
                    && let Some(asked) = running.detach()
                {
                    return Ok(away(invocation, running, None, asked));
                }
                running.stopped(running.interrupt()).await
            }
        };
    };
    Ok(running.end(invocation, outcome).await)
}

/// How long a call may take to end once it was told to. The processes of a command are killed after the grace, and then
/// their end is told (tool-contract §14).
fn grace(invocation: &Invocation) -> Duration {
    match seam::semantics(&invocation.tool).sandbox {
        Some(_) => limits::KILL_GRACE + limits::KILLED_GRACE,
        None => limits::KILL_GRACE,
    }
}

fn away(
    invocation: Invocation,
    running: RunningTool,
    ended: Option<Outcome>,
    asked: BackgroundRequest,
) -> ExecutionEnd {
    ExecutionEnd::Away(Box::new(DetachedCall { invocation, running, ended, asked }))
}

fn host(session: &SessionShared, invocation: &Invocation, inquiries: InquirySender) -> InvocationHost {
    let gate = &session.gate;
    let semantics = seam::semantics(&invocation.tool);
    let artifacts = Arc::clone(&gate.artifacts);
    let words = Arc::new(Words {
        feed: gate.progress.clone(),
        session_id: session.key.session,
        intent_id: invocation.authorized.validated.visible.intent.id,
        invocation_id: invocation.id,
        redactor: Arc::clone(&session.scope.output_redactor),
        // The start of an inert call is not in the log while it runs, so nothing of it can follow there.
        newest: (semantics.stream_progress && !semantics.inert()).then(Arc::<LatestProgress>::default),
    });
    let tenant = session.key.tenant;
    InvocationHost {
        streams: Arc::new(Streams::new(artifacts, tenant, Arc::clone(&words), semantics.backgroundable)),
        words,
        way_out: WayOut::new(semantics.backgroundable, session.tasks.clone(), session.lost.clone()),
        inquiries,
        ids: Arc::clone(&gate.ids),
        clock: Arc::clone(&gate.clock),
    }
}

fn context(
    session: &SessionShared,
    invocation: &Invocation,
    host: &Arc<InvocationHost>,
    stop: &StopSignal,
) -> (ToolContext, Reports) {
    let variables = seam::semantics(&invocation.tool).variables.iter();
    let variables = variables.filter_map(|v| Some((v.name.clone(), session.scope.variables.get(&v.name)?.clone())));
    seam::context(ContextParts {
        caller: Arc::clone(&invocation.authorized.validated.caller),
        invocation_id: invocation.id,
        attempt: invocation.attempt,
        timeout: invocation.timeout,
        stop: stop.clone(),
        variables: Arc::new(variables.collect()),
        host: Arc::clone(host) as Arc<dyn seam::Host>,
    })
}

/// What happened while the gate watched running code.
enum ExecutionEvent {
    /// It ended; it may have asked for the background first.
    Ended(Outcome, Option<BackgroundRequest>),
    Asked(BackgroundRequest),
    /// It wants to know whether it may do something.
    AtGate(Inquiry),
    TimedOut,
    Interrupted,
}

/// The future of a tool's code. A panic in it is caught.
type ToolFuture = CatchUnwind<AssertUnwindSafe<BoxFuture<'static, Executed>>>;

/// A tool's code at work, wherever it is moved.
pub(crate) struct RunningTool {
    /// None before it has begun.
    work: Option<ToolFuture>,
    checkpoints: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    no_more_checkpoints: CancellationToken,
    /// Tells the tool to stop.
    stop: StopSignal,
    /// How long it may take to end once it was told.
    grace: Duration,
    host: Arc<InvocationHost>,
    reports: Reports,
    session: Arc<SessionShared>,
    midway: Midway,
    /// By tokio's clock, which timeouts go by, and by the session's.
    begun: (Instant, Duration),
    /// How long it stood still at the gate, by both.
    held: (Duration, Duration),
}

impl RunningTool {
    fn new(
        session: &Arc<SessionShared>,
        (host, midway): (Arc<InvocationHost>, Midway),
        reports: Reports,
        stop: StopSignal,
    ) -> Self {
        Self {
            work: None,
            checkpoints: None,
            no_more_checkpoints: CancellationToken::new(),
            stop,
            grace: limits::KILL_GRACE,
            host,
            reports,
            midway,
            begun: (Instant::now(), session.gate.clock.monotonic()),
            held: (Duration::ZERO, Duration::ZERO),
            session: Arc::clone(session),
        }
    }

    fn begin(
        &mut self,
        session: &Arc<SessionShared>,
        invocation: &Invocation,
        context: ToolContext,
    ) -> Result<(), Outcome> {
        let validated = &invocation.authorized.validated;
        // The call itself may panic before it gives a future.
        let work = catch_unwind(AssertUnwindSafe(|| {
            seam::execute(&invocation.tool, &validated.input, validated.resolved.clone(), context)
        }));
        let work = work.map_err(|panic| Outcome::Panicked(words(&*panic)))?;
        self.work = Some(AssertUnwindSafe(work).catch_unwind());
        if let Some(newest) = &self.host.words.newest {
            let (newest, done) = (Arc::clone(newest), self.no_more_checkpoints.clone());
            let turn = validated.visible.intent.turn_id;
            let writing = write_checkpoints(Arc::clone(session), newest, turn, invocation.id, done);
            self.checkpoints = Some(Box::pin(writing));
        }
        Ok(())
    }

    /// Has the gate answer. Nothing else of the call moves meanwhile, and neither does its clock (L46). False if what
    /// was decided could not be written down: then nothing more of the call may happen.
    async fn at_gate(&mut self, invocation: &Invocation, inquiry: Inquiry) -> bool {
        let clock = Arc::clone(&self.session.gate.clock);
        let since = (Instant::now(), clock.monotonic());
        self.midway.answer(&self.session, invocation, inquiry).await;
        self.held.0 += since.0.elapsed();
        self.held.1 += clock.monotonic().saturating_sub(since.1);
        self.midway.is_recorded()
    }

    /// Runs until something happens, at most `timeout` from its beginning, not counting what it was held.
    async fn watch(&mut self, timeout: Duration, interrupted: &CancellationToken) -> ExecutionEvent {
        let deadline = self.begun.0 + timeout + self.held.0;
        let Self { work, checkpoints, host, midway, .. } = self;
        let work = async {
            match work {
                Some(work) => work.await,
                None => std::future::pending().await,
            }
        };
        let checkpoints = async {
            match checkpoints {
                Some(writing) => writing.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The interrupt first: a call that ends in the same moment has been cancelled all the same (L24).
            biased;
            () = interrupted.cancelled() => ExecutionEvent::Interrupted,
            asked = host.way_out.asked() => ExecutionEvent::Asked(asked),
            inquiry = midway.next() => ExecutionEvent::AtGate(inquiry),
            done = work => ExecutionEvent::Ended(finished(done), host.way_out.take()),
            () = tokio::time::sleep_until(deadline) => ExecutionEvent::TimedOut,
            // Never: it ends only when it is told to.
            () = checkpoints => ExecutionEvent::Interrupted,
            // Never.
            () = host.streams.tell_live() => ExecutionEvent::Interrupted,
        }
    }

    /// A task runs to its end, at most `timeout` from the beginning of its call.
    pub(crate) async fn run_out(&mut self, timeout: Duration, cancel: &CancellationToken) -> Outcome {
        loop {
            return match self.watch(timeout, cancel).await {
                // Its call is over, and a tool that may go on here is not declared to ask: `build` refuses both.
                ExecutionEvent::AtGate(_) => continue,
                ExecutionEvent::Ended(outcome, _) => outcome,
                ExecutionEvent::TimedOut => self.stopped(StopCause::Deadline).await,
                // It asks once, and that was seen to.
                ExecutionEvent::Asked(_) | ExecutionEvent::Interrupted => self.stopped(self.interrupt()).await,
            };
        }
    }

    /// Asked to stop: it has a short grace to do so by itself. Whatever it returns now is not a success (L24).
    async fn stopped(&mut self, cause: StopCause) -> Outcome {
        self.stop.fire(cause);
        let ended = match cause {
            StopCause::Deadline => Outcome::TimedOut,
            StopCause::Interrupt | StopCause::Shutdown => Outcome::Cancelled,
        };
        let Some(work) = &mut self.work else { return ended };
        match tokio::time::timeout(self.grace, work).await {
            Ok(Err(panic)) => Outcome::Panicked(words(&*panic)),
            Ok(Ok(_)) | Err(_) => ended,
        }
    }

    /// Why an interrupt came: a lost lease fires the same tokens as a person does.
    fn interrupt(&self) -> StopCause {
        if self.session.lost.is_cancelled() { StopCause::Shutdown } else { StopCause::Interrupt }
    }

    /// Sends it into the background, if it may go there.
    fn detach(&self) -> Option<BackgroundRequest> {
        self.host.background(Background::default()).ok()?;
        self.host.way_out.take()
    }

    pub(crate) fn done_so_far(&self) -> Vec<SideEffect> {
        self.reports.done_so_far()
    }

    pub(crate) fn so_long(&self) -> Duration {
        self.session.gate.clock.monotonic().saturating_sub(self.begun.1).saturating_sub(self.held.1)
    }

    async fn end(self, invocation: Invocation, outcome: Outcome) -> ExecutionEnd {
        ExecutionEnd::Ended(Box::new(self.result(invocation, outcome).await))
    }

    /// What is left of it: its streams are collected, its code is gone.
    pub(crate) async fn result(mut self, invocation: Invocation, outcome: Outcome) -> RawResult {
        let duration = self.so_long();
        drop(self.work.take());
        self.host.way_out.close();
        self.no_more_checkpoints.cancel();
        if let Some(writing) = self.checkpoints.take() {
            writing.await;
        }
        let streams = collect(Arc::clone(&self.host.streams)).await;
        let stop = self.midway.into_stop();
        RawResult { outcome, reported: self.reports.take(), streams, duration, invocation, stop }
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

async fn collect(streams: Arc<Streams>) -> Vec<CapturedStream> {
    if streams.is_empty() {
        return Vec::new();
    }
    // Large streams are synced to disk here.
    tokio::task::spawn_blocking(move || streams.collect()).await.unwrap_or_default()
}
