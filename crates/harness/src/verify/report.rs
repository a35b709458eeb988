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
        no_runner |= line.contains("no module named pytest")
            || line.contains("no rule to make target")
            || line.contains("missing script:")
            || line.ends_with(": command not found");
        // `ok  	package` of go: it ran, unless it says that there was nothing.
        let package = (line.starts_with("ok ") || line.starts_with("ok\t")) && !line.contains("[no tests to run]");
        ran += counted(&line, &["passed", "passing", "passed;", "pass"]).unwrap_or(0) + u64::from(package);
        empty |= line.starts_with("test result: ok. 0 passed; 0 failed")
            || line.contains("no tests ran")
            || line.contains("no tests found")
            || line.starts_with("ran 0 tests")
            || line.contains("[no test files]")
            || line.contains("no tests to run")
            || line.contains("no test files found")
            || line.contains("no tests were found")
            || line.contains("no tests executed")
            || line.contains("no test is available")
            || line.starts_with("0 examples, ")
            || line.starts_with("# tests 0")
            || (line.starts_with("tests run: 0,") && !line.contains("time elapsed"));
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

/// How many tests passed, where the output says so.
pub(super) fn count(output: &str) -> Option<u64> {
    let counts = output.lines().rev().take(LINES_MAX);
    let told = |line: &str| {
        let line = line.trim().to_ascii_lowercase();
        // Of Python's own runner, whose tests that fail are told apart below.
        let ran = line.strip_prefix("ran ").filter(|rest| rest.contains(" tests in ") || rest.contains(" test in "));
        let ran = ran.and_then(|rest| rest.split(' ').next()?.parse().ok());
        counted(&line, &["passed", "passing", "passed;"]).or(ran)
    };
    let left_out = |line: &str| {
        let (_, rest) = line.trim().strip_prefix("OK (")?.split_once("skipped=")?;
        rest.trim_end_matches(')').split([',', ')']).next()?.parse::<u64>().ok()
    };
    let skipped = output.lines().rev().take(LINES_MAX).filter_map(left_out).fold(0, u64::saturating_add);
    counts.filter_map(told).reduce(u64::saturating_add).map(|count| count.saturating_sub(skipped))
}

/// Whether tests were left out by a filter, and the names of those that passed.
pub(super) fn parts(output: &str) -> (bool, Vec<String>) {
    let mut left_out = false;
    let mut passed = Vec::new();
    for line in output.lines().rev().take(LINES_MAX) {
        let line = line.trim();
        let summary = line.to_ascii_lowercase();
        left_out |= counted(&summary, &["filtered", "deselected"]).is_some_and(|count| count > 0);
        passed.extend(passed_one(line).map(|name| name.trim().to_ascii_lowercase()));
    }
    (left_out, passed)
}

/// The test that a line says passed: `test NAME ... ok`, `FILE::NAME PASSED`, `--- PASS: NAME (0.00s)`, `✓ NAME`,
/// `ok 1 - NAME`.
fn passed_one(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ok")) {
        return Some(name);
    }
    if let Some((name, _)) = line.split_once(" PASSED") {
        return name.rsplit("::").next();
    }
    if let Some(rest) = line.strip_prefix("--- PASS: ") {
        return rest.split(' ').next();
    }
    if let Some(rest) = line.strip_prefix("ok ") {
        return rest.split_once(" - ").map(|(_, name)| name);
    }
    let rest = line.strip_prefix('✓').or_else(|| line.strip_prefix('✔')).or_else(|| line.strip_prefix("PASS: "))?;
    rest.split(" (").next()
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
        for output in [
            "ok  \tx\t0.1s [no tests to run]",
            "No test files found, exiting with code 0",
            "No tests were found!!!",
            "Tests run: 0, Failures: 0, Errors: 0, Skipped: 0",
            "0 examples, 0 failures",
        ] {
            assert_eq!(read(output), Report::NothingRan, "{output}");
        }
        assert_eq!(read("ok  \tx\t0.1s [no tests to run]\nok  \ty\t0.2s"), Report::Silent, "one package has tests");
        assert_eq!(
            read("test result: ok. 0 passed; 0 failed\ntest result: ok. 4 passed; 0 failed"),
            Report::Silent,
            "one of two targets is empty"
        );
        assert_eq!(read("python3: No module named pytest"), Report::NoRunner);
        for output in ["make: *** No rule to make target 'test'.  Stop.", "npm error Missing script: \"test\""] {
            assert_eq!(read(output), Report::NoRunner, "{output}");
        }
        assert_eq!(count("test result: ok. 2 passed; 0 failed\ntest result: ok. 1 passed; 0 failed"), Some(3));
        assert_eq!((count("= 3 passed, 1 skipped in 0.1s ="), count("ok")), (Some(3), None));
    }

    #[test]
    fn what_a_report_says_of_single_tests_is_read() {
        let cargo = "test parse_one ... ok\ntest parse_empty ... FAILED\ntest result: ok. 1 passed; 3 filtered out";
        assert_eq!(parts(cargo), (true, vec!["parse_one".to_owned()]));
        for output in
            ["tests/test_a.py::test_b PASSED [ 50%]", "--- PASS: test_b (0.00s)", "  ✓ test_b (3 ms)", "ok 1 - test_b"]
        {
            assert_eq!(parts(output), (false, vec!["test_b".to_owned()]), "{output}");
        }
        assert!(parts("= 1 passed, 3 deselected in 0.1s =").0);
        assert!(!parts("test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out").0);
    }
}
