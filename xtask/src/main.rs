//! The repository's own commands, run as `cargo xtask COMMAND`.
//!
//! Owns: what must hold before a change lands, and how it is checked. Knows nothing of what Portcullis does: it reads
//! sources, `cargo metadata` and git, and starts cargo. One file a command; the rules it enforces are data in `rules.rs`.

mod bench;
mod citations;
mod embed;
mod laws;
mod licences;
mod markdown;
mod metadata;
mod mutant;
mod mutants;
mod order;
mod paths;
mod process;
mod programs;
mod references;
mod repo;
mod rules;
mod rust_source;
mod scratch;
mod simulate;
mod soak;
mod spdx;
mod spec;
mod suite;
mod test;
mod test_binary;
mod text;
mod toolchain;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
The commands of this repository.

Usage: cargo xtask COMMAND [ARGS]

  test [--quick]     everything that must hold before a change lands; `.ci/run` calls this
  laws [--write]     docs/laws.md, the rules of docs/spec with their tests: compare, or write it anew
  mutants [NAME...]  make each wrong change of mutants/ in turn; its named tests must fail
  bench [ARGS...]    the measurements, in release mode (package `portcullis-bench`)
  simulate [ARGS...] simulated worlds from seeds, in release mode (package `portcullis-simulation`)
  soak [ARGS...]     the test suite with PORTCULLIS_SOAK=1, for which tests multiply their counts; `soak suite` runs it
                     ten times, `soak builds` measures real builds in the hand, `soak models` runs LiteLLM and llama.cpp
  help               this text

`cargo xtask COMMAND --help` says more about one of them.";

type Action = fn(&[String]) -> Result<()>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        println!("{HELP}");
        return Ok(());
    };
    let (help, run): (&str, Action) = match command.as_str() {
        "test" => (test::HELP, test::run),
        "laws" => (laws::HELP, laws::run),
        "mutants" => (mutants::HELP, mutants::run),
        "bench" => (bench::HELP, bench::run),
        "simulate" => (simulate::HELP, simulate::run),
        "soak" => (soak::HELP, soak::run),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            return Ok(());
        }
        other => bail!("there is no command `{other}`; `cargo xtask help` lists them"),
    };
    if matches!(rest.first().map(String::as_str), Some("--help" | "-h")) {
        println!("{help}");
        return Ok(());
    }
    run(rest)
}
