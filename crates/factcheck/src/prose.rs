//! An answer as sentences of its author. What it quotes, plans or drafts is left out; what it writes as code is one token.

use crate::words::{EXTENSIONS, FILE_NAMES, FILE_VERBS, OTHERS_WORK, PLANS, has};

/// Characters of an answer that are looked at; claims further on are few, and every one costs time.
const LOOKED_AT: usize = 200_000;

/// Characters in which a mark is looked for that closes another.
const QUOTED_MAX: usize = 2_000;

/// A word in lower case, a stop such as `,`, or something written as code or as a path, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexeme {
    pub text: String,
    pub code: bool,
}

impl Lexeme {
    pub fn is(&self, list: &str) -> bool {
        !self.code && has(list, &self.text)
    }
}

/// The sentences of an answer, and whether there is more of it than was looked at.
pub fn sentences(answer: &str) -> (Vec<Vec<Lexeme>>, bool) {
    let cut = answer.chars().nth(LOOKED_AT).is_some();
    let text: String = answer.chars().take(LOOKED_AT).collect();
    let text = without(&without(&text, "<think>", "</think>"), "<!--", "-->");
    let mut out = Vec::new();
    for segment in segments(&text) {
        let mut sentence: Vec<Lexeme> = Vec::new();
        for token in tokens(&segment) {
            if !token.is(". ? ; —") {
                sentence.push(token);
                continue;
            }
            let ended = std::mem::take(&mut sentence);
            if token.is("?") {
                sentence.push(word("asked"));
            } else {
                out.push(ended);
            }
        }
        out.push(sentence);
    }
    out.retain(|sentence| !sentence.is_empty());
    (out, cut)
}

fn word(text: &str) -> Lexeme {
    Lexeme { text: text.to_owned(), code: false }
}

fn without(text: &str, open: &str, close: &str) -> String {
    let mut parts = text.split(open);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once(close).map_or("", |(_, rest)| rest))
}

/// Paragraphs, headings, list items and rows of tables: lines that belong together, without what is quoted or planned.
fn segments(answer: &str) -> Vec<String> {
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let lines: Vec<&str> = answer.lines().collect();
    let others = lines.iter().any(|line| OTHERS_WORK.split(' ').any(|word| line.to_lowercase().contains(word)));
    let mut out: Vec<String> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    // Behind "Next steps:" the items of a list, behind such a heading everything below it.
    let (mut planned, mut headed) = (false, false);
    // Behind "Files changed:" what was done to what each item names.
    let (mut listing, mut findings) = (String::new(), false);
    for (nth, line) in lines.iter().enumerate() {
        let text = line.trim();
        let fence = is_fence(line) && (fenced || lines[nth + 1..].iter().any(|line| is_fence(line)));
        fenced ^= fence;
        if fenced || fence || text.is_empty() || text.starts_with('>') {
            open = false;
            continue;
        }
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = digits.len() < text.len() && (digits.starts_with(". ") || digits.starts_with(") "));
        let item = numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| text.starts_with(mark));
        let row = text.starts_with('|');
        let body = if numbered { &digits[2..] } else { text.trim_start_matches(['-', '+', '•', '#', '|', ' ']) };
        let body = if item { body.strip_prefix("* ").unwrap_or(body) } else { body };
        let label = body.trim_matches(['*', '_', ' ', '|']).to_lowercase();
        let words = label.split(|c: char| !c.is_alphanumeric() && c != '-');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let any = |list: &str| words.iter().any(|word| has(list, word));
        let (short, one) = (words.len() < 9, words.len() == 1);
        let heading = text.starts_with('#') || (text.starts_with("**") && text.ends_with("**") && short);
        if !item && !row {
            let intro = label.ends_with(':') || (heading && short && !label.ends_with(['.', '!']));
            if intro || !headed || !planned {
                planned = intro && (any(PLANS) || any(OTHERS_WORK));
                headed = heading || any("message description draft");
            }
            let deed = words.iter().find(|word| FILE_VERBS.iter().any(|(list, _)| has(list, word)));
            let lists = intro && short && (one || any("file files following"));
            listing = deed.filter(|_| lists).map_or(String::new(), |deed| format!("{deed} "));
            planned |= one && !listing.is_empty() && (text.starts_with('#') || others);
        }
        let ticked = ["[x]", "[X]", "✅"].iter().any(|mark| body.starts_with(mark));
        let below = item || headed || line.starts_with("  ") || label.ends_with(':');
        if body.starts_with("[ ]") || (planned && !ticked && below) || (heading && one) {
            open = false;
            continue;
        }
        // In a table of problems the rows tell what was found.
        findings = row && (findings || any("problem issue finding purpose description role risk"));
        let about = if findings { "if " } else { "" };
        let body = body.trim_start_matches("[x]").trim_start_matches("[X]").trim_matches(['|', ' ']);
        match out.last_mut() {
            Some(last) if open && !item && !row => last.extend([" ", body]),
            _ if row => out.push(format!("{about}{body}")),
            _ if item && !words.iter().any(|word| word.ends_with("ed")) => out.push(format!("{listing}{body}")),
            _ => out.push(body.to_owned()),
        }
        open = !row && !heading;
    }
    out
}

fn tokens(text: &str) -> Vec<Lexeme> {
    let chars: Vec<char> = text.chars().collect();
    let is_end = |at: usize| chars.get(at).is_none_or(|c| c.is_whitespace() || matches!(c, '*' | '_' | ')' | '"'));
    let mut out: Vec<Lexeme> = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let run = chars[at..].iter().take(8).take_while(|one| **one == c).count();
        let opens = at == 0 || chars[at - 1].is_whitespace() || matches!(chars[at - 1], '(' | '*');
        let (close, length) = match c {
            '`' => ('`', run),
            '"' => ('"', 1),
            '“' => ('”', 1),
            '\'' if opens => ('\'', 1),
            ']' if chars.get(at + 1) == Some(&'(') => (')', 1),
            _ => (' ', 0),
        };
        let from = at + length;
        let closes = |at: &usize| chars[*at..].iter().take(length).filter(|one| **one == close).count() == length;
        let found = (from..chars.len().min(from + QUOTED_MAX)).find(closes).filter(|_| length > 0);
        if let Some(end) = found {
            let inside: String = chars[from..end].iter().collect();
            let plain = inside.trim().to_lowercase();
            // What runners say, as code: it is said here as well.
            let counts = plain.contains(" passed") && plain.starts_with(|c: char| c.is_ascii_digit());
            let said = counts || has("ok pass passed success 0", &plain);
            match c {
                '`' if !said && !plain.is_empty() => out.push(Lexeme { text: inside.trim().to_owned(), code: true }),
                ']' => {}
                // A quoted word is a name; a quoted sentence is somebody else's.
                '"' | '“' | '\'' if plain.contains(' ') => out.push(word("⟦quoted⟧")),
                _ => out.extend(tokens(&inside)),
            }
            at = end + length;
            continue;
        }
        let stop = match c {
            ',' | ';' | '(' | ')' => c,
            '.' | '!' if is_end(at + 1) => '.',
            '?' if is_end(at + 1) => '?',
            ':' if is_end(at + 1) => ':',
            '|' | '→' | '⇒' | '=' => ':',
            '—' | '–' | '-' if out.len() == 1 && out[0].code && is_end(at + 1) => ':',
            '—' | '–' => '—',
            '-' if is_end(at + 1) && opens => '—',
            '/' if is_end(at + 1) => ',',
            '✅' | '✔' | '☑' | '🟢' | '✓' => '✓',
            '❌' | '✗' | '✘' | '🔴' | '✖' => '✗',
            _ => ' ',
        };
        if stop != ' ' {
            out.push(word(&stop.to_string()));
        }
        if stop != ' ' || c.is_whitespace() || "*[]`\"”\u{fe0f}>".contains(c) {
            at += if c == '`' { run } else { 1 };
            continue;
        }
        let breaks = |c: char| c.is_whitespace() || ",;()|→`\"*]—–=✅❌".contains(c);
        let ends = |at: &usize| breaks(chars[*at]) || (is_end(*at + 1) && ".!?:".contains(chars[*at]));
        let end = (at + 1..chars.len()).find(ends).unwrap_or(chars.len());
        let raw = chars[at..end].iter().collect::<String>().trim_matches(['_', '…']).replace('’', "'");
        let place = raw.split(':').next().unwrap_or_default();
        let file = is_file(place);
        out.push(Lexeme { text: if file { place.to_owned() } else { raw.to_lowercase() }, code: file });
        at = end;
    }
    out.retain(|token| !token.text.is_empty());
    out
}

/// Whether a word names a file or folder; code marks are no condition.
pub fn is_file(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_alphanumeric() || "./_-@+~".contains(c));
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
    let extension = name.rsplit_once('.').map_or(String::new(), |(_, extension)| extension.to_ascii_lowercase());
    let rooted = word.starts_with("./") || (word.starts_with('/') && word.len() > 1);
    plain && !name.is_empty() && (has(EXTENSIONS, &extension) || has(FILE_NAMES, name) || rooted)
}
