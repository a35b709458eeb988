//! Sessions in a few words: what was called, and how it ended; and tables of answers over them.

use portcullis_base::{
    Code, IntentId, InvocationId, MenuId, ObservationId, Phase, Recovery, SideEffect, SideEffects, Trust, TurnId,
};
use portcullis_event::facts::FinalVerdict::{self, Contradicted, NoClaims, Stale, Supported};
use portcullis_event::facts::{Claim, Verification, VerificationKind};
use portcullis_event::{ContentFormat, ContentPart, Observed};
use portcullis_factcheck::{CallFact, Facts, check, verifications_of};
use serde_json::{Value, json};

/// A call with its input, ready to be taken.
#[derive(Debug, Clone)]
pub struct Call {
    pub input: Value,
    pub observed: Observed,
    pub verifies: Option<VerificationKind>,
}

/// A call that did nothing and said nothing.
pub fn observed(tool: &str, code: Code, phase: Phase) -> Observed {
    let (observation, intent) = (ObservationId::from_u128(7), IntentId::from_u128(8));
    let (turn, menu, invocation) = (TurnId::from_u128(9), MenuId::from_u128(10), InvocationId::from_u128(11));
    let made = json!({
        "observation_id": observation, "intent_id": intent, "call_id": "c1", "tool": tool, "turn_id": turn,
        "menu_id": menu, "invocation_id": invocation, "attempt": 1, "ok": code == Code::Ok, "phase": phase,
        "code": code, "title": tool, "summary": "done", "duration_us": 1_000, "side_effects": SideEffects::none(),
        "retryable": false, "recovery": Recovery::None, "retained": true,
    });
    serde_json::from_value(made).expect("an observation")
}

fn effect(kind: &str, target: &str) -> SideEffects {
    let effect =
        SideEffect { kind: kind.to_owned(), target: target.to_owned(), before: None, after: None, reversible: true };
    SideEffects::occurred(vec![effect])
}

/// A command that ended with this exit code and said this.
pub fn shell(command: &str, exit: i32, output: &str) -> Call {
    let code = if exit == 0 { Code::Ok } else { Code::CommandFailed };
    let mut seen = observed("shell_run", code, Phase::Execute);
    // A success carries no exit code: it is one because the code was 0.
    seen.exit_code = (exit != 0).then_some(exit);
    seen.side_effects = effect("command_run", "/workspace");
    let (trust, format, source) = (Trust::ToolOutputUntrusted, ContentFormat::Text, "stdout+stderr".to_owned());
    seen.content = vec![ContentPart { trust, format, source, text: Some(output.to_owned()), artifact: None }];
    Call { input: json!({"command": command}), observed: seen, verifies: None }
}

/// A command of the shell that stays, which ends in a folder.
pub fn bash(command: &str, exit: i32, folder: &str) -> Call {
    let mut call = shell(command, exit, "");
    call.observed.tool = "bash".to_owned();
    call.observed.structured = Some(json!({ "cwd": folder }));
    call
}

/// A command that came to something else.
pub fn shell_came_to(command: &str, code: Code, phase: Phase) -> Call {
    let mut seen = observed("shell_run", code, phase);
    if phase == Phase::Execute {
        seen.side_effects = SideEffects::unknown(Vec::new());
    }
    Call { input: json!({"command": command}), observed: seen, verifies: None }
}

/// A file tool that did this.
pub fn file(kind: &str, path: &str) -> Call {
    let mut seen = observed("edit", Code::Ok, Phase::Execute);
    seen.side_effects = effect(kind, path);
    Call { input: json!({"file_path": path}), observed: seen, verifies: None }
}

pub fn edit(path: &str) -> Call {
    file("file_modified", path)
}

/// A file tool that did nothing.
pub fn refused(tool: &str, path: &str, code: Code, phase: Phase) -> Call {
    Call { input: json!({"file_path": path}), observed: observed(tool, code, phase), verifies: None }
}

pub fn facts(calls: &[Call]) -> Facts {
    let mut facts = Facts::default();
    for (seq, call) in calls.iter().enumerate() {
        let mut seen = call.observed.clone();
        seen.observation_id = ObservationId::from_u128(seq as u128 + 1);
        facts.take(&CallFact { input: &call.input, observed: &seen, seq: seq as u64 + 1, verifies: call.verifies });
    }
    facts
}

pub fn verified(call: &Call) -> Vec<Verification> {
    verifications_of(&CallFact { input: &call.input, observed: &call.observed, seq: 9, verifies: call.verifies })
}

pub fn claims(calls: &[Call], answer: &str) -> Vec<Claim> {
    check(answer, &[], &facts(calls))
}

pub fn verdict(calls: &[Call], answer: &str) -> FinalVerdict {
    FinalVerdict::of(&claims(calls, answer))
}

/// Sessions by name.
pub fn history(name: &str) -> Vec<Call> {
    let fails =
        "test parse_one ... ok\ntest parse_empty ... FAILED\ntest result: FAILED. 3 passed; 1 failed; 0 ignored";
    let passes = "test result: ok. 4 passed; 0 failed; 0 filtered out";
    let (a, sum) = (|| edit("/workspace/src/a.rs"), || edit("/workspace/sum.sh"));
    let (red, green) = (|| shell("cargo test", 101, fails), || shell("cargo test", 0, passes));
    let (script_red, script_green) = (|| shell("sh test.sh", 1, "FAIL: sum"), || shell("sh test.sh", 0, "ok"));
    match name {
        "red" | "cargo_red" => vec![red(), a(), red()],
        "cargo_green" => vec![a(), green()],
        "script_red" => vec![script_red(), sum(), script_red()],
        "script_green" => vec![script_red(), sum(), script_green()],
        "edit_red" => vec![edit("sum.sh"), script_red()],
        "red_py" => vec![edit("calc.py"), shell("pytest -q", 1, "2 failed, 12 passed in 0.12s")],
        "one_left" => {
            let output = "FAIL: test_zero (test_calc.T)\nRan 3 tests in 0.001s\n\nFAILED (failures=1)";
            vec![edit("/workspace/calc.py"), shell("python3 -m unittest", 1, output)]
        }
        "make_red" => vec![sum(), shell("make test", 0, ""), shell("make lint", 2, ""), shell("make build", 2, "")],
        "timed_out" => vec![shell_came_to("sh slow_test.sh", Code::Timeout, Phase::Execute)],
        "timeout" => vec![a(), shell_came_to("make test", Code::Timeout, Phase::Execute)],
        "never" => vec![edit("src/app.py")],
        "looked" => vec![shell("git log --oneline", 0, "abc fix"), shell("cat src/db.rs", 0, "fn main() {}")],
        "looked_only" => vec![shell("cat sum.sh", 0, "echo"), shell("grep TODO_XYZ calc.py", 1, "")],
        "stale" => vec![a(), green(), edit("README.md")],
        "denied" => vec![a(), shell_came_to("cargo test", Code::UserDenied, Phase::Permission)],
        "lint_red" => vec![a(), green(), shell("cargo clippy", 101, "warning: x")],
        "build_red" => vec![a(), shell("npm run build", 2, "error TS1")],
        "partial" => vec![a(), shell("cargo test parse_one", 0, "test result: ok. 1 passed; 0 failed; 3 filtered out")],
        "commit_failed" => vec![a(), green(), shell("git commit -m x", 1, "nothing added")],
        "install_failed" => vec![shell("pip install requests", 1, "ERROR")],
        "file_denied" => vec![refused("write", "/workspace/docs/guide.md", Code::UserDenied, Phase::Permission)],
        "green" => vec![a(), shell("cargo build", 0, ""), shell("cargo clippy", 0, ""), green()],
        "committed" => [history("green"), vec![shell("git commit -am 'Fix parser'", 0, "")]].concat(),
        "npm_done" => vec![
            shell("npm test", 1, "1 failed"),
            file("file_created", "/workspace/src/date.ts"),
            edit("/workspace/src/index.ts"),
            shell("npm run build", 0, ""),
            shell("npm test", 0, "Tests: 12 passed, 12 total"),
            shell("git add -A && git commit -m 'Add dates' && git push", 0, ""),
        ],
        "thorough" => vec![
            file("file_created", "/workspace/src/parse.rs"),
            edit("/workspace/src/lib.rs"),
            shell("rm src/old.rs", 0, ""),
            shell("git mv docs/a.md docs/b.md", 0, ""),
            shell("cargo build", 0, ""),
            shell("cargo clippy --all-targets", 0, ""),
            shell("cargo test 2>&1", 0, "test result: ok. 12 passed; 0 failed; 0 ignored"),
            shell("git add -A && git commit -m 'Parse numbers'", 0, ""),
        ],
        other => panic!("no history is called {other}"),
    }
}

/// Every answer of a table has a verdict that is right; names those that have another. `@name` begins the answers over a
/// history; they are kept apart by `¦` and line ends; `⏎` is a line end of an answer.
fn table(answers: &str, right: fn(FinalVerdict) -> bool) {
    let mut calls = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for line in answers.lines() {
        if let Some(name) = line.strip_prefix('@') {
            calls = history(name);
            continue;
        }
        for answer in line.split('¦').map(|answer| answer.trim().replace('⏎', "\n")).filter(|one| !one.is_empty()) {
            let claims = claims(&calls, &answer);
            if !right(FinalVerdict::of(&claims)) {
                wrong.push(format!("WRONG {answer:?}\n  {claims:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// These answers lie: the facts say the opposite, or are too old.
pub fn caught(answers: &str) {
    table(answers, |verdict| matches!(verdict, Contradicted | Stale));
}

/// These answers claim what the facts do not prove.
pub fn unproved(answers: &str) {
    table(answers, |verdict| !matches!(verdict, Supported | NoClaims));
}

/// These answers are honest.
pub fn not_accused(answers: &str) {
    table(answers, |verdict| verdict != Contradicted);
}

/// These answers are honest, and the facts prove them.
pub fn supported(answers: &str) {
    table(answers, |verdict| verdict == Supported);
}
