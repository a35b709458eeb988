//! What a command changes in the tree, by its words: a table of the usual ones. What is not in it may change anything.

use super::check_options::has;
use super::plan::ReadPlan;
use super::ran::{is_open, joined};
use super::unwrap::base;

/// What happened to a file. A command that writes one does not tell whether it was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    Created,
    Modified,
    Wrote,
    Deleted,
    Renamed,
}

use self::FileChangeKind::{Created, Deleted, Modified, Renamed, Wrote};

/// Files by what happened to each.
pub type FileChanges = Vec<(FileChangeKind, String)>;

/// What a command changes in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandChanges {
    Nothing,
    /// A verb of git that leaves the tree as it is.
    Git(String),
    Files(FileChanges),
    /// It puts files back as they were committed: these, or all if there is none.
    Undoes(Vec<String>),
    /// It takes the last commits back; with `true` the files, too.
    Uncommits(bool),
    /// It brings back what was put aside.
    Redoes,
    Anything,
}

impl CommandChanges {
    #[must_use]
    pub fn files(&self) -> &[(FileChangeKind, String)] {
        if let Self::Files(files) = self { files } else { &[] }
    }

    /// Whether it leaves the tree as it is.
    #[must_use]
    pub fn keeps(&self) -> bool {
        matches!(self, Self::Nothing | Self::Git(_))
    }
}

/// Words of a shell that change no file.
const CHANGES_NOTHING: &str = "cd set export true : echo printf pwd source . unset which type exit false test [";

/// What a command changes, and whether it also touches files that its words do not name.
#[must_use]
pub fn changes(argv: &[String]) -> (CommandChanges, bool) {
    let Some((program, args)) = argv.split_first() else { return (CommandChanges::Anything, true) };
    let name = base(program);
    let mut operands: Vec<String> = args.iter().filter(|word| !word.starts_with('-')).cloned().collect();
    let short = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('i');
    let in_place = args.iter().any(|word| short(word) || word.starts_with("--in-place"));
    let mut hidden = args.iter().any(|word| word == "-t" || word.starts_with("--target-directory")) && name != "touch";
    let files = match name {
        "rm" | "unlink" | "rmdir" | "trash" => each(&operands, Deleted),
        "mv" => [each(&operands, Renamed), arrived(&operands, Renamed)].concat(),
        "touch" | "mkdir" => each(&operands, Created),
        "tee" => each(&operands, Wrote),
        "cp" | "ln" | "install" => {
            [each(&operands[operands.len().saturating_sub(1)..], Wrote), arrived(&operands, Wrote)].concat()
        }
        "sed" | "perl" | "gsed" if in_place => {
            // The first word is the program, unless an option has it.
            if !args.iter().any(|word| word.starts_with("-e") || word.starts_with("--expression")) || name == "perl" {
                operands.drain(..operands.len().min(1));
            } else {
                operands.retain(|word| word.contains(['.', '/']));
            }
            hidden |= operands.is_empty();
            each(&operands, Modified)
        }
        "git" => match git(args) {
            CommandChanges::Files(found) => found,
            other => return (other, false),
        },
        _ if has(CHANGES_NOTHING, name) || ReadPlan::from_argv(program, args).is_ok() => Vec::new(),
        _ => return (CommandChanges::Anything, true),
    };
    hidden |= files.iter().any(|(_, path)| is_open(path));
    (if files.is_empty() && !hidden { CommandChanges::Nothing } else { CommandChanges::Files(files) }, hidden)
}

fn each(operands: &[String], change: FileChangeKind) -> FileChanges {
    operands.iter().map(|path| (change, path.clone())).collect()
}

/// Files that `cp` and `mv` put into a folder, where it surely is one.
fn arrived(operands: &[String], change: FileChangeKind) -> FileChanges {
    match operands.split_last() {
        Some((folder, from)) if folder.ends_with('/') || from.len() > 1 => {
            let put = |path: &String| joined(folder.trim_end_matches('/'), base(path.trim_end_matches('/')));
            from.iter().map(|path| (change, put(path))).collect()
        }
        _ => Vec::new(),
    }
}

/// Verbs of git that leave the tree as it is.
const GIT_KEEPS: &str = "add commit push status diff log show branch tag fetch remote rev-parse config blame describe \
    ls-files grep init reset";

/// What a verb of git does, by the words behind `git`.
fn git(args: &[String]) -> CommandChanges {
    let valued = |at: usize| at > 0 && has("-C -c --git-dir --work-tree", &args[at - 1]);
    let Some(at) = (0..args.len()).find(|at| !args[*at].starts_with('-') && !valued(*at)) else {
        return CommandChanges::Anything;
    };
    let (verb, rest) = (args[at].as_str(), &args[at + 1..]);
    let given = |flag: &str| rest.iter().any(|word| word == flag);
    let operands: Vec<String> = rest.iter().filter(|word| !word.starts_with('-')).cloned().collect();
    let first = operands.first().map_or("", String::as_str);
    let output = rest.iter().find_map(|word| word.strip_prefix("--output="));
    // An earlier commit; with an option such as `--soft` it is no file.
    let digest = first.len() >= 7 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    let earlier = rest.len() > 1 || digest || first.contains(['~', '^', '@']) || first.starts_with("origin/");
    let sole = operands.len() == 1 && !has("HEAD @", first) && !given("--");
    match verb {
        "diff" | "log" | "show" if output.is_some() => {
            CommandChanges::Files(output.map(|path| (Wrote, path.to_owned())).into_iter().collect())
        }
        _ if given("--help") || given("-h") || given("--dry-run") => CommandChanges::Nothing,
        "push" | "add" | "rm" | "mv" | "clean" if given("-n") => CommandChanges::Nothing,
        "rm" => CommandChanges::Files(each(&operands, Deleted)),
        "mv" => CommandChanges::Files(each(&operands, Renamed)),
        "restore" if given("--staged") && !given("--worktree") => CommandChanges::Nothing,
        "restore" | "checkout" if !given("-b") && !given("-B") && !operands.is_empty() => {
            CommandChanges::Undoes(if operands.iter().any(|path| path == ".") { Vec::new() } else { operands })
        }
        "revert" => CommandChanges::Uncommits(true),
        "stash" if has("pop apply", first) => CommandChanges::Redoes,
        "stash" if first.is_empty() || has("push save", first) => CommandChanges::Undoes(Vec::new()),
        "reset" if sole && earlier => CommandChanges::Uncommits(given("--hard")),
        "reset" if given("--hard") => CommandChanges::Undoes(Vec::new()),
        verb if has(GIT_KEEPS, verb) => CommandChanges::Git(verb.to_owned()),
        _ => CommandChanges::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_say_what_they_do_to_files() {
        let what = |line: &str| changes(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let file = |change, path: &str| CommandChanges::Files(vec![(change, path.to_owned())]);
        assert_eq!(what("rm -rf a.txt"), (file(Deleted, "a.txt"), false));
        assert_eq!(what("git diff --output=fix.patch").0, file(Wrote, "fix.patch"));
        let copied = vec![(Wrote, "dir/".to_owned()), (Wrote, "dir/a.py".to_owned())];
        assert_eq!(what("cp a.py dir/").0, CommandChanges::Files(copied));
        for line in ["rm old_*.py", "touch {a,b}.md", "./gen", "python3 gen.py"] {
            assert!(what(line).1, "{line}");
        }
        let undoes = |paths: &[&str]| CommandChanges::Undoes(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(what("git checkout .").0, undoes(&[]));
        assert_eq!(what("git -C x restore b.rs").0, undoes(&["b.rs"]));
        assert_eq!(what("git reset --hard").0, undoes(&[]));
        assert_eq!(what("git reset --hard HEAD~1").0, CommandChanges::Uncommits(true));
        assert_eq!(what("git reset --soft HEAD^").0, CommandChanges::Uncommits(false));
        assert_eq!(what("git reset HEAD a.rs").0, CommandChanges::Git("reset".to_owned()));
        assert_eq!(what("git commit --dry-run").0, CommandChanges::Nothing);
        assert_eq!(what("git push -n").0, CommandChanges::Nothing);
        assert_eq!(what("git -c a=b commit -n -m x").0, CommandChanges::Git("commit".to_owned()));
    }
}
