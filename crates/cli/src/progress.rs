//! How far a long piece of work is (cli.md §4): a bar on a terminal, on standard error. A pipe gets nothing but the
//! result.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::Term;
use crate::spinner::PATIENCE;

/// Redraws a second: more would cost and show nothing.
const REDRAWS: u8 = 8;

/// A bar; dropping it takes it off the screen. It appears when the work has lasted a while.
pub struct Progress {
    bar: Option<ProgressBar>,
    begun: std::time::Instant,
}

impl Progress {
    /// Work of `total` steps, if anyone looks.
    pub fn of(term: &Term, words: &str, total: u64) -> Self {
        let begun = std::time::Instant::now();
        if !term.waits_visibly() {
            return Self { bar: None, begun };
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        // Without colours, so that NO_COLOR holds here as well.
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {human_pos} of {human_len} ({eta} left)") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(words.to_owned());
        Self { bar: Some(bar), begun }
    }

    /// So much more is done.
    pub fn step(&self, done: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.is_hidden() && self.begun.elapsed() >= PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        }
        bar.inc(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
