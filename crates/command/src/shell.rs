//! Where a shell finds what it runs: in the line after `-c`, in a file, or in its input.

use super::folders::Folder;
use super::unwrap::base;

/// Shells, by name without a version.
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "lksh", "oksh", "pdksh", "rksh", "ash", "hush", "posh", "yash", "fish",
    "rbash", "rzsh", "csh", "tcsh", "osh", "ysh", "brush", "rc", "es", "nu", "elvish", "xonsh",
];

/// Shells whose language is not the one that is analysed.
const OTHER_LANGUAGES: &[&str] = &["fish", "csh", "tcsh", "rc", "es", "nu", "elvish", "xonsh", "ysh"];

fn family(program: &str) -> &str {
    let name = base(program);
    name.strip_suffix("-static")
        .unwrap_or(name)
        .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

#[must_use]
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&family(program))
}

/// Why the words of the shell `program` do not tell what it runs, if so.
pub(super) fn hidden(program: &str, words: &[String]) -> Option<&'static str> {
    if matches!(words, [only] if matches!(only.as_str(), "--version" | "--help")) {
        return None;
    }
    let read = Read::of(words);
    if read.input || words.iter().any(|word| is_input(word)) {
        Some("a shell takes its commands from its input")
    } else if !read.lines.is_empty() && OTHER_LANGUAGES.contains(&family(program)) {
        Some("a shell runs a line in a language that is not analysed")
    } else {
        None
    }
}

/// The line after `-c`, alone or among other letters. More than one where it cannot be told which.
pub(super) fn lines(words: &[String]) -> Vec<String> {
    Read::of(words).lines
}

/// Where the file stands that a shell reads its commands from; none if it finds them elsewhere.
pub(super) fn script(words: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.strip_prefix(['-', '+']) {
            None => return Some(at),
            Some("" | "-") => return (at + 1 < words.len()).then_some(at + 1),
            Some(letters) => {
                let long = letters.starts_with('-');
                if (!long && letters.contains(['c', 'C', 's'])) || letters.starts_with("-c") {
                    return None;
                }
                let named = (!long && letters.ends_with(['o', 'O']))
                    || matches!(letters, "-rcfile" | "-init-file" | "-emulate" | "-init-command");
                at += 1 + usize::from(named);
            }
        }
    }
    None
}

/// A place where a program finds its own input.
pub(super) fn is_input(word: &str) -> bool {
    let names: Vec<&str> = word.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let device = names.iter().any(|name| matches!(*name, "dev" | "proc"));
    match names[..] {
        [.., "stdin" | "tty"] => device,
        [.., "fd", _] => device,
        _ => false,
    }
}

/// The same, seen from the folder that the program runs in.
pub(super) fn is_input_in(folder: &Folder, word: &str) -> bool {
    match folder {
        Folder::Start | Folder::Elsewhere => false,
        Folder::At(steps) => is_input(&format!("{}/{word}", steps.join("/"))),
        Folder::Unknown => {
            let name = base(word);
            name == "stdin" || (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
        }
    }
}

/// The words of a shell as it reads them.
#[derive(Default)]
struct Read {
    lines: Vec<String>,
    /// It takes commands from its input, or nobody can tell.
    input: bool,
}

impl Read {
    fn of(words: &[String]) -> Self {
        let (mut wanted, mut from_input, mut ended) = (false, false, false);
        let mut lines = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            match word.strip_prefix(['-', '+']) {
                Some("" | "-") if !ended => ended = true,
                Some(long) if !ended && long.starts_with('-') => {
                    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                    match (name, value) {
                        ("-command" | "-init-command", Some(line)) => lines.push(line.to_owned()),
                        ("-command" | "-init-command", None) => wanted = true,
                        ("-rcfile" | "-init-file" | "-emulate", None) => at += 1,
                        _ => {}
                    }
                }
                Some(letters) if !ended => {
                    let sets = word.starts_with('-');
                    wanted |= sets && letters.contains(['c', 'C']);
                    from_input |= sets && letters.contains('s');
                    let named = letters.matches(['o', 'O']).count();
                    if named > 0 && !letters.ends_with(['o', 'O']) {
                        // Bash takes one of the next words for each; others take the rest of this one.
                        let rest = words[at..].iter().filter(|word| !word.starts_with(['-', '+'])).cloned();
                        return Self { lines: rest.collect(), input: true };
                    }
                    // `-o NAME`
                    at += named;
                }
                _ => {
                    if wanted {
                        lines.push(word.clone());
                    }
                    let input = from_input && lines.is_empty();
                    return Self { lines, input };
                }
            }
        }
        // No word is left for a script.
        Self { input: lines.is_empty(), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l32_a_place_of_input_is_known_however_it_is_written() {
        for word in [
            "/dev/stdin",
            "//dev/./stdin",
            "/dev/fd/0",
            "/dev/fd/63",
            "/proc/self/fd/0",
            "/proc/1/fd/3",
            "/proc/thread-self/fd/0",
            "../../dev/stdin",
            "/dev/tty",
        ] {
            assert!(is_input(word), "{word}");
        }
        for word in ["/dev/null", "stdin", "a/fd/0", "-", "src/dev.rs", "/dev/shm/a.sh", "dev/a.py"] {
            assert!(!is_input(word), "{word}");
        }
    }
}
