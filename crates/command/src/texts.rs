//! Commands that may stand in a text: the value of an option, a word, or what a line gives a program to read.
//!
//! Nobody knows how a program reads its text, so it is cut in several ways. What comes of it is good for a question to a
//! person and for nothing else.

/// Ends one command in most languages that can start a program.
const SEPARATORS: &[char] = &['\n', '\r', ';', '|', '&', '(', ')', '{', '}', '<', '>', '`', '$', '!', '='];

/// Stands around words, or between them.
const QUOTES: &[char] = &['"', '\''];
const LISTS: &[char] = &['"', '\'', ',', '[', ']'];

/// Whether a word holds more than one word to some reader.
#[must_use]
pub fn may_hold_command(word: &str) -> bool {
    // What is behind `=` is looked at as a word of its own.
    let cuts = |c: char| c != '=' && (SEPARATORS.contains(&c) || LISTS.contains(&c));
    word.contains(|c: char| c.is_whitespace() || c == '\\' || cuts(c))
}

/// The pieces of a text, each by its words, that a program might run as a command.
#[must_use]
pub fn pieces(text: &str) -> Vec<Vec<String>> {
    let blank = text.replace("\\_", " ").replace("\\\n", " ");
    let escaped = blank.contains("\\n").then(|| blank.replace("\\n", "\n").replace("\\t", " "));
    let mut out: Vec<Vec<String>> = Vec::new();
    for reading in std::iter::once(blank).chain(escaped) {
        let plain = reading.replace('\\', "");
        cut(&plain.replace(QUOTES, "\n"), &mut out);
        if plain.contains(LISTS) {
            cut(&plain.replace(QUOTES, ""), &mut out);
            cut(&plain.replace(LISTS, " "), &mut out);
        }
    }
    out
}

fn cut(text: &str, out: &mut Vec<Vec<String>>) {
    for piece in text.split(SEPARATORS) {
        let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
        if !words.is_empty() {
            out.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn a_command_is_found_however_a_text_holds_it() {
        for text in [
            "git push",
            "x; git push",
            "-MPOSIX;system\"git push\"",
            "git\\_push",
            "CC=git\\ push",
            "run(['git', 'push'])",
            "os.system('git push')",
            "a\\ngit push",
            ".shell\ngit push",
            "g\"i\"t pu'sh'",
            ":!git push",
        ] {
            let found = pieces(text).iter().any(|piece| piece.join(" ").ends_with("git push"));
            assert!(found, "{text}: {:?}", pieces(text));
        }
    }
}
