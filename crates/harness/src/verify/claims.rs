//! What an answer claims: a fixed table of phrases (tool-contract §24).
//!
//! Only what is said to be so is a claim. What is negated, conditional, wished, asked or attributed to somebody else is
//! none; neither is what the answer quotes (`prose`).

use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use super::paths::path_claims;
use super::prose::{self, Prose, is_path, pattern};
use super::runners::check_of;

/// Claims of one answer that are judged. No honest answer has as many, and each is compared with the others.
const CLAIMS_MAX: usize = 256;

/// Commands of one list that are each taken to have run.
const RAN_LIST_MAX: usize = 8;

/// What is said to have happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Created,
    /// Created or edited.
    Wrote,
    Edited,
    Deleted,
    Renamed,
}

/// One claim, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It passes, builds, is clean.
    Passes(VerificationKind),
    /// Something was repaired; where it is said, what has to pass for that.
    Fixed(Option<VerificationKind>),
    /// Words were put right: an edit, which no test proves.
    Worded,
    File(Verb, String),
    /// `commit`, `push`.
    Git(&'static str),
    RanKind(VerificationKind),
    Ran(String),
    Succeeded(String),
    /// Whatever there is to check a change with passes, in those words.
    Checks,
    /// The same of a machine that is not this one.
    Ci,
    /// Supplied by the agent in words that the table does not know.
    Unknown(String),
}

// What somebody does not say to be so. Looked for up to the end of a phrase.
pattern!(
    NOT_SO,
    r"\b(?:would|should|could|might|may|will|won't|can|cannot|can't|shall|must|needs?|want|wants|plan(?:s|ning)? to|going to|expect(?:s|ed)?|hopefully|hope|likely|probably|presumably|supposed(?:ly)?|ideally|allegedly|ensure|make sure|makes sure|making sure|verify|confirm|check (?:that|if|whether)|see (?:if|whether)|so that|in order|let me|let's|i'll|we'll|it'll|they'll|you'll|tr(?:y|ied|ying)|attempt(?:s|ed|ing)?|to be|ready to|able to|assum(?:e|es|ed|ing)|until|unless|whether|please|to see|goal|aim(?:s|ed)?|todo|pending|required?|if)\b"
);
pattern!(
    NEGATED,
    r"\b(?:not|no|never|none|neither|nor|without|cannot|unable|nothing|nobody|fail|fails|failed|failing|failure|failures|yet to|instead of|rather than|half|most|some|several|few|only|many|far from|skipped)\b|n't\b|n’t\b"
);
pattern!(
    ATTRIBUTED,
    r"\b(?:you|user|users|issue|ticket|readme|docs?|documentation|comment|he|she|task|instructions?|description|author|pr|changelog|badge|⟦quoted⟧)(?: \w+)? (?:said|says?|saying|mentioned|mentions?|claims?|claimed|asks?|asked|wrote|reports?|reported|states?|stated|told|requested|wanted)\b|\baccording to\b|\b(?:previously|originally|used to|at first|initially|formerly|in the past)\b|\bbefore (?:my|the|this|these|your|any|that)\b"
);
// "I can confirm that" says that it is so.
pattern!(
    ASSURED,
    r"\b(?:i|we|you) can (?:now |also )*(?:confirm|verify|see|report|say)(?: that)?\b|\bas you can see\b"
);
pattern!(
    CONDITION,
    r"^(?:and |but |so |then )?(?:if|once|whenever|unless|until|assuming|provided|as soon as|before|after you|suppose|in case)\b"
);
pattern!(WHEN, r"^(?:and |but |so )?when\b");
pattern!(WHEN_DONE, r"^(?:and |but |so )?when (?:i|we) (?:ran|re-?ran|tested|checked)\b");
pattern!(
    LATER_CONDITION,
    r"\b(?:if|once|unless|provided|assuming|as long as|when you|after you|except|apart from|aside from|other than|besides|excluding|but one)\b"
);
pattern!(CLAUSE, r",| and | but | so | then | while | although | though | because | however | yet |\(|\)|;");
pattern!(PARTIAL, r"(\d+)\s*(?:/|of|out of)\s*(?:the\s+)?(\d+)");

// Words that say the opposite of what they negate.
pattern!(
    REPAIRED_TEST,
    r"\b(?:(?:previously|formerly|once|earlier|originally)[ -])?(?:failing|failed|broken) ((?:\w+ )?(?:tests?|suite|specs?|cases?|build|check))\b"
);
pattern!(NO_LONGER, r"\bno longer (?:fail(?:s|ing)?|break(?:s|ing)?|crash(?:es|ing)?|errors?|broken|red)\b");
pattern!(
    CLEANLY,
    r"\b(?:without(?: any| a single)?|with (?:no|zero|0)) (?:\w+ )?(?:errors?|failures?|issues?|problems?|warnings?|complaints?)\b"
);
pattern!(
    REPORTS_NONE,
    r"\b(?:reports?|reported|shows?|showed|finds?|found|gives?|gave|has|had|produces?|produced|(?:comes?|came) back with) (?:no|zero|0) (?:\w+ )?(?:errors?|failures?|issues?|problems?|warnings?|complaints?)\b"
);
pattern!(
    WERE_FAILING,
    r"\b((?:tests?|suite|specs?|build)) (?:that|which) (?:(?:was|were|had been|used to be) (?:\w+ )?(?:failing|broken|red)|failed|used to fail)\b"
);
pattern!(MANAGED, r"\b(?:(?:was|were|am|are) (?:now )?able|managed) to (?:fix|resolve|solve|repair|correct)\b");
pattern!(RAN_LIST, r"\b(ran|re-?ran|executed|running) (⟦\d+⟧)(?:, and|,? then| and|,|;) ⟦(\d+)⟧");
pattern!(FAILURES_TOLD, r"\b(?:[1-9]\d*|one|two|three|a) (?:\w+ )?(?:failed|fails?|failing|failures?)\b");
pattern!(IN_PART, r"^(?:only )?(?:one|two|three|four|some|most|several|part|half|\d+)(?: \w+)? (?:of|out of)\b");
pattern!(
    NONE_FAIL,
    r"\b(?:not a single|no|none of the|zero|0) (?:\w+ )?(?:tests?|specs?|cases?)(?: are| is| were| was)?(?: now| currently)? (?:fail(?:s|ed|ing)?|broken|red)\b|\b(?:no|zero|0)(?: more| remaining)? (?:failing tests?|test failures?|failed tests?|failures|failed)\b"
);
pattern!(
    NO_COMPLAINTS,
    r"\b(?:no|zero|0)(?: more| remaining)? (lint(?:er|ing)?|clippy|eslint|type|typing|compil(?:e|er|ation)|build) (?:errors?|warnings?|issues?|failures?)\b"
);

const GOOD: &str = r"(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded|succeeding|successful|successfully|cleanly|clean|ok|okay|happy|healthy)";
/// Words between a subject and what it is, that change nothing about it.
const BETWEEN: &str = r":?(?: (?:now|all|also|still|again|are|is|was|were|have|has|been|it|back|out|up|comes?|came|runs?|ran|completes?|completed|finish(?:es|ed)?|both|\d+|suites?|cases?|too|step|checks?|output|reports?|reported|status|results?|of|them))*:?";
pattern!(TESTS, &format!(r"\b(?:tests?|specs?|suites?|assertions?|pytest|jest|vitest|testing)\b{BETWEEN} {GOOD}\b"));
pattern!(
    TESTS_LOOSE,
    r"\b(?:tests?|specs?|suites?)(?: [0-9a-z_'-]+| ⟦\d+⟧){1,6}? (?:pass|passes|passed|succeed|succeeds|succeeded)\b"
);
pattern!(PASSED_ON, r"^ (?:to|a|an|through|into|it|them|this|that|data|arguments?|values?)\b");
pattern!(
    TESTS_OTHER,
    r"\b(?:pass|passes|passed|passing) (?:all|every|each|the|its|our)\b(?: of)?(?: the| its)?(?: \w+){0,2}? (?:tests?|specs?|suite)\b|\b(?:all|everything|every one)(?: \d+)?(?: of them)?(?: is| are| now| has| have)* (?:pass|passes|passed|passing|green)\b|\ball[ -]green\b|\bgreen across the board\b|\b\d+ (?:passed|passing)\b|\b(\d+)\s*/\s*(\d+) (?:pass|passed|passing|green)\b|\bgreen (?:test )?(?:suite|run|bar)\b|\bclean test run\b"
);
pattern!(
    THEY_PASS,
    r"^(?:i (?:can )?(?:see|saw|confirmed|verified)(?: that)? )?(?:they|these|those|it|all|everything|each|which|both)(?: of them)?(?: all| both)?(?: now| are| is| have| has)* (?:pass|passes|passed|passing|green|succeed|succeeds|succeeded)\b"
);
pattern!(MENTIONS_TESTS, r"\b(?:tests?|specs?|suite|unit tests)\b");
pattern!(
    BUILDS,
    &format!(
        r"\b(?:builds?|compilation)\b{BETWEEN} {GOOD}\b|\b(?:builds?|compilation)(?: \w+)? (?:works|completes|completed|finishes|finished)\b|\bsuccessful(?:ly)? (?:build|builds|built|compiles|compiled|compilation)\b|\b(?:it|code|project|crate|everything|app|application|package|binary|workspace|program|library|module|tree|all)(?: \w+)?(?: now| also| still| again| all)* (?:compiles|builds|compiled|built)\b|\b(?:compiles|compiled|builds|built) (?:again|cleanly|fine|now|successfully)\b"
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
        r"(?:^|\b(?:all|the|these|those|my|our|your|its|both|other|that)(?: {CHECK})* )checks\b{BETWEEN} {GOOD}\b|\b(?:every|each)(?: {CHECK})* check\b{BETWEEN} {GOOD}\b|\b(?:pass|passes|passed|passing) (?:all|every|each|the|its|our)(?: {CHECK})* checks?\b"
    )
);
pattern!(
    CI,
    &format!(
        r"\b(?:ci|continuous integration|github actions)(?: pipelines?| builds?| runs?| jobs?| checks?| tests?| workflows?)?\b{BETWEEN} {GOOD}\b|\b(?:pass|passes|passed|passing)(?: in| on)? ci\b|\bgreen (?:in|on) ci\b"
    )
);
/// What may be said to pass.
const SUBJECT: &str =
    r"(?:tests?|test suite|specs?|builds?|lint|linter|linting|clippy|type[ -]?checks?|type[ -]?checker|ci|checks)";
// "The build, the linter and the tests pass": all of them do.
pattern!(
    TOGETHER,
    &format!(r"\b({SUBJECT})(?:, and|,| and| &)((?: both| all| the| our| its| unit)* {SUBJECT}\b{BETWEEN} ({GOOD}))\b")
);
pattern!(
    ASIDE,
    r"\b(?:after|before|for|with|without|during|in|on|since|from|by|of|besides|beside|unlike|like|about|to)(?: the| all| both| our| its| my| your| a| each| every)* $"
);
pattern!(
    FIXED,
    r"(?:^|\b(?:i|we|i've|we've|have|has|had|been|just|also|now|successfully|finally|is|are|was|it's|got|that|and|then) )(?:fixed|resolved|repaired|solved|corrected)\b(?:[^-]|$)|\b(?:bugs?|issues?|problem|errors?|crash|regression|fault|defect) (?:is|are|was|were|has been|have been)(?: now| all)* (?:gone|fixed|resolved|solved|corrected)\b|\bfix (?:is )?(?:in place|complete|works|done|confirmed)\b|\b(?:now works|works now|works again|working again|now working)\b"
);
pattern!(
    WORDING,
    r"\b(?:typos?|spelling|wording|formatting|comments?|docs?|documentation|grammar|indentation|whitespace|readme|link)\b"
);
pattern!(
    COMMITTED,
    r"\b(?:committed|made (?:a|the|one|two|\d+) commits?|created (?:a|the|one|two|\d+) (?:new )?commits?)\b"
);
pattern!(PUSHED, r"\bpushed\b");
pattern!(
    RAN_KIND,
    r"\b(?:ran|re-?ran|executed|running|re-?running)(?: the| all| all the| both| our| its| full| whole| entire| complete)*(?: \w+)? (tests?|test suite|suite|specs?|linter|lints?|build|type ?checker|type ?checks?)\b"
);
pattern!(RAN, r"\b(?:ran|re-?ran|executed|running|re-?running|ran the command) (?:the )?(?:command )?⟦(\d+)⟧");
const WENT_WELL: &str = r"(?:pass|passes|passed|passing|green|succeeds?|succeeded|exits? (?:with )?(?:code |status )?(?:0|zero)|exited (?:with )?(?:code |status )?(?:0|zero)|completed successfully|runs? clean(?:ly)?|ran clean(?:ly)?|clean|works)";
pattern!(MARK, r"⟦(\d+)⟧");
pattern!(MARK_GOOD, &format!(r"⟦(\d+)⟧{BETWEEN} {WENT_WELL}\b"));

/// Reads the claims of an answer, each once.
pub(super) fn claims(answer: &str) -> Vec<Said> {
    let prose = prose::prose(answer);
    let mut said = Vec::new();
    for (nth, sentence) in prose.sentences.iter().enumerate() {
        if sentence.ends_with('?') {
            continue;
        }
        let before = nth.checked_sub(1).map_or("", |nth| prose.sentences[nth].as_str());
        for claim in of_sentence(sentence, before, &prose) {
            if said.len() < CLAIMS_MAX && !said.contains(&claim) {
                said.push(claim);
            }
        }
    }
    said
}

/// `before` is the sentence that `they` may mean.
fn of_sentence(sentence: &str, before: &str, prose: &Prose) -> Vec<Said> {
    let sentence = ASSURED.replace_all(sentence, "");
    let sentence = CLEANLY.replace_all(&sentence, "cleanly");
    let sentence = REPORTS_NONE.replace_all(&sentence, "is clean");
    let sentence = MANAGED.replace_all(&sentence, "fixed");
    let sentence = NONE_FAIL.replace_all(&sentence, "tests passing");
    let sentence = WERE_FAILING.replace_all(&sentence, "$1");
    let sentence = REPAIRED_TEST.replace_all(&sentence, "$1");
    let sentence = NO_COMPLAINTS.replace_all(&sentence, |found: &regex::Captures<'_>| match &found[1] {
        "type" | "typing" => "types clean",
        kind if kind.starts_with("compil") || kind == "build" => "build clean",
        _ => "lint clean",
    });
    let good = if MENTIONS_TESTS.is_match(&sentence) { "passes" } else { "is fixed" };
    let sentence = NO_LONGER.replace_all(&sentence, good);
    let sentence = ran_each(together(sentence.into_owned()), prose);
    let failures_told = FAILURES_TOLD.is_match(&sentence);
    let mut said = Vec::new();
    let mut conditional = false;
    let mut before = format!("{before} ");
    for clause in clauses(&sentence) {
        conditional |= CONDITION.is_match(clause) || (WHEN.is_match(clause) && !WHEN_DONE.is_match(clause));
        if !conditional {
            states(clause, &before, prose, &mut said);
        }
        before.push_str(clause);
        before.push(' ');
    }
    // Who tells of failures does not claim that there are none.
    said.retain(|claim| !(failures_told && matches!(claim, Said::Passes(Tests) | Said::Checks | Said::Ci)));
    said.extend(path_claims(&sentence, prose));
    said
}

/// "`a` and `b` pass" as "`a` pass and `b` pass", where that is said to be so.
fn together(mut sentence: String) -> String {
    for _ in 0..RAN_LIST_MAX {
        let Some(next) = TOGETHER.captures(&sentence).and_then(|found| {
            let whole = found.get(0).filter(|whole| is_so(&sentence, whole.end()))?;
            // "After the build, tests pass" says nothing of the build.
            if ASIDE.is_match(&sentence[..whole.start()]) {
                return None;
            }
            let each = format!("{} {} and{}", &found[1], &found[3], &found[2]);
            Some(format!("{}{each}{}", &sentence[..whole.start()], &sentence[whole.end()..]))
        }) else {
            break;
        };
        sentence = next;
    }
    sentence
}

/// "Ran `a` and `b`" as "ran `a` and ran `b`".
fn ran_each(mut sentence: String, prose: &Prose) -> String {
    for _ in 0..RAN_LIST_MAX {
        let is_command = |found: &regex::Captures<'_>| {
            let number = found[3].parse::<usize>().ok();
            number.and_then(|number| prose.aside.get(number)).is_some_and(|code| !is_path(code))
        };
        let Some(next) = RAN_LIST.captures(&sentence).filter(is_command).and_then(|found| {
            let whole = found.get(0)?;
            let each = format!("{0} {1} and {0} ⟦{2}⟧", &found[1], &found[2], &found[3]);
            Some(format!("{}{each}{}", &sentence[..whole.start()], &sentence[whole.end()..]))
        }) else {
            break;
        };
        sentence = next;
    }
    sentence
}

/// The clauses of a sentence.
pub(super) fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    CLAUSE
        .split(sentence)
        .map(|clause| clause.trim().trim_end_matches(['.', '!', ':']))
        .filter(|clause| !clause.is_empty())
}

/// Whether what stands up to `end` in a clause is said to be so.
pub(super) fn is_so(clause: &str, end: usize) -> bool {
    let upto = &clause[..end];
    !NOT_SO.is_match(upto) && !NEGATED.is_match(upto) && !ATTRIBUTED.is_match(clause)
}

/// Claims about a state or a deed without a file.
fn states(clause: &str, before: &str, prose: &Prose, said: &mut Vec<Said>) {
    let rest;
    let clause = match CI.find(clause).filter(|found| !PASSED_ON.is_match(&clause[found.end()..])) {
        // What is said of that machine is not said of this one.
        Some(found) => {
            if is_so(clause, found.end()) && !LATER_CONDITION.is_match(&clause[found.end()..]) {
                said.push(Said::Ci);
            }
            rest = format!("{} {}", &clause[..found.start()], &clause[found.end()..]);
            rest.as_str()
        }
        None => clause,
    };
    let so = |found: regex::Match<'_>| is_so(clause, found.end()) && !LATER_CONDITION.is_match(&clause[found.end()..]);
    let partial = PARTIAL.captures_iter(clause).any(|found| {
        let number = |group| found.get(group).and_then(|digits| digits.as_str().parse::<u64>().ok());
        number(1) < number(2)
    });
    let tests = TESTS
        .find(clause)
        .or_else(|| TESTS_OTHER.find(clause))
        .or_else(|| TESTS_LOOSE.find(clause))
        .or_else(|| THEY_PASS.find(clause).filter(|_| mentions_tests(before, prose)))
        .filter(|found| !PASSED_ON.is_match(&clause[found.end()..]))
        // "I expect the build and the tests to pass"
        .filter(|found| !(found.as_str().contains(" to ") && NOT_SO.is_match(before)));
    let handed_on = |found: &regex::Match<'_>| PASSED_ON.is_match(&clause[found.end()..]);
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
    if tests.is_some_and(so) && !partial {
        said.push(Said::Passes(Tests));
    }
    for found in MARK_GOOD.captures_iter(clause) {
        let (Some(whole), Some(code)) = (found.get(0), marked(&found, prose)) else { continue };
        if so(whole) && !partial {
            said.extend(of_command(code, true));
        }
    }
    let whole = |found: &regex::Match<'_>| !IN_PART.is_match(clause[found.end()..].trim_start());
    if FIXED.find(clause).filter(whole).is_some_and(|found| is_so(clause, found.end())) {
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
    if COMMITTED.find(clause).is_some_and(|found| is_so(clause, found.end())) {
        said.push(Said::Git("commit"));
    }
    if PUSHED.find(clause).is_some_and(|found| is_so(clause, found.end())) {
        said.push(Said::Git("push"));
    }
    if let Some(found) = RAN_KIND.captures(clause)
        && let Some(whole) = found.get(0)
        && is_so(clause, whole.end())
    {
        let kind = match &found[1] {
            "build" => Build,
            word if word.starts_with("lint") => Lint,
            word if word.starts_with("type") => Typecheck,
            _ => Tests,
        };
        said.push(Said::RanKind(kind));
    }
    for found in RAN.captures_iter(clause) {
        let (Some(whole), Some(code)) = (found.get(0), marked(&found, prose)) else { continue };
        if is_so(clause, whole.end()) {
            said.extend(of_command(code, false));
        }
    }
}

/// Whether it is about tests, or a command that runs them.
fn mentions_tests(text: &str, prose: &Prose) -> bool {
    MENTIONS_TESTS.is_match(text)
        || MARK
            .captures_iter(text)
            .any(|found| marked(&found, prose).is_some_and(|code| of_command(code, true) == Some(Said::Passes(Tests))))
}

/// What a phrase has set aside.
fn marked<'p>(found: &regex::Captures<'_>, prose: &'p Prose) -> Option<&'p str> {
    let number = found.get(1)?.as_str().parse::<usize>().ok()?;
    prose.aside.get(number).map(String::as_str)
}

/// The claim that a command ran, or ended well.
fn of_command(code: &str, well: bool) -> Option<Said> {
    let words: Vec<String> = code.split_whitespace().map(str::to_owned).collect();
    if well && let Some(check) = check_of(&words) {
        return Some(Said::Passes(check.kind));
    }
    if well && words.len() == 1 {
        // A test by its name or file passes, an identifier does not "succeed".
        let tests = code.to_ascii_lowercase().contains("test") || code.to_ascii_lowercase().contains("spec");
        return (tests || is_path(code)).then_some(Said::Passes(Tests)).filter(|_| tests);
    }
    Some(if well { Said::Succeeded(code.to_owned()) } else { Said::Ran(code.to_owned()) })
}
