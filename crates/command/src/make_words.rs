//! The words of `make`, as it reads them.

/// What the words of `make` name.
#[derive(Debug, Default)]
pub struct MakeWords<'w> {
    /// Where it goes, one after another.
    pub folders: Vec<&'w str>,
    /// The makefiles that it is told to read.
    pub files: Vec<&'w str>,
    pub targets: Vec<&'w str>,
    /// `NAME=value` among its words.
    pub assignments: Vec<&'w str>,
    /// The option by which it is given lines of a makefile.
    pub evaluates: Option<&'w str>,
}

impl<'w> MakeWords<'w> {
    /// Reads the words behind the name of the program.
    #[must_use]
    pub fn of(words: &'w [String]) -> Self {
        let mut out = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        let number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        while let Some(word) = words.next() {
            if word == "--" {
                words.by_ref().for_each(|word| out.operand(word));
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let is = |whole: &str| name.len() >= 2 && whole.starts_with(name);
                let others = ["include-dir", "old-file", "assume-old", "new-file", "assume-new", "what-if"];
                if is("directory") {
                    out.folders.extend(value.or_else(|| words.next()));
                } else if is("file") || is("makefile") {
                    out.files.extend(value.or_else(|| words.next()));
                } else if is("eval") {
                    out.evaluates = Some(word);
                    _ = value.or_else(|| words.next());
                } else if is("jobs") || is("load-average") || is("max-load") {
                    _ = value.or_else(|| words.next_if(number));
                } else if value.is_none() && others.iter().any(|other| is(other)) {
                    words.next();
                }
            } else if let Some(letters) = word.strip_prefix('-') {
                let Some(at) = letters.find(['C', 'f', 'I', 'o', 'W', 'E', 'j', 'l', 'O']) else { continue };
                let attached = Some(&letters[at + 1..]).filter(|value| !value.is_empty());
                match &letters[at..=at] {
                    "C" => out.folders.extend(attached.or_else(|| words.next())),
                    "f" => out.files.extend(attached.or_else(|| words.next())),
                    // Their value may be left out.
                    "j" | "l" => _ = attached.or_else(|| words.next_if(number)),
                    "E" => {
                        out.evaluates = Some(word);
                        _ = attached.or_else(|| words.next());
                    }
                    "O" => {}
                    _ => _ = attached.or_else(|| words.next()),
                }
            } else {
                out.operand(word);
            }
        }
        out
    }

    fn operand(&mut self, word: &'w str) {
        if word.contains('=') { self.assignments.push(word) } else { self.targets.push(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::MakeWords;

    #[test]
    fn a_makefile_is_found_in_every_spelling() {
        for line in [
            "-f rules a",
            "-frules a",
            "-sf rules a",
            "-srf rules a",
            "-srfrules a",
            "--file=rules a",
            "--file rules a",
            "--makefile=rules a",
            "--mak rules a",
            "--fi=rules a",
            "-j4 -f rules a",
            "-j 4 -f rules V=1 a",
            "-Oline -frules a",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let read = MakeWords::of(&words);
            assert_eq!((read.files, read.targets), (vec!["rules"], vec!["a"]), "{line}");
        }
    }
}
