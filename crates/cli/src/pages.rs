//! A text that may be longer than the screen, shown a page at a time.
//!
//! Invariant: what [`Pages::at_end`] calls shown was printed to its last character, and at every moment at most one screen
//! of it at once.

use std::io;

use crate::render::{BOLD, styled};

/// The size of a terminal that does not tell its own.
const UNTOLD: Size = Size { columns: 80, rows: 50 };
/// Rows of the screen that a page leaves free: for what is said below it, and for the line that is typed.
const LEFT_FREE: usize = 3;
/// A page has at least so many rows, however small the terminal says that it is.
const LEAST: usize = 5;
/// The rows at the beginning of an ask that are ours alone (tool, state, session, workspace). They may leave the screen.
const OURS: usize = 4;
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
    pages: Vec<String>,
    shown: usize,
}

impl Pages {
    pub fn of(text: &str, size: Size) -> Self {
        let rows: Vec<&str> = text.lines().flat_map(|line| wrapped(line, size.columns)).collect();
        let room = size.rows.saturating_sub(LEFT_FREE).max(LEAST);
        let pages = if rows.len() <= room + OURS {
            vec![text.to_owned()]
        } else {
            rows.chunks(room).map(|rows| rows.join("\n")).collect()
        };
        Self { pages, shown: 0 }
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

    #[test]
    fn a_text_that_fits_is_one_page_as_it_is() {
        let mut pages = Pages::of("a\nb\n", SMALL);
        assert!(pages.is_one());
        assert_eq!(all(&mut pages), ["a\nb\n"]);
        assert_eq!(pages.next(), "");
    }

    #[test]
    fn a_long_line_fills_as_many_rows_as_it_takes_and_each_page_has_its_number() {
        let mut pages = Pages::of(&"x".repeat(20 * 20), SMALL);
        let shown = all(&mut pages);
        assert_eq!(shown.len(), 3);
        assert!(shown[0].contains("page 1 of 3") && shown[2].contains("page 3 of 3"), "{shown:?}");
    }

    proptest! {
        #[test]
        fn every_character_is_on_some_page_and_no_page_is_longer_than_the_screen(
            text in "(\\PC|\n|\t){0,600}", columns in 10_usize..60, rows in 9_usize..30,
        ) {
            let size = Size { columns, rows };
            let shown = all(&mut Pages::of(&text, size));
            let many = shown.len() > 1;
            let mut rest = text.replace('\n', "");
            for page in &shown {
                let page: Vec<&str> = page.lines().collect();
                let lines = if many { &page[..page.len() - 1] } else { &page };
                if many {
                    prop_assert!(page.len() + 2 <= rows.max(LEAST + LEFT_FREE));
                }
                for line in lines {
                    rest = rest.strip_prefix(*line).map(str::to_owned).expect("in its order");
                }
            }
            prop_assert!(rest.is_empty());
        }
    }
}
