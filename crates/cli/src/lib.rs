//! The `portcullis` binary: a thin user of the library crates.
//!
//! Owns: arguments, what a person reads, exit codes.
//! Knows nothing of: how a call is decided, run or kept, nor how a terminal works. One file a subcommand.
//!
//! It is a library with one function, so that it is compiled while the crates below it still are: a binary is not begun
//! before all of them are done.

mod activity;
mod approvals;
mod args;
mod ask;
mod ask_sheet;
mod ask_text;
mod ask_view;
mod audit;
mod backtest;
mod call;
mod completions;
mod custom_tools;
mod demo;
mod doctor;
mod doctor_models;
mod events;
mod exit;
mod export;
mod export_check;
mod flagged;
mod fork;
mod gc;
mod grants;
mod hints;
mod home_workspace;
mod import;
mod interruptible;
mod last_start;
mod loss;
mod observation;
mod operator;
mod output;
mod person;
mod policy;
mod rebuild;
mod redrive;
mod replay;
mod rm;
mod run;
mod search;
mod sessions;
mod short_ids;
mod status;
mod telemetry;
mod told_warnings;
mod tools;
mod trace;
mod tree;
mod unknown;
mod wake;
mod watch;
mod worker;
mod world;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use portcullis_terminal::render::{ColorChoice, Term};
use portcullis_terminal::signals;

use args::{Cli, Command};
use exit::ExitKind;

/// The whole program.
#[must_use]
pub fn run_program() -> ExitCode {
    // First of all: if this start is a launcher, it never returns.
    portcullis::hand::init();
    exit::plain_panics();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        // An id may be given by its beginning.
        Err(error) if error.kind() == ErrorKind::ValueValidation => match short_ids::completed(&words, error) {
            Ok(Ok(cli)) => cli,
            Ok(Err(error)) => exit::misused(&error),
            Err(error) => {
                let json = words.iter().any(|word| word == "--json");
                return exit::report(&Term::new(json, false, ColorChoice::Auto), Err(error));
            }
        },
        Err(error) => exit::misused(&error),
    };
    let term = cli.globals.term();
    let listening = match telemetry::start(&cli.globals) {
        Ok(listening) => listening,
        Err(error) => return exit::report(&term, Err(error)),
    };
    let code = exit::report(&term, dispatch(cli, &term));
    // Last: whoever reads the result does not wait for a collector.
    listening.finish(&term);
    code
}

fn dispatch(cli: Cli, term: &Term) -> anyhow::Result<ExitKind> {
    if let Command::Completions { shell } = cli.command {
        return completions::run(shell, term);
    }
    // One thread is enough: the store writes on a thread of its own, and files are read on blocking ones.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        signals::outlive_file_limits()?;
        let globals = &cli.globals;
        match cli.command {
            Command::Demo(args) => demo::run(&args, globals, term).await,
            Command::Run(args) => run::run(&args, globals, term).await,
            Command::Call(args) => call::run(&args, globals, term).await,
            Command::Approvals { what } => approvals::run(what.unwrap_or_default(), globals, term).await,
            Command::Grants { what } => {
                grants::run(what.unwrap_or(args::Grants::List { all: false }), globals, term).await
            }
            Command::Policy { what } => policy::run(what, globals, term).await,
            Command::Sessions { what } => sessions::run(what.unwrap_or_default(), globals, term).await,
            Command::Worker(args) => worker::run(&args, globals, term).await,
            Command::Tools { what } => tools::run(&what.unwrap_or_default(), globals, term),
            Command::Audit { what } => audit::run(what, globals, term).await,
            Command::Gc(args) => gc::run(&args, globals, term).await,
            Command::Replay(args) => replay::run(&args, globals, term).await,
            Command::Doctor => doctor::run(globals, term).await,
            Command::Completions { .. } => Ok(ExitKind::Done),
        }
    });
    // What still reads the disk on a blocking thread must not hold up a person who left.
    runtime.shutdown_background();
    ended
}
