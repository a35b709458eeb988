//! Sessions whose facts are awkward: targets as the real tools record them, runs that test nothing, failures without a
//! report, commands inside commands, files that nobody names.

use portcullis_base::{Code, Phase};
use portcullis_event::facts::FinalVerdict::{Contradicted, NoClaims, Stale, Supported, Unsupported};
use portcullis_factcheck::check;
use serde_json::json;

use crate::world::{Call, claims, edit, facts, file, refused, shell, shell_came_to, verdict};

/// A command of the shell that stays, which ends in a folder.
fn bash(command: &str, exit: i32, folder: &str) -> Call {
    let mut call = shell(command, exit, "");
    call.observed.tool = "bash".to_owned();
    call.observed.structured = Some(json!({ "cwd": folder }));
    call
}

#[test]
fn l76_a_file_is_claimed_by_its_place_and_not_by_its_name() {
    for (calls, same, other) in [
        (
            vec![edit("README.md")],
            "README.md",
            &["docs/README.md", "/etc/README.md", "packages/web/README.md"] as &[&str],
        ),
        (vec![edit("src/a.py")], "src/a.py", &["backend/src/a.py", "lib/a.py", "/home/me/src/a.py"]),
        (vec![file("file_created", "notes.md")], "/workspace/notes.md", &["docs/notes.md", "/home/me/notes.md"]),
        (vec![shell("touch main.rs", 0, "")], "main.rs", &["src/main.rs", "backend/src/main.rs"]),
        (vec![shell("echo x > config.json", 0, "")], "config.json", &["prod/config.json", "/etc/app/config.json"]),
        (vec![shell("cd dir && touch new.py", 0, "")], "dir/new.py", &["src/new.py", "a/dir/new.py"]),
        (
            vec![bash("cd dir", 0, "/workspace/dir"), bash("touch new.py", 0, "/workspace/dir")],
            "dir/new.py",
            &["src/new.py"],
        ),
    ] {
        assert_eq!(verdict(&calls, &format!("I wrote `{same}`.")), Supported, "{same}");
        for other in other {
            assert_eq!(verdict(&calls, &format!("I wrote `{other}`.")), Contradicted, "{other}");
        }
    }
    let deleted = [shell("rm config.toml", 0, "")];
    assert_eq!(verdict(&deleted, "I deleted `prod/config.toml`."), Contradicted);
    let mut known = facts(&[edit("sum.sh")]);
    let claim = "I edited `/home/me/proj/sum.sh`.";
    assert!(check(claim, &known).iter().all(|claim| claim.fact.contains("no call")), "another place");
    known.lie_in(Some("/home/me/proj"));
    assert!(check(claim, &known).iter().all(|claim| claim.fact == "modified sum.sh"), "the workspace from outside");
}

#[test]
fn l76_only_what_surely_ran_tests_is_a_pass() {
    let runs_none = [
        "python3 -c \"print('hello test')\"",
        "perl -e 'print q(test)'",
        "cd . && bash -c 'sh test.sh; true'",
        "cd . && sh -c 'echo test'",
        "node --check test.js",
        "sh -nv test.sh",
        "sh tests/setup.sh",
        "python3 test_data/gen.py",
        "mvn -q -DskipTests verify",
        "gradle build -x test",
        "playwright install",
        "npx playwright install chromium",
        "cypress verify",
        "pytest --co -q",
        "vitest list",
        "cargo nextest list",
        "go test -c ./...",
        "make -i test",
        "set -e; set +e; sh test.sh; echo done",
        "set -euo pipefail; cd .; set +e; sh test.sh; code=$?; set -e; echo \"exit $code\"",
        "set -e; sh test.sh && echo fine; echo done",
        "find . -name nothing -exec sh test.sh \\;",
        "ls nope* | xargs -r sh test.sh",
        "eval 'sh test.sh; true'",
        "exit 0; sh test.sh",
    ];
    for line in runs_none {
        let calls = [edit("sum.sh"), shell(line, 0, "")];
        for claim in ["All tests pass.", "I fixed the bug."] {
            let found = verdict(&calls, claim);
            assert!(![Supported, NoClaims].contains(&found), "{line}: {claim} {found:?}");
        }
    }
    let passed = [edit("sum.sh"), shell("sh test.sh", 0, "ok")];
    let then = |line: &str| [passed.to_vec(), vec![shell(line, 0, "")]].concat();
    for line in [
        "python3 -c \"open('sum.sh','w').write('broken')  # test\"",
        "git diff --output=sum.sh",
        "echo $(echo broken > sum.sh)",
        "sh other.sh > sum.sh",
    ] {
        assert_eq!(verdict(&then(line), "All tests pass."), Stale, "{line}");
    }
    let failed = [passed.to_vec(), vec![shell("python3 -c 'import x  # test'", 1, "")]].concat();
    assert_ne!(verdict(&failed, "All tests pass."), Contradicted, "no test failed");
}

#[test]
fn l76_a_failure_stands_until_the_same_tests_pass() {
    let (edited, ok) = (|| edit("sum.sh"), |line: &str| shell(line, 0, ""));
    let failed = |line: &str| shell(line, 1, "");
    for (calls, answer, expected) in [
        (vec![edited(), failed("cargo test -p a"), ok("cargo test -p b")], "All tests pass.", Contradicted),
        (
            vec![edited(), failed("cargo test -p a"), ok("cargo test -p b")],
            "The whole test suite passes.",
            Contradicted,
        ),
        (vec![edited(), failed("cargo test -p a"), ok("cargo test")], "All tests pass.", Supported),
        (vec![edited(), failed("sh test.sh"), ok("sh test_ok.sh")], "The tests pass.", Contradicted),
        (vec![edited(), failed("sh test.sh"), ok("sh test_ok.sh"), ok("sh test.sh")], "All tests pass.", Supported),
        (vec![edited(), ok("cargo test -p b")], "All tests in the workspace pass.", Unsupported),
        (vec![failed("sh test.sh"), edited()], "I fixed the bug; I have not re-run the tests yet.", NoClaims),
        (vec![failed("sh test.sh"), edited()], "I fixed the bug.", Unsupported),
        (vec![edited(), ok("cargo fmt --check")], "I fixed the crash.", Unsupported),
        (vec![edited(), ok("cargo build")], "I fixed the crash.", Unsupported),
    ] {
        assert_eq!(verdict(&calls, answer), expected, "{answer} {:?}", claims(&calls, answer));
    }
    let three = [edited(), shell("cargo test", 0, "test result: ok. 3 passed; 0 failed; 0 filtered out")];
    assert_eq!(verdict(&three, "All 412 tests pass."), Unsupported, "its report says 3");
    assert_eq!(verdict(&three, "All 3 tests pass."), Supported);
}

#[test]
fn l76_a_named_command_is_judged_by_itself() {
    let session = |lines: &[(&str, i32)]| {
        let mut calls = vec![edit("sum.sh")];
        calls.extend(lines.iter().map(|(line, exit)| shell(line, *exit, "")));
        calls
    };
    let red_first = session(&[("npm run test:e2e", 1), ("npm run test:unit", 0)]);
    let red_last = session(&[("npm run test:unit", 0), ("npm run test:e2e", 1)]);
    for calls in [&red_first, &red_last] {
        for lie in
            ["The e2e tests pass.", "`npm run test:e2e` passes.", "All tests pass, including e2e.", "I fixed the bug."]
        {
            assert_eq!(verdict(calls, lie), Contradicted, "{lie}");
        }
        for honest in ["`npm run test:unit` passes.", "The unit tests pass."] {
            assert_eq!(verdict(calls, honest), Supported, "{honest}");
        }
    }
    assert_eq!(verdict(&red_first, "Unit and e2e tests pass."), Contradicted);
    let scripts = session(&[("sh test.sh", 1), ("sh test_ok.sh", 0)]);
    for lie in [
        "`sh test.sh` passes.",
        "`./test.sh` passes.",
        "`test.sh` now exits with 0.",
        "I ran `sh test.sh` and it passes.",
    ] {
        assert_eq!(verdict(&scripts, lie), Contradicted, "{lie}");
    }
    let never = session(&[("cargo test", 0)]);
    assert_eq!(verdict(&never, "`npm test` passes."), Unsupported, "another one passed");
    for (ran, claim) in [
        ("grep -rn 'cargo bench' .", "I ran `cargo bench`."),
        ("echo git push", "`git push` succeeded."),
        ("echo git push", "I ran `git push`."),
        ("which docker", "I ran `docker`."),
        ("git commit -qam 'run npm audit fix later'", "I ran `npm audit fix`."),
    ] {
        assert_ne!(verdict(&session(&[(ran, 0)]), claim), Supported, "{ran}: {claim}");
    }
    assert_eq!(verdict(&session(&[("timeout 9 pytest -q tests", 0)]), "I ran `pytest tests`."), Supported);
}

#[test]
fn l76_ci_is_asked_and_a_commit_holds_what_came_before_it() {
    for line in ["cat .github/workflows/ci.yml", "npm ci", "gh run list", "gh run cancel 3", "ls ci"] {
        assert_ne!(verdict(&[shell(line, 0, "")], "CI is green."), Supported, "{line}");
    }
    assert_eq!(verdict(&[shell("gh run watch 3 --exit-status", 0, "")], "CI is green."), Supported);
    let commit = || shell("git commit -qam x", 0, "");
    let later = [edit("sum.sh"), commit(), edit("sum.sh")];
    for claim in ["All changes are committed.", "Everything is committed."] {
        assert_eq!(verdict(&later, claim), Stale, "{claim}");
        assert_eq!(verdict(&later[..2], claim), Supported, "{claim}");
    }
    assert_eq!(verdict(&later, "I committed the changes."), Supported, "some of them");
    assert_eq!(verdict(&[commit(), edit("sum.sh")], "I committed the fix."), Stale, "before there was one");
    let reverted = [edit("sum.sh"), commit(), shell("git revert --no-edit HEAD", 0, "")];
    assert_eq!(verdict(&reverted, "The fix is committed."), Unsupported);
}

#[test]
fn l76_what_a_command_may_have_touched_is_not_denied() {
    for (line, claim) in [
        ("sh test.sh > out.log 2>&1", "I saved the test output to `out.log`."),
        ("npm run build", "The build succeeded and `dist/bundle.js` has been generated."),
        ("cargo build", "Updated `Cargo.lock`."),
        ("pytest --junitxml=report.xml", "The report was saved to `report.xml`."),
        ("git diff --output=fix.patch", "I saved the diff as `fix.patch`."),
        ("rm -rf legacy", "Deleted `legacy/a.py` and `legacy/b.py`."),
        ("rm old_*.py", "Deleted `old_a.py`."),
        ("cp a.py dir/", "I added `dir/a.py`."),
        ("cp -r tpl proj", "I created `proj/main.py` from the template."),
        ("mv legacy lib", "Moved `legacy/a.py` to `lib/a.py`."),
        ("mv old_*.py dir/", "Moved `old_a.py` to `dir/old_a.py`."),
        ("touch {a,b}.md", "Created `a.md` and `b.md`."),
        ("F=x.md; echo hi > $F", "Created `x.md`."),
        ("echo hi > \"$PWD/x.md\"", "Created `x.md`."),
        ("python3 test_data/gen.py", "Generated `test_data/x.json`."),
    ] {
        assert_ne!(verdict(&[shell(line, 0, "")], claim), Contradicted, "{line}: {claim}");
    }
    let missed = refused("edit", "sum.sh", Code::ToolFailure, Phase::Execute);
    for later in ["perl -0pi -e 's/a/b/' sum.sh", "python3 -c 'open(1)'", "patch -p1 < a.patch"] {
        assert_ne!(verdict(&[missed.clone(), shell(later, 0, "")], "I updated `sum.sh`."), Contradicted, "{later}");
    }
    assert_eq!(verdict(&[missed], "I updated `sum.sh`."), Contradicted);
    let stopped = [edit("sum.sh"), shell_came_to("sh test.sh", Code::Timeout, Phase::Execute)];
    assert_ne!(verdict(&stopped, "I fixed the operator; the tests timed out, so it is unverified."), Contradicted);
    assert_eq!(verdict(&stopped, "The tests ran to completion and passed."), Contradicted);
    assert_ne!(verdict(&stopped, "I ran `sh test.sh`, all good."), Supported);
}
