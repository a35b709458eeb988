//! The shell that this process runs for a session, as the tools that look and change see it.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_base::{EnvKey, SessionId, ShellId, Timestamp};
use portcullis_secret::SecretText;

/// The persistent shells of this process. One that the log calls active and that is not here has died with its process.
pub trait LiveShell: Send + Sync {
    /// The shell of a session; `None` if this process runs none.
    fn look(&self, session: SessionId) -> Option<LiveView>;

    /// Brings an idle shell to what the session says from now on. `Ok` also if there is none: then the next one starts
    /// so. [`ShellBusy`] = a command runs, and nothing has changed.
    fn change(&self, session: SessionId, change: Change) -> BoxFuture<'_, Result<(), ShellBusy>>;
}

/// A change of folder or environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// To this folder, by its virtual path.
    Cwd(String),
    /// This name has this value.
    EnvSet(EnvKey, SecretText),
    /// This name has none.
    EnvUnset(EnvKey),
}

/// A command runs in the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a command runs in the session's shell, which can be changed only when it has ended; wait for it with shell_wait"
)]
pub struct ShellBusy;

/// A live shell (agent-runtime 10.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveView {
    pub shell_id: ShellId,
    pub shell_path: String,
    /// The mount it runs in.
    pub mount_path: String,
    /// Its folder, by its virtual path.
    pub cwd: String,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_command_at: Option<Timestamp>,
    pub command_count: u64,
    /// What runs in it; it is busy then.
    pub current: Option<LiveCommand>,
    pub env_keys: Vec<String>,
    /// Its exported environment, as it was told last.
    pub env: BTreeMap<String, SecretText>,
    /// Names of it whose value is another one than the shell was started with.
    pub changed: Vec<String>,
    /// Why a word may mean something else in it than in a fresh shell, such as `defined a function`; none if nothing ran
    /// in it that could have seen to that.
    pub altered: Option<String>,
}

/// A command that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCommand {
    /// The command line.
    pub command: String,
    pub started_at: Timestamp,
    /// The end of what it wrote so far, secrets masked, at most [`portcullis_base::limits::OUTPUT_PREVIEW`] characters.
    pub stdout_preview: Option<String>,
    pub stderr_preview: Option<String>,
}

/// No shell at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLiveShell;

impl LiveShell for NoLiveShell {
    fn look(&self, _: SessionId) -> Option<LiveView> {
        None
    }

    fn change(&self, _: SessionId, _: Change) -> BoxFuture<'_, Result<(), ShellBusy>> {
        std::future::ready(Ok(())).boxed()
    }
}
