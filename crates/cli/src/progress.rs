//! How far a long piece of work is: a bar on a terminal, after a second, on standard error; nothing in a pipe.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::Term;
use crate::spinner::PATIENCE;

/// A bar; dropping it takes it off the screen.
pub struct Bar {
    bar: ProgressBar,
    visible: bool,
    since: Instant,
}

impl Bar {
    pub fn new(term: &Term, total: u64, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        // Without colours, so that NO_COLOR holds here as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent}% of {len} {msg} ({eta} left)") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self { bar, visible: term.waits_visibly(), since: Instant::now() }
    }

    pub fn add(&self, done: u64) {
        self.bar.inc(done);
        if self.visible && self.bar.is_hidden() && self.since.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Prints something while it is out of the way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
