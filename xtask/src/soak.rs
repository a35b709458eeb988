//! `cargo xtask soak`: the same tests, many more times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;
use crate::suite::{self, Counts};
use crate::{process, programs};

/// Instead of 256.
const CASES: &str = "100000";
/// How often `soak suite` runs everything; every second run beside busy loops.
const ROUNDS: usize = 10;
/// Busy loops beside such a run. Two are enough to make a command start late on a small machine.
const LOOPS: usize = 2;

pub const HELP: &str = "\
Runs the tests with PORTCULLIS_SOAK=1.

Usage: cargo xtask soak [ARGS...]
       cargo xtask soak suite
       cargo xtask soak builds
       cargo xtask soak models

Tests that repeat something (property cases, kills, races, seeds) read PORTCULLIS_SOAK and multiply their counts; the
others run as ever. ARGS go to the runner (cargo nextest if installed, else cargo test), for example a name to run only
matching tests: `cargo xtask soak fuzz_` runs the fuzz targets alone (command parser, path resolver, shell framing, the
wire to the launcher) with PROPTEST_CASES=100000. May run for hours; not a part of CI.

`soak suite` runs the whole suite as `cargo xtask test` does, ten times in a row, five of them beside two busy loops. It
stops after the first run that fails and prints which tests failed.

`soak builds` measures real builds (cargo, npm, pytest, go, make) inside the hand and outside, and prints a table.
Toolchains that are not installed are named in it.

`soak models` runs `portcullis run` with servers that others wrote: LiteLLM's proxy and llama.cpp. It needs python3 and a
package index, and installs them below the target directory once (about 1 GB).

Property tests draw other cases each time, from a seed that is printed. PROPTEST_RNG_SEED in the environment brings them
again, here and in `cargo xtask test`.

Without ARGS the tests of the feature `otel` are run first: they need a build of their own, which is too long for
`cargo xtask test`. `cargo xtask soak otel` runs them alone.";

pub fn run(args: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    match args.first().map(String::as_str) {
        Some("suite") if args.len() == 1 => return whole_suite(&repo),
        Some("builds") if args.len() == 1 => {
            return process::run(suite::build_times(&repo).env("PORTCULLIS_SOAK", "1"));
        }
        Some("models") if args.len() == 1 => return process::run(&mut suite::others_models(&repo)),
        Some("suite" | "builds" | "models") => bail!("`cargo xtask soak {}` takes no more words", args[0]),
        _ => {}
    }
    let only_otel = args == ["otel"];
    if args.is_empty() || only_otel {
        process::run(&mut suite::otel_tests(&repo))?;
    }
    if only_otel {
        return Ok(());
    }
    // Property tests that name no count of their own, all `fuzz_` targets among them, take it from here.
    let tests = &mut suite::tests(&repo);
    suite::seeded_anew(tests);
    process::run(tests.args(args).env("PORTCULLIS_SOAK", "1").env("PROPTEST_CASES", CASES))
}

fn whole_suite(repo: &Repo) -> Result<()> {
    println!("{}", programs::check()?);
    let begun = Instant::now();
    for round in 1..=ROUNDS {
        let busy = (round % 2 == 0).then(Busy::begin);
        let beside = if busy.is_some() { format!(", beside {LOOPS} busy loops") } else { String::new() };
        println!("== run {round} of {ROUNDS}{beside}");
        let mut counts = Counts::default();
        let mut failed = Vec::new();
        let ended = suite::run_and_name(&mut suite::tests(repo), &mut counts, &mut failed)
            .and_then(|()| suite::run_and_name(&mut suite::doc_tests(repo), &mut counts, &mut failed));
        drop(busy);
        println!("   run {round}: {counts}");
        if let Err(error) = ended {
            for name in &failed {
                println!("   failed: {name}");
            }
            return Err(error).with_context(|| format!("run {round} of {ROUNDS}{beside}"));
        }
        if counts.passed == 0 {
            bail!("run {round} ran no test");
        }
    }
    println!("== {ROUNDS} of {ROUNDS} runs passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Threads that keep processors busy until this is dropped.
struct Busy {
    over: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Busy {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let one = || {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let loops = (0..LOOPS).map(|_| one()).collect();
        Self { over, loops }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for one in self.loops.drain(..) {
            // A loop of nothing cannot have panicked.
            let _ = one.join();
        }
    }
}
