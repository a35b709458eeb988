//! What a line ran: each command without its wrappers, where it stood, and how it ended as far as the line's exit code
//! tells. For whoever asks afterwards; rules are compared with [`super::forms`].

use super::analyse::analyse;
use super::ends::{LineEnd, StepEnd, endings};
use super::shell::is_shell;
use super::steps::steps;
use super::unwrap::{base, peeled};

/// Shells in shells that are looked into.
const DEPTH_MAX: usize = 3;

/// One command of a line that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanCommand {
    /// Without wrappers around it; none if nobody knows what it is.
    pub argv: Vec<String>,
    /// `NAME=value` that was set for it.
    pub set: Vec<String>,
    /// Files that its redirections write, as they are written.
    pub writes: Vec<String>,
    /// Where it stands, for whoever stands at the line's start; `None`: nobody knows.
    pub folder: Option<String>,
    pub end: StepEnd,
    /// It surely ran, if the line did.
    pub ran: bool,
}

/// What a line ran of whose end this is known. A command in `$(…)`, or in a line with a grammar of its own, may have run.
#[must_use]
pub fn ran(line: &str, known: LineEnd) -> Vec<RanCommand> {
    within(line, known, 0)
}

fn within(line: &str, known: LineEnd, depth: usize) -> Vec<RanCommand> {
    let steps = steps(line).unwrap_or_default();
    let mut folder = Some(String::new());
    let mut all: Vec<RanCommand> = Vec::new();
    // What the line has set so far for all that follows.
    let mut exported: Vec<String> = Vec::new();
    for (step, (end, ran)) in steps.iter().zip(endings(&steps, known)) {
        let first = step.argv.first().map_or("", String::as_str);
        if matches!(first, "export" | "declare" | "typeset") {
            exported.extend(step.argv[1..].iter().filter(|word| !word.starts_with('-')).cloned());
        }
        if step.argv.is_empty() && step.writes.is_empty() {
            continue;
        }
        let argv = peeled(&step.argv).to_vec();
        let own = step.argv[..step.argv.len() - argv.len()].iter();
        let wrapped = own.filter(|word| !word.starts_with('-') && word.contains('='));
        let set: Vec<String> = exported.iter().chain(&step.assigned).chain(wrapped).cloned().collect();
        if let Some((inner, errexit)) = shell_line(&argv).filter(|_| depth < DEPTH_MAX) {
            // What it ended with is what its line ended with.
            let exit = match end {
                StepEnd::Ok => Some(0),
                StepEnd::Failed => known.exit,
                _ if steps.len() == 1 && !step.negated => known.exit,
                StepEnd::NotOk | StepEnd::Unknown => None,
            };
            for mut one in within(inner, LineEnd { exit, errexit, ..known }, depth + 1) {
                one.ran &= ran;
                one.set.extend(set.iter().cloned());
                one.folder = one.folder.as_deref().zip(folder.as_deref()).map(|(inner, outer)| joined(outer, inner));
                all.push(one);
            }
            continue;
        }
        let moves = matches!(argv.first().map_or("", String::as_str), "cd" | "pushd" | "popd");
        let to = argv.get(1).filter(|to| argv.len() == 2 && !is_open(to) && *to != "-").cloned();
        all.push(RanCommand { argv, set, writes: step.writes.clone(), folder: folder.clone(), end, ran });
        if moves {
            folder = folder.zip(to).map(|(from, to)| joined(&from, &to));
        }
    }
    let substitutes = ["$(", "`", "<(", ">("].iter().any(|mark| line.contains(mark));
    if steps.is_empty() || substitutes {
        let found = analyse(line);
        let mut writes = found.redirections.iter().filter(|file| file.writes && file.path != "/dev/null");
        let hidden = writes.any(|file| !steps.iter().any(|step| step.writes.contains(&file.path)));
        let known = |argv: &&Vec<String>| !argv.is_empty() && !steps.iter().any(|step| step.argv == **argv);
        all.extend(found.commands.iter().filter(known).map(|argv| maybe(peeled(argv).to_vec())));
        // Something that has no name here.
        let unnamed = hidden || (steps.is_empty() && (!found.opaque.is_empty() || found.commands.is_empty()));
        all.extend(unnamed.then(|| maybe(Vec::new())));
    }
    all
}

/// A command of which only its words are known.
fn maybe(argv: Vec<String>) -> RanCommand {
    RanCommand { argv, set: Vec::new(), writes: Vec::new(), folder: None, end: StepEnd::Unknown, ran: false }
}

/// A path from a folder on.
#[must_use]
pub fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Whether a word stands for names that a shell finds.
#[must_use]
pub fn is_open(word: &str) -> bool {
    word.contains(['*', '?', '[', '{', '$', '`']) || word.starts_with('~')
}

/// The line of `sh -c LINE`, and whether it ends where something fails.
fn shell_line(argv: &[String]) -> Option<(&str, bool)> {
    let flag = argv.get(1).filter(|_| is_shell(base(&argv[0])))?;
    let is_one = flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    is_one.then_some((argv.get(2)?.as_str(), flag.contains('e')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l76_an_exit_code_counts_only_for_the_step_that_it_is_of() {
        use StepEnd::{Failed, NotOk, Ok, Unknown};
        let end = |line: &str, exit: i32| {
            let all = ran(line, LineEnd { exit: Some(exit), moved: true, errexit: false });
            let found = all.iter().find(|one| one.argv.join(" ") == "cargo test");
            found.unwrap_or_else(|| panic!("{line} runs the tests: {all:?}")).end
        };
        for (line, ok, not) in [
            ("cargo test", Ok, Failed),
            ("cd x && cargo test", Ok, Failed),
            ("A=1 cargo test 2>&1", Ok, Failed),
            ("bash -lc 'cd x && cargo test'", Ok, Failed),
            ("timeout 9 cargo test", Ok, Failed),
            ("npm ci && cargo test", Ok, NotOk),
            ("cargo test && git push", Ok, Unknown),
            ("cargo test && echo ok", Ok, Failed),
            ("cargo test || exit 1", Unknown, Failed),
            ("cargo test | tail -5", Unknown, Unknown),
            ("set -o pipefail; cargo test | tail -5", Ok, Failed),
            ("set -euo pipefail\ncargo test 2>&1 | tee log\nls", Ok, Unknown),
            ("set -o pipefail; cargo test | grep x", Ok, Unknown),
            ("cargo test; echo $?", Unknown, Unknown),
            ("cargo test || true", Unknown, Failed),
            ("! cargo test", Unknown, Unknown),
            ("make lint || cargo test", Unknown, Failed),
            ("(cd x; cargo test)", Unknown, Unknown),
            ("if cargo test; then echo ok; fi", Unknown, Unknown),
            ("set -e; cargo test; echo done", Ok, Unknown),
            ("set -e; set +e; cargo test; echo done", Unknown, Unknown),
            ("set -euo pipefail; cd .; set +e; cargo test; code=$?; set -e; echo $code", Unknown, Unknown),
            ("set -e; cargo test && echo ok; echo done", Unknown, Unknown),
            ("cd . && bash -c 'cargo test; true'", Unknown, Unknown),
            ("cd . && bash -c 'cargo test'", Ok, Failed),
            ("exit 0; cargo test", Unknown, Unknown),
        ] {
            assert_eq!((end(line, 0), end(line, 1)), (ok, not), "{line}");
        }
    }

    #[test]
    fn a_command_stands_where_the_line_went() {
        let all = ran("cd a && touch x && cd b; ls", LineEnd::default());
        let folders: Vec<_> = all.into_iter().map(|one| one.folder).collect();
        assert_eq!(folders, ["", "a", "a", "a/b"].map(|folder| Some(folder.to_owned())));
    }

    #[test]
    fn only_what_surely_runs_and_ends_as_it_does_is_taken_off() {
        let inner = |line: &str| peeled(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
        for line in [
            "timeout 60 cargo test",
            "timeout -k 5 --signal KILL 60 cargo test",
            "env -u X A=1 B=2 cargo test",
            "sudo -u x nice -n 5 cargo test",
            "/usr/bin/env time -p -- cargo test",
            "stdbuf -oL cargo test",
            "nohup setsid cargo test",
        ] {
            assert_eq!(inner(line), "cargo test", "{line}");
        }
        for line in ["xargs cargo test", "find . -exec cargo test ;", "eval cargo test", "command -v cargo"] {
            assert_eq!(inner(line), line);
        }
    }
}
