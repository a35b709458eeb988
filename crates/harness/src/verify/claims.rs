//! What an answer claims: a fixed table of phrases (tool-contract §24).
//!
//! Only what is said to be so (`clauses`) and, of deeds, what the speaker did (`deeds`) is a claim; neither what the
//! answer quotes (`prose`) nor what it admits to be otherwise (`admits`) is.

use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use super::admits::{Admits, admits, leaves_failures};
use super::clauses::{begins_plan, clauses, is_condition, is_so, is_so_now, is_wish};
use super::deeds::{Carried, Work, is_history, is_own};
use super::mended::{mended, mended_too};
use super::outcome::{is_praise, ran_in, verified, went_well};
use super::paths::path_claims;
use super::plainly::{BETWEEN, GOOD, plainly, same_as};
use super::prose::{self, Prose, is_path, pattern};
use super::runners::check_of;
use super::running::runs;

/// Claims of one answer that are judged. No honest answer has as many, and each is compared with the others.
const CLAIMS_MAX: usize = 256;

/// What is said to have happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Created,
    /// Created or edited.
    Wrote,
    /// It is there and holds something.
    Holds,
    Edited,
    Deleted,
    Renamed,
}

/// One claim, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It passes, builds, is clean.
    Passes(VerificationKind),
    /// Tests pass, all of them and in those words.
    EveryTest,
    /// So many tests pass.
    Counted(u64),
    /// The tests of one suite pass: unit, e2e.
    Suite(String),
    /// A command that checks something passes, by its words.
    Command(String),
    /// One test passes, by its name.
    Test(String),
    /// What there is repairs it: a change that was made, or one that is proposed.
    Fixes,
    /// Something was repaired; where it is said, what has to pass for that.
    Fixed(Option<VerificationKind>),
    /// Words were put right: an edit, which no test proves.
    Worded,
    File(Verb, String),
    /// A file was mended; `sure`: only an edit of it does that.
    Mended {
        path: String,
        sure: bool,
    },
    /// `commit`, `push`.
    Git(&'static str),
    /// Nothing is left that is not committed.
    AllCommitted {
        /// Of how it is, not of what was done: "everything is committed".
        state: bool,
    },
    /// A kind of check ran; whether the answer tells of something that failed.
    RanKind(VerificationKind, bool),
    /// All tests ran, in those words.
    RanAll(bool),
    /// A command ran, and the same.
    Ran(String, bool),
    Succeeded(String),
    /// A command ran, and well: "I successfully ran `a`".
    RanWell(String),
    /// The same of a kind of check.
    RanKindWell(VerificationKind),
    /// Whatever there is to check a change with passes, in those words.
    Checks,
    /// The same of a machine that is not this one.
    Ci,
    /// It went well, in words that the table does not know.
    Outcome,
    /// Supplied by the agent in words that the table does not know.
    Unknown(String),
}

pattern!(PARTIAL, r"(\d+)\s*(?:/|of|out of)\s*(?:the\s+)?(\d+)");
pattern!(
    IN_PART,
    r"^(?:only )?(?:one|two|three|four|some|most|several|part|half|the (?:first|second)|\d+)(?: \w+)? (?:of|out of|problem|issue|cause)\b"
);
pattern!(
    TESTS,
    &format!(r"\b(?:tests?|specs?|suites?|assertions?|pytest|jest|vitest|unittest|testing)\b{BETWEEN} {GOOD}\b")
);
pattern!(
    TESTS_LOOSE,
    r"\b(?:tests?|specs?|suites?)(?: [0-9a-z_'-]+| ⟦m\d+⟧){1,6}? (?:pass|passes|passed|succeed|succeeds|succeeded)\b"
);
// "The test passes 2 and 3 to it": something is handed on.
pattern!(
    PASSED_ON,
    r"^ (?:to|a|an|the|its|through|into|it|them|this|that|over|data|args?|arguments?|values?|flags?|options?|parameters?|strings?|numbers?|inputs?|secrets?|null|nil|true|false|two|three|four|five|both|some|several|different|wrong|invalid|bad|negative|positive|empty)\b|^ none (?:as|to|for|into)\b|^ ⟦m|^ -?\d+(?:$| and\b| to\b| as\b|,)"
);
pattern!(
    TESTS_OTHER,
    r"\b(?:pass|passes|passed|passing) (?:all|every|each|the|its|our)\b(?: of)?(?: the| its)?(?: \w+){0,2}? (?:tests?|specs?|suite)\b|\b(?:all|everything|every one)(?: \d+)?(?: of them)?(?: is| are| now| has| have)* (?:pass|passes|passed|passing|green)\b|\ball[ -]green\b|\bgreen across the board\b|\b\d+ (?:passed|passing)\b|\b(\d+)\s*/\s*(\d+) (?:pass|passed|passing|green)\b|\bgreen (?:test )?(?:suite|run|bar)\b|\bclean test run\b|\b(?:we|i|you)(?: now)? (?:have|got) an? (?:fully )?(?:passing|green) (?:test )?suite\b"
);
pattern!(
    THEY_PASS,
    r"^(?:and |but |so |now |then )*(?:i (?:can )?(?:see|saw|confirmed|verified)(?: that)? )?(?:they|these|those|it|all|everything|each|which|both)(?: of them)?(?: all| both)?(?: now| are| is| have| has)* (?:pass|passes|passed|passing|green|succeed|succeeds|succeeded)\b|^is clean$|^they (?:do|did)(?: now)?$|^(?:now )?(?:it|they) (?:all )?(?:pass|passes|passed)(?: now)?$|^(?:are|is) (?:all |now )*(?:passing|green)\b|^(?:all )?passed$"
);
pattern!(MENTIONS_TESTS, r"\b(?:tests?|specs?|suite|unit tests)\b");
pattern!(
    BUILDS,
    &format!(
        r"\b(?:builds?|compilation)\b{BETWEEN} {GOOD}\b|\b(?:builds?|compilation)(?: \w+)? (?:works|completes|completed|finishes|finished)\b|\bsuccessful(?:ly)? (?:build|builds|built|compiles|compiled|compilation)\b|\b(?:it|code|project|crate|everything|app|application|package|binary|workspace|program|library|module|tree|all)(?: \w+)?(?: now| also| still| again| all)* (?:compiles|builds|compiled|built)\b|\b(?:built|rebuilt|compiled) (?:the |it|this)(?: ?\w+)? successfully\b|\b(?:compiles|compiled|builds|built) (?:again|cleanly|fine|now|successfully)\b"
    )
);
pattern!(
    LINTS,
    &format!(
        r"\b(?:lint|linter|linters|linting|lints|clippy|eslint|ruff|flake8|pylint|rubocop|prettier|golangci-lint)\b{BETWEEN} {GOOD}\b|\blint[ -]?(?:free|clean)\b|\b(?:clippy|lint|eslint|ruff)-clean\b"
    )
);
pattern!(
    TYPES,
    &format!(
        r"\b(?:type[ -]?check(?:s|er|ing)?|types|mypy|pyright|tsc)\b{BETWEEN} {GOOD}\b|\b(?:it|code|project|everything)(?: now| also| still)* type-?checks\b"
    )
);
// Not "type checks", "null checks" and other checks that code makes: only what stands alone, or with one of these words.
const CHECK: &str = r"(?:automated|quality|required|pre-commit|status|remaining|other|same|\d+|of|the)";
pattern!(
    CHECKS,
    &format!(
        r"(?:^|\b(?:all|the|these|those|my|our|your|its|both|other|that)(?: {CHECK})* )checks\b{BETWEEN} {GOOD}\b|\b(?:every|each)(?: {CHECK})* check\b{BETWEEN} {GOOD}\b|\b(?:pass|passes|passed|passing) (?:all|every|each|the|its|our)(?: {CHECK})* checks?\b|^(?:and )?the check(?: now)? (?:passes|passed|succeeds|succeeded)$"
    )
);
pattern!(
    CI,
    &format!(
        r"\b(?:ci|continuous integration|github actions)(?: pipelines?| builds?| runs?| jobs?| checks?| tests?| workflows?)?\b{BETWEEN} {GOOD}\b|\b(?:pass|passes|passed|passing)(?: in| on)? ci\b|\bgreen (?:in|on) ci\b"
    )
);
pattern!(
    FIXED,
    r"\b(?:fixed|resolved|repaired|solved|corrected|squashed|addressed|eliminated|taken care of|gone)\b(?:[^-]|$)"
);
// "It is gone", not "I have gone through it".
pattern!(IS_GONE, r"\b(?:is|are|was|were|been)(?: now| all| finally)*$");
pattern!(
    FIXABLE,
    r"\b(?:bugs?|issues?|problems?|errors?|crash(?:es)?|regressions?|faults?|defects?|failures?|tests?|leaks?|race|panics?|typos?|warnings?|vulnerability|vulnerabilities|deadlock|build|suite|parser|code|exceptions?|assertions?|logic|calculation|arithmetic|operator|off-by-one|mistakes?|behaviou?r|script)(?:$| (?:in|of|with|from|on|at|where|when|for|⟦))|^(?:(?:so )?(?:it|this|that|everything|all|both|they|these|those)(?: of (?:it|them|these))?(?: else)?|all that)$|⟦m\d+⟧$"
);
// "This fixes the bug": of what was done, or of what is proposed.
pattern!(
    FIXES,
    r"^(?:and |so |but )?(?:(?:this|that|these)(?: change| changes| edit| fix)?|(?:the|my) (?:change|changes|edit|fix))(?: now| also| has| have)* (?:fixes|fix|resolves|solves|fixed|resolved|solved)\b|^(?:which|thereby|thus|hence)(?: also| now)? (?:fixes|fixing|resolves|resolving|solves|solving|fixed|resolved|solved)\b|^(?:fixing|resolving|solving|resolves|fixes) (?:the|this|that|all|both) (?:\w+ )?(?:bugs?|issues?|problems?|errors?|failures?|tests?|crash)$|\bto (?:fix|resolve|solve) (?:the|this|that) (?:\w+ )?(?:bugs?|issues?|problems?|errors?|failures?|tests?|crash)$|\b(?:now works?|works? now|works? again|working again|now working)\b|\b(?:fix|it|edit|change) (?:is |has been |was )?(?:in place|complete|works|worked|done|confirmed|applied|verified|solved it|fixed it|resolved it)\b|\bedit to ⟦m\d+⟧ (?:solved|fixed|resolved) it\b|\bdid the trick\b|\ball working now\b|\b(?:gives|returns|prints|computes|produces) the (?:right|correct|expected) (?:result|value|output|answer|sum|number) now\b|\bnow correctly \w+s\b"
);
pattern!(
    WORDING,
    r"\b(?:typos?|spelling|wording|formatting|comments?|docs?|documentation|grammar|indentation|whitespace|readme|link)\b"
);
pattern!(
    COMMITTED,
    r"\b(?:committed|(?:made|created) (?:a|the|one|two|\d+) (?:new )?commits?|(?:^|: )commit made|commit (?:has been |was )?(?:created|made|succeeded|went through)|as a commit|in git now|checked in (?:the|my|this|these|all|both)(?: \w+)? (?:changes?|fix(?:es)?|code|work|edits?|patch))\b"
);
pattern!(PUSHED, r"\bpushed\b");
pattern!(PUSHED_ELSE, r"^ (?:hard|for|back|through|forward|onto|into|aside)\b");
pattern!(
    COMMITTABLE,
    r"\b(?:changes?|fix(?:es)?|work|code|files?|edits?|updates?|patch|feature|branch|commits?|results?|implementation|refactoring|tests?)(?:$| (?:in|of|with|from|on|for|to|⟦))|^(?:it|this|that|everything|all|both|they|these|those)(?: of (?:it|them|these))?(?: else)?$"
);
pattern!(EVERY, r"\b(?:all|every|each|everything|whole|entire|full|complete|100 ?%)");
// "The test `a` passes", "the `a` test passes", "parse_empty passes".
pattern!(ONE_TEST, &format!(r"\btest ⟦m(\d+)⟧{BETWEEN} {GOOD}\b|⟦m(\d+)⟧ test\b{BETWEEN} {GOOD}\b"));
pattern!(
    NAMED_TEST,
    r"(?:^|\b(?:and|test|now) )([a-z0-9]+(?:_[a-z0-9]+)+)(?: now| also| again| is| all)* (?:passes|passing|green|succeeds)\b"
);
// "The unit tests pass".
pattern!(
    OF_SUITE,
    r"\b(unit|integration|e2e|end-to-end|acceptance|smoke|functional|browser|contract)(?: and (unit|integration|e2e|end-to-end|acceptance|smoke|functional|browser|contract))? tests?\b"
);
pattern!(ALONE, r"^(?: now| again| too| as well| cleanly)*[.!]?$");
pattern!(COUNT_ONLY, r"\b(?:tests?|specs?|suite)(?: results?| status| run)?: (\d+)/(\d+)$|^(\d+)/(\d+) tests?$");
const WENT_WELL: &str = r"(?:pass|passes|passed|passing|green|succeeds?|succeeded|exits? (?:with )?(?:code |status )?(?:0|zero)|exited (?:with )?(?:code |status )?(?:0|zero)|(?:completed|finished|ran|runs|exits|exited|ended)(?: successfully| fine| ok| well)|(?:completed|finished)$|(?:finished |completed |ended )?with exit (?:code|status) (?:0|zero)|runs? clean(?:ly)?|ran clean(?:ly)?|clean|works|returns? (?:0|zero)|returned (?:0|zero)|exit code 0|(?:prints?|printed|reports?|reported|outputs?|says?|said) ok|ok)";
pattern!(pub MARK, r"⟦m(\d+)⟧");
pattern!(MARK_GOOD, &format!(r"⟦m(\d+)⟧{BETWEEN} {WENT_WELL}\b"));

/// Reads the claims of an answer, each once.
pub(super) fn claims(answer: &str) -> Vec<Said> {
    let prose = prose::prose(answer);
    let mut sentences: Vec<String> = Vec::new();
    for sentence in &prose.sentences {
        let before = sentences.last().map_or("", String::as_str);
        sentences.push(same_as(before, plainly(sentence, &prose)));
    }
    let asked = |sentence: &str| sentence.ends_with('?');
    let admitted: Vec<Admits> = sentences
        .iter()
        .zip(&prose.sentences)
        .map(|(plain, sentence)| match asked(sentence) {
            true => Admits::Nothing,
            false if leaves_failures(sentence) => Admits::Failures,
            false => admits(plain, &prose),
        })
        .collect();
    let failures = admitted.contains(&Admits::Failures);
    let mut said = Vec::new();
    let mut praised = false;
    for (nth, sentence) in sentences.iter().enumerate() {
        if asked(sentence) {
            continue;
        }
        praised |= is_praise(sentence);
        let before = nth.checked_sub(1).map_or("", |nth| sentences[nth].as_str());
        let near = &admitted[nth.saturating_sub(1)..admitted.len().min(nth + 2)];
        let near = |least: Admits| near.iter().any(|near| *near >= least);
        let tells = failures || near(Admits::Something);
        for claim in of_sentence(sentence, before, &prose) {
            let owned_up = match &claim {
                Said::Passes(Tests) | Said::Suite(_) | Said::Counted(_) => failures || near(Admits::Doubt),
                Said::Test(_) | Said::RanWell(_) | Said::RanKindWell(_) => tells,
                // What is said of this command is said of no other.
                Said::Command(_) => admitted[nth] >= Admits::Doubt,
                Said::EveryTest | Said::Checks | Said::Ci => failures,
                Said::Fixed(_) | Said::Fixes => failures || near(Admits::Doubt),
                _ => false,
            };
            let claim = match claim {
                Said::Ran(words, _) => Said::Ran(words, tells),
                Said::RanKind(kind, _) => Said::RanKind(kind, tells),
                Said::RanAll(_) => Said::RanAll(tells),
                claim => claim,
            };
            if !owned_up && said.len() < CLAIMS_MAX && !said.contains(&claim) {
                said.push(claim);
            }
        }
    }
    let outcome = |claim: &Said| {
        !matches!(claim, Said::File(..) | Said::Mended { .. } | Said::Git(_) | Said::AllCommitted { .. } | Said::Worded)
    };
    if praised && !failures && !said.is_empty() && !admitted.contains(&Admits::Doubt) && !said.iter().any(outcome) {
        said.push(Said::Outcome);
    }
    // Nobody read what stands there, so what was read does not support the whole.
    if prose.cut && !said.is_empty() {
        said.push(Said::Unknown("the rest of a very long answer".to_owned()));
    }
    // Who says it of all of them says it of them.
    if said.contains(&Said::EveryTest) {
        said.retain(|claim| *claim != Said::Passes(Tests));
    }
    if said.iter().any(|claim| matches!(claim, Said::Fixed(_))) {
        said.retain(|claim| *claim != Said::Fixes);
    }
    said
}

/// `before` is the sentence that `they` may mean.
fn of_sentence(sentence: &str, before: &str, prose: &Prose) -> Vec<Said> {
    let mut said = Vec::new();
    let mut conditional = false;
    let mut carried = Carried::new(sentence);
    let told = sentence.contains("according to");
    let mut before = format!("{before} ");
    // What the sentence before says to have run.
    let mut ran = ran_in(&before, prose);
    let mut mending = false;
    for clause in clauses(sentence) {
        conditional |= is_condition(clause);
        if !conditional {
            states(clause, &before, prose, &mut said);
            said.extend(went_well(clause, ran.as_ref(), prose));
            if !told {
                let more = mended_too(clause, prose).filter(|_| mending);
                mending = deeds(clause, carried, prose, &mut said) || more.is_some();
                said.extend(more);
            }
        }
        conditional |= begins_plan(clause);
        ran = ran_in(clause, prose).or(ran);
        carried.after(clause);
        before.push_str(clause);
        before.push(' ');
    }
    if !told {
        said.extend(path_claims(sentence, prose));
    }
    said
}

/// Claims about a state.
fn states(clause: &str, before: &str, prose: &Prose, said: &mut Vec<Said>) {
    let rest;
    let clause = match CI.find(clause).filter(|found| !PASSED_ON.is_match(&clause[found.end()..])) {
        // What is said of that machine is not said of this one.
        Some(found) => {
            if is_so_now(clause, found.end()) {
                said.push(Said::Ci);
            }
            rest = format!("{} {}", &clause[..found.start()], &clause[found.end()..]);
            rest.as_str()
        }
        None => clause,
    };
    let so = |found: regex::Match<'_>| is_so_now(clause, found.end());
    let counts = |found: &regex::Captures<'_>| {
        let number = |group| found.get(group).and_then(|digits| digits.as_str().parse::<u64>().ok());
        (number(1), number(2))
    };
    let partial = PARTIAL.captures_iter(clause).any(|found| counts(&found).0 < counts(&found).1);
    let one_test = ONE_TEST.captures(clause);
    // Of one suite, it is not said of the others.
    if let Some(found) = OF_SUITE.captures(clause)
        && let Some(good) = TESTS.find(clause).filter(|good| so(*good) && !handed_on_at(clause, good))
        && !partial
        && found.get(0).is_some_and(|suite| suite.start() <= good.start())
    {
        let name = |group| found.get(group).map(|suite| suite.as_str().replace("end-to-end", "e2e"));
        said.extend([name(1), name(2)].into_iter().flatten().map(Said::Suite));
        return;
    }
    let tests = TESTS
        .find(clause)
        .or_else(|| TESTS_OTHER.find(clause))
        .or_else(|| TESTS_LOOSE.find(clause))
        .or_else(|| COUNT_ONLY.find(clause))
        .or_else(|| THEY_PASS.find(clause).filter(|_| mentions_tests(before, prose)))
        .filter(|_| one_test.is_none())
        // "Tests that pass: none."
        .filter(|found| !found.as_str().contains(" that pass"))
        .filter(|found| !PASSED_ON.is_match(&clause[found.end()..]))
        // "I expect the build and the tests to pass"
        .filter(|found| {
            !((found.as_str().contains(" to ") && is_wish(before))
                || (TO_PASS.is_match(found.as_str()) && !KNOWN_TO.is_match(found.as_str())))
        });
    let handed_on = |found: &regex::Match<'_>| handed_on_at(clause, found);
    let builds = BUILDS.find(clause).filter(|found| !handed_on(found));
    let lints = LINTS.find(clause).filter(|found| !handed_on(found));
    let types = TYPES.find(clause).filter(|found| !handed_on(found));
    if CHECKS.find(clause).filter(|found| !handed_on(found)).is_some_and(so) && !partial {
        said.push(Said::Checks);
    }
    if builds.is_some_and(so) {
        said.push(Said::Passes(Build));
    }
    if lints.is_some_and(so) {
        said.push(Said::Passes(Lint));
    }
    if types.is_some_and(so) {
        said.push(Said::Passes(Typecheck));
    }
    if let Some(found) = tests.filter(|found| so(*found) && !partial) {
        // "All tests in `a` pass" is not all of them.
        let some = (found.as_str().contains(" in ") || found.as_str().contains(" for ")) && !IN_ALL.is_match(clause);
        let every = EVERY.is_match(&clause[..found.end()]) && !some;
        let number = COUNTED.captures(clause).and_then(|found| found[1].parse().ok());
        said.extend(number.map(Said::Counted));
        said.push(if every { Said::EveryTest } else { Said::Passes(Tests) });
    }
    if let Some((found, whole)) = one_test.as_ref().and_then(|found| Some((found, found.get(0)?)))
        && so(whole)
        && let Some(code) = marked(found, prose)
    {
        said.push(Said::Test(code.to_owned()));
    }
    if let Some(found) = NAMED_TEST.captures(clause)
        && let (Some(whole), Some(name)) = (found.get(0), found.get(1))
        && so(whole)
        && ALONE.is_match(&clause[whole.end()..])
    {
        said.push(Said::Test(name.as_str().to_owned()));
    }
    for found in MARK_GOOD.captures_iter(clause) {
        let (Some(whole), Some(code)) = (found.get(0), marked(&found, prose)) else { continue };
        if so(whole) && !partial && !handed_on(&whole) {
            let alone = ALONE.is_match(&clause[whole.end()..]) && whole.as_str().contains(" pass");
            said.extend(of_command(code, true, alone));
        }
    }
    if FIXES.find(clause).is_some_and(so) && !is_history(clause) && !WORSE.is_match(clause) {
        said.push(Said::Fixes);
    }
    said.extend(verified(clause, prose));
}

pattern!(TO_PASS, r" to (?:pass|succeed|be green)$");
pattern!(KNOWN_TO, r"\b(?:verified|confirmed|seen|shown|known) to (?:pass|succeed|be green)$");
pattern!(COUNTED, r"(?:^|[^/\d.])(\d{1,9})(?: tests?| specs?)?(?: now| all| have)* (?:pass|passed|passes|passing)\b");
pattern!(IN_ALL, r"\bin (?:the|this) (?:whole |entire )?(?:workspace|project|repo|repository|suite|code ?base)\b");
pattern!(WORSE, r"\b(?:worse|less|differently)\b");

fn handed_on_at(clause: &str, found: &regex::Match<'_>) -> bool {
    PASSED_ON.is_match(&clause[found.end()..])
}

/// Claims about a deed without a file; whether something is said to be mended.
fn deeds(clause: &str, carried: Carried, prose: &Prose, said: &mut Vec<Said>) -> bool {
    let own = |found: &regex::Match<'_>, objects: &regex::Regex| {
        let work = Work { objects, present: true };
        is_so(clause, found.end()) && is_own(clause, found.start(), found.end(), carried, &work)
    };
    let whole = |found: &regex::Match<'_>| !IN_PART.is_match(clause[found.end()..].trim_start());
    let gone = |found: &regex::Match<'_>| {
        !found.as_str().starts_with("gone") || IS_GONE.is_match(clause[..found.start()].trim_end())
    };
    // "Do this, and the bug is fixed" may be said of a proposal; who did it says so.
    let proposed = |found: &regex::Match<'_>| PRESENT.is_match(clause[..found.start()].trim_end());
    let fixed: Vec<_> =
        FIXED.find_iter(clause).filter(whole).filter(gone).filter(|found| own(found, &FIXABLE)).collect();
    said.extend(fixed.iter().filter_map(|found| mended(clause, found.start(), prose)));
    if !fixed.is_empty() && fixed.iter().all(proposed) && !WORDING.is_match(clause) {
        said.push(Said::Fixes);
    } else if !fixed.is_empty() {
        let kind = if WORDING.is_match(clause) {
            Said::Worded
        } else if clause.contains("lint") || clause.contains("clippy") {
            Said::Fixed(Some(Lint))
        } else if clause.contains("type error") {
            Said::Fixed(Some(Typecheck))
        } else if clause.contains("compil") || clause.contains("build") {
            Said::Fixed(Some(Build))
        } else {
            Said::Fixed(None)
        };
        said.push(kind);
    }
    let commit = |found: &regex::Match<'_>| {
        own(found, &COMMITTABLE) || (COMMIT_IS.is_match(found.as_str()) && is_so(clause, found.end()))
    };
    if COMMITTED.find_iter(clause).any(|found| commit(&found)) {
        said.push(if ALL_OF_IT.is_match(clause) {
            Said::AllCommitted { state: STATE.is_match(clause) }
        } else {
            Said::Git("commit")
        });
    }
    let of_git = |found: &regex::Match<'_>| !PUSHED_ELSE.is_match(&clause[found.end()..]);
    let commit_pushed = COMMIT_PUSHED.find(clause).is_some_and(|found| is_so(clause, found.end()));
    if commit_pushed || PUSHED.find_iter(clause).filter(of_git).any(|found| own(&found, &COMMITTABLE)) {
        said.push(Said::Git("push"));
    }
    runs(clause, carried, prose, said);
    !fixed.is_empty()
}

pattern!(PRESENT, r"\b(?:is|are)(?: now| all| finally| therefore| also)*$");
pattern!(COMMIT_IS, r"^commit (?:has|was|succeeded|went|created|made)");
pattern!(COMMIT_PUSHED, r"^(?:the|my|this) commit has been pushed(?: to \S+)?$");
pattern!(STATE, r"\b(?:is|are)(?: now| already| all)* committed\b");
pattern!(ALL_OF_IT, r"\b(?:everything|all|nothing is left)\b");
/// Whether it is about tests, or a command that runs them.
fn mentions_tests(text: &str, prose: &Prose) -> bool {
    MENTIONS_TESTS.is_match(text)
        || MARK.captures_iter(text).any(|found| {
            let words =
                marked(&found, prose).map(|code| code.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
            words.and_then(|words| check_of(&words)).is_some_and(|check| check.kind == Tests)
        })
}

/// What a phrase has set aside.
pub(super) fn marked<'p>(found: &regex::Captures<'_>, prose: &'p Prose) -> Option<&'p str> {
    let number = found.get(1).or_else(|| found.get(2))?.as_str().parse::<usize>().ok()?;
    prose.aside.get(number).map(String::as_str)
}

/// The claim that a command ran, or ended well; `alone`: it is only said to pass.
pub(super) fn of_command(code: &str, well: bool, alone: bool) -> Option<Said> {
    let words: Vec<String> = code.split_whitespace().map(str::to_owned).collect();
    // "`git status` is clean" tells of the tree.
    if well && code.starts_with("git ") && words.get(1).is_some_and(|verb| matches!(verb.as_str(), "status" | "diff")) {
        return None;
    }
    if well && check_of(&words).is_some() {
        return Some(Said::Command(code.to_owned()));
    }
    let script = words.len() == 1 && is_path(code);
    if well && script && check_of(&["sh".to_owned(), code.to_owned()]).is_some() {
        return Some(Said::Command(format!("sh {code}")));
    }
    if well && words.len() == 1 {
        // A test by its name or file passes, an identifier does not "succeed".
        let tests = code.to_ascii_lowercase().contains("test") || code.to_ascii_lowercase().contains("spec");
        let name = alone && code.contains('_') && !is_path(code);
        return (tests || name).then(|| Said::Test(code.to_owned()));
    }
    Some(if well { Said::Succeeded(code.to_owned()) } else { Said::Ran(code.to_owned(), false) })
}
