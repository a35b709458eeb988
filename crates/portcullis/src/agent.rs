//! Sessions that run: what people say to them, and the wakes in which a model works on it.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{AppendId, AskId, Entropy, EventId, SessionId, limits};
use portcullis_event::facts::{Block, UserInterrupt, UserMessage};
use portcullis_event::{Actor, AskState, EventBody};
use portcullis_harness::directive::terminal_tool;
use portcullis_harness::{Harness, KnownTalks, Post, Settings, Watcher, Woken};
use portcullis_model::Model;
use portcullis_pipeline::{Halt, RegistrationGuard, Session};
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
#[derive(Clone)]
pub struct Agent {
    runtime: Runtime,
    harness: Arc<Harness>,
    /// Offers the call that ends a wake, while there is this agent.
    _terminal: Option<Arc<RegistrationGuard>>,
}

impl Runtime {
    /// An agent that works through this runtime.
    #[must_use]
    pub fn agent(&self, parts: AgentParts) -> Agent {
        let terminal = parts.settings.directive.then(|| self.offer_terminal()).flatten();
        let harness = Harness {
            model: parts.model,
            settings: parts.settings,
            watcher: parts.watcher,
            clock: Arc::clone(&self.process.clock),
            ids: Arc::clone(&self.process.ids),
            entropy: parts.entropy,
            sandbox: parts.sandbox,
            extras: Arc::new(LiveNotes { shells: self.shells.clone() }),
            known: KnownTalks::default(),
        };
        Agent { runtime: self.clone(), harness: Arc::new(harness), _terminal: terminal }
    }

    /// Offers the directive as a call (H30). Where it cannot be, the block in a reply is all there is.
    fn offer_terminal(&self) -> Option<Arc<RegistrationGuard>> {
        let tools = terminal_tool().map_err(|why| why.to_string());
        match tools.and_then(|tools| self.builtin().register(tools).map_err(|why| why.to_string())) {
            Ok(guard) => Some(Arc::new(guard)),
            Err(why) => {
                tracing::warn!("a wake cannot be ended by a call: {why}");
                None
            }
        }
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
    /// cancelled. From here on what it waited for takes no answer (agent-runtime 3.3).
    ///
    /// # Errors
    /// If there is no such session, it is terminated, or the store fails.
    pub async fn interrupt(&self, session: SessionId, by: &str, note: Option<&str>) -> Result<EventId, RuntimeError> {
        let note = note.map(|note| self.gate.masked(note));
        self.append_input(session, by, &UserInterrupt { note }).await
    }

    /// Closes the asks of a session that was interrupted, and settles their calls. A process that holds the session does
    /// that by itself, and so does the next wake; this is for a session that nobody works on. Gives the asks it closed.
    ///
    /// # Errors
    /// If a live process holds the session, or the store fails.
    pub async fn withdraw_asks(&self, session: SessionId) -> Result<Vec<AskId>, RuntimeError> {
        let held = self.claim(session, Duration::ZERO).await?;
        let stopped = held.with_state(|state| {
            let asks = state.intents.open().filter_map(|intent| state.asks.get(intent.ask_id?));
            let stopped = asks.filter(|ask| matches!(ask.state, AskState::Pending | AskState::Answered));
            let stopped = stopped.filter(|ask| state.inbox.interrupted_after(ask.seq));
            stopped.map(|ask| ask.ask_id).collect::<Vec<_>>()
        });
        let mut closed = Ok(stopped.clone());
        for ask in stopped {
            if let Err(halt) = held.supersede(ask).await {
                closed = Err(halt.into());
                break;
            }
        }
        give_back(held).await;
        closed
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
        let append = AppendId::make(&*self.process.ids, self.process.clock.now());
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
        Post { gate: self.runtime.gate.clone(), harness: Arc::clone(&self.harness), keep: Arc::new(self.clone()) }
    }

    /// Runs one wake of a session: everything that is pending or due, until the model is done, somebody must answer, or
    /// `cancel`. While a background task of it goes on, what comes is taken up by further wakes; the last one counts.
    ///
    /// # Errors
    /// If a live process holds the session, or the log refused a write.
    pub async fn wake(&self, session: SessionId, cancel: &CancellationToken) -> Result<Woken, RuntimeError> {
        self.wake_waiting(session, limits::CALL_LEASE_WAIT, cancel).await
    }

    /// The same for somebody who wants it now: a try that waits for its time is made at once, and what was given up is
    /// tried again (agent-runtime 5.7).
    ///
    /// # Errors
    /// As [`Agent::wake`].
    pub async fn wake_now(&self, session: SessionId, cancel: &CancellationToken) -> Result<Woken, RuntimeError> {
        let held = self.runtime.claim(session, limits::CALL_LEASE_WAIT).await?;
        let woken = self.harness.wake_now(&held, cancel).await;
        self.see_through_tasks(held, woken, cancel).await
    }

    /// As [`Agent::wake`], waiting this long for a live holder.
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
        self.see_through_tasks(held, woken, cancel).await
    }

    /// What comes while background tasks of a wake go on is heard, and then the session is given back.
    async fn see_through_tasks(
        &self,
        held: Session,
        mut woken: Result<Woken, Halt>,
        cancel: &CancellationToken,
    ) -> Result<Woken, RuntimeError> {
        while woken.is_ok() && self.harness.goes_on(&held, cancel).await {
            match self.harness.wake(&held, cancel).await {
                Ok(Woken::Idle) => {}
                next => woken = next,
            }
        }
        // Nobody interrupted it: what it records cannot be relied on any more.
        let lost = held.lost_by();
        give_back(held).await;
        match lost {
            Some(fault) if woken.is_ok() => Err(fault.into()),
            _ => Ok(woken?),
        }
    }
}
