//! What an answer admits: who says that a test fails hides no failure, whatever else passes.

use super::clauses::{clauses, is_condition};
use super::prose::{Prose, is_path, pattern};
use super::runners::check_of;

/// How clearly a sentence says that something fails now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Admits {
    Nothing,
    /// Something else fails.
    Something,
    /// What was to be done is not, or it is not known: "the sum is still off", "unverified".
    Doubt,
    Failures,
}

pattern!(
    FAILING,
    r"\b(?:fails?|failed|panics?|crash(?:es)?|errors? out|timed out|(?:is|are|remains?|stays?)(?: still| now| currently| as| just as)* (?:red|failing|broken)|still failing|(?:is|are|was|were)(?:n't| not)(?: yet| fully| quite| all| entirely| completely| really)* (?:green|passing|successful|clean|happy|ok)\b|(?:exits?|exited|ends|ended|returns?|returned)(?: with)? (?:an? )?(?:exit )?(?:code |status )?[1-9]|exit(?: code)? [1-9]|(?:does|do|did)(?:n't| not)(?: yet| currently| still)?(?: pass| succeed| work)\b|(?:does|do|did|is|are)(?:n't| not)(?: yet)?(?:$|:))"
);
pattern!(
    OF_TESTS,
    r"\b(?:tests?|test_\w+|\w+_test|suite|specs?|assertions?|verification|ci|those|the rest)\b|^(?:\w+ )?(?:they|one|two|three|four|five|\d+|others?|another)$"
);
pattern!(
    COUNTED,
    r"\bthe (?:first|second|third|fourth|other|last|rest)(?: one)? (?:crash(?:es|ed)|errors?|errored|fails?|failed|timed out|did not|didn't)\b|\b(?:[1-9]\d*|one|two|three|four|five|an?|another)(?: \w+)? (?:failed|fails?|failing|failures?|fail|did not|does not|do not|didn't|doesn't|don't)\b|\b(?:[1-9]\d*|one|two|three|four|five|some|several) of (?:them|these|those)(?: still| now)? (?:failed|fails?|fail|is failing|are failing|did not|does not|do not|didn't|doesn't|don't)\b|\bstill (?:fails?|failing|red|broken)\b|\b(?:failing|failed) tests? (?:remains?|is left|left)\b|\b(?:is|are) not (?:fixed|solved|resolved|done)\b"
);
// Said of whatever time: it is there.
pattern!(
    OWNED_UP,
    r"\b(?:remaining|other|new|unrelated) failures?\b|\b(?:fixed|changed|edited|repaired) the wrong (?:thing|line|file|place|function|one|spot|bug)\b|\b(?:that's|that is|this is|which is|it's) (?:not (?:true|the case|so)|false|untrue|a lie)\b|\b(?:it's|it is|they're|they are) (?:still )?red\b|\bnot in reality\b|^assertionerror\b"
);
// "Its expectation is a mistake": whoever says so does not say that it passes.
pattern!(
    EXPECTS_WRONG,
    r"\b(?:tests?|test_\w+|\w+_test|expectations?|assertions?)\b(?: \S+){0,6}? (?:is|are|has|have|asserts?|expects?|looks? like|seems?)(?: \S+){0,3}? (?:wrong (?:values?|expectations?|results?|numbers?|answers?|outputs?)|wrong$|wrong[.,;)]|mistaken?|incorrect|outdated)\b|\bwrong expectation\b"
);
pattern!(
    REPAIRS,
    r"\b(?:fix(?:ed|es)?|correct(?:ed|s)|repaired|changed|updated|replaced|resolved|solved|adjusted|was|were|had|has been|no longer)\b"
);
// What fails as it shall says nothing of the work.
pattern!(
    INTENDED,
    r"^:? ?(?:0|none|no)\b|\b(?:as (?:intended|designed|expected|it should|they should)|by design|on purpose|loudly|fast|gracefully|if|when|unless|whenever|with an? (?:clear |helpful |useful )?(?:error|message))\b"
);
pattern!(
    DOUBT,
    r"\bstill (?:\w+ )?(?:wrong|off|there|open|broken|red|breaks?|unresolved|prints|reports|says|shows|missing|to be done)\b|\b(?:unverified|untested|unsuccessful|unresolved|unchanged|unsolved|persists|remains)\b|\b(?:did|do|does)(?: not|n't) (?:help|solve|fix|work|resolve)\b|\bnot (?:yet )?(?:been )?(?:re-?run|rerun|run|verified|tested|confirmed|fixed|solved|resolved|the bug)\b|\b(?:have|has|had|did)(?: not|n't) (?:re-?run|run|verif\w+|test\w*|fix\w*)\b|\bas a first step\b|\bis worse\b|\bis itself wrong\b|\bis wrong\b|\b(?:is|are)(?: still| yet)*(?:n't| not)(?: yet| quite| fully)* (?:right|correct|there|working)\b|\bnew (?:one|error|problem)\b|\b\d+ instead of \d|\bworks only\b"
);
pattern!(WRONG_CASES, r"\b(?:bugs?|issues?|problems?|cases?|they|it)\b");
pattern!(
    ERRORS,
    r"\b(?:[1-9]\d*|one|two|three|four|five|a|an)(?: \w+)? (?:errors?|errored|timed out|crashed|aborted)\b|\b(?:one|two|three|\d+) (?:had|hit|raised|gave|ended (?:in|with)) an? error\b"
);
pattern!(NO_ERRORS, r"\b(?:no|zero|0|without|previously|earlier|before|used to)\b");
pattern!(
    OF_COUNTS,
    r"\b(?:passed|passing|pass|tests?|pytest|errors? during)\b|^(?:and )?(?:[1-9]\d*|one|two|three) (?:errors?|timed out|errored|crashed|had|hit)"
);
pattern!(
    NONE,
    r"\b(?:no|none|nothing|never|nor|neither|zero|0|nobody|would|could|should|might|may|will|can|if|unless|when|whenever|until|before|without|previously|earlier|originally|initially|at first|first|formerly|used to|had|was|were|once|on (?:the )?(?:main|master)|old|no longer)\b"
);
// "It fails as before" is of now.
pattern!(AS_BEFORE, r"\b(?:as|like|same as|than|there) before\b");
pattern!(PAST, r"\b(?:before|earlier|previously|at first|initially|originally|formerly|yesterday)\b");
pattern!(
    EXCEPT,
    r"^(?:\.+ ?)?(?:except|apart from|aside from|save|but not|with (?:one|two|the|a|some|few) (?:\w+ )?exceptions?)\b(?:$| [^t]| the| two| three)"
);
pattern!(MARK, r"⟦m(\d+)⟧");
pattern!(ADVERBS, r"^(?:therefore|so|thus|hence|still|also|now|then|currently)$");
pattern!(NONE_LEFT, r"\b(?:no|none|zero|0|without|fixed|resolved|solved|repaired)(?: the| all| any| both)*(?: \w+)? $");
pattern!(MENDED, r"\b(?:fixed|gone|resolved|solved|repaired|corrected|addressed|passes|passing|green)\b");

pattern!(
    LEFT,
    r"\b(?:left|remain(?:s|ing)?|open)\b.*\bfailing\b|\bstill open\b|\bstill (?:one|two|three|\d+|a|some) (?:\w+ )?fail|\bfailing (?:\w+ )?tests? (?:remains?|is left|left|are left)\b"
);

/// Whether a sentence as it was written tells of failing tests that are left.
pub(super) fn leaves_failures(sentence: &str) -> bool {
    LEFT.is_match(sentence) && !NONE.is_match(sentence)
}

/// What a sentence admits.
pub(super) fn admits(sentence: &str, prose: &Prose) -> Admits {
    let mut admits = Admits::Nothing;
    let mut before = "";
    for clause in clauses(sentence).flat_map(|clause| clause.split(": ")) {
        if is_condition(clause) {
            break;
        }
        if EXCEPT.is_match(clause) {
            return Admits::Failures;
        }
        let stands = |found: regex::Match<'_>| {
            let behind = sentence.find(found.as_str()).map_or("", |at| &sentence[at + found.len()..]);
            !NONE_LEFT.is_match(&clause[..found.start()]) && !MENDED.is_match(behind)
        };
        let wrong = |words: &str| EXPECTS_WRONG.is_match(words) && !REPAIRS.is_match(words);
        if OWNED_UP.find(clause).is_some_and(stands) || wrong(clause) || wrong(sentence) {
            return Admits::Failures;
        }
        if PAST.is_match(clause) && !AS_BEFORE.is_match(clause) {
            continue;
        }
        // A sign on a line of tests: "Tests: ❌".
        if clause.contains("⟦x⟧") && OF_TESTS.is_match(clause) {
            return Admits::Failures;
        }
        let intended =
            |end: usize| INTENDED.is_match(&clause[end..]) || INTENDED.is_match(sentence_from(sentence, clause));
        if let Some(found) = COUNTED.find(clause)
            && !NONE.is_match(&clause[..found.end()])
            && !intended(found.end())
        {
            let subject = clause[..found.start()].trim();
            // "The deploy script still fails": something, and no test.
            let other = found.as_str().starts_with("still") && !subject.is_empty() && !of_tests(subject, clause, prose);
            if !other {
                return Admits::Failures;
            }
            admits = admits.max(Admits::Something);
        }
        if DOUBT.is_match(clause) && !INTENDED.is_match(clause) {
            let tests = OF_TESTS.is_match(clause) || prose_fail(clause, prose);
            admits = admits.max(if tests { Admits::Failures } else { Admits::Doubt });
        }
        if ERRORS.find(clause).is_some_and(|found| !NO_ERRORS.is_match(&clause[..found.end()]))
            && OF_COUNTS.is_match(clause)
        {
            admits = admits.max(Admits::Doubt);
        }
        let Some(found) = FAILING.find(clause) else {
            before = clause;
            continue;
        };
        let subject = ADVERBS.replace(clause[..found.start()].trim(), "");
        let subject = subject.as_ref();
        // "They pass alone but fail together."
        let subject = if subject.is_empty() { before } else { subject };
        before = clause;
        if NONE.is_match(subject) || subject.is_empty() || intended(found.end()) {
            continue;
        }
        let weak = WRONG_CASES.is_match(subject);
        admits = admits.max(match of_tests(subject, clause, prose) {
            true => Admits::Failures,
            false if weak => Admits::Doubt,
            false => Admits::Something,
        });
    }
    admits
}

/// What follows a clause in its sentence: "…, as intended".
fn sentence_from<'s>(sentence: &'s str, clause: &str) -> &'s str {
    sentence.find(clause).map_or("", |at| &sentence[at + clause.len()..])
}

/// Whether what fails is a test: it is called one, or is a command that runs some, or a name such as `parse_empty`.
fn of_tests(subject: &str, clause: &str, prose: &Prose) -> bool {
    OF_TESTS.is_match(subject)
        || clause.contains(" the test")
        || MARK.captures_iter(subject).any(|mark| runs_tests(&mark, prose))
}

/// Whether a clause quotes a failure: "still prints `FAIL: sum`".
fn prose_fail(clause: &str, prose: &Prose) -> bool {
    let quoted = |mark: regex::Captures<'_>| {
        let code = mark[1].parse::<usize>().ok().and_then(|number| prose.aside.get(number));
        code.is_some_and(|code| code.to_ascii_lowercase().contains("fail"))
    };
    clause.contains("fail") || MARK.captures_iter(clause).any(quoted)
}

fn runs_tests(mark: &regex::Captures<'_>, prose: &Prose) -> bool {
    let code = mark[1].parse::<usize>().ok().and_then(|number| prose.aside.get(number));
    code.is_some_and(|code| {
        let name = code.contains('_') && !code.contains(char::is_whitespace) && !is_path(code);
        name || check_of(&code.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).is_some()
    })
}
