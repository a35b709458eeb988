//! The runtime's side of one invocation's context: its streams, its words, its channel to the gate, and its way into the
//! background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{ArtifactId, Clock, IdGen, TaskId};
use portcullis_contract::seam::{Host, SpoolSink};
use portcullis_contract::{AccessRequest, Background, GateStop, NotBackgrounded};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::asks::midway::InquirySender;
use crate::output::spool::Streams;
use crate::tasks::progress::Words;
use crate::tasks::running_tasks::{RunningTask, TaskList, TaskPlace};

pub(crate) struct InvocationHost {
    pub(crate) streams: Arc<Streams>,
    pub(crate) words: Arc<Words>,
    pub(crate) way_out: WayOut,
    pub(crate) inquiries: InquirySender,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A call's way into the background, which it goes at most once.
pub(crate) struct WayOut {
    declared: bool,
    tasks: TaskList,
    /// Fires when the lease is lost: a task stops then, too.
    lost: CancellationToken,
    step: Mutex<Step>,
    told: Notify,
}

enum Step {
    Here,
    /// It wants to go; nobody has seen to it yet.
    Asked(BackgroundRequest),
    Gone(TaskId),
    /// The call is over.
    Closed,
}

/// A call that wants to go on as a task.
pub(crate) struct BackgroundRequest {
    pub(crate) place: TaskPlace,
    pub(crate) how: Background,
}

impl WayOut {
    pub(crate) fn new(declared: bool, tasks: TaskList, lost: CancellationToken) -> Self {
        Self { declared, tasks, lost, step: Mutex::new(Step::Here), told: Notify::new() }
    }

    fn step(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked for, once.
    pub(crate) fn take(&self) -> Option<BackgroundRequest> {
        let mut step = self.step();
        match std::mem::replace(&mut *step, Step::Closed) {
            Step::Asked(asked) => {
                *step = Step::Gone(asked.place.id);
                Some(asked)
            }
            other => {
                *step = other;
                None
            }
        }
    }

    /// Nobody goes there any more. A tool may have kept its context; what it asked for last is given up.
    pub(crate) fn close(&self) {
        *self.step() = Step::Closed;
    }

    /// Waits until the call wants to go.
    pub(crate) async fn asked(&self) -> BackgroundRequest {
        loop {
            if let Some(asked) = self.take() {
                return asked;
            }
            self.told.notified().await;
        }
    }
}

impl Host for InvocationHost {
    fn artifact_id(&self) -> ArtifactId {
        ArtifactId::make(&*self.ids, self.clock.now())
    }

    fn open_spool(&self, name: &str) -> Box<dyn SpoolSink> {
        self.streams.open(name)
    }

    fn progress(&self, text: &str) {
        self.words.say(text);
    }

    fn background(&self, how: Background) -> Result<TaskId, NotBackgrounded> {
        let way = &self.way_out;
        if !way.declared {
            return Err(NotBackgrounded::NotDeclared);
        }
        let mut step = way.step();
        match &*step {
            Step::Here => {}
            Step::Asked(asked) => return Ok(asked.place.id),
            Step::Gone(id) => return Ok(*id),
            Step::Closed => return Err(NotBackgrounded::Ended),
        }
        let id = TaskId::make(&*self.ids, self.clock.now());
        let live = RunningTask { cancel: way.lost.child_token(), streams: Arc::clone(&self.streams) };
        let place = way.tasks.enter(id, live).ok_or(NotBackgrounded::TooMany)?;
        *step = Step::Asked(BackgroundRequest { place, how });
        way.told.notify_one();
        Ok(id)
    }

    fn gate(&self, request: AccessRequest) -> BoxFuture<'_, Result<(), GateStop>> {
        self.inquiries.ask(request).boxed()
    }
}
