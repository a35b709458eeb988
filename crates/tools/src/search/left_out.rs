//! What a search did not look at: counted and told, never named.

use portcullis_sandbox::PassedOver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::PathKey;

/// Left-out places a thread remembers, to tell those before the last shown from those after it.
const REMEMBERED: usize = 100_000;

/// Why a place was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOutReason {
    Closed,
    Secret,
    Binary,
    Ignored,
    NotUtf8,
    Unreadable,
    TooMany,
    Changed,
}

impl From<PassedOver> for LeftOutReason {
    fn from(why: PassedOver) -> Self {
        match why {
            PassedOver::Ignored => Self::Ignored,
            PassedOver::NotUtf8 => Self::NotUtf8,
            PassedOver::Unreadable => Self::Unreadable,
            PassedOver::TooMany => Self::TooMany,
        }
    }
}

/// How many places were left out, by why. Zeros are not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Counts")]
pub(crate) struct LeftOutCounts {
    /// Rules deny reading them, or ask first.
    #[serde(skip_serializing_if = "none")]
    pub(crate) closed: u64,
    /// Hold secrets, so that reading them asks.
    #[serde(skip_serializing_if = "none")]
    pub(crate) secret: u64,
    /// Not text.
    #[serde(skip_serializing_if = "none")]
    pub(crate) binary: u64,
    /// Named by a `.gitignore`, or of a version control system.
    #[serde(skip_serializing_if = "none")]
    pub(crate) ignored: u64,
    /// With a name that is not UTF-8.
    #[serde(skip_serializing_if = "none")]
    pub(crate) not_utf8: u64,
    /// Could not be read, or have a line too long to search.
    #[serde(skip_serializing_if = "none")]
    pub(crate) unreadable: u64,
    /// Too deep, or past the end of a directory too large to list.
    #[serde(skip_serializing_if = "none")]
    pub(crate) too_many: u64,
    /// Moved or replaced while the search ran.
    #[serde(skip_serializing_if = "none")]
    pub(crate) changed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn none(count: &u64) -> bool {
    *count == 0
}

impl LeftOutCounts {
    pub(crate) fn add(&mut self, why: LeftOutReason) {
        *match why {
            LeftOutReason::Closed => &mut self.closed,
            LeftOutReason::Secret => &mut self.secret,
            LeftOutReason::Binary => &mut self.binary,
            LeftOutReason::Ignored => &mut self.ignored,
            LeftOutReason::NotUtf8 => &mut self.not_utf8,
            LeftOutReason::Unreadable => &mut self.unreadable,
            LeftOutReason::TooMany => &mut self.too_many,
            LeftOutReason::Changed => &mut self.changed,
        } += 1;
    }

    fn join(&mut self, other: Self) {
        self.closed += other.closed;
        self.secret += other.secret;
        self.binary += other.binary;
        self.ignored += other.ignored;
        self.not_utf8 += other.not_utf8;
        self.unreadable += other.unreadable;
        self.too_many += other.too_many;
        self.changed += other.changed;
    }

    /// One line; empty if nothing was left out.
    pub(crate) fn said(&self) -> String {
        let parts: Vec<String> = [
            (self.closed, "closed by rules"),
            (self.secret, "that may hold secrets (name one as path to ask for it)"),
            (self.binary, "binary"),
            (self.ignored, "ignored by .gitignore or of version control (name one as path to look there)"),
            (self.not_utf8, "with names that are not UTF-8"),
            (self.unreadable, "unreadable"),
            (self.too_many, "too deep or too many"),
            (self.changed, "moved or replaced meanwhile"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if parts.is_empty() { String::new() } else { format!("left out: {}", parts.join(", ")) }
    }
}

/// What one thread left out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    places: Vec<(PathKey, LeftOutReason)>,
    /// Those past [`REMEMBERED`].
    more: LeftOutCounts,
}

impl LeftOut {
    pub(crate) fn add(&mut self, path: String, why: LeftOutReason) {
        if self.places.len() < REMEMBERED {
            self.places.push((PathKey(path), why));
        } else {
            self.more.add(why);
        }
    }

    /// Counts those `within` what every run comes by; of a search that ended early that is not `all`.
    pub(crate) fn count(&self, all: bool, within: impl Fn(&PathKey) -> bool, counts: &mut LeftOutCounts) {
        let places = self.places.iter().filter(|(path, _)| all || within(path));
        places.for_each(|(_, why)| counts.add(*why));
        if all {
            counts.join(self.more);
        }
    }
}
