//! The texts of a call. In which order a command wrote to its two streams is not known, so each stands for itself.

use std::io::{self, IsTerminal as _};

use portcullis_event::Observed;

use crate::render::{DIM, Term, styled};

/// What a call wrote.
#[derive(Debug, Default)]
pub struct CallText {
    /// Everything before standard error.
    pub out: String,
    pub err: String,
}

impl CallText {
    /// The texts of an observation, as a tool wrote them.
    pub fn of(observed: &Observed) -> Self {
        let mut text = Self::default();
        for (source, words) in observed.content.iter().filter_map(|part| Some((&part.source, part.text.as_deref()?))) {
            text.part(source).push_str(words);
        }
        text
    }

    /// Where the next part of it goes, which begins on a line of its own.
    pub fn part(&mut self, source: &str) -> &mut String {
        let is_err = !self.err.is_empty() || (source == "stderr" && !self.out.is_empty());
        let text = if is_err { &mut self.err } else { &mut self.out };
        end_line(text);
        text
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty() && self.err.is_empty()
    }

    /// Both in one, as a pipe gets them.
    pub fn whole(mut self) -> String {
        if !self.err.is_empty() {
            end_line(&mut self.out);
        }
        self.out + &self.err
    }

    /// Prints it; it is fit for a terminal. There a line of ours stands between both streams.
    pub fn print(self, term: Term) -> io::Result<()> {
        if self.err.is_empty() || self.out.is_empty() || !io::stdout().is_terminal() {
            return term.print_of_others(&self.whole());
        }
        term.print_of_others(&self.out)?;
        term.print(&styled(DIM, "stderr:"))?;
        term.print_of_others(&self.err)
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
