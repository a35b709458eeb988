//! What moves while a person waits (cli §4): on a terminal, after a second, on standard error. A pipe gets nothing but the
//! result.

use std::pin::pin;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::Term;

/// Nobody wonders about a wait that is shorter.
pub const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(120);

/// A line that moves; dropping it takes it off the screen.
pub struct Spinner(Option<ProgressBar>);

impl Spinner {
    pub fn show(term: &Term, words: &str) -> Self {
        if !term.waits_visibly() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // Without colours, so that NO_COLOR holds here as well.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(words.to_owned());
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    /// Prints something while it is out of the way.
    pub fn aside(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Waits for `work`, which prints nothing itself, and shows `words` if that takes long.
pub async fn during<T>(term: &Term, words: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    let _spinner = Spinner::show(term, words);
    work.await
}

/// How far a long piece of work is; dropping it takes it off the screen.
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
