//! One operation on its way through the writer: what it does, whom it answers, how to find out
//! afterwards whether it took effect.

use std::cell::RefCell;
use std::sync::Arc;

use portcullis_base::{Clock, EventId, IdGen};
use portcullis_event::CheckpointKey;
use portcullis_store::{LivenessOracle, SessionKey, StoreError, Topic};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::Fail;
use crate::mark::{Mark, NewestEvent};

/// What operations need from outside.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) liveness: Arc<dyn LivenessOracle>,
    pub(crate) key: Option<CheckpointKey>,
    /// What is known of the newest events.
    pub(crate) mark: Arc<Mark>,
}

/// An open write transaction.
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) env: &'a Env,
    /// The newest events of what this transaction appended, named once it is durable.
    pub(crate) appended: RefCell<Vec<(SessionKey, NewestEvent)>>,
    /// What it is about, for those who listen. Hints may be too many, so a refused operation may leave some.
    pub(crate) topics: RefCell<Vec<Topic>>,
}

/// What an operation leaves in the tables: if it is there, the operation's transaction committed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trace {
    Event(SessionKey, EventId),
    Lease { key: SessionKey, fence: u64, owner: String },
}

/// What the writer needs to know of an operation, whatever its answer is.
pub(crate) trait Op: Send {
    /// Does it, and keeps the answer until [`Op::settle`]. It may be called again after a rollback.
    fn run(&mut self, tx: &Tx<'_>) -> Result<(), Fail>;
    /// Its own values do not go into the tables; the others of its batch go on.
    fn refuse(&mut self, error: StoreError);
    /// The session it touches, for the check of tails after a fault.
    fn session(&self) -> Option<SessionKey>;
    /// How to recognise that it took effect; known after [`Op::run`].
    fn trace(&self) -> Option<Trace>;
    /// Whether it is taken on a full disk as well, in the room of the ballast: it ends what began before, or makes room.
    fn cannot_wait(&self) -> bool;
    /// Gives the answer: the kept one, or this error.
    fn settle(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// An operation made of a closure.
pub(crate) struct Task<T, F> {
    run: F,
    session: Option<SessionKey>,
    trace: fn(&T, Option<SessionKey>) -> Option<Trace>,
    cannot_wait: bool,
    answer: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// Operations without a trace of their own: a batch of such alone stays ambiguous.
pub(crate) fn no_trace<T>(_: &T, _: Option<SessionKey>) -> Option<Trace> {
    None
}

impl<T, F> Task<T, F>
where
    T: Send + 'static,
    F: FnMut(&Tx<'_>) -> Result<T, Fail> + Send + 'static,
{
    /// The operation and where its answer will arrive.
    pub(crate) fn queued(
        session: Option<SessionKey>,
        trace: fn(&T, Option<SessionKey>) -> Option<Trace>,
        cannot_wait: bool,
        run: F,
    ) -> (Box<dyn Op>, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let task = Self { run, session, trace, cannot_wait, answer: None, reply };
        (Box::new(task), answer)
    }
}

impl<T, F> Op for Task<T, F>
where
    T: Send,
    F: FnMut(&Tx<'_>) -> Result<T, Fail> + Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> Result<(), Fail> {
        match (self.run)(tx) {
            Ok(answer) => {
                self.answer = Some(Ok(answer));
                Ok(())
            }
            Err(Fail::Refused(error)) => {
                self.answer = Some(Err(error.clone()));
                Err(Fail::Refused(error))
            }
            Err(fail) => Err(fail),
        }
    }

    fn refuse(&mut self, error: StoreError) {
        self.answer = Some(Err(error));
    }

    fn session(&self) -> Option<SessionKey> {
        self.session
    }

    fn trace(&self) -> Option<Trace> {
        match &self.answer {
            Some(Ok(answer)) => (self.trace)(answer, self.session),
            _ => None,
        }
    }

    fn cannot_wait(&self) -> bool {
        self.cannot_wait
    }

    fn settle(mut self: Box<Self>, outcome: Result<(), StoreError>) {
        let answer = match (outcome, self.answer.take()) {
            // A refusal stands whatever became of the transaction: it asked for nothing.
            (_, Some(Err(error))) => Err(error),
            (Ok(()), Some(Ok(answer))) => Ok(answer),
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(StoreError::Unavailable("the operation was not run".to_owned())),
        };
        // The caller may have gone; the rows are written all the same.
        let _ = self.reply.send(answer);
    }
}
