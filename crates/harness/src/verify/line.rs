//! What a command line did, step by step, as far as its exit code tells.

use portcullis_policy::command::{Joined, ReadPlan, Step, analyse, steps};

use super::runners::{self, Check};

/// Shells in shells that are looked into.
const DEPTH_MAX: usize = 3;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    Failed,
    /// It failed, or a step before it did and it never ran.
    NotOk,
    Unknown,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Change {
    Created,
    Modified,
    /// Created or modified: a command does not tell.
    Wrote,
    Deleted,
    Renamed,
}

/// What a step is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Verifies(Check),
    /// It changes nothing in the tree.
    Harmless,
    /// A verb of git that leaves the tree as it is.
    Git(String),
    Files(Vec<(Change, String)>),
    /// Anything.
    Other,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Did {
    pub words: String,
    pub what: What,
    pub ended: Ended,
}

/// What a line did that ended with `exit`; `None`: it did not end, or nobody knows how.
pub(super) fn did(line: &str, exit: Option<i32>) -> Vec<Did> {
    within(line, exit, 0)
}

fn within(line: &str, exit: Option<i32>, depth: usize) -> Vec<Did> {
    let Some(steps) = steps(line) else {
        // It has a grammar of its own: what it ran is known, how each of it ended is not.
        let found = analyse(line);
        let hidden = !found.opaque.is_empty()
            || found.redirections.iter().any(|file| file.writes && file.path != "/dev/null")
            || found.commands.is_empty();
        let mut all: Vec<Did> = found
            .commands
            .iter()
            .filter(|argv| !argv.is_empty())
            .map(|argv| {
                let what = match what(argv, &[]) {
                    What::Files(_) => What::Other,
                    what => what,
                };
                Did { words: argv.join(" "), what, ended: Ended::Unknown }
            })
            .collect();
        if hidden {
            all.push(Did { words: String::new(), what: What::Other, ended: Ended::Unknown });
        }
        return all;
    };
    if let [Step { argv, negated: false, .. }] = steps.as_slice()
        && let Some(inner) = shell_line(argv)
        && depth < DEPTH_MAX
    {
        return within(inner, exit, depth + 1);
    }
    let ended = endings(&steps, exit);
    steps
        .iter()
        .zip(ended)
        .filter(|(step, _)| !step.argv.is_empty() || !step.writes.is_empty())
        .map(|(step, ended)| Did { words: step.argv.join(" "), what: what(&step.argv, &step.writes), ended })
        .collect()
}

/// The line of `sh -c LINE`.
fn shell_line(argv: &[String]) -> Option<&str> {
    let name = argv.first()?.rsplit('/').next()?;
    if !matches!(name, "sh" | "bash" | "zsh" | "dash" | "ksh") {
        return None;
    }
    let flag = argv.get(1)?;
    // With `e` or `pipefail` among the flags the exit code means more than is said here, never less.
    (flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c')).then_some(argv.get(2)?.as_str())
}

/// How each step ended.
fn endings(steps: &[Step], exit: Option<i32>) -> Vec<Ended> {
    let Some(exit) = exit else { return vec![Ended::Unknown; steps.len()] };
    let starts: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].joined != Joined::Piped).collect();
    let end_of = |nth: usize| starts.get(nth + 1).copied().unwrap_or(steps.len());
    let strict_before = |at: usize, flag: &str| steps[..at].iter().any(|step| sets(&step.argv, flag));
    let mut ended = vec![Ended::Unknown; steps.len()];
    for (nth, &start) in starts.iter().enumerate() {
        let errexit = strict_before(start, "e");
        let follows = |later: &usize| match steps[*later].joined {
            Joined::IfOk => true,
            Joined::Always => errexit,
            Joined::First | Joined::IfNot | Joined::Piped => false,
        };
        let later = &starts[nth + 1..];
        let before = &starts[..nth];
        // Whether what came before it surely did not end the line.
        let surely_reached = match steps[start].joined {
            Joined::First | Joined::IfNot => true,
            Joined::Always => !errexit || before.iter().all(|at| trivial(&steps[*at].argv)),
            Joined::IfOk | Joined::Piped => before.iter().all(|at| trivial(&steps[*at].argv)),
        };
        let whole = if steps[start].negated {
            Ended::Unknown
        } else if exit == 0 {
            let ran = steps[start].joined != Joined::IfNot;
            if ran && later.iter().all(follows) { Ended::Ok } else { Ended::Unknown }
        } else if later.is_empty() {
            if surely_reached { Ended::Failed } else { Ended::NotOk }
        } else if later.len() == 1 && steps[later[0]].joined == Joined::IfNot {
            Ended::NotOk
        } else {
            Ended::Unknown
        };
        let stages = start..end_of(nth);
        let last = stages.end - 1;
        let pipefail = strict_before(start, "pipefail");
        for at in stages.clone() {
            // The exit code of a pipeline is that of its last stage.
            ended[at] = if at == last && (!pipefail || whole != Ended::Failed || stages.len() == 1) {
                whole
            } else if pipefail {
                let others = stages.clone().all(|other| other == at || passes_on(&steps[other].argv));
                if whole == Ended::Ok || others { whole } else { Ended::Unknown }
            } else {
                Ended::Unknown
            };
        }
    }
    ended
}

/// `set -e`, `set -euo pipefail`.
fn sets(argv: &[String], flag: &str) -> bool {
    argv.first().is_some_and(|word| word == "set")
        && argv[1..].iter().any(|word| {
            word == flag
                || (flag.len() == 1 && word.starts_with('-') && !word.starts_with("--") && word.contains(flag))
                || (flag == "e" && word == "errexit")
        })
}

/// Steps that do not fail in everyday use.
fn trivial(argv: &[String]) -> bool {
    argv.first().is_none_or(|word| {
        matches!(
            word.as_str(),
            "cd" | "set" | "export" | "true" | ":" | "echo" | "printf" | "pwd" | "source" | "." | "unset"
        )
    })
}

fn passes_on(argv: &[String]) -> bool {
    argv.first().is_some_and(|word| matches!(word.as_str(), "tail" | "head" | "cat" | "tee" | "less" | "more"))
}

fn what(argv: &[String], writes: &[String]) -> What {
    let mut files: Vec<(Change, String)> = writes.iter().map(|path| (Change::Wrote, path.clone())).collect();
    if let Some(check) = runners::check_of(argv) {
        return What::Verifies(check);
    }
    let Some((program, args)) = argv.split_first() else {
        return if files.is_empty() { What::Harmless } else { What::Files(files) };
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let operands: Vec<&String> = args.iter().filter(|word| !word.starts_with('-')).collect();
    let mut all = |change: Change| files.extend(operands.iter().map(|path| (change, (*path).clone())));
    match name {
        "rm" | "unlink" | "rmdir" | "trash" => all(Change::Deleted),
        "mv" => all(Change::Renamed),
        "touch" | "mkdir" => all(Change::Created),
        "tee" => all(Change::Wrote),
        "cp" | "ln" | "install" => files.extend(operands.last().map(|path| (Change::Wrote, (*path).clone()))),
        "sed" | "perl" | "gsed"
            if args.iter().any(|word| word.starts_with("-i") || word == "--in-place" || word == "-pi") =>
        {
            all(Change::Modified);
        }
        "git" => match operands.first().map(|verb| verb.as_str()) {
            Some("rm") => files.extend(operands[1..].iter().map(|path| (Change::Deleted, (*path).clone()))),
            Some("mv") => files.extend(operands[1..].iter().map(|path| (Change::Renamed, (*path).clone()))),
            Some(
                verb @ ("add" | "commit" | "push" | "status" | "diff" | "log" | "show" | "branch" | "tag" | "fetch"
                | "remote" | "rev-parse" | "config" | "blame" | "describe" | "ls-files" | "grep" | "init"),
            ) => return What::Git(verb.to_owned()),
            _ => return What::Other,
        },
        _ if trivial(argv) => {}
        _ if ReadPlan::from_argv(program, args).is_ok() => {}
        _ => return What::Other,
    }
    if files.is_empty() { What::Harmless } else { What::Files(files) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_ended(line: &str, exit: i32) -> Ended {
        let all = did(line, Some(exit));
        let found = all.iter().find(|one| matches!(&one.what, What::Verifies(check) if check.target == "cargo test"));
        found.unwrap_or_else(|| panic!("{line} runs the tests: {all:?}")).ended
    }

    #[test]
    fn l76_an_exit_code_counts_only_for_the_step_that_it_is_of() {
        for (line, ok, not) in [
            ("cargo test", Ended::Ok, Ended::Failed),
            ("cd x && cargo test", Ended::Ok, Ended::Failed),
            ("A=1 cargo test 2>&1", Ended::Ok, Ended::Failed),
            ("bash -lc 'cd x && cargo test'", Ended::Ok, Ended::Failed),
            ("timeout 9 cargo test", Ended::Ok, Ended::Failed),
            ("npm ci && cargo test", Ended::Ok, Ended::NotOk),
            ("cargo test && git push", Ended::Ok, Ended::Unknown),
            ("cargo test || exit 1", Ended::Unknown, Ended::NotOk),
            ("cargo test | tail -5", Ended::Unknown, Ended::Unknown),
            ("set -o pipefail; cargo test | tail -5", Ended::Ok, Ended::Failed),
            ("set -euo pipefail\ncargo test 2>&1 | tee log\nls", Ended::Ok, Ended::Unknown),
            ("set -o pipefail; cargo test | grep x", Ended::Ok, Ended::Unknown),
            ("cargo test; echo $?", Ended::Unknown, Ended::Unknown),
            ("cargo test || true", Ended::Unknown, Ended::NotOk),
            ("! cargo test", Ended::Unknown, Ended::Unknown),
            ("make lint || cargo test", Ended::Unknown, Ended::Failed),
            ("(cd x; cargo test)", Ended::Unknown, Ended::Unknown),
            ("if cargo test; then echo ok; fi", Ended::Unknown, Ended::Unknown),
        ] {
            assert_eq!((test_ended(line, 0), test_ended(line, 1)), (ok, not), "{line}");
        }
    }

    #[test]
    fn steps_say_what_they_do_to_files() {
        let what = |line: &str| did(line, Some(0)).into_iter().map(|one| one.what).collect::<Vec<_>>();
        let file = |change, path: &str| What::Files(vec![(change, path.to_owned())]);
        assert_eq!(what("rm -rf a.txt"), [file(Change::Deleted, "a.txt")]);
        assert_eq!(what("cat > a.txt <<'E'\nx\nE"), [file(Change::Wrote, "a.txt")]);
        assert_eq!(
            what("cd a && git status && ls -l"),
            [What::Harmless, What::Git("status".to_owned()), What::Harmless]
        );
        assert_eq!(what("python3 gen.py"), [What::Other]);
        assert_eq!(what("git checkout ."), [What::Other]);
    }
}
