//! The beginning or the end of an id in place of the whole one, where it fits only one. Ids of one hour begin alike; their ends
//! differ.

use portcullis_base::Timestamp;
use portcullis_store::AskFilter;

use super::{Archive, AskViewError};

/// Sessions that a part is looked for in, newest first.
const LOOKED_AT: usize = 100_000;
/// Ids that an error names.
const NAMED: usize = 5;

/// Which ids a word may be a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// Those of sessions.
    Session,
    /// Those of asks.
    Ask,
}

/// A part that is not of one id alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdPartError {
    /// It fits none.
    #[error("no id begins or ends with {0}")]
    Unknown(String),
    /// It fits several.
    #[error(
        "{} ids begin or end with {part}: {}{}; give more of the one you mean, such as its end",
        .ids.len(),
        .ids[..ids.len().min(NAMED)].join(", "),
        if ids.len() > NAMED { ", …" } else { "" }
    )]
    Several {
        /// The part.
        part: String,
        /// The ids that it fits.
        ids: Vec<String>,
    },
}

/// Whether a word is the beginning or, with or without the prefix, the end of an id.
#[must_use]
pub fn fits(id: &str, part: &str) -> bool {
    let Some((prefix, rest)) = id.split_once('_') else { return false };
    match part.split_once('_') {
        Some((given, part)) => given == prefix && (rest.starts_with(part) || rest.ends_with(part)),
        None => rest.ends_with(part),
    }
}

/// The one id that begins or ends so.
///
/// # Errors
/// If none does, or several do.
pub fn only_id(part: &str, all: Vec<String>) -> Result<String, IdPartError> {
    let mut ids: Vec<String> = all.into_iter().filter(|id| fits(id, part)).collect();
    match ids.len() {
        0 => Err(IdPartError::Unknown(part.to_owned())),
        1 => Ok(ids.remove(0)),
        _ => Err(IdPartError::Several { part: part.to_owned(), ids }),
    }
}

impl Archive {
    /// The ids that a part may be of.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn ids(&self, kind: IdKind) -> Result<Vec<String>, AskViewError> {
        Ok(match kind {
            IdKind::Session => {
                self.sessions(LOOKED_AT).await?.iter().map(|session| session.session_id.to_string()).collect()
            }
            IdKind::Ask => {
                let all = self.store.asks(self.tenant, AskFilter { session: None, pending: false }).await?;
                all.iter().map(|ask| ask.ask_id.to_string()).collect()
            }
        })
    }

    /// The same for somebody who answers: asks that wait, if the part fits one of those, before any other.
    ///
    /// # Errors
    /// If a log does not hold what its row says, or the store cannot be read.
    pub async fn ids_to_answer(&self, part: &str, now: Timestamp) -> Result<Vec<String>, AskViewError> {
        let waiting: Vec<String> = self.pending_asks(now).await?.iter().map(|ask| ask.row.ask_id.to_string()).collect();
        if waiting.iter().any(|id| fits(id, part)) {
            return Ok(waiting);
        }
        self.ids(IdKind::Ask).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_that_fits_several_names_them() {
        let all = || vec!["ask_01a".to_owned(), "ask_01b".to_owned(), "ask_02a".to_owned()];
        assert_eq!(only_id("ask_02", all()).expect("one"), "ask_02a");
        assert_eq!(only_id("1b", all()).expect("one"), "ask_01b");
        assert_eq!(only_id("ask_1b", all()).expect("one"), "ask_01b");
        let told = |part| only_id(part, all()).expect_err("not one").to_string();
        assert!(told("ask_01").starts_with("2 ids begin or end with ask_01: ask_01a, ask_01b; give more"));
        assert!(told("ask_").starts_with("3 ids "), "nothing but the prefix fits all");
        assert_eq!(told("ask_9"), "no id begins or ends with ask_9");
    }
}
