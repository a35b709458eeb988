//! An ask on the screen of a person: the page that is shown, and what can be chosen below it.
//!
//! Invariant: an allow is offered and confirmed only while every page was shown at the size that the terminal has.

use std::time::Instant;

use portcullis_terminal::choice::{Choice, Chooser, Step};
use portcullis_terminal::pages::{Pages, Size};
use portcullis_terminal::render::{DIM, styled};
use portcullis_terminal::typing::Input;

use crate::ask_text::AskDetail;
use crate::ask_view::ShownAsk;

/// What is said above the first page when it is shown again.
const ANEW: &str = "the terminal has another size: this is shown again from its beginning";

pub struct Sheet {
    pub whole: ShownAsk,
    pub chooser: Chooser,
    pages: Pages,
    detail: AskDetail,
    /// What is offered besides an allow.
    besides: &'static [Choice],
}

impl Sheet {
    /// The ask, and its first page.
    pub fn new(whole: ShownAsk, besides: &'static [Choice]) -> (Self, String) {
        let detail = AskDetail::Short;
        let pages = whole.pages(detail, besides, Size::of_terminal());
        let mut sheet = Self { whole, chooser: Chooser::new(Vec::new()), pages, detail, besides };
        let first = sheet.turn();
        (sheet, first)
    }

    /// The next page. What can be chosen below it has to be shown.
    pub fn turn(&mut self) -> String {
        let page = self.pages.next_page();
        self.chooser = Chooser::new(self.whole.choices(self.pages.at_end(), self.detail, self.besides));
        page
    }

    /// What an input comes to. The text to print, if a page has to be shown for it.
    pub fn hear(&mut self, input: Input, at: Instant, line: &str) -> Result<Step, String> {
        let step = self.chooser.hear(input, at, line);
        if step.relies_on_the_screen() && self.pages.follow(Size::of_terminal()) {
            return Err(format!("{}\n{}", styled(DIM, ANEW), self.turn()));
        }
        match step {
            Step::NextPage => Err(self.turn()),
            Step::AllFacts => {
                self.detail = AskDetail::Whole;
                self.pages = self.whole.pages(self.detail, self.besides, Size::of_terminal());
                Err(self.turn())
            }
            step => Ok(step),
        }
    }
}
