//! What test runners say at their end, where it is clear (see [`super::check_of`]).
//!
//! A report can only lower a verdict: whoever writes the output could write a good one, so a pass needs an exit code.

use super::check_options::has;

/// What the output of a run says.
#[derive(Debug, Clone, Default)]
pub struct OutputReport {
    /// Tests failed; the runner itself is not there; it ran, and there was nothing to run; some were left out by a filter.
    pub failures: bool,
    pub no_runner: bool,
    pub nothing_ran: bool,
    pub left_out: bool,
    /// How many tests passed.
    pub count: Option<u64>,
    /// Something is said, and no `cd` complains.
    pub moved: bool,
}

/// Lines from the end that are looked at, so that a long output costs little. Summaries are at the end.
const LINES_MAX: usize = 2_000;

/// Beginnings of lines that tell of failures; what a line says if there is no runner; and if there was nothing to run.
const FAILURES: &str = "test result: failed|--- fail:|failed (failures=|failed (errors=|not ok |fail\t";
const NO_RUNNER: &str = "no module named pytest|no rule to make target|missing script:|: command not found";
const EMPTY: &str = "test result: ok. 0 passed; 0 failed|no tests ran|no tests found|ran 0 tests|[no test files]|\
    no tests to run|no test files found|no tests were found|no tests executed|no test is available|0 examples, 0 failures|# tests 0";

impl OutputReport {
    /// Reads the output of a run. What is cut counts nothing and proves no silence.
    #[must_use]
    pub fn read(output: &str, truncated: bool) -> Self {
        let mut report = Self::default();
        let (mut ran, mut skipped) = (0_u64, 0_u64);
        for line in output.lines().rev().take(LINES_MAX) {
            let line = line.trim().to_ascii_lowercase();
            let says = |list: &str| list.split('|').any(|text| line.contains(text));
            let fails = FAILURES.split('|').any(|start| line.starts_with(start)) || line == "fail";
            let failed = counted(&line, "failed failing failures failure fail").is_some_and(|count| count > 0);
            report.failures |= fails || failed;
            report.no_runner |= says(NO_RUNNER);
            report.nothing_ran |= says(EMPTY) || (line.starts_with("tests run: 0,") && !line.contains("time elapsed"));
            report.left_out |= counted(&line, "filtered deselected").is_some_and(|count| count > 0);
            // `ok  package` of go: it ran, unless it says that there was nothing.
            let package = (line.starts_with("ok ") || line.starts_with("ok\t")) && !line.contains("[no tests to run]");
            // Of Python's own runner: `Ran 3 tests in 0.1s`, `OK (skipped=1)`.
            let unittest =
                line.strip_prefix("ran ").filter(|rest| rest.contains(" in ")).and_then(|rest| rest.split(' ').next());
            let passed = counted(&line, "passed passing");
            let count = passed.or_else(|| unittest.and_then(|count| count.parse().ok()));
            ran += passed.or_else(|| counted(&line, "pass")).unwrap_or(0) + u64::from(package);
            report.count = count.map(|count: u64| count.saturating_add(report.count.unwrap_or(0))).or(report.count);
            let skips =
                line.strip_prefix("ok (skipped=").and_then(|rest| rest.trim_end_matches(')').parse::<u64>().ok());
            skipped = skipped.saturating_add(skips.unwrap_or(0));
        }
        report.no_runner &= ran == 0;
        report.nothing_ran &= ran == 0 && !truncated;
        report.count = report.count.map(|count| count.saturating_sub(skipped)).filter(|_| !truncated);
        report.moved = !truncated && !output.trim().is_empty() && !output.contains("cd:");
        report
    }
}

/// The number before one of the words, in a line that is a summary: numbers and few words.
fn counted(line: &str, words: &str) -> Option<u64> {
    let parts = line.split(|c: char| c.is_whitespace() || ",;:|=()".contains(c)).filter(|part| !part.is_empty());
    let mut before: Option<u64> = None;
    for part in parts.take(24) {
        if before.is_some() && has(words, part) {
            return before;
        }
        // `1 failed`, `1 test failed`
        before = part.parse::<u64>().ok().or(before.filter(|_| has("test tests example examples", part)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_count() {
        let read = |output: &str| OutputReport::read(output, false);
        for output in [
            "test result: FAILED. 3 passed; 1 failed; 0 ignored",
            "= 1 failed, 3 passed in 0.1s =",
            "Tests:       1 failed, 3 passed, 4 total",
            "FAILED (failures=1)",
            "--- FAIL: TestA (0.00s)",
            "not ok 2 - b",
            "75% tests passed, 1 tests failed out of 4",
        ] {
            assert!(read(output).failures, "{output}");
        }
        for output in ["test result: ok. 4 passed; 0 failed", "ok", "the last one failed to load", ""] {
            assert!(!read(output).failures, "{output}");
        }
        assert!(read("test result: ok. 0 passed; 0 failed; 9 filtered out").nothing_ran);
        assert!(read("python3: No module named pytest").no_runner);
        assert!(read("= 1 passed, 3 deselected in 0.1s =").left_out);
        let twice = "test result: ok. 2 passed; 0 failed\ntest result: ok. 1 passed; 0 failed";
        assert_eq!((read(twice).count, read("Ran 3 tests in 0.1s\n\nOK (skipped=1)").count), (Some(3), Some(2)));
    }
}
