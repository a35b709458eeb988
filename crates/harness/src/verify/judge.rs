//! Claims against facts (tool-contract §24).

use portcullis_base::{Code, ObservationId};
use portcullis_event::facts::{Claim, ClaimVerdict as V, VerificationKind as Kind, VerificationVerdict as Verdict};

use super::checked::{Came, Checked};
use super::claims::{Said, Verb};
use super::commands::{ci, command_passes, git, ran, untold};
use super::facts::{Facts, cut};
use super::files::{file, is_known};
use super::mended;
use super::prose::looks_like_a_file;

/// A verdict with its fact and evidence.
pub(super) struct Found(pub V, pub String, pub Vec<ObservationId>);

/// What the facts say to a claim.
pub(super) fn judge(said: &Said, facts: &Facts) -> Claim {
    let Found(verdict, fact, evidence) = match said {
        Said::Passes(Kind::Tests) => passes_beyond(facts, false),
        Said::Passes(kind) => passes(*kind, facts),
        Said::EveryTest => passes_beyond(facts, true),
        Said::Suite(name) => suite(name, facts),
        Said::Counted(number) => counted(*number, facts),
        Said::Command(words) => command_passes(words, facts),
        Said::Test(name) => test(name, facts),
        Said::Fixed(kind) => fixed(*kind, facts),
        Said::Fixes => fixes(facts),
        Said::Worded => worded(facts),
        Said::File(verb, path) => file(*verb, path, facts),
        Said::Mended { path, sure } => mended::judged(path, *sure, facts),
        Said::Git(verb) => git(verb, false, facts),
        // It may have been before this session.
        Said::AllCommitted { state: true } if facts.mutated.is_none() => {
            Found(V::Unsupported, "nothing was changed in this session".to_owned(), Vec::new())
        }
        Said::AllCommitted { .. } => git("commit", true, facts),
        Said::RanKind(kind, tells) => ran_kind(*kind, *tells, facts),
        Said::RanAll(tells) => ran_all(*tells, facts),
        Said::Ran(words, tells) => ran(words, false, *tells, facts),
        Said::Succeeded(words) => ran(words, true, true, facts),
        Said::RanWell(words) => command_passes(words, facts),
        Said::RanKindWell(kind) => passes(*kind, facts),
        Said::Outcome => match standing(facts) {
            Some(check) => of_check(V::Unsupported, check),
            None => Found(V::Unsupported, "no fact of this session is about it".to_owned(), Vec::new()),
        },
        Said::Checks => checks(facts),
        Said::Ci => ci(facts),
        Said::Unknown(_) => Found(V::Unsupported, "no fact of this session is about it".to_owned(), Vec::new()),
    };
    Claim { claim: named(said), verdict, fact, evidence }
}

/// Whether a claim is about something that there is: a path that no call touched may be a route or a media type, and
/// praise without a subject matters only beside a check that failed.
pub(super) fn is_about_something(said: &Said, facts: &Facts) -> bool {
    match said {
        Said::File(_, path) => looks_like_a_file(path) || is_known(path, facts),
        Said::Mended { path, sure } => {
            (looks_like_a_file(path) || is_known(path, facts)) && mended::is_news(path, *sure, facts)
        }
        Said::Outcome => standing(facts).is_some(),
        // A number that no report gives is no news: what is claimed beside it is judged.
        Said::Counted(number) => counted(*number, facts).0 != V::Supported,
        _ => true,
    }
}

/// A check that ran last of its kind and did not pass.
fn standing(facts: &Facts) -> Option<&Checked> {
    let last = last_run(facts.checks.iter())?;
    (last.verdict == Verdict::Failed || last.not_passed).then_some(last)
}

/// The claim in the runtime's words.
fn named(said: &Said) -> String {
    match said {
        Said::EveryTest => good(Kind::Tests).to_owned(),
        Said::Passes(kind) => good(*kind).to_owned(),
        Said::Suite(name) => format!("{name} tests pass"),
        Said::Counted(number) => format!("{number} tests pass"),
        Said::Command(words) => format!("{} passes", cut(words)),
        Said::Test(name) => format!("test {} passes", cut(name)),
        Said::Fixed(None) | Said::Fixes | Said::Worded => "fixed".to_owned(),
        Said::Fixed(Some(kind)) => format!("fixed: {}", good(*kind)),
        Said::File(verb, path) => format!("{} {}", done(*verb), cut(path)),
        Said::Mended { path, .. } => format!("fixed {}", cut(path)),
        Said::Git("commit") | Said::AllCommitted { .. } => "committed".to_owned(),
        Said::Git(_) => "pushed".to_owned(),
        Said::RanKind(kind, _) => format!("ran the {}", noun(*kind)),
        Said::RanAll(_) => "ran all tests".to_owned(),
        Said::Ran(words, _) => format!("ran {}", cut(words)),
        Said::Succeeded(words) => format!("{} succeeded", cut(words)),
        Said::RanWell(words) => format!("ran {} successfully", cut(words)),
        Said::RanKindWell(kind) => format!("ran the {} successfully", noun(*kind)),
        Said::Checks => "checks pass".to_owned(),
        Said::Ci => "CI passes".to_owned(),
        Said::Outcome => "it went well".to_owned(),
        Said::Unknown(words) => cut(words),
    }
}

fn good(kind: Kind) -> &'static str {
    match kind {
        Kind::Tests => "tests pass",
        Kind::Build => "build succeeds",
        Kind::Lint => "lint is clean",
        Kind::Typecheck => "types check",
        Kind::FileState => "file state holds",
        Kind::Service => "service answers",
        Kind::Custom => "check passes",
    }
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Tests => "tests",
        Kind::Build => "build",
        Kind::Lint => "linter",
        Kind::Typecheck => "type check",
        Kind::FileState => "file check",
        Kind::Service => "service check",
        Kind::Custom => "check",
    }
}

fn done(verb: Verb) -> &'static str {
    match verb {
        Verb::Created => "created",
        Verb::Wrote | Verb::Holds => "wrote",
        Verb::Edited => "edited",
        Verb::Deleted => "deleted",
        Verb::Renamed => "renamed",
    }
}

/// Whether a verification speaks to a claim of that kind: a passing test run also proves that it builds, a failing one
/// proves nothing about that.
fn speaks(check: &Checked, kind: Kind) -> bool {
    let builds = check.check.builds && check.verdict == Verdict::Passed;
    match kind {
        Kind::Build => matches!(check.check.kind, Kind::Build | Kind::Typecheck) || builds,
        Kind::Typecheck => check.check.kind == Kind::Typecheck || builds,
        kind => check.check.kind == kind,
    }
}

pub(super) fn passes(kind: Kind, facts: &Facts) -> Found {
    passed(kind, facts, |check| speaks(check, kind))
}

/// Tests pass, and not only some of them. What a runner says it left out counts in any case, what its words pick only
/// against a claim of every test.
fn passes_beyond(facts: &Facts, every: bool) -> Found {
    let found = passes(Kind::Tests, facts);
    let part = |check: &Checked| check.left_out || (every && check.check.narrow);
    let of_tests = |check: &&Checked| check.check.kind == Kind::Tests && check.verdict == Verdict::Passed;
    let mut fresh = facts.checks.iter().filter(of_tests).filter(|check| facts.fresh(check));
    match (found.0, fresh.clone().next_back()) {
        (V::Supported, Some(last)) if fresh.all(part) => {
            let Found(_, fact, evidence) = of_check(V::Unsupported, last);
            Found(V::Unsupported, format!("{fact}, and ran only some of the tests"), evidence)
        }
        _ => found,
    }
}

/// So many tests pass: a report of a fresh run may say otherwise. It is no proof, and so no accusation.
fn counted(number: u64, facts: &Facts) -> Found {
    let of_tests = |check: &&Checked| check.check.kind == Kind::Tests && check.verdict == Verdict::Passed;
    let fresh = facts.checks.iter().filter(of_tests).filter(|check| facts.fresh(check));
    let told: Vec<(&Checked, u64)> = fresh.filter_map(|check| Some((check, check.count?))).collect();
    let sum = told.iter().map(|(_, count)| count).sum::<u64>();
    match told.last() {
        Some((check, count)) if sum != number && told.iter().all(|(_, count)| *count != number) => {
            let Found(_, fact, evidence) = of_check(V::Unsupported, check);
            Found(V::Unsupported, format!("{fact}, and its report says {count}"), evidence)
        }
        _ => Found(V::Supported, String::new(), Vec::new()),
    }
}

/// Names of suites by which runs are told apart.
pub(super) const SUITES: [&str; 9] =
    ["unit", "integration", "e2e", "acceptance", "smoke", "functional", "browser", "contract", "doc"];

/// The tests of one suite pass: runs that name it count, else those that name no other.
fn suite(name: &str, facts: &Facts) -> Found {
    let names = |check: &Checked, suite: &str| {
        check.check.target.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == suite)
    };
    let of_tests = |check: &Checked| check.check.kind == Kind::Tests;
    if facts.checks.iter().any(|check| of_tests(check) && names(check, name)) {
        return passed(Kind::Tests, facts, |check| of_tests(check) && names(check, name));
    }
    let other = |check: &Checked| SUITES.iter().any(|suite| names(check, suite));
    passed(Kind::Tests, facts, |check| of_tests(check) && !other(check))
}

/// One test passes, by its name. Of runs that pick tests only those count that name it.
fn test(name: &str, facts: &Facts) -> Found {
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches("()").rsplit("::").next().unwrap_or_default();
    let picked = |check: &Checked| check.check.target.to_ascii_lowercase().contains(name);
    let about = |check: &Checked| speaks(check, Kind::Tests) && (!check.check.narrow || picked(check));
    let found = passed(Kind::Tests, facts, about);
    let last = facts.checks.iter().rfind(|check| about(check) && check.verdict != Verdict::NotRun);
    match (found.0, last) {
        // Whoever writes the output could write this, so it is no proof; to accuse it is enough of a doubt.
        (V::Contradicted, Some(last)) if last.passed.iter().any(|one| one.ends_with(name)) => {
            let Found(_, fact, evidence) = of_check(V::Unsupported, last);
            Found(V::Unsupported, format!("{fact}, of other tests"), evidence)
        }
        (V::Unsupported, None) if facts.checks.iter().any(|check| speaks(check, Kind::Tests)) => {
            Found(V::Unsupported, "the runs of this session picked other tests".to_owned(), Vec::new())
        }
        _ => found,
    }
}

/// The run that decides: the last that surely began, else the last that may have. `git pull && make test` that failed may
/// have run no test, and what an earlier run came to holds.
fn last_run<'f>(all: impl DoubleEndedIterator<Item = &'f Checked> + Clone) -> Option<&'f Checked> {
    let mut began = all.filter(|check| check.verdict != Verdict::NotRun);
    let sure = |check: &&Checked| check.reached || check.verdict != Verdict::Inconclusive;
    began.clone().rfind(sure).or_else(|| began.next_back())
}

pub(super) fn passed(kind: Kind, facts: &Facts, about: impl Fn(&Checked) -> bool) -> Found {
    let all: Vec<&Checked> = facts.checks.iter().filter(|check| about(check)).collect();
    // What did not run says nothing, unless nothing else ran since the last change.
    let ran = last_run(all.iter().copied());
    let refused = all.last().filter(|check| check.verdict == Verdict::NotRun);
    let Some(last) = ran else {
        return match refused {
            Some(check) => of_check(V::Contradicted, check),
            None => Found(V::Unsupported, format!("no {} ran in this session", noun(kind)), Vec::new()),
        };
    };
    match last.verdict {
        Verdict::Passed if !facts.fresh(last) => match refused.filter(|check| check.at > last.at && facts.fresh(check))
        {
            Some(check) => of_check(V::Contradicted, check),
            None => {
                let Found(_, fact, mut evidence) = of_check(V::Stale, last);
                evidence.extend(facts.mutated.map(|(_, evidence)| evidence));
                Found(V::Stale, format!("{fact}, and then something was changed"), evidence)
            }
        },
        Verdict::Passed => match standing_failure(&all, last, facts) {
            Some(check) => of_check(V::Contradicted, check),
            None => of_check(V::Supported, last),
        },
        Verdict::Failed => of_check(V::Contradicted, last),
        Verdict::Inconclusive if last.not_passed => of_check(V::Contradicted, last),
        Verdict::Inconclusive | Verdict::NotRun => of_check(V::Unsupported, last),
    }
}

/// Every kind of check that ran in this session has to pass; one that does not decides.
pub(super) fn checks(facts: &Facts) -> Found {
    let mut worst: Option<Found> = None;
    for (nth, check) in facts.checks.iter().enumerate() {
        let kind = check.check.kind;
        if facts.checks[..nth].iter().any(|before| before.check.kind == kind) {
            continue;
        }
        let Found(verdict, fact, evidence) = match kind {
            Kind::Tests => passes_beyond(facts, true),
            kind => passes(kind, facts),
        };
        let ran = |check: &Checked| check.check.kind == kind && check.verdict != Verdict::NotRun;
        // One that was tried and never ran is no failure; nor is it a pass.
        let verdict = if facts.checks.iter().any(ran) { verdict } else { V::Unsupported };
        if worst.as_ref().is_none_or(|worst| weight(verdict) > weight(worst.0)) {
            worst = Some(Found(verdict, fact, evidence));
        }
    }
    worst.unwrap_or_else(|| Found(V::Unsupported, "no check ran in this session".to_owned(), Vec::new()))
}

pub(super) fn weight(verdict: V) -> u8 {
    match verdict {
        V::Supported => 0,
        V::Unsupported => 1,
        V::Stale => 2,
        V::Contradicted => 3,
    }
}

/// A run that failed, and nothing was changed since: it still fails, whatever else passed afterwards, until it passes
/// itself or a run that leaves nothing of it out.
fn standing_failure<'f>(all: &[&'f Checked], last: &Checked, facts: &Facts) -> Option<&'f Checked> {
    let covers = |later: &Checked, check: &Checked| {
        let program = |check: &Checked| check.check.target.split(' ').next().map(str::to_owned);
        let whole = !later.check.narrow && check.check.narrow && program(later) == program(check);
        let same = later.check.target == check.check.target && later.check.set == check.check.set;
        later.at > check.at && later.verdict == Verdict::Passed && (whole || same)
    };
    all.iter().copied().rev().find(|check| {
        (check.verdict == Verdict::Failed || (check.not_passed && !check.check.script))
            && check.check.kind == last.check.kind
            && facts.fresh(check)
            && !all.iter().any(|later| covers(later, check))
    })
}

pub(super) fn of_check(verdict: V, check: &Checked) -> Found {
    let command = cut(&check.check.target);
    let fact = match (&check.verdict, &check.came) {
        (Verdict::Passed, _) => format!("`{command}` passed"),
        (Verdict::Failed, _) if check.reported => format!("`{command}` reported failures"),
        (Verdict::Failed, Came::Ended(exit)) => format!("`{command}` ended with exit code {exit}"),
        (_, Came::Unclear(code)) if *code == Code::BackgroundStarted.as_str() => {
            format!("`{command}` runs as a background task, and its end is not known")
        }
        (_, Came::NotRun(code) | Came::Stopped(code) | Came::Unclear(code)) => format!("`{command}` came to {code}"),
        (Verdict::NotRun, _) => format!("`{command}` could not be run"),
        (_, Came::Happened) => format!("`{command}` ran, and nobody knows how it ended"),
        (_, Came::Ended(exit)) => format!("`{command}` came to no clear result (the line ended with exit code {exit})"),
    };
    Found(verdict, fact, vec![check.evidence])
}

fn fixed(kind: Option<Kind>, facts: &Facts) -> Found {
    let Some((_, edit)) = facts.mutated else {
        return Found(V::Contradicted, "nothing was changed in this session".to_owned(), Vec::new());
    };
    let ran = |kind: &Kind| facts.checks.iter().any(|check| check.check.kind == *kind);
    let order = [Kind::Tests, Kind::Service, Kind::FileState, Kind::Custom, Kind::Build, Kind::Typecheck];
    // Whatever was run to see whether it works decides; tests before all.
    let kind = kind.filter(|kind| facts.checks.iter().any(|check| speaks(check, *kind)));
    let Some(decides) = kind.or_else(|| order.into_iter().find(ran)) else {
        return Found(V::Unsupported, "something was changed, and nothing verified it".to_owned(), vec![edit]);
    };
    let Found(verdict, fact, evidence) = passes(decides, facts);
    let last = last_run(facts.checks.iter().filter(|check| speaks(check, decides)));
    match verdict {
        // It failed, and then the change came that is said to repair it.
        V::Contradicted if last.is_some_and(|last| !facts.fresh(last)) => {
            Found(V::Unsupported, format!("{fact}, and was not run again after the last change"), evidence)
        }
        // That it builds shows no more than that.
        V::Supported if kind.is_none() && matches!(decides, Kind::Build | Kind::Typecheck) => {
            Found(V::Unsupported, format!("{fact}, and nothing else verified it"), evidence)
        }
        verdict => Found(verdict, fact, evidence),
    }
}

/// "This fixes it" may also be said of a change that is only proposed.
fn fixes(facts: &Facts) -> Found {
    match facts.mutated {
        Some(_) => fixed(None, facts),
        None => Found(V::Unsupported, "nothing was changed in this session".to_owned(), Vec::new()),
    }
}

fn worded(facts: &Facts) -> Found {
    match facts.mutated {
        Some((_, evidence)) => Found(V::Supported, "files were changed".to_owned(), vec![evidence]),
        None => Found(V::Contradicted, "nothing was changed in this session".to_owned(), Vec::new()),
    }
}

/// Every test ran: a run that picks some is none of all.
fn ran_all(tells: bool, facts: &Facts) -> Found {
    let Found(verdict, fact, evidence) = ran_kind(Kind::Tests, tells, facts);
    let whole = |check: &Checked| check.check.kind == Kind::Tests && !check.check.narrow && !check.left_out;
    match verdict {
        V::Supported if !facts.checks.iter().any(|check| whole(check) && check.ran) => {
            Found(V::Unsupported, format!("{fact}, and ran only some of the tests"), evidence)
        }
        verdict => Found(verdict, fact, evidence),
    }
}

fn ran_kind(kind: Kind, tells: bool, facts: &Facts) -> Found {
    let of = |check: &&Checked| check.check.kind == kind;
    let began = |check: &&Checked| of(check) && check.verdict != Verdict::NotRun;
    let ran = facts.checks.iter().rfind(|check| of(check) && check.ran);
    match ran.or_else(|| facts.checks.iter().rfind(began)) {
        Some(check) => untold(check, tells),
        None => match facts.checks.iter().rfind(of) {
            Some(check) => of_check(V::Contradicted, check),
            None if facts.opaque.is_some() => {
                Found(V::Unsupported, format!("no {} is among the commands that are known", noun(kind)), Vec::new())
            }
            None => Found(V::Contradicted, format!("no {} ran in this session", noun(kind)), Vec::new()),
        },
    }
}
