//! The command line as data. What is not listed here this build cannot do.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use portcullis::Profile;
use portcullis_base::{AskId, EventId, GrantId, InvocationId, IsolationLevel, SessionId, WakeId};
use portcullis_config::{ApprovalMode, ConfigError, Flags, Settings, values};
use portcullis_terminal::render::{ColorChoice, Term};

/// Runs tools for AI agents through one gate: checked, asked for, recorded, provable.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Data is kept in $PORTCULLIS_HOME, else $XDG_DATA_HOME/portcullis, else \
~/.local/share/portcullis.\nExit codes: 0 done, 1 the work failed, 2 wrong usage, 3 waits for an answer, 4 denied, \
5 the store or the machine failed, 130 interrupted.")]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that mean the same everywhere, before and after the subcommand. `-h` leaves them out; `--help` has them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Globals {
    /// The folder that tools work in [default: here]
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Work without a question in a folder that is, or holds, a home folder or a folder of Portcullis' own; the
    /// enterprise file may forbid it
    #[arg(long, global = true, hide_short_help = true)]
    pub workspace_is_home: bool,
    /// Where logs are kept, as sqlite:PATH [env: PORTCULLIS_STORE]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub store: Option<String>,
    /// Where large outputs are kept, as file:PATH [env: PORTCULLIS_ARTIFACTS]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub artifacts: Option<String>,
    /// The user's configuration file [env: PORTCULLIS_CONFIG] [default: $XDG_CONFIG_HOME/portcullis/config.toml]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print one JSON document, or one a line for streams
    #[arg(long, global = true, hide_short_help = true)]
    pub json: bool,
    /// Print results and errors only
    #[arg(long, global = true, hide_short_help = true)]
    pub quiet: bool,
    /// Colours (NO_COLOR turns them off too)
    #[arg(long, global = true, hide_short_help = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
    /// What tools do where no rule speaks: each by its own default (managed), or reads run and the rest asks (code)
    /// [default: code where a model works (`run`, `demo`, `worker`, `sessions new` and `wake`), else managed]
    #[arg(long, global = true, hide_short_help = true, value_enum, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    /// Who works: PROVIDER/MODEL (anthropic, openai, openai-chat, gemini) or scripted:FILE [env: PORTCULLIS_MODEL]
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Another address than the model provider's own; without --model, a server that speaks Chat Completions
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub base_url: Option<String>,
    /// Show on standard error what happens and how long it took: off, error, warn, info, debug, trace, or levels of
    /// crates (info,portcullis_pipeline=debug) [env: PORTCULLIS_LOG] [default: off]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// How this run's own asks are answered: wait for a person, or allow or deny each at once; deny rules still hold
    /// [env: PORTCULLIS_APPROVALS] [default: ask]
    #[arg(long, global = true, hide_short_help = true, value_parser = approval_modes(), value_name = "HOW")]
    pub approvals: Option<ApprovalMode>,
    /// The least isolation that commands may run with: full, no_pivot, no_namespaces, seccomp_only or none; below it a
    /// call fails [default: full]
    #[arg(long, global = true, hide_short_help = true, value_name = "LEVEL", value_parser = portcullis_config::isolation_level)]
    pub sandbox: Option<IsolationLevel>,
}

/// The words of `--approvals`, with completion.
fn approval_modes() -> impl TypedValueParser<Value = ApprovalMode> {
    PossibleValuesParser::new(ApprovalMode::ALL.map(ApprovalMode::as_str))
        .try_map(|word| ApprovalMode::from_word(&word))
}

impl Globals {
    /// Where output goes and in what form.
    pub fn term(&self) -> Term {
        let color = match self.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::AlwaysAnsi,
            Color::Never => ColorChoice::Never,
        };
        Term::new(self.json, self.quiet, color)
    }

    /// The settings of a run in which a model works: profile `code`, unless a flag says otherwise.
    pub fn settings_of_a_model(&self) -> Result<Settings, ConfigError> {
        let mut settings = self.settings()?;
        if self.profile.is_none() {
            settings.profile = Profile::Code;
        }
        Ok(settings)
    }

    /// What the flags, the variables and the files say together.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Settings::load(&Flags {
            workspace: self.workspace.is_some(),
            workspace_is_home: self.workspace_is_home,
            store: self.store.clone(),
            artifacts: self.artifacts.clone(),
            config: self.config.clone(),
            profile: self.profile.map(|name| match name {
                ProfileName::Code => Profile::Code,
                ProfileName::Managed => Profile::Managed,
            }),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            approvals: self.approvals,
            sandbox: self.sandbox,
        })
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// The profiles of tool-contract 13.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    Code,
    Managed,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: a scripted model mends a small real project; no key, no network
    Demo(DemoArgs),
    /// Hand work to a model in this workspace; what changes anything asks first
    Run(RunArgs),
    /// Put one tool call through the whole gate and print what it gave
    Call(CallArgs),
    /// Calls that wait for a person: list, show, answer
    Approvals {
        #[command(subcommand)]
        what: Option<Approvals>,
    },
    /// Remembered allows: list, revoke
    Grants {
        #[command(subcommand)]
        what: Option<Grants>,
    },
    /// Rules: what they decide, whether they are sound, what a change would have changed
    Policy {
        #[command(subcommand)]
        what: Policy,
    },
    /// Sessions and their logs
    Sessions {
        #[command(subcommand)]
        what: Option<Sessions>,
    },
    /// Take up sessions that are due, many at once; any number of workers may run
    #[command(after_help = WORKER_HELP)]
    Worker(WorkerArgs),
    /// The tools that are offered here, and those that are not
    Tools {
        #[command(subcommand)]
        what: Option<Tools>,
    },
    /// Prove that logs are whole and unaltered
    Audit {
        #[command(subcommand)]
        what: Audit,
    },
    /// What could be freed, or free it: what nothing names for a day, what the retention policy takes,
    /// and build caches of workspaces that are gone
    Gc(GcArgs),
    /// Go through a recorded session again; executes nothing
    Replay(ReplayArgs),
    /// Check the installation: store, keys, rules, isolation
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

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

/// How `call` and `approvals allow` end, which is what scripts ask.
const CALL_EXITS: &str = "Exit codes: 0 done, 1 the call failed or was refused, 2 wrong usage, 3 waits for an answer, \
4 denied or expired, 5 the store or the machine failed, or the session is in use, 130 interrupted.";

/// The same for an answer, which may come too late.
const ALLOW_EXITS: &str = "An ask that was answered before ends with 1 (`already_settled`), however far its call is by \
then; only where whoever answered is gone and nobody runs the call is it run here, and ends as the call does.\nExit codes: 0 done, 1 the call failed or was refused, 2 wrong usage, 3 waits for an answer, \
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

/// How the other verbs of `sessions` end.
const SESSION_EXITS: &str = "Exit codes: 0 done, 1 it was refused or there is no such session, 2 wrong usage, 5 the \
store or the machine failed.";

/// How `sessions wake` ends.
const WAKE_EXITS: &str = "Exit codes: 0 done, or nothing was due, 1 the model failed or refused, or the fact-check contradicts its answer, 2 wrong usage, 3 waits for an \
answer, 5 the store or the machine failed, or the session is in use, 130 interrupted.";

/// How `worker` ends, and what it does.
const WORKER_HELP: &str = "Without --watch it stops when nothing is due, after 10 sessions at most. With --json it prints \
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
