//! Patterns of names and paths, as `glob` takes them.

use globset::GlobBuilder;
use portcullis_contract::Precondition;
use regex::bytes::{Regex, RegexBuilder};

/// What a compiled pattern may take; a larger one is refused.
const COMPILED_MAX: usize = 10 << 20;

/// A pattern without `/` speaks of names at any depth, another one of paths: relative to the place
/// that is looked through, or from the top if it begins with `/`.
#[derive(Debug)]
pub(crate) struct NamePattern {
    of: PathForm,
    regex: Regex,
    /// The names that every match begins with.
    lead: Vec<String>,
}

/// The form of a path that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathForm {
    Name,
    Relative,
    Absolute,
}

impl NamePattern {
    /// Reads a pattern: `*` and `?` stay inside a name, `**` crosses them, `[…]` and `{…,…}` choose.
    ///
    /// # Errors
    /// `schema_invalid` if it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Precondition> {
        let bad = |why: &dyn std::fmt::Display| Precondition::schema("/pattern", format!("not a glob: {why}"));
        let text = text.trim().trim_start_matches("./");
        let of = match text {
            _ if text.starts_with('/') => PathForm::Absolute,
            _ if text.contains('/') => PathForm::Relative,
            _ => PathForm::Name,
        };
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| bad(error.kind()))?;
        // One character of a name, of any width: globset itself would take a byte for it.
        let expression = glob.regex().replace("[^/]", "(?u:[^/])");
        let regex = RegexBuilder::new(&expression).size_limit(COMPILED_MAX).build().map_err(|error| bad(&error))?;
        let literal = |name: &&str| !name.contains(['*', '?', '[', ']', '{', '}', '\\', ',']);
        let names: Vec<&str> = text.split('/').collect();
        let lead = match of {
            PathForm::Relative => names[..names.len() - 1].iter().copied().take_while(literal).collect(),
            PathForm::Name | PathForm::Absolute => Vec::new(),
        };
        Ok(Self { of, regex, lead: lead.into_iter().map(ToOwned::to_owned).collect() })
    }

    /// Every path that holds `text`, in upper or lower case.
    ///
    /// # Errors
    /// `schema_invalid` if it is too long.
    pub(crate) fn holding(text: &str) -> Result<Self, Precondition> {
        let bad = |why: regex::Error| Precondition::schema("/query", format!("it cannot be looked for: {why}"));
        let expression = regex::escape(text.trim());
        let regex = RegexBuilder::new(&expression).case_insensitive(true).size_limit(COMPILED_MAX).build();
        Ok(Self { of: PathForm::Relative, regex: regex.map_err(bad)?, lead: Vec::new() })
    }

    /// Whether an entry is meant. `parents` ends with `/`, or is empty.
    pub(crate) fn matches(&self, parents: &str, name: &str, path: impl FnOnce() -> String) -> bool {
        match self.of {
            PathForm::Name => self.regex.is_match(name.as_bytes()),
            PathForm::Relative => self.regex.is_match(format!("{parents}{name}").as_bytes()),
            PathForm::Absolute => self.regex.is_match(path().as_bytes()),
        }
    }

    /// Whether something in this directory can be meant.
    pub(crate) fn reaches_into(&self, relative: &str) -> bool {
        relative.split('/').zip(&self.lead).all(|(name, lead)| name == lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, relative: &str) -> bool {
        let (parents, name) = relative.rfind('/').map_or(("", relative), |at| relative.split_at(at + 1));
        let pattern = NamePattern::parse(pattern).expect("a pattern");
        pattern.matches(parents, name, || format!("/workspace/{relative}"))
    }

    #[test]
    fn stars_stay_inside_a_name_and_two_cross_them() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "other/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/x/y/a.rs", true),
            ("**/a.rs", "a.rs", true),
            ("./src/*", "src/a", true),
            ("/workspace/src/*", "src/a", true),
            ("?.txt", "ä.txt", true),
            ("?.txt", "🦀.txt", true),
            ("?.txt", "ab.txt", false),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("[ab].rs", "b.rs", true),
            ("ä*", "ärger", true),
            ("*", ".hidden", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
        assert!(NamePattern::parse("a[").is_err());
        let beneath = NamePattern::parse("a/b/*.rs").expect("a pattern");
        assert!(beneath.reaches_into("a") && beneath.reaches_into("a/b") && beneath.reaches_into("a/b/c"));
        assert!(!beneath.reaches_into("c") && !beneath.reaches_into("a/c"));
    }
}
