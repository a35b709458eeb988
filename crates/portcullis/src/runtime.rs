//! The runtime: sessions, and calls through the gate.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_agent::setup::{Environment, Setup};
use portcullis_base::{AppendId, Digest, LocationId, SessionId, ShellId, limits};
use portcullis_contract::ToolOrigin;
use portcullis_event::facts::{CustomTool, SessionCreated, ShellClosed};
use portcullis_event::{Actor, Stamp};
use portcullis_pipeline::{Gate, Offer, Opened, Placement, Registrar, RegistrationGuard, Session};
use portcullis_sandbox::MountTable;
use portcullis_store::{Commit, LeaseOwner, SessionKey, StoreError};
use portcullis_tools::LeftBehind;
use tokio_util::sync::CancellationToken;

use crate::RuntimeError;
use crate::build::Process;
use crate::builder::RuntimeBuilder;
use crate::replies::Approver;
use crate::setup::{ImposedSetup, SettledSetup, content};

/// How often a held lease is looked at again.
pub(crate) const LEASE_POLL: Duration = Duration::from_millis(50);

/// Tools, rules, a store and a gate between them.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) gate: Gate,
    pub(crate) process: Process,
    pub(crate) location: LocationId,
    #[expect(dead_code, reason = "held: tools are registered while a guard lives")]
    pub(crate) guards: Arc<Vec<RegistrationGuard>>,
    pub(crate) owner: LeaseOwner,
    pub(crate) approver: Option<Approver>,
    pub(crate) workspace: Option<PathBuf>,
    /// What sessions run as that it makes.
    pub(crate) setup: Arc<Setup>,
    /// What its commands really get.
    pub(crate) environment: Environment,
    pub(crate) setup_hash: Digest,
    /// What of it sessions get that it takes up.
    pub(crate) imposes: ImposedSetup,
    /// The setup of sessions that differ from it in what is their own.
    pub(crate) settled: Arc<Mutex<HashMap<SessionId, SettledSetup>>>,
    /// What its file tools see; none without a workspace.
    pub(crate) mounts: Option<Arc<MountTable>>,
    /// The persistent shells of its sessions; none without a workspace.
    pub(crate) shells: Option<portcullis_tools::Shells>,
}

impl Runtime {
    /// Begins a runtime.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::new()
    }

    /// Begins a runtime in the same process: it shares the store, the keys, the registry, the queues and the bounds of this
    /// one, and has its own folder, rules, tools and principal. What the builder says of clock, randomness, store, sealing
    /// key and quota counts for nothing there.
    pub fn beside(&self) -> RuntimeBuilder {
        RuntimeBuilder::new().joining(self)
    }

    /// The gate itself.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The folder that is mounted at `/workspace`.
    #[must_use]
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// The right to register tools for this workspace, for plugins.
    #[must_use]
    pub fn registrar(&self) -> Registrar {
        self.gate.registry().registrar(Placement::Location(self.location), ToolOrigin::Application)
    }

    /// The right to register built-ins of its own scope.
    pub(crate) fn builtin(&self) -> Registrar {
        self.gate.registry().registrar(Placement::Toolset(self.gate.toolset()), ToolOrigin::Builtin)
    }

    /// What would be offered to a session now.
    #[must_use]
    pub fn offer(&self, session: SessionId) -> Arc<Offer> {
        self.gate.offer(session)
    }

    /// A new session.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn create_session(&self, name: &str) -> Result<SessionId, StoreError> {
        let session = SessionId::make(&*self.process.ids, self.process.clock.now());
        self.create_session_as(session, name).await?;
        Ok(session)
    }

    /// A new session with tools that the caller runs itself: the model sees them in its menu, a call of one pauses the
    /// session (`requires_action`, with the id of its `agent.custom_tool_use`), and [`Runtime::answer`] gives its result.
    ///
    /// # Errors
    /// If a declaration cannot be offered, or takes the name of another tool; if the store fails. Nothing is made then.
    pub async fn create_session_with(
        &self,
        name: &str,
        custom_tools: &[CustomTool],
    ) -> Result<SessionId, RuntimeError> {
        self.create_session_by(name, &Setup { custom_tools: custom_tools.to_vec(), ..Setup::clone(&self.setup) }).await
    }

    /// A new session that runs as `setup`, which is [`Runtime::setup`] with a model, a phase or tools of the client.
    ///
    /// # Errors
    /// As [`Runtime::create_session_with`].
    pub async fn create_session_by(&self, name: &str, setup: &Setup) -> Result<SessionId, RuntimeError> {
        let session = SessionId::make(&*self.process.ids, self.process.clock.now());
        let offer = self.offer(session);
        for tool in portcullis_pipeline::custom_tools(&setup.custom_tools)?.keys() {
            let ours =
                portcullis_tools::is_built_in(tool.as_str()) || tool.as_str() == portcullis_harness::directive::TOOL;
            if offer.knows(tool.as_str()) || ours {
                return Err(RuntimeError::NameTaken(tool.clone()));
            }
        }
        self.create(session, name, setup).await?;
        Ok(session)
    }

    /// A new session with an id of the caller's choosing; one that exists already is left alone.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn create_session_as(&self, session: SessionId, name: &str) -> Result<(), StoreError> {
        self.create(session, name, &self.setup).await
    }

    async fn create(&self, session: SessionId, name: &str, setup: &Setup) -> Result<(), StoreError> {
        let actor = Actor::system();
        let setup = self.masked_setup(setup);
        let content = content(&setup);
        let created = SessionCreated {
            agent_id: None,
            agent_version: 0,
            environment_id: None,
            parent_session_id: None,
            root_session_id: session,
            depth: 0,
            name: Some(self.gate.masked(name)),
            tags: Vec::new(),
            config_hash: content.sha256,
            has_setup: true,
            workspace: self.workspace.as_deref().map(|w| w.display().to_string()),
            custom_tools: setup.custom_tools,
        };
        let draft = self.stamp(&actor).draft(&created);
        let append = AppendId::make(&*self.process.ids, self.process.clock.now());
        let mut commit = Commit::client(self.key(session), append, vec![draft]);
        commit.blobs = vec![content];
        match self.gate.store().commit(commit).await {
            Ok(_) | Err(StoreError::SessionExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A client's tool as it may be written: its definition is a text like any other (L69).
    pub(crate) fn masked_tool(&self, tool: &CustomTool) -> CustomTool {
        let mut input_schema = tool.input_schema.clone();
        self.gate.mask(&mut input_schema);
        CustomTool { name: tool.name.clone(), description: self.gate.masked(&tool.description), input_schema }
    }

    pub(crate) fn stamp<'a>(&'a self, actor: &'a Actor) -> Stamp<'a> {
        Stamp { ids: &*self.process.ids, clock: &*self.process.clock, actor, turn_id: None, wake_id: None }
    }

    pub(crate) fn key(&self, session: SessionId) -> SessionKey {
        SessionKey { tenant: self.gate.tenant(), session }
    }

    /// Claims a session for the wake that comes next, so that nobody else takes up what is said to it until then. It is
    /// given back after that wake, or with [`Runtime::shutdown`].
    ///
    /// # Errors
    /// If a live process holds it for longer than a call waits, or the store fails.
    pub async fn hold(&self, session: SessionId) -> Result<(), RuntimeError> {
        let held = self.claim(session, limits::CALL_LEASE_WAIT).await?;
        self.held().insert(session, held);
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<SessionId, Session>> {
        // A map is whole between two of its changes.
        self.process.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a session, waiting a little for a live holder.
    pub(crate) async fn claim(&self, session: SessionId, wait: Duration) -> Result<Session, RuntimeError> {
        if let Some(held) = self.held().remove(&session) {
            return Ok(held);
        }
        let give_up = self.process.clock.monotonic() + wait;
        loop {
            match self.open(session).await? {
                Opened::Ready(session) => return Ok(session),
                Opened::Held(owner) if self.process.clock.monotonic() >= give_up => {
                    return Err(RuntimeError::Held(owner));
                }
                Opened::Held(_) => tokio::time::sleep(LEASE_POLL).await,
            }
        }
    }

    /// Takes a session up: recovery, then every answered ask. What was moved on is returned.
    ///
    /// # Errors
    /// If a live process holds it, or the store fails.
    pub async fn attend(&self, session: SessionId) -> Result<Vec<portcullis_pipeline::Attended>, RuntimeError> {
        let held = self.claim(session, limits::CALL_LEASE_WAIT).await?;
        let attended = held.attend().await;
        give_back(held).await;
        Ok(attended?)
    }

    /// Waits for calls in flight, then closes the shells of its sessions. Gives back what a person must still be told: what
    /// processes of a shell made after its last command, and something outside of the sandbox would run. The log of their
    /// session tells it as well, and so does its next ask.
    pub async fn shutdown(&self) -> Vec<(SessionId, String)> {
        let held = std::mem::take(&mut *self.held());
        for session in held.into_values() {
            give_back(session).await;
        }
        self.gate.shutdown().await;
        let left = match &self.shells {
            Some(shells) => shells.shutdown().await,
            None => Vec::new(),
        };
        let mut told = Vec::new();
        for LeftBehind { session, shell, warnings } in left {
            told.extend(warnings.iter().map(|warning| (session, warning.clone())));
            let masked = warnings.iter().map(|warning| self.gate.masked(warning)).collect();
            if let Err(error) = self.record_left(session, shell, masked).await {
                told.push((session, format!("the log of the session does not tell this: {error}")));
            }
        }
        told
    }

    /// Not under the session's lease: whoever holds it by now goes on, and reads this.
    async fn record_left(&self, session: SessionId, shell: ShellId, warnings: Vec<String>) -> Result<(), StoreError> {
        let closed = ShellClosed { shell_id: shell, reason: "closed".to_owned(), warnings };
        let actor = Actor::system();
        let draft = self.stamp(&actor).draft(&closed);
        let append = AppendId::make(&*self.process.ids, self.process.clock.now());
        self.gate.store().commit(Commit::client(self.key(session), append, vec![draft])).await?;
        Ok(())
    }
}

/// The same once its background tasks have ended, which `cancel` makes them.
pub(crate) async fn give_back_until(held: Session, cancel: &CancellationToken) {
    held.tasks_until(cancel).await;
    give_back(held).await;
}

/// Lets a session go. What fails here changes nothing of what was settled, so it is no error of a call.
pub(crate) async fn give_back(held: Session) {
    let session = held.key().session;
    if let Err(error) = held.release().await {
        tracing::warn!(%session, "the session was not given back properly: {error}");
    }
}
