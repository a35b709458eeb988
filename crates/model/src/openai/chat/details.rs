//! `reasoning_details`: reasoning as a list of objects, some of them signed, which must go back as they were.
//!
//! A router streams one object in pieces: texts, and at last a signature. Sent back in pieces it is refused, since the
//! signature seals the whole text.

use serde_json::value::RawValue;

use crate::wire::{self, Fields};

/// Fields that grow from piece to piece.
const GROWING: [&str; 2] = ["text", "summary"];

/// The objects so far.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails(Vec<Detail>);

#[derive(Debug)]
struct Detail {
    /// As it came, while it is one piece.
    raw: String,
    fields: Fields,
    grown: Vec<(&'static str, String)>,
    pieces: usize,
}

impl ReasoningDetails {
    /// Takes in the value of the field; `streamed` if it may be pieces.
    pub fn take(&mut self, value: &RawValue, streamed: bool) {
        let Ok(details) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else { return };
        for raw in details {
            let Ok(fields) = Fields::of(raw.get()) else { continue };
            match self.0.last_mut().filter(|last| streamed && last.goes_on(&fields)) {
                Some(last) => last.grow(&fields),
                None => self.0.push(Detail { raw: raw.get().to_owned(), fields, grown: Vec::new(), pieces: 1 }),
            }
        }
    }

    /// The list as JSON text, if there is anything in it.
    pub fn finish(self) -> Option<String> {
        let details: Vec<String> = self.0.into_iter().map(Detail::whole).collect();
        (!details.is_empty()).then(|| format!("[{}]", details.join(",")))
    }
}

impl Detail {
    fn goes_on(&self, next: &Fields) -> bool {
        let same = |name: &str| self.fields.raw(name) == next.raw(name);
        let grows = matches!(next.text("type").as_deref(), Some("reasoning.text" | "reasoning.summary"));
        let sealed = self.fields.text("signature").is_some_and(|signature| !signature.is_empty());
        grows && same("type") && same("index") && !sealed
    }

    fn grow(&mut self, next: &Fields) {
        self.pieces += 1;
        for (name, value) in next.iter() {
            let growing = GROWING.iter().find(|known| **known == name);
            match (growing, next.text(name)) {
                (Some(name), Some(more)) => match self.grown.iter_mut().find(|(known, _)| known == name) {
                    Some((_, text)) => text.push_str(&more),
                    None => {
                        let before = self.fields.text(name).unwrap_or_default();
                        self.grown.push((name, before + &more));
                    }
                },
                (Some(_), None) => {}
                (None, _) if value == "null" => {}
                (None, _) => self.fields.set(name, value.to_owned()),
            }
        }
    }

    fn whole(mut self) -> String {
        if self.pieces == 1 {
            return self.raw;
        }
        for (name, text) in self.grown {
            self.fields.set(name, wire::json(&text));
        }
        self.fields.to_json()
    }
}
