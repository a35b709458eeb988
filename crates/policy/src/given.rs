//! Whether a command has an option that a rule names, in whatever way it is written: alone, in a bundle of letters, with its
//! value attached, by its beginning, or by its other name.

use portcullis_command::marks;

use crate::fit::Fit;

/// The most letters of an option that may be given one by one: `-rf` is `-r -f`. Longer ones are words.
const BUNDLE_MAX: usize = 3;

/// From so many letters on the beginning of a long option surely means it. Shorter ones have many meanings.
const SURE_BEGINNING: usize = 3;

/// Programs to which `-r` and `-R` are one option.
const RECURSIVE_BOTH_WAYS: &[&str] = &["rm", "cp", "chmod", "chown", "chgrp"];

/// The long names of the letters of a program, or of one of its verbs.
struct LongNames {
    program: &'static str,
    /// Empty if they hold for every verb.
    verb: &'static str,
    letters: &'static [(char, &'static str)],
}

const fn of(program: &'static str, verb: &'static str, letters: &'static [(char, &'static str)]) -> LongNames {
    LongNames { program, verb, letters }
}

/// Those that people deny, or write in place of a denied one.
const LONG_NAMES: &[LongNames] = &[
    of("rm", "", &[('r', "--recursive"), ('R', "--recursive"), ('f', "--force"), ('d', "--dir")]),
    of("cp", "", &[('r', "--recursive"), ('R', "--recursive"), ('f', "--force"), ('a', "--archive")]),
    of("mv", "", &[('f', "--force")]),
    of("ln", "", &[('f', "--force"), ('s', "--symbolic")]),
    of("chmod", "", &[('R', "--recursive"), ('r', "--recursive")]),
    of("chown", "", &[('R', "--recursive"), ('r', "--recursive")]),
    of("chgrp", "", &[('R', "--recursive"), ('r', "--recursive")]),
    of("sed", "", &[('i', "--in-place")]),
    of("curl", "", &[('k', "--insecure")]),
    of("git", "add", &[('A', "--all"), ('f', "--force")]),
    of("git", "branch", &[('d', "--delete"), ('f', "--force")]),
    of("git", "checkout", &[('f', "--force")]),
    of("git", "clean", &[('f', "--force")]),
    of("git", "commit", &[('n', "--no-verify"), ('a', "--all")]),
    of("git", "fetch", &[('f', "--force")]),
    of("git", "merge", &[('n', "--no-stat")]),
    of("git", "push", &[('f', "--force"), ('d', "--delete")]),
    of("git", "rm", &[('f', "--force")]),
    of("git", "switch", &[('f', "--discard-changes"), ('f', "--force")]),
    of("git", "tag", &[('d', "--delete"), ('f', "--force")]),
    of("docker", "rm", &[('f', "--force")]),
    of("docker", "rmi", &[('f', "--force")]),
    of("docker", "container", &[('f', "--force")]),
    of("docker", "image", &[('f', "--force")]),
    of("npm", "", &[('g', "--global"), ('f', "--force")]),
];

/// Letters that another one stands for, too: `git branch -D` is `-d -f`.
const STRONGER: &[(&str, &str, char, char)] =
    &[("git", "branch", 'd', 'D'), ("git", "branch", 'm', 'M'), ("git", "branch", 'c', 'C')];

/// The words of a command that may be options of what a rule names.
pub(crate) struct Given<'a> {
    /// By its family, and the verb that the rule names behind it.
    pub(crate) program: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) words: &'a [String],
}

impl Given<'_> {
    /// Whether the option of a rule stands anywhere among the words.
    pub(crate) fn has(&self, option: &str) -> Fit {
        let long = self.long(option);
        if long == Fit::Yes {
            return long;
        }
        let letters = option.trim_start_matches('-');
        let is_bundle = !option.starts_with("--")
            && letters.len() <= BUNDLE_MAX
            && letters.bytes().all(|letter| letter.is_ascii_alphabetic());
        let other = if is_bundle {
            letters.chars().map(|letter| self.letter(letter)).min().unwrap_or(Fit::No)
        } else {
            let letters = self.names().filter(|(_, long)| *long == option).map(|(letter, _)| self.in_bundle(letter));
            letters.max().unwrap_or(Fit::No)
        };
        long.max(other)
    }

    fn own(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).take_while(|word| *word != "--").filter(|word| marks::of(word).is_none())
    }

    fn names(&self) -> impl Iterator<Item = (char, &'static str)> {
        let meant =
            |names: &&LongNames| names.program == self.program && (names.verb.is_empty() || names.verb == self.verb);
        LONG_NAMES.iter().filter(meant).flat_map(|names| names.letters.iter().copied())
    }

    /// An option as a word: `--hard`, `--hard=x`, or by its beginning.
    fn long(&self, option: &str) -> Fit {
        let name = option.trim_start_matches('-');
        let fits = |word: &str| {
            let written = word.split('=').next().unwrap_or(word);
            if written == option {
                return Fit::Yes;
            }
            let Some(begun) = written.strip_prefix('-').map(|rest| rest.trim_start_matches('-')) else {
                return Fit::No;
            };
            // `-auto-approve` and `--auto-approve` are one to programs that read both.
            if begun == name && name.len() > BUNDLE_MAX {
                return Fit::Yes;
            }
            let is_long = option.starts_with("--") && written.starts_with("--") && !begun.is_empty();
            match name.strip_prefix(begun).filter(|_| is_long) {
                None => Fit::No,
                // `--force` may be an option of its own beside `--force-with-lease`.
                Some(rest) if rest.starts_with('-') || begun.len() < SURE_BEGINNING => Fit::May,
                Some(_) => Fit::Yes,
            }
        };
        self.own().map(fits).max().unwrap_or(Fit::No)
    }

    /// A letter of a bundle, or its long name.
    fn letter(&self, letter: char) -> Fit {
        let either = RECURSIVE_BOTH_WAYS.contains(&self.program) && matches!(letter, 'r' | 'R');
        let letters = if either { vec!['r', 'R'] } else { vec![letter] };
        let written = letters.into_iter().map(|letter| self.in_bundle(letter));
        let named = self.names().filter(|(known, _)| *known == letter).map(|(_, long)| self.long(long));
        written.chain(named).max().unwrap_or(Fit::No)
    }

    fn in_bundle(&self, letter: char) -> Fit {
        let mut bundles = self.own().filter_map(|word| word.strip_prefix('-')).filter(|rest| !rest.starts_with('-'));
        let stronger = STRONGER.iter().filter(|(program, verb, ..)| *program == self.program && *verb == self.verb);
        let stronger: Vec<char> =
            stronger.filter(|(.., weak, _)| *weak == letter).map(|(.., strong)| *strong).collect();
        if bundles.any(|rest| rest.contains(letter) || rest.contains(stronger.as_slice())) { Fit::Yes } else { Fit::No }
    }
}
