//! Patterns over canonical virtual paths.

use std::fmt;
use std::sync::OnceLock;

use crate::glob::{self, Token};
use crate::{PatternError, Specificity};

/// Where the workspace stands among the virtual paths; relative patterns are beneath it.
pub const WORKSPACE: &str = "/workspace";

/// A path pattern: segments of names with `*` and `?`, and `**` for any number of segments.
///
/// `*` and `?` stay inside a segment. `x/**` is `x` and everything beneath it, at any depth:
/// a rule that closes a folder closes the folder itself, too.
#[derive(Clone)]
pub struct PathPattern {
    text: String,
    segments: Vec<Segment>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// `**`
    Deep,
    Name(Vec<Token>),
}

/// How the pattern is matched: most need no expression.
#[derive(Debug, Clone)]
enum Kind {
    /// One path.
    Literal(String),
    /// A path and all beneath it.
    Beneath(String),
    /// `prefix` are the literal segments it begins with, `suffix` the characters it must end in,
    /// `depth` the number of its segments unless `**` leaves that open. All are quick to check.
    Wild { prefix: String, suffix: String, depth: Option<usize>, regex: OnceLock<regex::Regex> },
}

impl PathPattern {
    /// Reads a pattern as a person writes it; a relative one is taken beneath [`WORKSPACE`].
    ///
    /// # Errors
    /// If it is empty, too long, not canonical, or uses what the language does not have.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        glob::check_size(text)?;
        if text.starts_with('~') {
            return Err(PatternError::Home);
        }
        let anchored = match text.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None => format!("{}/{}", &WORKSPACE[1..], text.strip_prefix("./").unwrap_or(text)),
        };
        if anchored.is_empty() {
            return Ok(Self::of(Vec::new()));
        }
        let mut segments = Vec::new();
        for name in anchored.split('/') {
            match name {
                "" | "." | ".." => return Err(PatternError::Segment),
                "**" => {
                    if segments.last() != Some(&Segment::Deep) {
                        segments.push(Segment::Deep);
                    }
                }
                name => segments.push(Segment::Name(glob::tokens(name)?)),
            }
        }
        Ok(Self::of(segments))
    }

    /// Exactly the path `canonical`, whatever characters it holds: a `*` in a file's name stays one.
    #[must_use]
    pub fn literal(canonical: &str) -> Self {
        let names = canonical.split('/').filter(|name| !name.is_empty());
        Self::of(names.map(|name| Segment::Name(glob::literal_tokens(name))).collect())
    }

    fn of(segments: Vec<Segment>) -> Self {
        let mut text = String::new();
        for segment in &segments {
            text.push('/');
            match segment {
                Segment::Deep => text.push_str("**"),
                Segment::Name(tokens) => glob::render(tokens, &mut text),
            }
        }
        if text.is_empty() {
            text.push('/');
        }
        let literal = segments.iter().map_while(Segment::as_literal).collect::<Vec<_>>();
        let prefix: String = literal.iter().flat_map(|name| ["/", name]).collect();
        let kind = if literal.len() == segments.len() {
            Kind::Literal(prefix)
        } else if literal.len() + 1 == segments.len() && segments.last() == Some(&Segment::Deep) {
            Kind::Beneath(prefix)
        } else {
            Kind::Wild {
                prefix,
                suffix: suffix_of(&segments),
                depth: (!segments.contains(&Segment::Deep)).then_some(segments.len()),
                regex: OnceLock::new(),
            }
        };
        Self { text, segments, kind }
    }

    /// Whether it is a folder with all that is beneath it.
    pub(crate) const fn is_beneath(&self) -> bool {
        matches!(self.kind, Kind::Beneath(_))
    }

    /// Whether the canonical `path` is one of those meant. The root is the empty text.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match &self.kind {
            Kind::Literal(literal) => literal == path,
            Kind::Beneath(folder) => {
                path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Kind::Wild { suffix, depth, regex, .. } => {
                path.ends_with(suffix.as_str())
                    && depth.is_none_or(|depth| path.matches('/').count() == depth)
                    && regex.get_or_init(|| glob::compile(&self.expression())).is_match(path)
            }
        }
    }

    fn expression(&self) -> String {
        let mut out = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Deep => out.push_str("(?:/[^/]+)*"),
                Segment::Name(tokens) => {
                    out.push('/');
                    glob::push_regex(tokens, "[^/]", &mut out);
                }
            }
        }
        out
    }

    /// The path all matches are or lie beneath, and whether it is itself the only match.
    #[must_use]
    pub fn anchor(&self) -> (&str, bool) {
        match &self.kind {
            Kind::Literal(path) => (path, true),
            Kind::Beneath(path) | Kind::Wild { prefix: path, .. } => (path, false),
        }
    }

    /// Whether what it matches beneath the folder `root` still matches when folders between the two get other names:
    /// `/root/**/NAME` does, `/root/folder/NAME` does not.
    #[must_use]
    pub fn outlasts_renames_beneath(&self, root: &str) -> bool {
        let literal = self.segments.iter().map_while(Segment::as_literal).count();
        let by_name = matches!(
            self.segments[literal..],
            [Segment::Deep, Segment::Name(_)] | [Segment::Deep, Segment::Name(_), Segment::Deep]
        );
        by_name && root.strip_prefix(self.anchor().0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let leading = self.segments.iter().map_while(Segment::as_literal).count();
        let chars = self
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Deep => 0,
                Segment::Name(tokens) => glob::literal_chars(tokens),
            })
            .sum();
        Specificity::new(leading, chars, matches!(self.kind, Kind::Literal(_)))
    }

    /// The pattern as absolute text that [`Self::parse`] reads back.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Segment {
    fn as_literal(&self) -> Option<String> {
        match self {
            Self::Deep => None,
            Self::Name(tokens) => glob::as_literal(tokens),
        }
    }
}

/// The literal characters after the last wildcard, inside the last segment.
fn suffix_of(segments: &[Segment]) -> String {
    let Some(Segment::Name(tokens)) = segments.last() else {
        return String::new();
    };
    let wild = tokens.iter().rposition(|token| !matches!(token, Token::Literal(_)));
    glob::as_literal(&tokens[wild.map_or(0, |at| at + 1)..]).unwrap_or_default()
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check38_only_a_pattern_by_name_alone_outlasts_a_folder_that_is_renamed() {
        let outlasts =
            |pattern: &str, root: &str| PathPattern::parse(pattern).expect("a pattern").outlasts_renames_beneath(root);
        for pattern in ["**/.env", "**/*.pem", "/workspace/**/.env", "**/secrets/**", "/**/.env"] {
            assert!(outlasts(pattern, "/workspace"), "{pattern}");
        }
        for pattern in [".env", "conf/.env", "conf/**", "conf/**/.env", "**/conf/.env", "*/.env", "**/a*/**/b"] {
            assert!(!outlasts(pattern, "/workspace"), "{pattern}");
        }
        assert!(!outlasts("**/.env", "/data") && !outlasts("/work/**/.env", "/workspace"));
    }
}
