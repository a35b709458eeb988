//! The work left to do: a stack that several threads take from, in about the order of paths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::entry::WalkDir;
use super::list::Item;
use crate::Kind;

/// Entries that one thread takes at a time: a directory of any size is shared by all.
const BATCH: usize = 32;

/// A thread that waits for work looks this often whether the walk was stopped.
const LOOK: Duration = Duration::from_millis(20);

pub(super) enum Task {
    /// A directory to go into: kept by name, so that what waits holds no handle of its own.
    Dir(Arc<WalkDir>, Item),
    /// Entries that are no directories.
    Entries(Arc<WalkDir>, Vec<Item>),
}

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stack: Vec<Task>,
    /// Tasks taken and not yet done; they may add others.
    busy: usize,
}

/// A task that counts as under way until this is dropped, by a panic even.
pub(super) struct TakenTask<'q> {
    queue: &'q Queue,
    pub(super) task: Task,
}

impl Queue {
    pub(super) fn new(stack: Vec<Task>) -> Self {
        Self { state: Mutex::new(State { stack, busy: 0 }), changed: Condvar::new() }
    }

    /// The next task; `None` when all is done or the walk was stopped.
    pub(super) fn next(&self, stop: &AtomicBool) -> Option<TakenTask<'_>> {
        let mut state = self.lock();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(task) = state.stack.pop() {
                state.busy += 1;
                return Some(TakenTask { queue: self, task });
            }
            if state.busy == 0 {
                return None;
            }
            state = match self.changed.wait_timeout(state, LOOK) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    pub(super) fn add(&self, tasks: Vec<Task>) {
        if tasks.is_empty() {
            return;
        }
        self.lock().stack.extend(tasks);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenTask<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.busy -= 1;
        if state.busy == 0 && state.stack.is_empty() {
            self.queue.changed.notify_all();
        }
    }
}

/// The entries of a directory as tasks, the last of them first: a stack gives them back in order.
pub(super) fn tasks(dir: &Arc<WalkDir>, items: Vec<Item>) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for item in items {
        if item.kind == Kind::Directory {
            tasks.push(Task::Dir(Arc::clone(dir), item));
        } else if let Some(Task::Entries(_, batch)) = tasks.last_mut()
            && batch.len() < BATCH
        {
            batch.push(item);
        } else {
            tasks.push(Task::Entries(Arc::clone(dir), vec![item]));
        }
    }
    tasks.reverse();
    tasks
}
