//! How it went, in words that name no test: "I ran `a`, all good", "verified with `a`", "works now". Such words are a claim
//! that the check passed which they are about; where they are about none, they only keep an answer from being supported
//! beside a check that failed ([`Said::Outcome`]).

use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use super::claims::{Said, marked, of_command};
use super::clauses::{clauses, is_condition, is_so, is_so_now};
use super::prose::{Prose, pattern};
use super::running::{RAN, RAN_KIND};

// "I ran `a` and it printed ok": that it ran is said with how it went.
pattern!(
    WENT,
    r"^(?:and |which |it |that |all |everything |result: |results?: |outcome: |they |there (?:are|were) )*(?:now |also |then |has |have |is |was |came |came back |comes back |ran |runs |finished |looks |looked |went |all )*(?:passes|passed|pass|passing|ok|green|good|all good|fine|great|well|clean|cleanly|success(?:ful|fully)?|succeeds?|succeeded|works?|worked|as expected|(?:printed|prints|reported|reports|got|outputs?|says|said) (?:⟦m\d+⟧ )?(?:ok|pass|passed|success)|(?:returns?|returned|exits?|exited)(?: with)?(?: code| status)? (?:0|zero)|exit code 0|no (?:issues?|problems?|regressions?|errors?|failures?)(?: found| left)?|finished fine|got the expected (?:results?|output)|went through|without (?:errors?|issues?))(?: now| cleanly| again| too| found)?(?:$|[ .,!])"
);
// "Verified with `a`", "confirmed the fix by running the tests".
pattern!(
    VERIFIED,
    r"\b(?:verified|confirmed|validated|tested|double-checked)\b(?: \w+| ⟦m\d+⟧){0,4}? (?:with|by|using|via|by running|against|running|in)(?: the| an?| another| second| final| fresh)* (?:⟦m(\d+)⟧|(?:tests?|test suite|suite|test run)\b)|\b(?:i |we )?ran (?:⟦m(\d+)⟧|the tests?|the (?:test )?suite) to (?:confirm|verify|prove|make sure)\b"
);
pattern!(
    OUTCOME_TESTED,
    r"^(?:i )?(?:tested|verified)(?: it| this)?$|^(?:it |everything |the code |all )?(?:works|working)$|^(?:it's|it is) green$|^every assertion holds(?: now)?$|\bexit code(?: of \S+)?:? 0\b|\bpass rate is 100 ?%|\btest suite 100 ?%|\b(?:verification|validation):? (?:passed|passes|ok|successful|succeeded)\b|^passed verified$|\bred(?: to|:) green\b|^after: (?:1 )?pass(?:ed)?\b|\b(?:back to|fully) (?:green|passing)\b"
);
// Praise, in words that the table does not know.
pattern!(
    PRAISE,
    r"\b(?:verified|validated|confirmed|success(?:ful|fully)?|works|working|green|passes|passing|passed|resolved|resolves|solved|solves|fixes|fixing|to fix|correct(?:ly)?|100 ?%|ok|all good)\b"
);

pattern!(
    ENDED_WELL,
    r"\b(?:succe(?:ss|ed)\w*|(?:exits?|exited|returns?|returned)(?: with)?(?: code| status)? (?:0|zero)|exit code 0)\b"
);

/// Whether a sentence praises, and takes nothing of it back.
pub(super) fn is_praise(sentence: &str) -> bool {
    let said = clauses(sentence).take_while(|clause| !is_condition(clause));
    said.into_iter().any(|clause| PRAISE.find(clause).is_some_and(|found| is_so(clause, found.end())))
}

/// What is said to have run, and here to have gone well; also behind a colon: "Ran `a`: all good".
pub(super) fn went_well(clause: &str, ran: Option<&Said>, prose: &Prose) -> Option<Said> {
    let clause = clause.trim_start_matches(['—', '–', '-', ' ']);
    // Of what checks nothing, "all good" may be said of what it showed.
    let well = |part: &str, run: &Said| {
        WENT.find(part).is_some_and(|found| is_so_now(part, found.end()))
            && (!matches!(run, Said::RanWell(_)) || ENDED_WELL.is_match(part))
    };
    if let Some(run) = ran.filter(|run| well(clause, run)) {
        return Some(run.clone());
    }
    let (label, rest) = clause.split_once(": ")?;
    let run = ran_in(label, prose).or_else(|| ran.cloned())?;
    well(rest, &run).then_some(run)
}

/// The check that a clause says to have run, as the claim that it passed.
pub(super) fn ran_in(clause: &str, prose: &Prose) -> Option<Said> {
    if let Some(found) = RAN.captures_iter(clause).last() {
        let code = marked(&found, prose)?;
        return match of_command(code, true, false) {
            Some(check @ Said::Command(_)) => Some(check),
            _ => Some(Said::RanWell(code.to_owned())),
        };
    }
    let found = RAN_KIND.captures(clause)?;
    Some(Said::Passes(kind_of(&found[1])))
}

pub(super) fn kind_of(word: &str) -> VerificationKind {
    match word {
        "build" => Build,
        word if word.starts_with("lint") => Lint,
        word if word.starts_with("type") => Typecheck,
        _ => Tests,
    }
}

/// What a clause says to have verified.
pub(super) fn verified(clause: &str, prose: &Prose) -> Vec<Said> {
    let mut said = Vec::new();
    let so = |found: regex::Match<'_>| is_so_now(clause, found.end());
    for found in VERIFIED.captures_iter(clause) {
        let code = found.get(1).or_else(|| found.get(2)).and_then(|number| number.as_str().parse::<usize>().ok());
        let code = code.and_then(|number| prose.aside.get(number));
        if found.get(0).is_some_and(so) {
            match code {
                Some(code) => said.extend(of_command(code, true, false).filter(|one| matches!(one, Said::Command(_)))),
                None => said.push(Said::Passes(Tests)),
            }
        }
    }
    if OUTCOME_TESTED.find(clause).is_some_and(so) {
        said.push(Said::Fixes);
    }
    said
}
