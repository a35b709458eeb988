//! What the read-only hand may run (agent-runtime 8.7). Only this module makes a plan: a caller that holds
//! one holds a command line that was understood whole and can only read.

use std::collections::BTreeSet;

use portcullis_base::Reason;

use crate::options::{self, Parsed};
use crate::path_text;
use crate::table::program;
use crate::word::Word;

/// Pipelines in a list.
pub const PIPELINES_MAX: usize = 8;

/// Stages in a pipeline.
pub const STAGES_MAX: usize = 8;

/// A list of pipelines, each of stages that only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPlan {
    pub(super) pipelines: Vec<(Joiner, Pipeline)>,
}

/// When a pipeline runs, given the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joiner {
    /// The first one, or after `;`.
    Always,
    /// After `&&`.
    AfterSuccess,
    /// After `||`.
    AfterFailure,
}

/// Stages whose output is the next one's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
}

/// One program with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub(super) program: &'static str,
    pub(super) builtin: Option<Builtin>,
    pub(super) args: Vec<Arg>,
    pub(super) redirections: Vec<Redirection>,
    /// It looks at its working directory although no word says so.
    pub(super) looks_around: bool,
}

/// What the runtime does itself, in the place of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Moves the stages after it.
    Cd,
    Pwd,
    /// Prints the scrubbed environment.
    Env,
    /// `command -v NAME`.
    CommandV,
    /// `type NAME`.
    Type,
    True,
    /// `test` and `[`.
    Test,
}

/// A word after the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    pub(super) word: Word,
    pub(super) path: bool,
}

impl Arg {
    /// The word.
    #[must_use]
    pub fn word(&self) -> &Word {
        &self.word
    }

    /// Whether it names something in the tree, which must be resolved through the mounts.
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.path
    }
}

/// In the order in which they are written, which matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirection {
    /// `>/dev/null`
    StdoutNull,
    /// `2>/dev/null`
    StderrNull,
    /// `&>/dev/null`
    BothNull,
    /// `2>&1`
    StderrToStdout,
    /// `< FILE`: a path, to be resolved like an operand.
    Stdin(String),
}

impl ReadPlan {
    /// The pipelines in order, at least one, at most [`PIPELINES_MAX`].
    #[must_use]
    pub fn pipelines(&self) -> &[(Joiner, Pipeline)] {
        &self.pipelines
    }

    /// The stages of all pipelines, in order.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.pipelines.iter().flat_map(|(_, pipeline)| &pipeline.stages)
    }

    /// Every place that the words name, seen from `cwd`, without looking at the tree: links may lead
    /// elsewhere. After a `cd` both places count, for it may fail. Patterns are given as they stand.
    #[must_use]
    pub fn reads(&self, cwd: &str) -> Vec<NamedPlace> {
        let mut cwds = BTreeSet::from([cwd.to_owned()]);
        let mut out = Vec::new();
        for stage in self.stages() {
            let mut name = |word: &Word| {
                for cwd in &cwds {
                    let named = match word {
                        Word::Literal(text) => {
                            NamedPlace { place: path_text::join(cwd, text), raw: text.clone(), pattern: false }
                        }
                        Word::Glob(glob) => {
                            let text = glob.as_str();
                            NamedPlace { place: path_text::join(cwd, text), raw: text.to_owned(), pattern: true }
                        }
                    };
                    if !out.contains(&named) {
                        out.push(named);
                    }
                }
            };
            stage.args.iter().filter(|arg| arg.path).for_each(|arg| name(&arg.word));
            for redirection in &stage.redirections {
                if let Redirection::Stdin(file) = redirection {
                    name(&Word::Literal(file.clone()));
                }
            }
            if stage.looks_around {
                name(&Word::Literal(".".to_owned()));
            }
            if stage.builtin == Some(Builtin::Cd)
                && let Some(folder) = stage.args.first().and_then(|arg| arg.word.as_literal())
            {
                let moved: Vec<_> = cwds.iter().map(|cwd| path_text::join(cwd, folder)).collect();
                cwds.extend(moved);
            }
        }
        out
    }

    /// The first word that names a place in none of `mounts`, by its text alone. That none does says
    /// nothing about links: opening is confined all the same.
    #[must_use]
    pub fn outside(&self, cwd: &str, mounts: &[&str]) -> Option<NotReadOnly> {
        let named = self
            .reads(cwd)
            .into_iter()
            .find(|named| !mounts.iter().any(|mount| path_text::within(&named.place, mount)))?;
        Some(NotReadOnly {
            reason: Reason::PathEscape,
            what: bounded(&format!("`{}` is {}, which lies in no mount", named.raw, named.place)),
            better: Some("name a path inside the workspace".to_owned()),
        })
    }
}

/// A place that a word of a plan names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPlace {
    /// Absolute, without `.` and `..`.
    pub place: String,
    /// As it stands in the line.
    pub raw: String,
    /// A pattern; what it matches is known only in the tree.
    pub pattern: bool,
}

impl Pipeline {
    /// At least one, at most [`STAGES_MAX`].
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

impl Stage {
    /// A name of the table, without any `/`.
    #[must_use]
    pub fn program(&self) -> &'static str {
        self.program
    }

    /// Set if the runtime does it itself.
    #[must_use]
    pub fn builtin(&self) -> Option<Builtin> {
        self.builtin
    }

    /// The words after the program.
    #[must_use]
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// The words after the program as options and operands. `find` and `sed` have words of their own: theirs are empty.
    #[must_use]
    pub fn options(&self) -> Option<Parsed<'_>> {
        let texts: Vec<Option<&str>> = self.args.iter().map(|arg| arg.word().as_literal()).collect();
        Some(options::parse(&program(self.program)?.options, &texts).unwrap_or_default())
    }

    /// In order.
    #[must_use]
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// Whether it looks at its working directory although no word says so (`ls`, `find`, `rg x`).
    #[must_use]
    pub fn looks_around(&self) -> bool {
        self.looks_around
    }

    /// The words as rules see them.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        let args = self.args.iter().map(|arg| arg.word.shown().to_owned());
        std::iter::once(self.program.to_owned()).chain(args).collect()
    }
}

/// Why a line is not run by the read-only hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NotReadOnly {
    /// `command_not_allowed`, `command_unparseable` or `path_escape`.
    pub reason: Reason,
    /// What exactly was refused.
    pub what: String,
    /// How the line could be changed so that it is run, if that is known.
    pub better: Option<String>,
}

/// Characters of a refusal: it may name a word as long as the line.
const SAID_CHARS: usize = 300;

fn bounded(what: &str) -> String {
    let mut out: String = what.chars().take(SAID_CHARS).collect();
    if out.len() < what.len() {
        out.push('…');
    }
    out
}

impl NotReadOnly {
    pub(super) fn refused(what: impl Into<String>) -> Self {
        Self { reason: Reason::CommandNotAllowed, what: bounded(&what.into()), better: None }
    }

    pub(super) fn unparseable(what: impl Into<String>) -> Self {
        Self { reason: Reason::CommandUnparseable, what: bounded(&what.into()), better: None }
    }

    pub(super) fn or(mut self, better: &str) -> Self {
        self.better = Some(better.to_owned());
        self
    }
}
