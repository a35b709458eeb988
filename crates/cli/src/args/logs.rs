//! What is done with logs as a whole: proofs, room, replays.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use portcullis_base::SessionId;

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Verify chains, checkpoints and the ledger; names the first bad event
    Verify {
        /// Only this session
        session: Option<SessionId>,
        /// A ledger head saved earlier: SEQ:HASH, or a file that holds it
        #[arg(long, value_name = "FILE|SEQ:HASH", conflicts_with = "session")]
        against: Option<String>,
        /// A file that `sessions export` or `audit export` wrote: its chain and its manifest, without a store
        #[arg(long, value_name = "FILE", conflicts_with = "session")]
        export: Option<PathBuf>,
    },
    /// Print the ledger's head, to be kept elsewhere
    Head,
    /// Give up events that were recorded and are missing: open calls of those sessions become unknown, and none is run again
    AcceptLoss {
        /// Without being asked; needed where nobody sits at a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Write every log, the ledger and a verification report into one folder
    Export {
        /// The folder, which must not exist [default: evidence/ in the data folder]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct GcArgs {
    /// Show it, largest first, and free nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Free it
    #[arg(long)]
    pub apply: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The session
    pub session: SessionId,
    /// Step through in words; fold the log and compare with what is stored; or ask another model (--model) the same
    /// and name the first call that differs
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReplayMode,
    /// Stop after this event
    #[arg(long, value_name = "SEQ")]
    pub until: Option<u64>,
}

/// What a replay does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReplayMode {
    #[default]
    Inspect,
    Rebuild,
    Redrive,
}
