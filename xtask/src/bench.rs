//! `cargo xtask bench`: the measurements, which live in a package of their own.

use anyhow::{Result, bail};

use crate::process;
use crate::repo::Repo;

pub const HELP: &str = "\
Runs the measurements in release mode and prints their ratios.

Usage: cargo xtask bench [ARGS...]

The same as `cargo build --release --locked -p portcullis-cli -p portcullis-simulation` and then
`cargo run --release --locked -p portcullis-bench -- ARGS`. They are printed, not judged: a busy machine must
not fail a change.";

const MANIFEST: &str = "bench/Cargo.toml";

pub fn run(args: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    if !repo.path(MANIFEST).is_file() {
        bail!("there are no measurements: {MANIFEST} (package `portcullis-bench`) does not exist");
    }
    // Programs that are measured from outside stand beside the one that measures.
    let programs = ["--package", "portcullis-cli", "--package", "portcullis-simulation"];
    process::run(repo.cargo().args(["build", "--release", "--locked"]).args(programs))?;
    process::run(repo.cargo().args(["run", "--release", "--locked", "--package", "portcullis-bench", "--"]).args(args))
}
