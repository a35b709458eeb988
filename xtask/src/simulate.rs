//! `cargo xtask simulate`: simulated worlds, which live in a package of their own.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

pub const HELP: &str = "\
Runs simulated worlds (F1), each a function of one seed, and checks the rules of the store and the gate in each.

Usage: cargo xtask simulate [--seeds N] [--from S] [--threads T]
       cargo xtask simulate --seed S

  --seeds N    how many seeds (10000)
  --from S     the first of them (0)
  --threads T  how many run side by side (one for each core)
  --seed S     one seed, run twice: its options, what it came to, and whether both runs left the same logs

The same as `cargo run --release --locked -p portcullis-simulation --bin simulate -- ARGS`. A seed that breaks a rule is
printed with its options. `cargo xtask test` runs some seeds as an ordinary test.";

pub fn run(args: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    let run = ["run", "--release", "--locked", "--package", "portcullis-simulation", "--bin", "simulate", "--"];
    process::run(repo.cargo().args(run).args(args))
}
