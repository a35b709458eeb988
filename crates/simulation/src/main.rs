//! `simulate`: runs seeds and says which of them break a rule. `cargo xtask simulate` builds it with optimisation.

use std::process::ExitCode;

use portcullis_simulation::{Options, Tally, run_seed, run_seeds};

const HELP: &str = "\
Runs simulated worlds, each from one seed, and checks the rules of the store and the gate in each.

Usage: simulate [--seeds N] [--from S] [--threads T]
       simulate --seed S

  --seeds N    how many seeds (10000)
  --from S     the first of them (0)
  --threads T  how many run side by side (one for each core)
  --seed S     one seed, run twice: its options, what it came to, and whether both runs left the same logs

Ends with 1 if a rule is broken under some seed; the seed and its options are printed.";

/// Failures that are printed before the rest of the seeds is given up.
const ENOUGH: usize = 5;

fn main() -> ExitCode {
    match main_of(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(wrong) => {
            eprintln!("error: {wrong}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn main_of(args: &[String]) -> Result<ExitCode, String> {
    let (mut seeds, mut from, mut one) = (10_000, 0, None);
    let mut threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if matches!(flag.as_str(), "--help" | "-h") {
            println!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        let value = args.next().ok_or_else(|| format!("`{flag}` needs a number"))?;
        let number: u64 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
        match flag.as_str() {
            "--seeds" => seeds = number,
            "--from" => from = number,
            "--threads" => threads = usize::try_from(number).unwrap_or(1),
            "--seed" => one = Some(number),
            other => return Err(format!("there is no `{other}`")),
        }
    }
    if let Some(seed) = one {
        return Ok(one_seed(seed));
    }
    let tally = run_seeds(from..from.saturating_add(seeds), threads, ENOUGH);
    print(&tally);
    Ok(if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one_seed(seed: u64) -> ExitCode {
    println!("options: {:#?}", Options::of(seed));
    match (run_seed(seed), run_seed(seed)) {
        (Ok(first), Ok(second)) if first.digest == second.digest => {
            println!("holds: {} events, {} calls, {} effects", first.events, first.intents, first.effects);
            println!("both runs left the same logs: {}", first.digest);
            ExitCode::SUCCESS
        }
        (Ok(first), Ok(second)) => {
            println!("NOT REPEATABLE: {} and {}", first.digest, second.digest);
            ExitCode::FAILURE
        }
        (Err(failure), _) | (_, Err(failure)) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn print(tally: &Tally) {
    for failure in &tally.failures {
        println!("{failure}\n");
    }
    let rate = tally.seeds as f64 / tally.took.as_secs_f64().max(0.001);
    println!(
        "{} seeds in {:.1} s ({rate:.0} a second): {} events, {} calls, {} effects; {} seeds break a rule",
        tally.seeds,
        tally.took.as_secs_f64(),
        tally.events,
        tally.intents,
        tally.effects,
        tally.failures.len()
    );
}
