//! What a call verified, from its facts (tool-contract §24).

use portcullis_base::{Code, Phase};
use portcullis_event::facts::VerificationKind::{Build, Lint, Service, Tests};
use portcullis_event::facts::VerificationVerdict::{Failed, Inconclusive, NotRun, Passed};

use crate::world::{Call, observed, shell, shell_came_to, verified};

#[test]
fn l76_a_verification_is_made_of_exit_code_and_report() {
    let red = "test result: FAILED. 3 passed; 1 failed";
    for (line, exit, output, expected) in [
        ("cargo test", 0, "", Passed),
        ("cargo test", 101, red, Failed),
        ("cd x && sh test.sh 2>&1", 1, "FAIL: sum", Failed),
        ("cd x && sh test.sh 2>&1", 1, "", Inconclusive),
        ("npm ci && npm test", 1, "npm error ERESOLVE", Inconclusive),
        ("npm ci && npm test", 1, "Tests: 1 failed, 3 passed, 4 total", Failed),
        ("cargo test | tail -3", 0, "test result: ok. 4 passed; 0 failed", Inconclusive),
        ("cargo test | tail -3", 0, red, Failed),
        ("cargo test || true", 0, red, Failed),
        ("set -o pipefail; cargo test | tail -3", 0, "", Passed),
        ("sh test.sh", 0, "2 failed", Failed),
        // A test may print such words; the runner's own exit code is surer.
        ("cargo test", 0, "1 failed", Passed),
        ("cargo test nothing", 0, "test result: ok. 0 passed; 0 failed; 9 filtered out", Inconclusive),
        ("pytest", 127, "sh: pytest: command not found", NotRun),
        ("python3 -m pytest", 1, "python3: No module named pytest", NotRun),
    ] {
        let found = verified(&shell(line, exit, output));
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!((found[0].kind, found[0].verdict), (Tests, expected), "{line} ({exit}): {output}");
        assert_eq!((found[0].after_seq, found[0].evidence.len()), (9, 1));
    }
}

#[test]
fn l76_what_did_not_run_or_did_not_end_is_no_pass() {
    for (code, phase, expected) in [
        (Code::UserDenied, Phase::Permission, NotRun),
        (Code::SandboxUnavailable, Phase::Execute, NotRun),
        (Code::Timeout, Phase::Execute, Inconclusive),
        (Code::OutcomeUnknown, Phase::Execute, Inconclusive),
        (Code::BackgroundStarted, Phase::Execute, Inconclusive),
        (Code::InternalError, Phase::Execute, Inconclusive),
    ] {
        let found = verified(&shell_came_to("cargo test", code, phase));
        assert_eq!(found[0].verdict, expected, "{code:?}");
    }
}

#[test]
fn one_line_may_verify_several_things() {
    let found = verified(&shell("cargo build && cargo clippy && cargo test", 0, ""));
    let kinds: Vec<_> = found.iter().map(|one| (one.kind, one.verdict)).collect();
    assert_eq!(kinds, [(Build, Passed), (Lint, Passed), (Tests, Passed)]);
    let found = verified(&shell("cargo build && cargo test", 101, ""));
    assert!(found.iter().all(|one| one.verdict == Inconclusive), "{found:?}");
    assert!(verified(&shell("ls -l && git status", 0, "")).is_empty());
}

#[test]
fn a_tool_says_itself_what_it_verifies() {
    let call = |code: Code| Call {
        input: serde_json::json!({}),
        observed: observed("ping", code, Phase::Execute),
        verifies: Some(Service),
    };
    let verdict = |code| verified(&call(code)).first().map(|one| (one.kind, one.target.clone(), one.verdict));
    assert_eq!(verdict(Code::Ok), Some((Service, "ping".to_owned(), Passed)));
    assert_eq!(verdict(Code::ToolFailure), Some((Service, "ping".to_owned(), Failed)));
    assert_eq!(verdict(Code::ExternalUnreachable), Some((Service, "ping".to_owned(), Inconclusive)));
}
