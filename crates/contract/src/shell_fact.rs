//! What a call tells of its session's shell (agent-runtime 2.10, 10.4).

use portcullis_base::{CommandId, EnvKey, ShellId};
use portcullis_secret::SecretText;

use crate::SpoolRef;

/// One thing that became of the session's shell. The runtime writes it down with the end of the call; a value of the
/// environment goes into no event, but sealed into a row of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellFact {
    /// Commands run in this folder from now on; a canonical virtual path that was looked at.
    Cwd(String),
    /// A name of the environment has this value from now on.
    EnvSet(EnvKey, SecretText),
    /// A name of the environment has no value from now on.
    EnvUnset(EnvKey),
    /// A persistent shell was started.
    Opened {
        /// Its id.
        shell_id: ShellId,
        /// Its program.
        shell_path: String,
        /// The folder it began in.
        cwd: String,
    },
    /// A persistent shell ended.
    Closed {
        /// Its id.
        shell_id: ShellId,
        /// In a word or two.
        reason: String,
    },
    /// A command ended, or was ended. Report changes of folder and environment that it made before this.
    Finished(Box<EndedCommand>),
}

impl ShellFact {
    pub(crate) fn is_env(&self) -> bool {
        matches!(self, Self::EnvSet(..) | Self::EnvUnset(_))
    }
}

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCommand {
    /// Its id, which a session can be asked about later.
    pub command_id: CommandId,
    /// The program or pipeline for `bash`, `shell` for `shell_run`, `persistent-shell` for `shell_exec`.
    pub command: String,
    /// Its words, or the command line as the only one.
    pub args: Vec<String>,
    /// The folder it ran in, by its virtual path.
    pub cwd: String,
    /// `None`: it did not end by itself.
    pub exit_code: Option<i32>,
    /// It ran too long and was ended.
    pub timed_out: bool,
    /// How long it ran.
    pub duration_ms: u64,
    /// The persistent shell it ran in.
    pub shell_id: Option<ShellId>,
    /// What it wrote, as it was captured for this call: kept whole, and named by the record.
    pub stdout: Option<SpoolRef>,
    /// The same of its standard error.
    pub stderr: Option<SpoolRef>,
}
