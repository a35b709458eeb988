//! What makes something happen: a demo, a run, a call, a worker; and the tools there are.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use portcullis_base::SessionId;
use portcullis_config::values;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the test passes at the end and the answer is supported (--crash: one call is unknown \
and nothing ran twice), 1 not so."
)]
pub struct DemoArgs {
    /// Lay the project out in this folder, which must be empty or new, and leave it there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Kill a process of the demo in the middle of a command, and go on with another
    #[arg(long)]
    pub crash: bool,
    /// For the demo itself: what the process does that will be killed
    #[arg(long, value_name = "SESSION:TAG", hide = true)]
    pub stage: Option<String>,
}

/// How `run` ends.
const RUN_EXITS: &str = "At an ask a key on an empty line selects an answer and Enter confirms it: a allow once, t this \
session, p this project (both show the rule they would remember), d no, b no because. Escape takes a selection back. Words \
with Enter go to the session at the next turn.\nCtrl-C once interrupts what runs \
or asks and keeps the session, twice leaves.\nExit codes: 0 done, 1 the \
model failed or refused, or the fact-check contradicts its answer, 2 wrong usage, 3 waits for an answer, 5 the store or the machine failed, or the session is in use, 130 \
interrupted.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXITS)]
pub struct RunArgs {
    /// What is to be done, or - for standard input; without it, on a terminal, a conversation
    pub prompt: Option<String>,
    /// Go on with this session
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
    /// Go on with the newest session of this workspace
    #[arg(long = "continue", conflicts_with = "session")]
    pub resume: bool,
    /// Fail where a scripted model has no turn that fits
    #[arg(long)]
    pub strict_script: bool,
    /// Tools that you run yourself, for a new session: a JSON array of {name, description, input_schema}. A call of one
    /// pauses the run; `sessions answer` gives its result
    #[arg(long, value_name = "FILE", conflicts_with_all = ["session", "resume"])]
    pub custom_tools: Option<PathBuf>,
}

/// How `call` ends, which is what scripts ask.
const CALL_EXITS: &str = "Exit codes: 0 done, 1 the call failed or was refused, 2 wrong usage, 3 waits for an answer, \
4 denied or expired, 5 the store or the machine failed, or the session is in use, 130 interrupted.";

#[derive(Debug, Args)]
#[command(after_help = CALL_EXITS)]
pub struct CallArgs {
    /// The tool's name, as `portcullis tools` lists it
    pub tool: String,
    /// Its input: JSON, @FILE, or - for standard input
    #[arg(default_value = "{}")]
    pub input: String,
    /// Use this session instead of the workspace's own
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
}

/// How `worker` ends, and what it does.
pub const WORKER_HELP: &str = "Without --watch it stops when nothing is due, after 10 sessions at most. With --json it prints \
one document for each session it took up, and at the end why it stopped: idle, max_cycles, idle_timeout or \
interrupted.\nCtrl-C or SIGTERM ends it within 10 s: what runs is cancelled, and the next process goes on.\nExit \
codes: 0 done, 2 wrong usage, 5 the store or the machine failed, 130 interrupted by Ctrl-C.";

#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Go on when nothing is due, and take up what becomes due
    #[arg(long)]
    pub watch: bool,
    /// Take up so many sessions at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
    /// With --watch: leave when nothing was done for this long, such as 10m
    #[arg(long, value_name = "TIME", value_parser = values::short_span, requires = "watch")]
    pub idle_timeout: Option<Duration>,
    /// Run so many sessions at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub at_once: Option<u16>,
    /// Only this session; may be given more than once
    #[arg(long, value_name = "ID")]
    pub session: Vec<SessionId>,
}

#[derive(Debug, Subcommand, Default)]
pub enum Tools {
    /// Every tool with who runs it, what the gate does by default, and its version
    #[default]
    List,
    /// One tool with its schemas
    Show {
        /// Its name
        name: String,
    },
}
