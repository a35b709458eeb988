//! `sessions`: one verb for each thing that is done with a session.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use portcullis_base::{EventId, InvocationId, SessionId, WakeId};

/// How the other verbs of `sessions` end.
const SESSION_EXITS: &str = "Exit codes: 0 done, 1 it was refused or there is no such session, 2 wrong usage, 5 the \
store or the machine failed.";

/// How `sessions wake` ends.
const WAKE_EXITS: &str = "Exit codes: 0 done, or nothing was due, 1 the model failed or refused, or the fact-check contradicts its answer, 2 wrong usage, 3 waits for an \
answer, 5 the store or the machine failed, or the session is in use, 130 interrupted.";

/// What became of a call, as a person found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LearnedOutcome {
    Happened,
    DidNotHappen,
}

#[derive(Debug, Subcommand, Default)]
pub enum Sessions {
    /// Sessions, newest first
    #[default]
    #[command(after_help = SESSION_EXITS)]
    List,
    /// Begin a session in this workspace; a worker, or `sessions wake`, runs it
    #[command(after_help = SESSION_EXITS)]
    New {
        /// What it is to do; without it the session waits for `sessions send`
        message: Option<String>,
        /// A name to know it by
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Tools that you run yourself: a JSON array of {name, description, input_schema}
        #[arg(long, value_name = "FILE")]
        custom_tools: Option<PathBuf>,
    },
    /// Tell a session something; it is heard at its next turn
    #[command(after_help = SESSION_EXITS)]
    Send {
        /// The session
        session: SessionId,
        /// The words, or - for standard input
        message: String,
    },
    /// Stop what a session does: running calls, asks that wait, wakes that are queued
    #[command(after_help = SESSION_EXITS)]
    Interrupt {
        /// The session
        session: SessionId,
        /// Why, for the model
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Give the result of a custom tool that a session waits for
    #[command(after_help = SESSION_EXITS)]
    Answer {
        /// The session
        session: SessionId,
        /// The result, or - for standard input
        output: String,
        /// Which call, as `sessions status` names it [default: the only one that waits]
        #[arg(long, value_name = "EVENT")]
        request: Option<EventId>,
        /// It failed
        #[arg(long)]
        error: bool,
    },
    /// Run one wake of a session here: everything that is pending or due
    #[command(after_help = WAKE_EXITS)]
    Wake {
        /// The session
        session: SessionId,
    },
    /// Where a session stands: what waits, what is due, who holds it
    #[command(after_help = SESSION_EXITS)]
    Status {
        /// The session
        session: SessionId,
    },
    /// Calls that had begun when their process died, and nobody knows how they ended
    #[command(after_help = SESSION_EXITS)]
    Unknown {
        /// Only of this session
        session: Option<SessionId>,
    },
    /// Say what became of such a call; it is never run again by itself
    #[command(after_help = SESSION_EXITS)]
    Resolve {
        /// The invocation, as `sessions unknown` lists it
        invocation: InvocationId,
        /// What you found out
        #[arg(value_enum)]
        what: LearnedOutcome,
        /// How you know
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Draw what a wake did and how long each part took
    #[command(after_help = SESSION_EXITS)]
    Trace {
        /// The session
        session: SessionId,
        /// Which wake [default: the newest]
        #[arg(long, value_name = "WAKE")]
        wake: Option<WakeId>,
        /// Every wake
        #[arg(long, conflicts_with = "wake")]
        all: bool,
    },
    /// A new session that goes on alone from a place in this one, which stays as it is
    #[command(
        after_help = "Everything up to that event is copied, with the artifacts it names. Where a call or a model request \
was open there, the fork begins before it, and says so. Queued wakes are not taken along, and a wake that was open is \
closed: the fork does nothing until somebody speaks to it, or input that nobody had taken up yet is taken up.\n\
Exit codes: 0 done, 1 it was refused or there is no such session, 2 wrong usage, 5 the store or the machine failed."
    )]
    Fork {
        /// The session
        session: SessionId,
        /// The last event that the fork shares with it
        #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
        at: u64,
        /// A name to know the fork by
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
    },
    /// One session and its calls
    #[command(after_help = SESSION_EXITS)]
    Show {
        /// The session [default: the newest of this workspace]
        session: Option<SessionId>,
    },
    /// All that a call wrote
    #[command(after_help = SESSION_EXITS)]
    Output {
        /// The session
        session: SessionId,
        /// The call: its number in `sessions show`, or its intent, whose end is enough [default: the newest that wrote
        /// something]
        call: Option<String>,
    },
    /// The log of one session
    #[command(after_help = SESSION_EXITS)]
    Events {
        /// The session
        session: SessionId,
        /// Only events after this one
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Go on printing what is appended, until Ctrl-C
        #[arg(long)]
        follow: bool,
    },
    /// Which session began which, and which was forked from which
    #[command(after_help = SESSION_EXITS)]
    Tree {
        /// Only this session and those beneath it
        session: Option<SessionId>,
    },
    /// Find words in every log, newest event first
    #[command(
        after_help = "Whole words, in any case; each argument is a phrase and all of them must occur in one event. \
There are no operators. Names of fields are not searched, and neither is what lies in artifacts.\n\
Exit codes: 0 done, also if nothing was found, 1 there is no store yet, 2 wrong usage, 5 the store or the machine \
failed."
    )]
    Search {
        /// What to find
        #[arg(required = true)]
        words: Vec<String>,
        /// At most so many events
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
        limit: u16,
    },
    /// The log with everything needed to verify it elsewhere (`audit verify --export FILE`), as NDJSON
    #[command(after_help = SESSION_EXITS)]
    Export {
        /// The session
        session: SessionId,
        /// Also the bytes of its artifacts and menus, so that another store can take it in (`sessions import`)
        #[arg(long)]
        with_artifacts: bool,
        /// Write to this file, which must not exist; it is there whole or not at all [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in a log that `sessions export --with-artifacts` wrote: the same events, the same digests
    #[command(
        after_help = "The whole file is verified before anything is written; a session is taken in whole or not at \
all. One that is here already is left as it is. What happened is taken in as history: one in which anything is still \
to happen, such as an ask that waits or a call that has not run, is refused, and no remembered allow comes along.\n\
Exit codes: 0 done, or it was here already, 1 it was refused, 2 wrong usage, 5 the store or the machine failed."
    )]
    Import {
        /// The file
        file: PathBuf,
    },
    /// Erase what a session holds; its hashes stay, and the fact that it was erased
    #[command(
        after_help = "Every payload, row, snapshot and artifact of it goes, and cannot be brought back; nothing is added \
to it afterwards. Its log still verifies, and the ledger names who erased it. Refused while a live process holds it. \
What stays: allows that were remembered in it (`grants revoke`), copies that `audit export` (evidence/ in the data \
folder) or `sessions export` made, and backups; those that are known of are named.\n\
Exit codes: 0 done, 1 it was refused or there is no such session, 2 wrong usage, 5 the store or the machine failed, \
or the session is in use."
    )]
    Rm {
        /// The session
        session: SessionId,
        /// Without being asked; needed where nobody sits at a terminal
        #[arg(long)]
        yes: bool,
        /// Why; it is recorded
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}
