//! `completions`: a script for a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;
use portcullis_terminal::render::Term;

use crate::args::Cli;
use crate::exit::ExitKind;

pub fn run(shell: Shell, term: &Term) -> anyhow::Result<ExitKind> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut script);
    term.bytes(&script)?;
    Ok(ExitKind::Done)
}
