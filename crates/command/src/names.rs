//! Other spellings of one command: `/usr/lib/git-core/git-push`, `python3 -m pip`, `node …/npm-cli.js`, `sh /usr/bin/x`.

use super::shell::is_shell;
use super::unwrap::base;
use super::{hidden, marks, verbs};

/// The same command by the name that rules use, if it is written in another way. The base name of a path is one that
/// wrappers find.
pub(super) fn other(argv: &[String]) -> Option<Vec<String>> {
    let (program, words) = argv.split_first()?;
    if program.contains('/') || marks::of(program).is_some() {
        return None;
    }
    let named = |name: &str, rest: &[String]| Some([&[name.to_owned()], rest].concat());
    if let Some((program, verb)) = verbs::hyphenated(program) {
        return Some([&[program.to_owned(), verb.to_owned()], words].concat());
    }
    if let Some((at, name)) =
        words.iter().enumerate().find_map(|(at, word)| Some((at, word.strip_prefix("--coreutils-prog=")?)))
    {
        return named(name, &words[at + 1..]);
    }
    if hidden::is_interpreter(program) || is_shell(program) {
        let (at, script) = hidden::script_of(program, words)?;
        let name = base(script);
        let family = verbs::family(name);
        // What has an ending is a project's own script, unless it is known by it.
        let plain = family != name || !name.contains('.');
        return if plain && marks::of(script).is_none() && !name.is_empty() {
            named(family, &words[at + 1..])
        } else {
            None
        };
    }
    None
}

/// The same words with a program and verb apart: `git-push x` is `git push x`.
#[must_use]
pub fn whole_name(form: &[String]) -> std::borrow::Cow<'_, [String]> {
    match form.split_first().and_then(|(program, rest)| Some((verbs::hyphenated(base(program))?, rest))) {
        Some(((program, verb), rest)) => [&[program.to_owned(), verb.to_owned()], rest].concat().into(),
        None => form.into(),
    }
}
