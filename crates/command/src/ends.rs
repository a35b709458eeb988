//! How each step of a line ended, as far as the line's exit code tells, and whether it surely ran.

use super::steps::{Joined, Step};

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEnd {
    Ok,
    Failed,
    /// It failed, or a step before it did and it never ran: surely no success, and no failure of its own.
    NotOk,
    Unknown,
}

/// What is known of a line beside its words.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineEnd {
    /// What it ended with; `None`: it did not end, or nobody knows how.
    pub exit: Option<i32>,
    /// Its `cd` worked.
    pub moved: bool,
    /// Its shell was started with `-e`.
    pub errexit: bool,
}

/// How each step ended, and whether it surely ran.
#[must_use]
pub fn endings(steps: &[Step], known: LineEnd) -> Vec<(StepEnd, bool)> {
    let starts: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].joined != Joined::Piped).collect();
    let end_of = |nth: usize| starts.get(nth + 1).copied().unwrap_or(steps.len());
    // A pipeline that surely ends well, and so hands on to what hangs on it by `&&`.
    let sure = |nth: usize| (starts[nth]..end_of(nth)).all(|at| trivial(&steps[at], known.moved));
    let mut ended = vec![(StepEnd::Unknown, false); steps.len()];
    for (nth, &start) in starts.iter().enumerate() {
        // Behind `exit`, `exec`, `trap` the line's exit code may be of something else.
        if steps[..start].iter().any(|step| step.argv.first().is_some_and(|word| LEAVES.contains(&word.as_str()))) {
            break;
        }
        let errexit = sets(&steps[..start], 'e', "errexit", known.errexit);
        // Where the list begins that hangs together by `&&` and `||`.
        let list_from = (0..=nth).rev().find(|at| matches!(steps[starts[*at]].joined, Joined::First | Joined::Always));
        let all_before = (0..nth).all(sure);
        let reached = match steps[start].joined {
            Joined::IfOk => (list_from.unwrap_or(0)..nth).all(sure),
            Joined::IfNot => false,
            Joined::First | Joined::Always | Joined::Piped => true,
        };
        // Under `set -e`, and in a line that never ended, anything before it may have been the last.
        let reached = reached && (all_before || (!errexit && known.exit.is_some()));
        let whole = match known.exit {
            Some(exit) => whole(steps, &starts, nth, exit, (reached, errexit), &sure),
            None => StepEnd::Unknown,
        };
        let ran = reached || matches!(whole, StepEnd::Ok | StepEnd::Failed);
        let stages = start..end_of(nth);
        let last = stages.end - 1;
        let pipefail = sets(&steps[..start], '\0', "pipefail", false);
        for at in stages.clone() {
            // The exit code of a pipeline is that of its last stage.
            let of_stage = if at == last && (!pipefail || whole != StepEnd::Failed || stages.len() == 1) {
                whole
            } else if pipefail {
                let others = stages.clone().all(|other| other == at || passes_on(&steps[other].argv));
                if whole == StepEnd::Ok || others { whole } else { StepEnd::Unknown }
            } else {
                StepEnd::Unknown
            };
            ended[at] = (of_stage, ran);
        }
    }
    ended
}

/// How the `nth` pipeline of a line ended that ended with `exit`.
fn whole(
    steps: &[Step],
    starts: &[usize],
    nth: usize,
    exit: i32,
    (reached, errexit): (bool, bool),
    sure: &impl Fn(usize) -> bool,
) -> StepEnd {
    let start = starts[nth];
    let later = &starts[nth + 1..];
    // What hangs on it by `&&` and `||`, and whether there is anything behind that.
    let list = later.iter().take_while(|at| steps[**at].joined != Joined::Always).count();
    let (list, behind) = later.split_at(list);
    if steps[start].negated {
        return StepEnd::Unknown;
    }
    if exit == 0 {
        let ran = match steps[start].joined {
            Joined::IfNot => false,
            // In `a && b; c` nobody knows of `a`, and so of `b`.
            Joined::IfOk => behind.is_empty(),
            _ => true,
        };
        let counts = behind.is_empty() || (errexit && list.is_empty());
        let all = list.iter().all(|at| steps[*at].joined == Joined::IfOk);
        return if ran && counts && all { StepEnd::Ok } else { StepEnd::Unknown };
    }
    let decides = (nth + 1..starts.len()).all(|at| steps[starts[at]].joined == Joined::IfOk && sure(at));
    // `a || b` ends badly only if both do.
    let both = later.len() == 1 && steps[later[0]].joined == Joined::IfNot;
    // `a || b` that failed came to `b`, whatever `a` is.
    let other = steps[start].joined == Joined::IfNot && (!errexit || (0..nth).all(sure));
    match decides || both {
        true if reached || (other && decides) => StepEnd::Failed,
        true => StepEnd::NotOk,
        false => StepEnd::Unknown,
    }
}

/// Builtins behind which the rest of a line may not run, or end it otherwise.
const LEAVES: [&str; 6] = ["exit", "return", "exec", "trap", "alias", "kill"];

/// Whether an option of the shell is on behind these steps: `set -e`, `set -euo pipefail`, and off again with `set +e`.
fn sets(steps: &[Step], letter: char, name: &str, mut on: bool) -> bool {
    for step in steps.iter().filter(|step| step.argv.first().is_some_and(|word| word == "set")) {
        let mut words = step.argv[1..].iter();
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix(['-', '+']).filter(|_| !word.starts_with("--")) else { continue };
            let sets = word.starts_with('-');
            if letters.contains(letter) {
                on = sets;
            }
            if letters.ends_with('o') && words.next().is_some_and(|option| option == name) {
                on = sets;
            }
        }
    }
    on
}

/// Steps that surely end well.
fn trivial(step: &Step, moved: bool) -> bool {
    let name = step.argv.first().map(String::as_str);
    !step.negated
        && match name {
            // The exit code of `A=$(b)` is that of `b`.
            None => !step.assigned.iter().any(|word| word.contains("$(") || word.contains('`')),
            Some("cd") => moved,
            Some("set" | "export" | "true" | ":" | "echo" | "printf" | "pwd" | "unset") => true,
            Some(_) => false,
        }
}

fn passes_on(argv: &[String]) -> bool {
    argv.first().is_some_and(|word| matches!(word.as_str(), "tail" | "head" | "cat" | "tee" | "less" | "more"))
}

#[cfg(test)]
mod tests {
    use super::super::steps::steps;
    use super::*;

    fn last(line: &str, known: LineEnd) -> (StepEnd, bool) {
        let steps = steps(line).expect("flat");
        endings(&steps, known).pop().expect("one step")
    }

    #[test]
    fn l76_a_step_that_may_not_have_been_reached_neither_ran_nor_failed() {
        let came = |line: &str, exit: i32| last(line, LineEnd { exit: Some(exit), ..LineEnd::default() });
        for line in [
            "cd sub && make test",
            "git pull && make test",
            ". ./venv/bin/activate && make test",
            "mkdir docs && make test",
            "A=$(false) && make test",
            "! true && make test",
            "echo a | grep b && make test",
            "set -e; git pull; make test",
        ] {
            assert_eq!(came(line, 1), (StepEnd::NotOk, false), "{line}");
            assert_eq!(came(line, 0), (StepEnd::Ok, true), "{line}");
        }
        for line in ["export A=1 && make test", "git pull; make test", "git pull; echo a && make test"] {
            assert_eq!(came(line, 1), (StepEnd::Failed, true), "{line}");
        }
        let moved = LineEnd { exit: Some(1), moved: true, errexit: false };
        assert_eq!(last("cd sub && make test", moved), (StepEnd::Failed, true));
        let strict = LineEnd { exit: Some(1), moved: false, errexit: true };
        assert_eq!(last("git pull; make test", strict), (StepEnd::NotOk, false));
        assert_eq!(last("set +e; git pull; make test", strict), (StepEnd::Failed, true));
        assert_eq!(came("true || make test", 0), (StepEnd::Unknown, false));
        assert_eq!(came("make lint || make test", 1), (StepEnd::Failed, true));
        assert_eq!(last("git pull; make test", LineEnd::default()), (StepEnd::Unknown, false), "it was stopped");
        assert_eq!(last("make test", LineEnd::default()), (StepEnd::Unknown, true));
    }
}
