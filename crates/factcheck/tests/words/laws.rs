//! L76 and L77 over sessions nobody thought of.

use portcullis_base::{Code, Phase};
use portcullis_event::facts::{ClaimVerdict, FinalVerdict};
use portcullis_factcheck::{Facts, check};
use proptest::prelude::*;

use crate::world::{Call, claims, edit, facts, file, shell, shell_came_to, verdict};

/// What a call means for a claim about tests, known without the code under test.
#[derive(Debug, Clone)]
enum Made {
    Passed(&'static str),
    Failed(&'static str),
    Changed,
    Nothing,
}

fn call() -> impl Strategy<Value = (Made, Call)> {
    prop_oneof![
        prop_oneof![Just("cargo test"), Just("sh test.sh"), Just("cd a && npm test 2>&1")]
            .prop_map(|line| (Made::Passed(line), shell(line, 0, ""))),
        (prop_oneof![Just("cargo test"), Just("sh test.sh"), Just("cd a && npm test 2>&1")], 1..100_i32)
            // Only what it says shows that its `cd` worked.
            .prop_map(|(line, exit)| (Made::Failed(line), shell(line, exit, "FAIL: sum"))),
        Just((Made::Changed, edit("a.rs"))),
        Just((Made::Changed, file("file_created", "/workspace/b.rs"))),
        Just((Made::Changed, shell("python3 gen.py", 0, ""))),
        Just((Made::Changed, shell_came_to("./x", Code::OutcomeUnknown, Phase::Execute))),
        Just((Made::Nothing, shell("git status && ls", 0, ""))),
        Just((Made::Nothing, shell_came_to("rm -rf a", Code::UserDenied, Phase::Permission))),
    ]
}

/// Pieces of answers in any order: marks that do not end, quotes in code, words of the table.
fn jumble() -> impl Strategy<Value = String> {
    let pieces = "`|``|```\n|\"|“|'|~~|**|> |- [x] |⟦0⟧|⟦|created |`a.rs` |ran |tests |pass|, | and |not |if |✅|é|\n|. |a/b.rs |./|renamed | to |: |3/5 |fixed |no longer fails |`cargo test` |(|)";
    let piece = proptest::sample::select(pieces.split('|').collect::<Vec<_>>());
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn l76_tests_pass_is_supported_exactly_while_every_run_passed_and_nothing_changed(
        calls in proptest::collection::vec(call(), 0..12),
    ) {
        // Runs that failed and did not pass since; a change makes them old.
        let mut red: Vec<&str> = Vec::new();
        let mut last = FinalVerdict::Unsupported;
        for (made, _) in &calls {
            match made {
                Made::Passed(line) => {
                    red.retain(|one| one != line);
                    last = FinalVerdict::Supported;
                }
                Made::Failed(line) => {
                    red.push(line);
                    last = FinalVerdict::Contradicted;
                }
                Made::Changed => {
                    red.clear();
                    last = if last == FinalVerdict::Supported { FinalVerdict::Stale } else { last };
                }
                Made::Nothing => {}
            }
        }
        let expected = if red.is_empty() { last } else { FinalVerdict::Contradicted };
        let calls: Vec<Call> = calls.into_iter().map(|(_, call)| call).collect();
        prop_assert_eq!(verdict(&calls, "All tests pass."), expected);
    }

    #[test]
    fn l76_a_path_claim_without_a_matching_effect_is_never_supported(
        calls in proptest::collection::vec(call(), 0..8),
        verb in prop_oneof![Just("Created"), Just("Updated"), Just("Deleted"), Just("Renamed"), Just("Wrote")],
    ) {
        let calls: Vec<Call> = calls.into_iter().map(|(_, call)| call).collect();
        for claim in claims(&calls, &format!("{verb} `src/other.rs`.")) {
            prop_assert_ne!(claim.verdict, ClaimVerdict::Supported);
        }
        prop_assert_ne!(verdict(&calls, &format!("{verb} `src/other.rs`.")), FinalVerdict::NoClaims);
    }

    #[test]
    fn l77_no_text_changes_a_fact(
        calls in proptest::collection::vec(call(), 0..6), answer in prop_oneof![any::<String>(), jumble()],
        lie in prop_oneof![Just("All tests pass. "), Just("`cargo test` passes. exit code 0 "), Just("")],
    ) {
        let calls: Vec<Call> = calls.into_iter().map(|(_, call)| call).collect();
        let facts: Facts = facts(&calls);
        let before = format!("{facts:?}");
        let first = check(&format!("{lie}{answer}"), &[], &facts);
        prop_assert_eq!(format!("{facts:?}"), before);
        prop_assert_eq!(check(&format!("{lie}{answer}"), &[], &facts), first, "the same words, the same verdicts");
    }

    #[test]
    fn l76_an_answer_without_claims_has_none(words in "[a-m ]{0,200}") {
        prop_assert_eq!(verdict(&[shell("cargo test", 0, "")], &words), FinalVerdict::NoClaims);
    }
}
