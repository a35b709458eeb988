//! Reading TOML tables strictly: every key known, every fault with its line.

use portcullis_base::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{PolicyError, Problem, RuleSource};

/// A text with its name, which turns offsets into lines.
pub(crate) struct Document<'t> {
    pub(crate) file: &'t str,
    text: &'t str,
}

impl<'t> Document<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text }
    }

    /// The whole text as a table.
    pub(crate) fn parse(&self) -> Result<DeTable<'t>, PolicyError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|e| {
            let offset = e.span().map_or(0, |span| span.start);
            self.fault(offset, Problem::Syntax(e.message().replace('\n', "; ")))
        })
    }

    pub(crate) fn source(&self, offset: usize) -> RuleSource {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        RuleSource { file: self.file.to_owned(), line }
    }

    pub(crate) fn fault(&self, offset: usize, problem: Problem) -> PolicyError {
        PolicyError::at(&self.source(offset), problem)
    }

    /// Refuses any key of `table` that is not one of `known`.
    pub(crate) fn only_known(&self, table: &DeTable<'_>, known: &[&'static str]) -> Result<(), PolicyError> {
        let mut unknown: Vec<_> = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        match unknown.first() {
            None => Ok(()),
            Some(key) => {
                let nearest = nearest(key.get_ref(), known.iter().copied()).unwrap_or("rules");
                let key_text = key.get_ref().to_string();
                Err(self.fault(key.span().start, Problem::UnknownKey { key: key_text, nearest }))
            }
        }
    }

    pub(crate) fn wrong_type(&self, value: &Spanned<DeValue<'_>>, key: &str, wanted: &'static str) -> PolicyError {
        self.fault(value.span().start, Problem::WrongType { key: key.to_owned(), wanted })
    }

    /// The text of a string value.
    pub(crate) fn text<'v>(&self, value: &'v Spanned<DeValue<'_>>, key: &str) -> Result<&'v str, PolicyError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong_type(value, key, "a string")),
        }
    }

    pub(crate) fn flag(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<bool, PolicyError> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.wrong_type(value, key, "true or false")),
        }
    }
}
