//! Pieces of the newest turns that are longer than a model can read, shown cut (agent-runtime 6.4): what was cut, by
//! how much and how to read the rest stands in their place.
//!
//! It is a function of the messages and of one number, which the compaction's fact holds: a replay cuts the same (L71).

use portcullis_base::Digest;
use portcullis_model::{AnswerPart, Call, Message, ResultPart, ToolResult, UserPart};
use portcullis_pipeline::InContext;
use serde_json::{Value, json};

use super::{Context, fence, media_in, summary, weight};

/// What a piece keeps at least: its beginning and its end say what it was.
const LEAST: usize = 500;

/// The longest id and name that stay as they are; no provider takes more.
const NAME_MAX: usize = 200;

/// The field of a result's facts, and of arguments that were cut.
const CUT: &str = "cutByCompaction";

/// The part of a conversation that stays so that the next request fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConversationCut {
    pub(crate) kept_from: u64,
    pub(crate) cut_to: Option<usize>,
    /// Characters of what stays.
    pub(crate) chars: usize,
}

impl Context {
    /// Where the answer at `kept_from` or the first after it begins.
    pub(super) fn begins_at(&self, kept_from: u64) -> usize {
        let kept = self.turns.iter().find(|mark| mark.seq >= kept_from);
        kept.map_or(self.conversation.messages().len(), |mark| mark.message)
    }

    /// The most that fits into `room` characters: the protected turns whole, or cut; if even that is too much, fewer of
    /// them. `end` is the place behind them all.
    pub(crate) fn fitting(&self, room: usize, end: u64) -> ConversationCut {
        let protected = summary::PROTECTED_TURNS.min(self.turns.len());
        for turns in (0..=protected).rev() {
            let kept_from = self.turns[self.turns.len() - turns..].first().map_or(end, |mark| mark.seq);
            let mut cut_to = None;
            loop {
                let chars = self.chars_of(kept_from, turns > 0, cut_to);
                if chars <= room || turns == 0 {
                    return ConversationCut { kept_from, cut_to, chars };
                }
                match cut_to.unwrap_or(room) / 2 {
                    less if less >= LEAST => cut_to = Some(less),
                    _ => break,
                }
            }
        }
        // Invariant: the loop ends with no turns, and returns there.
        ConversationCut { kept_from: end, cut_to: None, chars: 0 }
    }

    /// Characters of what stands from there on.
    fn chars_of(&self, kept_from: u64, with_newest: bool, cut_to: Option<usize>) -> usize {
        let most = cut_to.unwrap_or(usize::MAX);
        let nowhere = InContext::default();
        let measure = |message: &Message| {
            let message = self::message(message.clone(), most, &nowhere);
            json!(message).to_string().len() + media_in(&message).map(weight).sum::<usize>()
        };
        let messages: usize = self.conversation.messages()[self.begins_at(kept_from)..].iter().map(measure).sum();
        let newest = self.newest.iter().filter(|_| with_newest).flat_map(|newest| &newest.asked);
        let results = newest.filter_map(|asked| asked.result.clone());
        messages + results.map(|result| measure(&Message::User(vec![UserPart::Result(result)]))).sum::<usize>()
    }
}

/// A message of which no piece is longer than `most` bytes.
pub(super) fn message(message: Message, most: usize, pages: &InContext) -> Message {
    match message {
        Message::User(mut parts) => {
            for part in &mut parts {
                match part {
                    UserPart::Result(result) => self::result(result, most, pages),
                    UserPart::Text(text) => *text = kept_middle(text, most),
                    UserPart::Media(media) if weight(media) > most => {
                        *part = UserPart::Text(left_out(&media.mime, media.bytes.len()));
                    }
                    UserPart::Media(_) => {}
                }
            }
            Message::User(parts)
        }
        Message::Assistant(parts) => Message::Assistant(answer(parts, most)),
    }
}

/// Opaque parts stay to the byte or not at all, and those of one answer belong together.
fn answer(parts: Vec<AnswerPart>, most: usize) -> Vec<AnswerPart> {
    let too_long = |part: &AnswerPart| matches!(part, AnswerPart::Opaque(opaque) if opaque.raw.len() > most);
    let without_opaque = parts.iter().any(too_long);
    let cut = |part: AnswerPart| match part {
        AnswerPart::Text(text) => Some(AnswerPart::Text(kept_middle(&text, most))),
        AnswerPart::Call(call) => Some(AnswerPart::Call(self::call(call, most))),
        AnswerPart::Opaque(_) if without_opaque => None,
        AnswerPart::Opaque(opaque) => Some(AnswerPart::Opaque(opaque)),
    };
    let kept: Vec<AnswerPart> = parts.into_iter().filter_map(cut).collect();
    match kept.is_empty() {
        // An answer that was nothing but thinking: the sides still take turns.
        true => vec![AnswerPart::Text("(thinking, left out by a compaction)".to_owned())],
        false => kept,
    }
}

fn call(mut call: Call, most: usize) -> Call {
    call.id = short_id(call.id);
    call.name = short_name(call.name);
    if call.arguments.len() > most {
        // An object, whatever they were: providers take nothing else.
        let of = call.arguments.len();
        let beginning = &call.arguments[..call.arguments.floor_char_boundary(most)];
        let note = format!("{} of {of} bytes of these arguments are left out; the call was made with all", of - most);
        call.arguments = json!({ CUT: note, "beginning": beginning }).to_string();
    }
    call
}

/// A result of at most so many bytes. What it showed of a file can be read anew.
pub(super) fn result(result: &mut ToolResult, most: usize, pages: &InContext) {
    let before = std::mem::take(&mut result.call_id);
    let weights = result.parts.iter().map(|part| match part {
        ResultPart::Text(text) => text.len(),
        ResultPart::Media(media) => weight(media),
    });
    if weights.sum::<usize>() > most {
        pages.leave(&before);
        let each = most / result.parts.len().max(1);
        for part in &mut result.parts {
            match part {
                ResultPart::Text(text) => *text = cut_shown(text, each).unwrap_or_else(|| kept_middle(text, each)),
                ResultPart::Media(media) if weight(media) > each => {
                    *part = ResultPart::Text(left_out(&media.mime, media.bytes.len()));
                }
                ResultPart::Media(_) => {}
            }
        }
    }
    result.call_id = short_id(before);
    result.name = short_name(std::mem::take(&mut result.name));
}

/// An observation with its contents cut, still between delimiters that they cannot hold (tool-contract §21), and its
/// facts say so.
fn cut_shown(text: &str, most: usize) -> Option<String> {
    if text.len() <= most {
        return Some(text.to_owned());
    }
    let mut shown = fence::parse(text)?;
    let of: usize = shown.contents.iter().filter_map(|content| content.text.as_ref()).map(String::len).sum();
    let known = shown.facts.get(CUT).and_then(|cut| cut.get("ofBytes")).and_then(Value::as_u64);
    let each = most / shown.contents.len().max(1);
    for content in &mut shown.contents {
        if let Some(text) = &mut content.text {
            *text = kept_middle(text, each);
        }
    }
    let kept: usize = shown.contents.iter().filter_map(|content| content.text.as_ref()).map(String::len).sum();
    let artifact = shown.contents.iter().find_map(|content| content.label.artifact.as_ref()?.get("id"));
    let artifact = artifact.or_else(|| shown.facts.get("artifacts")?.get(0)?.get("id")).cloned();
    let again = match artifact {
        Some(id) => json!({ "tool": "artifact_read", "id": id }),
        None => json!("call the tool again for a smaller part, such as one file, fewer lines or a narrower pattern"),
    };
    let facts = shown.facts.as_object_mut()?;
    let of = known.unwrap_or(of as u64);
    facts.insert(CUT.to_owned(), json!({ "shownBytes": kept, "ofBytes": of, "readTheRest": again }));
    Some(shown.to_text())
}

/// The beginning and the end of a text, with what is missing named between them.
pub(crate) fn kept_middle(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
    format!("{}\n[{} bytes left out here by a compaction]\n{}", &text[..head], tail - head, &text[tail..])
}

fn left_out(mime: &str, bytes: usize) -> String {
    format!("[left out by a compaction: {mime} of {bytes} bytes; read it again if it is needed]")
}

fn short_id(id: String) -> String {
    if id.len() <= NAME_MAX { id } else { format!("call_{:.32}", Digest::of(id.as_bytes())) }
}

fn short_name(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(NAME_MAX));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_says_how_much_is_missing_and_breaks_no_character() {
        let text = "größer🦀".repeat(1_000);
        let cut = kept_middle(&text, 1_000);
        assert!(cut.len() < 1_100 && cut.starts_with("größer") && cut.ends_with("🦀"), "{cut}");
        let missing = text.len() + "\n[ bytes left out here by a compaction]\n".len() + 5 - cut.len();
        assert!(cut.contains(&format!("[{missing} bytes left out")), "{missing} {cut}");
        assert_eq!(kept_middle("short", 1_000), "short");
    }

    #[test]
    fn thinking_of_an_answer_stays_to_the_byte_or_all_of_it_goes() {
        let opaque = |raw: String| AnswerPart::Opaque(portcullis_model::Opaque::new("w", raw));
        let parts = vec![opaque("{}".to_owned()), opaque("x".repeat(5_000)), AnswerPart::Text("so".to_owned())];
        assert_eq!(answer(parts.clone(), 1_000), [AnswerPart::Text("so".to_owned())]);
        assert_eq!(answer(parts.clone(), 9_000), parts);
        let alone = answer(vec![opaque("x".repeat(5_000))], 1_000);
        assert!(matches!(alone.as_slice(), [AnswerPart::Text(_)]), "{alone:?}");
    }

    #[test]
    fn arguments_that_are_cut_are_still_an_object() {
        let made = |arguments: String| Call { id: "i".repeat(300), name: "n".repeat(300), arguments };
        let short = call(made(format!("{{\"content\":\"{}\"}}", "ä".repeat(5_000))), 1_000);
        assert!(serde_json::from_str::<Value>(&short.arguments).is_ok_and(|value| value.is_object()));
        assert!(short.arguments.len() < 1_300 && short.id.len() < 50 && short.name.len() == 200);
    }
}
