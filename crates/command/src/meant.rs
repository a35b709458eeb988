//! Whether a command is the one that somebody names by its program and some of its words.

use super::check_options::has;
use super::hidden::interpreted;
use super::unwrap::{base, peeled};

/// Words that make a command another one, unless they are named, too.
const TURNS: &str = "--dry-run --help -h --version --list --no-run --collect-only --check";

/// A command in one form: `./test.sh` as `test.sh`, `npm run test` as `npm test`, `python3 -m pytest` as `pytest`.
#[must_use]
pub fn normal(words: &[String]) -> Vec<String> {
    let words = peeled(words);
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let name = base(program);
    let skip = match rest.first().map_or("", String::as_str) {
        "run" | "run-script" if has("npm pnpm yarn bun", name) => 1,
        "-C" | "-c" if name == "git" => 2,
        toolchain => usize::from(toolchain.starts_with('+')),
    };
    let from = match interpreted(name, rest) {
        Some((at, _)) => &rest[at..],
        None if has("npx bunx pnpx", name) => &rest[rest.iter().take_while(|word| word.starts_with('-')).count()..],
        None => return std::iter::once(name.to_owned()).chain(rest.iter().skip(skip).cloned()).collect(),
    };
    from.iter().enumerate().map(|(nth, word)| if nth == 0 { base(word).to_owned() } else { word.clone() }).collect()
}

/// Whether `had` is the command that is named, perhaps with more words than that; both in their one form.
#[must_use]
pub fn is_meant(named: &[String], had: &[String]) -> bool {
    let Some(((name, named), (had_name, had))) = named.split_first().zip(had.split_first()) else { return false };
    let mut rest = had.iter();
    name == had_name
        && named.iter().all(|word| rest.any(|other| other == word))
        && !had.iter().any(|word| has(TURNS, word) && !named.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_meant_by_its_program_and_some_of_its_words() {
        let form = |line: &str| normal(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (named, had) in [
            ("./test.sh", "sh test.sh -v"),
            ("npm test", "npm run test"),
            ("pytest tests", "timeout 9 python3 -m pytest -q tests"),
            ("cargo test", "cargo +nightly test -p x"),
            ("git push", "git -C x push origin"),
        ] {
            assert!(is_meant(&form(named), &form(had)), "{named}: {had}");
        }
        for (named, had) in
            [("git push", "git push --dry-run"), ("git push", "echo git push"), ("npm test", "npm install")]
        {
            assert!(!is_meant(&form(named), &form(had)), "{named}: {had}");
        }
    }
}
