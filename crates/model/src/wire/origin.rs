//! Whose an opaque part is: what one model thought is sent to no other.

use portcullis_base::Digest;
use serde_json::value::RawValue;

use super::raw;
use crate::{AnswerPart, Conversation, Message, ModelName, Opaque};

/// One model at one address, spoken to in one wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    wire: &'static str,
    from: Option<String>,
}

impl Origin {
    /// Of the address only a digest is kept: it goes into a log, and may tell what a network looks like inside.
    pub fn new(wire: &'static str, model: &ModelName, address: &str) -> Self {
        Self { wire, from: Some(format!("{model}@{:.12}", Digest::of(address.as_bytes()))) }
    }

    /// Nobody: it owns no part.
    pub fn nobody(wire: &'static str) -> Self {
        Self { wire, from: None }
    }

    /// A part of its own.
    pub fn opaque(&self, raw: impl Into<String>) -> AnswerPart {
        AnswerPart::Opaque(Opaque { from: self.from.clone(), ..Opaque::new(self.wire, raw) })
    }

    /// An opaque part for whom it came from; to everybody else it is nothing.
    pub fn own<'a>(&self, opaque: &'a Opaque) -> Option<&'a RawValue> {
        let own = opaque.wire == self.wire && self.from.is_some() && opaque.from == self.from;
        if own { raw(&opaque.raw) } else { None }
    }

    /// Whether a conversation holds parts of its own.
    pub fn owns_some(&self, conversation: &Conversation) -> bool {
        let mut answers = conversation.messages().iter().filter_map(|message| match message {
            Message::Assistant(parts) => Some(parts),
            Message::User(_) => None,
        });
        answers.any(|parts| {
            parts.iter().any(|part| matches!(part, AnswerPart::Opaque(opaque) if self.own(opaque).is_some()))
        })
    }

    /// The same place, to which no part is sent back.
    pub fn without_parts(&self) -> Self {
        Self::nobody(self.wire)
    }

    /// Itself, or nobody in a conversation whose parts were refused: there it stays so until a compaction.
    pub fn standing(&self, conversation: &Conversation, style: &str) -> Self {
        let nobody = Self::nobody(self.wire);
        if conversation.was_rendered(&nobody.rendering(style)) { nobody } else { self.clone() }
    }

    /// The name of what is rendered for it in a style.
    pub fn rendering(&self, style: &str) -> String {
        format!("{} {style} {}", self.wire, self.from.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_belongs_to_one_model_at_one_address_and_its_log_tells_no_address() {
        let origin = |wire, model: &str, address| Origin::new(wire, &model.parse().expect("a name"), address);
        let mine = origin("w", "p/m", "https://inner.example/v1");
        let AnswerPart::Opaque(part) = mine.opaque("{}") else { panic!("opaque") };
        assert!(mine.own(&part).is_some());
        assert!(!format!("{part:?}").contains("inner.example"), "{part:?}");
        for other in [
            origin("x", "p/m", "https://inner.example/v1"),
            origin("w", "q/m", "https://inner.example/v1"),
            origin("w", "p/n", "https://inner.example/v1"),
            origin("w", "p/m", "https://other.example/v1"),
            Origin::nobody("w"),
        ] {
            assert!(other.own(&part).is_none(), "{other:?}");
        }
        let old: Opaque = serde_json::from_str(r#"{"wire":"w","raw":"{}"}"#).expect("an older log");
        assert!(mine.own(&old).is_none() && Origin::nobody("w").own(&old).is_none(), "nobody knows whose it is");
        assert_eq!(serde_json::to_string(&old).expect("JSON"), r#"{"wire":"w","raw":"{}"}"#, "and it stays as it is");
    }
}
