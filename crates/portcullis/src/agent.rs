//! Sessions that run: what people say to them, and the wakes in which a model works on it.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{AppendId, Entropy, EventId, SessionId, limits};
use portcullis_event::facts::{Block, UserInterrupt, UserMessage};
use portcullis_event::{Actor, EventBody};
use portcullis_harness::{Harness, Post, Settings, Watcher, Woken};
use portcullis_model::Model;
use portcullis_store::{Commit, StoreError};
use tokio_util::sync::CancellationToken;

use crate::RuntimeError;
use crate::notes::LiveNotes;
use crate::runtime::{Runtime, give_back};

/// What an agent is made of.
pub struct AgentParts {
    /// Who proposes.
    pub model: Arc<dyn Model>,
    /// How its wakes behave.
    pub settings: Settings,
    /// Who sees what happens while it happens.
    pub watcher: Arc<dyn Watcher>,
    /// Where the jitter of retries comes from.
    pub entropy: Arc<dyn Entropy>,
    /// What stands between commands and the machine, in one line for the model.
    pub sandbox: String,
}

/// A model at work in the sessions of a runtime.
pub struct Agent {
    runtime: Runtime,
    harness: Arc<Harness>,
}

impl Runtime {
    /// An agent that works through this runtime.
    #[must_use]
    pub fn agent(&self, parts: AgentParts) -> Agent {
        let harness = Harness {
            model: parts.model,
            settings: parts.settings,
            watcher: parts.watcher,
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            entropy: parts.entropy,
            sandbox: parts.sandbox,
            extras: Arc::new(LiveNotes { shells: self.shells.clone() }),
        };
        Agent { runtime: self.clone(), harness: Arc::new(harness) }
    }

    /// Tells a session something. It is durable when this returns, and reaches the model at the next turn boundary.
    ///
    /// # Errors
    /// If there is no such session, it is terminated, or the store fails.
    pub async fn say(&self, session: SessionId, by: &str, text: &str) -> Result<EventId, RuntimeError> {
        let message = UserMessage { content: vec![Block::text(self.gate.masked(text))] };
        self.append_input(session, by, &message).await
    }

    /// Stops what a session does: running calls are cancelled as their semantics allow, asks are closed, queued wakes
    /// cancelled.
    ///
    /// # Errors
    /// If there is no such session, it is terminated, or the store fails.
    pub async fn interrupt(&self, session: SessionId, by: &str, note: Option<&str>) -> Result<EventId, RuntimeError> {
        let note = note.map(|note| self.gate.masked(note));
        self.append_input(session, by, &UserInterrupt { note }).await
    }

    async fn append_input<B: EventBody>(
        &self,
        session: SessionId,
        by: &str,
        body: &B,
    ) -> Result<EventId, RuntimeError> {
        let actor = Actor::user(by);
        let draft = self.stamp(&actor).draft(body);
        let id = draft.id;
        let append = AppendId::make(&*self.ids, self.clock.now());
        let key = self.key(session);
        if self.gate.store().head(key).await?.is_none() {
            return Err(StoreError::NoSession(session).into());
        }
        self.gate.store().commit(Commit::client(key, append, vec![draft])).await?;
        Ok(id)
    }
}

impl Agent {
    /// The runtime it works through.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A place where a worker can run wakes of this runtime's workspace.
    #[must_use]
    pub fn post(&self) -> Post {
        Post {
            gate: self.runtime.gate.clone(),
            harness: Arc::clone(&self.harness),
            keep: Arc::new(self.runtime.clone()),
        }
    }

    /// Runs one wake of a session: everything that is pending or due, until the model is done, somebody must answer, or
    /// `cancel`.
    ///
    /// # Errors
    /// If a live process holds the session, or the log refused a write.
    pub async fn wake(&self, session: SessionId, cancel: &CancellationToken) -> Result<Woken, RuntimeError> {
        self.wake_waiting(session, limits::CALL_LEASE_WAIT, cancel).await
    }

    /// The same, waiting this long for a live holder.
    ///
    /// # Errors
    /// If a live process holds the session, or the log refused a write.
    pub async fn wake_waiting(
        &self,
        session: SessionId,
        wait: Duration,
        cancel: &CancellationToken,
    ) -> Result<Woken, RuntimeError> {
        let held = self.runtime.claim(session, wait).await?;
        let woken = self.harness.wake(&held, cancel).await;
        give_back(held).await;
        Ok(woken?)
    }
}
