//! A text that may be longer than the screen, shown a page at a time.
//!
//! Invariant: what [`Pages::at_end`] calls shown was printed to its last character, and at every moment at most one screen
//! of it at once.

use std::io;

use crate::render::{BOLD, styled};

/// The size of a terminal that does not tell its own.
const UNTOLD: Size = Size { columns: 80, rows: 50 };
/// Rows that a page leaves free besides the lines below it: for its number, and for the line that is typed.
const LEFT_FREE: usize = 2;
/// A page has at least so many rows, however small the terminal says that it is.
const LEAST: usize = 2;
/// What a tab takes at most.
const TAB: usize = 8;

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
    /// The longest line that is shown below a page.
    below: String,
    size: Size,
    pages: Vec<String>,
    shown: usize,
}

impl Pages {
    /// `below` is the longest line that will stand below a page.
    pub fn of(text: String, below: String, size: Size) -> Self {
        let rows: Vec<&str> = text.lines().flat_map(|line| wrapped(line, size.columns)).collect();
        let taken = wrapped(&below, size.columns).len() + LEFT_FREE;
        let room = size.rows.saturating_sub(taken).max(LEAST);
        // A text that is shown at once has no number.
        let pages = if rows.len() <= room + 1 {
            vec![text.clone()]
        } else {
            rows.chunks(room).map(|rows| rows.join("\n")).collect()
        };
        Self { text, below, size, pages, shown: 0 }
    }

    /// Begins anew if the terminal has another size by now: what was shown may have left the screen. `false` if that
    /// changes nothing, since the whole text fits as it did.
    pub fn follow(&mut self, now: Size) -> bool {
        if now == self.size {
            return false;
        }
        let anew = Self::of(std::mem::take(&mut self.text), std::mem::take(&mut self.below), now);
        let fits_still = self.is_one() && anew.is_one();
        let shown = if fits_still { self.shown } else { 0 };
        *self = Self { shown, ..anew };
        !fits_still
    }

    /// The next page, with its number where there are several. Empty after the last.
    pub fn next(&mut self) -> String {
        let Some(page) = self.pages.get(self.shown) else { return String::new() };
        self.shown += 1;
        match self.pages.len() {
            1 => page.clone(),
            all => format!("{page}\n{}", styled(BOLD, &format!("page {} of {all}", self.shown))),
        }
    }

    pub fn at_end(&self) -> bool {
        self.shown >= self.pages.len()
    }

    pub fn is_one(&self) -> bool {
        self.pages.len() == 1
    }
}

/// The rows that a line takes. A colour takes no room, and a character that may be wide counts as one that is.
fn wrapped(line: &str, columns: usize) -> Vec<&str> {
    let (mut rows, mut start, mut width, mut in_colour) = (Vec::new(), 0, 0, false);
    for (at, c) in line.char_indices() {
        if in_colour || c == '\u{1b}' {
            in_colour = c != 'm';
            continue;
        }
        let wide = match c {
            '\t' => TAB,
            c if c < '\u{1100}' => 1,
            _ => 2,
        };
        if width > 0 && width + wide > columns {
            rows.push(&line[start..at]);
            (start, width) = (at, 0);
        }
        width += wide;
    }
    rows.push(&line[start..]);
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Size = Size { columns: 20, rows: 10 };

    fn all(pages: &mut Pages) -> Vec<String> {
        let mut out = Vec::new();
        while !pages.at_end() {
            out.push(pages.next());
        }
        out
    }

    fn of(text: &str, size: Size) -> Pages {
        Pages::of(text.to_owned(), "a allow · d no".to_owned(), size)
    }

    #[test]
    fn a_text_that_fits_is_one_page_as_it_is() {
        let mut pages = of("a\nb\n", SMALL);
        assert!(pages.is_one());
        assert_eq!(all(&mut pages), ["a\nb\n"]);
        assert_eq!(pages.next(), "");
    }

    #[test]
    fn a_long_line_fills_as_many_rows_as_it_takes_and_each_page_has_its_number() {
        let mut pages = of(&"x".repeat(20 * 20), SMALL);
        let shown = all(&mut pages);
        assert_eq!(shown.len(), 3);
        assert!(shown[0].contains("page 1 of 3") && shown[2].contains("page 3 of 3"), "{shown:?}");
    }

    #[test]
    fn a_text_is_paged_anew_for_another_size_and_begins_with_its_first_page() {
        let mut pages = of(&"line\n".repeat(12), SMALL);
        assert!(pages.next().contains("page 1 of 2"));
        assert!(!pages.follow(SMALL), "nothing changed");
        assert!(pages.next().contains("page 2 of 2") && pages.at_end());
        // Also when all of it was shown: at the new size nothing was.
        let smaller = Size { columns: 20, rows: 6 };
        assert!(pages.follow(smaller) && !pages.at_end());
        assert!(pages.next().contains("page 1 of 4"));
        let larger = Size { columns: 20, rows: 40 };
        assert!(pages.follow(larger) && !pages.at_end() && pages.is_one());
        pages.next();
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
            let shown = all(&mut Pages::of(text.clone(), below.clone(), size));
            let many = shown.len() > 1;
            let mut rest = text.replace('\n', "");
            for page in &shown {
                let page: Vec<&str> = page.lines().collect();
                let lines = if many { &page[..page.len() - 1] } else { &page };
                // With what stands below it, and the line that is typed.
                let taken = |lines: &[&str]| lines.iter().map(|line| wrapped(line, columns).len()).sum::<usize>();
                let foot = taken(&[&below]) + 1;
                let number = usize::from(many);
                prop_assert!(taken(lines) + number + foot <= rows.max(LEAST + foot + 1));
                for line in lines {
                    rest = rest.strip_prefix(*line).map(str::to_owned).expect("in its order");
                }
            }
            prop_assert!(rest.is_empty());
        }
    }
}
