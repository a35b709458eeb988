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
    rendered: Mutex<RenderedConversation>,
}

impl Clone for Conversation {
    /// The same messages; what was rendered of them is not copied, see [`Conversation::hand_over`].
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), rendered: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct RenderedConversation {
    wire: String,
    /// Where each message ends in `text`, and whether the newest that is seen there is the user's.
    ends: Vec<(usize, bool)>,
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

    /// Gives what was rendered to another conversation, as far as that begins with the same messages. Of two copies one
    /// goes on; the other need not render again what it learns of later, and still knows how it was rendered.
    pub fn hand_over(&self, to: &Self) {
        let mut rendered = std::mem::take(&mut *self.rendered.lock().unwrap_or_else(PoisonError::into_inner));
        let both = self.messages.iter().zip(&to.messages).take(rendered.ends.len());
        let same = both.take_while(|(ours, theirs)| ours == theirs).count();
        rendered.cut(same);
        *to.rendered.lock().unwrap_or_else(PoisonError::into_inner) = rendered;
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
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if rendered.wire != wire {
            *rendered = RenderedConversation { wire: wire.to_owned(), ..RenderedConversation::default() };
        }
        let from = rendered.ends.len();
        for message in &self.messages[from..] {
            // A panic in here leaves nothing half written: the text grows by whole messages.
            let mut element = Vec::new();
            render(message, &mut element);
            let mut users_last = rendered.users_last();
            if !element.is_empty() {
                let users = matches!(message, Message::User(_));
                if let Some(no_answer) = no_answer.filter(|_| users && users_last && !has_results(message)) {
                    rendered.add(no_answer.as_bytes());
                }
                rendered.add(&element);
                users_last = users;
            }
            let end = rendered.text.len();
            rendered.ends.push((end, users_last));
        }
        take(&rendered.text)
    }
}

/// Results stand right after their calls, whatever else is odd.
fn has_results(message: &Message) -> bool {
    matches!(message, Message::User(parts) if parts.iter().any(|part| matches!(part, UserPart::Result(_))))
}

impl RenderedConversation {
    fn add(&mut self, element: &[u8]) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        self.text.extend_from_slice(element);
    }

    fn users_last(&self) -> bool {
        self.ends.last().is_some_and(|(_, users)| *users)
    }

    /// Leaves the first messages only.
    fn cut(&mut self, messages: usize) {
        self.ends.truncate(messages);
        self.text.truncate(self.ends.last().map_or(0, |(end, _)| *end));
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

    #[test]
    fn check_6_3_what_was_rendered_is_handed_to_a_copy_as_far_as_both_are_the_same() {
        let rendered = Cell::new(0);
        let render = |message: &Message, out: &mut Vec<u8>| {
            rendered.set(rendered.get() + 1);
            out.extend_from_slice(format!("{message:?}").as_bytes());
        };
        let whole = |talk: &Conversation| talk.with_rendered("x", render, <[u8]>::to_vec);
        let mut first = Conversation::new();
        first.push(said("a"));
        let mut second = first.clone();
        first.push(said("b"));
        let expected = whole(&first);
        assert_eq!(rendered.get(), 2);
        // One that knows less gets less, and renders the rest.
        first.hand_over(&second);
        second.push(said("b"));
        assert_eq!((whole(&second), rendered.get()), (expected.clone(), 3));
        // One that went another way gets what both have.
        let mut third = Conversation::new();
        third.push(said("a"));
        third.push(said("c"));
        second.hand_over(&third);
        let told = whole(&third);
        assert_eq!(rendered.get(), 4);
        assert_eq!(told, whole(&third.clone()), "as if it had been rendered from its start");
        #[cfg(feature = "http")]
        {
            // How it was rendered is known even where nothing is the same yet.
            let fresh = Conversation::new();
            third.hand_over(&fresh);
            assert!(fresh.was_rendered("x") && !third.was_rendered("x"));
        }
    }
}
