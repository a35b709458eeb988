//! What an executor is given: who called, how to stop, where evidence goes (tool-contract §5).
//! Not in it: the raw input, the conversation, the policy engine, the registry, other tools.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use portcullis_base::{
    Actor, ArtifactId, ArtifactKind, FileFact, IntentId, InvocationId, MessageId, SessionId, SideEffect, TaskId,
    TenantId, TurnId, limits,
};
use portcullis_secret::SecretText;

use crate::stop::StopSignal;
use crate::{AccessRequest, ShellFact, SpoolRef, StopCause};

/// Who called. Every id was supplied by the session's runner; none is inferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose session it is.
    pub tenant: TenantId,
    /// The session.
    pub session_id: SessionId,
    /// On whose behalf the session acts.
    pub principal: String,
    /// Who proposed the call: an agent, a person, a key, a caller over MCP.
    pub actor: Actor,
    /// The agent's name.
    pub agent: String,
    /// The message that holds the call.
    pub message_id: MessageId,
    /// The provider's id of the call; unique in its message only.
    pub call_id: String,
    /// The turn.
    pub turn_id: TurnId,
    /// The intent.
    pub intent_id: IntentId,
    /// Of a call that was asked about: the [`crate::Around::asker_env`] of that ask, to run with. Empty for any other call.
    pub asker_env: BTreeMap<String, String>,
}

/// The invocation was told to stop; return as soon as you can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// Why.
    pub cause: StopCause,
}

/// The invocation has handed over as many pieces of evidence as one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "one call may hand over at most {} pieces of evidence; join small pieces into one, or do the work in several calls",
    limits::KEPT_ITEMS
)]
pub struct TooMuchEvidence;

/// How a call goes on in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Background {
    /// Its end wakes the session.
    pub wake: bool,
}

/// A call that cannot go on in the background. It goes on as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotBackgrounded {
    /// Its tool does not say that it may.
    #[error("this tool is not declared `backgroundable`, so its call cannot go on after its observation")]
    NotDeclared,
    /// The session has as many tasks as it may.
    #[error(
        "this session has {} background tasks already; wait for one with task_wait, or end one with task_cancel",
        limits::MAX_TASKS
    )]
    TooMany,
    /// It is over: its context outlived it.
    #[error("this call has ended, so it cannot go on in the background")]
    Ended,
}

/// The gate did not say yes. What was asked for must not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GateStop {
    /// Its tool does not say that it finds accesses midway. Nothing was asked, and nothing has changed.
    #[error("this tool is not declared `dynamic_access`, so its call cannot ask the gate midway")]
    NotDeclared,
    /// The gate said no, or nobody could say yes. The call is settled by that, whatever it returns now (L25).
    #[error("the gate stopped this call; return as soon as you can")]
    ByGate,
    /// The call has asked as often as one may. Nothing was asked, and nothing has changed.
    #[error("one call may ask the gate at most {} times; do the work in several calls", limits::GATE_REQUESTS)]
    TooOften,
    /// It is over: its context outlived it.
    #[error("this call has ended, so it cannot ask the gate any more")]
    Ended,
}

/// Bytes a tool hands over as evidence.
#[derive(Debug, Clone)]
pub struct KeptEvidence {
    /// The id it was given.
    pub id: ArtifactId,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its type.
    pub mime: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What a tool reported while it ran. Facts stand even if the tool fails afterwards.
#[derive(Debug, Default)]
pub struct ToolReport {
    /// What it did to the world.
    pub side_effects: Vec<SideEffect>,
    /// What it learned of or did to files.
    pub files: Vec<FileFact>,
    /// What became of the session's shell, in order.
    pub shell: Vec<ShellFact>,
    /// Changes of the shell that were over the limit.
    pub shell_refused: usize,
    /// Evidence.
    pub kept: Vec<KeptEvidence>,
    /// Pieces of evidence that were over the limit.
    pub refused: usize,
    /// Things worth a line in the observation.
    pub warnings: Vec<String>,
    /// It looked for something and there was nothing: a success is `no_matches`.
    pub nothing_found: bool,
}

/// Takes in a captured stream; the runtime's side of [`Spool`].
pub trait SpoolSink: Send {
    /// Takes more bytes. Past the keep limit they are counted and dropped.
    ///
    /// # Errors
    /// If the evidence cannot be kept, or the producer must be stopped.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Ends the stream.
    fn finish(&mut self) -> SpoolRef;
}

/// What the runtime gives a context; implemented by `crates/pipeline` alone.
pub trait Host: Send + Sync {
    /// A fresh artifact id.
    fn artifact_id(&self) -> ArtifactId;
    /// A new captured stream.
    fn open_spool(&self, name: &str) -> Box<dyn SpoolSink>;
    /// What the call says of itself: a live delta, and now and then a durable checkpoint.
    fn progress(&self, text: &str);
    /// Lets the call go on as a task.
    ///
    /// # Errors
    /// If it may not; nothing has changed then.
    fn background(&self, how: Background) -> Result<TaskId, NotBackgrounded>;
    /// Whether an access that was found midway may happen. `Ok` only once the right to it is durable.
    fn gate(&self, request: AccessRequest) -> BoxFuture<'_, Result<(), GateStop>>;
}

/// A stream being captured. Whatever was written before a cancel or timeout is kept (L45).
pub struct Spool {
    sink: Box<dyn SpoolSink>,
}

impl Spool {
    /// Takes more bytes.
    ///
    /// # Errors
    /// If the evidence cannot be kept, or the producer must be stopped (`spool_kill`).
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write(bytes)
    }

    /// Ends the stream and names it.
    #[must_use]
    pub fn finish(mut self) -> SpoolRef {
        self.sink.finish()
    }
}

/// The context of one invocation.
#[derive(Clone)]
pub struct ToolContext {
    pub(crate) caller: Arc<Caller>,
    pub(crate) invocation_id: InvocationId,
    pub(crate) attempt: u32,
    pub(crate) timeout: Duration,
    pub(crate) stop: StopSignal,
    pub(crate) variables: Arc<BTreeMap<String, SecretText>>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) reported: Arc<Mutex<ToolReport>>,
}

impl ToolContext {
    /// Who called.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// This invocation; also the idempotency key towards remote sides.
    #[must_use]
    pub fn invocation_id(&self) -> InvocationId {
        self.invocation_id
    }

    /// 1 for the first try.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How long this invocation may run in all.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Resolves when the invocation is interrupted or out of time.
    pub async fn cancelled(&self) -> Cancelled {
        Cancelled { cause: self.stop.fired().await }
    }

    /// Whether it was.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.stop.cause().is_some()
    }

    /// Whether it was stopped because its time is up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.stop.cause() == Some(StopCause::Deadline)
    }

    /// Shows a live delta to a watcher, at most [`limits::PROGRESS_LIVE`] bytes of it. If the tool is declared
    /// `stream_progress` and is not inert, the newest one is also kept in the log, at most every
    /// [`limits::PROGRESS_EVERY`].
    pub fn progress(&self, text: &str) {
        self.host.progress(text);
    }

    /// Goes on as a background task: the call is observed now as `background_started`, and what the executor returns
    /// later is the end of the task. The task keeps its keys, and its clock runs on to the longest timeout of its tool.
    /// A second time it is the same task.
    ///
    /// # Errors
    /// If the tool is not declared `backgroundable`, or the session has too many tasks. Then nothing has changed, and
    /// the call goes on as before.
    pub fn background(&self, how: Background) -> Result<TaskId, NotBackgrounded> {
        self.host.background(how)
    }

    /// Asks the gate whether an access that could only be found midway may happen (R3). While a person is asked the
    /// call stands still: it keeps its keys, and its clock stops.
    ///
    /// # Errors
    /// If the tool is not declared `dynamic_access`, or the gate does not say yes. Then the access must not happen. Once
    /// the gate has stopped a call it answers it no more, and the call's observation is the gate's.
    pub async fn gate(&self, request: AccessRequest) -> Result<(), GateStop> {
        self.host.gate(request).await
    }

    /// Captures a stream of any length in constant memory.
    #[must_use]
    pub fn spool(&self, name: &str) -> Spool {
        Spool { sink: self.host.open_spool(name) }
    }

    /// A declared variable. Undeclared names are never there.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&SecretText> {
        self.variables.get(name)
    }

    /// States something the call did to the world, the moment it is done.
    pub fn did(&self, effect: SideEffect) {
        self.reports().side_effects.push(effect);
    }

    /// States what the call learned of or did to a file.
    pub fn file(&self, fact: FileFact) {
        self.reports().files.push(fact);
    }

    /// States what became of the session's shell; it is durable with the end of the call, whether that is a success or
    /// not. Past [`limits::ENV_NAMES`] changes of the environment, or [`limits::SHELL_FACTS`] other facts, one is not
    /// kept, and the observation says so.
    pub fn shell(&self, fact: ShellFact) {
        let mut reports = self.reports();
        let most = if fact.is_env() { limits::ENV_NAMES } else { limits::SHELL_FACTS };
        if reports.shell.iter().filter(|other| other.is_env() == fact.is_env()).count() < most {
            reports.shell.push(fact);
        } else {
            reports.shell_refused += 1;
        }
    }

    /// Hands over bytes as evidence; they are durable with the observation.
    ///
    /// # Errors
    /// Past [`limits::KEPT_ITEMS`]: nothing is kept then, and the call cannot end as a success. `?` makes it
    /// a [`ToolFailure`](crate::ToolFailure); state what was done before.
    pub fn keep(&self, kind: ArtifactKind, mime: &str, bytes: Vec<u8>) -> Result<ArtifactId, TooMuchEvidence> {
        let mut reports = self.reports();
        if reports.kept.len() >= limits::KEPT_ITEMS {
            reports.refused += 1;
            return Err(TooMuchEvidence);
        }
        let id = self.host.artifact_id();
        reports.kept.push(KeptEvidence { id, kind, mime: mime.to_owned(), bytes });
        Ok(id)
    }

    /// Adds a line the model and the person should see, such as a clamped value.
    pub fn warn(&self, warning: impl Into<String>) {
        self.reports().warnings.push(warning.into());
    }

    /// States that what was looked for is not there: the call succeeds as `no_matches`.
    pub fn nothing_found(&self) {
        self.reports().nothing_found = true;
    }

    fn reports(&self) -> std::sync::MutexGuard<'_, ToolReport> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
