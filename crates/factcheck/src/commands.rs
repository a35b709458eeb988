//! Claims about commands: that one ran, that it ended well, what git did, what was installed.

use portcullis_command::{CommandChanges, StepEnd, check_of, is_meant, normal};
use portcullis_event::facts::ClaimVerdict::{self, Contradicted, Stale, Supported, Unsupported};
use portcullis_event::facts::VerificationVerdict as Verdict;

use crate::facts::{CallEnd, cut};
use crate::history::{CommandRun, History};
use crate::judge::{Ruling, told};
use crate::words::has;

pub fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A command ran; `well`: it ended well, the last time. A check that ran and failed proves little where nobody tells it.
pub fn ran(words: &str, well: bool, tells: bool, history: &History) -> Ruling {
    let wanted = normal(&words_of(words.trim_start_matches("$ ")));
    let runs = || history.runs.iter().filter(|run| is_meant(&wanted, &normal(&run.argv)));
    // "I ran `pytest`" is not said of `pytest test_a.py`.
    let picks = |run: &CommandRun| {
        let more = |word: &String| !word.starts_with('-') && !wanted.contains(word);
        check_of(&run.argv).is_some_and(|check| check.narrow) && normal(&run.argv).iter().any(more)
    };
    let began = || runs().rfind(|run| !matches!(run.end, CallEnd::NotRun(_)));
    let surely = runs().rfind(|run| run.ran && !picks(run)).or_else(|| runs().rfind(|run| run.ran));
    let Some(run) = surely.filter(|_| !well).or_else(began) else {
        return never(runs().next_back(), history, wanted.len() > 3);
    };
    let failed = run.step == StepEnd::Failed || matches!(run.end, CallEnd::Stopped(_));
    let untold = failed && !tells && check_of(&run.argv).is_some();
    let verdict = match well {
        true if run.step == StepEnd::Ok => Supported,
        true if failed => Contradicted,
        false if run.ran && !untold && !picks(run) => Supported,
        _ => Unsupported,
    };
    of_run(verdict, run)
}

/// A command that was refused, or that nobody tried.
pub fn never(refused: Option<&CommandRun>, history: &History, unsure: bool) -> Ruling {
    const NOT_SHOWN: &str = "no recorded command shows it, and a command may not show all that it ran";
    match refused {
        Some(run) => of_run(Contradicted, run),
        None if history.opaque.is_some() || unsure => Ruling::bare(Unsupported, NOT_SHOWN),
        None => Ruling::bare(Contradicted, "no such command ran in this session"),
    }
}

fn of_run(verdict: ClaimVerdict, run: &CommandRun) -> Ruling {
    let words = run.argv.join(" ");
    let fact = match run.step {
        StepEnd::Ok => format!("`{}` succeeded", cut(&words)),
        StepEnd::Failed => told(&words, Verdict::Failed, &run.end),
        StepEnd::NotOk | StepEnd::Unknown => told(&words, Verdict::Inconclusive, &run.end),
    };
    Ruling(verdict, fact, vec![run.evidence])
}

/// Commands of a sort: one that ended well supports, one that failed or never ran contradicts.
fn of_sort(history: &History, is: &dyn Fn(&CommandRun) -> bool) -> Ruling {
    let all = || history.runs.iter().filter(|run| is(run));
    match all().rfind(|run| run.step == StepEnd::Ok).or_else(|| all().next_back()) {
        Some(run) if run.step == StepEnd::Ok => of_run(Supported, run),
        Some(run) if run.step == StepEnd::Unknown && !matches!(run.end, CallEnd::NotRun(_)) => of_run(Unsupported, run),
        refused => never(refused, history, false),
    }
}

/// What git is said to have done; with `all`, nothing is left that it was not done to.
pub fn git(verb: &str, all: bool, history: &History) -> Ruling {
    let name = if verb == "pushed" { "push" } else { "commit" };
    let of = |run: &CommandRun| run.changes == CommandChanges::Git(name.to_owned());
    let found = of_sort(history, &of);
    let Some(run) = history.runs.iter().rfind(|run| of(run) && run.step == StepEnd::Ok) else { return found };
    let back = |one: &&CommandRun| matches!(one.changes, CommandChanges::Uncommits(_)) && one.step != StepEnd::Failed;
    if let Some(back) = history.runs.iter().filter(|one| one.at > run.at).find(back).filter(|_| name == "commit") {
        return Ruling(Unsupported, format!("{}, and then `{}` ran", found.1, cut(&back.argv.join(" "))), found.2);
    }
    // What was changed since is in no commit.
    let only_since = history.first_mutated.is_none_or(|first| first > run.at);
    match history.mutated.filter(|(at, _)| *at > run.at && (all || only_since)) {
        Some(_) => Ruling(Stale, found.1 + ", and then something was changed", found.2),
        None => found,
    }
}

/// Something was installed, by a command that installs; `what` is among its words.
pub fn installed(what: Option<&str>, history: &History) -> Ruling {
    of_sort(history, &|run| {
        let verb = run.argv.iter().any(|word| has("install add ci i sync", word));
        verb && what.is_none_or(|what| run.argv.iter().any(|word| word.contains(what)) || run.argv.len() < 3)
    })
}
