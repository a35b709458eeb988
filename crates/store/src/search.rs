//! Full text: what of an event can be found, what a query means, and what is shown of a hit. Pure functions, so that
//! every backend finds the same; an index only says where to look.
//!
//! A *word* is a run of letters and digits, in lower case; each ideograph is a word of its own, as it is written
//! without gaps. There are no operators: any text a person types is a query.

use portcullis_base::{SessionId, Timestamp};
use portcullis_event::{Event, EventType};
use serde_json::Value;

/// Words of a query: more is a pasted document.
const QUERY_WORDS: usize = 64;
/// Characters shown before and after what was found.
const BEFORE: usize = 40;
const AFTER: usize = 100;

/// Phrases that must all occur in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Each has at least one word; words are separated by one space.
    phrases: Vec<String>,
}

/// Why a text is no query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("there is no letter or digit to search for")]
    NoWords,
    #[error("a search takes at most {QUERY_WORDS} words")]
    TooLong,
}

/// An event that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub session_id: SessionId,
    pub seq: u64,
    pub at: Timestamp,
    pub kind: EventType,
    pub snippet: Snippet,
}

/// The surroundings of the first thing that was found, as recorded: control characters included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub before: String,
    pub found: String,
    pub after: String,
}

impl Query {
    /// Every item is a phrase: its words must occur beside each other. Items without a word mean nothing.
    ///
    /// # Errors
    /// If there is no word at all, or too many.
    pub fn new<T: AsRef<str>>(items: &[T]) -> Result<Self, QueryError> {
        let phrases: Vec<String> =
            items.iter().map(|item| folded(item.as_ref())).filter(|phrase| !phrase.is_empty()).collect();
        match phrases.iter().map(|phrase| phrase.split(' ').count()).sum::<usize>() {
            0 => Err(QueryError::NoWords),
            n if n > QUERY_WORDS => Err(QueryError::TooLong),
            _ => Ok(Self { phrases }),
        }
    }

    /// The phrases, in words separated by one space.
    #[must_use]
    pub fn phrases(&self) -> &[String] {
        &self.phrases
    }

    /// What of an event answers this query; `None` if it does not, or its payload was erased.
    #[must_use]
    pub fn hit(&self, session_id: SessionId, event: &Event) -> Option<Hit> {
        let payload = event.payload.as_deref()?;
        let text = format!(" {} ", searchable(payload));
        let all = self.phrases.iter().all(|phrase| text.contains(&format!(" {phrase} ")));
        all.then(|| Hit {
            session_id,
            seq: event.seq,
            at: event.at,
            kind: event.kind.clone(),
            snippet: self.snippet(payload),
        })
    }

    /// Around the first value that holds a whole phrase, else around the first word of one.
    fn snippet(&self, payload: &str) -> Snippet {
        let mut shown = None;
        each_value(payload, &mut |value| {
            shown = shown.take().or_else(|| self.phrases.iter().find_map(|phrase| around(value, phrase)));
        });
        if shown.is_none() {
            // A phrase may begin in one value and end in the next.
            let first = self.phrases[0].split(' ').next().unwrap_or_default();
            each_value(payload, &mut |value| shown = shown.take().or_else(|| around(value, first)));
        }
        shown.unwrap_or(Snippet { before: String::new(), found: String::new(), after: String::new() })
    }
}

/// The words of a payload that can be found: those of every string and number in it, not the names of its fields, which
/// every event of a type shares. Separated by one space.
#[must_use]
pub fn searchable(payload: &str) -> String {
    let mut text = String::with_capacity(payload.len());
    each_value(payload, &mut |value| {
        each_word(value, |_, _, word| {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        });
    });
    text
}

fn each_value(payload: &str, visit: &mut dyn FnMut(&str)) {
    match serde_json::from_str::<Value>(payload) {
        Ok(value) => leaves(&value, visit),
        // A payload of the future may be no JSON; its text is still text.
        Err(_) => visit(payload),
    }
}

fn leaves(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Number(number) => visit(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, visit)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn folded(text: &str) -> String {
    let mut words = String::new();
    each_word(text, |_, _, word| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    });
    words
}

/// Each word with where it begins and ends.
fn each_word(text: &str, mut visit: impl FnMut(usize, usize, &str)) {
    let mut word = String::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let alone = is_ideograph(c);
        if (alone || !c.is_alphanumeric()) && !word.is_empty() {
            visit(start, at, &word);
            word.clear();
        }
        if alone {
            visit(at, at + c.len_utf8(), c.encode_utf8(&mut [0; 4]));
        } else if c.is_alphanumeric() {
            if word.is_empty() {
                start = at;
            }
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        visit(start, text.len(), &word);
    }
}

/// Scripts written without gaps between words.
fn is_ideograph(c: char) -> bool {
    c.is_alphanumeric()
        && matches!(u32::from(c), 0x0E00..=0x0EFF | 0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Where the words of `phrase` stand beside each other in `text`.
fn around(text: &str, phrase: &str) -> Option<Snippet> {
    let wanted: Vec<&str> = phrase.split(' ').collect();
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(wanted.len());
    let mut words: Vec<String> = Vec::with_capacity(wanted.len());
    let mut found = None;
    each_word(text, |start, end, word| {
        if found.is_some() {
            return;
        }
        if words.len() == wanted.len() {
            words.remove(0);
            places.remove(0);
        }
        words.push(word.to_owned());
        places.push((start, end));
        if words == wanted {
            found = Some((places[0].0, end));
        }
    });
    let (start, end) = found?;
    let (from, _) = text[..start].char_indices().rev().take(BEFORE).last().unwrap_or((start, ' '));
    let to = text[end..].char_indices().nth(AFTER).map_or(text.len(), |(at, _)| end + at);
    Some(Snippet {
        before: text[from..start].to_owned(),
        found: text[start..end].to_owned(),
        after: text[end..to].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_letters_and_digits_whatever_their_case_and_an_ideograph_is_one() {
        assert_eq!(folded("  Src/MAIN.rs:42 — \"x\"\0y* ÉTÉ"), "src main rs 42 x y été");
        assert_eq!(folded("日本go語"), "日 本 go 語");
        assert_eq!(folded("-*\"'():^"), "");
    }

    #[test]
    fn names_of_fields_are_not_found_and_values_at_any_depth_are() {
        assert_eq!(searchable(r#"{"path":"a.rs","n":[1.5,{"deep":"Two words"}],"ok":true}"#).split(' ').count(), 6);
        assert!(!searchable(r#"{"path":"a.rs"}"#).contains("path"));
        assert_eq!(searchable("no JSON at all"), "no json at all");
    }

    #[test]
    fn a_query_without_words_or_with_too_many_is_none() {
        assert_eq!(Query::new(&["--", "\""]), Err(QueryError::NoWords));
        assert_eq!(Query::new::<&str>(&[]), Err(QueryError::NoWords));
        assert_eq!(Query::new(&["a "; 65]), Err(QueryError::TooLong));
        assert_eq!(Query::new(&["--", "x OR y"]).map(|q| q.phrases), Ok(vec!["x or y".to_owned()]));
    }

    #[test]
    fn a_snippet_shows_the_phrase_with_its_surroundings_as_recorded() {
        let text = format!("{}\u{1b}[1mno match: Parse  Config.\n{}", "é".repeat(90), "z".repeat(200));
        let shown = around(&text, "parse config").expect("it is there");
        assert_eq!(shown.found, "Parse  Config");
        assert!(shown.before.ends_with("\u{1b}[1mno match: ") && shown.before.chars().count() == BEFORE);
        assert_eq!(shown.after.chars().count(), AFTER);
        assert_eq!(around(&text, "config parse"), None);
    }
}
