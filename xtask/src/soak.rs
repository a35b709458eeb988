//! `cargo xtask soak`: the same tests, many more times.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;
use crate::suite;

pub const HELP: &str = "\
Runs the tests with PORTCULLIS_SOAK=1.

Usage: cargo xtask soak [ARGS...]

Tests that repeat something (property cases, kills, races, seeds) read PORTCULLIS_SOAK and multiply their counts; the
others run as ever. ARGS go to the runner (cargo nextest if installed, else cargo test), for example a name to run only
matching tests. May run for hours; not a part of CI.";

pub fn run(args: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    process::run(suite::tests(&repo).args(args).env("PORTCULLIS_SOAK", "1"))
}
