//! What a call may know of its session's shell: what the log tells, and, for a launch alone, the values of its
//! environment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use portcullis_base::{CommandId, EnvKey, SessionId, Timestamp, limits};
use portcullis_contract::Caller;
use portcullis_event::fold::{RecordedCommandEnd, Shell};
use portcullis_event::{Body, Event, SessionStatus, State};
use portcullis_secret::{Aad, SecretText};
use portcullis_store::{SessionKey, StoreError, VARIABLE, variable_id};

use crate::gate::{Gate, ScopedGate};
use crate::sessions::session::{SessionShared, load_state};
use crate::tasks::shell_facts::{SealedRow, bound_to};

/// Events read at once while an old command is looked for.
const PAGE: usize = 1_000;

/// Why a shell cannot be seen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ShellError {
    /// The same words whether there is such a session or not: they tell nothing of other agents' sessions.
    #[error("Session {session} is not available to agent {agent}")]
    NotInScope { session: SessionId, agent: String },
    #[error("{0}")]
    Store(StoreError),
}

/// The shell of one session as it stands.
#[derive(Debug, Clone)]
pub struct ShellSeen {
    pub session: SessionId,
    /// It is the caller's own: this process may run a live shell of it.
    pub own: bool,
    pub shell: Shell,
}

/// The environment of a session, opened. It prints names only.
#[derive(Clone, Default)]
pub struct Environment {
    pub values: BTreeMap<EnvKey, SecretText>,
    /// Names whose value cannot be opened: it was sealed with another key, or its row is gone.
    pub lost: Vec<String>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("values", &self.values.keys()).field("lost", &self.lost).finish()
    }
}

/// The shells of sessions of one scope. Holds no gate alive.
#[derive(Clone, Default)]
pub struct ShellBook {
    gate: ScopedGate,
}

impl Gate {
    /// The shells of its sessions.
    #[must_use]
    pub fn shells(&self) -> ShellBook {
        ShellBook { gate: ScopedGate::of(self) }
    }
}

impl ShellBook {
    /// The shell of a session that a caller may see: its own, or one of the same agent in the same workspace
    /// (agent-runtime 1.3).
    ///
    /// # Errors
    /// If it may not see it, or the store failed.
    pub async fn look(&self, caller: &Caller, wanted: Option<SessionId>) -> Result<ShellSeen, ShellError> {
        let own = self.own(caller)?;
        let Some(wanted) = wanted.filter(|wanted| *wanted != caller.session_id) else {
            let shell = own.state().shell.clone();
            return Ok(ShellSeen { session: caller.session_id, own: true, shell });
        };
        let key = SessionKey { tenant: own.key.tenant, session: wanted };
        let (other, _) = load_state(&*own.gate.store, key).await.map_err(ShellError::Store)?;
        if !akin(&own.state(), &other) {
            return Err(not_in_scope(wanted, caller));
        }
        Ok(ShellSeen { session: wanted, own: false, shell: other.shell })
    }

    /// The values of a session's environment, for the launch of a program and nothing else.
    ///
    /// # Errors
    /// If the caller's session is not held here, or the store failed.
    pub async fn environment(&self, caller: &Caller) -> Result<Environment, ShellError> {
        let own = self.own(caller)?;
        let known: Vec<(String, u64)> = own.state().shell.env().map(|(name, v)| (name.to_owned(), v)).collect();
        let mut environment = Environment::default();
        for (name, version) in known {
            match open(&own, &name, version).await? {
                Some((key, value)) => {
                    environment.values.insert(key, value);
                }
                None => environment.lost.push(name),
            }
        }
        Ok(environment)
    }

    /// The newest commands of a shell, newest first, at most `most` of them.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn history(&self, seen: &ShellSeen, most: usize) -> Result<Vec<RecordedCommandEnd>, ShellError> {
        let mut commands: Vec<RecordedCommandEnd> = seen.shell.recent().take(most).cloned().collect();
        let Some(gate) = self.gate.upgrade() else { return Ok(commands) };
        let older = seen.shell.places().skip(commands.len()).take(most.saturating_sub(commands.len()));
        for (_, seq) in older {
            let events = gate.store().read(key_of(&gate, seen), seq - 1, 1).await.map_err(ShellError::Store)?;
            commands.extend(events.first().and_then(ended));
        }
        Ok(commands)
    }

    /// One command of a shell by its id, however long ago it was.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn command(&self, seen: &ShellSeen, id: CommandId) -> Result<Option<RecordedCommandEnd>, ShellError> {
        let is = |command: &RecordedCommandEnd| command.fact.command.command_id == id;
        if let Some(found) = seen.shell.recent().find(|command| is(command)) {
            return Ok(Some(found.clone()));
        }
        let Some(gate) = self.gate.upgrade() else { return Ok(None) };
        let place = seen.shell.places().find(|(command, _)| *command == id);
        if place.is_none() && seen.shell.places().count() < limits::KNOWN_COMMANDS {
            return Ok(None);
        }
        let (mut after, most) = place.map_or((0, PAGE), |(_, seq)| (seq - 1, 1));
        loop {
            let events = gate.store().read(key_of(&gate, seen), after, most).await.map_err(ShellError::Store)?;
            let found = events.iter().filter_map(ended).find(is);
            let Some(last) = events.last().filter(|_| found.is_none() && place.is_none()) else { return Ok(found) };
            after = last.seq;
        }
    }

    /// Whether a session is offered a tool: nothing else may be suggested to it.
    #[must_use]
    pub fn offers(&self, session: SessionId, tool: &str) -> bool {
        let Some(gate) = self.gate.upgrade() else { return false };
        gate.offer(session).entries().any(|(name, _)| name.as_str() == tool)
    }

    /// The folder that commands of the caller's own session run in; `None` if nobody has changed it.
    #[must_use]
    pub fn cwd(&self, caller: &Caller) -> Option<String> {
        self.own(caller).ok()?.state().shell.cwd().map(str::to_owned)
    }

    /// Names of the environment of the caller's own session.
    #[must_use]
    pub fn env_names(&self, caller: &Caller) -> Vec<String> {
        let own = self.own(caller).map(|own| own.state().shell.env().map(|(name, _)| name.to_owned()).collect());
        own.unwrap_or_default()
    }

    /// Whether a session is over for good, by any process. Not if that cannot be seen now.
    pub async fn is_over(&self, session: SessionId) -> bool {
        let Some(gate) = self.gate.upgrade() else { return true };
        let head = gate.store().head(SessionKey { tenant: gate.tenant(), session }).await;
        matches!(head, Ok(Some(head)) if head.status == SessionStatus::Terminated)
    }

    /// The id of a command that is about to be told of.
    #[must_use]
    pub fn fresh_command(&self) -> Option<CommandId> {
        self.gate.upgrade().map(|gate| CommandId::make(&*gate.inner.ids, gate.inner.clock.now()))
    }

    /// A text as it may be shown while nothing of it is written down yet: secrets masked. Nothing, if nobody knows them
    /// any more.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        self.gate.upgrade().map(|gate| gate.scope.output_redactor.redact_text(text).into_owned()).unwrap_or_default()
    }

    /// The time of the log.
    #[must_use]
    pub fn now(&self) -> Option<Timestamp> {
        self.gate.upgrade().map(|gate| gate.inner.clock.now())
    }

    /// The caller's own session, which this process holds.
    fn own(&self, caller: &Caller) -> Result<Arc<SessionShared>, ShellError> {
        let held = self.gate.upgrade().and_then(|gate| gate.inner.held(caller.session_id));
        held.ok_or_else(|| not_in_scope(caller.session_id, caller))
    }
}

fn not_in_scope(session: SessionId, caller: &Caller) -> ShellError {
    ShellError::NotInScope { session, agent: caller.agent.clone() }
}

/// Whether two sessions are of one agent in one workspace. Sessions that no agent was defined for share none but that.
fn akin(own: &State, other: &State) -> bool {
    let of = |state: &State| (state.session.agent_id, state.session.workspace.clone());
    other.session.created && of(own) == of(other)
}

fn key_of(gate: &Gate, seen: &ShellSeen) -> SessionKey {
    SessionKey { tenant: gate.tenant(), session: seen.session }
}

fn ended(event: &Event) -> Option<RecordedCommandEnd> {
    match &*event.body_ref() {
        Body::CommandFinished(fact) => Some(RecordedCommandEnd { fact: (**fact).clone(), updated_at: event.at }),
        _ => None,
    }
}

/// The value of a name, if its row holds one that is at least as new as the log says: an older row was put back.
async fn open(own: &SessionShared, name: &str, version: u64) -> Result<Option<(EnvKey, SecretText)>, ShellError> {
    let id = variable_id(own.key.session, name);
    let row = own.gate.store.record(own.key.tenant, VARIABLE, &id).await.map_err(ShellError::Store)?;
    let row = row.and_then(|row| serde_json::from_value::<SealedRow>(row.body).ok());
    let Some(row) = row.filter(|row| row.version >= version) else { return Ok(None) };
    let bound_to = bound_to(own, name);
    let aad = Aad { tenant: own.key.tenant, name: &bound_to, version: row.version };
    let value = own.gate.sealer.open(aad, &row.sealed).ok().and_then(|value| value.to_text().ok());
    Ok(value.and_then(|value| Some((name.parse().ok()?, value))))
}
