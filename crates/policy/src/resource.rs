//! Which resources a rule speaks of, and which of two rules speaks more closely.

use std::collections::BTreeMap;
use std::fmt;

use portcullis_contract::NamedKind;
use serde::{Deserialize, Serialize};

use crate::named::rule_key;
use crate::subject::Subject;
use crate::{ArgvPattern, HostPattern, PathPattern, PatternError, WordPattern};

/// How closely a pattern fits, as tool-contract 13.2 compares: literal segments or words before the first
/// wildcard, then literal characters, then exact before glob. Greater is closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    leading: usize,
    chars: usize,
    exact: bool,
}

impl Specificity {
    pub(crate) const fn new(leading: usize, chars: usize, exact: bool) -> Self {
        Self { leading, chars, exact }
    }

    /// How many words of a command, or segments of a path, are fixed.
    pub(crate) const fn leading(self) -> usize {
        self.leading
    }
}

/// One kind of resource and the patterns over it, any of which may match.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "ResourceText", into = "ResourceText")]
pub enum ResourcePattern {
    /// Whatever is touched. As an allow it still does not reach opaque resources.
    Any,
    Path(Vec<PathPattern>),
    Argv(Vec<ArgvPattern>),
    Host(Vec<HostPattern>),
    /// Names of one kind.
    Named(NamedKind, Vec<WordPattern>),
    /// What analysis could not name.
    Opaque,
}

/// The stored form; also what a rule's fingerprint is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResourceText {
    Any,
    Path(Vec<String>),
    Argv(Vec<Vec<String>>),
    Host(Vec<String>),
    Opaque,
    /// By the word of its one kind.
    #[serde(untagged)]
    Named(BTreeMap<NamedKind, Vec<String>>),
}

impl ResourcePattern {
    /// Exactly these paths.
    pub fn paths<'a>(canonical: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Path(canonical.into_iter().map(PathPattern::literal).collect())
    }

    /// Whether the pattern, or one of several, fits.
    pub(crate) fn fits(&self, subject: &Subject) -> bool {
        match (self, subject) {
            (Self::Any, _) | (Self::Opaque, Subject::Opaque) => true,
            (Self::Path(all), Subject::Path(path)) => all.iter().any(|p| p.matches(path)),
            (Self::Argv(all), Subject::Argv(argv)) => all.iter().any(|p| p.matches(argv)),
            (Self::Host(all), Subject::Host(host)) => all.iter().any(|p| p.matches(host)),
            (Self::Named(ours, all), Subject::Named(kind, name)) => ours == kind && all.iter().any(|p| p.matches(name)),
            _ => false,
        }
    }

    /// Closer than [`Self::Any`]: whoever wrote it meant it.
    pub(crate) const OPAQUE_FIT: Specificity = Specificity::new(0, 0, true);

    /// Whether an allow with this pattern may hold for `subject`: the floor of tool-contract 13.1.
    pub(crate) fn may_allow(&self, subject: &Subject) -> bool {
        *subject != Subject::Opaque || matches!(self, Self::Opaque)
    }
}

fn texts<T: fmt::Display>(all: &[T]) -> Vec<String> {
    let mut out: Vec<String> = all.iter().map(ToString::to_string).collect();
    out.sort();
    out.dedup();
    out
}

/// Equal in meaning: the order of a list has none.
impl PartialEq for ResourcePattern {
    fn eq(&self, other: &Self) -> bool {
        ResourceText::from(self) == ResourceText::from(other)
    }
}

impl Eq for ResourcePattern {}

/// Lists are sorted: their order has no meaning, so that it must not change a fingerprint.
impl From<ResourcePattern> for ResourceText {
    fn from(pattern: ResourcePattern) -> Self {
        Self::from(&pattern)
    }
}

impl From<&ResourcePattern> for ResourceText {
    fn from(pattern: &ResourcePattern) -> Self {
        match pattern {
            ResourcePattern::Any => Self::Any,
            ResourcePattern::Path(all) => Self::Path(texts(all)),
            ResourcePattern::Argv(all) => {
                let mut all: Vec<_> = all.iter().map(ArgvPattern::to_words).collect();
                all.sort();
                all.dedup();
                Self::Argv(all)
            }
            ResourcePattern::Host(all) => Self::Host(texts(all)),
            ResourcePattern::Named(kind, all) => Self::Named(BTreeMap::from([(*kind, texts(all))])),
            ResourcePattern::Opaque => Self::Opaque,
        }
    }
}

impl TryFrom<ResourceText> for ResourcePattern {
    type Error = PatternError;

    fn try_from(text: ResourceText) -> Result<Self, PatternError> {
        Ok(match text {
            ResourceText::Any => Self::Any,
            ResourceText::Path(all) => Self::Path(parsed(&all, PathPattern::parse)?),
            ResourceText::Argv(all) => Self::Argv(all.into_iter().map(ArgvPattern::parse).collect::<Result<_, _>>()?),
            ResourceText::Host(all) => Self::Host(parsed(&all, HostPattern::parse)?),
            ResourceText::Opaque => Self::Opaque,
            ResourceText::Named(mut kinds) => match (kinds.pop_first(), kinds.is_empty()) {
                (Some((kind, all)), true) => Self::Named(kind, parsed(&all, WordPattern::parse)?),
                _ => return Err(PatternError::Kinds),
            },
        })
    }
}

fn parsed<T>(all: &[String], parse: impl Fn(&str) -> Result<T, PatternError>) -> Result<Vec<T>, PatternError> {
    all.iter().map(|text| parse(text)).collect()
}

impl fmt::Display for ResourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: Vec<String>| all.join(", ");
        match self {
            Self::Any => f.write_str("any resource"),
            Self::Path(all) => write!(f, "path {}", list(texts(all))),
            Self::Argv(all) => write!(f, "argv {}", list(texts(all))),
            Self::Host(all) => write!(f, "host {}", list(texts(all))),
            Self::Named(kind, all) => write!(f, "{} {}", rule_key(*kind), list(texts(all))),
            Self::Opaque => f.write_str("opaque"),
        }
    }
}
