//! One newtype a prefix: `sesn_` + a UUIDv7 in 26 lower-case Crockford base32 characters.
//!
//! An id is a name and never a right: knowing one grants nothing. Ids sort by the time they were
//! made, as numbers and as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LEN: usize = 26;

/// Why a text is not the id it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what} id: expected `{prefix}_` followed by 26 characters of 0-9 a-z without i, l, o, u")]
pub struct ParseIdError {
    text: String,
    what: &'static str,
    prefix: &'static str,
}

fn encode(value: u128) -> [u8; ENCODED_LEN] {
    let mut out = [0u8; ENCODED_LEN];
    // Two halves of 65 bits: 13 characters each, shifted as plain words.
    let (high, low) = out.split_at_mut(ENCODED_LEN / 2);
    for (half, mut bits) in [(high, value >> 65), (low, value & ((1 << 65) - 1))] {
        for slot in half.iter_mut().rev() {
            *slot = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
    }
    out
}

fn decode(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    // 26 characters carry 130 bits; the first may therefore only be 0-7.
    if bytes.len() != ENCODED_LEN || bytes[0] > b'7' {
        return None;
    }
    bytes.iter().try_fold(0u128, |acc, byte| {
        let digit = ALPHABET.iter().position(|c| c == byte)?;
        Some((acc << 5) | digit as u128)
    })
}

/// The text of an id, on the stack: ids are written in every event, and formatting machinery is slow.
#[derive(Clone, Copy)]
pub struct IdText {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl IdText {
    /// The longest prefix has 9 characters; then `_` and 26 more.
    const CAPACITY: usize = 9 + 1 + ENCODED_LEN;

    fn new(prefix: &str, value: u128) -> Self {
        let mut bytes = [0u8; Self::CAPACITY];
        let at = prefix.len();
        bytes[..at].copy_from_slice(prefix.as_bytes());
        bytes[at] = b'_';
        bytes[at + 1..at + 1 + ENCODED_LEN].copy_from_slice(&encode(value));
        Self { bytes, len: at + 1 + ENCODED_LEN }
    }
}

impl std::ops::Deref for IdText {
    type Target = str;

    fn deref(&self) -> &str {
        // Prefixes and the alphabet are ASCII.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u128);

        impl $name {
            /// The text before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a 128-bit UUIDv7. Ids in use come from an [`IdGen`](crate::IdGen).
            #[must_use]
            pub const fn from_u128(value: u128) -> Self {
                Self(value)
            }

            /// The number behind the text, for compact storage.
            #[must_use]
            pub const fn as_u128(self) -> u128 {
                self.0
            }

            /// The text, without an allocation.
            #[must_use]
            pub fn text(self) -> IdText {
                IdText::new($prefix, self.0)
            }

            /// A fresh id made at `at`.
            #[must_use]
            pub fn make(ids: &dyn crate::IdGen, at: crate::Timestamp) -> Self {
                Self(ids.next(at))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.text())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix(concat!($prefix, "_")).and_then(decode).map(Self).ok_or_else(|| {
                    ParseIdError { text: text.chars().take(64).collect(), what: $what, prefix: $prefix }
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// Whose data this is; every key of the store leads with it.
    TenantId = "tnt", "a tenant";
    /// A person.
    UserId = "usr", "a user";
    /// An agent definition.
    AgentId = "agent", "an agent";
    /// An execution contract.
    EnvironmentId = "env", "an environment";
    /// A process that may hold leases.
    WorkerId = "wrk", "a worker";
    /// One workspace root with its services.
    LocationId = "loc", "a location";
    /// One durable log with its hand.
    SessionId = "sesn", "a session";
    /// One appended fact.
    EventId = "sevt", "an event";
    /// One all-or-nothing commit.
    AppendId = "append", "an append";
    /// One bounded run of a session under a lease.
    WakeId = "wake", "a wake";
    QueuedWakeId = "wkq", "a queued wake";
    /// One model request and its response.
    TurnId = "turn", "a turn";
    /// The assistant message that holds a call.
    MessageId = "msg", "a message";
    /// The frozen list of tools of one turn.
    MenuId = "menu", "a menu";
    /// One (contribution, name) of a registry; dies with its process.
    RegistrationId = "reg", "a registration";
    /// What the model asked for.
    IntentId = "intent", "an intent";
    /// What was authorized and planned.
    InvocationId = "inv", "an invocation";
    /// The projected fact that settles an intent.
    ObservationId = "obs", "an observation";
    /// A background task.
    TaskId = "task", "a task";
    /// A defect that an operator can look up.
    IncidentId = "inc", "an incident";
    /// Large evidence outside the log.
    ArtifactId = "art", "an artifact";
    /// A command that a session's hand ran.
    CommandId = "cmd", "a command";
    /// A persistent shell.
    ShellId = "shell", "a shell";
    /// A question to a person.
    AskId = "ask", "an ask";
    /// A remembered allow.
    GrantId = "grant", "a grant";
    /// Something learnt in a session that may help in another.
    LearningId = "lrn", "a learning";
    /// What a session is to reach.
    OutcomeId = "outc", "an outcome";
    /// An entry of the outbox.
    OutboxId = "out", "an outbox entry";
}

impl SessionId {
    /// The 128-bit number of this session; a thread bears the same one.
    #[must_use]
    pub fn thread_text(self) -> String {
        self.to_string().replacen("sesn_", "sthr_", 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_text_and_json() {
        for value in [0, 1, u128::MAX, 0x0192_3456_789a_7bcd_8ef0_1234_5678_9abc] {
            let id = SessionId::from_u128(value);
            assert_eq!(id.to_string().parse(), Ok(id));
            let json = serde_json::to_string(&id).expect("ids serialize");
            assert_eq!(serde_json::from_str::<SessionId>(&json).expect("ids parse"), id);
        }
    }

    #[test]
    fn text_order_is_number_order() {
        let low = EventId::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0000);
        let high = EventId::from_u128(0x0193_0000_0000_7000_8000_0000_0000_0000);
        assert!(low.to_string() < high.to_string() && low < high);
    }

    #[test]
    fn another_prefix_a_long_text_and_an_overflow_are_refused_with_a_remedy() {
        let session = SessionId::from_u128(7).to_string();
        let error = session.parse::<AskId>().expect_err("a session is not an ask");
        assert!(error.to_string().contains("`ask_`"), "{error}");
        assert!(format!("{session}0").parse::<SessionId>().is_err());
        assert!(format!("sesn_8{}", "0".repeat(25)).parse::<SessionId>().is_err());
        assert!("sesn_".parse::<SessionId>().is_err());
    }
}
