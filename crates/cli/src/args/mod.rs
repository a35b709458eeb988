//! The command line as data. What is not listed here this build cannot do.

mod logs;
mod rules;
mod sessions;
mod work;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use portcullis::Profile;
use portcullis_base::IsolationLevel;
use portcullis_config::{ApprovalMode, ConfigError, Flags, Settings};
use portcullis_terminal::render::{ColorChoice, Term};

pub use logs::{Audit, GcArgs, ReplayArgs, ReplayMode};
pub use rules::{Approvals, Grants, Policy};
pub use sessions::{LearnedOutcome, Sessions};
pub use work::{CallArgs, DemoArgs, RunArgs, Tools, WORKER_HELP, WorkerArgs};

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
