//! A text that may be longer than the screen, shown a page at a time.
//!
//! Invariant: what [`Pages::at_end`] calls shown was printed to its last character, and at every moment at most one screen
//! of it at once.

use std::io;

use crate::render::{BOLD, styled};
use crate::rows::{beginning, rows};

/// The size of a terminal that does not tell its own.
const UNTOLD: Size = Size { columns: 80, rows: 50 };
/// Rows that a page leaves free besides the lines below it: for its number, and for the line that is typed.
const LEFT_FREE: usize = 2;
/// A page has at least so many rows, however small the terminal says that it is.
const LEAST: usize = 2;

/// How much a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// Of the terminal that standard output goes to.
    pub fn of_terminal() -> Self {
        let told = rustix::termios::tcgetwinsize(io::stdout()).ok();
        let told = told.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        let (columns, rows) = told.unwrap_or_default();
        let or = |told: usize, otherwise: usize| if told > 0 { told } else { otherwise };
        Self { columns: or(columns, UNTOLD.columns), rows: or(rows, UNTOLD.rows) }
    }
}

/// A text in pages, and how many of them were shown.
pub struct Pages {
    text: String,
    /// What it is about. It stands below every page: what was shown first may have left the screen by the last one.
    about: String,
    /// The longest line that is shown below a page.
    below: String,
    size: Size,
    pages: Vec<String>,
    shown: usize,
}

impl Pages {
    /// `below` is the longest line that will stand below a page.
    pub fn of(text: String, about: String, below: String, size: Size) -> Self {
        let rows: Vec<String> = text.lines().flat_map(|line| rows(line, size.columns)).collect();
        let taken = self::rows(&below, size.columns).len() + LEFT_FREE;
        let room = size.rows.saturating_sub(taken).max(LEAST);
        // A text that is shown at once has no number.
        let pages = if rows.len() <= room + 1 {
            vec![text.clone()]
        } else {
            rows.chunks(room).map(|rows| rows.join("\n")).collect()
        };
        Self { text, about, below, size, pages, shown: 0 }
    }

    /// Begins anew if the terminal has another size by now: what was shown may have left the screen. `false` if that
    /// changes nothing, since the whole text fits as it did.
    pub fn follow(&mut self, now: Size) -> bool {
        if now == self.size {
            return false;
        }
        let [text, about, below] = [&mut self.text, &mut self.about, &mut self.below].map(std::mem::take);
        let anew = Self::of(text, about, below, now);
        let fits_still = self.is_one() && anew.is_one();
        let shown = if fits_still { self.shown } else { 0 };
        *self = Self { shown, ..anew };
        !fits_still
    }

    /// The next page, with its number where there are several. Empty after the last.
    pub fn next_page(&mut self) -> String {
        let Some(page) = self.pages.get(self.shown) else { return String::new() };
        self.shown += 1;
        match self.pages.len() {
            1 => page.clone(),
            all => {
                let number = format!("page {} of {all}: {}", self.shown, self.about);
                format!("{page}\n{}", styled(BOLD, &beginning(&number, self.size.columns)))
            }
        }
    }

    pub fn at_end(&self) -> bool {
        self.shown >= self.pages.len()
    }

    pub fn is_one(&self) -> bool {
        self.pages.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Size = Size { columns: 20, rows: 10 };

    fn all(pages: &mut Pages) -> Vec<String> {
        let mut out = Vec::new();
        while !pages.at_end() {
            out.push(pages.next_page());
        }
        out
    }

    fn of(text: &str, size: Size) -> Pages {
        Pages::of(text.to_owned(), "bash sh build.sh --all".to_owned(), "a allow · d no".to_owned(), size)
    }

    #[test]
    fn a_text_that_fits_is_one_page_as_it_is() {
        let mut pages = of("a\nb\n", SMALL);
        assert!(pages.is_one());
        assert_eq!(all(&mut pages), ["a\nb\n"]);
        assert_eq!(pages.next_page(), "");
    }

    #[test]
    fn a_long_line_fills_as_many_rows_as_it_takes_and_each_page_has_its_number() {
        let mut pages = of(&"x".repeat(20 * 20), SMALL);
        let shown = all(&mut pages);
        // A row that goes on is indented, so that 16 of 20 columns are left.
        assert_eq!(shown.len(), 4);
        assert!(shown[0].contains("page 1 of 4") && shown[3].contains("page 4 of 4: bash s…"), "{shown:?}");
    }

    #[test]
    fn a_text_is_paged_anew_for_another_size_and_begins_with_its_first_page() {
        let mut pages = of(&"line\n".repeat(12), SMALL);
        assert!(pages.next_page().contains("page 1 of 2"));
        assert!(!pages.follow(SMALL), "nothing changed");
        assert!(pages.next_page().contains("page 2 of 2") && pages.at_end());
        // Also when all of it was shown: at the new size nothing was.
        let smaller = Size { columns: 20, rows: 6 };
        assert!(pages.follow(smaller) && !pages.at_end());
        assert!(pages.next_page().contains("page 1 of 4"));
        let larger = Size { columns: 20, rows: 40 };
        assert!(pages.follow(larger) && !pages.at_end() && pages.is_one());
        pages.next_page();
        // It fitted, and fits still.
        assert!(!pages.follow(Size { columns: 90, rows: 30 }) && pages.at_end());
        assert!(pages.follow(smaller) && !pages.at_end());
    }

    proptest! {
        #[test]
        fn every_character_is_on_some_page_and_no_page_is_longer_than_the_screen(
            text in "(\\PC|\n|\t){0,600}", below in "[a-z· ]{1,120}", columns in 10_usize..120, rows in 4_usize..30,
        ) {
            let size = Size { columns, rows };
            let shown = all(&mut Pages::of(text.clone(), "bash ls".to_owned(), below.clone(), size));
            let many = shown.len() > 1;
            let mut printed = Vec::new();
            for page in &shown {
                let page: Vec<&str> = page.lines().collect();
                let lines = if many { &page[..page.len() - 1] } else { &page };
                // With what stands below it, and the line that is typed.
                let taken = |lines: &[&str]| lines.iter().map(|line| super::rows(line, columns).len()).sum::<usize>();
                let foot = taken(&[&below]) + 1;
                let number = usize::from(many);
                prop_assert!(taken(lines) + number + foot <= rows.max(LEAST + foot + 1));
                printed.extend(lines.iter().flat_map(|line| super::rows(line, columns)));
            }
            let all: Vec<String> = text.lines().flat_map(|line| super::rows(line, columns)).collect();
            prop_assert_eq!(printed, all);
        }
    }
}
