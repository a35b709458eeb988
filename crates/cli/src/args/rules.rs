//! Asks and rules: what may run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use portcullis_base::{AskId, GrantId};
use portcullis_config::values;

/// How `approvals allow` ends, which may come too late.
const ALLOW_EXITS: &str = "An ask that was answered before ends with 1 (`already_settled`), however far its call is by \
then; only where whoever answered is gone and nobody runs the call is it run here, and ends as the call does.\nExit codes: 0 done, 1 the call failed or was refused, 2 wrong usage, 3 waits for an answer, \
4 denied or expired, 5 the store or the machine failed, or the session is in use, 130 interrupted.";

#[derive(Debug, Subcommand, Default)]
pub enum Approvals {
    /// Calls that wait
    #[default]
    List,
    /// Wait for new ones; on a terminal a key selects an answer and Enter confirms it
    Watch,
    /// Everything a person needs to judge one
    Show {
        /// The ask
        ask: AskId,
    },
    /// Allow it and run it: this once, or from now on what its suggested rule says
    #[command(after_help = ALLOW_EXITS)]
    Allow {
        /// The ask
        ask: AskId,
        /// Remember the suggested rule for this session
        #[arg(long, conflicts_with = "save", group = "remembered")]
        session: bool,
        /// Remember the suggested rule for this project
        #[arg(long, group = "remembered")]
        save: bool,
        /// Forget it after this time, such as 7d or 12h; with --session or --save [default: when it is revoked]
        #[arg(long, value_name = "TIME", value_parser = values::span, requires = "remembered")]
        expires: Option<Duration>,
    },
    /// Refuse it
    Deny {
        /// The ask
        ask: AskId,
        /// Words for whoever proposed the call
        #[arg(long, value_name = "TEXT")]
        feedback: Option<String>,
        /// Also tell them to stop
        #[arg(long)]
        stop: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Grants {
    /// Those in force: what each allows, for whom, given by whom, how often it was used
    List {
        /// Also those that are revoked or have run out
        #[arg(long)]
        all: bool,
    },
    /// Take one back: from now on its calls ask again
    Revoke {
        /// The grant
        grant: GrantId,
    },
}

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// What the gate would decide about a call, and why; does nothing (exit 0 allow, 3 ask, 4 a rule denies it, 1 no such
    /// tool, or one that does not do this, 2 an input that the tool does not take)
    Explain {
        /// The tool's name
        tool: String,
        /// Its input: JSON, @FILE, or - for standard input
        #[arg(default_value = "{}")]
        input: String,
    },
    /// Read rules and find those that can never match, never decide, or name no tool
    Check {
        /// The file [default: every file in force here]
        file: Option<PathBuf>,
    },
    /// Put the allow rules of a project's file in force, for exactly its present text
    Trust {
        /// The project's .portcullis/config.toml
        file: PathBuf,
    },
    /// Run changed rules over every recorded call and print each decision that would differ
    Backtest {
        /// The rules: in the place of your own, or of the project's if it is a .portcullis/config.toml
        file: PathBuf,
        /// Only calls of the last days or hours, such as 7d
        #[arg(long, value_name = "TIME", value_parser = values::span)]
        since: Option<Duration>,
    },
}
