//! In which folder each command of a line runs, as far as its text tells.
//!
//! A `cd` to a literal folder is taken to succeed. That holds only if the folder is there, so a folder is given as the
//! steps that lead to it, and a caller that looks at the file system follows each of them: where one leads nowhere, the
//! folder is not known after all. Whatever is not understood is [`Folder::Unknown`].

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectTarget, IoRedirect,
    Pipeline, RedirectList, SeparatorOperator, SimpleCommand,
};

use super::builtin;
use super::word::{self, Word, WordFault};

/// Changes of folder that are followed one after the other.
const STEPS_MAX: usize = 16;

/// The longest literal name of a folder; the kernel takes no longer one.
const PATH_MAX: usize = 4096;

/// Where a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Folder {
    /// Where the line starts.
    #[default]
    Start,
    /// Where these literal steps lead, each seen from the one before it and the first from where the line starts. It
    /// holds only if every one of them is a folder.
    At(Vec<String>),
    /// On another machine or in a container: nothing of this file system is meant.
    Elsewhere,
    /// It becomes known only when the line runs.
    Unknown,
}

impl Folder {
    /// Only where the line starts is known.
    pub(super) fn forget(&mut self) {
        if matches!(self, Self::At(_)) {
            *self = Self::Unknown;
        }
    }

    /// The folder that a literal path names, seen from this one.
    pub(super) fn then(&self, path: &str) -> Self {
        let absolute = path.starts_with('/');
        let mut steps = match self {
            Self::Elsewhere => return Self::Elsewhere,
            Self::Unknown if !absolute => return Self::Unknown,
            Self::Unknown | Self::Start => Vec::new(),
            Self::At(steps) => steps.clone(),
        };
        steps.push(path.to_owned());
        if path.is_empty() || path.len() > PATH_MAX || steps.len() > STEPS_MAX {
            Self::Unknown
        } else {
            Self::At(steps)
        }
    }
}

/// Where a shell stands at one point of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ShellFolder {
    folder: Folder,
    /// The line comes here only if one of these steps leads to no folder; empty if it may come here anyhow.
    refused: Vec<Vec<String>>,
}

impl ShellFolder {
    /// Either of both. One that a refused step leads to does not count beside one that takes the same step: a caller that
    /// follows the steps finds out which of both it is.
    fn or(self, other: Self) -> Self {
        let excludes = |kept: &Self, left: &Self| {
            let steps = if let Folder::At(steps) = &kept.folder { steps.as_slice() } else { &[] };
            kept.refused.is_empty() && !left.refused.is_empty() && left.refused.iter().all(|one| steps.starts_with(one))
        };
        if excludes(&self, &other) {
            return self;
        }
        if excludes(&other, &self) {
            return other;
        }
        let folder = if self.folder == other.folder { self.folder } else { Folder::Unknown };
        let both = !self.refused.is_empty() && !other.refused.is_empty();
        let mut refused = if both { self.refused } else { Vec::new() };
        refused.extend(other.refused.into_iter().filter(|_| both));
        refused.dedup();
        if refused.len() > STEPS_MAX {
            refused.clear();
        }
        Self { folder, refused }
    }
}

/// Where a shell stands after a command: if it succeeded, and if it failed.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderAfter {
    ok: ShellFolder,
    failed: ShellFolder,
    /// From here on no folder is known: a word may mean something else.
    lost: bool,
    /// `cd name` may look for the name in other folders.
    pub(super) cdpath: bool,
    /// The shell may have no `pushd`.
    pub(super) plain: bool,
}

/// The folders of a shell after one outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutcomeFolder(ShellFolder);

impl FolderAfter {
    /// The course of a shell that is started in `folder`.
    pub(super) fn inside(&self, folder: Folder, shell: &str) -> Self {
        let stand = ShellFolder { folder, refused: Vec::new() };
        let plain = if shell == "eval" { self.plain } else { !matches!(shell, "bash" | "zsh") };
        Self { ok: stand.clone(), failed: stand, lost: self.lost, cdpath: self.cdpath, plain }
    }

    /// Where a command runs that comes next, however the one before it ended.
    pub(super) fn here(&self) -> Folder {
        if self.lost { Folder::Unknown } else { self.ok.clone().or(self.failed.clone()).folder }
    }

    /// Goes on however the last command ended.
    pub(super) fn go_on(&mut self) {
        let stand = self.ok.clone().or(std::mem::take(&mut self.failed));
        (self.ok, self.failed) = (stand.clone(), stand);
    }

    /// Goes on only if the last command ended well, or only if it did not. Gives the other side.
    pub(super) fn only(&mut self, well: bool) -> OutcomeFolder {
        let (stand, other) = if well { (&self.ok, &self.failed) } else { (&self.failed, &self.ok) };
        let (stand, other) = (stand.clone(), other.clone());
        (self.ok, self.failed) = (stand.clone(), stand);
        OutcomeFolder(other)
    }

    /// Goes on from one side alone. Gives where it stood.
    pub(super) fn turn_to(&mut self, side: OutcomeFolder) -> OutcomeFolder {
        self.go_on();
        let before = std::mem::replace(&mut self.ok, side.0.clone());
        self.failed = side.0;
        OutcomeFolder(before)
    }

    /// The command also ends so, well or not.
    pub(super) fn or_ends(&mut self, well: bool, side: OutcomeFolder) {
        let end = if well { &mut self.ok } else { &mut self.failed };
        *end = std::mem::take(end).or(side.0);
    }

    /// The line also goes on from there.
    pub(super) fn or_from(&mut self, side: OutcomeFolder) {
        self.go_on();
        self.or_ends(true, side.clone());
        self.or_ends(false, side);
    }

    /// `!` before a pipeline.
    pub(super) fn negate(&mut self) {
        std::mem::swap(&mut self.ok, &mut self.failed);
    }

    /// Where the shell stands is not known.
    pub(super) fn anywhere(&mut self) {
        self.ok.folder = Folder::Unknown;
        self.failed = self.ok.clone();
    }

    /// The same until the line ends.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// Whether a word about folders may mean something else than it says.
    pub(super) fn is_unsettled(&self) -> bool {
        self.lost || self.cdpath
    }

    /// Takes over what no subshell keeps to itself.
    pub(super) fn outlast(&mut self, inner: &Self) {
        self.lost |= inner.lost;
        self.cdpath |= inner.cdpath;
    }

    /// Runs a simple command.
    pub(super) fn run(&mut self, simple: &SimpleCommand) {
        self.go_on();
        match moved(simple) {
            FolderChange::Not => {}
            FolderChange::To { path, pushes } => {
                let named =
                    [".", ".."].contains(&path.as_str()) || ["/", "./", "../"].iter().any(|s| path.starts_with(s));
                match self.ok.folder.then(&path) {
                    Folder::At(steps) if (named || !self.cdpath) && !(self.plain && pushes) => {
                        if self.failed.refused.is_empty() {
                            self.failed.refused.push(steps.clone());
                        }
                        self.ok.folder = Folder::At(steps);
                    }
                    Folder::Elsewhere => {}
                    _ => self.anywhere(),
                }
            }
            FolderChange::Anywhere => self.anywhere(),
            FolderChange::Lost => self.lose(),
        }
    }
}

/// Where a simple command leaves its shell.
#[derive(Debug, PartialEq, Eq)]
enum FolderChange {
    Not,
    /// To this folder, if it is one. `pushes`: by `pushd`.
    To {
        path: String,
        pushes: bool,
    },
    Anywhere,
    /// Words mean something else from now on.
    Lost,
}

/// A word of a command: its characters, or that a shell puts something else in its place.
fn literal(raw: &str) -> Option<String> {
    match word::read(raw) {
        Ok(Word::Literal(text)) => Some(text),
        // The home of a user, which is no builtin.
        Err(WordFault::Tilde) if raw.contains('/') => Some(raw.to_owned()),
        Ok(Word::Glob(_)) | Err(_) => None,
    }
}

fn moved(simple: &SimpleCommand) -> FolderChange {
    let Some(name) = &simple.word_or_name else { return FolderChange::Not };
    let items = || simple.suffix.iter().flat_map(|suffix| &suffix.0);
    let mut words: Vec<Option<String>> = vec![literal(&name.value)];
    words.extend(items().filter_map(|item| match item {
        Item::Word(word) | Item::AssignmentWord(_, word) => Some(literal(&word.value)),
        Item::ProcessSubstitution(..) => Some(None),
        Item::IoRedirect(_) => None,
    }));
    let Some(words) = builtin::behind_prefixes(&words) else { return FolderChange::Not };
    let Some((first, rest)) = words.split_first() else { return FolderChange::Not };
    let Some(program) = first.as_deref() else { return FolderChange::Anywhere };
    let moved = match program {
        "cd" | "pushd" => entered(rest, program == "pushd"),
        "popd" | "chdir" | "eval" | "source" | "." => FolderChange::Anywhere,
        // Options that name what the shell itself is to run.
        "mapfile" | "readarray" | "jobs" | "compgen" | "bind" if rest.iter().any(|word| runs(word.as_deref())) => {
            FolderChange::Anywhere
        }
        "trap" | "alias" | "enable" => FolderChange::Lost,
        // A restricted shell refuses `cd`.
        "set" if rest.iter().map(Option::as_deref).take_while(|word| *word != Some("--")).any(restricts) => {
            FolderChange::Lost
        }
        _ => FolderChange::Not,
    };
    // It is not run at all if a file cannot be opened or a variable cannot be set.
    let safe = simple.prefix.is_none() && items().all(|item| !matches!(item, Item::IoRedirect(to) if may_fail(to)));
    if safe || !matches!(moved, FolderChange::To { .. }) { moved } else { FolderChange::Anywhere }
}

/// Of the words after `cd` or `pushd`.
fn entered(words: &[Option<String>], pushes: bool) -> FolderChange {
    let mut words = words.iter().map(Option::as_deref);
    let mut next = words.next();
    let option = |word: Option<&str>| {
        word.and_then(|word| word.strip_prefix('-')).is_some_and(|letters| {
            letters == "-" || (!letters.is_empty() && letters.chars().all(|letter| "LPe@".contains(letter)))
        })
    };
    while !pushes && next.is_some_and(option) {
        let ended = next == Some(Some("--"));
        next = words.next();
        if ended {
            break;
        }
    }
    match (next.flatten(), words.next()) {
        (Some(path), None) if !path.is_empty() && !path.starts_with(['-', '+', '~']) => {
            FolderChange::To { path: path.to_owned(), pushes }
        }
        _ => FolderChange::Anywhere,
    }
}

fn runs(word: Option<&str>) -> bool {
    word.is_none_or(|word| word.starts_with('-') && word.contains(['C', 'F', 'x']))
}

/// A word of `set` that restricts the shell, or may.
fn restricts(word: Option<&str>) -> bool {
    word.is_none_or(|word| word == "restricted" || (word.starts_with('-') && word.contains('r')))
}

/// Whether a redirection may fail, so that what it belongs to is not run.
fn may_fail(redirect: &IoRedirect) -> bool {
    match redirect {
        IoRedirect::File(_, _, IoFileRedirectTarget::Filename(word)) | IoRedirect::OutputAndError(word, _) => {
            word.value != "/dev/null"
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::Duplicate(word)) => !matches!(word.value.as_str(), "1" | "2"),
        IoRedirect::File(_, _, IoFileRedirectTarget::Fd(fd)) => !matches!(fd, 1 | 2),
        _ => true,
    }
}

/// Whether one of these redirections may keep from running what it belongs to.
pub(super) fn may_keep_from_running(redirects: Option<&RedirectList>) -> bool {
    redirects.iter().flat_map(|list| &list.0).any(may_fail)
}

/// Whether a list may leave its shell in another folder.
pub(super) fn moves(list: &CompoundList) -> bool {
    list.0.iter().any(|item| {
        let more = item.0.additional.iter().map(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => pipeline,
        });
        let in_shell = !matches!(item.1, SeparatorOperator::Async);
        in_shell && std::iter::once(&item.0.first).chain(more).any(pipeline_moves)
    })
}

/// The same of a pipeline. Some shells run the last part of it themselves.
pub(super) fn pipeline_moves(pipeline: &Pipeline) -> bool {
    pipeline.seq.last().is_some_and(command_moves)
}

fn command_moves(command: &Command) -> bool {
    match command {
        Command::Simple(simple) => moved(simple) != FolderChange::Not,
        Command::Compound(compound, _) => compound_moves(compound),
        Command::Function(_) => true,
        Command::ExtendedTest(..) => false,
    }
}

pub(super) fn compound_moves(compound: &CompoundCommand) -> bool {
    match compound {
        CompoundCommand::Arithmetic(_) | CompoundCommand::Subshell(_) | CompoundCommand::Coprocess(_) => false,
        CompoundCommand::ArithmeticForClause(clause) => moves(&clause.body.list),
        CompoundCommand::BraceGroup(group) => moves(&group.list),
        CompoundCommand::ForClause(clause) => moves(&clause.body.list),
        CompoundCommand::CaseClause(clause) => clause.cases.iter().filter_map(|case| case.cmd.as_ref()).any(moves),
        CompoundCommand::IfClause(clause) => {
            let mut others = clause.elses.iter().flatten();
            moves(&clause.condition)
                || moves(&clause.then)
                || others.any(|other| other.condition.as_ref().is_some_and(moves) || moves(&other.body))
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            moves(&clause.0) || moves(&clause.1.list)
        }
    }
}

/// Whether a function of this name stands for what folders are followed by.
pub(super) fn is_mover(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "popd" | "command" | "builtin" | "eval" | "source" | "." | "set")
}

/// Whether a text holds `${ …; }`, which newer shells run without a subshell.
pub(super) fn runs_within(text: &str) -> bool {
    ["${ ", "${\t", "${\n", "${|"].iter().any(|start| text.contains(start))
}
