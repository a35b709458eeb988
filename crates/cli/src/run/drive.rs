//! Wakes, one after another, until the work is done or somebody must do something about it.

use std::sync::Arc;
use std::time::Duration;

use portcullis::harness::{WakeEnd, WakeStop, Woken};
use portcullis::model::ModelError;
use portcullis::operations::AskView;
use portcullis::{Agent, AskRow, Runtime, RuntimeError, SessionId, StoreError};
use portcullis_base::{Clock as _, SystemClock, Timestamp};
use portcullis_config::ApprovalMode;
use portcullis_event::facts::{BY_FLAG, StopReason};
use portcullis_event::fold::InputContent;
use portcullis_event::{AskState, Body};
use portcullis_pipeline::Progress;
use portcullis_terminal::render::{DIM, Term, YELLOW, safe_line, styled};
use portcullis_terminal::signals::Interrupts;
use portcullis_terminal::typing::Input;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::asks::{self, AskPrompt, PromptEnd};
use super::elsewhere::OtherAnswers;
use super::screen::Screen;
use super::talk;
use super::typed::TypedInput;
use crate::ask;
use crate::exit::{ExitKind, fault};
use crate::world::World;
use crate::{ask_view, person};

/// How often what takes long is looked at.
const TICK: Duration = Duration::from_millis(200);

/// What is said where a session was stopped before it heard what was said to it.
const WORDS_WAIT: &str = "what you said is kept; whoever goes on with the session takes it up";
/// What is said of words at an ask.
const SAID: &str = "said to the session; the ask still waits";

/// What a run came to.
pub enum Outcome {
    /// The model said its last word.
    Done(Box<WakeEnd>),
    /// There was nothing to do.
    Nothing,
    /// These wait for somebody, or, with none, for a client's result.
    Waits(Vec<AskView>),
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
    pub interrupts: Interrupts,
    /// What a person types meanwhile, where someone does.
    pub typed: Option<TypedInput>,
    /// Somebody does not want to wait for anything any more.
    pub left: bool,
    /// Asks of this run that were settled elsewhere: whoever did that may be running their calls.
    pub elsewhere: Option<Vec<AskRow>>,
    /// The last of those was closed because somebody interrupted the session.
    pub superseded: bool,
    /// How the model failed last.
    pub failure: Option<String>,
}

impl Drive<'_> {
    /// Wakes the session until nothing is left that can be done here.
    pub async fn go(&mut self) -> anyhow::Result<Outcome> {
        self.look_for_left_over().await?;
        self.superseded = false;
        // Somebody stopped it, and one more wake settles that.
        let mut stopped = false;
        loop {
            if stopped && self.words_wait().await? {
                // That wake would take them up: they are for whoever goes on.
                self.withdraw_asks().await?;
                return Ok(Outcome::Interrupted);
            }
            let woken = self.wake_after_others().await?;
            self.screen.rest();
            let end = match woken {
                Woken::Executed(end) => end,
                Woken::Idle if stopped => return Ok(Outcome::Interrupted),
                Woken::Idle => match self.pending().await? {
                    asks if asks.is_empty() && self.superseded => return Ok(Outcome::Interrupted),
                    asks if asks.is_empty() => return Ok(Outcome::Nothing),
                    asks => match self.answer(asks).await? {
                        Next::On => continue,
                        Next::Settle => {
                            stopped = true;
                            continue;
                        }
                        Next::End(outcome) => return Ok(outcome),
                    },
                },
            };
            match end.stop {
                WakeStop::Idle(StopReason::Interrupted) | WakeStop::Broken => return Ok(Outcome::Interrupted),
                WakeStop::Idle(_) => return Ok(Outcome::Done(end)),
                WakeStop::Rescheduled(at) => return Ok(Outcome::Later(at)),
                WakeStop::GaveUp { error } => return Ok(Outcome::Failed(error)),
                WakeStop::Retrying { error, at } if self.typed.is_none() && is_far(at) => {
                    return Ok(Outcome::Failed(too_far(error)));
                }
                WakeStop::Retrying { error, at } => stopped |= !self.wait_for_retry(&error, at).await?,
                WakeStop::Elsewhere => return Ok(Outcome::Waits(Vec::new())),
                WakeStop::RequiresAction(_) => {
                    let asks = self.pending().await?;
                    match self.answer(asks).await? {
                        Next::On => {}
                        Next::Settle => stopped = true,
                        Next::End(outcome) => return Ok(outcome),
                    }
                }
            }
        }
    }

    /// Calls that another process left unsettled are named by their input when they are settled here.
    async fn look_for_left_over(&self) -> anyhow::Result<()> {
        let open = self.world.archive.open_intents(self.session).await?;
        if open.is_empty() {
            return Ok(());
        }
        for event in self.world.archive.newest_events(self.session).await? {
            if let Body::IntentProposed(intent) = event.body()
                && open.contains(&intent.intent_id)
            {
                self.screen.left_over(intent.call_id, intent.raw_input.to_string());
            }
        }
        Ok(())
    }

    /// Tells the session to stop: asks are closed, and nothing goes on by itself. The next wake settles it.
    async fn stop(&self, why: &str) -> anyhow::Result<()> {
        self.runtime.interrupt(self.session, &person::login(), Some(why)).await?;
        self.screen.document(&json!({"type": "interrupted"}));
        Ok(())
    }

    /// Closes the asks of the session that was stopped, where no wake does it.
    async fn withdraw_asks(&self) -> anyhow::Result<()> {
        let withdrawn = match self.runtime.withdraw_asks(self.session).await {
            // Whoever holds the session closes them.
            Err(RuntimeError::Held(_)) => Vec::new(),
            closed => closed?,
        };
        for ask in withdrawn {
            self.screen.line(&asks::withdrawn(ask));
        }
        self.screen.line(WORDS_WAIT);
        Ok(())
    }

    /// One wake. Whoever answered an ask in place of this run holds the session while its call runs: that is waited for.
    async fn wake_after_others(&mut self) -> anyhow::Result<Woken> {
        let (mut told, mut interrupted) = (false, false);
        loop {
            match self.wake(&mut interrupted).await {
                Err(WakeError::Failed(RuntimeError::Held(owner))) if self.elsewhere.is_some() => {
                    if !std::mem::replace(&mut told, true) {
                        self.screen.line(&styled(DIM, &format!("in use by {owner}; this goes on when that is done")));
                    }
                }
                Err(error) => return Err(error.into_error()),
                Ok(woken) => {
                    self.elsewhere = None;
                    return Ok(woken);
                }
            }
        }
    }

    /// One wake. The first Ctrl-C is told to the session, which ends what runs and the wake with it; the second leaves.
    async fn wake(&mut self, interrupted: &mut bool) -> Result<Woken, WakeError> {
        let cancel = CancellationToken::new();
        let (screen, others) = (Arc::clone(&self.screen), self.elsewhere.as_mut().map(std::mem::take));
        let (world, runtime, session, agent) = (self.world, self.runtime, self.session, self.agent);
        let mut work = std::pin::pin!(async {
            if let Some(asks) = others {
                OtherAnswers { world, runtime, screen: &screen, session }.carried_out(asks).await?;
            }
            agent.wake_now(session, &cancel).await.map_err(WakeError::Failed)
        });
        let mut ticks = tokio::time::interval(TICK);
        let mut progress = self.screen.shows_output().then(|| self.runtime.progress());
        loop {
            tokio::select! {
                woken = &mut work => return woken,
                _ = ticks.tick() => self.screen.tick(),
                said = written(&mut progress, self.session) => self.screen.output(&said),
                line = said(&mut self.typed, &self.screen) => {
                    if self.hear(&line, Claim::Held).await? == LineEffect::Quit && !std::mem::replace(interrupted, true) {
                        self.stop("/quit").await?;
                        self.screen.line("leaving: waiting for what runs to settle; Ctrl-C leaves at once");
                    }
                }
                () = self.interrupts.next() => {
                    if std::mem::replace(interrupted, true) {
                        self.left = true;
                        return Err(WakeError::Other(fault(self.interrupts.how.into(), "left before the session settled")));
                    }
                    self.stop(self.interrupts.how.word()).await?;
                    self.screen.line("interrupted: waiting for what runs to settle; Ctrl-C again leaves at once");
                }
            }
        }
    }

    /// Whether somebody must answer before the model hears anything.
    pub async fn waits(&self) -> anyhow::Result<bool> {
        let interrupted = self.world.archive.state(self.session).await?.inbox.interrupted();
        Ok(!interrupted && !self.pending().await?.is_empty())
    }

    /// Whether somebody said something that no wake has taken up.
    async fn words_wait(&self) -> anyhow::Result<bool> {
        let state = self.world.archive.state(self.session).await?;
        Ok(state.inbox.pending().iter().any(|input| matches!(input.said, InputContent::Message { .. })))
    }

    /// Asks of this session that wait.
    async fn pending(&self) -> anyhow::Result<Vec<AskView>> {
        let mut asks = ask::pending(self.world).await?;
        asks.retain(|ask| ask.row.session_id == self.session);
        Ok(asks)
    }

    /// Has each answered.
    async fn answer(&mut self, asks: Vec<AskView>) -> anyhow::Result<Next> {
        if asks.is_empty() {
            return Ok(Next::End(Outcome::Waits(asks)));
        }
        let mut left = Vec::new();
        for ask in asks {
            let (id, call) = (ask.row.ask_id, ask_view::call(&ask.row.facts));
            let answer = match asks::by_flag(self.approvals, ask.only_a_person) {
                Some(answer) => {
                    if answer.reply.allows() {
                        // As for `approvals allow`: nobody allows what nobody could be shown.
                        self.world.archive.diff(&ask.row).await?;
                    }
                    Box::new(answer)
                }
                None => {
                    let (row, workspace, only_a_person) = (ask.row.clone(), ask.workspace.clone(), ask.only_a_person);
                    let answered = self.ask(ask).await?;
                    match answered {
                        PromptEnd::Said(answer) => answer,
                        PromptEnd::Settled => {
                            self.settled_elsewhere(&ask::load(self.world, id).await?, &call);
                            continue;
                        }
                        PromptEnd::Stopped => return Ok(Next::Settle),
                        PromptEnd::Left => {
                            self.stop(self.interrupts.how.word()).await?;
                            return Ok(Next::Settle);
                        }
                        PromptEnd::Line(_) => {
                            self.stop("/quit").await?;
                            return Ok(Next::Settle);
                        }
                        PromptEnd::Nobody => {
                            left.push(AskView { row, workspace, only_a_person });
                            continue;
                        }
                    }
                }
            };
            let (allows, channel) = (answer.reply.allows(), answer.channel.clone());
            let by = if channel == BY_FLAG { Some(self.by) } else { None };
            let said = asks::reply_document(id, &answer);
            let grant = match self.runtime.reply(id, *answer).await {
                // Somebody else was quicker, or its time ran out: the first answer counts, and the work goes on.
                Err(RuntimeError::Store(StoreError::AskSettled { .. } | StoreError::AskExpired(_))) => {
                    let now = ask::load(self.world, id).await?;
                    if asks::is_stopped(self.world, &now).await? {
                        self.screen.line(asks::STOPPED);
                        return Ok(Next::Settle);
                    }
                    self.screen.line(&asks::settled(&now));
                    self.screen.document(&json!({"type": "settled", "ask_id": id, "state": now.row.state}));
                    self.settled_elsewhere(&now, &call);
                    continue;
                }
                replied => replied?,
            };
            self.screen.document(&said);
            // A key was taken, which nothing else shows until the call has ended.
            self.screen.line(&asks::said_line(id, &call, allows, by));
            self.screen.answered(allows.then_some(&call));
            if let Some(grant) = grant {
                let revoke = self.world.command(&format!("grants revoke {grant}"));
                self.screen.line(&styled(DIM, &format!("remembered as {grant}; take it back with: {revoke}")));
            }
        }
        Ok(if left.is_empty() { Next::On } else { Next::End(Outcome::Waits(left)) })
    }

    /// Somebody else answered it. Whoever runs its call then, this run waits for it.
    fn settled_elsewhere(&mut self, ask: &AskView, call: &str) {
        self.elsewhere.get_or_insert_default().push(ask.row.clone());
        self.superseded = ask.row.state == AskState::Superseded;
        let allowed = ask.row.reply.as_ref().is_some_and(portcullis::Reply::allows);
        self.screen.answered(allowed.then_some(call));
    }

    /// One ask at this terminal. What is typed meanwhile and is no answer is heard as ever; a line stands for `/quit`.
    async fn ask(&mut self, ask: AskView) -> anyhow::Result<PromptEnd> {
        if !self.term.interactive() {
            return Ok(PromptEnd::Nobody);
        }
        let screen = Arc::clone(&self.screen);
        let mut question = AskPrompt::show(self.world, &screen, ask).await?;
        // Where no conversation is held, only its answer is listened for.
        let in_passing = self.typed.as_ref().is_none_or(|typed| !typed.listens());
        let answered = loop {
            let typed = self.typed.get_or_insert_with(|| TypedInput::new(&self.term));
            typed.listen();
            typed.by_keys(true);
            match question.wait(typed, &mut self.interrupts).await? {
                PromptEnd::Line(line) => match self.hear(&line, Claim::Free).await? {
                    LineEffect::Quit => break PromptEnd::Line(line),
                    LineEffect::Words => self.screen.line(&styled(DIM, SAID)),
                    LineEffect::Nothing => {}
                },
                answered => break answered,
            }
        };
        if let Some(typed) = &mut self.typed {
            if in_passing {
                typed.pause();
            } else {
                typed.listen();
            }
        }
        if in_passing {
            self.hear_rest().await?;
        }
        Ok(answered)
    }

    /// A whole line that a person typed while the session works.
    async fn hear(&mut self, line: &str, claim: Claim) -> anyhow::Result<LineEffect> {
        let Some(typed) = &mut self.typed else { return Ok(LineEffect::Nothing) };
        let heard = match talk::TypedLine::of(line) {
            talk::TypedLine::Nothing => return Ok(LineEffect::Nothing),
            talk::TypedLine::Quit => {
                typed.quit = true;
                return Ok(LineEffect::Quit);
            }
            talk::TypedLine::Later(command) => {
                typed.later.push(command.to_owned());
                self.screen.line(&styled(DIM, &format!("{command} comes when the turn is over")));
                return Ok(LineEffect::Nothing);
            }
            talk::TypedLine::Help(words) => {
                self.screen.line(&words);
                return Ok(LineEffect::Nothing);
            }
            talk::TypedLine::Words(words) => {
                if typed.draws() {
                    self.screen.line(&styled(DIM, &format!("> {}", safe_line(words, 400))));
                }
                words
            }
        };
        if claim == Claim::First {
            match self.runtime.hold(self.session).await {
                // Whoever holds it hears them.
                Ok(()) | Err(RuntimeError::Held(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.runtime.say(self.session, &person::login(), heard).await?;
        Ok(LineEffect::Words)
    }

    /// Lines that were typed and not heard yet, once nobody listens any more. Whether words were said.
    pub async fn hear_rest(&mut self) -> anyhow::Result<bool> {
        let mut words = false;
        while let Some(line) = self.typed.as_mut().and_then(TypedInput::waiting) {
            words |= self.hear(&line, Claim::First).await? == LineEffect::Words;
        }
        Ok(words)
    }

    /// Waits until a failed request is tried again; `false` if somebody stopped that.
    async fn wait_for_retry(&mut self, error: &ModelError, at: Timestamp) -> anyhow::Result<bool> {
        let wait = at.since(SystemClock::new().now());
        let why = safe_line(&error.message, 300);
        let secs = wait.as_secs_f64();
        // Said once: the same again and again would push what matters off the screen.
        let what = match self.failure.replace(why.clone()) {
            Some(last) if last == why => "the model failed in the same way".to_owned(),
            _ => format!("the model failed: {why}"),
        };
        let ways = match self.typed.as_ref().is_some_and(TypedInput::listens) {
            true => "a line you type tries at once, Ctrl-C interrupts",
            false => "Ctrl-C interrupts",
        };
        self.screen.line(&styled(YELLOW, &format!("{what}; next try in {secs:.0} s ({ways})")));
        self.screen.document(&json!({
            "type": "retry", "failure": error.failure.as_str(), "message": error.message, "at": at,
        }));
        // A moment more: the wake is due at `at`, not before.
        let mut due = std::pin::pin!(tokio::time::sleep(wait + Duration::from_millis(5)));
        let why = loop {
            tokio::select! {
                () = &mut due => return Ok(true),
                () = self.interrupts.next() => break self.interrupts.how.word(),
                line = said(&mut self.typed, &self.screen) => match self.hear(&line, Claim::First).await? {
                    // It is due with them.
                    LineEffect::Words => return Ok(true),
                    LineEffect::Quit => break "/quit",
                    LineEffect::Nothing => {}
                },
            }
        };
        // Else the try that is queued would be made by whoever comes next.
        self.stop(why).await?;
        Ok(false)
    }
}

/// How long a try is waited for where nobody sits: a job that sleeps for a day is one that hangs.
const UNATTENDED: Duration = Duration::from_secs(5 * 60);

fn is_far(at: Timestamp) -> bool {
    at.since(SystemClock::new().now()) > UNATTENDED
}

fn too_far(mut error: ModelError) -> ModelError {
    let most = UNATTENDED.as_secs();
    error.message.push_str(&format!("; without a terminal no more than {most} s are waited for"));
    error
}

/// The next that a call of this session says or writes while it runs; never, where nobody looks.
async fn written(progress: &mut Option<Receiver<Progress>>, session: SessionId) -> Progress {
    let Some(said) = progress else { return std::future::pending().await };
    loop {
        match said.recv().await {
            Ok(said) if said.session_id == session => return said,
            // What came too fast is not shown; the end of the call has it.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// The next line that a person typed; never, where nobody types. What is typed so far is shown, and kept.
async fn said(typed: &mut Option<TypedInput>, screen: &Screen) -> String {
    let Some(typed) = typed.as_mut().filter(|typed| typed.listens()) else { return std::future::pending().await };
    loop {
        let Some((input, _)) = typed.next().await else { return std::future::pending().await };
        if input == Input::End {
            screen.line(&styled(DIM, "Ctrl-D ends nothing while it works; /quit leaves, Ctrl-C interrupts"));
        }
        let line = typed.apply(input);
        screen.typing("", typed.line());
        if let Some(line) = line {
            return line;
        }
    }
}

/// What follows the asks of a wake.
enum Next {
    On,
    /// It was stopped: the next wake settles it.
    Settle,
    End(Outcome),
}

/// Who has the session while somebody speaks to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// This run, in a wake.
    Held,
    /// Nobody: it waits for an answer, which anybody may give.
    Free,
    /// Nobody, and what is said would be anybody's to take up: it is claimed for the next wake first.
    First,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEffect {
    Words,
    Quit,
    Nothing,
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
                ExitKind::Broken,
                format!("the session is in use by {owner}; wait until it is done, or begin another"),
            ),
            Self::Failed(other) => other.into(),
            Self::Other(error) => error,
        }
    }
}
