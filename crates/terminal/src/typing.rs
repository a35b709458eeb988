//! Waiting for what a person types, without taking what is typed after nobody listens any more.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::mode;

/// How soon a reader notices that nobody listens any more.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The same while another process has the terminal.
const AWAY: std::time::Duration = std::time::Duration::from_millis(50);

/// Waits until standard input has something. `false`: nobody wants it any more, or it is broken.
pub fn comes(stop: &AtomicBool) -> bool {
    let stdin = io::stdin();
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&GLANCE)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // It is for whoever has the terminal now.
            Ok(_) if !gone() && !mode::in_front() => std::thread::sleep(AWAY),
            // Looked at again: what comes after the stop is another's.
            Ok(_) => return !stop.load(Ordering::Relaxed),
            Err(_) => return false,
        }
    }
    false
}

/// Whether the terminal is gone: it gives nothing for ever, as it does once for Ctrl-D.
pub fn gone() -> bool {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)).is_err() || ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Something that a person did at the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Char(char),
    Enter,
    /// Takes the last character back, the last word, or all of it.
    Back,
    WordBack,
    Clear,
    /// Ctrl-D.
    End,
    Escape,
    Paste(String),
    /// An arrow, or some other key that says nothing here.
    Other,
}

/// The most bytes that are kept of one paste, and of one line.
pub const LINE_MAX: usize = 256 * 1024;

const PASTE_BEGINS: &[u8] = b"[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Where a sequence of bytes stands.
#[derive(Debug, Default)]
enum SequencePosition {
    #[default]
    Nothing,
    /// An escape, and what came of its sequence.
    Escape(Vec<u8>),
    Paste(Vec<u8>),
    /// A character of several bytes.
    Character(Vec<u8>),
}

/// Bytes of a terminal, as what was done at it.
#[derive(Debug, Default)]
pub struct Decoder(SequencePosition);

impl Decoder {
    pub fn feed(&mut self, byte: u8) -> Option<Input> {
        match std::mem::take(&mut self.0) {
            SequencePosition::Nothing => self.fresh(byte),
            SequencePosition::Paste(mut bytes) => {
                bytes.push(byte);
                if let Some(text) = bytes.strip_suffix(PASTE_ENDS) {
                    return Some(Input::Paste(pasted(text)));
                }
                // The end of a paste that is too long is all that is wanted of the rest.
                if bytes.len() > LINE_MAX + PASTE_ENDS.len() {
                    bytes.remove(LINE_MAX);
                }
                self.0 = SequencePosition::Paste(bytes);
                None
            }
            SequencePosition::Escape(mut bytes) => {
                bytes.push(byte);
                match bytes.as_slice() {
                    PASTE_BEGINS => self.0 = SequencePosition::Paste(Vec::new()),
                    [b'[' | b'O'] => self.0 = SequencePosition::Escape(bytes),
                    // Parameters; the byte after them ends it.
                    [b'[' | b'O', ..] if matches!(byte, b'0'..=b'?') && bytes.len() < 32 => {
                        self.0 = SequencePosition::Escape(bytes);
                    }
                    // A second escape begins anew.
                    [0x1b] => {
                        self.0 = SequencePosition::Escape(Vec::new());
                        return Some(Input::Escape);
                    }
                    _ => return Some(Input::Other),
                }
                None
            }
            SequencePosition::Character(mut bytes) => {
                bytes.push(byte);
                match std::str::from_utf8(&bytes) {
                    Ok(text) => text.chars().next().map(Input::Char),
                    Err(error) if error.error_len().is_none() => {
                        self.0 = SequencePosition::Character(bytes);
                        None
                    }
                    Err(_) => Some(Input::Char(char::REPLACEMENT_CHARACTER)),
                }
            }
        }
    }

    fn fresh(&mut self, byte: u8) -> Option<Input> {
        Some(match byte {
            b'\n' | b'\r' => Input::Enter,
            0x7f | 0x08 => Input::Back,
            0x17 => Input::WordBack,
            0x15 => Input::Clear,
            0x04 => Input::End,
            b'\t' => Input::Char(' '),
            0x1b => {
                self.0 = SequencePosition::Escape(Vec::new());
                return None;
            }
            0..0x20 => Input::Other,
            0x20..0x7f => Input::Char(char::from(byte)),
            _ => {
                self.0 = SequencePosition::Character(vec![byte]);
                return None;
            }
        })
    }

    /// Whether an escape came that may be a key of its own, or begin a sequence.
    pub fn is_open(&self) -> bool {
        matches!(&self.0, SequencePosition::Escape(_))
    }

    /// Nothing followed: it was the key.
    pub fn close(&mut self) -> Input {
        match std::mem::take(&mut self.0) {
            SequencePosition::Escape(rest) if !rest.is_empty() => Input::Other,
            _ => Input::Escape,
        }
    }
}

/// Text as it was pasted, with line ends as they are written, and nothing that steers a terminal.
fn pasted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        bytes.iter().filter_map(|byte| decoder.feed(*byte)).collect()
    }

    #[test]
    fn keys_are_told_from_sequences_and_pastes() {
        assert_eq!(read(b"a\r"), [Input::Char('a'), Input::Enter]);
        assert_eq!(read(b"\x1b[A\x1bOPx"), [Input::Other, Input::Other, Input::Char('x')]);
        assert_eq!(read("é→".as_bytes()), [Input::Char('é'), Input::Char('→')]);
        assert_eq!(read(b"\x1b[200~a\rb\x1b[31m\x1b[201~c"), [Input::Paste("a\nb[31m".to_owned()), Input::Char('c')]);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(0x1b), None);
        assert!(decoder.is_open());
        assert_eq!((decoder.close(), decoder.is_open()), (Input::Escape, false));
    }

    #[test]
    fn a_paste_that_is_too_long_is_cut_and_ends() {
        let long = [b"\x1b[200~".to_vec(), vec![b'x'; LINE_MAX + 100], b"\x1b[201~y".to_vec()].concat();
        let read = read(&long);
        assert_eq!(read.last(), Some(&Input::Char('y')));
        assert!(
            matches!(&read[0], Input::Paste(text) if (LINE_MAX..LINE_MAX + 16).contains(&text.len())),
            "{}",
            read.len()
        );
    }
}
