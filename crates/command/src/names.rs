//! Other spellings of one command: `/usr/lib/git-core/git-push`, `python3 -m pip`, `node …/npm-cli.js`, `sh /usr/bin/x`.

use super::plain_programs::is_known;
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
        // What has an ending is a project's own script, unless it is known by it: see `by_script`.
        let plain = family != name || !name.contains('.');
        return if plain && marks::of(script).is_none() && !name.is_empty() {
            named(family, &words[at + 1..])
        } else {
            None
        };
    }
    let verb = verbs::default_verb(program, words)?;
    named(program, &[&[verb.to_owned()], words].concat())
}

/// The file that a shell, an interpreter or `source` starts, and where it stands. A module is none.
pub(super) fn started<'w>(program: &str, words: &'w [String]) -> Option<(usize, &'w str)> {
    let operand = |from: usize| {
        let at = from + words.get(from..)?.iter().position(|word| !word.starts_with('-'))?;
        Some((at, words[at].as_str()))
    };
    let (at, script) = match program {
        "source" | "." => operand(0)?,
        _ => hidden::interpreted(program, words)?,
    };
    // `deno run -A x.ts`
    let is_verb = matches!(program, "deno" | "bun") && script == "run";
    let (at, script) = if is_verb { operand(at + 1)? } else { (at, script) };
    let is_file = words[at] == script && (at == 0 || words[at - 1] != "-m");
    (is_file && marks::of(script).is_none() && !base(script).is_empty()).then_some((at, script))
}

/// A command by the script that it starts: `bash deploy.sh prod` is `deploy.sh prod`, as `./deploy.sh prod` is. Only rules
/// that forbid are compared with it.
pub(super) fn by_script(argv: &[String]) -> Option<Vec<String>> {
    let (program, words) = argv.split_first()?;
    let (at, script) = started(base(program), words)?;
    Some([&[base(script).to_owned()], &words[at + 1..]].concat())
}

/// The same of the words of a rule that names an interpreter and a script. One with options before the script means that
/// spelling alone.
#[must_use]
pub fn rule_by_script(words: &[String]) -> Option<Vec<String>> {
    let (program, rest) = words.split_first()?;
    let (_, script) = started(base(program), rest).filter(|(at, _)| *at == 0)?;
    // `bun test` is a verb, and `test` another program.
    let verb = matches!(base(program), "deno" | "bun") && !script.contains(['.', '/']);
    by_script(words).filter(|_| !verb && !is_known(script))
}

/// The same words with a program and verb apart: `git-push x` is `git push x`.
#[must_use]
pub fn whole_name(form: &[String]) -> std::borrow::Cow<'_, [String]> {
    match form.split_first().and_then(|(program, rest)| Some((verbs::hyphenated(base(program))?, rest))) {
        Some(((program, verb), rest)) => [&[program.to_owned(), verb.to_owned()], rest].concat().into(),
        None => form.into(),
    }
}
