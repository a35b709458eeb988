//! Running the tests of the workspace, and counting them from what the runners print.

use std::fmt;
use std::ops::AddAssign;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

/// What property tests draw their cases from.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";

/// The seed of every run that judges a change: the same cases each time, so that a change is red because of what it
/// changes, and a failure is there again when somebody looks. `cargo xtask soak` draws others.
const SEED: &str = "20261117";

/// The seed in the environment, if somebody asked for one.
fn asked_seed() -> Option<String> {
    std::env::var(SEED_VARIABLE).ok()
}

/// Has the property tests of a command draw the cases that judge a change, or those of the seed in the environment.
pub fn seeded(command: &mut Command) -> &mut Command {
    command.env(SEED_VARIABLE, asked_seed().as_deref().unwrap_or(SEED))
}

/// Has the property tests of a command draw cases that nobody has seen yet, and says how to have them again.
pub fn seeded_anew(command: &mut Command) -> &mut Command {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let seed = asked_seed().unwrap_or_else(seconds);
    println!("{SEED_VARIABLE}={seed} draws these cases again");
    command.env(SEED_VARIABLE, seed)
}

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The command for unit and integration tests: nextest where it is installed, else cargo's own runner.
pub fn tests(repo: &Repo) -> Command {
    let mut command = runner(repo);
    command.args(["--workspace", "--locked"]);
    command
}

/// The command for the tests of the feature `otel`, all of which bear its name.
pub fn otel_tests(repo: &Repo) -> Command {
    let mut command = runner(repo);
    command.args(["--package", "portcullis-cli", "--features", "otel", "--locked", "otel"]);
    command
}

/// The command that measures real builds, by cargo's own runner: it prints a table, which nextest would keep to itself.
pub fn build_times(repo: &Repo) -> Command {
    let mut command = repo.cargo();
    command.args(["test", "--package", "portcullis-cli", "--test", "it", "--locked", "--"]);
    command.args(["--nocapture", "build_times::"]);
    command
}

/// The command for the tests with servers that others wrote, by cargo's own runner: what is installed first takes longer
/// than nextest lets a test take.
pub fn others_models(repo: &Repo) -> Command {
    let mut command = repo.cargo();
    command.args(["test", "--package", "portcullis-cli", "--test", "it", "--locked", "--"]);
    // One after the other: each server alone keeps a small machine busy.
    command.args(["--nocapture", "--test-threads", "1", "others::"]).env("PORTCULLIS_SOAK_MODELS", "1");
    command
}

fn runner(repo: &Repo) -> Command {
    let mut command = repo.cargo();
    if process::works(repo.cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run", "--no-fail-fast"]);
    } else {
        println!("cargo-nextest is not installed; using `cargo test`");
        // Doc tests have a run of their own; `--tests` leaves them out here.
        command.args(["test", "--tests", "--no-fail-fast"]);
    }
    seeded(&mut command);
    command
}

/// The command for the examples in the documentation.
pub fn doc_tests(repo: &Repo) -> Command {
    let mut command = repo.cargo();
    command.args(["test", "--doc", "--workspace", "--locked", "--no-fail-fast"]);
    command
}

/// Runs one of the two, adds what it counted to `counts`, and fails if it failed.
pub fn run(command: &mut Command, counts: &mut Counts) -> Result<()> {
    run_and_name(command, counts, &mut Vec::new())
}

/// The same, with the names of the tests that failed.
pub fn run_and_name(command: &mut Command, counts: &mut Counts, failed: &mut Vec<String>) -> Result<()> {
    let status = process::watch(command, |line| {
        if let Some(seen) = counted(line) {
            *counts += seen;
        }
        if let Some(name) = failure(line)
            && !failed.contains(&name)
        {
            failed.push(name);
        }
    })?;
    process::succeeded(command, status)
}

/// The test that a line says has failed: `FAIL [   1.2s] (3/9) package::binary module::name` of nextest, which also says
/// `TIMEOUT` or the signal, or `test module::name ... FAILED` of libtest.
fn failure(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        return Some(name.to_owned());
    }
    let (word, rest) = line.trim_start().split_once(" [")?;
    if !matches!(word, "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL") && !word.starts_with("SIG") {
        return None;
    }
    let (_, name) = rest.split_once("] ")?;
    let name = name.trim();
    // The place in the list, which not every version shows.
    let name = name.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(name, |(_, name)| name);
    Some(name.trim().to_owned())
}

/// Reads the closing line of nextest (`Summary […] 3 tests run: 2 passed, 1 failed, 0 skipped`) or of one libtest
/// binary (`test result: ok. 3 passed; 0 failed; 0 ignored; …`).
fn counted(line: &str) -> Option<Counts> {
    let list = if line.trim_start().starts_with("Summary [") {
        line.split_once(" run: ")?.1
    } else {
        // Not trimmed: nextest shows the output of a failed test indented, and that ends with such a line too.
        line.strip_prefix("test result: ")?.split_once(". ")?.1
    };
    let mut counts = Counts::default();
    for part in list.split([',', ';']) {
        // "2 passed (1 slow)", "1 timed out", "1 exec failed", "0 skipped"
        let mut words = part.split_whitespace();
        let Some(Ok(number)) = words.next().map(str::parse::<u64>) else {
            continue;
        };
        match words.next() {
            Some("passed") => counts.passed += number,
            Some("failed" | "timed" | "exec") => counts.failed += number,
            _ => {}
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_of_both_runners_are_named() {
        let cases = [
            ("        FAIL [   0.005s] portcullis-cli::it hand::a_failure", Some("portcullis-cli::it hand::a_failure")),
            ("        FAIL [   1.005s] (  3/900) portcullis-base ids::one", Some("portcullis-base ids::one")),
            ("     TIMEOUT [  60.000s] portcullis-store it::two", Some("portcullis-store it::two")),
            ("     SIGABRT [   0.100s] portcullis-store it::three", Some("portcullis-store it::three")),
            ("test src/lib.rs - one (line 3) ... FAILED", Some("src/lib.rs - one (line 3)")),
            ("        PASS [   0.005s] portcullis-base ids::one", None),
            ("     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped", None),
            ("test a::b ... ok", None),
        ];
        for (line, expected) in cases {
            assert_eq!(failure(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn closing_lines_of_both_runners_are_counted() {
        let cases = [
            ("     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped", Some((3, 0))),
            (
                "     Summary [  61.1s] 12/20 tests run: 9 passed (2 slow), 2 failed, 1 timed out, 4 skipped",
                Some((9, 3)),
            ),
            ("     Summary [   0.1s] 1 test run: 1 passed, 0 skipped", Some((1, 0))),
            (
                "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s",
                Some((4, 1)),
            ),
            ("test result: ok. 0 passed; 0 failed; 0 ignored", Some((0, 0))),
            ("    test result: FAILED. 0 passed; 1 failed; 0 ignored", None),
            ("test a::b ... ok", None),
            ("3 passed, 0 failed", None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|(passed, failed)| Counts { passed, failed });
            assert_eq!(counted(line), expected, "{line}");
        }
    }
}
