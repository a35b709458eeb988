//! A second opinion on where the tokenizer ended a word.
//!
//! It takes `\$'…'` and `$$'…'` for `$'…'`, in which a backslash hides a quote. To a shell the first ends at the next
//! quote, whatever stands before it, and what follows is another command: `cat \$'\' ; rm x #'`.

use brush_parser::Token;

/// Whether every word of the tokens is one word to a shell as well.
pub(super) fn agrees(tokens: &[Token]) -> bool {
    // Words left of a here-document: its tag, its text, and its tag again.
    let mut here = 0_usize;
    tokens.iter().all(|token| match token {
        Token::Operator(operator, _) => {
            here = if matches!(operator.as_str(), "<<" | "<<-") { 3 } else { 0 };
            true
        }
        Token::Word(raw, _) => {
            let text = matches!(here, 1 | 2);
            here = here.saturating_sub(1);
            text || is_one_word(raw)
        }
    })
}

/// Whether a shell takes all of it for one word, as far as that can be told without following a substitution.
fn is_one_word(raw: &str) -> bool {
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        let goes_on = match c {
            // Where no quote ends it a shell reads on beyond the word.
            '\'' => rest.any(|c| c == '\''),
            '"' => match ends(&mut rest, '"') {
                QuoteEnd::Found => true,
                QuoteEnd::Missing => false,
                QuoteEnd::Substitution => return nothing_like_it(rest.as_str()),
            },
            '\\' => rest.next() != Some('$') || same_end(&mut rest),
            '$' => match rest.as_str().chars().next() {
                Some('\'') => {
                    rest.next();
                    matches!(ends(&mut rest, '\''), QuoteEnd::Found)
                }
                Some('$') => {
                    rest.next();
                    same_end(&mut rest)
                }
                Some('(' | '{' | '[') => return nothing_like_it(rest.as_str()),
                _ => true,
            },
            '`' | '(' => return nothing_like_it(rest.as_str()),
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' => false,
            _ => true,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

/// Behind a dollar that opens nothing: whether a quote there, if there is one, ends at the same place in both readings.
fn same_end(rest: &mut std::str::Chars<'_>) -> bool {
    if !rest.as_str().starts_with('\'') {
        return true;
    }
    rest.next();
    rest.find(|c| matches!(c, '\'' | '\\')) == Some('\'')
}

/// How a quoted text ends.
enum QuoteEnd {
    Found,
    Missing,
    /// Something stands in it that has quotes of its own.
    Substitution,
}

/// Goes behind the quote that ends what was opened; a backslash hides one.
fn ends(rest: &mut std::str::Chars<'_>, quote: char) -> QuoteEnd {
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '`' if quote == '"' => return QuoteEnd::Substitution,
            '$' if quote == '"' && rest.as_str().starts_with(['(', '{', '[']) => return QuoteEnd::Substitution,
            c if c == quote => return QuoteEnd::Found,
            _ => {}
        }
    }
    QuoteEnd::Missing
}

/// Behind a substitution: what cannot be followed must at least not hold what is read in two ways.
fn nothing_like_it(rest: &str) -> bool {
    !rest.contains("\\$'") && !rest.contains("$$'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check34_a_word_that_a_shell_would_end_earlier_is_none() {
        for raw in [
            "\\$'\\' ; rm x #'",
            "a\\$'\\' '\\'",
            "$$'\\' ; rm x #'",
            "$(true)$$'\\' ; rm x #'",
            "\"$(true)\"\\$'\\' ; rm x #'",
            "\\$'a\\'b'",
            "'a",
            "\"a",
            "a b",
            "a;b",
        ] {
            assert!(!is_one_word(raw), "{raw}");
        }
    }

    #[test]
    fn the_text_of_a_here_document_is_no_word() {
        for line in
            ["cat <<E | sort\na b; c\nE\n", "cat <<'E' <<-F >x && ls 'a b'\nit's\nE\n\td \"e\nF\n", "cat <<E\nE"]
        {
            let tokens = brush_parser::uncached_tokenize_str(line, &brush_parser::TokenizerOptions::default());
            assert!(agrees(&tokens.expect("tokens")), "{line}");
        }
    }

    #[test]
    fn words_with_dollars_and_quotes_are_words() {
        for raw in [
            "'x\\$'",
            "'a;b'\"c d\"",
            "\\$'x'",
            "$'a\\'b c'",
            "$$",
            "$$'x'",
            "\"\\$'a b'\"",
            "\"a \\\" b\"",
            "$HOME/a",
            "$(echo a b)",
            "\"$(echo 'a' b)\"",
            "a\\ b",
            "a=$x",
            "^x$",
            "'s/'\\''/x/'",
        ] {
            assert!(is_one_word(raw), "{raw}");
        }
    }
}
