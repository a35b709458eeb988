//! Words that become known only when a line runs, marked in a command's words while its forms are made.
//!
//! A mark is a last character that no line holds. It is taken off before words leave this crate.

use portcullis_base::OpenWord;

use super::unwrap::is_assignment;

/// Ends a word that becomes exactly one word.
const ONE: char = '\u{2}';
/// Ends a word that may become several words, or none.
const MANY: char = '\u{3}';
/// Stands in a line for one of the marks that the author of the line wrote there.
const WRITTEN: &str = "\u{1}";

/// How many words an open word may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenExtent {
    One,
    Many,
}

/// Marks a word.
pub fn mark(mut word: String, open: OpenExtent) -> String {
    word.push(match open {
        OpenExtent::One => ONE,
        OpenExtent::Many => MANY,
    });
    word
}

/// Whether a word is open, and how far.
pub fn of(word: &str) -> Option<OpenExtent> {
    match word.chars().next_back() {
        Some(ONE) => Some(OpenExtent::One),
        Some(MANY) => Some(OpenExtent::Many),
        _ => None,
    }
}

/// The word as it was written.
pub fn bare(word: &str) -> &str {
    word.trim_end_matches([ONE, MANY])
}

/// Takes the marks out of a text for a shell.
pub fn without(text: &str) -> String {
    text.replace([ONE, MANY], "")
}

/// A line in which nobody wrote a mark.
pub fn unmarked(line: &str) -> std::borrow::Cow<'_, str> {
    if line.contains([ONE, MANY]) { line.replace([ONE, MANY], WRITTEN).into() } else { line.into() }
}

/// The words without their marks, and which of them were open.
pub fn taken_off(argv: Vec<String>) -> (Vec<String>, Vec<OpenWord>) {
    let mut open = Vec::new();
    let words = argv.into_iter().enumerate().map(|(at, word)| match of(&word) {
        None => word,
        Some(how) => {
            open.push(OpenWord { at, many: how == OpenExtent::Many });
            bare(&word).to_owned()
        }
    });
    (words.collect(), open)
}

/// The words with their marks.
pub fn put_on(argv: &[String], open: &[OpenWord]) -> Vec<String> {
    let mut words: Vec<String> = argv.iter().map(|word| unmarked(word).into_owned()).collect();
    for OpenWord { at, many } in open {
        if let Some(word) = words.get_mut(*at) {
            *word = mark(std::mem::take(word), if *many { OpenExtent::Many } else { OpenExtent::One });
        }
    }
    words
}

/// Whether nobody can tell which program the first word is. What is assigned to a variable is no program.
pub fn hides_program(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| of(program).is_some() && !is_assignment(program))
}

/// How many words the raw text of a word may become that a shell expands.
pub fn spread(raw: &str) -> OpenExtent {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for (at, c) in raw.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '$' | '`' | '*' | '?' | '[' | '{' | '(' if !single && !double => return OpenExtent::Many,
            // `"$@"` and `"${words[@]}"` are as many words as there are.
            '$' if double => {
                let name = raw[at + 1..].trim_start_matches('{').trim_start_matches('!');
                let end = raw[at + 1..].find('}').map_or("", |end| &raw[at + 1..at + 1 + end]);
                if name.starts_with('@') || end.contains("[@]") {
                    return OpenExtent::Many;
                }
            }
            _ => {}
        }
    }
    OpenExtent::One
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_variable_is_one_word_and_any_other_expansion_may_be_many() {
        for raw in [r#""$x""#, r#""a$x/b""#, r#""$(ls)""#, r#""${x:-y}""#] {
            assert_eq!(spread(raw), OpenExtent::One, "{raw}");
        }
        for raw in ["$x", r#""$@""#, r#""${a[@]}""#, r#""a"$x"#, r#""$x"*"#, "`ls`", "{a,b}", "$'x'"] {
            assert_eq!(spread(raw), OpenExtent::Many, "{raw}");
        }
    }

    #[test]
    fn marks_come_off_as_they_were_put_on() {
        let open = vec![OpenWord { at: 1, many: true }, OpenWord { at: 2, many: false }];
        let argv = ["git", "$x", "$y", "z"].map(str::to_owned);
        assert_eq!(taken_off(put_on(&argv, &open)), (argv.to_vec(), open));
        assert_eq!(of(&unmarked("push\u{3}")), None);
    }
}
