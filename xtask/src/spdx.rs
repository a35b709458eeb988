//! SPDX licence expressions, as far as crates use them: `AND`, `OR`, `WITH`, brackets, and the old `/` for `OR`.

use std::fmt;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// One licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

/// Why an expression could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a licence expression: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

impl Expression {
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut tokens = Tokens { all: tokens(text), next: 0 };
        let expression = tokens.any()?;
        match tokens.peek() {
            None => Ok(expression),
            Some(extra) => Err(Unreadable(format!("`{extra}` is not expected in `{text}`"))),
        }
    }

    /// Whether the licences that `allowed` accepts are enough: one side of an `OR`, every side of an `AND`.
    pub fn satisfied(&self, allowed: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(name) => allowed(name),
            Self::All(parts) => parts.iter().all(|part| part.satisfied(allowed)),
            Self::Any(parts) => parts.iter().any(|part| part.satisfied(allowed)),
        }
    }
}

fn tokens(text: &str) -> Vec<String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Tokens {
    all: Vec<String>,
    next: usize,
}

impl Tokens {
    fn peek(&self) -> Option<&str> {
        self.all.get(self.next).map(String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        if found {
            self.next += 1;
        }
        found
    }

    /// `OR` binds loosest.
    fn any(&mut self) -> Result<Expression, Unreadable> {
        let first = self.all_of()?;
        let mut parts = vec![first];
        while self.take("OR") {
            parts.push(self.all_of()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all_of(&mut self) -> Result<Expression, Unreadable> {
        let first = self.term()?;
        let mut parts = vec![first];
        while self.take("AND") {
            parts.push(self.term()?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn term(&mut self) -> Result<Expression, Unreadable> {
        if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                return Err(Unreadable("a bracket is not closed".to_owned()));
            }
            return Ok(inner);
        }
        let licence = self.word()?;
        if self.take("WITH") {
            let exception = self.word()?;
            return Ok(Expression::Licence(format!("{licence} WITH {exception}")));
        }
        Ok(Expression::Licence(licence))
    }

    fn word(&mut self) -> Result<String, Unreadable> {
        let word = match self.peek() {
            None => return Err(Unreadable("it ends where a licence is expected".to_owned())),
            Some(word @ ("AND" | "OR" | "WITH" | "(" | ")")) => {
                return Err(Unreadable(format!("`{word}` stands where a licence is expected")));
            }
            Some(word) => word.to_owned(),
        };
        self.next += 1;
        Ok(word)
    }
}

fn one_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 { parts.remove(0) } else { many(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(text: &str) -> Result<bool, Unreadable> {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"];
        Ok(Expression::parse(text)?.satisfied(&|name| allowed.contains(&name)))
    }

    #[test]
    fn an_or_needs_one_side_and_an_and_needs_every_side() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT AND Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only / MPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("MIT WITH Odd-exception", false),
            ("(MIT OR Apache-2.0) AND ISC", true),
            ("(MIT OR Apache-2.0) AND MPL-2.0", false),
            // AND binds tighter than OR: MIT OR (ISC AND MPL-2.0), (GPL AND MIT) OR ISC.
            ("MIT OR ISC AND MPL-2.0", true),
            ("GPL-3.0-only AND MIT OR ISC", true),
            ("MPL-2.0 AND MIT OR MPL-2.0", false),
            ("((MIT))", true),
        ];
        for (text, expected) in cases {
            assert_eq!(permitted(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH", "()"] {
            assert!(permitted(text).is_err(), "{text:?} was read");
        }
    }
}
