//! Patterns of `find` and `grep` in the words of our tools. Where the same text means something else
//! there, it is translated; where it cannot be, there is no alternative.

/// Characters that mean something in a regular expression of any kind.
const META: &str = r"\.^$*+?()[]{}|";

/// A pattern of `find -name` as `glob` takes it: at any depth, unless it holds a `/`.
pub(super) fn of_name(name: &str) -> Option<String> {
    if name.is_empty() || name.ends_with('\\') || name.trim() != name {
        return None;
    }
    // Braces and commas are text to find.
    let mut out = String::new();
    for c in name.chars() {
        if matches!(c, '{' | '}') {
            out.push('\\');
        }
        out.push(c);
    }
    Some(if out.contains('/') { out } else { format!("**/{out}") })
}

/// The same for `-iname`: each letter in both cases.
pub(super) fn of_name_in_any_case(name: &str) -> Option<String> {
    if name.contains(['[', '\\']) || !name.is_ascii() {
        return None;
    }
    let both = |c: char| match c {
        c if c.is_ascii_alphabetic() => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        c => c.to_string(),
    };
    of_name(name).map(|name| name.chars().map(both).collect())
}

/// A pattern of `grep` (`extended` says which syntax) or of `rg` (none) for our `grep`, and whether it is
/// to be taken as plain text.
pub(super) fn of_lines(query: &str, fixed: bool, extended: Option<bool>) -> Option<(String, bool)> {
    // Several patterns, one a line.
    if query.contains('\n') {
        return None;
    }
    if fixed || !query.contains(|c| META.contains(c)) {
        return Some((query.to_owned(), true));
    }
    match extended {
        None => Some((query.to_owned(), false)),
        Some(extended) => posix(query, extended).map(|text| (text, false)),
    }
}

/// A POSIX expression as Rust writes it. In a basic one `\(` groups and `(` is text, in an extended one
/// it is the other way round.
fn posix(query: &str, extended: bool) -> Option<String> {
    let mut out = String::new();
    let mut chars = query.chars().peekable();
    // Where an expression or a group begins, `*` is text to a basic one; of an extended one it is unclear.
    let mut begins = true;
    while let Some(c) = chars.next() {
        let (operator, c) = match c {
            '\\' => {
                let next = chars.next()?;
                match next {
                    '(' | ')' | '{' | '}' | '+' | '?' | '|' => (!extended, next),
                    '<' | '>' => {
                        out.push_str(r"\b");
                        continue;
                    }
                    'w' | 'W' | 's' | 'S' | 'b' | 'B' => {
                        out.push('\\');
                        out.push(next);
                        begins = false;
                        continue;
                    }
                    // What has been found before is not known to a linear engine; other letters are undefined.
                    next if next.is_ascii_alphanumeric() => return None,
                    next => (false, next),
                }
            }
            '(' | ')' | '{' | '}' | '+' | '?' | '|' => (extended, c),
            '[' => {
                bracket(&mut chars, &mut out)?;
                begins = false;
                continue;
            }
            '*' if begins && !extended => (false, c),
            // Text in the middle of a basic expression; before `\)` and `\|` it is an anchor to some.
            '^' if !extended && !begins => (false, c),
            '$' if !extended && chars.peek() == Some(&'\\') => return None,
            '$' if !extended && chars.peek().is_some() => (false, c),
            '.' | '*' | '^' | '$' => (true, c),
            c => (false, c),
        };
        if operator {
            let repeats = matches!(c, '*' | '+' | '?' | '{');
            // Undefined at the start, and after another one it means something else to Rust (`a*?`).
            if repeats && (begins || out.ends_with(['*', '+', '?', '}']) && !ends_in_text(&out)) {
                return None;
            }
            out.push(c);
            begins = matches!(c, '(' | '|' | '^');
        } else {
            out.push_str(&regex::escape(&c.to_string()));
            begins = false;
        }
    }
    regex::Regex::new(&out).is_ok().then_some(out)
}

/// Whether the last character is escaped.
fn ends_in_text(out: &str) -> bool {
    let body = &out[..out.len().saturating_sub(1)];
    body.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// After `[`. A backslash is text there; what only Rust knows (`&&`, `--`, `[` inside) is escaped.
fn bracket(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        let c = chars.next()?;
        match c {
            ']' if !first => {
                out.push(']');
                return Some(());
            }
            '[' if matches!(chars.peek(), Some(':')) => {
                let mut class = String::from("[");
                loop {
                    let c = chars.next()?;
                    class.push(c);
                    if c == ']' {
                        break;
                    }
                }
                let name = class.strip_prefix("[:")?.strip_suffix(":]")?;
                if !name.chars().all(|c| c.is_ascii_lowercase()) {
                    return None;
                }
                out.push_str(&class);
            }
            '[' if matches!(chars.peek(), Some('.' | '=')) => return None,
            '[' | ']' | '\\' | '&' | '~' | '^' => {
                out.push('\\');
                out.push(c);
            }
            '-' if first || chars.peek() == Some(&']') => out.push_str(r"\-"),
            c => out.push(c),
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check15_patterns_of_grep_keep_their_meaning() {
        let basic = |query: &str| of_lines(query, false, Some(false));
        let extended = |query: &str| of_lines(query, false, Some(true));
        let regex = |text: &str| Some((text.to_owned(), false));
        let plain = |text: &str| Some((text.to_owned(), true));
        assert_eq!(basic("TODO"), plain("TODO"));
        assert_eq!(basic("a(b)"), regex(r"a\(b\)"));
        assert_eq!(basic("a|b"), regex(r"a\|b"));
        assert_eq!(basic(r"a\|b"), regex("a|b"));
        assert_eq!(basic(r"\(a\)\{2\}"), regex("(a){2}"));
        assert_eq!(basic("a+"), regex(r"a\+"));
        assert_eq!(basic(r"a\+"), regex("a+"));
        assert_eq!(basic("*a"), regex(r"\*a"));
        assert_eq!(basic("^a.*b$"), regex("^a.*b$"));
        assert_eq!(basic(r"\<a\>"), regex(r"\ba\b"));
        assert_eq!(basic("fn main()"), regex(r"fn main\(\)"));
        assert_eq!(basic(r"[a\]"), regex(r"[a\\]"));
        assert_eq!(basic("[]a]"), regex(r"[\]a]"));
        assert_eq!(basic("[[:alpha:]-]"), regex(r"[[:alpha:]\-]"));
        assert_eq!(extended("a|b+"), regex("a|b+"));
        assert_eq!(extended(r"a\|b"), regex(r"a\|b"));
        assert_eq!(extended("(a|b){2}"), regex("(a|b){2}"));
        assert_eq!(basic("a^b$c"), regex(r"a\^b\$c"));
        for query in [r"\(a\)\1", r"\(a$\)", r"a\d", "[[.a.]]", "a\nb", "[a"] {
            assert_eq!(basic(query), None, "{query}");
        }
        for query in ["a*?", "+a", r"(a)\1", "(a", "a{2}{3}"] {
            assert_eq!(extended(query), None, "{query}");
        }
        assert_eq!(of_lines("a.b", true, Some(false)), plain("a.b"));
        assert_eq!(of_lines(r"\d+", false, None), regex(r"\d+"));
    }

    #[test]
    fn check15_names_of_find_are_names_of_glob() {
        assert_eq!(of_name("*.rs").as_deref(), Some("**/*.rs"));
        assert_eq!(of_name("a/*.rs").as_deref(), Some("a/*.rs"));
        assert_eq!(of_name("{a,b}").as_deref(), Some(r"**/\{a,b\}"));
        assert_eq!(of_name_in_any_case("a*1").as_deref(), Some("**/[aA]*1"));
        assert_eq!(of_name(""), None);
    }
}
