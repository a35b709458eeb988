//! Claims about files against what calls did to them.

use portcullis_event::facts::{ClaimVerdict as V, VerificationKind as Kind, VerificationVerdict as Verdict};

use super::checked::Checked;
use super::claims::Verb;
use super::facts::{Attempt, Changed, Facts, cut};
use super::judge::Found;
use super::line::Change;
use super::place::{Named, Place};

/// Whether any call has to do with this path.
pub(super) fn is_known(path: &str, facts: &Facts) -> bool {
    let named = Named::new(path, facts.host.as_deref());
    facts.changes.keys().chain(facts.attempts.keys()).any(|place| named.is(place))
}

pub(super) fn file(verb: Verb, path: &str, facts: &Facts) -> Found {
    let named = Named::new(path, facts.host.as_deref());
    let fits = |change: Change| match verb {
        Verb::Created => matches!(change, Change::Created | Change::Wrote),
        Verb::Wrote | Verb::Edited | Verb::Holds => {
            matches!(change, Change::Created | Change::Wrote | Change::Modified)
        }
        Verb::Deleted => matches!(change, Change::Deleted),
        Verb::Renamed => matches!(change, Change::Renamed),
    };
    // What takes it back: a file that is gone, or that is there again.
    let ends = |change: Change| match verb {
        Verb::Created | Verb::Wrote | Verb::Edited | Verb::Holds => change == Change::Deleted,
        Verb::Deleted => matches!(change, Change::Created | Change::Wrote | Change::Modified),
        Verb::Renamed => false,
    };
    let touched = || facts.changes.iter().filter(|(place, _)| named.is(place));
    let mut all: Vec<(&Place, &Changed)> =
        touched().flat_map(|(place, all)| all.iter().map(move |one| (place, one))).collect();
    all.sort_by_key(|(_, one)| one.at);
    if let Some((place, change)) = all.iter().rev().find(|(_, one)| fits(one.change)) {
        let fact = format!("{} {}", happened(change.change), cut(&place.shown()));
        let gone = facts.changes.iter().filter(|(folder, _)| place.is_in(folder)).flat_map(|(_, all)| all);
        let gone = gone.filter(|one| one.change == Change::Deleted);
        let after = all.iter().map(|(_, one)| *one).filter(|one| ends(one.change));
        let after = after.chain(gone.filter(|one| ends(one.change))).find(|one| one.at > change.at);
        return match after {
            Some(later) => {
                let verdict = if verb == Verb::Holds { V::Contradicted } else { V::Unsupported };
                let fact = format!("{fact}, and then {} it", happened(later.change));
                Found(verdict, fact, vec![change.evidence, later.evidence])
            }
            None if change.undone => {
                Found(V::Unsupported, format!("{fact}, and git may have put it back"), vec![change.evidence])
            }
            None => Found(V::Supported, fact, vec![change.evidence]),
        };
    }
    // What ran since may have done what the attempt did not.
    let since = |at: u64| facts.opaque.is_some_and(|opaque| opaque > at);
    let attempt = facts.attempts.iter().find(|(place, _)| named.is(place));
    if let Some((place, Attempt { code, evidence, .. })) = attempt.filter(|(_, attempt)| !since(attempt.at)) {
        return Found(V::Contradicted, format!("a call for {} came to {code}", cut(&place.shown())), vec![*evidence]);
    }
    // A folder that was copied, moved or removed, with whatever lies in it.
    let around = || facts.changes.iter().filter(|(folder, _)| named.lies_in(folder));
    if let Some((place, all)) = touched().next().or_else(|| around().next()) {
        let last =
            all.last().map(|one| format!("{} {}", happened(one.change), cut(&place.shown()))).unwrap_or_default();
        let evidence = all.iter().map(|one| one.evidence).collect();
        return Found(V::Unsupported, format!("{last}; nothing else is known of it"), evidence);
    }
    if facts.opaque.is_some() {
        let fact = "no call says so; commands ran of which it is not known what they touched";
        return Found(V::Unsupported, fact.to_owned(), Vec::new());
    }
    if let Some(check) = facts.checks.iter().find(|check| may_write(check, verb, path)) {
        let fact = format!("no call says so; `{}` may have written it", cut(&check.check.target));
        return Found(V::Unsupported, fact, vec![check.evidence]);
    }
    if let Some((place, all)) = facts.changes.iter().find(|(place, _)| named.may_be(place)) {
        let evidence = all.iter().map(|one| one.evidence).collect();
        return Found(V::Unsupported, format!("what was touched is {}", cut(&place.shown())), evidence);
    }
    Found(V::Contradicted, "no call of this session touched it".to_owned(), Vec::new())
}

/// Whether a check may have left this file: what its words name, what a build makes, reports and lock files. It does not
/// edit what is there.
fn may_write(check: &Checked, verb: Verb, path: &str) -> bool {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let makes = matches!(verb, Verb::Created | Verb::Wrote | Verb::Holds);
    let output = ["dist/", "build/", "out/", "target/", ".next/"].iter().any(|folder| path.starts_with(folder));
    let builds = matches!(check.check.kind, Kind::Build | Kind::Typecheck);
    let locks = name.ends_with(".lock") || name.ends_with("-lock.json") || name == "go.sum" || name == "pnpm-lock.yaml";
    let named = !name.is_empty() && check.check.target.contains(name);
    let report = ["coverage", "htmlcov", "report", "results", "junit", "snap"].iter().any(|word| path.contains(word));
    let ran = check.verdict != Verdict::NotRun;
    let edits = verb == Verb::Edited && (named || (builds && output));
    ran && (locks || edits || (makes && (named || builds || report)))
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
