//! Claims against facts (tool-contract §24).

use portcullis_base::{Code, ObservationId};
use portcullis_event::facts::{Claim, ClaimVerdict as V, VerificationKind as Kind, VerificationVerdict as Verdict};

use super::claims::{Said, Verb};
use super::facts::{Came, Checked, Command, Facts, cut};
use super::line::{Change, Ended};

/// A verdict with its fact and evidence.
struct Found(V, String, Vec<ObservationId>);

/// What the facts say to a claim.
pub(super) fn judge(said: &Said, facts: &Facts) -> Claim {
    let Found(verdict, fact, evidence) = match said {
        Said::Passes(kind) => passes(*kind, facts),
        Said::Fixed(kind) => fixed(*kind, facts),
        Said::Worded => worded(facts),
        Said::File(verb, path) => file(*verb, path, facts),
        Said::Git(verb) => git(verb, facts),
        Said::RanKind(kind) => ran_kind(*kind, facts),
        Said::Ran(words) => ran(words, false, facts),
        Said::Succeeded(words) => ran(words, true, facts),
        Said::Checks => checks(facts),
        Said::Ci => ci(facts),
        Said::Unknown(_) => Found(V::Unsupported, "no fact of this session is about it".to_owned(), Vec::new()),
    };
    Claim { claim: named(said), verdict, fact, evidence }
}

/// The claim in the runtime's words.
fn named(said: &Said) -> String {
    match said {
        Said::Passes(kind) => good(*kind).to_owned(),
        Said::Fixed(None) | Said::Worded => "fixed".to_owned(),
        Said::Fixed(Some(kind)) => format!("fixed: {}", good(*kind)),
        Said::File(verb, path) => format!("{} {}", done(*verb), cut(path)),
        Said::Git("commit") => "committed".to_owned(),
        Said::Git(_) => "pushed".to_owned(),
        Said::RanKind(kind) => format!("ran the {}", noun(*kind)),
        Said::Ran(words) => format!("ran {}", cut(words)),
        Said::Succeeded(words) => format!("{} succeeded", cut(words)),
        Said::Checks => "checks pass".to_owned(),
        Said::Ci => "CI passes".to_owned(),
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
        Verb::Wrote => "wrote",
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

fn passes(kind: Kind, facts: &Facts) -> Found {
    let all: Vec<&Checked> = facts.checks.iter().filter(|check| speaks(check, kind)).collect();
    // What did not run says nothing, unless nothing else ran since the last change.
    let ran = all.iter().rev().find(|check| check.verdict != Verdict::NotRun);
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
fn checks(facts: &Facts) -> Found {
    let mut worst: Option<Found> = None;
    for (nth, check) in facts.checks.iter().enumerate() {
        let kind = check.check.kind;
        if facts.checks[..nth].iter().any(|before| before.check.kind == kind) {
            continue;
        }
        let Found(verdict, fact, evidence) = passes(kind, facts);
        let ran = |check: &Checked| check.check.kind == kind && check.verdict != Verdict::NotRun;
        // One that was tried and never ran is no failure; nor is it a pass.
        let verdict = if facts.checks.iter().any(ran) { verdict } else { V::Unsupported };
        if worst.as_ref().is_none_or(|worst| weight(verdict) > weight(worst.0)) {
            worst = Some(Found(verdict, fact, evidence));
        }
    }
    worst.unwrap_or_else(|| Found(V::Unsupported, "no check ran in this session".to_owned(), Vec::new()))
}

fn weight(verdict: V) -> u8 {
    match verdict {
        V::Supported => 0,
        V::Unsupported => 1,
        V::Stale => 2,
        V::Contradicted => 3,
    }
}

/// What passes here says nothing about another machine; what fails here fails there. A command that looked at it, or
/// runs what it would run, is evidence.
fn ci(facts: &Facts) -> Found {
    let asks = |command: &&Command| {
        let parts: Vec<&str> = command.words.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        parts.contains(&"ci") || parts.starts_with(&["gh", "pr", "checks"]) || parts.starts_with(&["gh", "run"])
    };
    if let Some(command) = facts.commands.iter().rfind(asks) {
        return match command.ended {
            Ended::Ok => of_command(V::Supported, command),
            Ended::Failed | Ended::NotOk => of_command(V::Contradicted, command),
            Ended::Unknown => of_command(V::Unsupported, command),
        };
    }
    match checks(facts) {
        Found(V::Contradicted, fact, evidence) => Found(V::Contradicted, fact, evidence),
        Found(..) => Found(V::Unsupported, "nothing in this session looked at a CI".to_owned(), Vec::new()),
    }
}

/// A run of other tests whose own report told of failures, and nothing was changed since: they still fail, whatever
/// passed afterwards.
fn standing_failure<'f>(all: &[&'f Checked], last: &Checked, facts: &Facts) -> Option<&'f Checked> {
    all.iter().copied().rev().find(|check| {
        check.reported
            && check.verdict == Verdict::Failed
            && facts.fresh(check)
            && !all.iter().any(|later| later.at > check.at && later.check.target == check.check.target)
            && check.check.target != last.check.target
    })
}

fn of_check(verdict: V, check: &Checked) -> Found {
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
        (_, Came::Ended(exit)) => format!("`{command}` came to no clear result (the line ended with exit code {exit})"),
    };
    Found(verdict, fact, vec![check.evidence])
}

fn fixed(kind: Option<Kind>, facts: &Facts) -> Found {
    let Some((_, edit)) = facts.mutated else {
        return Found(V::Contradicted, "nothing was changed in this session".to_owned(), Vec::new());
    };
    let ran = |kind: Kind| facts.checks.iter().any(|check| check.check.kind == kind);
    let order = [Kind::Tests, Kind::Build, Kind::Typecheck, Kind::Lint, Kind::Service, Kind::FileState, Kind::Custom];
    // Whatever was run to see whether it works decides; tests before all.
    let kind = kind.filter(|kind| facts.checks.iter().any(|check| speaks(check, *kind)));
    match kind.or_else(|| order.into_iter().find(|kind| ran(*kind))) {
        Some(kind) => passes(kind, facts),
        None => Found(V::Unsupported, "something was changed, and nothing verified it".to_owned(), vec![edit]),
    }
}

fn worded(facts: &Facts) -> Found {
    match facts.mutated {
        Some((_, evidence)) => Found(V::Supported, "files were changed".to_owned(), vec![evidence]),
        None => Found(V::Contradicted, "nothing was changed in this session".to_owned(), Vec::new()),
    }
}

fn file(verb: Verb, path: &str, facts: &Facts) -> Found {
    let fits = |change: Change| match verb {
        Verb::Created => matches!(change, Change::Created | Change::Wrote),
        Verb::Wrote => matches!(change, Change::Created | Change::Wrote | Change::Modified),
        Verb::Edited => matches!(change, Change::Created | Change::Wrote | Change::Modified),
        Verb::Deleted => matches!(change, Change::Deleted),
        Verb::Renamed => matches!(change, Change::Renamed),
    };
    let touched = || facts.changes.iter().filter(|(target, _)| same_file(path, target));
    if let Some((target, change)) =
        touched().flat_map(|(target, all)| all.iter().map(move |one| (target, one))).find(|(_, one)| fits(one.change))
    {
        return Found(V::Supported, format!("{} {}", happened(change.change), cut(target)), vec![change.evidence]);
    }
    if let Some((target, (code, evidence))) = facts.attempts.iter().find(|(target, _)| same_file(path, target)) {
        return Found(V::Contradicted, format!("a call for {} came to {code}", cut(target)), vec![*evidence]);
    }
    if let Some((target, all)) = touched().next() {
        let last = all.last().map(|one| format!("{} {}", happened(one.change), cut(target))).unwrap_or_default();
        let evidence = all.iter().map(|one| one.evidence).collect();
        return Found(V::Unsupported, format!("{last}; nothing else is known of it"), evidence);
    }
    if facts.opaque {
        let fact = "no call says so; commands ran of which it is not known what they touched";
        return Found(V::Unsupported, fact.to_owned(), Vec::new());
    }
    Found(V::Contradicted, "no call of this session touched it".to_owned(), Vec::new())
}

fn happened(change: Change) -> &'static str {
    match change {
        Change::Created => "created",
        Change::Modified => "modified",
        Change::Wrote => "wrote",
        Change::Deleted => "deleted",
        Change::Renamed => "renamed",
    }
}

/// Whether a claimed path and a path of a fact are one: by whole components from the end. A command's path may be
/// relative to a folder that the claim names.
fn same_file(claimed: &str, target: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (claimed_parts, target_parts) = (parts(claimed), parts(target));
    if claimed_parts.is_empty() || target_parts.is_empty() {
        return false;
    }
    let under = claimed.ends_with('/') && holds(&target_parts, &claimed_parts);
    target_parts.ends_with(&claimed_parts)
        || (!target.starts_with('/') && claimed_parts.ends_with(&target_parts))
        || under
}

/// Whether a folder is among the folders of a path.
fn holds(path: &[String], folder: &[String]) -> bool {
    path.windows(folder.len()).any(|part| part == folder)
}

fn git(verb: &str, facts: &Facts) -> Found {
    let of = |command: &&Command| command.git.as_deref() == Some(verb);
    let known = |command: &&Command| command.ended == Ended::Ok;
    if let Some(command) = facts.commands.iter().filter(of).find(known) {
        return Found(V::Supported, format!("`{}` succeeded", cut(&command.words)), vec![command.evidence]);
    }
    match facts.commands.iter().rfind(of) {
        Some(command) if command.ended == Ended::Unknown && !matches!(command.came, Came::NotRun(_)) => {
            of_command(V::Unsupported, command)
        }
        Some(command) => of_command(V::Contradicted, command),
        None if facts.opaque => {
            Found(V::Unsupported, format!("no `git {verb}` is among the commands that are known"), Vec::new())
        }
        None => Found(V::Contradicted, format!("no `git {verb}` ran in this session"), Vec::new()),
    }
}

fn ran_kind(kind: Kind, facts: &Facts) -> Found {
    let of = |check: &&Checked| check.check.kind == kind;
    match facts.checks.iter().filter(of).rfind(|check| check.verdict != Verdict::NotRun) {
        Some(check) => {
            let Found(_, fact, evidence) = of_check(V::Supported, check);
            Found(V::Supported, fact, evidence)
        }
        None => match facts.checks.iter().rfind(of) {
            Some(check) => of_check(V::Contradicted, check),
            None if facts.opaque => {
                Found(V::Unsupported, format!("no {} is among the commands that are known", noun(kind)), Vec::new())
            }
            None => Found(V::Contradicted, format!("no {} ran in this session", noun(kind)), Vec::new()),
        },
    }
}

fn ran(words: &str, well: bool, facts: &Facts) -> Found {
    let wanted: Vec<&str> = words.trim_start_matches("$ ").split_whitespace().collect();
    let is = |command: &&Command| {
        let words: Vec<&str> = command.words.split_whitespace().collect();
        // With more arguments than were claimed it is still that command.
        !wanted.is_empty() && (words.starts_with(&wanted) || words.windows(wanted.len()).any(|part| part == wanted))
    };
    let Some(command) = facts.commands.iter().rfind(|command| is(command) && !matches!(command.came, Came::NotRun(_)))
    else {
        return match facts.commands.iter().rfind(is) {
            Some(command) => of_command(V::Contradicted, command),
            None if facts.opaque || wanted.len() > 3 || wanted.contains(&"|") || wanted.contains(&"&&") => {
                Found(V::Unsupported, "it is not among the commands that are known".to_owned(), Vec::new())
            }
            None => Found(V::Contradicted, "no such command ran in this session".to_owned(), Vec::new()),
        };
    };
    match command.ended {
        _ if !well => of_command(V::Supported, command),
        Ended::Ok => of_command(V::Supported, command),
        Ended::Failed | Ended::NotOk => of_command(V::Contradicted, command),
        Ended::Unknown if matches!(command.came, Came::Stopped(_)) => of_command(V::Contradicted, command),
        Ended::Unknown => of_command(V::Unsupported, command),
    }
}

fn of_command(verdict: V, command: &Command) -> Found {
    let words = cut(&command.words);
    let fact = match (&command.came, command.ended) {
        (Came::NotRun(code) | Came::Stopped(code) | Came::Unclear(code), _) => format!("`{words}` came to {code}"),
        (Came::Ended(_), Ended::Ok) => format!("`{words}` succeeded"),
        (Came::Ended(exit), Ended::Failed) => format!("`{words}` ended with exit code {exit}"),
        (Came::Ended(exit), _) => format!("`{words}` was part of a line that ended with exit code {exit}"),
    };
    Found(verdict, fact, vec![command.evidence])
}
