//! What survives of a session's shell (agent-runtime 2.10): its folder, the names of its environment, the persistent
//! shell, and the newest commands. Values of the environment are not known here.

use std::collections::{BTreeMap, VecDeque};

use portcullis_base::{CommandId, ShellId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::facts::{CommandFinished, SHELL_SOURCE};
use crate::{Body, Event};

/// Whether a persistent shell is there, as far as the log knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellStatus {
    Active,
    Closed,
}

/// The newest persistent shell of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersistentShell {
    pub shell_id: ShellId,
    pub shell_path: String,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_command_at: Option<Timestamp>,
    pub command_count: u64,
    pub status: ShellStatus,
}

/// A command, and when its end was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedCommandEnd {
    #[serde(flatten)]
    pub fact: CommandFinished,
    pub updated_at: Timestamp,
}

/// The shell of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    cwd: Option<String>,
    updated_at: Option<Timestamp>,
    /// The version of each name's value.
    env: BTreeMap<String, u64>,
    /// The highest version ever given: none is given twice, so that an old sealed value is never taken for a new one.
    newest_version: u64,
    persistent: Option<PersistentShell>,
    /// Newest first.
    recent: VecDeque<RecordedCommandEnd>,
    /// Where the newest commands stand in the log, oldest first.
    places: VecDeque<(CommandId, u64)>,
}

impl Shell {
    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        // Only the holder of the lease has looked whether there is such a folder, and has sealed what it says is set.
        if event.fence.is_none() {
            return;
        }
        let at = event.at;
        match body {
            Body::SessionUpdated(changed) => {
                if let Some(cwd) = &changed.shell_cwd {
                    self.set_cwd(cwd, at);
                }
            }
            Body::VariableSet(set) if set.source == SHELL_SOURCE => self.set_env(&set.name, set.version, at),
            Body::VariableDeleted(gone) if gone.source == SHELL_SOURCE => self.unset_env(&gone.name, at),
            Body::ShellOpened(opened) => {
                self.persistent = Some(PersistentShell {
                    shell_id: opened.shell_id,
                    shell_path: opened.shell_path.clone(),
                    started_at: at,
                    updated_at: at,
                    last_command_at: None,
                    command_count: 0,
                    status: ShellStatus::Active,
                });
                self.updated_at = Some(at);
                if let Some(cwd) = &opened.cwd {
                    self.set_cwd(cwd, at);
                }
            }
            Body::ShellClosed(closed) => {
                self.updated_at = Some(at);
                if let Some(shell) = self.persistent.as_mut().filter(|shell| shell.shell_id == closed.shell_id) {
                    shell.status = ShellStatus::Closed;
                    shell.updated_at = at;
                }
            }
            Body::CommandFinished(finished) => self.finished(event, finished),
            _ => {}
        }
    }

    fn finished(&mut self, event: &Event, fact: &CommandFinished) {
        self.updated_at = Some(event.at);
        let ran_in = self.persistent.as_mut().filter(|shell| Some(shell.shell_id) == fact.shell_id);
        if let Some(shell) = ran_in {
            shell.command_count += 1;
            shell.last_command_at = Some(event.at);
            shell.updated_at = event.at;
        }
        self.recent.push_front(RecordedCommandEnd { fact: fact.clone(), updated_at: event.at });
        self.recent.truncate(limits::RECENT_COMMANDS);
        self.places.push_back((fact.command.command_id, event.seq));
        if self.places.len() > limits::KNOWN_COMMANDS {
            self.places.pop_front();
        }
    }

    /// As the log will have it once this is in it: what a call tells of its own change.
    pub fn set_cwd(&mut self, cwd: &str, at: Timestamp) {
        self.cwd = Some(cwd.to_owned());
        self.updated_at = Some(at);
    }

    /// The same for a name that has a value.
    pub fn set_env(&mut self, name: &str, version: u64, at: Timestamp) {
        self.env.insert(name.to_owned(), version);
        self.newest_version = self.newest_version.max(version);
        self.updated_at = Some(at);
    }

    /// The same for a name that has none any more.
    pub fn unset_env(&mut self, name: &str, at: Timestamp) {
        self.env.remove(name);
        self.updated_at = Some(at);
    }

    /// The folder that commands run in; `None`: nobody has changed it.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// When anything of this changed last.
    #[must_use]
    pub fn updated_at(&self) -> Option<Timestamp> {
        self.updated_at
    }

    /// The names of the environment with the version of each value, by name.
    pub fn env(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.env.iter().map(|(name, version)| (name.as_str(), *version))
    }

    /// The version of a name's value, if it has one.
    #[must_use]
    pub fn env_version(&self, name: &str) -> Option<u64> {
        self.env.get(name).copied()
    }

    /// The version of the next value.
    #[must_use]
    pub fn next_version(&self) -> u64 {
        self.newest_version.saturating_add(1)
    }

    /// The newest persistent shell. One that the log calls active may have died with its process.
    #[must_use]
    pub fn persistent(&self) -> Option<&PersistentShell> {
        self.persistent.as_ref()
    }

    /// The newest commands, newest first, at most [`limits::RECENT_COMMANDS`].
    pub fn recent(&self) -> impl Iterator<Item = &RecordedCommandEnd> {
        self.recent.iter()
    }

    /// Where the newest commands stand in the log, newest first, at most [`limits::KNOWN_COMMANDS`].
    pub fn places(&self) -> impl Iterator<Item = (CommandId, u64)> {
        self.places.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_base::{AppendId, Digest, EventId};

    use super::*;
    use crate::facts::{CommandRecord, SessionUpdated, ShellClosed, ShellOpened, VariableDeleted, VariableSet};
    use crate::{Actor, DecodedBody, EventBody, State};

    const SHELL: ShellId = ShellId::from_u128(1);

    /// A log in the making. Folds look at neither ids nor hashes.
    #[derive(Default)]
    struct Log(Vec<Event>);

    impl Log {
        fn worker<B: EventBody>(self, body: &B) -> Self {
            self.by(body, Some(1))
        }

        fn by<B: EventBody>(mut self, body: &B, fence: Option<u64>) -> Self {
            let seq = self.0.len() as u64 + 1;
            let payload = body.to_payload();
            self.0.push(Event {
                seq,
                id: EventId::from_u128(u128::from(seq)),
                kind: B::KIND,
                at: at(seq),
                actor: Actor::system(),
                worker_id: None,
                fence,
                wake_id: None,
                turn_id: None,
                session_thread_id: None,
                append_id: AppendId::from_u128(1),
                v: B::VERSION,
                payload_hash: Digest::of(payload.as_bytes()),
                payload: Some(payload.into()),
                prev_hash: Digest::of(b""),
                hash: Digest::of(b""),
                typed: DecodedBody::default(),
            });
            self
        }

        fn shell(&self) -> Shell {
            State::fold(&self.0).shell
        }
    }

    fn at(seq: u64) -> Timestamp {
        Timestamp::from_micros(i64::try_from(seq).expect("small"))
    }

    fn finished(n: u128, shell_id: Option<ShellId>) -> CommandFinished {
        let command = CommandRecord {
            command_id: CommandId::from_u128(n),
            command: "shell".to_owned(),
            args: vec![format!("echo {n}")],
            cwd: "/workspace".to_owned(),
            exit_code: Some(0),
            timed_out: false,
            duration_ms: 1,
            stdout_preview: None,
            stderr_preview: None,
        };
        let cwd = Some("/workspace/old".to_owned());
        CommandFinished { command, shell_id, cwd, env_keys: Vec::new(), stdout_ref: None, stderr_ref: None }
    }

    fn set(name: &str, source: &str, version: u64) -> VariableSet {
        let (name, kind, source) = (name.to_owned(), "text".to_owned(), source.to_owned());
        VariableSet { name, kind, source, version, invocation_id: None }
    }

    fn deleted(name: &str, version: u64) -> VariableDeleted {
        let (name, kind, source) = (name.to_owned(), "text".to_owned(), SHELL_SOURCE.to_owned());
        VariableDeleted { name, kind, source, version, invocation_id: None }
    }

    fn moved(cwd: &str) -> SessionUpdated {
        SessionUpdated::moved(cwd.to_owned())
    }

    #[test]
    fn check20_folder_and_names_are_what_the_holder_last_said() {
        let log = Log::default().worker(&moved("/workspace/a")).worker(&set("A", SHELL_SOURCE, 1));
        let log = log.worker(&set("B", SHELL_SOURCE, 2)).worker(&deleted("B", 2)).worker(&finished(1, None));
        let shell = log.shell();
        assert_eq!(shell.cwd(), Some("/workspace/a"), "what a command tells of the folder changes none");
        assert_eq!(shell.env().collect::<Vec<_>>(), [("A", 1)]);
        assert_eq!(shell.next_version(), 3, "a version is never given twice");
        assert_eq!(shell.updated_at(), Some(at(5)));
        // Neither a client nor another kind of variable is the shell.
        let log = log.by(&moved("/etc"), None).by(&set("X", SHELL_SOURCE, 9), None).worker(&set("Y", "thread", 9));
        assert_eq!(log.shell(), shell);
    }

    #[test]
    fn a_persistent_shell_counts_its_own_commands_and_ends_once() {
        let (shell_path, cwd) = ("/bin/bash".to_owned(), Some("/workspace".to_owned()));
        let opened = ShellOpened { shell_id: SHELL, shell_path, cwd };
        let closed =
            |id| ShellClosed { shell_id: ShellId::from_u128(id), reason: "closed".to_owned(), warnings: Vec::new() };
        let log = Log::default().worker(&opened).worker(&finished(1, Some(SHELL))).worker(&finished(2, None));
        let log = log.worker(&closed(7));
        let state = log.shell().persistent().cloned().expect("it is known");
        assert_eq!((state.status, state.command_count), (ShellStatus::Active, 1));
        assert_eq!((state.started_at, state.last_command_at, state.updated_at), (at(1), Some(at(2)), at(2)));
        let state = log.worker(&closed(1)).shell().persistent().cloned().expect("it is known");
        assert_eq!((state.status, state.updated_at), (ShellStatus::Closed, at(5)));
    }

    #[test]
    fn only_the_newest_commands_are_held_and_the_places_of_more() {
        let many = limits::KNOWN_COMMANDS as u128 + 3;
        let log = (1..=many).fold(Log::default(), |log, n| log.worker(&finished(n, None)));
        let shell = log.shell();
        let recent: Vec<u128> = shell.recent().map(|c| c.fact.command.command_id.as_u128()).collect();
        assert_eq!(recent, [many, many - 1, many - 2, many - 3, many - 4]);
        let places: Vec<(CommandId, u64)> = shell.places().collect();
        assert_eq!(places.len(), limits::KNOWN_COMMANDS);
        assert!(places.iter().all(|(id, seq)| id.as_u128() == u128::from(*seq)));
        assert_eq!(places[0].0.as_u128(), many);
    }

    #[test]
    fn l71_every_prefix_folds_to_what_a_snapshot_of_it_holds() {
        let (shell_path, cwd) = ("/bin/bash".to_owned(), Some("/workspace".to_owned()));
        let opened = ShellOpened { shell_id: SHELL, shell_path, cwd };
        let log = Log::default().worker(&opened).worker(&set("A", SHELL_SOURCE, 1)).worker(&finished(1, Some(SHELL)));
        let log = log.worker(&moved("/workspace/b")).worker(&deleted("A", 1)).worker(&finished(2, None));
        for cut in 0..=log.0.len() {
            let text = serde_json::to_string(&State::fold(&log.0[..cut])).expect("a snapshot");
            let mut state: State = serde_json::from_str(&text).expect("the same");
            log.0[cut..].iter().for_each(|event| state.apply(event));
            assert_eq!(state.digest(), State::fold(&log.0).digest(), "from {cut} on");
        }
    }
}
