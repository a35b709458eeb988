//! An answer as sentences of its author: what it quotes is taken out, what it writes as code is set aside.

use crate::directive::fences;

/// Characters of an answer that are looked at; claims further on are few, and every one costs time.
const LOOKED_AT: usize = 200_000;

/// Extensions by which a bare word is taken for a file.
const EXTENSIONS: [&str; 62] = [
    "rs", "py", "js", "mjs", "cjs", "ts", "tsx", "jsx", "sh", "bash", "go", "c", "h", "cc", "cpp", "hpp", "java", "kt",
    "rb", "php", "md", "txt", "toml", "yaml", "yml", "json", "lock", "html", "css", "scss", "sql", "xml", "cfg", "ini",
    "conf", "env", "proto", "swift", "scala", "ex", "exs", "erl", "hs", "ml", "cs", "vue", "svelte", "gradle", "cmake",
    "mk", "csv", "log", "tf", "lua", "pl", "r", "jl", "dart", "nix", "zig", "rst", "patch",
];

/// Files that are known by their whole name.
const NAMES: [&str; 6] = ["Makefile", "Dockerfile", "LICENSE", "Justfile", "Gemfile", "Rakefile"];

/// Sentences, in lower case. `⟦3⟧` stands for the third thing that is set aside.
#[derive(Debug, Default)]
pub(super) struct Prose {
    pub sentences: Vec<String>,
    /// Code, paths and commands, as written.
    pub aside: Vec<String>,
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::verify::prose::compiled($pattern));
    };
}
pub(super) use pattern;

pattern!(CODE, r"``([^`]+(?:`[^`]+)*)``|`([^`\n]+)`");
pattern!(STRUCK, r"~~[^~]*~~");
pattern!(COMMENT, r"(?s)<!--.*?-->");
pattern!(LINK, r"!?\[([^\]]*)\]\([^)]*\)");
pattern!(QUOTED, r#""([^"]*)"|“([^”]*)”|«([^»]*)»|(?:^|[\s(])'([^']*\s[^']*)'(?:$|[\s.,;:!?)])"#);
pattern!(ITEM, r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+");
pattern!(LABELLED, r"^(⟦\d+⟧)\s*[—–-]\s");
pattern!(SENTENCE, r"[.!?;](?:\s+|$)|\s[—–-]\s");

/// A pattern of the table. Words are ASCII ones: the phrases are English, and the boundaries of all the world's scripts
/// would cost more than everything else here.
pub(super) fn compiled(pattern: &str) -> regex::Regex {
    let ascii = pattern.replace(r"\b", r"(?-u:\b)").replace(r"\w", "[0-9a-z_]").replace(r"\d", "[0-9]");
    // Invariant: every pattern is a constant, and the tests of the fact-check compile each of them.
    regex::Regex::new(&ascii).expect("a pattern that compiles")
}

/// Reads an answer.
pub(super) fn prose(answer: &str) -> Prose {
    let mut out = Prose::default();
    let answer: String = answer.chars().take(LOOKED_AT).filter(|c| !matches!(c, '⟦' | '⟧')).collect();
    for segment in segments(&answer) {
        let text = out.set_aside(&segment);
        let text = STRUCK.replace_all(&text, " ");
        let text = LINK.replace_all(&text, "$1");
        let text = QUOTED.replace_all(&text, |found: &regex::Captures<'_>| {
            let inside = (1..=4).find_map(|group| found.get(group)).map_or("", |inside| inside.as_str());
            // A quoted word is a name; a quoted sentence is somebody else's.
            if inside.contains(char::is_whitespace) { " ⟦quoted⟧ ".to_owned() } else { format!(" {inside} ") }
        });
        let text = signs(&out.bare_paths(&text)).to_lowercase();
        let text = LABELLED.replace(&text, "$1: ");
        let mut from = 0;
        for end in SENTENCE.find_iter(&text) {
            out.sentences.push(text[from..end.end()].trim().to_owned());
            from = end.end();
        }
        out.sentences.push(text[from..].trim().to_owned());
    }
    out.sentences.retain(|sentence| !sentence.is_empty());
    out
}

impl Prose {
    fn aside(&mut self, what: &str) -> String {
        self.aside.push(what.trim().to_owned());
        format!("⟦{}⟧", self.aside.len() - 1)
    }

    fn set_aside(&mut self, text: &str) -> String {
        CODE.replace_all(text, |found: &regex::Captures<'_>| {
            let inside = found.get(1).or_else(|| found.get(2)).map_or("", |inside| inside.as_str());
            self.aside(inside)
        })
        .into_owned()
    }

    /// Sets aside files that are written without code marks.
    fn bare_paths(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (nth, word) in text.split(' ').enumerate() {
            if nth > 0 {
                out.push(' ');
            }
            let bare =
                word.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '*' | '_'));
            let bare = if word.starts_with('.') && bare.len() < word.len() && word.contains('/') {
                &word[..word.find(bare).unwrap_or(0) + bare.len()]
            } else {
                bare
            };
            if !bare.is_empty() && is_file(bare) && !bare.contains("://") {
                let mark = self.aside(bare);
                out.push_str(&word.replacen(bare, &mark, 1));
            } else {
                out.push_str(word);
            }
        }
        out
    }
}

/// Whether a word names a file or folder; code marks are no condition.
pub(super) fn is_file(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '@' | '+' | '~'));
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    plain
        && !name.is_empty()
        && (extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
            || NAMES.contains(&name)
            || word.starts_with("./")
            || (word.starts_with('/') && word.len() > 1))
}

/// Whether something that was written as code names a file or folder.
pub(super) fn is_path(code: &str) -> bool {
    is_file(code)
        || (code.contains('/') && !code.contains(char::is_whitespace) && !code.contains("://") && !code.contains('('))
}

/// Paragraphs, headings and list items: lines that belong together, without what is quoted.
fn segments(answer: &str) -> Vec<String> {
    let mut text = String::with_capacity(answer.len());
    let mut from = 0;
    for fence in fences(answer) {
        text.push_str(&answer[from..fence.start]);
        text.push_str("\n\n");
        from = fence.end;
    }
    text.push_str(&answer[from..]);
    let text = COMMENT.replace_all(&text, " ");
    let mut segments: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('>') {
            open = false;
            continue;
        }
        let item = ITEM.find(line);
        let alone = trimmed.starts_with('#') || trimmed.starts_with('|');
        let body = item.map_or(trimmed, |item| line[item.end()..].trim());
        let body = body.trim_start_matches('#').trim();
        // A box that is not ticked is what is still to be done.
        let Some(body) = (match body.strip_prefix("[ ]") {
            Some(_) => None,
            None => Some(body.strip_prefix("[x]").or_else(|| body.strip_prefix("[X]")).unwrap_or(body)),
        }) else {
            open = false;
            continue;
        };
        match segments.last_mut() {
            Some(last) if open && item.is_none() && !alone => {
                last.push(' ');
                last.push_str(body);
            }
            _ => segments.push(body.to_owned()),
        }
        open = !alone;
    }
    segments
}

/// Signs as words, and without the marks of emphasis.
fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '✅' | '✔' | '☑' | '🟢' | '✓' => out.push_str(" passed "),
            '❌' | '✗' | '✘' | '🔴' => out.push_str(" failed "),
            '’' => out.push('\''),
            '*' | '|' | '\u{fe0f}' => out.push(' '),
            _ => out.push(c),
        }
    }
    out.replace("__", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}
