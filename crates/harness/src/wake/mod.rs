//! One wake, top to bottom (agent-runtime 5.4): what is there to do, what the model is asked, what its calls came to, how
//! it ends.
//!
//! Everything a wake takes up is consumed in its first append, together with its span. Until then a crash delivers it
//! again; from then on the open span is itself the work, and the next holder goes on with it.

mod begin;
mod bounds;
mod calls;
mod failure;
mod finish;
mod request;
mod room;
mod spans;
mod unfinished;
mod voice;

pub(crate) use failure::backoff;

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Clock, Entropy, EventId, IdGen, Timestamp, WakeId};
use portcullis_event::facts::{FinalChecked, StopReason};
use portcullis_event::fold::Shell;
use portcullis_model::{Model, ModelError, ToolSpec};
use portcullis_pipeline::{Append, Halt, Offer, Session, Turn};
use portcullis_store::Topic;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::Settings;
use crate::context::{Context, FoldedConversation, PromptSource, Recent, system_prompt};
use crate::live_event::{Live, LiveEvent, Watcher};

/// How long hints are gathered before the log is looked at while a background task goes on: the task gives some itself.
const HINTS_GATHER: Duration = Duration::from_millis(20);
/// How soon something is heard of which no hint came (store §7).
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How soon at the earliest it is looked at again because of a time: one that has come may wait for an answer.
const SOON: Duration = Duration::from_millis(200);

/// Who runs wakes: a model, settings, and someone who may watch.
pub struct Harness {
    pub model: Arc<dyn Model>,
    pub settings: Settings,
    pub watcher: Arc<dyn Watcher>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGen>,
    pub entropy: Arc<dyn Entropy>,
    /// What stands between commands and the machine, in one line for the prompt.
    pub sandbox: String,
    /// What others know that a wake should be told.
    pub extras: Arc<dyn Extras>,
    /// Conversations that this process knows already.
    pub known: KnownTalks,
}

/// Conversations that a harness has folded and not forgotten.
#[derive(Default)]
pub struct KnownTalks(pub(crate) Recent);

/// What the managed tools bring to a wake: grades of outcomes, changed setups, what was recalled. Everything it says is
/// a fact of the runtime: a note never quotes what a tool or a page said (L67).
pub trait Extras: Send + Sync {
    /// Notes for the first request of a wake. Each begins with its tag in brackets, which says where it stands among
    /// those of agent-runtime 6.7 ([`crate::context::TAGS`]).
    fn notes(&self, session: &Session) -> Vec<String>;

    /// The look that answers a person's words (agent-runtime 6.8). Whether its tool is offered is not asked here.
    fn first_look(&self, _said: &str, _shell: &Shell) -> Option<SuggestedCall> {
        None
    }

    /// The tool that describes the context, named where the context presses.
    fn context_tool(&self) -> Option<&'static str> {
        None
    }
}

/// One call that answers a person's words: suggested to the model, never made by the runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedCall {
    pub intent: &'static str,
    pub tool: &'static str,
    pub input: Value,
}

/// Nothing more.
pub struct NoExtras;

impl Extras for NoExtras {
    fn notes(&self, _session: &Session) -> Vec<String> {
        Vec::new()
    }
}

/// How a wake ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WakeEnd {
    pub wake_id: WakeId,
    pub stop: WakeStop,
    /// The model's last words of this wake, without the directive.
    pub text: String,
    pub checked: Option<FinalChecked>,
    pub processed: Vec<EventId>,
    /// The limit that ended unfinished work, where one did.
    pub limit: Option<Limit>,
}

/// What ends work that would go on. The stop reason is `budget_reached` for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Settings::max_requests_per_message`], which is this many.
    Requests(u32),
    /// The model repeated calls that the loop guard had refused.
    Loop,
}

/// Why a wake ended.
#[derive(Debug, Clone, PartialEq)]
pub enum WakeStop {
    /// Nothing is left to do.
    Idle(StopReason),
    /// A person must answer.
    RequiresAction(Vec<EventId>),
    /// A child session or the worker of its environment must finish first.
    Elsewhere,
    /// It goes on by itself at this time.
    Rescheduled(Timestamp),
    /// The model could not be asked; it is tried again at this time.
    Retrying { error: ModelError, at: Timestamp },
    /// The model could not be asked, and nobody tries again before something new comes.
    GaveUp { error: ModelError },
    /// The watcher wanted it to stop. The wake is open and goes on with the next who comes.
    Broken,
}

/// What a wake came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Woken {
    /// Nothing was pending, nothing due: nothing was written.
    Idle,
    Executed(Box<WakeEnd>),
}

/// Whom a wake is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WokenFor {
    /// What is pending or due.
    Due,
    /// A person who wants it now.
    Operator,
}

/// A wake on its way.
pub(crate) struct Wake<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) session: &'a Session,
    pub(crate) wake_id: WakeId,
    pub(crate) context: Context,
    /// The log as it was when it began.
    pub(crate) folded: FoldedConversation,
    /// Facts that are not durable yet.
    pub(crate) facts: Append,
    /// The turn whose calls run now.
    pub(crate) turn: Option<Arc<Turn>>,
    /// Tools as the model is told of them, and the offer they were made from.
    pub(crate) tools: Option<(Arc<Offer>, Arc<[ToolSpec]>)>,
    /// Model requests made in this wake.
    pub(crate) turns: u32,
    /// The beginning of the newest of them.
    pub(crate) request: Option<EventId>,
    /// Model requests made for the same message, this wake included.
    pub(crate) requests: u32,
    /// Calls in a row that were refused.
    pub(crate) loops: bounds::RefusedCalls,
    /// Why the next request is the last one, or was.
    pub(crate) limit: Option<Limit>,
    /// A request was made in this wake by this process.
    pub(crate) asked_here: bool,
    /// It came to its bound, and the next wake goes on with the work.
    pub(crate) carried_on: bool,
    pub(crate) began: Duration,
    /// When the wake began, also if it is gone on with: what the model wants later is counted from it.
    pub(crate) began_at: Timestamp,
    pub(crate) processed: Vec<EventId>,
    /// Why it was begun: the reason of its queued wake, or the type of its first input.
    pub(crate) reason: String,
    /// What the next request adds in the user's position.
    pub(crate) added: Vec<crate::context::AddedPart>,
    pub(crate) cancel: &'a CancellationToken,
    /// What people said that no request has shown yet.
    pub(crate) said: std::collections::HashMap<EventId, Vec<portcullis_event::facts::Block>>,
    /// A person wants it to stop, and said nothing else.
    pub(crate) only_stop: bool,
    /// Why a person interrupted it, if they said.
    pub(crate) stop_note: Option<String>,
    /// An interrupt was taken up: the calls of the answer before it are not run any more.
    pub(crate) stop_calls: bool,
    /// Where a person last wanted it to stop in place of a call, as far as it has heeded that.
    pub(crate) heeded: u64,
    /// Why the newest answer ended.
    pub(crate) stop: Option<portcullis_model::Stop>,
    /// Calls whose end nobody knows, where this wake goes on with what a dead process left.
    pub(crate) unknown: Vec<portcullis_base::InvocationId>,
    /// The automatic notes of this wake are in a request.
    pub(crate) noted: bool,
    /// Queued wakes that it has taken up or cancelled.
    pub(crate) settled_wakes: std::collections::HashSet<portcullis_base::QueuedWakeId>,
    /// How often the conversation was shrunk because the provider said it was too long, since its last answer.
    pub(crate) shrunk: u32,
    /// Tokens that a conversation may have by what the provider refused in this wake.
    pub(crate) learned: Option<u64>,
}

impl Harness {
    /// Runs one wake of a session this process holds. `cancel` breaks it off where it stands: what runs is cancelled as
    /// its tool's semantics allow, and the wake stays open.
    ///
    /// # Errors
    /// If the log refused a write: nothing more is written, and the next holder goes on.
    pub async fn wake(&self, session: &Session, cancel: &CancellationToken) -> Result<Woken, Halt> {
        self.wake_for(session, WokenFor::Due, cancel).await
    }

    /// The same for a person who wants it now: a try that waits for its time is made at once, and what was given up is
    /// tried again (agent-runtime 5.7).
    ///
    /// # Errors
    /// As [`Harness::wake`].
    pub async fn wake_now(&self, session: &Session, cancel: &CancellationToken) -> Result<Woken, Halt> {
        self.wake_for(session, WokenFor::Operator, cancel).await
    }

    /// One wake, and those that carry on with its work: nobody hears of where one of them ended and the next began.
    async fn wake_for(&self, session: &Session, whom: WokenFor, cancel: &CancellationToken) -> Result<Woken, Halt> {
        let (mut last, mut carries_on) = self.spanned(session, whom, cancel).await?;
        while carries_on && !cancel.is_cancelled() && !session.lost().is_cancelled() {
            let (next, more) = self.spanned(session, WokenFor::Due, cancel).await?;
            let (Woken::Executed(before), Woken::Executed(after)) = (&mut last, next) else { break };
            let processed = std::mem::take(&mut before.processed);
            *before = after;
            before.processed.splice(..0, processed);
            carries_on = more;
        }
        Ok(last)
    }

    async fn spanned(
        &self,
        session: &Session,
        whom: WokenFor,
        cancel: &CancellationToken,
    ) -> Result<(Woken, bool), Halt> {
        let woken = async {
            let woken = self.one_wake(session, whom, cancel).await;
            spans::ended(woken.as_ref().map(|(woken, _)| woken));
            woken
        };
        woken.instrument(spans::wake(session, self.model.name())).await
    }

    /// Waits for what the calls of a wake left at work, as long as nothing comes. `true`: something did, and the next wake
    /// takes it up beside them. An interrupt ends them (agent-runtime 3.3), and so does `cancel`.
    pub async fn goes_on(&self, session: &Session, cancel: &CancellationToken) -> bool {
        let mut changes = session.gate().store().changes_of(Topic::Session(session.key()));
        // What came before it listened.
        changes.mark_changed();
        loop {
            let due = session.with_state(|state| state.wakes.next()).map(|(due_at, _)| due_at.since(self.clock.now()));
            tokio::select! {
                biased;
                () = session.tasks_ended() => return false,
                () = cancel.cancelled() => {
                    session.cancel_tasks().await;
                    return false;
                }
                // Not ours any more: they end by themselves, and nothing more is written.
                () = session.lost().cancelled() => return false,
                () = hints(&mut changes) => {}
                () = tokio::time::sleep(due.unwrap_or(LOOK_AGAIN).clamp(SOON, LOOK_AGAIN)) => {}
            }
            if session.catch_up().await.is_err() {
                continue;
            }
            let now = self.clock.now();
            let (due, interrupted) = session.with_state(|state| (begin::is_due(state, now), state.inbox.interrupted()));
            if interrupted {
                session.cancel_tasks().await;
            }
            if due {
                return true;
            }
        }
    }

    /// The second: whether the next wake goes on with its work at once.
    async fn one_wake(
        &self,
        session: &Session,
        whom: WokenFor,
        cancel: &CancellationToken,
    ) -> Result<(Woken, bool), Halt> {
        let Some(mut wake) = Wake::begin(self, session, whom, cancel).await? else {
            session.enter_wake(None);
            return Ok((Woken::Idle, false));
        };
        let ended = wake.run().await;
        spans::asked(wake.turns);
        wake.context.give_back(&wake.folded.context);
        let carries_on = wake.carried_on;
        self.known.0.keep(session.key().session, wake.folded);
        session.enter_wake(None);
        ended.map(|end| (Woken::Executed(Box::new(end)), carries_on))
    }
}

/// Waits for a hint, and for those that come with it.
async fn hints(changes: &mut watch::Receiver<u64>) {
    if changes.changed().await.is_err() {
        // The store is closing; the next read says so.
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(HINTS_GATHER).await;
    changes.mark_unchanged();
}

impl Wake<'_> {
    /// Lets the watcher see something.
    pub(crate) fn tell(&self, event: LiveEvent<'_>) {
        self.harness.watcher.see(self.live(event));
    }

    fn live<'e>(&self, event: LiveEvent<'e>) -> Live<'e> {
        Live { session_id: self.session.key().session, event_id: self.request, event }
    }

    async fn run(&mut self) -> Result<WakeEnd, Halt> {
        if self.only_stop {
            return match self.run_calls().await? {
                Some(end) => Ok(end),
                None => self.interrupted().await,
            };
        }
        loop {
            if let Some(end) = self.run_calls().await? {
                return Ok(end);
            }
            if self.cancel.is_cancelled() {
                return self.break_off().await;
            }
            if self.take_new_input().await? {
                return self.interrupted().await;
            }
            if self.context.is_empty() && self.added.is_empty() {
                // Calls that no model made: there is nothing to ask one about.
                return self.idle(StopReason::EndTurn, "").await;
            }
            let answered = self.context.newest.as_ref().is_some_and(|newest| self.ends(newest));
            match (answered, self.added.is_empty()) {
                (true, true) => return self.finish().await,
                (true, false) => self.overtaken().await?,
                (false, _) => {}
            }
            // What the next request adds is known to this wake alone: it is asked first.
            if self.added.is_empty() && self.is_at_its_bound() {
                return self.carry_on().await;
            }
            match self.ask().await? {
                request::RequestOutcome::Answered => {}
                request::RequestOutcome::Failed(error) => return self.failed(error).await,
                request::RequestOutcome::Interrupted => return self.interrupted().await,
                request::RequestOutcome::Cancelled => return self.break_off().await,
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.harness.clock.now()
    }

    /// The system prompt for these tools.
    pub(crate) fn prompt(&self, tools: &[ToolSpec]) -> String {
        system_prompt(&PromptSource {
            base: &self.harness.settings.base_prompt,
            model: self.harness.model.name(),
            sandbox: &self.harness.sandbox,
            tools,
            directive: self.harness.settings.directive,
        })
    }

    /// Makes what was gathered durable.
    pub(crate) async fn flush(&mut self) -> Result<(), Halt> {
        self.session.commit(std::mem::take(&mut self.facts)).await
    }

    /// Stops in the middle: what is gathered is kept, the span stays open, and the next who comes goes on.
    async fn break_off(&mut self) -> Result<WakeEnd, Halt> {
        self.flush().await?;
        Ok(self.end(WakeStop::Broken))
    }

    pub(crate) fn end(&mut self, stop: WakeStop) -> WakeEnd {
        WakeEnd {
            wake_id: self.wake_id,
            stop,
            text: String::new(),
            checked: None,
            processed: std::mem::take(&mut self.processed),
            limit: None,
        }
    }
}
