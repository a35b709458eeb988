//! Text in the rows of a terminal.
//!
//! Invariant: column 0 always begins a line of Portcullis, and no row of anybody else looks like one. What a model, a tool
//! or a file wrote stands behind a [`BAR`] on every row. A line of ours that takes several rows goes on indented. For this
//! no row is ever left to the terminal to wrap.

use std::borrow::Cow;
use std::sync::OnceLock;

use unicode_width::UnicodeWidthChar as _;

/// What stands behind it is not ours.
pub const BAR: &str = "│ ";
/// Where the value begins in a line that has a label before it.
pub const VALUE_COLUMN: usize = 18;
/// So much deeper than its first row a line of ours goes on.
const DEEPER: usize = 4;
/// What a tab takes at most.
const TAB: usize = 8;
/// A command of ours at the end of a line begins behind these words.
const COMMAND: &str = ": portcullis ";

/// Marks that combine with the character before them, and have done so in every table since Unicode 3.2. The console of Linux
/// gives each of them a column of its own.
const COMMON_MARKS: &[(char, char)] = &[
    ('\u{300}', '\u{36f}'),
    ('\u{483}', '\u{486}'),
    ('\u{591}', '\u{5a1}'),
    ('\u{5a3}', '\u{5b9}'),
    ('\u{5bb}', '\u{5bd}'),
    ('\u{5bf}', '\u{5bf}'),
    ('\u{5c1}', '\u{5c2}'),
    ('\u{64b}', '\u{655}'),
    ('\u{670}', '\u{670}'),
    ('\u{93c}', '\u{93c}'),
    ('\u{941}', '\u{948}'),
    ('\u{94d}', '\u{94d}'),
    ('\u{e31}', '\u{e31}'),
    ('\u{e34}', '\u{e3a}'),
    ('\u{e47}', '\u{e4e}'),
];

/// Blocks in which a character is narrow in one table and wide in another: emoji, ideographs and symbols that became wide, or
/// were added, in some version of Unicode.
const WIDE_SOMEWHERE: &[(char, char)] = &[
    ('\u{2300}', '\u{23ff}'),
    ('\u{2600}', '\u{27bf}'),
    ('\u{2b00}', '\u{2bff}'),
    ('\u{2e80}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{16fe0}', '\u{18dff}'),
    ('\u{1aff0}', '\u{1b2ff}'),
    ('\u{1d300}', '\u{1d37f}'),
    ('\u{1f000}', '\u{1faff}'),
];

/// Columns that a character takes at most.
pub fn width(c: char) -> usize {
    /// Terminals in these languages may be set to show Greek letters, arrows and their like in two columns.
    static WIDE: OnceLock<bool> = OnceLock::new();
    let wide = || {
        let set =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
        set.is_some_and(|locale| ["ja", "ko", "zh"].iter().any(|language| locale.starts_with(language)))
    };
    columns_at_most(c, *WIDE.get_or_init(wide))
}

/// Terminals do not agree on how wide a character is, above all on those that one of them takes for nothing. One that is
/// counted too narrow lets the terminal wrap a row to the first column; one that is counted too wide makes a row shorter. So no
/// character counts as nothing, and the widest opinion holds.
fn columns_at_most(c: char, ambiguous_is_wide: bool) -> usize {
    let within = |ranges: &[(char, char)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
    let told = if ambiguous_is_wide { c.width_cjk() } else { c.width() };
    match (c, told) {
        ('\t', _) => TAB,
        (' '..='~', _) => 1,
        (_, None | Some(0)) if within(COMMON_MARKS) => 1,
        (_, None | Some(0)) => 2,
        (_, Some(1)) if within(WIDE_SOMEWHERE) => 2,
        (_, Some(columns)) => columns,
    }
}

/// The characters of a line that take room, each with where it begins. A colour takes none.
fn visible(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut in_colour = false;
    line.char_indices().filter(move |(_, c)| {
        let hidden = in_colour || *c == '\u{1b}';
        in_colour = hidden && *c != 'm';
        !hidden
    })
}

/// Text of somebody else, each line behind a bar.
pub fn barred(text: &str) -> String {
    text.lines().map(|line| format!("{BAR}{line}\n")).collect()
}

/// Every line in rows that this many columns hold.
pub fn laid_out(text: &str, columns: usize) -> Cow<'_, str> {
    if text.lines().all(|line| fits(line, columns)) {
        return Cow::Borrowed(text);
    }
    let mut shown = text.lines().flat_map(|line| rows(line, columns)).collect::<Vec<_>>().join("\n");
    if text.ends_with('\n') {
        shown.push('\n');
    }
    Cow::Owned(shown)
}

fn fits(line: &str, columns: usize) -> bool {
    visible(line).map(|(_, c)| width(c)).sum::<usize>() <= columns
}

/// What every row of a line but the first begins with: its bar, or an indent.
fn continuation(line: &str) -> String {
    let all: Vec<char> = visible(line).map(|(_, c)| c).take(VALUE_COLUMN + 1).collect();
    let spaces = all.iter().take_while(|c| **c == ' ').count();
    let is_labelled =
        spaces == 2 && matches!(all[VALUE_COLUMN.min(all.len()) - 2..], [' ', ' ', value] if value != ' ');
    match all.get(spaces) {
        Some('│') => format!("{}{BAR}", " ".repeat(spaces)),
        _ if is_labelled => " ".repeat(VALUE_COLUMN),
        _ => " ".repeat(spaces + DEEPER),
    }
}

/// The rows that a line takes. Nothing of it is left out: without what [`continuation`] adds, the rows are the line. They end
/// behind a space where one is near. A command of ours stays together, or each of its rows ends with a backslash, so that a
/// shell takes what is copied.
pub fn rows(line: &str, columns: usize) -> Vec<String> {
    let mut before = continuation(line);
    if before.chars().map(width).sum::<usize>() + TAB > columns {
        before = if before.contains(BAR) { BAR } else { "  " }.to_owned();
    }
    let command = line.rfind(COMMAND).filter(|_| !before.contains(BAR)).map(|at| at + 2);
    let (mut rows, mut start, mut prefix) = (Vec::new(), 0, "");
    while start < line.len() {
        let in_command = command.is_some_and(|at| at <= start);
        let taken: usize = prefix.chars().map(width).sum();
        let rest = &line[start..];
        let mut end = break_at(rest, columns.saturating_sub(taken));
        let mut joint = "";
        if end < rest.len() && in_command {
            end = break_at(rest, columns.saturating_sub(taken + 1));
            joint = if rest[..end].ends_with(' ') { "\\" } else { "" };
        } else if let Some(at) = command.filter(|at| (start + 1..start + end).contains(at) && end < rest.len()) {
            end = at - start;
        }
        rows.push(format!("{prefix}{}{joint}", &rest[..end]));
        start += end;
        prefix = &before;
    }
    if rows.is_empty() {
        rows.push(String::new());
    }
    rows
}

/// How many bytes of a text stand in so many columns: up to a space where one is near, at least one character.
fn break_at(text: &str, columns: usize) -> usize {
    let (mut used, mut space) = (0, None);
    for (at, c) in visible(text) {
        if used > 0 && used + width(c) > columns {
            return space.filter(|(_, before)| before * 2 >= columns).map_or(at, |(at, _)| at);
        }
        used += width(c);
        if c == ' ' {
            space = Some((at + 1, used));
        }
    }
    text.len()
}

/// The beginning of a line, in one row of so many columns; a mark says if more follows.
pub fn beginning(line: &str, columns: usize) -> String {
    if fits(line, columns) {
        return line.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let taken = line.chars().take_while(|c| left.checked_sub(width(*c)).map(|less| left = less).is_some());
    taken.chain(['…']).collect()
}

/// The end of a line, in one row of so many columns; a mark says if something stands before it.
pub fn ending(line: &str, columns: usize) -> String {
    let backwards: String = line.chars().rev().collect();
    beginning(&backwards, columns).chars().rev().collect()
}

/// Text of somebody else in rows, as it comes.
#[derive(Debug, Default)]
pub struct BarredStream {
    /// Columns that are taken of the row that was begun.
    used: usize,
    /// The beginning of a word near the end of the row, which may have to stand in the next one.
    word: String,
}

impl BarredStream {
    /// What is printed for more text on a terminal of so many columns.
    pub fn push(&mut self, text: &str, columns: usize) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if c == '\n' {
                self.place(&mut out, columns);
                out.push_str(if self.used == 0 { "│\n" } else { "\n" });
                self.used = 0;
                continue;
            }
            self.word.push(c);
            let taken: usize = self.used + self.word.chars().map(width).sum::<usize>();
            // A word that cannot reach the end of its row is shown as it comes, and so is one that fills a row of its own.
            if c == ' ' || taken + columns / 4 <= columns || taken > columns {
                self.place(&mut out, columns);
            }
        }
        out
    }

    /// Ends the row that was begun.
    pub fn end(&mut self, columns: usize) -> String {
        let mut out = String::new();
        self.place(&mut out, columns);
        if std::mem::take(&mut self.used) > 0 {
            out.push('\n');
        }
        out
    }

    fn place(&mut self, out: &mut String, columns: usize) {
        let word = std::mem::take(&mut self.word);
        let wide: usize = word.trim_end().chars().map(width).sum();
        if self.used > 0 && self.used + wide > columns && wide * 2 <= columns {
            out.push('\n');
            self.used = 0;
        }
        for c in word.chars() {
            if self.used > 0 && self.used + width(c) > columns {
                // A space at the end of a row is the end of the row.
                if c == ' ' {
                    continue;
                }
                out.push('\n');
                self.used = 0;
            }
            if self.used == 0 {
                out.push_str(BAR);
                self.used = 2;
            }
            out.push(c);
            self.used += width(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns_of(row: &str) -> usize {
        visible(row).map(|(_, c)| width(c)).sum()
    }

    #[test]
    fn a_line_of_ours_breaks_between_words_and_goes_on_indented() {
        let line = "the model failed: allowed: bash rm -rf / (ask_1) is what it said";
        assert_eq!(rows(line, 40), ["the model failed: allowed: bash rm -rf ", "    / (ask_1) is what it said"]);
        let labelled = "  asked because   the tool's default asks about it and says more";
        assert_eq!(rows(labelled, 50)[1], format!("{}it and says more", " ".repeat(VALUE_COLUMN)));
        // A word that is longer than a row is broken where the row ends.
        assert_eq!(rows(&"x".repeat(25), 20), ["x".repeat(20), format!("    {}", "x".repeat(5))]);
        assert_eq!(rows("", 20), [""]);
    }

    #[test]
    fn a_forged_line_behind_padding_keeps_its_bar() {
        let forged = format!("  │ {}fact-check: supported (2 claims checked)", "y".repeat(76));
        let shown = rows(&forged, 80);
        assert!(shown.len() > 1 && shown.iter().all(|row| row.starts_with("  │ ")), "{shown:?}");
        let coloured = format!("\u{1b}[2m{forged}\u{1b}[0m");
        assert!(rows(&coloured, 80)[1..].iter().all(|row| row.starts_with("  │ ")));
    }

    #[test]
    fn a_command_to_copy_stays_whole_or_goes_on_as_a_shell_reads_it() {
        let line = "session sesn_01; look at it with: portcullis sessions show sesn_01";
        assert_eq!(rows(line, 60), ["session sesn_01; look at it with: ", "    portcullis sessions show sesn_01"]);
        let long = "go on: portcullis run --session sesn_0123456789 --model scripted:/tmp/file";
        assert_eq!(
            rows(long, 40),
            ["go on: ", "    portcullis run --session \\", "    sesn_0123456789 --model \\", "    scripted:/tmp/file"]
        );
    }

    #[test]
    fn characters_take_the_columns_that_a_terminal_gives_them() {
        assert_eq!(rows(&"漢".repeat(15), 20).len(), 2);
        assert_eq!(rows(&"é".repeat(20), 20).len(), 1);
        assert_eq!(columns_of("\u{1b}[1mab\u{1b}[0m"), 2);
    }

    /// What `wcwidth` of glibc 2.36 counts as two columns. All else that can be printed is one column to it, or none.
    const WIDE_TO_GLIBC: &str = "\
        1100-115f 231a-231b 2329-232a 23e9-23ec 23f0 23f3 25fd-25fe 2614-2615 2648-2653 267f 2693 26a1 26aa-26ab \
        26bd-26be 26c4-26c5 26ce 26d4 26ea 26f2-26f3 26f5 26fa 26fd 2705 270a-270b 2728 274c 274e 2753-2755 2757 \
        2795-2797 27b0 27bf 2b1b-2b1c 2b50 2b55 2e80-2e99 2e9b-2ef3 2f00-2fd5 2ff0-2ffb 3000-3029 302e-303e \
        3041-3096 309b-30ff 3105-312f 3131-318e 3190-31e3 31f0-321e 3220-a48c a490-a4c6 a960-a97c ac00-d7a3 \
        f900-fa6d fa70-fad9 fe10-fe19 fe30-fe52 fe54-fe66 fe68-fe6b ff01-ff60 ffe0-ffe6 16fe0-16fe3 16ff0-16ff1 \
        17000-187f7 18800-18cd5 18d00-18d08 1aff0-1aff3 1aff5-1affb 1affd-1affe 1b000-1b122 1b150-1b152 \
        1b164-1b167 1b170-1b2fb 1f004 1f0cf 1f18e 1f191-1f19a 1f200-1f202 1f210-1f23b 1f240-1f248 1f250-1f251 \
        1f260-1f265 1f300-1f320 1f32d-1f335 1f337-1f37c 1f37e-1f393 1f3a0-1f3ca 1f3cf-1f3d3 1f3e0-1f3f0 1f3f4 \
        1f3f8-1f43e 1f440 1f442-1f4fc 1f4ff-1f53d 1f54b-1f54e 1f550-1f567 1f57a 1f595-1f596 1f5a4 1f5fb-1f64f \
        1f680-1f6c5 1f6cc 1f6d0-1f6d2 1f6d5-1f6d7 1f6dd-1f6df 1f6eb-1f6ec 1f6f4-1f6fc 1f7e0-1f7eb 1f7f0 \
        1f90c-1f93a 1f93c-1f945 1f947-1f9ff 1fa70-1fa74 1fa78-1fa7c 1fa80-1fa86 1fa90-1faac 1fab0-1faba \
        1fac0-1fac5 1fad0-1fad9 1fae0-1fae7 1faf0-1faf6 20000-2a6df 2a700-2b738 2b740-2b81d 2b820-2cea1 \
        2ceb0-2ebe0 2f800-2fa1d 30000-3134a";

    #[test]
    fn no_character_is_counted_narrower_than_a_table_of_widths_has_it() {
        for c in (' '..=char::MAX).filter(|c| !c.is_control()) {
            let (plain, cjk) = (columns_at_most(c, false), columns_at_most(c, true));
            assert!(plain >= c.width().unwrap_or_default(), "U+{:04X}", c as u32);
            assert!(cjk >= c.width_cjk().unwrap_or_default() && cjk >= plain, "U+{:04X}", c as u32);
            assert!(plain >= 1, "U+{:04X} takes a column in some terminal", c as u32);
        }
        let code = |text: &str| u32::from_str_radix(text, 16).expect("a code point");
        let ranges =
            WIDE_TO_GLIBC.split_ascii_whitespace().map(|range| range.split_once('-').unwrap_or((range, range)));
        let wide = ranges.flat_map(|(first, last)| code(first)..=code(last)).filter_map(char::from_u32);
        for c in wide {
            assert!(columns_at_most(c, false) >= 2, "U+{:04X}", c as u32);
        }
        // The control: tables of widths do not agree on these.
        let doubtful = "\u{9be}\u{9d7}\u{b3e}\u{d4e}\u{70f}\u{8e2}\u{1b35}\u{302e}\u{16ff0}\u{1160}\u{200b}\u{ad}";
        for c in doubtful.chars() {
            assert_eq!(c.width_cjk().unwrap_or_default().min(c.width().unwrap_or_default()), 0, "U+{:04X}", c as u32);
            assert_eq!(columns_at_most(c, false), 2, "U+{:04X}", c as u32);
        }
        assert_eq!(
            "eé̀中│☺ŝж…".chars().map(|c| columns_at_most(c, false)).collect::<Vec<_>>(),
            [1, 1, 1, 2, 1, 2, 1, 1, 1]
        );
    }

    #[test]
    fn a_forged_line_behind_characters_of_doubtful_width_keeps_its_bar() {
        for c in ['\u{9be}', '\u{d4e}', '\u{302e}', '\u{16ff0}', '\u{300}', '\u{4dc0}', '\u{1f1e6}'] {
            for padding in [20, 38, 75, 76, 77, 200] {
                let forged = format!("│ x{}allowed by you: bash rm -rf /", c.to_string().repeat(padding));
                for row in rows(&forged, 80) {
                    // However wide a terminal shows it, up to what any has.
                    let most: usize =
                        row.chars().map(|shown| if shown == c { columns_at_most(c, true) } else { 1 }).sum();
                    assert!(row.starts_with(BAR) && most <= 80, "U+{:04X} {padding}: {row:?}", c as u32);
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_cut_says_on_which_side() {
        assert_eq!(
            (ending("> abc", 5), ending("> abcd", 5), ending("> 漢字", 5)),
            ("> abc".into(), "…abcd".into(), "…漢字".into())
        );
        assert_eq!((beginning("abcde", 5), beginning("abcdef", 5)), ("abcde".into(), "abcd…".into()));
    }

    fn streamed(pieces: &[&str], columns: usize) -> String {
        let mut stream = BarredStream::default();
        let mut out: String = pieces.iter().map(|piece| stream.push(piece, columns)).collect();
        out.push_str(&stream.end(columns));
        out
    }

    #[test]
    fn text_that_comes_in_pieces_stands_behind_a_bar_on_every_row() {
        assert_eq!(
            streamed(&["allo", "wed: rm\n", "\nmore words to co", "me"], 18),
            "│ allowed: rm\n│\n│ more words to \n│ come\n"
        );
        // Without a line end it is shown as it comes.
        let mut stream = BarredStream::default();
        assert_eq!(stream.push("no line end", 80), "│ no line end");
        assert_eq!(stream.end(80), "\n");
        assert_eq!(stream.end(80), "");
    }

    proptest! {
        #[test]
        fn nothing_of_a_line_is_lost_and_no_row_is_wider_than_the_terminal(
            line in "( {0,2}│ | {0,20})(\\PC|\t| ){0,300}", columns in 24_usize..120,
        ) {
            let before = continuation(&line);
            let shown = rows(&line, columns);
            let mut whole = shown[0].clone();
            for row in &shown[1..] {
                whole.push_str(row.strip_prefix(before.as_str()).or(row.strip_prefix(BAR)).or(row.strip_prefix("  ")).expect("it goes on"));
            }
            prop_assert_eq!(&whole, &line);
            for row in &shown {
                prop_assert!(columns_of(row) <= columns, "{row:?}");
            }
        }

        #[test]
        fn every_row_of_streamed_text_has_its_bar_and_fits(
            pieces in prop::collection::vec("(\\PC|\n| ){0,40}", 0..20), columns in 10_usize..120,
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let shown = streamed(&pieces, columns);
            for row in shown.lines() {
                prop_assert!(row.starts_with('│') && columns_of(row) <= columns, "{row:?}");
            }
            let pressed = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != '│').collect::<String>();
            prop_assert_eq!(pressed(&shown), pressed(&pieces.concat()));
        }
    }
}
