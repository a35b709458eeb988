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
use crate::shapes;
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

/// What is looked for.
#[derive(Clone, Default)]
pub(crate) struct Search {
    /// One expression for each family of shapes of the known secrets, over all of them.
    families: Vec<Regex>,
    /// Bytes of the longest possible match of these.
    longest: usize,
    /// Whether values that look like a key count, too.
    keys: bool,
}

/// A place to mask.
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What it looks like; `None`: a known secret.
    pub(crate) label: Option<&'static str>,
}

impl Match {
    /// What stands there instead.
    pub(crate) fn mask(&self) -> Cow<'static, str> {
        self.label.map_or(Cow::Borrowed(MASK), |label| Cow::Owned(marker(label)))
    }
}

/// What stands where a value stood that looks like a key.
fn marker(label: &str) -> String {
    format!("[redacted: {label}]")
}

/// Which markers of [`Redactor::and_keys`] stand in `text`, and how often each: a text that goes into a file must not
/// carry one, because the file holds the value that the marker hides.
#[must_use]
pub fn markers(text: &str) -> Vec<(String, usize)> {
    if !text.contains("[redacted: ") {
        return Vec::new();
    }
    let all: BTreeSet<&str> = shapes::labels().collect();
    let counted = all.into_iter().map(marker).map(|marker| (text.matches(&marker).count(), marker));
    counted.filter(|(times, _)| *times > 0).map(|(times, marker)| (marker, times)).collect()
}

impl Search {
    fn any(&self, text: &[u8]) -> bool {
        self.families.iter().any(|family| family.is_match(text)) || (self.keys && shapes::any(text))
    }

    /// Whether a text is the beginning of a key's prefix and of nothing else that is looked for.
    pub(crate) fn is_only_a_prefix(&self, text: &[u8]) -> bool {
        self.families.is_empty() && self.keys && shapes::begun(text) == text.len()
    }

    /// The places in `text` by start, overlapping ones too, and how many bytes of it are decided: all where it has
    /// `ended`. `before` is the byte ahead of it.
    pub(crate) fn decide(&self, text: &[u8], before: Option<u8>, ended: bool) -> (Vec<Match>, usize) {
        // Of a known secret that starts before this everything is here.
        let mut decided = if ended { text.len() } else { text.len() - self.longest.saturating_sub(1).min(text.len()) };
        let mut out = Vec::new();
        if self.keys {
            let (values, undecided) = shapes::values(text, before, ended);
            decided = decided.min(undecided);
            // What says that it is a value and the value itself are decided together. One may begin within another.
            let torn = |decided: usize| {
                let torn = values.iter().filter(|value| value.known_from < decided && decided <= value.start);
                torn.map(|value| value.known_from).min()
            };
            while let Some(before) = torn(decided) {
                decided = before;
            }
            let found = |value: shapes::Value| Match { start: value.start, end: value.end, label: Some(value.label) };
            out.extend(values.into_iter().map(found));
        }
        for family in &self.families {
            let mut from = 0;
            while let Some(found) = family.find_at(text, from).filter(|found| found.start() < decided) {
                out.push(Match { start: found.start(), end: found.end(), label: None });
                from = found.start() + 1;
            }
        }
        out.retain(|found| found.start < decided);
        out.sort_unstable_by_key(|found| (found.start, found.end));
        (out, decided)
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
        Ok(Self { search: Some(Arc::new(Search { families, longest, keys: false })) })
    }

    /// Masks what this one masks, and each value that looks like a key of a known issuer or is a private key block, with
    /// words that say what stood there. For what tools bring back from the world; what somebody typed stays as it is.
    #[must_use]
    pub fn and_keys(&self) -> Self {
        let search = self.search.as_deref().cloned().unwrap_or_default();
        Self { search: Some(Arc::new(Search { keys: true, ..search })) }
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
