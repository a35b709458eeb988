//! F1, F12, F15: seeds are run, and none breaks a rule. `cargo xtask simulate --seed S` shows one of them again.

use std::time::Duration;

use portcullis_simulation::{Hints, Options, POLL_MS, Tally, run_options, run_seed, run_seeds};

/// Seeds of an ordinary run of the tests: what a debug build does in well under a minute on two cores.
const SEEDS: u64 = 250;
/// Seeds of `cargo xtask soak`.
const MANY: u64 = 10_000;
/// What the seeds of an ordinary run may take. Over it the test fails and says so; it never runs fewer.
const BUDGET: Duration = Duration::from_secs(600);

fn soak() -> bool {
    std::env::var_os("PORTCULLIS_SOAK").is_some()
}

/// Every failure in full: the seed, the rules and the options.
fn told(tally: &Tally) -> String {
    tally.failures.iter().map(|failure| format!("{failure}\n")).collect()
}

#[test]
fn f01_f15_f21_l19_l21_l42_l73_l75_no_seed_breaks_a_rule() {
    let seeds = if soak() { MANY } else { SEEDS };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = run_seeds(0..seeds, threads, 1);
    assert!(tally.failures.is_empty(), "{}", told(&tally));
    assert_eq!(tally.seeds, seeds);
    // A world in which nothing happens holds every rule.
    assert!(tally.intents as u64 > seeds * 10, "{} calls", tally.intents);
    assert!(tally.effects as u64 > seeds * 2, "{} effects", tally.effects);
    assert!(tally.children as u64 > seeds, "{} children", tally.children);
    println!("{seeds} seeds in {:?}", tally.took);
    assert!(soak() || tally.took < BUDGET, "{seeds} seeds took {:?}, more than {BUDGET:?}", tally.took);
}

#[test]
fn f01_the_same_seed_leaves_the_same_bytes() {
    let seeds = if soak() { 500 } else { 12 };
    for seed in 0..seeds {
        let (one, two) = (run_seed(seed), run_seed(seed));
        let digest = |ended: Result<portcullis_simulation::Outcome, _>| match ended {
            Ok(outcome) => (outcome.digest, outcome.events),
            Err(failure) => panic!("{failure}"),
        };
        assert_eq!(digest(one), digest(two), "seed {seed} cannot be repeated");
    }
    let (one, two) = (run_seed(1), run_seed(2));
    assert!(one.is_ok_and(|one| two.is_ok_and(|two| one.digest != two.digest)), "seeds differ");
}

#[test]
fn f12_whatever_becomes_of_hints_only_the_wait_changes() {
    for seed in 0..8 {
        for hints in [Hints::Kept, Hints::Dropped, Hints::Doubled, Hints::Late] {
            // One session and workers that do nothing else: then a wait is a wait for the hint.
            let options = Options {
                hints,
                sessions: 1,
                tenants: 1,
                posts: 0,
                only_the_queue: true,
                workers: 2,
                ..Options::of(seed).calm()
            };
            let outcome = run_options(options).unwrap_or_else(|failure| panic!("{failure}"));
            let poll = Duration::from_millis(POLL_MS * 6 / 5);
            assert!(outcome.longest_wait <= poll, "{hints:?}: {:?} until someone came", outcome.longest_wait);
            if hints == Hints::Kept {
                assert_eq!(outcome.longest_wait, Duration::ZERO, "a hint that arrives wakes at once");
            }
        }
    }
}
