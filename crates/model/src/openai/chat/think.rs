//! Thinking that stands in the text: `<think>…</think>` at its beginning.

use crate::{Delta, DeltaSink};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Tells thinking from text while both come.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    /// Held back: it may be the beginning of a tag.
    held: String,
    thinking: String,
    text: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Thinking,
    /// The thinking has ended; white space after it belongs to nobody.
    Between,
    Text,
}

impl Splitter {
    pub fn take(&mut self, piece: &str, heard: DeltaSink<'_>) {
        self.held.push_str(piece);
        loop {
            match self.state {
                State::Start => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(begun) {
                        return;
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Thinking => {
                    if let Some(at) = self.held.find(CLOSE) {
                        let rest = self.held.split_off(at);
                        self.think(heard);
                        self.held = rest[CLOSE.len()..].to_owned();
                        self.state = State::Between;
                    } else {
                        // All but what may be the beginning of the closing tag.
                        let keep = (1..CLOSE.len()).rev().find(|n| self.held.ends_with(&CLOSE[..*n])).unwrap_or(0);
                        let rest = self.held.split_off(self.held.len() - keep);
                        self.think(heard);
                        self.held = rest;
                        return;
                    }
                }
                State::Between => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return;
                    }
                    self.state = State::Text;
                }
                State::Text => {
                    self.say(heard);
                    return;
                }
            }
        }
    }

    /// Thinking and text. Nothing more comes.
    pub fn finish(mut self, heard: DeltaSink<'_>) -> (String, String) {
        match self.state {
            State::Thinking => self.think(heard),
            State::Start | State::Text => self.say(heard),
            State::Between => {}
        }
        // Where the template of the server opens the thinking, the model only closes it, on a line of its own.
        if self.thinking.is_empty()
            && let Some((before, after)) = closed_only(&self.text)
        {
            return (before.trim().to_owned(), after.trim_start().to_owned());
        }
        (self.thinking, self.text)
    }

    fn think(&mut self, heard: DeltaSink<'_>) {
        if !self.held.is_empty() {
            heard(Delta::Thinking(&self.held));
            self.thinking.push_str(&self.held);
            self.held.clear();
        }
    }

    fn say(&mut self, heard: DeltaSink<'_>) {
        if !self.held.is_empty() {
            heard(Delta::Text(&self.held));
            self.text.push_str(&self.held);
            self.held.clear();
        }
    }
}

/// Splits at a closing tag that stands alone on its line and was never opened.
fn closed_only(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(CLOSE)?;
    let alone = (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with(['\n', '\r']));
    (alone && !before.contains(OPEN)).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&str]) -> (String, String, String) {
        let heard = Mutex::new((String::new(), String::new()));
        let hear = |delta: Delta<'_>| {
            let mut heard = heard.lock().expect("lock");
            match delta {
                Delta::Thinking(text) => heard.0.push_str(text),
                Delta::Text(text) => heard.1.push_str(text),
                Delta::Call { .. } | Delta::Alive => {}
            }
        };
        let mut splitter = Splitter::default();
        for piece in pieces {
            splitter.take(piece, &hear);
        }
        let (thinking, text) = splitter.finish(&hear);
        let heard = heard.into_inner().expect("lock");
        (thinking, text, heard.1)
    }

    #[test]
    fn thinking_in_the_text_is_thinking() {
        let cases = [
            ("plain", "", "plain"),
            ("", "", ""),
            ("<think>\na < b</think>\n\nyes", "\na < b", "yes"),
            ("  <think></think>yes", "", "yes"),
            ("<think>never closed </thin", "never closed </thin", ""),
            ("a <think>b</think>", "", "a <think>b</think>"),
            ("<thinking>x", "", "<thinking>x"),
            ("<thi", "", "<thi"),
            ("so it is\n</think>\n\nyes", "so it is", "yes"),
            ("write `</think>` at the end", "", "write `</think>` at the end"),
        ];
        for (content, thinking, text) in cases {
            let (thought, said, _) = split(&[content]);
            assert_eq!((thought.as_str(), said.as_str()), (thinking, text), "{content:?}");
        }
    }

    proptest! {
        #[test]
        fn thinking_is_found_however_the_text_is_portioned(
            content in "( )?(<think>)?[a<>/thinkü\n]{0,12}(</think>)?[ \n]{0,2}[a-c<]{0,5}",
            size in 1_usize..6,
        ) {
            let chars: Vec<char> = content.chars().collect();
            let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&pieces), split(&[&content]));
        }
    }
}
