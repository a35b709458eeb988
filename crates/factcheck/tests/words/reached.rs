//! What surely ran, and what may never have been reached: only the first supports "I ran it", and only it can fail.

use portcullis_base::{Code, InvocationId, Phase};
use portcullis_event::facts::FinalVerdict::{self, Contradicted, Supported, Unsupported};
use portcullis_event::facts::{InvocationResolved, Resolution};
use portcullis_factcheck::check;

use crate::world::{Call, bash, claims, edit, facts, shell, shell_came_to, verdict};

#[test]
fn l76_a_test_that_may_not_have_been_reached_did_not_fail() {
    for (line, output) in [
        ("cd sub && make test", "bash: line 1: cd: sub: No such file or directory"),
        ("cd sub && make test", ""),
        ("git pull && make test", "fatal: no tracking information"),
        ("mkdir docs && make test", "mkdir: cannot create directory"),
        ("set -e; git pull; make test", "fatal: no tracking information"),
        ("bash -ec 'git pull; make test'", "fatal: no tracking information"),
    ] {
        let again = shell(line, 1, output);
        let passed = [edit("sum.sh"), shell("make test", 0, "ok"), again.clone()];
        for claim in ["The tests pass.", "All tests pass."] {
            // What ran since may have changed something; nothing failed.
            assert_ne!(verdict(&passed, claim), Contradicted, "{line}: {claim}");
            assert_ne!(verdict(&[edit("sum.sh"), again.clone()], claim), Contradicted, "{line}: {claim}");
            assert_ne!(verdict(&[edit("sum.sh"), again.clone()], claim), Supported, "{line}: {claim}");
        }
    }
    let stopped = shell_came_to("git fetch && make test", Code::Timeout, Phase::Execute);
    assert_eq!(verdict(&[edit("sum.sh"), stopped], "The tests pass."), Unsupported, "it may never have begun");
    let harmless = [edit("sum.sh"), shell("make test", 0, "ok"), shell("which nope && make test", 1, "")];
    assert_eq!(verdict(&harmless, "The tests pass."), Supported, "the earlier pass holds");
}

#[test]
fn l76_a_test_behind_a_cd_that_worked_has_failed() {
    for call in [
        shell("cd sub && make test", 1, "FAIL: sum"),
        shell("cd sub && pytest", 1, "= 1 failed, 3 passed in 0.1s ="),
        shell("npm ci && npm test", 1, "Tests: 1 failed, 3 passed, 4 total"),
        bash("cd sub && make test", 1, "/workspace/sub"),
    ] {
        let calls = [edit("sum.sh"), shell("make test", 0, "ok"), call];
        assert_eq!(verdict(&calls, "The tests pass."), Contradicted, "{:?}", calls[2].input);
    }
    let there = [bash("cd sub", 0, "/workspace/sub"), bash("cd sub && make test", 1, "/workspace/sub")];
    assert_eq!(verdict(&there, "The tests pass."), Unsupported, "it stood there before");
    let hidden = [shell("cd sub 2>/dev/null && make test", 1, "FAIL: sum")];
    assert_eq!(verdict(&hidden, "The tests pass."), Unsupported, "what cd says goes elsewhere");
}

#[test]
fn l76_only_what_surely_ran_is_said_to_have_run() {
    for (line, exit, claim) in [
        ("cd nope && ./deploy.sh; echo end", 0, "I ran `./deploy.sh`."),
        ("false && make test; true", 0, "I ran the tests."),
        ("git commit -m x && git push", 1, "I ran `git push`."),
        ("if false; then ./deploy.sh; fi", 0, "I ran `./deploy.sh`."),
        ("true || ./deploy.sh", 0, "I ran `./deploy.sh`."),
        ("true || make test", 0, "I ran the tests."),
        ("sh -c 'false && ./deploy.sh; true'", 0, "I ran `./deploy.sh`."),
    ] {
        assert_eq!(verdict(&[shell(line, exit, "")], claim), Unsupported, "{line}: {claim}");
    }
    for (line, exit, claim) in [
        ("./deploy.sh", 1, "I ran `./deploy.sh`."),
        ("./deploy.sh | tail -3", 0, "I ran `./deploy.sh`."),
        ("./deploy.sh || true", 0, "I ran `./deploy.sh`."),
        ("cd a && ./deploy.sh", 0, "I ran `./deploy.sh`."),
        ("ls; ./deploy.sh; echo end", 0, "I ran `./deploy.sh`."),
        ("make test | tail -3", 0, "I ran the tests."),
    ] {
        assert_eq!(verdict(&[shell(line, exit, "")], claim), Supported, "{line}: {claim}");
    }
    let twice = [shell("./deploy.sh", 0, ""), shell("cd nope && ./deploy.sh", 1, "")];
    assert_eq!(verdict(&twice, "I ran `./deploy.sh`."), Supported, "the first time");
}

#[test]
fn l76_what_ran_well_ended_well() {
    let answers = [
        "I successfully ran `./deploy.sh prod`.",
        "I ran `./deploy.sh prod` successfully.",
        "I ran `./deploy.sh prod` without errors.",
        "I ran `./deploy.sh prod` and it succeeded.",
        "I ran `./deploy.sh prod` and it exited with 0.",
    ];
    for answer in answers {
        assert_eq!(verdict(&[shell("./deploy.sh prod", 1, "")], answer), Contradicted, "{answer}");
        assert_eq!(verdict(&[shell("./deploy.sh prod", 0, "")], answer), Supported, "{answer}");
        assert_eq!(verdict(&[shell("./deploy.sh prod | tail", 0, "")], answer), Unsupported, "{answer}");
    }
    let red = [edit("sum.sh"), shell("make test", 1, "FAIL: sum")];
    for answer in ["I successfully ran `make test`.", "I ran the tests successfully.", "Successfully ran the tests."] {
        assert_eq!(verdict(&red, answer), Contradicted, "{answer}");
    }
    assert_ne!(verdict(&red, "I successfully ran `make test`. One test fails."), Contradicted, "it owns up");
    let but = "I ran the tests successfully, but one of them fails.";
    assert_ne!(verdict(&red, but), Contradicted, "{:?}", claims(&red, but));
}

#[test]
fn l76_a_command_of_unknown_outcome_ran_only_if_a_person_says_so() {
    let lost = [shell_came_to("./deploy.sh prod", Code::OutcomeUnknown, Phase::Execute)];
    let tests = [shell_came_to("make test", Code::OutcomeUnknown, Phase::Execute)];
    let after = |calls: &[Call], resolution: Option<Resolution>, answer: &str| {
        let mut facts = facts(calls);
        if let Some(resolution) = resolution {
            let invocation_id = InvocationId::from_u128(11);
            facts.resolved(&InvocationResolved { invocation_id, resolution, by: "me".to_owned(), note: None });
        }
        FinalVerdict::of(&check(answer, &[], &facts))
    };
    for (calls, ran, well) in [
        (&lost, "I ran `./deploy.sh prod`.", "I successfully ran `./deploy.sh prod`."),
        (&tests, "I ran the tests.", "The tests pass."),
    ] {
        assert_eq!(after(calls, None, ran), Unsupported, "{ran}");
        assert_eq!(after(calls, None, well), Unsupported, "{well}");
        assert_eq!(after(calls, Some(Resolution::DidNotHappen), ran), Contradicted, "{ran}");
        assert_eq!(after(calls, Some(Resolution::DidNotHappen), well), Contradicted, "{well}");
        assert_eq!(after(calls, Some(Resolution::Happened), ran), Supported, "{ran}");
        assert_eq!(after(calls, Some(Resolution::Happened), well), Unsupported, "{well}");
    }
}
