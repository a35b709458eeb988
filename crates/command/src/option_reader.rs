//! The words of a program as `getopt` reads them: options with their values, and operands. Every program whose options are
//! followed is read here; only the lists of options that take a value differ.

/// The options of a program that take a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValuedOptions {
    pub(super) letters: &'static str,
    pub(super) long: &'static [&'static str],
}

/// What a program finds next among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadWord<'w> {
    /// `-l`, alone or among other letters; with its value, which is the rest of the word or the next one.
    Letter(char, Option<&'w str>),
    /// `--long`, with its value behind `=` or in the next word.
    Long(&'w str, Option<&'w str>),
    /// `--lo`, which may take the next word or not. That word is read once more.
    Abbreviated(&'w str, Option<&'w str>),
    Operand(&'w str),
}

/// Reads words one after another. Options behind an operand are options too.
pub(super) struct OptionReader<'w> {
    words: &'w [String],
    valued: ValuedOptions,
    at: usize,
    /// Letters of the last word that were not read.
    letters: &'w str,
    /// Behind `--` everything is an operand.
    ended: bool,
}

impl<'w> OptionReader<'w> {
    pub(super) const fn new(words: &'w [String], valued: ValuedOptions) -> Self {
        Self { words, valued, at: 0, letters: "", ended: false }
    }

    /// Where the next word stands.
    pub(super) const fn place(&self) -> usize {
        self.at
    }

    fn word(&mut self) -> Option<&'w str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }
}

impl<'w> Iterator for OptionReader<'w> {
    type Item = ReadWord<'w>;

    fn next(&mut self) -> Option<ReadWord<'w>> {
        if let Some(letter) = self.letters.chars().next() {
            let rest = &self.letters[letter.len_utf8()..];
            let valued = self.valued.letters.contains(letter);
            self.letters = if valued { "" } else { rest };
            let value = match valued {
                true if rest.is_empty() => self.word(),
                true => Some(rest),
                false => None,
            };
            return Some(ReadWord::Letter(letter, value));
        }
        let word = self.word()?;
        if self.ended || word == "-" || !word.starts_with('-') {
            return Some(ReadWord::Operand(word));
        }
        let Some(long) = word.strip_prefix("--") else {
            self.letters = &word[1..];
            return self.next();
        };
        if long.is_empty() {
            self.ended = true;
            return self.next();
        }
        Some(match long.split_once('=') {
            Some((name, value)) => ReadWord::Long(name, Some(value)),
            None if self.valued.long.contains(&long) => ReadWord::Long(long, self.word()),
            None if self.valued.long.iter().any(|known| known.starts_with(long)) => {
                ReadWord::Abbreviated(long, self.words.get(self.at).map(String::as_str))
            }
            None => ReadWord::Long(long, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_every_spelling() {
        let valued = ValuedOptions { letters: "fv", long: &["file"] };
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            format!("{:?}", OptionReader::new(&words, valued).collect::<Vec<_>>())
        };
        for line in ["-f a b", "-fa b"] {
            assert_eq!(read(line), r#"[Letter('f', Some("a")), Operand("b")]"#, "{line}");
        }
        assert_eq!(read("-sfa -"), r#"[Letter('s', None), Letter('f', Some("a")), Operand("-")]"#);
        for line in ["--file a b", "--file=a b"] {
            assert_eq!(read(line), r#"[Long("file", Some("a")), Operand("b")]"#, "{line}");
        }
        assert_eq!(read("--fi a"), r#"[Abbreviated("fi", Some("a")), Operand("a")]"#);
        assert_eq!(read("b -- -f"), r#"[Operand("b"), Operand("-f")]"#);
        assert_eq!(read("-f"), r#"[Letter('f', None)]"#);
    }
}
