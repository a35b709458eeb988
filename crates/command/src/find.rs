//! The words of `find`: paths first, then an expression of tests that are known to do nothing.

use super::word::Word;

/// Which words are paths, and whether the working directory is searched without being named.
///
/// # Errors
/// The word that is not known.
pub(super) fn paths(words: &[Word]) -> Result<(Vec<bool>, bool), String> {
    let mut paths = vec![false; words.len()];
    let begins = |text: &str| text.starts_with('-') || matches!(text, "(" | ")" | "!" | ",");
    let start = words.iter().take_while(|word| word.as_literal().is_none_or(|text| !begins(text))).count();
    paths[..start].fill(true);
    let mut at = start;
    while let Some(word) = words.get(at) {
        let Some(test) = word.as_literal() else {
            return Err(format!("`{}` is a pattern outside quotes", word.shown()));
        };
        at += 1;
        let check: fn(&str) -> bool = match test {
            "-not" | "!" | "-o" | "-a" | "(" | ")" | "-prune" | "-print" | "-print0" => continue,
            "-name" | "-iname" | "-path" | "-newer" => |_| true,
            "-type" => |kind| kind.split(',').all(|one| matches!(one, "f" | "d" | "l" | "b" | "c" | "p" | "s")),
            "-maxdepth" | "-mindepth" => |depth| digits(depth),
            "-size" => |size| digits(signless(size).trim_end_matches(['c', 'w', 'b', 'k', 'M', 'G'])),
            "-mtime" => |days| digits(signless(days)),
            test => return Err(format!("`{test}` is not known to only look")),
        };
        match words.get(at).and_then(Word::as_literal) {
            Some(value) if check(value) => {}
            Some(value) => return Err(format!("`{value}` as a value of `{test}`")),
            None => return Err(format!("`{test}` needs a value; a pattern must be in quotes")),
        }
        paths[at] = test == "-newer";
        at += 1;
    }
    Ok((paths, start == 0))
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn signless(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}
