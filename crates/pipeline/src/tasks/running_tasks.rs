//! The background tasks of a session that are at work in this process: who may stop one, what it wrote so far, and
//! when it has ended. What a task is and how it ended is in the log (`event::fold::Tasks`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{TaskId, limits};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::output::spool::Streams;
use crate::sessions::session::Session;

/// The tasks of one session.
#[derive(Clone, Default)]
pub(crate) struct TaskList {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    live: Mutex<BTreeMap<TaskId, RunningTask>>,
    one_ended: Notify,
}

/// One background task that runs in this process.
#[derive(Clone)]
pub(crate) struct RunningTask {
    pub(crate) cancel: CancellationToken,
    pub(crate) streams: Arc<Streams>,
}

impl TaskList {
    fn live(&self) -> MutexGuard<'_, BTreeMap<TaskId, RunningTask>> {
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among them; none if there are too many.
    pub(crate) fn enter(&self, id: TaskId, live: RunningTask) -> Option<TaskPlace> {
        let cancel = live.cancel.clone();
        let mut tasks = self.live();
        if tasks.len() >= limits::MAX_TASKS {
            return None;
        }
        tasks.insert(id, live);
        Some(TaskPlace { list: self.clone(), id, cancel })
    }

    pub(crate) fn get(&self, id: TaskId) -> Option<RunningTask> {
        self.live().get(&id).cloned()
    }

    pub(crate) fn cancel_all(&self) {
        self.live().values().for_each(|task| task.cancel.cancel());
    }

    /// Waits until none of those that `wanted` picks is at work any more.
    async fn gone(&self, wanted: impl Fn(TaskId) -> bool) {
        loop {
            let ended = self.inner.one_ended.notified();
            if !self.live().keys().any(|id| wanted(*id)) {
                return;
            }
            ended.await;
        }
    }

    pub(crate) async fn ended(&self, id: TaskId) {
        self.gone(|other| other == id).await;
    }

    pub(crate) async fn all_ended(&self) {
        self.gone(|_| true).await;
    }
}

/// A task's place among those at work; dropped once its end is durable, or cannot become so.
pub(crate) struct TaskPlace {
    list: TaskList,
    pub(crate) id: TaskId,
    pub(crate) cancel: CancellationToken,
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        self.list.live().remove(&self.id);
        self.list.inner.one_ended.notify_waiters();
    }
}

impl Session {
    /// Whether a background task of this session is at work in this process.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        !self.shared.tasks.live().is_empty()
    }

    /// Waits until no background task of this session is at work in this process.
    pub async fn tasks_ended(&self) {
        self.shared.tasks.all_ended().await;
    }

    /// Stops the background tasks of this session and waits until the end of each is recorded.
    pub async fn cancel_tasks(&self) {
        self.shared.tasks.cancel_all();
        self.tasks_ended().await;
    }

    /// Waits for the background tasks of this session; `cancel` ends them.
    pub async fn tasks_until(&self, cancel: &CancellationToken) {
        tokio::select! {
            biased;
            () = cancel.cancelled() => self.cancel_tasks().await,
            () = self.tasks_ended() => {}
        }
    }
}
