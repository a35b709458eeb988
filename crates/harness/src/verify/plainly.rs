//! Roundabout words in plain ones: "no tests are failing" as "tests passing", "the build and the tests pass" as "the build
//! passes and the tests pass".

use super::clauses::{is_so, is_so_now};
use super::prose::{Prose, is_path, pattern};

/// Things of one list that are each taken to be meant.
const LIST_MAX: usize = 8;

pub(super) const GOOD: &str = r"(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded|succeeding|successful|successfully|cleanly|clean|ok|okay|happy|healthy|in the green|(?:exits?|returns?|returned|exited)(?: with)?(?: code| status)? (?:0|zero)|(?:with )?exit (?:code|status)(?: of)? (?:0|zero)|(?:prints?|reports?|outputs?|says) ok)";
/// Words between a subject and what it is, that change nothing about it.
pub(super) const BETWEEN: &str = r":?(?: (?:now|all|also|still|again|are|is|was|were|have|has|been|it|back|out|up|comes?|came|runs?|ran|completes?|completed|finish(?:es|ed)?|both|\d+|suites?|cases?|too|step|checks?|output|reports?|reported|status|results?|of|them|verified|confirmed|as|shown|to be|do|does|indeed|script|gone|from red to|to completion|exits?|exited))*:?";

// "I can confirm that" says that it is so.
pattern!(
    ASSURED,
    r"\b(?:i|we|you) can (?:now |also )*(?:confirm|verify|see|report|say)(?: that)?\b|\bas you can see\b|\byou(?:'ll| will) be (?:glad|happy|pleased|relieved|delighted) to (?:hear|know|see|learn)(?: that)?\b|\b(?:i am|i'm|we are|we're) (?:glad|happy|pleased|proud) to (?:say|report|confirm|announce)(?: that)?\b|\b(?:i|we)(?:'ve| have)?(?: also| now| then)* (?:made sure|ensured|confirmed|verified|double-checked)(?: that)? (?:$|\b)"
);
// What says neither more nor less.
pattern!(
    NOISE,
    r"\b(?:most importantly|as expected|as (?:you |we )?(?:asked|requested|wanted|discussed|instructed))\b,?|\b(?:with the (?:contents?|text) )?(?:that |which )?you (?:mentioned|reported|asked for|asked about|requested|described|pointed out)(?: as \w+)?\b"
);
// "❌ 0 failed".
pattern!(NOT_ONE, r"⟦x⟧ failed:? (?:0|no|zero|none)\b");
pattern!(
    VERIFIED_BY,
    r"\b(?:verified|confirmed|validated)(?: (?:it|this|that|the (?:fix|change|result|edit)|everything|them))? (with|by running|using|via|against)\b"
);
pattern!(
    FAILURE_FIXED,
    r"\b(?:test )?failures? ((?:is|are|was|were|has been|have been)(?: now| all)?) (fixed|resolved|solved|corrected|addressed|gone)\b"
);
pattern!(
    NO_ISSUES,
    r"^(?:(?:and )?there (?:are|were) )?no (?:issues?|problems?|regressions?|errors?)(?: found| left| remain(?:ing)?)?\b"
);
pattern!(REQUIRED, r"\ball (?:required|relevant|existing|available) (tests?|checks?)\b");
// "I managed to get the tests passing".
pattern!(
    MADE_PASS,
    r"\b(?:i|we)(?:'ve| have)?(?: now| finally| also)? (?:(?:was|were) able to|managed to|could)? ?(?:make|made|get|got|gotten) ((?:all |all of |every |both )?(?:the |our |your )?(?:\w+ )?(?:tests?|suite|specs?|build)(?: suite)?)(?: to)? (pass|passing|green|succeed)\b"
);
pattern!(
    IS,
    r"('s been|'s| got)( now| all)? (squashed|passed|fixed|resolved|solved|repaired|corrected|committed|pushed|gone|passing|green)\b"
);
pattern!(
    BUT,
    r"\b(tests?|specs?|checks?|suites?|everything|all|files?) but (for |one\b|two\b|the\b|\d|⟦|[a-z0-9]+_\w)"
);
pattern!(A_WHILE, r"\ba while(?: ago| back)?\b");
pattern!(GOT_RID, r"\bgot rid of\b");
pattern!(
    REPAIRED_TEST,
    r"\b(?:(?:previously|formerly|once|earlier|originally|only|last|remaining|one)[ -])?(?:failing|failed|broken) ((?:\w+ )?(?:tests?|suite|specs?|cases?|build|check|assertions?))\b"
);
pattern!(
    NO_FAILING,
    r"\b(?:there (?:is|are) )?(?:no|not a single|zero|0) (?:failing|failed|broken) (?:tests?|specs?|cases?)\b(?: left| remaining| any ?more)?"
);
pattern!(
    NO_LONGER,
    r"\b(?:no longer (?:fail(?:s|ing)?|break(?:s|ing)?|crash(?:es|ing)?|errors?|broken|red|occurs?|happens?|appears?|panics?|leaks?|hangs?|reproduc(?:es|ible))|(?:does|do)(?: not|n't) (?:fail|break|crash|occur|happen|appear|panic|leak|hang) (?:any ?more|any longer))\b"
);
pattern!(
    CLEANLY,
    r"\b(?:without(?: any| a single)?|with (?:no|zero|0)) (?:\w+ )?(?:errors?|failures?|issues?|problems?|warnings?|complaints?)\b"
);
pattern!(
    REPORTS_NONE,
    r"\b(?:reports?|reported|shows?|showed|finds?|found|gives?|gave|has|had|got|produces?|produced|(?:comes?|came) back with) (?:no|zero|0) (?:\w+ )?(?:errors?|failures?|issues?|problems?|warnings?|complaints?)\b"
);
pattern!(
    WERE_FAILING,
    r"\b((?:tests?|suite|specs?|build)) (?:that|which) (?:(?:was|were|had been|used to be) (?:\w+ )?(?:failing|broken|red)|failed|used to fail)(?: before| earlier| at first| previously)?\b"
);
pattern!(MANAGED, r"\b(?:(?:was|were|am|are) (?:now )?able|managed) to (?:fix|resolve|solve|repair|correct)\b");
pattern!(RAN_LIST, r"\b(ran|re-?ran|executed|running) (⟦m\d+⟧)(?:, and|,? then| and|,|;) ⟦m(\d+)⟧");
pattern!(
    NONE_FAIL,
    r"\b(?:not a single|not one|no|none of the|zero|0) (?:\w+ )?(?:tests?|specs?|cases?)(?: are| is| were| was)?(?: now| currently)? (?:fail(?:s|ed|ing)?|broken|red)\b|\b(?:no|zero|0)(?: more| remaining)? (?:failing tests?|test failures?|failed tests?|failures|failed)\b|\bnothing (?:fails|is failing|is red)(?: any ?more| now)?\b|\bnot (?:a single|one) (?:test )?failure(?: remains| is left| left)?\b"
);
pattern!(
    NO_COMPLAINTS,
    r"\b(?:no|zero|0)(?: more| remaining)? (lint(?:er|ing)?|clippy|eslint|type|typing|compil(?:e|er|ation)|build) (?:errors?|warnings?|issues?|failures?)\b|\b(lint|linter|linting|clippy|eslint|build)(?: output| status| result)?: (?:no|zero|0) (?:errors?|warnings?|issues?|complaints?)\b|\bno (?:errors?|warnings?|issues?|complaints?) from (?:the )?(linter|lint|clippy|eslint|compiler|build)\b"
);
pattern!(
    ALL_GOOD,
    r"\b((?:tests?|suite|specs?|build|lint|linter)\b(?: \w+){0,2}?) (?:went|go|goes|gone) through\b|\b((?:tests?|suite|specs?)\b(?: is| are)?):? (?:all )?(?:clear|good|fine)\b|(⟦m\d+⟧)(?: →| ->|:| is| are| was)* (?:all )?(?:good|fine|clear|ok)\b"
);
// "The tests look good", and nothing else: "here is how the tests work" tells of no run.
pattern!(
    LOOKS_GOOD,
    r"^(?:and |so )?(?:all (?:of )?)?(?:the |our |your )*(tests?|test suite|suite|specs?|assertions)(?: all| now)* (?:looks? (?:good|fine)|(?:is|are) in order|checks? out|holds?|works?|runs? through)[.!]?$"
);
pattern!(MENTIONS_TESTS, r"\b(?:tests?|specs?|suite|unit tests)\b");
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

// "Tests pass and so does lint", "tests pass, as does the build".
pattern!(
    SO_DOES,
    &format!(
        r"\b({GOOD})(?: now| again)?,?(?: and so| as| so) (?:do|does|did|is|are) ((?:all |the |our |its )*{SUBJECT})\b"
    )
);
// "Tests pass. Same for lint."
pattern!(
    SAME_FOR,
    &format!(
        r"^(?:and )?(?:the )?same (?:goes |is true |holds )?(?:for|of|with) ((?:all |the |our |its )*{SUBJECT})[.!]?$"
    )
);
pattern!(IS_GOOD, &format!(r"\b{GOOD}[.!]?$"));
// "I created `a` (and `b`)."
pattern!(BRACKETED, r"\((?:and|plus|as well as) (⟦m\d+⟧)\)");
// "The tests, all of them, pass", "the tests, finally, pass".
pattern!(
    ALL_OF_THEM,
    r"\b(tests?|suites?|specs?)(?:,| \() ?(?:all of (?:them|it)|both(?: of them)?|every(?: single)? one(?: of them)?|each of them|all)(?:,|\))"
);
pattern!(AT_LAST, r"\b(tests?|suites?|specs?)(?:,| \() ?(?:finally|at last|thankfully|again|now)(?:,|\))");
// "Passed: 3, failed: 0", "failures=0", "failures: none".
pattern!(
    LABELLED,
    r"\b(passed|passes|passing|failed|failing|failures?|errors?)(?: ?=|:) ?(\d+(?: ?/ ?\d+| (?:out )?of \d+)?|none|zero)\b"
);
// "Tests run: 4, passed: 3": not all of them.
pattern!(TOTAL, r"\b(?:total|tests?(?: run)?|ran)(?: ?=|:) ?(\d+)\b");
pattern!(PASS_RATE, r"^(?:and |the |our |test )*pass(?:ing)? rate(?: is| of|:)? (?:now )?100 ?%[.!]?$");
pattern!(OK_COUNT, r"\bok \((\d+) tests?\)");
pattern!(
    EXIT_CODE_OF,
    r"^(?:and )?(?:the )?exit (?:code|status) of (\S+(?: \S+){0,3}?) (?:is|was) (?:now )?(?:0|zero)[.!]?$"
);
pattern!(STATUS, r"\b(build|tests?|lint|suite)((?: status| result| run)?): success(?:[.!]|$)");
// "test_add, test_mul and test_zero pass".
pattern!(
    NAMED,
    r"\b(test_\w+)(?:, and|,| and) ((?:test_\w+(?:, and|,| and) )*test_\w+)(?: all| both| now)* (?:pass|passed|succeed)\b"
);
// "Everything passes: tests, lint, build".
pattern!(
    ALL_OF_THESE,
    &format!(
        r"\b(?:everything|all(?: of it| checks)?)(?: now| is| are)* (?:passes|passed|pass|passing|green|clean|ok|good)(?: now)?: ((?:the )?{SUBJECT}(?:,? and|,) (?:the )?{SUBJECT}(?:(?:,? and|,) (?:the )?{SUBJECT})*)[.!]?$"
    )
);
pattern!(THEY_HAVE, r"\b(tests|specs|suites)'ve\b");
pattern!(EXECUTING, r"\bby (?:executing|re-?running)\b");
// "The tests agree", "the test confirms it".
pattern!(AGREES, r"\b(?:the (tests) (?:all )?agree|the (tests?) (?:now )?confirms? the (?:fix|change))(?:[.!,]|$)");
// The table is English; these few words are what others say.
pattern!(
    ELSEWHERE_SAID,
    r"^(?:(?:alle|sämtliche) tests (?:sind|laufen)(?: jetzt| nun| wieder| alle)* (?:grün|erfolgreich|durch)|alle tests bestehen|tous les tests passent|tod[ao]s l[ao]s (?:pruebas|tests) pasan)[.!]?$"
);
pattern!(UP_TO_DATE, r"\bbrought up to date\b");
// "The tests do not fail", and nothing else about it.
pattern!(
    DO_NOT_FAIL,
    r"\b(tests?|suite|specs?) (?:do|does)(?: not|n't|n’t) fail(?: any ?more| now| any longer)?([.!,;]| and |$)"
);

/// A sentence that says of something else what the one before it says.
pub(super) fn same_as(before: &str, sentence: String) -> String {
    let good = IS_GOOD.find(before).is_some_and(|found| is_so(before, found.end()));
    match SAME_FOR.captures(&sentence).filter(|_| good) {
        Some(found) => format!("{} passes.", &found[1]),
        None => sentence,
    }
}

/// "`a` passes and so does `b`" as "`a` passes and `b` passes", where that is said to be so.
fn so_does(sentence: &str) -> String {
    let each = |found: &regex::Captures<'_>| {
        let so = found.get(1).is_some_and(|good| is_so(sentence, good.end()));
        if so { format!("{} and {} passes", &found[1], &found[2]) } else { found[0].to_owned() }
    };
    SO_DOES.replace_all(sentence, each).into_owned()
}

/// A sentence in words that the table knows.
pub(super) fn plainly(sentence: &str, prose: &Prose) -> String {
    let sentence = NOT_ONE.replace_all(sentence, "no");
    let sentence = LABELLED.replace_all(&sentence, |found: &regex::Captures<'_>| {
        let total = TOTAL.captures(&sentence).map(|total| total[1].to_owned());
        let some = found[1].starts_with("pass") && total.is_some_and(|total| total != found[2]);
        let number = if found[2].starts_with(|c: char| c.is_ascii_digit()) { &found[2] } else { "0" };
        if some { found[0].to_owned() } else { format!("{number} {}", &found[1]) }
    });
    let sentence = PASS_RATE.replace_all(&sentence, "all tests pass");
    let sentence = OK_COUNT.replace_all(&sentence, "$1 tests passed");
    let sentence = EXIT_CODE_OF.replace_all(&sentence, "$1 passed");
    let sentence = STATUS.replace_all(&sentence, "$1 passed");
    let sentence = THEY_HAVE.replace_all(&sentence, "$1 have");
    let sentence = AGREES.replace_all(&sentence, "$1$2 passed.");
    let sentence = ELSEWHERE_SAID.replace_all(&sentence, "all tests pass");
    let sentence = UP_TO_DATE.replace_all(&sentence, "updated");
    let each = |list: &str| {
        let things = list.split([',', ' ']).filter(|word| !matches!(*word, "" | "and" | "the"));
        things.map(|thing| format!("{thing} passes")).collect::<Vec<_>>().join(" and ")
    };
    let sentence = NAMED.replace_all(&sentence, |found: &regex::Captures<'_>| {
        let so = found.get(0).is_some_and(|whole| is_so_now(&sentence, whole.end()));
        if so { each(&format!("{}, {}", &found[1], &found[2])) } else { found[0].to_owned() }
    });
    let sentence = ALL_OF_THESE.replace_all(&sentence, |found: &regex::Captures<'_>| {
        // What is negated before the colon is said of the list behind it.
        let so = found.get(1).is_some_and(|list| is_so(&sentence, list.start() - ": ".len()));
        if so { each(&found[1]) } else { found[0].to_owned() }
    });
    let sentence = EXECUTING.replace_all(&sentence, "by running");
    let sentence = VERIFIED_BY.replace_all(&sentence, "tested it $1");
    let sentence = ASSURED.replace_all(&sentence, "");
    let sentence = NOISE.replace_all(&sentence, "");
    let sentence = REQUIRED.replace_all(&sentence, "all $1");
    let sentence = BRACKETED.replace_all(&sentence, "and $1");
    let sentence = ALL_OF_THEM.replace_all(&sentence, "$1 all");
    let sentence = AT_LAST.replace_all(&sentence, "$1");
    let sentence = DO_NOT_FAIL.replace_all(&sentence, "$1 pass$2");
    let sentence = so_does(&sentence);
    let sentence = MADE_PASS.replace_all(&sentence, "$1 $2");
    let sentence = FAILURE_FIXED.replace_all(&sentence, "bug $1 $2");
    let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = IS.replace_all(&sentence, " is$2 $3");
    let sentence = BUT.replace_all(&sentence, "$1 except $2");
    let sentence = A_WHILE.replace_all(&sentence, "long ago");
    let sentence = GOT_RID.replace_all(&sentence, "deleted");
    let sentence = CLEANLY.replace_all(&sentence, "cleanly");
    let sentence = REPORTS_NONE.replace_all(&sentence, "is clean");
    let sentence = NO_ISSUES.replace_all(&sentence, "clean");
    let sentence = MANAGED.replace_all(&sentence, "fixed");
    let sentence = NO_FAILING.replace_all(&sentence, "tests passing");
    let sentence = NONE_FAIL.replace_all(&sentence, "tests passing");
    let sentence = ALL_GOOD.replace_all(&sentence, "$1$2$3 passed");
    let sentence = LOOKS_GOOD.replace_all(&sentence, "$1 passed");
    let sentence = WERE_FAILING.replace_all(&sentence, "$1");
    let sentence = REPAIRED_TEST.replace_all(&sentence, "$1");
    let complains =
        |found: &regex::Captures<'_>| match (1..=3).find_map(|group| found.get(group)).map_or("", |who| who.as_str()) {
            "type" | "typing" => "types clean",
            kind if kind.starts_with("compil") || kind == "build" => "build clean",
            _ => "lint clean",
        };
    let sentence = NO_COMPLAINTS.replace_all(&sentence, complains);
    let good = if MENTIONS_TESTS.is_match(&sentence) { "passes" } else { "now works" };
    let sentence = NO_LONGER.replace_all(&sentence, good);
    ran_each(together(sentence.trim().to_owned()), prose)
}

/// "`a` and `b` pass" as "`a` pass and `b` pass", where that is said to be so.
fn together(mut sentence: String) -> String {
    for _ in 0..LIST_MAX {
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

/// Whether a file is one that is run by its name.
fn is_script(code: &str) -> bool {
    [".sh", ".bash", ".py", ".js", ".rb", ".pl"].iter().any(|end| code.ends_with(end)) && !code.contains(' ')
}

/// "Ran `a` and `b`" as "ran `a` and ran `b`".
fn ran_each(mut sentence: String, prose: &Prose) -> String {
    for _ in 0..LIST_MAX {
        let is_command = |found: &regex::Captures<'_>| {
            let aside = |number: &str| number.parse::<usize>().ok().and_then(|number| prose.aside.get(number));
            let first = aside(found[2].trim_matches(|c: char| !c.is_ascii_digit()));
            let scripts = first.is_some_and(|first| is_script(first));
            aside(&found[3]).is_some_and(|code| !is_path(code) || (scripts && is_script(code)))
        };
        let Some(next) = RAN_LIST.captures(&sentence).filter(is_command).and_then(|found| {
            let whole = found.get(0)?;
            let each = format!("{0} {1} and {0} ⟦m{2}⟧", &found[1], &found[2], &found[3]);
            Some(format!("{}{each}{}", &sentence[..whole.start()], &sentence[whole.end()..]))
        }) else {
            break;
        };
        sentence = next;
    }
    sentence
}
