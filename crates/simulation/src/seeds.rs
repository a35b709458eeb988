//! Seeds, one after the other and side by side.

use std::fmt;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::run::{Outcome, run};

/// A seed under which a rule is broken, with everything that is needed to see it again.
#[derive(Debug, Clone)]
pub struct Failure {
    pub options: Options,
    pub breaches: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.options.seed;
        writeln!(f, "seed {seed} breaks {} rules:", self.breaches.len())?;
        for breach in &self.breaches {
            writeln!(f, "  {breach}")?;
        }
        writeln!(f, "options: {:?}", self.options)?;
        write!(f, "again: cargo xtask simulate --seed {seed}")
    }
}

/// What many seeds came to.
#[derive(Debug, Default)]
pub struct Tally {
    pub seeds: u64,
    pub events: usize,
    pub intents: usize,
    pub effects: usize,
    pub children: usize,
    pub failures: Vec<Failure>,
    pub took: Duration,
}

/// One seed.
///
/// # Errors
/// What is broken under it.
pub fn run_seed(seed: u64) -> Result<Outcome, Box<Failure>> {
    run_options(Options::of(seed))
}

/// One seed with other options than it derives.
///
/// # Errors
/// What is broken under them.
pub fn run_options(options: Options) -> Result<Outcome, Box<Failure>> {
    let failure = |breaches| Box::new(Failure { options: options.clone(), breaches });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| failure(vec![format!("there is no runtime: {error}")]))?;
    let lived = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(options.clone()))));
    match lived {
        Ok(Ok(outcome)) if outcome.breaches.is_empty() => Ok(outcome),
        Ok(Ok(outcome)) => Err(failure(outcome.breaches)),
        Ok(Err(error)) => Err(failure(vec![format!("the simulation itself: {error}")])),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(failure(vec![format!("a panic: {}", words.unwrap_or_default())]))
        }
    }
}

/// Many seeds on `threads` threads. It stops early after `enough` failures, and never otherwise.
#[must_use]
pub fn run_seeds(seeds: Range<u64>, threads: usize, enough: usize) -> Tally {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.end {
                        return;
                    }
                    let ended = run_seed(seed);
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    if tally.failures.len() >= enough {
                        return;
                    }
                    tally.seeds += 1;
                    match ended {
                        Ok(outcome) => {
                            tally.events += outcome.events;
                            tally.intents += outcome.intents;
                            tally.effects += outcome.effects;
                            tally.children += outcome.children;
                        }
                        Err(failure) => tally.failures.push(*failure),
                    }
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.took = begun.elapsed();
    tally
}
