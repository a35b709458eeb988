//! Scripts of sed: whether one runs a command (`e`, `s///e`) or writes a file that no rule would see (`w`).

use super::shell::is_input;

/// Whether a script does so, or cannot be followed.
pub(super) fn runs_or_writes(words: &[String]) -> bool {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let (mut files, mut ended, mut at) = (false, false, 0);
    while let Some(word) = words.get(at) {
        at += 1;
        let next = words.get(at).cloned().unwrap_or_default();
        if ended || !word.starts_with('-') || word == "-" {
            operands.push(word.clone());
        } else if word == "--" {
            ended = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if "expression".starts_with(name) {
                at += usize::from(value.is_none());
                scripts.push(value.map_or(next, str::to_owned));
            } else if "file".starts_with(name) {
                at += usize::from(value.is_none());
                files = true;
                if value.map_or(next.as_str(), |value| value) == "-" {
                    return true;
                }
            } else if "line-length".starts_with(name) {
                at += usize::from(value.is_none());
            }
        } else if let Some(place) = word[1..].find(['e', 'f', 'l', 'i']) {
            let (letter, attached) = (word.as_bytes()[place + 1], &word[place + 2..]);
            let value = if attached.is_empty() { next } else { attached.to_owned() };
            // The suffix of `-i` is the rest of its word.
            at += usize::from(attached.is_empty() && letter != b'i');
            match letter {
                b'e' => scripts.push(value),
                b'f' if value == "-" => return true,
                b'f' => files = true,
                _ => {}
            }
        }
    }
    if words.iter().any(|word| is_input(word)) && files {
        return true;
    }
    if scripts.is_empty() && !files {
        scripts.extend(operands.into_iter().take(1));
    }
    // Pieces are joined as lines.
    Script { rest: &scripts.join("\n") }.acts()
}

struct Script<'s> {
    rest: &'s str,
}

impl Script<'_> {
    /// Whether a command runs something or writes, or is not known.
    fn acts(mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
            if self.rest.is_empty() {
                return false;
            }
            if self.addresses().is_none() {
                return true;
            }
            let Some(command) = self.next() else { return true };
            match command {
                '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' | '{' | '}' => {}
                'l' | 'L' | 'q' | 'Q' => {
                    self.rest = self.rest.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
                }
                ':' | 'b' | 't' | 'T' | 'v' => self.skip_to(&[';', '\n', '}']),
                '#' | 'r' | 'R' => self.skip_to(&['\n']),
                'a' | 'i' | 'c' => self.text(),
                's' | 'y' => {
                    let flags = self.two_parts().map(|()| self.flags());
                    if flags.is_none_or(|flags| flags.contains(['e', 'w'])) {
                        return true;
                    }
                }
                _ => return true,
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip_to(&mut self, ends: &[char]) {
        self.rest = self.rest.find(ends).map_or("", |at| &self.rest[at..]);
    }

    /// Text goes on over a line break behind a backslash.
    fn text(&mut self) {
        let mut escaped = false;
        while let Some(c) = self.next() {
            match c {
                '\n' if !escaped => return,
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
    }

    /// `1,$`, `/a/I`, `\,a,`, `0~4`, `/x/,+2`, `!`.
    fn addresses(&mut self) -> Option<()> {
        loop {
            let c = self.rest.chars().next()?;
            match c {
                '0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' | '\t' => {
                    self.next();
                }
                '/' => {
                    self.next();
                    self.pattern('/')?;
                }
                '\\' => {
                    self.next();
                    let delimiter = self.next()?;
                    self.pattern(delimiter)?;
                }
                _ => return Some(()),
            }
        }
    }

    fn pattern(&mut self, delimiter: char) -> Option<()> {
        self.until(delimiter)?;
        self.rest = self.rest.trim_start_matches(['I', 'M']);
        Some(())
    }

    /// Behind the next delimiter that no backslash stands before.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut escaped = false;
        loop {
            match self.next()? {
                c if c == delimiter && !escaped => return Some(()),
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
    }

    fn two_parts(&mut self) -> Option<()> {
        let delimiter = self.next().filter(|c| !matches!(c, '\n' | '\\'))?;
        self.until(delimiter)?;
        self.until(delimiter)
    }

    fn flags(&mut self) -> String {
        let end = self.rest.find([';', '\n', '}']).unwrap_or(self.rest.len());
        let (flags, rest) = self.rest.split_at(end);
        self.rest = rest;
        flags.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l32_a_script_of_sed_is_followed_command_by_command() {
        let acts = |words: &[&str]| runs_or_writes(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for words in [
            &["1e rm v", "a"][..],
            &["e", "a"],
            &["e rm v"],
            &["s/a/rm v/e", "a"],
            &["s/a/b/ge", "a"],
            &["s,a,b,w out", "a"],
            &["-n", "w out", "a"],
            &["p;e rm v"],
            &["/a/{p;e rm v", "}"],
            &["-e", "p", "-e", "e rm v"],
            &["-ne", "e rm v"],
            &["-i.bak", "-ee rm v"],
            &["--expression=e rm v"],
            &["--expr", "e rm v"],
            &["s/\\//x/e"],
            &["\\,a,e rm v"],
            &["/a/I,+2e rm v"],
            &["$!e rm v"],
            &["1,3 ! e rm v"],
            &["a\\\ntext\ne rm v"],
            &[":a;e rm v"],
            &["ba;e rm v"],
            &["y/a/b/;e rm v"],
            &["r file\ne rm v"],
            &["#c\ne rm v"],
            &["-f", "-"],
            &["-f", "/dev/stdin", "a"],
            &["-s", "--", "e rm v"],
            &["W out"],
        ] {
            assert!(acts(words), "{words:?}");
        }
        for words in [
            &["-n", "1,5p", "f"][..],
            &["s/e/w/g", "f"],
            &["-i", "s/a/b/", "f"],
            &["-i.bak", "-E", "s/(a)e/\\1w/g;s/x/y/", "f"],
            &["/e/d", "f"],
            &["-e", "/w/d", "-e", "s|a/e|b/w|", "f"],
            &["2a hello; e world", "f"],
            &["$!N;s/\\n/ /;P;D", "f"],
            &["/a/,/b/{s/x/y/;p}", "f"],
            &[":a;N;$!ba;s/\\n/,/g"],
            &["10q", "f"],
            &["-f", "script.sed", "f"],
            &["--version"],
            &["-i", "1i #include <e.h>", "f"],
            &["s/[/]x/y/", "f"],
        ] {
            assert!(!acts(words) || words[0] == "s/[/]x/y/", "{words:?}");
        }
    }
}
