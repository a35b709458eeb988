//! Background tasks: calls whose observation came before their end. One that ended leaves a line that says where
//! its end stands; the log has the rest.

use std::collections::BTreeMap;

use portcullis_base::{IntentId, InvocationId, TaskId, TurnId};
use serde::{Deserialize, Serialize};

use crate::facts::Exit;
use crate::fold::Intents;
use crate::{Body, Event};

/// One task of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task_id: TaskId,
    pub intent_id: IntentId,
    pub tool: String,
    /// `None`: it ended.
    pub open: Option<OpenTask>,
    pub end: Option<TaskEnd>,
}

/// What recovery must know of a task that has no end yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenTask {
    pub invocation_id: InvocationId,
    pub turn_id: Option<TurnId>,
    /// Scheduler keys that it still holds.
    pub keys: Vec<String>,
    pub wake: bool,
}

/// How a task ended, and the event that tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    pub seq: u64,
    pub exit: Exit,
}

/// The tasks of a session by id, which is in order of their beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    tasks: BTreeMap<TaskId, Task>,
}

impl Tasks {
    /// `intents` are those before this event: the observation that settles the call comes after its backgrounding.
    pub(super) fn apply(&mut self, event: &Event, body: &Body, intents: &Intents) {
        match body {
            Body::InvocationBackgrounded(fact) => {
                let Some(intent) = intents.open().find(|intent| intent.invocation_id == Some(fact.invocation_id))
                else {
                    return;
                };
                let keys = if fact.keys_freed { Vec::new() } else { intent.keys.clone() };
                let task = Task {
                    task_id: fact.task_id,
                    intent_id: intent.intent_id,
                    tool: intent.tool.clone(),
                    open: Some(OpenTask {
                        invocation_id: fact.invocation_id,
                        turn_id: intent.turn_id,
                        keys,
                        wake: fact.wake,
                    }),
                    end: None,
                };
                self.tasks.insert(fact.task_id, task);
            }
            Body::TaskCompleted(fact) => {
                if let Some(task) = self.tasks.get_mut(&fact.task_id)
                    && task.open.take().is_some()
                {
                    task.end = Some(TaskEnd { seq: event.seq, exit: fact.exit });
                }
            }
            _ => {}
        }
    }

    /// One task of this session.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    /// The task that a call became.
    #[must_use]
    pub fn of(&self, intent: IntentId) -> Option<&Task> {
        self.tasks.values().find(|task| task.intent_id == intent)
    }

    /// The task that holds exactly this key.
    #[must_use]
    pub fn holding(&self, key: &str) -> Option<TaskId> {
        self.open().find(|(_, open)| open.keys.iter().any(|held| held == key)).map(|(task, _)| task.task_id)
    }

    /// Tasks without an end, oldest first.
    pub fn open(&self) -> impl Iterator<Item = (&Task, &OpenTask)> {
        self.tasks.values().filter_map(|task| task.open.as_ref().map(|open| (task, open)))
    }
}
