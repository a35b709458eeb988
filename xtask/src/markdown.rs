//! The little of Markdown that the repository's documents are read and written with.

/// Characters of a rule's sentence in a table. Longer ones are cut at a word.
const SENTENCE_MAX: usize = 160;
/// Characters of each part before the last where a sentence has several parts.
const LEAD_MAX: usize = 90;

/// The lines of a text that stand outside fenced code.
fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Every heading with the lines below it, up to the next heading of any level.
pub fn headings(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in outside_fences(text) {
        if let Some((marks, heading)) = line.split_once(' ')
            && !marks.is_empty()
            && marks.bytes().all(|byte| byte == b'#')
        {
            parts.push((heading.trim(), Vec::new()));
        } else if let Some((_, lines)) = parts.last_mut() {
            lines.push(line);
        }
    }
    parts
}

/// The anchor that a heading gets on common hosts: small letters, digits, hyphens.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// The cells of a table's row; `None` if the line is none.
pub fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let mut cells = Vec::new();
    let mut from = 0;
    for (at, _) in inner.match_indices('|') {
        // An escaped bar belongs to its cell.
        if !inner[..at].ends_with('\\') {
            cells.push(inner[from..at].trim());
            from = at + 1;
        }
    }
    cells.push(inner[from..].trim());
    Some(cells)
}

/// The parts of a rule as one sentence that fits the cell of a table: the first sentence of each, joined by arrows.
pub fn sentence(parts: &[&str]) -> String {
    let Some((last, leads)) = parts.split_last() else { return String::new() };
    let mut text = String::new();
    for lead in leads {
        text.push_str(&shortened(first_sentence(&plain(lead)), LEAD_MAX));
        text.push_str(" → ");
    }
    let room = SENTENCE_MAX.saturating_sub(text.chars().count());
    text.push_str(&shortened(first_sentence(&plain(last)), room));
    text
}

/// Without emphasis, and with every bar escaped.
fn plain(text: &str) -> String {
    text.trim().replace("**", "").replace("\\|", "|").replace('|', "\\|")
}

/// Up to the first full stop that ends a sentence: outside code and brackets, before a space and a capital letter.
fn first_sentence(text: &str) -> &str {
    let mut code = false;
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '`' => code = !code,
            '(' if !code => depth += 1,
            ')' if !code => depth -= 1,
            '.' if !code && depth <= 0 => {
                let mut rest = text[at + 1..].chars();
                let ends = rest.next().is_none_or(|next| next == ' ')
                    && rest.next().is_none_or(|next| next.is_uppercase() || matches!(next, '`' | '"' | '(' | '∀'));
                if ends {
                    return &text[..=at];
                }
            }
            _ => {}
        }
    }
    text
}

/// At most `max` characters, cut at a word and outside code, with an ellipsis where something is left out.
fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let end = text.char_indices().nth(max.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let mut cut = &text[..end];
    if let Some(space) = cut.rfind(' ') {
        cut = &cut[..space];
    }
    if cut.matches('`').count() % 2 == 1
        && let Some(open) = cut.rfind('`')
    {
        cut = &cut[..open];
    }
    format!("{}…", cut.trim_end_matches([' ', ',', ';', ':', '(', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_at_its_full_stop_and_fits_its_cell() {
        let cases = [
            (vec!["One. Two."], "One."),
            (vec!["Of 1.5 s (a. B) and `x. Y`. Two."], "Of 1.5 s (a. B) and `x. Y`."),
            (vec!["**Never a success.** Observation."], "Never a success."),
            (vec!["a|b \\| c"], "a\\|b \\| c"),
            (vec!["lease 600/60 against 30/10", "30/10"], "lease 600/60 against 30/10 → 30/10"),
        ];
        for (parts, expected) in cases {
            assert_eq!(sentence(&parts), expected);
        }
        let long = format!("{} `code {}", "word ".repeat(25), "x ".repeat(40));
        let cut = sentence(&[&long]);
        assert!(cut.chars().count() <= SENTENCE_MAX && cut.ends_with("word…"), "{cut}");
        let two = sentence(&[&long, &long]);
        assert!(two.chars().count() <= SENTENCE_MAX && two.contains("word… → word"), "{two}");
    }

    #[test]
    fn headings_cells_and_anchors_are_those_of_markdown() {
        let text = "# A\nx\n```\n# no\n```\n## 2. B (c)\n#no\n";
        assert_eq!(headings(text), [("A", vec!["x"]), ("2. B (c)", vec!["#no"])]);
        assert_eq!(cells("| a | b \\| c |  |"), Some(vec!["a", "b \\| c", ""]));
        assert_eq!(cells("a | b"), None);
        assert_eq!(anchor("3. Invariants (each is `a` checker)"), "3-invariants-each-is-a-checker");
        assert_eq!(anchor("13.7 After the reply"), "137-after-the-reply");
    }
}
