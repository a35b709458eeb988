//! Wakes, one after another, until the work is done or somebody must do something about it.

use std::sync::Arc;
use std::time::Duration;

use portcullis::harness::{Stopped, WakeEnd, Woken};
use portcullis::model::ModelError;
use portcullis::{Agent, Runtime, RuntimeError, SessionId};
use portcullis_base::{Clock as _, SystemClock, Timestamp};
use portcullis_event::facts::StopReason;
use portcullis_store::StoreError;
use serde_json::json;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use super::asks::{self, Answered};
use super::screen::Screen;
use super::typed::Typed;
use crate::args::ApprovalMode;
use crate::ask::Ask;
use crate::exit::{Ended, fault};
use crate::render::{DIM, Term, YELLOW, safe_line, styled};
use crate::world::World;
use crate::{ask_view, person};

/// How often what takes long is looked at.
const TICK: Duration = Duration::from_millis(200);

/// What a run came to.
pub enum Outcome {
    /// The model said its last word.
    Done(Box<WakeEnd>),
    /// There was nothing to do.
    Nothing,
    /// These wait for somebody, or, with none, for a client's result.
    Waits(Vec<Ask>),
    /// It goes on by itself at this time, if somebody is there then.
    Later(Timestamp),
    Failed(ModelError),
    Interrupted,
}

/// Someone who sees a session through.
pub struct Drive<'a> {
    pub world: &'a World,
    pub runtime: &'a Runtime,
    pub agent: &'a Agent,
    pub session: SessionId,
    pub approvals: ApprovalMode,
    /// Who answers, where no person does.
    pub by: &'static str,
    pub screen: Arc<Screen>,
    pub term: Term,
    pub interrupts: Signal,
    /// What a person types meanwhile, where someone does.
    pub typed: Option<Typed>,
    /// Somebody does not want to wait for anything any more.
    pub left: bool,
    /// An ask of this run was settled elsewhere: whoever did that may be running its call.
    pub elsewhere: bool,
    /// How the model failed last.
    pub failure: Option<String>,
}

impl Drive<'_> {
    /// Wakes the session until nothing is left that can be done here.
    pub async fn go(&mut self) -> anyhow::Result<Outcome> {
        loop {
            let end = match self.wake_after_others().await? {
                Woken::Executed(end) => end,
                Woken::Idle => match self.pending().await? {
                    asks if asks.is_empty() => return Ok(Outcome::Nothing),
                    asks => match self.answer(asks).await? {
                        None => continue,
                        Some(outcome) => return Ok(outcome),
                    },
                },
            };
            match end.stop {
                Stopped::Idle(StopReason::Interrupted) | Stopped::Broken => return Ok(Outcome::Interrupted),
                Stopped::Idle(_) => return Ok(Outcome::Done(end)),
                Stopped::Rescheduled(at) => return Ok(Outcome::Later(at)),
                Stopped::GaveUp { error } => return Ok(Outcome::Failed(error)),
                Stopped::Retrying { error, at } => {
                    if !self.wait_for_retry(&error, at).await {
                        return Ok(Outcome::Interrupted);
                    }
                }
                Stopped::RequiresAction(_) => {
                    let asks = self.pending().await?;
                    if let Some(outcome) = self.answer(asks).await? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    /// One wake. Whoever answered an ask in place of this run holds the session while its call runs: that is waited for.
    async fn wake_after_others(&mut self) -> anyhow::Result<Woken> {
        let (mut told, mut interrupted) = (false, false);
        loop {
            match self.wake(&mut interrupted).await {
                Err(WakeError::Failed(RuntimeError::Held(owner))) if self.elsewhere => {
                    if !std::mem::replace(&mut told, true) {
                        self.screen.line(&styled(DIM, &format!("in use by {owner}; this goes on when that is done")));
                    }
                }
                Err(error) => return Err(error.into_error()),
                Ok(woken) => {
                    self.elsewhere = false;
                    return Ok(woken);
                }
            }
        }
    }

    /// One wake. The first Ctrl-C is told to the session, which ends what runs and the wake with it; the second leaves.
    async fn wake(&mut self, interrupted: &mut bool) -> Result<Woken, WakeError> {
        let cancel = CancellationToken::new();
        let mut work = std::pin::pin!(self.agent.wake(self.session, &cancel));
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                woken = &mut work => return woken.map_err(WakeError::Failed),
                _ = ticks.tick() => self.screen.tick(),
                line = said(&mut self.typed) => {
                    self.runtime.say(self.session, &person::login(), &line).await?;
                }
                Some(()) = self.interrupts.recv() => {
                    if std::mem::replace(interrupted, true) {
                        self.left = true;
                        let text = format!("left before the session settled; whoever resumes {} sees to it", self.session);
                        return Err(WakeError::Other(fault(Ended::Interrupted, text)));
                    }
                    self.runtime.interrupt(self.session, &person::login(), Some("Ctrl-C")).await?;
                    self.screen.line("interrupted: waiting for what runs to settle; Ctrl-C again leaves at once");
                    self.screen.document(&json!({"type": "interrupted"}));
                }
            }
        }
    }

    /// Asks of this session that wait.
    async fn pending(&self) -> anyhow::Result<Vec<Ask>> {
        let mut asks = Ask::pending(self.world).await?;
        asks.retain(|ask| ask.row.session_id == self.session);
        Ok(asks)
    }

    /// Has each answered; `None` to go on.
    async fn answer(&mut self, asks: Vec<Ask>) -> anyhow::Result<Option<Outcome>> {
        if asks.is_empty() {
            return Ok(Some(Outcome::Waits(asks)));
        }
        let mut left = Vec::new();
        for ask in asks {
            let (id, tool) = (ask.row.ask_id, ask_view::tool(&ask.row));
            let answer = match asks::by_flag(self.approvals) {
                Some(answer) => {
                    if answer.reply.allows() {
                        // As for `approvals allow`: nobody allows what nobody could be shown.
                        ask_view::diff(self.world, &ask.row).await?;
                    }
                    Box::new(answer)
                }
                None => {
                    // What is typed from now on answers the question.
                    let again = self.typed.is_some();
                    self.say_typed().await?;
                    let workspace = ask.workspace.clone();
                    let row = ask.row.clone();
                    let answered = asks::at_terminal(self.world, ask, &self.term, &mut self.interrupts).await?;
                    if again {
                        self.typed = Some(Typed::listen());
                    }
                    match answered {
                        Answered::Said(answer) => answer,
                        Answered::Settled => {
                            self.elsewhere = true;
                            continue;
                        }
                        Answered::Left => return Ok(Some(Outcome::Interrupted)),
                        Answered::Nobody => {
                            left.push(Ask { row, workspace });
                            continue;
                        }
                    }
                }
            };
            let (allows, channel) = (answer.reply.allows(), answer.channel.clone());
            let said = json!({"type": "reply", "ask_id": id, "reply": answer.reply, "channel": answer.channel});
            let grant = match self.runtime.reply(id, *answer).await {
                // Somebody else was quicker, or its time ran out: the first answer counts, and the work goes on.
                Err(RuntimeError::Store(StoreError::AskSettled { .. } | StoreError::AskExpired(_))) => {
                    let now = Ask::load(self.world, id).await?;
                    self.screen.line(&asks::settled(&now));
                    self.screen.document(&json!({"type": "settled", "ask_id": id, "state": now.row.state}));
                    self.elsewhere = true;
                    continue;
                }
                replied => replied?,
            };
            self.screen.document(&said);
            if channel == "flag" {
                let word = if allows { "allowed" } else { "refused" };
                self.screen.line(&styled(DIM, &format!("{word} by {}: {tool} ({id})", self.by)));
            }
            if let Some(grant) = grant {
                let revoke = self.world.command(&format!("grants revoke {grant}"));
                self.screen.line(&styled(DIM, &format!("remembered as {grant}; take it back with: {revoke}")));
            }
        }
        Ok((!left.is_empty()).then_some(Outcome::Waits(left)))
    }

    /// Stops listening, and tells the session what was typed and not heard yet. Whether there was anything.
    pub async fn say_typed(&mut self) -> anyhow::Result<bool> {
        let left = self.typed.take().map(Typed::finish).unwrap_or_default();
        for line in &left {
            self.runtime.say(self.session, &person::login(), line).await?;
        }
        Ok(!left.is_empty())
    }

    /// Waits until a failed request is tried again; `false` if somebody does not want to.
    async fn wait_for_retry(&mut self, error: &ModelError, at: Timestamp) -> bool {
        let wait = at.since(SystemClock::new().now());
        let why = safe_line(&error.message, 300);
        let secs = wait.as_secs_f64();
        // Said once: the same again and again would push what matters off the screen.
        let what = match self.failure.replace(why.clone()) {
            Some(last) if last == why => "the model failed in the same way".to_owned(),
            _ => format!("the model failed: {why}"),
        };
        self.screen.line(&styled(YELLOW, &format!("{what}; next try in {secs:.0} s (Ctrl-C leaves)")));
        self.screen.document(&json!({
            "type": "retry", "failure": error.failure.as_str(), "message": error.message, "at": at,
        }));
        tokio::select! {
            // A moment more: the wake is due at `at`, not before.
            () = tokio::time::sleep(wait + Duration::from_millis(5)) => true,
            _ = self.interrupts.recv() => false,
        }
    }
}

/// The next line that a person typed; never, where nobody types.
async fn said(typed: &mut Option<Typed>) -> String {
    match typed {
        Some(lines) => match lines.next().await {
            Some(line) => line,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Why a wake did not come to an end.
enum WakeError {
    Failed(RuntimeError),
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for WakeError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl WakeError {
    /// The holder is named, and what to do about it.
    fn into_error(self) -> anyhow::Error {
        match self {
            Self::Failed(RuntimeError::Held(owner)) => fault(
                Ended::Broken,
                format!("the session is in use by {owner}; wait until it is done, or begin another"),
            ),
            Self::Failed(other) => other.into(),
            Self::Other(error) => error,
        }
    }
}
