//! What test runners say at their end, where it is clear.
//!
//! A report can only lower a verdict: whoever writes the output could write a good one, so a pass needs an exit code.

/// What the output says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// Tests failed.
    Failures,
    /// The runner itself is not there.
    NoRunner,
    /// It ran, and there was nothing to run.
    NothingRan,
    /// Nothing clear.
    Silent,
}

/// Lines from the end that are looked at, so that a long output costs little. Summaries are at the end; the words of
/// `cargo test` stand after each target.
const LINES_MAX: usize = 2_000;

/// Reads the output of a test runner.
pub(super) fn read(output: &str) -> Report {
    let (mut failures, mut no_runner, mut ran, mut empty) = (false, false, 0_u64, false);
    for line in output.lines().rev().take(LINES_MAX) {
        let line = line.trim().to_ascii_lowercase();
        failures |= line.starts_with("test result: failed")
            || line.starts_with("--- fail:")
            || line.starts_with("failed (failures=")
            || line.starts_with("failed (errors=")
            || line.starts_with("not ok ")
            || line == "fail"
            || line.starts_with("fail\t")
            || counted(&line, &["failed", "failing", "failures", "failure"]).is_some_and(|count| count > 0);
        no_runner |= line.contains("no module named pytest") || line.ends_with(": command not found");
        ran += counted(&line, &["passed", "passing", "passed;"]).unwrap_or(0);
        empty |= line.starts_with("test result: ok. 0 passed; 0 failed")
            || line.contains("no tests ran")
            || line.contains("no tests found")
            || line.starts_with("ran 0 tests")
            || line.contains("[no test files]");
    }
    if failures {
        Report::Failures
    } else if no_runner && ran == 0 {
        Report::NoRunner
    } else if empty && ran == 0 {
        Report::NothingRan
    } else {
        Report::Silent
    }
}

/// The number before one of the words, in a line that is a summary: numbers and few words.
fn counted(line: &str, words: &[&str]) -> Option<u64> {
    let mut parts = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '|' | '=' | '(' | ')'));
    let mut before: Option<u64> = None;
    let mut steps = 0;
    let found = loop {
        let part = parts.next()?;
        if part.is_empty() {
            continue;
        }
        steps += 1;
        // `1 failed`, `1 test failed`, `2 tests failed`
        if words.contains(&part)
            && let Some(count) = before
        {
            break count;
        }
        match part.parse::<u64>() {
            Ok(count) => before = Some(count),
            Err(_) if matches!(part, "test" | "tests" | "example" | "examples") => {}
            Err(_) => before = None,
        }
        if steps > 24 {
            return None;
        }
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_found_in_what_runners_print() {
        for output in [
            "running 2 tests\ntest result: FAILED. 1 passed; 1 failed; 0 ignored",
            "=========== 1 failed, 3 passed in 0.12s ===========",
            "Tests:       2 failed, 10 passed, 12 total",
            "  3 passing (10ms)\n  1 failing",
            "--- FAIL: TestSum (0.00s)\nFAIL\nFAIL\texample.com/sum\t0.001s",
            "FAILED (failures=1)",
            "14 examples, 2 failures",
            "not ok 1 - adds",
            "1 test failed",
        ] {
            assert_eq!(read(output), Report::Failures, "{output}");
        }
        for output in
            ["test result: ok. 3 passed; 0 failed; 0 ignored", "3 examples, 0 failures", "ok 1 - adds", "PASS"]
        {
            assert_eq!(read(output), Report::Silent, "{output}");
        }
        for output in
            ["running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 3 filtered out", "no tests ran in 0.01s"]
        {
            assert_eq!(read(output), Report::NothingRan, "{output}");
        }
        assert_eq!(
            read("test result: ok. 0 passed; 0 failed\ntest result: ok. 4 passed; 0 failed"),
            Report::Silent,
            "one of two targets is empty"
        );
        assert_eq!(read("python3: No module named pytest"), Report::NoRunner);
    }
}
