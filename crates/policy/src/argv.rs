//! Patterns over the words of a command.

use std::fmt;

use crate::glob::MAX_PATTERN_BYTES;
use crate::{PatternError, Specificity};

/// Ends a written pattern that allows no further words.
const END: &str = "$";

/// The words a command begins with, compared word by word: no globs, no substrings.
///
/// Written as an array of words. A last word `"$"` means that nothing may follow:
/// `["git", "status"]` also matches `git status -s`, `["git", "status", "$"]` does not. A last word
/// that is really `$` is written `"\\$"` (one backslash more for each it has itself).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArgvPattern {
    words: Vec<String>,
    exact: bool,
}

impl ArgvPattern {
    /// Reads the words as a person writes them.
    ///
    /// # Errors
    /// If no word is left to compare.
    pub fn parse(mut words: Vec<String>) -> Result<Self, PatternError> {
        let exact = words.last().is_some_and(|last| last == END);
        if exact {
            words.pop();
        } else if let Some(last) = words.last_mut()
            && is_escaped_end(last)
        {
            last.remove(0);
        }
        if words.is_empty() {
            return Err(if exact { PatternError::NoWords } else { PatternError::Empty });
        }
        if words.iter().map(String::len).sum::<usize>() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong { max: MAX_PATTERN_BYTES });
        }
        Ok(Self { words, exact })
    }

    /// Exactly these words and no more, whatever characters they hold; `None` without any word.
    #[must_use]
    pub fn exactly(words: &[String]) -> Option<Self> {
        (!words.is_empty()).then(|| Self { words: words.to_vec(), exact: true })
    }

    /// The words as [`Self::parse`] reads them back.
    #[must_use]
    pub fn to_words(&self) -> Vec<String> {
        let mut out = self.words.clone();
        if self.exact {
            out.push(END.to_owned());
        } else if let Some(last) = out.last_mut()
            && (last == END || is_escaped_end(last))
        {
            last.insert(0, '\\');
        }
        out
    }

    /// Whether the command `argv` is one of those meant.
    pub(crate) fn matches(&self, argv: &[String]) -> bool {
        argv.starts_with(&self.words) && (!self.exact || argv.len() == self.words.len())
    }

    /// Whether nothing may follow its words.
    pub(crate) const fn is_exact(&self) -> bool {
        self.exact
    }

    /// The words that are compared.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The same pattern with its first word written as these.
    pub(crate) fn beginning_with(&self, words: &[String]) -> Self {
        Self { words: [words, self.words.get(1..).unwrap_or(&[])].concat(), exact: self.exact }
    }

    /// The same pattern with other words.
    pub(crate) const fn with_words(&self, words: Vec<String>) -> Self {
        Self { words, exact: self.exact }
    }

    /// Every command meant begins with this word.
    pub(crate) fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let chars = self.words.iter().map(|word| word.chars().count()).sum();
        Specificity::new(self.words.len(), chars, self.exact)
    }
}

/// One or more backslashes and then `$`.
fn is_escaped_end(word: &str) -> bool {
    word.strip_suffix('$').is_some_and(|head| !head.is_empty() && head.bytes().all(|b| b == b'\\'))
}

impl fmt::Display for ArgvPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = serde_json::to_string(&self.to_words()).map_err(|_| fmt::Error)?;
        f.write_str(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn l33_argv_text_is_read_back_as_the_same_words(
            words in proptest::collection::vec("[a$\\\\]{0,3}", 1..4), exact: bool,
        ) {
            let pattern = ArgvPattern { words, exact };
            prop_assert_eq!(ArgvPattern::parse(pattern.to_words()), Ok(pattern));
        }
    }
}
