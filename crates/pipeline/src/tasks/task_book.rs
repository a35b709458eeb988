//! What a session's own calls may see and do of its background tasks: the runtime's side of `task_output`, `task_wait`
//! and `task_cancel`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portcullis_base::{SessionId, TaskId};
use portcullis_event::facts::TaskCompleted;
use portcullis_event::{Body, Event};
use portcullis_store::{SessionKey, Store, StoreError};

use crate::gate::{Gate, GateInner};
use crate::output::spool::SoFar;
use crate::sessions::session::{SessionShared, load_state};

/// Why a task cannot be seen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError {
    #[error("there is no task {0} of this session")]
    NotFound(TaskId),
    #[error("{0}")]
    Store(StoreError),
}

impl Gate {
    /// How a task of a session ended, from the log, by whichever process it ran. `None`: there is no such task, or no end
    /// of it.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn task_end(&self, session: SessionId, task: TaskId) -> Result<Option<TaskCompleted>, StoreError> {
        let key = SessionKey { tenant: self.scope.tenant, session };
        let (state, _) = load_state(&*self.inner.store, key).await?;
        match state.tasks.get(task).and_then(|task| task.end) {
            Some(end) => read_end(&*self.inner.store, key, end.seq).await,
            None => Ok(None),
        }
    }
}

/// The end that stands at `seq`; `None` if its words were erased.
async fn read_end(store: &dyn Store, key: SessionKey, seq: u64) -> Result<Option<TaskCompleted>, StoreError> {
    let events = store.read(key, seq - 1, 1).await?;
    Ok(match events.first().map(Event::body) {
        Some(Body::TaskCompleted(fact)) => Some(*fact),
        _ => None,
    })
}

/// A task as it stands.
#[derive(Debug, Clone)]
pub struct TaskSeen {
    pub task_id: TaskId,
    /// The tool it is a call of.
    pub tool: String,
    pub standing: TaskStanding,
}

/// How far a task is.
#[derive(Debug, Clone)]
pub enum TaskStanding {
    /// It is at work, and wrote this so far.
    Running(Vec<SoFar>),
    Ended(Box<TaskCompleted>),
    /// The log has no end of it, and this process does not run it: the next who attends to the session says so there.
    Lost,
}

/// The tasks of sessions that this process holds. Holds no gate alive.
#[derive(Clone, Default)]
pub struct TaskBook {
    gate: Weak<GateInner>,
}

impl TaskBook {
    pub(crate) fn new(gate: Weak<GateInner>) -> Self {
        Self { gate }
    }

    /// A task of this session. That of another one is not found.
    ///
    /// # Errors
    /// If there is none, or the store failed.
    pub async fn look(&self, session: SessionId, task: TaskId) -> Result<TaskSeen, TaskError> {
        let shared = self.owner(session, task)?;
        look(&shared, task).await
    }

    /// The same once it has ended, or after `most`.
    ///
    /// # Errors
    /// If there is none, or the store failed.
    pub async fn wait(&self, session: SessionId, task: TaskId, most: Duration) -> Result<TaskSeen, TaskError> {
        let shared = self.owner(session, task)?;
        // Out of time is no fault: the look tells.
        let _ = tokio::time::timeout(most, shared.tasks.ended(task)).await;
        look(&shared, task).await
    }

    /// Stops it and waits until its end is recorded. One that has ended already stays as it is.
    ///
    /// # Errors
    /// If there is none, or the store failed.
    pub async fn cancel(&self, session: SessionId, task: TaskId) -> Result<TaskSeen, TaskError> {
        let shared = self.owner(session, task)?;
        if let Some(live) = shared.tasks.get(task) {
            live.cancel.cancel();
        }
        shared.tasks.ended(task).await;
        look(&shared, task).await
    }

    fn owner(&self, session: SessionId, task: TaskId) -> Result<Arc<SessionShared>, TaskError> {
        let found = self.gate.upgrade().and_then(|gate| gate.held(session));
        found.filter(|shared| shared.state().tasks.get(task).is_some()).ok_or(TaskError::NotFound(task))
    }
}

async fn look(shared: &SessionShared, id: TaskId) -> Result<TaskSeen, TaskError> {
    // In this order: one that ends meanwhile has its end in the state.
    let live = shared.tasks.get(id);
    let Some(task) = shared.state().tasks.get(id).cloned() else { return Err(TaskError::NotFound(id)) };
    let standing = match (task.end, live) {
        (Some(end), _) => {
            let fact = read_end(&*shared.gate.store, shared.key, end.seq).await.map_err(TaskError::Store)?;
            fact.map_or(TaskStanding::Lost, |fact| TaskStanding::Ended(Box::new(fact)))
        }
        (None, Some(live)) => TaskStanding::Running(live.streams.so_far()),
        (None, None) => TaskStanding::Lost,
    };
    Ok(TaskSeen { task_id: id, tool: task.tool, standing })
}
