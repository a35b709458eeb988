//! Single keys from the terminal, for questions that take one. Whoever stops listening leaves what is typed later to others.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

use crate::render::Term;
use crate::terminal;
use crate::typing::comes;

/// How long a question stands on the screen before a key can answer it: a key that bounced, or was meant for the question
/// before, comes sooner.
const ARMING: Duration = Duration::from_millis(500);

/// Keys that are read and not yet asked for.
const AHEAD: usize = 16;

/// Keys that come closer than this were one press, or a paste.
const TOGETHER: Duration = Duration::from_millis(300);

/// Says which keys work when another one was pressed.
#[derive(Default)]
pub struct Hint(Option<Instant>);

impl Hint {
    /// Once for keys that come together: an arrow is three.
    pub fn unknown(&mut self, term: &Term, typed: Instant, words: &str) {
        if self.0.is_none_or(|last| typed.saturating_duration_since(last) > TOGETHER) {
            term.note(words);
        }
        self.0 = Some(typed);
    }
}

/// A key, and when it was read.
pub type Key = (u8, Instant);

/// A terminal that gives every key at once. Ctrl-C still interrupts; dropping it restores what was.
pub struct Keys {
    receive: mpsc::Receiver<Key>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    pub fn listen() -> io::Result<Self> {
        let (send, receive) = mpsc::channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let mut keys = Self { receive, stop: Arc::clone(&stop), reader: None };
        terminal::one_by_one()?;
        keys.reader = Some(std::thread::spawn(move || read(&send, &stop)));
        Ok(keys)
    }

    /// The next key; `None` where the input ended.
    pub async fn next(&mut self) -> Option<Key> {
        self.receive.recv().await
    }

    /// Throws away what was typed before now: nobody can have meant a question that was not on the screen. `None` if
    /// Ctrl-C came. A key that the reading thread holds already slips past; its time, before the one given, tells.
    pub async fn arm(&mut self, interrupts: &mut Signal) -> Option<Instant> {
        tokio::select! {
            () = tokio::time::sleep(ARMING) => {}
            _ = interrupts.recv() => return None,
        }
        // The terminal is gone or it is emptied; a lost one shows as the end of the keys.
        let _ = tcflush(io::stdin().as_fd(), QueueSelector::IFlush);
        while self.receive.try_recv().is_ok() {}
        Some(Instant::now())
    }
}

/// Bytes of standard input, until nobody wants them; the channel closes at their end.
fn read(send: &mpsc::Sender<Key>, stop: &AtomicBool) {
    let stdin = io::stdin();
    let mut byte = [0u8; 1];
    while comes(stop) {
        match rustix::io::read(stdin.as_fd(), &mut byte) {
            Ok(1) if send.blocking_send((byte[0], Instant::now())).is_ok() => {}
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // One that waits for room in the channel goes on with an error.
        self.receive.close();
        if let Some(reader) = self.reader.take() {
            // It has nothing to tell.
            let _ = reader.join();
        }
        terminal::give_back();
    }
}
