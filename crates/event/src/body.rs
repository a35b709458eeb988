//! The typed content of an event: the types this program writes, and `Unknown` for the rest (L72). The types themselves
//! stand in [`table`](crate::table), one row each.

use std::borrow::Cow;
use std::fmt;

use portcullis_base::{ArtifactRef, AskId, Digest, IntentId, InvocationId, QueuedWakeId};
use serde::{Deserialize, Serialize};

/// The type word of an event, such as `tool.intent`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventType(Cow<'static, str>);

impl EventType {
    /// A type this program writes.
    #[must_use]
    pub const fn known(word: &'static str) -> Self {
        Self(Cow::Borrowed(word))
    }

    /// A type as it stands in a log.
    #[must_use]
    pub fn recorded(word: String) -> Self {
        Self(Cow::Owned(word))
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who may append an event type, besides the holder of the session's lease, who may append every type (tool-contract §22,
/// column *Writer*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// The holder alone.
    Holder,
    /// A client.
    Client,
    /// An outbox, which delivers it from another session.
    Outbox,
    ClientAndOutbox,
}

impl Writers {
    /// Whether a client may append it.
    #[must_use]
    pub const fn client(self) -> bool {
        matches!(self, Self::Client | Self::ClientAndOutbox)
    }

    /// Whether an outbox may deliver it.
    #[must_use]
    pub const fn outbox(self) -> bool {
        matches!(self, Self::Outbox | Self::ClientAndOutbox)
    }
}

/// Whether an event type is input of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// It records something.
    Nothing,
    /// It asks something of the session: a terminated session takes none of it (H18).
    Input,
}

/// What an event names: things that have rows, blobs or a story of their own. Reports group events by it, a fork renames
/// by it, and what an event names is kept as long as the event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventRefs {
    pub intent: Option<IntentId>,
    /// The ask that it is about. An event that names no intent belongs to the intent of its ask.
    pub ask: Option<AskId>,
    /// The invocation that it is about. An event that names neither intent nor ask belongs to the intent of its
    /// invocation.
    pub invocation: Option<InvocationId>,
    pub wakes: Vec<QueuedWakeId>,
    pub artifacts: Vec<ArtifactRef>,
    /// Contents by hash that are no artifacts, such as the body of a menu or a setup.
    pub contents: Vec<Digest>,
}

impl EventRefs {
    pub(crate) fn intent(intent: IntentId) -> Self {
        Self { intent: Some(intent), ..Self::default() }
    }

    pub(crate) fn ask(ask: AskId) -> Self {
        Self { ask: Some(ask), ..Self::default() }
    }

    pub(crate) fn invocation(invocation: InvocationId) -> Self {
        Self { invocation: Some(invocation), ..Self::default() }
    }

    pub(crate) fn contents(hash: Option<Digest>) -> Self {
        Self { contents: hash.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn wakes(wakes: &[QueuedWakeId]) -> Self {
        Self { wakes: wakes.to_vec(), ..Self::default() }
    }
}

/// A payload with a type word and a version of its own.
pub trait EventBody: Serialize + Clone {
    /// The type word.
    const KIND: EventType;
    /// The payload version that this program writes.
    const VERSION: u32 = 1;

    /// The same content as one of all bodies.
    fn to_body(&self) -> Body;

    /// The payload text, serialised once.
    fn to_payload(&self) -> String {
        let mut text = Vec::with_capacity(USUAL_PAYLOAD);
        // Invariant: payloads are structs with text keys and finite numbers, which serde_json always takes, and JSON is
        // UTF-8.
        serde_json::to_writer(&mut text, self).expect("an event payload is always JSON");
        String::from_utf8(text).expect("JSON is UTF-8")
    }
}

/// Most payloads are shorter, and then their text is never moved while it grows.
const USUAL_PAYLOAD: usize = 1_000;

pub use crate::table::Body;

/// Makes [`Body`] and everything that is known of each event type from the rows of [`table`](crate::table).
macro_rules! events {
    ($(
        $word:literal => $variant:ident, $writers:ident, $input:ident, $story:ident,
        names |$named:pat_param| $names:expr,
        reads |$read:pat_param| $words:expr;
    )*) => {
        /// Every payload this program writes, and what it does not know.
        #[derive(Debug, Clone)]
        pub enum Body {
            // Boxed: the largest is forty times the smallest, and a log in memory holds many.
            $($variant(Box<$variant>),)*
            /// A type, version or payload this program does not read; nothing of it is lost.
            Unknown { kind: EventType, raw: Option<String> },
        }

        $(impl EventBody for $variant {
            const KIND: EventType = EventType::known($word);

            fn to_body(&self) -> Body {
                Body::$variant(Box::new(self.clone()))
            }
        })*

        impl EventType {
            /// Whether this program knows the type.
            #[must_use]
            pub fn is_known(&self) -> bool {
                matches!(self.as_str(), $($word)|*)
            }

            /// Who may append it, besides the holder of the lease. A type from the future is the holder's alone.
            #[must_use]
            pub fn writers(&self) -> Writers {
                match self.as_str() {
                    $($word => Writers::$writers,)*
                    _ => Writers::Holder,
                }
            }

            /// Whether it is input of a session.
            #[must_use]
            pub fn input_kind(&self) -> InputKind {
                match self.as_str() {
                    $($word => InputKind::$input,)*
                    _ => InputKind::Nothing,
                }
            }
        }

        impl Body {
            /// The type words this program writes.
            pub const KINDS: &'static [&'static str] = &[$($word,)*];

            /// Reads a stored payload. Whatever this program does not know is [`Body::Unknown`].
            #[must_use]
            pub fn decode(kind: &EventType, v: u32, payload: Option<&str>) -> Self {
                let unknown = || Self::Unknown { kind: kind.clone(), raw: payload.map(str::to_owned) };
                let Some(text) = payload else { return unknown() };
                let Some(text) = upcast(kind.as_str(), v, Cow::Borrowed(text)) else { return unknown() };
                match kind.as_str() {
                    $($word => serde_json::from_str(&text).map(Self::$variant).unwrap_or_else(|_| unknown()),)*
                    _ => unknown(),
                }
            }

            /// What it names.
            #[must_use]
            pub fn names(&self) -> EventRefs {
                match self {
                    $(Self::$variant(fact) => {
                        let named: fn(&$variant) -> EventRefs = |$named| $names;
                        named(fact)
                    })*
                    Self::Unknown { .. } => EventRefs::default(),
                }
            }

            /// How it reads to a person, in one line. The text holds words of models, tools and people as they are:
            /// the program that prints it makes them harmless first.
            #[must_use]
            pub fn in_words(&self) -> String {
                match self {
                    $(Self::$variant(fact) => {
                        let read: fn(&$variant) -> String = |$read| $words;
                        read(fact)
                    })*
                    Self::Unknown { kind, raw } => unknown_in_words(kind, raw.as_deref()),
                }
            }

            /// Whether the store lost or changed the content of this event.
            #[must_use]
            pub fn is_damaged(&self) -> bool {
                matches!(self, Self::Unknown { kind, raw } if is_damaged(kind, raw.as_deref()))
            }

            /// What it adds to the conversation with the model, if it is a part of that.
            #[must_use]
            pub fn conversation(&self) -> Option<Conversation<'_>> {
                match self {
                    $(Self::$variant(fact) => $crate::body::conversation!($story, $variant, fact),)*
                    Self::Unknown { .. } => None,
                }
            }
        }
    };
}

/// `told` in a row of the table: the type is a part of the conversation; `aside`: it is not.
macro_rules! conversation {
    (told, $variant:ident, $fact:ident) => {
        Some(Conversation::$variant($fact))
    };
    (aside, $variant:ident, $fact:ident) => {{
        let _ = $fact;
        None
    }};
}

pub(crate) use {conversation, events};
