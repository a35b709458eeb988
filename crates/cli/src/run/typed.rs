//! Lines that a person types while a session works, with the terminal's own editing.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::typing::comes;

/// Lines that are read and not yet heard.
const AHEAD: usize = 16;

/// Someone who listens. Dropped, what is typed later is left to others.
pub struct Typed {
    receive: mpsc::Receiver<String>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Typed {
    pub fn listen() -> Self {
        let (send, receive) = mpsc::channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self { receive, stop, reader: Some(std::thread::spawn(move || read(&send, &stopped))) }
    }

    /// The next line that says something; `None` where the input ended.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            let line = self.receive.recv().await?;
            if !line.trim().is_empty() {
                return Some(line.trim().to_owned());
            }
        }
    }
}

impl Typed {
    /// Stops listening; what was typed and not heard yet.
    pub fn finish(mut self) -> Vec<String> {
        self.stop();
        let mut left = Vec::new();
        while let Ok(line) = self.receive.try_recv() {
            left.extend(Some(line.trim().to_owned()).filter(|line| !line.is_empty()));
        }
        left
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.receive.close();
        if let Some(reader) = self.reader.take() {
            // It has nothing to tell.
            let _ = reader.join();
        }
    }
}

fn read(send: &mpsc::Sender<String>, stop: &AtomicBool) {
    let stdin = io::stdin();
    // The terminal gives whole lines; one that is longer than this comes in pieces.
    let mut bytes = [0u8; 4_096];
    while comes(stop) {
        match rustix::io::read(stdin.as_fd(), &mut bytes) {
            Ok(0) => return,
            Ok(n) => {
                for line in String::from_utf8_lossy(&bytes[..n]).lines() {
                    if send.blocking_send(line.to_owned()).is_err() {
                        return;
                    }
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.stop();
    }
}
