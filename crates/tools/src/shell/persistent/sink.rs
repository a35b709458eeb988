//! What a command writes, on its way into spools, with the end of it for a reader meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_contract::{Spool, SpoolRef, ToolContext};
use portcullis_sandbox::shell::{Sink, Stream};
use tokio_util::sync::CancellationToken;

/// Bytes of a stream that are held for a preview and for what its end tells. More than a preview shows: a secret that is
/// cut in two at the beginning of them is far from what is shown.
const TAIL: usize = 64 << 10;

/// What an interactive shell writes to standard error when it runs `exit`.
const SAID_EXIT: &[u8] = b"exit\n";

/// The end of both streams, as it is now.
#[derive(Debug, Default)]
pub(super) struct LiveTails {
    stdout: Mutex<VecDeque<u8>>,
    stderr: Mutex<VecDeque<u8>>,
}

impl LiveTails {
    fn of(&self, stream: Stream) -> MutexGuard<'_, VecDeque<u8>> {
        let tail = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, stream: Stream, bytes: &[u8]) {
        let mut tail = self.of(stream);
        let bytes = &bytes[bytes.len().saturating_sub(TAIL)..];
        let over = (tail.len() + bytes.len()).saturating_sub(TAIL).min(tail.len());
        tail.drain(..over);
        tail.extend(bytes);
    }

    /// As text; empty if nothing was written.
    pub(super) fn text(&self, stream: Stream) -> String {
        let mut tail = self.of(stream);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }
}

/// Takes both streams of one command.
pub(super) struct Capture {
    stdout: Spool,
    stderr: Spool,
    tails: Arc<LiveTails>,
    /// The last line of standard error, if it may be the shell's own `exit`.
    held: &'static [u8],
    /// Fired when so much was written that the command must be stopped.
    flood: CancellationToken,
    why: Arc<Mutex<Option<String>>>,
}

/// The side of a capture that stays with the call.
pub(super) struct CaptureHandle {
    pub(super) tails: Arc<LiveTails>,
    pub(super) flood: CancellationToken,
    why: Arc<Mutex<Option<String>>>,
}

impl CaptureHandle {
    /// Why the command had to be stopped.
    pub(super) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Capture {
    pub(super) fn new(context: &ToolContext) -> (Self, CaptureHandle) {
        let captured = CaptureHandle { tails: Arc::default(), flood: CancellationToken::new(), why: Arc::default() };
        let capture = Self {
            stdout: context.spool("stdout"),
            stderr: context.spool("stderr"),
            tails: Arc::clone(&captured.tails),
            held: b"",
            flood: captured.flood.clone(),
            why: Arc::clone(&captured.why),
        };
        (capture, captured)
    }

    /// Ends both. The last `exit` is not the command's if the shell ended.
    pub(super) fn finish(mut self, shell_ended: bool) -> (SpoolRef, SpoolRef) {
        if !shell_ended {
            self.release();
        }
        (self.stdout.finish(), self.stderr.finish())
    }

    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.keep(Stream::Stderr, held);
    }

    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        self.tails.take(stream, bytes);
        let spool = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if let Err(error) = spool.write(bytes)
            && !self.flood.is_cancelled()
        {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            self.flood.cancel();
        }
    }
}

impl Sink for Capture {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout || bytes.is_empty() {
            return self.keep(stream, bytes);
        }
        self.release();
        let before = bytes.strip_suffix(SAID_EXIT).filter(|before| {
            let last = before.last().copied().or_else(|| self.tails.of(stream).back().copied());
            last.is_none_or(|last| last == b'\n')
        });
        self.held = before.map_or(b"", |_| SAID_EXIT);
        self.keep(stream, before.unwrap_or(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_stream_is_held() {
        let tails = LiveTails::default();
        tails.take(Stream::Stdout, &vec![b'a'; 3 * TAIL]);
        tails.take(Stream::Stdout, b"bc");
        tails.take(Stream::Stderr, b"\xff");
        let text = tails.text(Stream::Stdout);
        assert!(text.len() == TAIL && text.ends_with("abc"));
        assert_eq!(tails.text(Stream::Stderr), "\u{fffd}");
    }
}
