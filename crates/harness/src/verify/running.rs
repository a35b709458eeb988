//! Claims that something ran: "I ran `a`", "re-ran the tests", "successfully executed `a`".

use portcullis_event::facts::VerificationKind;

use super::claims::{MARK, Said, marked, of_command};
use super::clauses::is_so;
use super::deeds::{Carried, Work, is_history, is_own};
use super::outcome::kind_of;
use super::prose::{Prose, pattern};

pattern!(
    pub RAN_KIND,
    r"\b(?:ran|re-?ran|executed|running|re-?running|run)(?: the| all| all the| both| our| its| full| whole| entire| complete)*(?: \w+)? (tests?|test suite|suite|specs?|linter|lints?|build|type ?checker|type ?checks?)\b"
);
pattern!(pub RAN, r"\b(?:ran|re-?ran|executed|running|re-?running|run):? (?:the )?(?:command )?⟦m(\d+)⟧");
// A program that needs no marks to be known: "I ran pytest".
pattern!(
    RAN_BARE,
    r"\b(?:ran|re-?ran|executed) ((?:pytest|jest|vitest|mocha|rspec|tox|eslint|mypy|ruff|make|(?:cargo|npm|yarn|pnpm|go|git|docker|terraform) [a-z-]+))\b"
);
// "I ran sh test.sh", "I ran python3 -m unittest".
pattern!(
    RAN_SCRIPT,
    r"\b(?:ran|re-?ran|executed) ((?:sh|bash|zsh|python3?|node|ruby|perl|php|deno|bun)(?: -m [a-z0-9_.]+| ⟦m\d+⟧))"
);
// "The tests were run", "the complete suite has been executed".
pattern!(
    WERE_RUN,
    r"^(?:and |then |also |so )*((?:all |the |our |its |full |whole |entire |complete |both |of |unit |integration )*)(tests?|test suite|suite|specs?|linter|build|type ?checker)(?: \w+)? (?:was|were|has been|have been)(?: also| then| all| now| successfully)* (?:re-?run|run|executed)\b"
);
pattern!(RAN_NUMBER, r"^(?:i |we )?(?:re-?)?ran (?:all )?(\d{1,9}) tests?$");
pattern!(
    ALL,
    r"\b(?:all(?: of)?(?: the| our| its)?|every|full|whole|entire|complete) (?:tests?|test suite|suite|specs?)$"
);
pattern!(ON, r"^ (?:on|for|against) (?:the )?⟦m(\d+)⟧");
pattern!(OF_SOME, r"^ (?:in|for|of|from|under|on) ");
// What may follow without making another command or another time of it.
pattern!(ALONE, r"^(?:$| (?:again|twice|successfully|cleanly|without|before|after|to)\b)");
// "I installed it with `pip install a`".
pattern!(BY_COMMAND, r"\b(?:with|using|via|by running) ⟦m(\d+)⟧");
/// Programs by which something that was done is known to have been done by a command.
const PROGRAMS: [&str; 16] = [
    "pip", "pip3", "npm", "yarn", "pnpm", "make", "cargo", "go", "docker", "git", "python", "python3", "poetry", "uv",
    "bundle", "apt-get",
];
// "After running `a`", "by running `a`"; not "has been running `a`".
pattern!(GERUND, r"(?:^|\b(?:after|by|when|while|from|then|and|before) ?)$");
// No subject of the passive is looked for.
pattern!(NOTHING, r"^\z.");
pattern!(BY_WHOM, r"\b(?:installed|built|run|executed|migrated|deployed|formatted|compiled|generated)\b");
pattern!(WHATEVER, r".");
// "Ran them after the last edit": the newest state is meant.
pattern!(AT_THE_END, r"\b(?:after (?:the|my) (?:last|final|latest) (?:edit|change)|at the (?:very )?end)\b");
pattern!(WELL_BEFORE, r"\bsuccessfully$");
pattern!(
    WELL_BEHIND,
    r"^(?: command| script| suite)? (?:successfully|cleanly|without (?:any |an |a single )?(?:errors?|issues?|problems?|failures?|trouble))\b"
);
pattern!(HAVE, r"\b(?:i've|we've|have|has been|have been)(?: now| also| already| then| successfully)*$");

fn ran_kind(kind: VerificationKind, all: bool) -> Said {
    if all && kind == VerificationKind::Tests { Said::RanAll(false) } else { Said::RanKind(kind, false) }
}

/// What a clause says to have run.
pub(super) fn runs(clause: &str, carried: Carried, prose: &Prose, said: &mut Vec<Said>) {
    let own = |found: &regex::Match<'_>, objects: &regex::Regex| {
        let work = Work { objects, present: true };
        is_so(clause, found.end()) && is_own(clause, found.start(), found.end(), carried, &work)
    };
    let nobody = &NOTHING;
    let ran = |found: &regex::Match<'_>| {
        let now = found.as_str().contains("running");
        let head = clause[..found.start()].trim_end();
        let gerund = now && carried.tells() && (head.is_empty() || GERUND.is_match(head));
        let have_run = found.as_str().starts_with("run") && !now && !HAVE.is_match(head);
        is_so(clause, found.end()) && !have_run && (gerund || (!now && own(found, nobody)))
    };
    // "Successfully ran `a`", "ran `a` without errors".
    let well = |whole: &regex::Match<'_>| {
        WELL_BEFORE.is_match(clause[..whole.start()].trim_end()) || WELL_BEHIND.is_match(&clause[whole.end()..])
    };
    if let Some(found) = RAN_KIND.captures(clause)
        && let Some(whole) = found.get(0).filter(&ran)
    {
        if well(&whole) {
            said.push(Said::RanKindWell(kind_of(&found[1])));
        }
        let all = ALL.is_match(whole.as_str()) && !OF_SOME.is_match(&clause[whole.end()..]);
        said.push(ran_kind(kind_of(&found[1]), all));
        if AT_THE_END.is_match(clause) {
            said.push(Said::Passes(kind_of(&found[1])));
        }
    }
    if let Some(found) = RAN_BARE.captures(clause)
        && let Some(whole) = found.get(0).filter(|whole| is_so(clause, whole.end()) && own(whole, nobody))
        && (whole.end() == clause.len() || WELL_BEHIND.is_match(&clause[whole.end()..]))
    {
        let well = well(&whole);
        said.push(if well { Said::RanWell(found[1].to_owned()) } else { Said::Ran(found[1].to_owned(), false) });
    }
    said.extend(RAN_NUMBER.captures(clause).and_then(|found| found[1].parse().ok()).map(Said::Counted));
    if let Some(found) = WERE_RUN.captures(clause)
        && let Some(whole) = found.get(0).filter(|whole| is_so(clause, whole.end()) && !is_history(clause))
        && ALONE.is_match(&clause[whole.end()..])
    {
        if whole.as_str().contains("successfully") || WELL_BEHIND.is_match(&clause[whole.end()..]) {
            said.push(Said::RanKindWell(kind_of(&found[2])));
        }
        said.push(ran_kind(kind_of(&found[2]), ALL.is_match(&format!("{}{}", &found[1], &found[2]))));
    }
    if let Some(found) = RAN_SCRIPT.captures(clause)
        && let Some(whole) = found.get(0).filter(|whole| own(whole, nobody))
        && ALONE.is_match(&clause[whole.end()..])
    {
        let words = MARK.replace_all(&found[1], |mark: &regex::Captures<'_>| marked(mark, prose).unwrap_or_default());
        let words = words.into_owned();
        said.push(if well(&whole) { Said::RanWell(words) } else { Said::Ran(words, false) });
    }
    for found in BY_COMMAND.captures_iter(clause) {
        let code = marked(&found, prose).filter(|code| {
            let program = code.split_whitespace().next().unwrap_or_default();
            PROGRAMS.contains(&program) || program.starts_with("./")
        });
        let deed = BY_WHOM.find(clause).filter(|deed| own(deed, &WHATEVER));
        if let (Some(code), Some(_)) = (code, deed) {
            said.push(Said::Ran(code.to_owned(), false));
        }
    }
    for found in RAN.captures_iter(clause) {
        let (Some(whole), Some(code)) = (found.get(0), marked(&found, prose)) else { continue };
        if ran(&whole) && well(&whole) {
            said.push(Said::RanWell(code.to_owned()));
        } else if ran(&whole) {
            // "I ran `pytest` on `a.py`" is `pytest a.py`.
            let on = ON.captures(&clause[whole.end()..]).and_then(|found| marked(&found, prose));
            said.extend(of_command(&on.map_or_else(|| code.to_owned(), |on| format!("{code} {on}")), false, false));
        }
    }
}
