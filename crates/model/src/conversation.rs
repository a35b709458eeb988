//! A conversation as it is sent: messages that never change once they are there, each rendered once.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Serialize, Serializer};

use crate::AnswerPart;

/// What bytes of a media part are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum MediaKind {
    Image,
    Pdf,
}

/// Bytes that are no text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    pub kind: MediaKind,
    /// Such as `image/png`.
    pub mime: String,
    #[serde(serialize_with = "digest")]
    pub bytes: Arc<[u8]>,
}

/// Wherever a conversation is compared with another, bytes stand for themselves by their hash.
fn digest<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&portcullis_base::Digest::of(bytes))
}

/// A piece of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ResultPart {
    Text(String),
    Media(Media),
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolResult {
    pub call_id: String,
    /// The tool's name, for providers that match by it.
    pub name: String,
    pub is_error: bool,
    pub parts: Vec<ResultPart>,
}

/// A piece of what stands in the user's position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum UserPart {
    /// Tool results come first in a message: providers that want them right after the calls get them there.
    Result(ToolResult),
    Text(String),
    Media(Media),
}

/// One message. Two answers never follow one another. Two messages of the user do where a request failed: what was sent
/// once stays as it is, so an adapter puts a stand-in for the answer between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Message {
    User(Vec<UserPart>),
    Assistant(Vec<AnswerPart>),
}

/// The messages of a request, oldest first. It only grows; a compaction makes a new one.
///
/// Each message is rendered once for a wire format, however many requests hold it: request n+1 begins with the bytes of
/// request n (agent-runtime 6.3), and a long conversation costs no more to send than its newest part and a copy.
#[derive(Debug, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    rendered: Mutex<Rendered>,
}

impl Clone for Conversation {
    /// The same messages; what was rendered of them is not copied.
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), rendered: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct Rendered {
    wire: String,
    /// How many messages are in `text`.
    upto: usize,
    /// Whether the newest of them that is seen there is the user's.
    users_last: bool,
    /// Messages as elements of a JSON array, commas between them.
    text: Vec<u8>,
}

impl Conversation {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// All of them.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether it was rendered under this name the last time.
    #[cfg(feature = "http")]
    pub(crate) fn was_rendered(&self, wire: &str) -> bool {
        self.rendered.lock().unwrap_or_else(PoisonError::into_inner).wire == wire
    }

    /// Hands the rendered messages to `take`: the elements of a JSON array, without its brackets. `render` writes one
    /// message as one or more elements with commas between them, or nothing; it must depend on nothing but the message.
    pub fn with_rendered<T>(
        &self,
        wire: &str,
        render: impl Fn(&Message, &mut Vec<u8>),
        take: impl FnOnce(&[u8]) -> T,
    ) -> T {
        self.rendered(wire, None, render, take)
    }

    /// The same with `no_answer`, an element, between two messages of the user: where there was no answer, or one that
    /// renders to nothing. So the sides take turns, and what is written depends on nothing that comes later.
    #[cfg(feature = "http")]
    pub(crate) fn with_turns<T>(
        &self,
        wire: &str,
        no_answer: &str,
        render: impl Fn(&Message, &mut Vec<u8>),
        take: impl FnOnce(&[u8]) -> T,
    ) -> T {
        self.rendered(wire, Some(no_answer), render, take)
    }

    fn rendered<T>(
        &self,
        wire: &str,
        no_answer: Option<&str>,
        render: impl Fn(&Message, &mut Vec<u8>),
        take: impl FnOnce(&[u8]) -> T,
    ) -> T {
        // What is rendered is whole after every message, so a panic in between leaves nothing half written that counts:
        // the text is cut back to it.
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if rendered.wire != wire {
            *rendered = Rendered { wire: wire.to_owned(), ..Rendered::default() };
        }
        let from = rendered.upto;
        for message in &self.messages[from..] {
            let mut element = Vec::new();
            render(message, &mut element);
            if !element.is_empty() {
                let users = matches!(message, Message::User(_));
                if let Some(no_answer) = no_answer.filter(|_| users && rendered.users_last && !has_results(message)) {
                    rendered.add(no_answer.as_bytes(), false);
                }
                rendered.add(&element, users);
            }
            rendered.upto += 1;
        }
        take(&rendered.text)
    }
}

/// Results stand right after their calls, whatever else is odd.
fn has_results(message: &Message) -> bool {
    matches!(message, Message::User(parts) if parts.iter().any(|part| matches!(part, UserPart::Result(_))))
}

impl Rendered {
    fn add(&mut self, element: &[u8], users: bool) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        self.text.extend_from_slice(element);
        self.users_last = users;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn said(text: &str) -> Message {
        Message::User(vec![UserPart::Text(text.to_owned())])
    }

    #[test]
    fn check_6_3_a_longer_conversation_begins_with_the_bytes_of_the_shorter_and_renders_only_what_is_new() {
        let rendered = Cell::new(0);
        let render = |message: &Message, out: &mut Vec<u8>| {
            rendered.set(rendered.get() + 1);
            if let Message::User(parts) = message
                && let [UserPart::Text(text)] = parts.as_slice()
            {
                out.extend_from_slice(text.as_bytes());
            }
        };
        let mut talk = Conversation::new();
        talk.push(said("a"));
        talk.push(said("b"));
        assert_eq!(talk.with_rendered("x", render, <[u8]>::to_vec), b"a,b");
        talk.push(Message::Assistant(Vec::new()));
        talk.push(said("c"));
        assert_eq!(
            talk.with_rendered("x", render, <[u8]>::to_vec),
            b"a,b,c",
            "what renders to nothing leaves no comma"
        );
        assert_eq!(rendered.get(), 4);
        assert_eq!(talk.with_rendered("y", render, <[u8]>::to_vec), b"a,b,c", "another wire format starts anew");
        assert_eq!(rendered.get(), 8);
        #[cfg(feature = "http")]
        assert_eq!(talk.with_turns("z", "-", render, <[u8]>::to_vec), b"a,-,b,-,c", "the sides take turns");
    }
}
