//! Takes known secrets out of text, bytes and JSON before anything is written (SA-36, L69).
//!
//! Every place where some shape of some secret matches is covered; covered places that overlap or
//! touch become one mask. So two secrets that share characters leave no rest of either.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::forms::{FAMILIES, Form, forms};
use crate::stream::RedactingStream;
use crate::{MASK, MIN_REDACTED_BYTES};

/// Bytes of all secrets together: a few thousand tokens or some dozens of keys fit, a file passed off
/// as a secret does not. The search is built once a thread, and building takes time.
const MAX_SECRET_BYTES: usize = 128 << 10;
/// Memory one compiled expression may take; what [`MAX_SECRET_BYTES`] lets through stays below it.
const SEARCH_BYTES: usize = 512 << 20;
/// Memory the search may use for what it has already seen.
const SEARCH_CACHE_BYTES: usize = 16 << 20;

/// The secrets are too many or too long to be looked for. Nothing may be written unredacted, so this
/// is for the caller to stop on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot redact {secrets} secrets of {bytes} bytes together: more than {MAX_SECRET_BYTES} cannot be searched for; keep large values in files and hand out their names"
)]
pub struct RedactorError {
    secrets: usize,
    bytes: usize,
}

/// Knows the secrets of a thread and masks them. Cheap to clone; with no secrets it costs nothing.
#[derive(Clone, Default)]
pub struct Redactor {
    search: Option<Arc<Search>>,
}

/// One expression for each family of shapes, over all secrets.
pub(crate) struct Search {
    families: Vec<Regex>,
    longest: usize,
}

impl Search {
    /// Bytes of the longest possible match.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    fn any(&self, text: &[u8]) -> bool {
        self.families.iter().any(|family| family.is_match(text))
    }

    /// Every match that starts before `end`, overlapping ones too, by start.
    pub(crate) fn matches(&self, text: &[u8], end: usize) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for family in &self.families {
            let mut from = 0;
            while let Some(found) = family.find_at(text, from).filter(|found| found.start() < end) {
                out.push((found.start(), found.end()));
                from = found.start() + 1;
            }
        }
        out.sort_unstable();
        out
    }
}

impl Redactor {
    /// Masks nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Masks `secrets`, except those shorter than [`MIN_REDACTED_BYTES`].
    ///
    /// # Errors
    /// If the secrets are too large to be searched for.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, RedactorError> {
        let mut families = [const { BTreeSet::<Form>::new() }; FAMILIES];
        let (mut count, mut bytes) = (0, 0);
        for secret in secrets {
            let secret = secret.as_ref();
            count += 1;
            bytes += secret.len();
            if bytes > MAX_SECRET_BYTES {
                return Err(RedactorError { secrets: count, bytes });
            }
            for (family, shapes) in families.iter_mut().zip(forms(secret)) {
                family.extend(shapes);
            }
        }
        let longest = families.iter().filter_map(|family| Some(family.last()?.longest)).max();
        let Some(longest) = longest else {
            return Ok(Self::none());
        };
        let compile = |family: &BTreeSet<Form>| {
            // Longest first: of two branches that match at one place the first written wins.
            let branches: Vec<&str> = family.iter().rev().map(|form| form.regex.as_str()).collect();
            RegexBuilder::new(&branches.join("|"))
                .unicode(false)
                .size_limit(SEARCH_BYTES)
                .dfa_size_limit(SEARCH_CACHE_BYTES)
                .build()
                // The error of the engine quotes the pattern, that is, the secrets.
                .map_err(|_| RedactorError { secrets: count, bytes })
        };
        let families = families.iter().filter(|family| !family.is_empty()).map(compile);
        let families = families.collect::<Result<_, _>>()?;
        Ok(Self { search: Some(Arc::new(Search { families, longest })) })
    }

    /// Whether there is nothing to mask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.search.is_none()
    }

    /// A stream that masks what is pushed through it.
    #[must_use]
    pub fn stream(&self) -> RedactingStream {
        RedactingStream::new(self.search.clone())
    }

    /// `bytes` with every secret masked; borrowed if there was none.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(search) = &self.search else {
            return Cow::Borrowed(bytes);
        };
        if !search.any(bytes) {
            return Cow::Borrowed(bytes);
        }
        let mut stream = self.stream();
        let mut out = stream.push(bytes);
        out.extend(stream.finish());
        Cow::Owned(out)
    }

    /// `text` with every secret masked; borrowed if there was none.
    #[must_use]
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A secret that is not text itself can end inside a character; the rest of that
            // character is then no text either.
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
            ),
        }
    }

    /// Masks in every string, key and number of `value`, at any depth.
    pub fn redact_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.redact_text(text) {
                    *text = masked;
                }
            }
            Value::Number(number) => {
                // An account number is a secret whether it is quoted or not.
                if let Cow::Owned(masked) = self.redact_text(&number.to_string()) {
                    *value = Value::String(masked);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => self.redact_fields(fields),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn redact_fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|field| self.redact_value(field));
        if !fields.keys().any(|key| matches!(self.redact_text(key), Cow::Owned(_))) {
            return;
        }
        let taken: BTreeSet<String> = fields.keys().cloned().collect();
        let mut masked = Map::new();
        for (key, field) in std::mem::take(fields) {
            let mut name = self.redact_text(&key).into_owned();
            if name != key {
                // Two keys may become one; a number keeps both fields.
                let plain = name.clone();
                let mut n = 2;
                while masked.contains_key(&name) || taken.contains(&name) {
                    name = format!("{plain}#{n}");
                    n += 1;
                }
            }
            masked.insert(name, field);
        }
        *fields = masked;
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({}, values of {MIN_REDACTED_BYTES} bytes and more)", {
            if self.is_empty() { "nothing" } else { MASK }
        })
    }
}
