//! Filters of `jq` that see nothing but their input.

/// Names that show the environment, other files, or where the input came from. As bare words they are
/// refused wherever they stand: a string may hold `\(env)`.
const NAMES: [&str; 8] =
    ["env", "ENV", "input_filename", "import", "include", "modulemeta", "get_search_list", "__prog_args"];

/// Looks for them.
///
/// # Errors
/// The name that was found.
pub(super) fn filter(text: &str) -> Result<(), String> {
    let part_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    for word in text.split(|c| !part_of_a_word(c)) {
        // One byte stands between two words, unless it is no ASCII; then it is not the one looked for either.
        let start = text[at..].find(word).map_or(at, |found| at + found);
        at = start + word.len();
        if NAMES.contains(&word) && !is_key(&text[..start]) {
            return Err(format!("a filter with `{word}` may see more than its input"));
        }
    }
    Ok(())
}

/// Whether what comes after `before` is the name of a key: `.env`, but neither `..env` nor `1.env`.
fn is_key(before: &str) -> bool {
    let Some(before) = before.strip_suffix('.') else { return false };
    !before.ends_with(|c: char| c == '.' || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn h03_a_key_may_be_called_as_a_function_is() {
        for good in [
            ".env",
            ".env.PATH",
            ".a.env",
            ".a?.env",
            ".[0].env",
            "{a: .env}",
            "\"\\(.env)\"",
            ".environment",
            "$x.env",
        ] {
            assert_eq!(filter(good), Ok(()), "{good}");
        }
        for bad in [
            "env",
            "env.PATH",
            ". env",
            "..env",
            "1.env",
            "[env]",
            "$ENV",
            ".a|env",
            "\"\\(env)\"",
            ".env|env",
            "$ENV.env",
            ".é|env",
            "input_filename",
        ] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
