//! What a command line did, step by step, as far as its exit code tells.

use portcullis_command::{ReadPlan, Step, analyse, steps};

use super::ends::{Ended, Known, endings};
use super::peel::{assigned, base, peeled};
use super::runners::{self, Check};

/// Shells in shells that are looked into.
const DEPTH_MAX: usize = 3;

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
    /// It puts files back as they were committed: these, or all if there is none.
    Undoes(Vec<String>),
    /// It takes the last commits back; with `true` the files, too.
    Uncommits(bool),
    /// It brings back what was put aside.
    Redoes,
    /// Anything.
    Other,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Did {
    /// Without wrappers around it.
    pub argv: Vec<String>,
    pub what: What,
    /// Files that its redirections write, whatever it is for.
    pub writes: Vec<String>,
    /// It may touch files that its words do not name: patterns, variables.
    pub hidden: bool,
    /// Where it stands, for whoever stands at the line's start; `None`: nobody knows.
    pub folder: Option<String>,
    pub ended: Ended,
    /// It surely ran, if the line did.
    pub ran: bool,
}

impl Did {
    /// Something of which only this is known.
    fn unnamed(what: What) -> Self {
        let folder = Some(String::new());
        Self { argv: Vec::new(), what, writes: Vec::new(), hidden: true, folder, ended: Ended::Unknown, ran: false }
    }
}

/// What a line did of which this is known.
pub(super) fn did(line: &str, known: Known) -> Vec<Did> {
    within(line, known, 0)
}

fn within(line: &str, known: Known, depth: usize) -> Vec<Did> {
    let Some(steps) = steps(line) else { return unordered(line) };
    let sole = steps.len() == 1;
    let mut folder = Some(String::new());
    let mut all: Vec<Did> = Vec::new();
    // What the line has set so far for all that follows.
    let mut exported: Vec<String> = Vec::new();
    for (step, (ended, ran)) in steps.iter().zip(endings(&steps, known)) {
        if step.argv.first().is_some_and(|word| matches!(word.as_str(), "export" | "declare" | "typeset")) {
            exported.extend(step.argv[1..].iter().filter(|word| !word.starts_with('-')).cloned());
        }
        if step.argv.is_empty() && step.writes.is_empty() {
            continue;
        }
        let argv = peeled(&step.argv).to_vec();
        let set: Vec<&String> = exported.iter().chain(&step.assigned).chain(assigned(&step.argv)).collect();
        if let Some((inner, errexit)) = shell_line(&argv).filter(|_| depth < DEPTH_MAX) {
            // What it ended with is what its line ended with.
            let exit = match ended {
                Ended::Ok => Some(0),
                Ended::Failed => known.exit,
                _ if sole && !step.negated => known.exit,
                Ended::NotOk | Ended::Unknown => None,
            };
            let mut inner = within(inner, Known { exit, errexit, ..known }, depth + 1);
            for one in &mut inner {
                one.ran &= ran;
                if let What::Verifies(check) = &mut one.what {
                    check.assume(&set);
                }
                one.folder = one.folder.as_deref().zip(folder.as_deref()).map(|(inner, outer)| joined(outer, inner));
            }
            all.append(&mut inner);
            continue;
        }
        let (mut what, hidden) = what(&argv);
        if let What::Verifies(check) = &mut what {
            check.assume(&set);
        }
        let writes: Vec<String> = step.writes.iter().filter(|path| !is_pattern(path)).cloned().collect();
        let hidden = hidden || writes.len() < step.writes.len();
        let to = match argv.as_slice() {
            [cd, to] if cd == "cd" || cd == "pushd" => Some((!is_pattern(to) && to != "-").then_some(to.clone())),
            [cd, ..] if cd == "cd" || cd == "pushd" || cd == "popd" => Some(None),
            _ => None,
        };
        all.push(Did { argv, what, writes, hidden, folder: folder.clone(), ended, ran });
        if let Some(to) = to {
            folder = folder.zip(to).map(|(from, to)| joined(&from, &to));
        }
    }
    all.extend(substituted(line, &steps));
    all
}

/// A line with a grammar of its own: what it ran is known, how each of it ended is not.
fn unordered(line: &str) -> Vec<Did> {
    let found = analyse(line);
    let hidden = !found.opaque.is_empty()
        || found.redirections.iter().any(|file| file.writes && file.path != "/dev/null")
        || found.commands.is_empty();
    let mut all: Vec<Did> = found
        .commands
        .iter()
        .filter(|argv| !argv.is_empty())
        .map(|argv| {
            let what = match what(argv).0 {
                What::Files(_) => What::Other,
                what => what,
            };
            Did { argv: peeled(argv).to_vec(), hidden: false, ..Did::unnamed(what) }
        })
        .collect();
    if hidden {
        all.push(Did::unnamed(What::Other));
    }
    all
}

/// What `$(…)` in a line of steps may have changed: it is among the commands, and no step.
fn substituted(line: &str, steps: &[Step]) -> Option<Did> {
    if !line.contains("$(") && !line.contains('`') && !line.contains("<(") && !line.contains(">(") {
        return None;
    }
    let found = analyse(line);
    let of_step = |argv: &Vec<String>| steps.iter().any(|step| step.argv == *argv);
    let changes = |argv: &Vec<String>| !matches!(what(argv).0, What::Harmless | What::Git(_) | What::Verifies(_));
    let writes = found.redirections.iter().filter(|file| file.writes && file.path != "/dev/null");
    let mut hidden = writes.filter(|file| !steps.iter().any(|step| step.writes.contains(&file.path)));
    let other = found.commands.iter().filter(|argv| !argv.is_empty()).any(|argv| !of_step(argv) && changes(argv));
    (other || hidden.next().is_some()).then(|| Did::unnamed(What::Other))
}

/// A path from a folder on.
pub(super) fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Whether a word stands for names that a shell finds.
fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '[', '{', '$', '`']) || word.starts_with('~')
}

/// The line of `sh -c LINE`, and whether it ends where something fails.
fn shell_line(argv: &[String]) -> Option<(&str, bool)> {
    if !matches!(base(argv.first()?), "sh" | "bash" | "zsh" | "dash" | "ksh") {
        return None;
    }
    let flag = argv.get(1)?;
    let is_one = flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    is_one.then_some((argv.get(2)?.as_str(), flag.contains('e')))
}

/// Words of a shell, and one that only looks, that change no file.
fn changes_nothing(name: &str) -> bool {
    matches!(
        name,
        "cd" | "set"
            | "export"
            | "true"
            | ":"
            | "echo"
            | "printf"
            | "pwd"
            | "source"
            | "."
            | "unset"
            | "which"
            | "type"
    )
}

/// What a step is for, and whether it also touches files that its words do not name.
fn what(argv: &[String]) -> (What, bool) {
    if let Some(check) = runners::check_of(argv) {
        return (What::Verifies(check), false);
    }
    let Some((program, args)) = argv.split_first() else { return (What::Harmless, false) };
    let name = base(program);
    let mut operands: Vec<&String> = args.iter().filter(|word| !word.starts_with('-')).collect();
    let in_place = |word: &String| {
        let letters = word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('i'));
        letters || word.starts_with("--in-place")
    };
    let mut files: Vec<(Change, String)> = Vec::new();
    let mut hidden = args.iter().any(|word| word == "-t" || word.starts_with("--target-directory")) && name != "touch";
    match name {
        "rm" | "unlink" | "rmdir" | "trash" => files.extend(each(&operands, Change::Deleted)),
        "mv" => {
            files.extend(each(&operands, Change::Renamed));
            files.extend(arrived(&operands, Change::Renamed));
        }
        "touch" | "mkdir" => files.extend(each(&operands, Change::Created)),
        "tee" => files.extend(each(&operands, Change::Wrote)),
        "cp" | "ln" | "install" => {
            files.extend(operands.last().map(|path| (Change::Wrote, (*path).clone())));
            files.extend(arrived(&operands, Change::Wrote));
        }
        "sed" | "perl" | "gsed" if args.iter().any(in_place) => {
            // The first word is the program, unless an option has it.
            if !args.iter().any(|word| word.starts_with("-e") || word.starts_with("--expression")) || name == "perl" {
                operands.drain(..operands.len().min(1));
            } else {
                operands.retain(|word| word.contains('.') || word.contains('/'));
            }
            files.extend(each(&operands, Change::Modified));
            hidden |= files.is_empty();
        }
        "git" => match git(args) {
            What::Files(found) => files.extend(found),
            what => return (what, false),
        },
        _ if changes_nothing(name) => {}
        _ if ReadPlan::from_argv(program, args).is_ok() => {}
        _ => return (What::Other, true),
    }
    let named = files.len();
    files.retain(|(_, path)| !is_pattern(path));
    hidden |= files.len() < named;
    let what = if files.is_empty() && !hidden { What::Harmless } else { What::Files(files) };
    (what, hidden)
}

fn each(operands: &[&String], change: Change) -> Vec<(Change, String)> {
    operands.iter().map(|path| (change, (*path).clone())).collect()
}

/// Files that `cp` and `mv` put into a folder, where it surely is one.
fn arrived(operands: &[&String], change: Change) -> Vec<(Change, String)> {
    let Some((folder, from)) = operands.split_last().filter(|(folder, from)| folder.ends_with('/') || from.len() > 1)
    else {
        return Vec::new();
    };
    from.iter().map(|path| (change, joined(folder.trim_end_matches('/'), base(path.trim_end_matches('/'))))).collect()
}

/// Options of git before its verb that take the next word.
const GIT_TAKES: [&str; 4] = ["-C", "-c", "--git-dir", "--work-tree"];

/// What a verb of git does, by the words behind `git`.
fn git(args: &[String]) -> What {
    let mut words = args.iter().map(String::as_str);
    let verb = loop {
        match words.next() {
            Some(option) if GIT_TAKES.contains(&option) => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            Some(verb) => break verb,
            None => return What::Other,
        }
    };
    let rest: Vec<&str> = words.collect();
    let has = |flag: &str| rest.contains(&flag);
    let operands: Vec<String> =
        rest.iter().filter(|word| !word.starts_with('-')).map(|word| (*word).to_owned()).collect();
    let each = |change: Change| What::Files(operands.iter().map(|path| (change, path.clone())).collect());
    let undoes = || What::Undoes(if operands.iter().any(|path| path == ".") { Vec::new() } else { operands.clone() });
    let output = rest.iter().find_map(|word| word.strip_prefix("--output="));
    match verb {
        "diff" | "log" | "show" if output.is_some() => {
            What::Files(output.map(|path| (Change::Wrote, path.to_owned())).into_iter().collect())
        }
        _ if has("--help") || has("-h") => What::Harmless,
        _ if has("--dry-run") || (has("-n") && matches!(verb, "push" | "add" | "rm" | "mv" | "clean")) => {
            What::Harmless
        }
        "rm" => each(Change::Deleted),
        "mv" => each(Change::Renamed),
        "add" | "commit" | "push" | "status" | "diff" | "log" | "show" | "branch" | "tag" | "fetch" | "remote"
        | "rev-parse" | "config" | "blame" | "describe" | "ls-files" | "grep" | "init" => What::Git(verb.to_owned()),
        "restore" if has("--staged") && !has("--worktree") => What::Git(verb.to_owned()),
        "restore" => undoes(),
        "checkout" if !has("-b") && !has("-B") && !operands.is_empty() => undoes(),
        "revert" => What::Uncommits(true),
        "stash" => match operands.first().map(String::as_str) {
            None | Some("push" | "save") => What::Undoes(Vec::new()),
            Some("pop" | "apply") => What::Redoes,
            _ => What::Other,
        },
        "reset" => match operands.first().map(String::as_str) {
            Some(to) if !has("--") && operands.len() == 1 && earlier(to, rest.len() > 1) => {
                What::Uncommits(has("--hard"))
            }
            _ if has("--hard") => What::Undoes(Vec::new()),
            _ => What::Git(verb.to_owned()),
        },
        _ => What::Other,
    }
}

/// Whether the operand of `git reset` is an earlier commit; with an option such as `--soft` it is no file.
fn earlier(to: &str, option: bool) -> bool {
    let digest = to.len() >= 7 && to.bytes().all(|byte| byte.is_ascii_hexdigit());
    !matches!(to, "HEAD" | "@") && (option || digest || to.contains(['~', '^', '@']) || to.starts_with("origin/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it was with this exit code, if `cd` works.
    fn done(line: &str, exit: i32) -> Vec<Did> {
        did(line, Known { exit: Some(exit), moved: true, errexit: false })
    }

    fn test_ended(line: &str, exit: i32) -> Ended {
        let all = done(line, exit);
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
            ("cargo test && echo ok", Ended::Ok, Ended::Failed),
            ("cargo test || exit 1", Ended::Unknown, Ended::Failed),
            ("cargo test | tail -5", Ended::Unknown, Ended::Unknown),
            ("set -o pipefail; cargo test | tail -5", Ended::Ok, Ended::Failed),
            ("set -euo pipefail\ncargo test 2>&1 | tee log\nls", Ended::Ok, Ended::Unknown),
            ("set -o pipefail; cargo test | grep x", Ended::Ok, Ended::Unknown),
            ("cargo test; echo $?", Ended::Unknown, Ended::Unknown),
            ("cargo test || true", Ended::Unknown, Ended::Failed),
            ("! cargo test", Ended::Unknown, Ended::Unknown),
            ("make lint || cargo test", Ended::Unknown, Ended::Failed),
            ("(cd x; cargo test)", Ended::Unknown, Ended::Unknown),
            ("if cargo test; then echo ok; fi", Ended::Unknown, Ended::Unknown),
            ("set -e; cargo test; echo done", Ended::Ok, Ended::Unknown),
            ("set -e; set +e; cargo test; echo done", Ended::Unknown, Ended::Unknown),
            (
                "set -euo pipefail; cd .; set +e; cargo test; code=$?; set -e; echo $code",
                Ended::Unknown,
                Ended::Unknown,
            ),
            ("set -e; cargo test && echo ok; echo done", Ended::Unknown, Ended::Unknown),
            ("cd . && bash -c 'cargo test; true'", Ended::Unknown, Ended::Unknown),
            ("cd . && bash -c 'cargo test'", Ended::Ok, Ended::Failed),
            ("exit 0; cargo test", Ended::Unknown, Ended::Unknown),
        ] {
            assert_eq!((test_ended(line, 0), test_ended(line, 1)), (ok, not), "{line}");
        }
    }

    #[test]
    fn steps_say_what_they_do_to_files() {
        let what = |line: &str| done(line, 0).into_iter().map(|one| one.what).collect::<Vec<_>>();
        let file = |change, path: &str| What::Files(vec![(change, path.to_owned())]);
        assert_eq!(what("rm -rf a.txt"), [file(Change::Deleted, "a.txt")]);
        let writes = |line: &str| done(line, 0).into_iter().flat_map(|one| one.writes).collect::<Vec<_>>();
        assert_eq!(writes("cat > a.txt <<'E'\nx\nE"), ["a.txt"]);
        assert_eq!(writes("sh test.sh > out.log 2>&1"), ["out.log"], "a check that is written down");
        let hidden = |line: &str| done(line, 0).iter().any(|one| one.hidden);
        for line in ["rm old_*.py", "touch {a,b}.md", "F=x; echo hi > $F", "echo $(echo broken > sum.sh)", "./gen"] {
            assert!(hidden(line), "{line}");
        }
        assert!(!hidden("cd $(git rev-parse --show-toplevel) && echo $(date)"));
        assert_eq!(
            what("cp a.py dir/"),
            [What::Files(vec![(Change::Wrote, "dir/".to_owned()), (Change::Wrote, "dir/a.py".to_owned())])]
        );
        assert_eq!(what("git diff --output=fix.patch"), [file(Change::Wrote, "fix.patch")]);
        let folders = done("cd a && touch x && cd b; ls", 0).into_iter().map(|one| one.folder).collect::<Vec<_>>();
        assert_eq!(folders, ["", "a", "a", "a/b"].map(|folder| Some(folder.to_owned())));
        assert_eq!(
            what("cd a && git status && ls -l"),
            [What::Harmless, What::Git("status".to_owned()), What::Harmless]
        );
        assert_eq!(what("python3 gen.py"), [What::Other]);
        let undoes = |paths: &[&str]| What::Undoes(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(what("git checkout ."), [undoes(&[])]);
        assert_eq!(what("git checkout -- a.rs && git -C x restore b.rs"), [undoes(&["a.rs"]), undoes(&["b.rs"])]);
        assert_eq!(what("git reset --hard"), [undoes(&[])]);
        assert_eq!(
            what("git reset --hard HEAD~1 && git reset --soft HEAD^"),
            [What::Uncommits(true), What::Uncommits(false)]
        );
        assert_eq!(what("git reset HEAD a.rs"), [What::Git("reset".to_owned())]);
        assert_eq!(what("git commit --dry-run && git push -n"), [What::Harmless, What::Harmless]);
        assert_eq!(what("git -c a=b commit -n -m x"), [What::Git("commit".to_owned())]);
    }
}
