//! What can be wrong with rules: what, where, and what to do.

use std::io;
use std::path::PathBuf;

use crate::RuleSource;

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it is empty; leave the key out to mean anything")]
    Empty,
    #[error("it is longer than {max} bytes; split the rule")]
    TooLong { max: usize },
    #[error("it has more than {max} wildcards; split the rule")]
    TooManyWildcards { max: usize },
    #[error("`{0}` has no meaning here; write `\\{0}` for the character itself, or a list for alternatives")]
    Bracket(char),
    #[error("it ends in a single `\\`; write `\\\\` for the character itself")]
    DanglingEscape,
    #[error("`**` must be a whole segment, as in `src/**` or `**/x`; use `*` inside a name")]
    DoubleStar,
    #[error("it has an empty, `.` or `..` segment; write the canonical path (`x/**` means x and everything beneath)")]
    Segment,
    #[error("`~` is not known here: paths are virtual, such as `/workspace/src/a.rs`")]
    Home,
    #[error("it must name one kind of resource; write a rule for each kind")]
    Kinds,
    #[error("`$` alone names no command; write its words first")]
    NoWords,
    #[error(
        "a host is a name such as `example.com`, or `*.example.com`, without scheme, port or path (non-ASCII names in their `xn--` form)"
    )]
    Host,
}

/// What is wrong at a place in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not valid TOML: {0}")]
    Syntax(String),
    #[error("unknown key `{key}`; the nearest known one is `{nearest}`")]
    UnknownKey { key: String, nearest: &'static str },
    #[error("`{key}` must be {wanted}")]
    WrongType { key: String, wanted: &'static str },
    #[error("`{key}` is missing; give {wanted}")]
    Missing { key: &'static str, wanted: &'static str },
    #[error("`{value}` is not a value of `{key}`; use {wanted}")]
    BadValue { key: String, value: String, wanted: String },
    #[error("pattern `{pattern}` of `{key}`: {source}")]
    BadPattern { key: String, pattern: String, source: PatternError },
    #[error("a rule names one kind of resource, not both `{first}` and `{second}`; write two rules")]
    TwoResources { first: &'static str, second: &'static str },
    #[error(
        "`mcp_tool` names tools of MCP servers and of clients; what is meant here has a key of its own now: write \
         `{key} = {name:?}`"
    )]
    NoTool { key: &'static str, name: String },
    #[error("`{key}` says that the rule {expected} {example}, but it does not; change the pattern or the example")]
    Example { key: &'static str, expected: &'static str, example: String },
    #[error("`{key}` needs a resource to compare with; this rule names none that examples can show")]
    ExampleWithoutResource { key: &'static str },
    #[error("the enterprise file holds deny rules only; this one says `{0}`")]
    NotDeny(&'static str),
    #[error("more than {max} rules in one file; merge patterns into lists")]
    TooManyRules { max: usize },
}

/// Why there is no policy. None of these may be passed over: a rule that is not read is not enforced.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("{file}:{line}: {problem}")]
    At { file: String, line: usize, problem: Problem },
    #[error("{second}: rule id `{id}` is already used at {first}; ids are unique in a policy")]
    DuplicateId { id: String, first: RuleSource, second: RuleSource },
    #[error("cannot read the enterprise policy {}: {source}; it must be readable, or absent", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the enterprise policy {} is not honoured: {problem}; make it root's alone with: chown root {} && chmod 644 {}",
        path.display(), path.display(), path.display()
    )]
    NotTrusted { path: PathBuf, problem: String },
}

impl PolicyError {
    pub(crate) fn at(source: &RuleSource, problem: Problem) -> Self {
        Self::At { file: source.file.clone(), line: source.line, problem }
    }
}
