//! Patterns over a single word: the action of a request, the name of an MCP tool.

use std::fmt;
use std::sync::OnceLock;

use portcullis_contract::Action;
use serde::{Deserialize, Serialize};

use crate::glob::{self, Token};
use crate::{PatternError, Specificity};

/// A glob over one word. `*` stands for any characters, also for none.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WordPattern {
    text: String,
    tokens: Vec<Token>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Any,
    Literal(String),
    Wild(OnceLock<regex::Regex>),
}

impl WordPattern {
    /// Reads a pattern as a person writes it.
    ///
    /// # Errors
    /// If it is empty, too long, or uses what the language does not have.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        glob::check_size(text)?;
        Ok(Self::of(glob::tokens(text)?))
    }

    /// Exactly `word`, whatever characters it holds.
    #[must_use]
    pub fn literal(word: &str) -> Self {
        Self::of(glob::literal_tokens(word))
    }

    fn of(tokens: Vec<Token>) -> Self {
        let mut text = String::new();
        glob::render(&tokens, &mut text);
        let kind = match glob::as_literal(&tokens) {
            _ if tokens == [Token::Many] => Kind::Any,
            Some(word) => Kind::Literal(word),
            None => Kind::Wild(OnceLock::new()),
        };
        Self { text, tokens, kind }
    }

    /// Whether `word` is one of those meant.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        match &self.kind {
            Kind::Any => true,
            Kind::Literal(literal) => literal == word,
            Kind::Wild(regex) => regex
                .get_or_init(|| {
                    let mut body = String::new();
                    glob::push_regex(&self.tokens, ".", &mut body);
                    glob::compile(&body)
                })
                .is_match(word),
        }
    }

    /// The one word meant, if there is only one.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match &self.kind {
            Kind::Literal(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let exact = self.as_literal().is_some();
        Specificity::new(usize::from(exact), glob::literal_chars(&self.tokens), exact)
    }

    /// The pattern as text that [`Self::parse`] reads back.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for WordPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for WordPattern {}

impl fmt::Debug for WordPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl fmt::Display for WordPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for WordPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<WordPattern> for String {
    fn from(pattern: WordPattern) -> Self {
        pattern.text
    }
}

/// Which actions a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionPattern(WordPattern);

impl ActionPattern {
    /// Reads `read`, `*`, `shell_*`.
    ///
    /// # Errors
    /// See [`WordPattern::parse`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        WordPattern::parse(text).map(Self)
    }

    /// Exactly this action.
    #[must_use]
    pub fn literal(action: &Action) -> Self {
        Self(WordPattern::literal(action.as_str()))
    }

    /// The one action meant, if it is one.
    pub(crate) fn literal_word(&self) -> Option<&str> {
        self.0.as_literal()
    }

    /// Whether `action` is one of those meant.
    #[must_use]
    pub fn matches(&self, action: &Action) -> bool {
        self.0.matches(action.as_str())
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for ActionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
