//! What a person types while a session works or asks: one line, which grows key by key, and is whole with Enter.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_terminal::mode;
use portcullis_terminal::render::Term;
use portcullis_terminal::typing::{Decoder, Input, LINE_MAX, comes, gone};
use tokio::sync::mpsc;

/// Pieces that are read and not yet heard.
const AHEAD: usize = 64;

/// An escape that nothing follows for so long is a key of its own.
const ESCAPE: Duration = Duration::from_millis(100);

/// Bytes, and when they were read.
type TimedBytes = (Vec<u8>, Instant);

/// What was typed. It stays when nobody listens.
pub struct TypedInput {
    /// The terminal can be drawn over: then it gives every key, and the line is drawn here. Else it gives whole lines.
    draws: bool,
    reader: Option<Reader>,
    decoder: Decoder,
    inputs: VecDeque<(Input, Instant)>,
    line: String,
    /// Somebody wants to leave.
    pub quit: bool,
    /// Commands for when the turn is over.
    pub later: Vec<String>,
}

struct Reader {
    receive: mpsc::Receiver<TimedBytes>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TypedInput {
    pub fn new(term: &Term) -> Self {
        Self {
            draws: term.draws(),
            reader: None,
            decoder: Decoder::default(),
            inputs: VecDeque::new(),
            line: String::new(),
            quit: false,
            later: Vec::new(),
        }
    }

    /// Listens from now on, key by key or, where the line cannot be drawn, line by line.
    pub fn listen(&mut self) {
        self.by_keys(self.draws);
        if self.reader.is_none() {
            let (send, receive) = mpsc::channel(AHEAD);
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let thread = std::thread::spawn(move || read(&send, &stopped));
            self.reader = Some(Reader { receive, stop, thread: Some(thread) });
        }
    }

    /// Single keys, for a question; or lines that the terminal edits and shows itself.
    pub fn by_keys(&self, keys: bool) {
        if keys {
            // A terminal that does not know how gives whole lines, which answer no question.
            let _ = mode::one_by_one();
        } else {
            mode::give_back();
        }
        mode::pastes_are_marked(keys && self.draws);
    }

    pub fn draws(&self) -> bool {
        self.draws
    }

    pub fn listens(&self) -> bool {
        self.reader.is_some()
    }

    /// Stops listening. What was typed stays; what is typed from now on is left to others.
    pub fn pause(&mut self) {
        let Some(mut reader) = self.reader.take() else { return };
        reader.stop();
        while let Ok(piece) = reader.receive.try_recv() {
            self.take_in(piece);
        }
        if self.decoder.is_open() {
            let escape = self.decoder.close();
            self.inputs.push_back((escape, Instant::now()));
        }
        mode::give_back();
    }

    fn take_in(&mut self, (bytes, at): TimedBytes) {
        self.inputs.extend(bytes.into_iter().filter_map(|byte| self.decoder.feed(byte)).map(|input| (input, at)));
    }

    /// What was done next, and when; `None` where the input ended. What is not awaited to its end is not lost.
    pub async fn next(&mut self) -> Option<(Input, Instant)> {
        loop {
            if let Some(input) = self.inputs.pop_front() {
                return Some(input);
            }
            let open = self.decoder.is_open();
            let reader = self.reader.as_mut()?;
            tokio::select! {
                piece = reader.receive.recv() => self.take_in(piece?),
                () = tokio::time::sleep(ESCAPE), if open => {
                    let escape = self.decoder.close();
                    self.inputs.push_back((escape, Instant::now()));
                }
            }
        }
    }

    /// Takes a key as typed; the line, if that made it whole.
    pub fn apply(&mut self, input: Input) -> Option<String> {
        match input {
            Input::Char(c) if self.line.len() < LINE_MAX => self.line.push(c),
            Input::Paste(text) => {
                let room = LINE_MAX.saturating_sub(self.line.len());
                self.line.extend(text.chars().take(room));
            }
            Input::Enter => return Some(std::mem::take(&mut self.line)),
            Input::Back => drop(self.line.pop()),
            Input::WordBack => {
                let kept = self.line.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                self.line.truncate(kept);
            }
            Input::Clear => self.line.clear(),
            Input::Char(_) | Input::End | Input::Escape | Input::Other => {}
        }
        None
    }

    /// The next whole line that is waiting already.
    pub fn waiting(&mut self) -> Option<String> {
        while let Some((input, _)) = self.inputs.pop_front() {
            if let Some(line) = self.apply(input) {
                return Some(line);
            }
        }
        None
    }

    /// What was typed and not ended with Enter.
    pub fn line(&self) -> &str {
        &self.line
    }

    pub fn take_line(&mut self) -> String {
        std::mem::take(&mut self.line)
    }

    pub fn set_line(&mut self, line: String) {
        self.line = line;
    }
}

impl Drop for TypedInput {
    fn drop(&mut self) {
        self.pause();
    }
}

impl Reader {
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.receive.close();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

fn read(send: &mpsc::Sender<TimedBytes>, stop: &AtomicBool) {
    let stdin = io::stdin();
    let mut bytes = [0u8; 4_096];
    while comes(stop) {
        let piece = match rustix::io::read(stdin.as_fd(), &mut bytes) {
            Ok(0) if gone() => return,
            // Ctrl-D on an empty line that the terminal edits.
            Ok(0) => vec![0x04],
            Ok(n) => bytes[..n].to_vec(),
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        if send.blocking_send((piece, Instant::now())).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_grows_is_edited_and_is_whole_with_enter() {
        let globals =
            <crate::args::Cli as clap::Parser>::try_parse_from(["portcullis", "doctor"]).expect("parses").globals;
        let mut typed = TypedInput::new(&globals.term());
        let mut does =
            |inputs: &[Input]| inputs.iter().cloned().filter_map(|input| typed.apply(input)).collect::<Vec<_>>();
        let keys = |text: &str| text.chars().map(Input::Char).collect::<Vec<_>>();
        assert_eq!(does(&keys("one two")), [] as [String; 0]);
        assert_eq!(does(&[Input::WordBack, Input::Paste("a\nb".to_owned()), Input::Enter]), ["one a\nb"]);
        assert_eq!(does(&[keys("xy"), vec![Input::Back, Input::Enter]].concat()), ["x"]);
        assert_eq!(does(&[keys("xy"), vec![Input::Clear, Input::Enter]].concat()), [""]);
    }
}
