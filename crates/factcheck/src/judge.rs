//! Claims against facts (tool-contract §24).

use portcullis_base::ObservationId;
use portcullis_command::{is_meant, normal};
use portcullis_event::facts::ClaimVerdict::{self, Contradicted, Stale, Supported, Unsupported};
use portcullis_event::facts::{Claim, VerificationKind as Kind, VerificationVerdict as Verdict};

use crate::claims::{AnswerText, CheckSubject, ClaimText, FileDeed, kind_of_command};
use crate::commands::{git, installed, never, ran, words_of};
use crate::facts::{CallEnd, cut};
use crate::files::{file, is_of_workspace};
use crate::history::{CheckRun, History};
use crate::words::{SUITES, has};

type IsCheck<'a> = &'a dyn Fn(&CheckRun) -> bool;

/// A verdict with its fact and evidence.
pub struct Ruling(pub ClaimVerdict, pub String, pub Vec<ObservationId>);

impl Ruling {
    pub fn bare(verdict: ClaimVerdict, fact: &str) -> Self {
        Self(verdict, fact.to_owned(), Vec::new())
    }

    /// Nothing is proved where `lack` holds, and why.
    fn lacks(self, lack: bool, why: &str) -> Self {
        if lack && self.0 == Supported { Self(Unsupported, self.1 + why, self.2) } else { self }
    }

    /// Nobody is accused where `doubt` holds, and why.
    pub fn unless(self, doubt: bool, why: &str) -> Self {
        if doubt && self.0 == Contradicted { Self(Unsupported, self.1 + why, self.2) } else { self }
    }
}

/// What the facts say to the claims of an answer.
pub fn judge(text: &AnswerText, history: &History) -> Vec<Claim> {
    let mut out: Vec<Claim> = Vec::new();
    for (claim, Ruling(verdict, fact, evidence)) in text.claims.iter().filter_map(|claim| judged(claim, text, history))
    {
        if !out.iter().any(|one| one.claim == claim && one.verdict == verdict) {
            out.push(Claim { claim, verdict, fact, evidence });
        }
    }
    out
}

/// A claim in the runtime's words and what the facts say to it; none if it is about nothing that there is.
fn judged(claim: &ClaimText, text: &AnswerText, history: &History) -> Option<(String, Ruling)> {
    let others = |is: fn(&ClaimText) -> bool| text.claims.iter().any(is);
    // Who admits a failure is not accused of hiding it.
    let why = ", and the answer says that something fails";
    Some(match claim {
        ClaimText::Passes(subject, every, count) => {
            let name = match subject {
                CheckSubject::Kind(kind) => names(*kind).0.to_owned(),
                CheckSubject::Checks => "checks pass".to_owned(),
                CheckSubject::Ci => "CI passes".to_owned(),
                CheckSubject::Command(what) | CheckSubject::Part(what) => cut(what) + " passes",
            };
            let found = counted(*count, passes(subject, *every, history), history);
            (name, found.unless(text.admits, why))
        }
        ClaimText::Fixed(_, true, _) if others(|one| matches!(one, ClaimText::Fixed(_, false, _))) => None?,
        ClaimText::Fixed(kind, proposed, words) => {
            let name = kind.map_or("fixed".to_owned(), |kind| format!("fixed: {}", names(kind).0));
            (name, fixed(*kind, *proposed, *words, history).unless(text.tells, why))
        }
        ClaimText::File(deed, path) => {
            // A bug may be mended elsewhere than where it shows; words are mended where they stand.
            let words = [".md", ".rst", ".adoc"].iter().any(|end| path.ends_with(end));
            let mended = *deed == FileDeed::Mended && !words;
            let found = file(*deed, path, history).unless(mended, "");
            // That a file was edited is no news beside what else is claimed.
            let news = !mended || (found.0 != Supported && !path.contains("test"));
            let name = format!("{} {}", format!("{deed:?}").to_lowercase().replace("mended", "fixed"), cut(path));
            (name, Some(found).filter(|_| news && is_of_workspace(path, history))?)
        }
        ClaimText::Git(verb, all, state) => {
            let nothing = *state && history.mutated.is_none();
            (verb.to_string(), git(verb, *all, history).unless(nothing, ", and nothing was changed"))
        }
        ClaimText::Ran(words) => (format!("ran {}", cut(words)), ran(words, false, text.tells, history)),
        ClaimText::RanKind(kind, all) => {
            (format!("ran {}", names(*kind).1), ran_kind(*kind, *all, text.tells, history))
        }
        ClaimText::Installed(what) => ("installed".to_owned(), installed(what.as_deref(), history)),
        // Praise without a subject matters only beside a check that failed.
        ClaimText::Praise => {
            let outcome = others(|one| matches!(one, ClaimText::Passes(..) | ClaimText::Fixed(..)));
            let beside = text.claims.len() > 1 && !outcome;
            let bad = last_run(history.checks.iter()).filter(|last| beside && last.is_bad())?;
            ("it went well".to_owned(), of_check(Unsupported, bad))
        }
        ClaimText::Unknown(words) => (cut(words), Ruling::bare(Unsupported, "no fact of this session is about it")),
    })
}

fn names(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tests => ("tests pass", "the tests"),
        Kind::Build => ("build succeeds", "the build"),
        Kind::Lint => ("lint is clean", "the linter"),
        Kind::Typecheck => ("types check", "the type check"),
        Kind::FileState | Kind::Service | Kind::Custom => ("check passes", "the check"),
    }
}

/// Whether a verification speaks to a claim of that kind: a passing test run also proves that it builds, a failing one
/// proves nothing about that.
fn speaks(check: &CheckRun, kind: Kind) -> bool {
    let builds =
        check.command.builds && check.verdict == Verdict::Passed && matches!(kind, Kind::Build | Kind::Typecheck);
    check.command.kind == kind || builds || (kind == Kind::Build && check.command.kind == Kind::Typecheck)
}

fn passes(subject: &CheckSubject, every: bool, history: &History) -> Ruling {
    match subject {
        CheckSubject::Kind(kind) => {
            let part = |check: &CheckRun| check.report.left_out || (every && check.command.narrow);
            passed(*kind, history, &|check| speaks(check, *kind), &part)
        }
        CheckSubject::Checks => checks(history),
        // What passes here says nothing about another machine; what fails here fails there.
        CheckSubject::Ci => checks(history).lacks(true, "; nobody looked at CI"),
        CheckSubject::Command(words) => command(words, history),
        CheckSubject::Part(name) => part(name, history),
    }
}

/// A named command passes: judged by its own runs, whatever others came to.
fn command(words: &str, history: &History) -> Ruling {
    let wanted = normal(&words_of(words));
    let Some(kind) = kind_of_command(words) else { return ran(words, true, true, history) };
    let target = |check: &CheckRun| normal(&words_of(&check.command.target));
    let exact = history.checks.iter().any(|check| target(check) == wanted && check.verdict != Verdict::NotRun);
    let about = |check: &CheckRun| if exact { target(check) == wanted } else { is_meant(&wanted, &target(check)) };
    if !history.checks.iter().any(about) {
        // Never run by that name: what others came to cannot support it.
        return passes(&CheckSubject::Kind(kind), false, history).lacks(true, "; this one is not known");
    }
    passed(kind, history, &about, &|check| check.report.left_out || (check.command.narrow && !exact))
}

/// Some tests pass, by a name. Runs that name them count, else those that pick none and name no other suite.
fn part(name: &str, history: &History) -> Ruling {
    let name = name.to_ascii_lowercase();
    let short = name.trim_end_matches("()").rsplit("::").next().unwrap_or_default();
    let tests = |check: &CheckRun| check.command.kind == Kind::Tests;
    let named = |check: &CheckRun| tests(check) && check.command.target.to_ascii_lowercase().contains(short);
    if history.checks.iter().any(named) {
        return passed(Kind::Tests, history, &named, &|_| false);
    }
    let suite = has(SUITES, &name);
    let other = |check: &CheckRun| check.command.target.split([':', ' ', '-', '/']).any(|word| has(SUITES, word));
    let whole = |check: &CheckRun| tests(check) && !check.command.narrow && !(suite && other(check));
    // A run of everything that failed may have failed elsewhere.
    let found = passed(Kind::Tests, history, &whole, &|check| check.report.left_out);
    found.unless(!suite, ", of all tests").lacks(suite && name != "unit", ", and does not name this suite")
}

/// So many tests pass: a report of a fresh run may say otherwise. It is no proof, and so no accusation.
fn counted(number: Option<u64>, found: Ruling, history: &History) -> Ruling {
    let fresh = history.checks.iter().filter(|check| check.verdict == Verdict::Passed && history.fresh(check));
    let counts: Vec<u64> = fresh.filter_map(|check| check.report.count).collect();
    let fits = |number: u64| counts.is_empty() || counts.iter().sum::<u64>() == number || counts.contains(&number);
    found.lacks(!number.is_none_or(fits), ", and its report counts others")
}

/// The run that decides: the last that surely began, else the last that may have. `git pull && make test` that failed may
/// have run no test, and what an earlier run came to holds.
fn last_run<'h>(all: impl DoubleEndedIterator<Item = &'h CheckRun> + Clone) -> Option<&'h CheckRun> {
    let mut began = all.filter(|check| check.verdict != Verdict::NotRun);
    let sure = |check: &&CheckRun| check.reached || check.verdict != Verdict::Inconclusive;
    began.clone().rfind(sure).or_else(|| began.next_back())
}

/// Checks of a kind pass. `part`: a run that leaves something out of what is claimed.
fn passed(kind: Kind, history: &History, about: IsCheck<'_>, part: IsCheck<'_>) -> Ruling {
    let all: Vec<&CheckRun> = history.checks.iter().filter(|check| about(check)).collect();
    // What did not run says nothing, unless nothing else ran since the last change.
    let refused = all.last().copied().filter(|check| check.verdict == Verdict::NotRun);
    let Some(last) = last_run(all.iter().copied()) else {
        let none = || Ruling::bare(Unsupported, &format!("{} did not run in this session", names(kind).1));
        return refused.map_or_else(none, |check| of_check(Contradicted, check));
    };
    let stale = !history.fresh(last);
    let refused = refused.filter(|check| stale && history.fresh(check));
    let mut passes = all.iter().filter(|check| check.verdict == Verdict::Passed && history.fresh(check));
    let fails = if last.is_bad() { Some(last) } else { standing_failure(&all, last, history) };
    match last.verdict {
        Verdict::Passed => match fails.or(refused) {
            Some(check) => of_check(Contradicted, check),
            None if stale => {
                Ruling(Stale, of_check(Stale, last).1 + ", and then something was changed", vec![last.evidence])
            }
            None => {
                let partly = passes.all(|check| part(check));
                of_check(Supported, last).lacks(partly, ", and ran only some of the tests")
            }
        },
        _ => fails.map_or(of_check(Unsupported, last), |check| of_check(Contradicted, check)),
    }
}

/// Every kind of check that ran in this session has to pass; one that does not decides.
fn checks(history: &History) -> Ruling {
    let kinds = [Kind::Tests, Kind::Build, Kind::Lint, Kind::Typecheck, Kind::Service, Kind::FileState, Kind::Custom];
    let of = |kind: Kind| history.checks.iter().filter(move |check| check.command.kind == kind);
    let found = kinds.into_iter().filter(|kind| of(*kind).next().is_some()).map(|kind| {
        // One that was tried and never ran is no failure; nor is it a pass.
        let never = of(kind).all(|check| check.verdict == Verdict::NotRun);
        passes(&CheckSubject::Kind(kind), true, history).unless(never, "")
    });
    found.max_by_key(|found| found.0).unwrap_or_else(|| Ruling::bare(Unsupported, "no check ran in this session"))
}

/// A run that failed, and nothing was changed since: it still fails, whatever else passed afterwards, until it passes
/// itself or a run that leaves nothing of it out.
fn standing_failure<'h>(all: &[&'h CheckRun], last: &CheckRun, history: &History) -> Option<&'h CheckRun> {
    let program = |check: &CheckRun| check.command.target.split(' ').next().map(str::to_owned);
    let covers = |later: &CheckRun, check: &CheckRun| {
        let whole = !later.command.narrow && check.command.narrow && program(later) == program(check);
        let same = later.command.target == check.command.target && later.command.set == check.command.set;
        later.at > check.at && later.verdict == Verdict::Passed && (whole || same)
    };
    all.iter().copied().rev().find(|check| {
        let stands = check.is_bad() && !(check.not_passed && check.command.script) && history.fresh(check);
        stands && check.command.kind == last.command.kind && !all.iter().any(|later| covers(later, check))
    })
}

pub fn told(command: &str, verdict: Verdict, end: &CallEnd) -> String {
    let came = match (verdict, end) {
        (Verdict::Passed, _) => "passed".to_owned(),
        (Verdict::Failed, CallEnd::Exited(exit)) if *exit != 0 => format!("ended with exit code {exit}"),
        (Verdict::Failed, _) => "reported failures".to_owned(),
        (_, CallEnd::Unclear(code)) if code == "background_started" => "runs as a background task".to_owned(),
        (_, CallEnd::NotRun(code) | CallEnd::Stopped(code) | CallEnd::Unclear(code)) => format!("came to {code}"),
        (Verdict::NotRun, _) => "could not be run".to_owned(),
        (_, CallEnd::Happened) => "ran, and nobody knows how it ended".to_owned(),
        (_, CallEnd::Exited(exit)) => format!("came to no clear result (its line ended with exit code {exit})"),
    };
    format!("`{}` {came}", cut(command))
}

fn of_check(verdict: ClaimVerdict, check: &CheckRun) -> Ruling {
    Ruling(verdict, told(&check.command.target, check.verdict, &check.end), vec![check.evidence])
}

/// A repair needs a change, and a pass after it; one of `words` only the change. "This fixes it" may be a proposal.
fn fixed(kind: Option<Kind>, proposed: bool, words: bool, history: &History) -> Ruling {
    let Some((_, edit)) = history.mutated else {
        let verdict = if proposed { Unsupported } else { Contradicted };
        return Ruling::bare(verdict, "nothing was changed in this session");
    };
    let order = [Kind::Tests, Kind::Service, Kind::FileState, Kind::Custom, Kind::Build, Kind::Typecheck];
    // Whatever was run to see whether it works decides; tests before all.
    let kind = kind.filter(|kind| history.checks.iter().any(|check| speaks(check, *kind)));
    let ran = |kind: &Kind| history.checks.iter().any(|check| check.command.kind == *kind);
    let Some(decides) = kind.or_else(|| order.into_iter().find(ran)).filter(|_| !words) else {
        let verdict = if words { Supported } else { Unsupported };
        return Ruling(verdict, "something was changed".to_owned(), vec![edit]);
    };
    let last = last_run(history.checks.iter().filter(|check| speaks(check, decides)));
    let before = last.is_some_and(|last| !history.fresh(last));
    // That it builds shows no more than that.
    let builds = kind.is_none() && matches!(decides, Kind::Build | Kind::Typecheck);
    let found = passed(decides, history, &|check| speaks(check, decides), &|_| false);
    let found = found.unless(before, ", and was not run again after the last change");
    found.lacks(builds, ", and nothing else verified it")
}

/// A kind of check ran; `all`: a run that picks some is none of all. One that failed proves little where nobody tells it.
fn ran_kind(kind: Kind, all: bool, tells: bool, history: &History) -> Ruling {
    let of = || history.checks.iter().filter(|check| check.command.kind == kind);
    let began = || of().rfind(|check| check.verdict != Verdict::NotRun);
    let Some(check) = of().rfind(|check| check.ran).or_else(began) else {
        return of().next_back().map_or_else(|| never(None, history, false), |check| of_check(Contradicted, check));
    };
    let whole = of().any(|check| check.ran && !check.command.narrow && !check.report.left_out);
    let proved = check.ran && (!check.is_bad() || tells) && (!all || whole);
    of_check(if proved { Supported } else { Unsupported }, check)
}
