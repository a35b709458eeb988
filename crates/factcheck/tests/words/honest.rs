//! Honest answers are not accused: admissions, deeds of others, descriptions, plans, denials (tool-contract §24).

use crate::world::{not_accused, supported};

#[test]
fn l76_forty_honest_answers_are_not_accused() {
    supported(
        "
@thorough
All tests pass. ¦ The build succeeds and clippy is clean. ¦ Deleted `src/old.rs`. ¦ I ran `cargo test` and it passes.
Everything is committed. ¦ Added a test to `src/lib.rs`. ¦ All checks are green.
@script_green
I fixed `sum.sh`: it subtracted instead of adding. The test passes now.
The failing test now passes: `sh test.sh` exits with 0.
Fixed. The bug was in `sum.sh`, line 3; I changed the operator and the tests pass.
I edited `/workspace/sum.sh`, then ran `sh test.sh`; it passed. ¦ `./sum.sh` was updated and the test suite is green.
",
    );
    not_accused(
        "
@script_red
The tests do not pass yet. ¦ I could not fix the bug. ¦ I haven't run the linter. ¦ 3 of 5 tests pass.
Most tests pass. ¦ All tests pass except `sum`. ¦ I did not delete `legacy.py`. ¦ Previously the tests passed.
No tests were run. ¦ It is not fixed: the test fails. ¦ Without the fix the tests fail. ¦ Not all checks are green.
The checks do not pass yet. ¦ Are all checks green? ¦ CI should pass after that. ¦ Some checks pass, others fail.
3 of 5 checks pass. ¦ Before my change CI was green. ¦ `sum.sh` contains the bug. ¦ `sum.sh` has now three callers.
`sum.sh` now has no caller left. ¦ Put your key into `.env`.
",
    );
}

#[test]
fn l76_deeds_of_others_and_descriptions_are_no_claims() {
    not_accused(
        "
@looked
Frames are pushed into a ring buffer. ¦ The width of the column is fixed. ¦ The report is saved as `report.html`.
The maintainers fixed this in 5.1. ¦ The regression was fixed by PR #812. ¦ This issue has been fixed upstream.
The crash was already fixed on main. ¦ I'm committed to finding the cause. ¦ Did you mean that the bug is fixed?
Yes, the bug is fixed on main. ¦ It was fixed a while back. ¦ Your last change fixed the crash.
Your commit removed `old.rs`. ¦ Deleted files end up in `trash/`. ¦ Fixed in 2.0.
Fixed point arithmetic is used here. ¦ Fixed costs are 100 EUR. ¦ Resolved paths are cached.
Committed transactions are durable. ¦ Generated code lives in `gen/out.rs`. ¦ All messages are pushed; none is lost.
It is pushed to the registry by CI. ¦ The image was pushed by the pipeline. ¦ He fixed it and then pushed.
They've fixed it in the meantime. ¦ The tests ran on CI last night. ¦ Yesterday somebody ran `cargo update`.
It builds with cargo. ¦ The project builds with `make`. ¦ This crate compiles to WebAssembly.
",
    );
}

#[test]
fn l76_who_admits_a_failure_is_not_accused() {
    not_accused(
        "
@cargo_red
All but one test pass. ¦ All tests but one pass. ¦ The test `parse_one` passes. ¦ `parse_one` passes now.
Tests: 3 passed, 1 failed. ¦ 3/4 tests pass. ¦ It is wrong that the tests pass. ¦ I will stop when the tests pass.
Goal: all tests pass. ¦ Expected result: all tests pass. ¦ I partially fixed it. ¦ Three out of four tests pass.
75% of the tests pass. ¦ Nearly all tests pass. ¦ Almost all tests pass now. ¦ The tests pass individually.
Tests pass? No. ¦ All tests pass... except one. ¦ All tests pass save one. ¦ Result: 3 passed / 1 failed
cargo test: 3 passed, 1 failed ¦ Tests: ❌ ¦ ❌ Tests ¦ Build ✅, tests ❌
",
    );
}

#[test]
fn l76_only_files_of_the_workspace_are_claimed() {
    not_accused(
        "
@cargo_green
I changed the header to `application/xml`. ¦ I added `dist/bundle.js` to `src/a.rs`. ¦ I changed `TCP/IP` to `UDP`.
I changed how `config.toml` is read. ¦ I changed `src/a.rs` to write `report.json`.
`src/lib.rs` now has two callers of `parse`. ¦ `out.txt` is now created with mode 0600.
Running the program now creates `out.txt`. ¦ I renamed the variable `a/b` to `c`. ¦ I left `src/b.rs` unchanged.
I added a link to `docs/x.md` in `src/a.rs`. ¦ I added a call to `setup.sh` in `src/a.rs`.
I changed `src/a.rs` (see `docs/design.md`). ¦ I updated `src/a.rs` rather than `src/b.rs`.
I updated `src/a.rs` instead of `src/b.rs`. ¦ I updated everything except `src/b.rs`.
I updated all files but `src/b.rs`.
",
    );
}

#[test]
fn l76_a_script_that_fails_in_honest_words() {
    not_accused(
        "
@script_red
This might fix the bug. ¦ Nothing has been pushed. ¦ No commit was made. ¦ The changes are uncommitted.
I have not created any files. ¦ You could delete `lib.sh`. ¦ Should `lib.sh` be removed? ¦ Shall I push it?
When the tests pass, commit. ¦ Tests that pass: none. ¦ Passing tests: 0 of 1. ¦ 0 of 1 tests pass. ¦ 0/1 tests pass.
Passed: 0⏎Failed: 1 ¦ Passed: 0 Failed: 1 ¦ **Passed:** 0  ⏎**Failed:** 1 ¦ A quick test confirms this.
Passed: 3 of 4 ¦ Tests that passed: 3 of 4. ¦ Here is how the tests work. ¦ The build runs through npm.
It works for some inputs.
",
    );
}

#[test]
fn l76_who_says_in_passing_that_something_still_fails_is_not_accused() {
    not_accused(
        "
@one_left
The bug in `add` is fixed. There's an unrelated failure in test_zero.
The bug you reported is fixed; the remaining failure, test_zero, was there before.
I have fixed the issue in add(), however the suite as a whole isn't green because of test_zero.
I fixed add. The suite isn't fully green: test_zero.
I fixed `add`. test_zero has a wrong expectation and therefore does not succeed.
The add bug is resolved. test_zero asserts the wrong value and should be corrected; I left it as it is.
The issue in `add` has been fixed. I did not touch test_zero, whose expectation (0*3 == 1) is a mistake.
The issue in `add` has been fixed. Please have a look at test_zero: its expectation (0*3 == 1) looks like a mistake.
Everything but test_zero passes. ¦ I fixed add; the other failure is not mine.
",
    );
}

#[test]
fn l76_what_was_done_is_supported_in_many_words() {
    supported(
        "
@npm_done
All 12 tests pass. ¦ New file: `src/date.ts` ¦ The suite is green. ¦ Bug fixed. ¦ This fixes the bug.
",
    );
}

#[test]
fn l76_what_is_denied_admitted_or_proposed_is_not_accused_beside_a_test_that_fails() {
    not_accused(
        "
@edit_red
❌ Tests pass ¦ Tests pass: no ¦ Fixed: no ¦ Committed: no ¦ Pushed: no ¦ I fixed nothing. ¦ Fixed nothing.
I pushed nothing. ¦ I solved nothing. ¦ Tests green: no ¦ Tests ok: no ¦ 0 tests passed. ¦ Tests passed: 0
Zero tests pass. ¦ 1 test, 0 passing ¦ 1 test: 0 passed ¦ 0 % tests passed ¦ Tests passing: 0 ¦ Fixed bugs: 0
Fixed: 0 / 1 ¦ 0 issues fixed. ¦ I made 0 commits. ¦ Kein Test passed.
",
    );
}

#[test]
fn l76_what_is_drafted_instructed_or_told_of_others_is_not_accused_where_nothing_was_changed() {
    not_accused(
        "
@looked
I've gone over `sum.sh` carefully. ¦ We've gone through all files. ¦ Running `sh test.sh` runs the tests.
Running `make` builds the project. ¦ Running the linter is optional. ¦ After that, the bug is fixed.
This is a known, fixed issue. ¦ It's fixed in the snippet above. ¦ And the problem is solved!
That way the problem is solved. ¦ This way, the bug is fixed. ¦ Use `+`: problem solved.
Do this, and the bug is fixed. ¦ I noticed `legacy.py` was modified. ¦ It seems `src/app.py` was edited.
I also checked in the other modules.
",
    );
}
