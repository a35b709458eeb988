//! An answer as sentences of its author: what it quotes is taken out, what it writes as code is set aside.

use super::clauses::is_plan;
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
const NAMES: [&str; 12] = [
    "Makefile",
    "Dockerfile",
    "LICENSE",
    "Justfile",
    "Gemfile",
    "Rakefile",
    ".gitignore",
    ".dockerignore",
    ".editorconfig",
    ".gitattributes",
    "go.mod",
    "go.sum",
];

/// Names with the extension of a file that are none: products and members of objects.
const NO_FILES: [&str; 34] = [
    "node.js",
    "vue.js",
    "next.js",
    "nuxt.js",
    "react.js",
    "express.js",
    "d3.js",
    "three.js",
    "angular.js",
    "ember.js",
    "backbone.js",
    "alpine.js",
    "chart.js",
    "moment.js",
    "p5.js",
    "discord.js",
    "socket.js",
    "require.js",
    "nest.js",
    "electron.js",
    "console.log",
    "process.env",
    "math.log",
    "np.log",
    "logger.log",
    "logging.log",
    "torch.log",
    "mutex.lock",
    "self.lock",
    "this.log",
    "window.env",
    "import.meta.env",
    "deno.env",
    "bun.env",
];

/// Folders of a workspace in which a file may have no extension.
const FOLDERS: [&str; 18] = [
    "src", "lib", "bin", "scripts", "script", "tests", "test", "docs", "app", "crates", "packages", "cmd", "pkg",
    "internal", "tools", "examples", "config", "include",
];

/// Places of files that are not given relative to the workspace.
const PLACES: [&str; 10] =
    ["/workspace/", "/tmp/", "/home/", "/root/", "/Users/", "/var/", "/etc/", "/opt/", "/srv/", "/mnt/"];

/// Sentences, in lower case. `⟦m3⟧` stands for the third thing that is set aside.
#[derive(Debug, Default)]
pub(super) struct Prose {
    pub sentences: Vec<String>,
    /// Code, paths and commands, as written.
    pub aside: Vec<String>,
    /// There is more of the answer than was looked at.
    pub cut: bool,
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::verify::prose::compiled($pattern));
    };
    (pub $name:ident, $pattern:expr) => {
        pub(super) static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::verify::prose::compiled($pattern));
    };
}
pub(super) use pattern;

pattern!(CODE, r"``([^`]+(?:`[^`]+)*)``|`([^`\n]+)`");
// "`sh test.sh` → PASS", "old.py => removed".
pattern!(
    ARROW,
    r"(?i)(\S) ?(?:→|->|=>|⇒|=) ?((?:all |now )?(?:pass|passes|passed|passing|ok|green|clean|success|successful|exit|removed|deleted|created|updated|modified|⟦x⟧|failed|fail|no)\b)"
);
pattern!(EMPHASIS, r"(^|[\s(])_([^_]+)_($|[\s.,:;!)])");
// What a model thinks is not what it says.
pattern!(THOUGHT, r"(?s)<think(?:ing)?>.*?(?:</think(?:ing)?>|\z)");
// What runners say, as code: it is said here as well.
pattern!(SAID_BY_RUNNER, r"(?i)^(?:ok|pass|passed|success|0|\d+ (?:passed|passing)\b.*)$");
pattern!(STATE, r"(?i)^(⟦m\d+⟧):? \((new|created|added|modified|changed|updated|edited|deleted|removed)(?: file)?\)");
pattern!(STRUCK, r"~~[^~]*~~");
pattern!(COMMENT, r"(?s)<!--.*?-->");
pattern!(LINK, r"!?\[([^\]]*)\]\([^)]*\)");
pattern!(QUOTED, r#""([^"]*)"|“([^”]*)”|«([^»]*)»|(?:^|[\s(])'([^']*\s[^']*)'(?:$|[\s.,;:!?)])"#);
pattern!(ITEM, r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+");
pattern!(
    LISTING,
    r"^(?:new|created|added|modified|changed|updated|edited|deleted|removed) files:?$|^files (?:i )?(?:created|added|modified|changed|updated|edited|touched|deleted|removed):?$|\b(?:created|added|modified|changed|updated|edited|touched|deleted|removed) (?:the following|these|two|three|four|\d+)(?: new)? files:$|\bfollowing (?:new )?files (?:were|have been) (?:created|added|modified|changed|updated|edited|touched|deleted|removed):$|\bfiles (?:created|added|modified|changed|updated|edited|touched|deleted|removed):$"
);
pattern!(ONE_WORD, r"^(?:created|added|modified|changed|updated|edited|deleted|removed|changes|deletions):$");
// What others changed, in their words: a changelog has such lists.
pattern!(
    OF_OTHERS,
    r"\b(?:change ?log|release notes?|releases?|versions?|v?\d+\.\d+(?:\.\d+)?|commits?|history|upstream)\b"
);
pattern!(LISTED, r"\b(?:new|created|added|modified|changed|updated|edited|touched|deleted|removed)\b");
pattern!(SAYS_ITSELF, r": (?:created|added|modified|changed|updated|edited|deleted|removed)\b");
pattern!(
    DRAFT,
    r"\b(?:drafts?|suggest(?:ed)?|propos(?:e|ed|al)|recommend(?:ed)?|example|possible|sample)\b.*\b(?:messages?|descriptions?|change ?logs?|notes?|summary|pr|text|title|body|e-?mail)\b.*:$|\bcommit (?:message|title):$"
);
pattern!(
    FINDINGS,
    r"\|[^|]*\b(?:problems?|issues?|findings?|purpose|description|role|risks?|notes?|suggestions?)\b[^|]*\|"
);
pattern!(TEST_TABLE, r"^\|? ?\**(?:tests?|test cases?|suites?)\** ?\|");
pattern!(LABELLED, r"^(⟦m\d+⟧)\s*[—–-]\s");
// "All tests, including the slow ones, pass": what stands between changes nothing.
pattern!(
    BESIDE,
    r",\swhich (?:failed|broke|was|were|had|used to)[^,;]*,\s|,\s(?:including|even|also|especially|notably|incl\.)\s[^,;]*,\s|\s\((?:including|even|incl\.)[^)]*\)|\s[—–-]\s(?:including|even)\s[^—–]*?\s[—–-]\s|\s[—–-]\s(?:finally|at last|thankfully|(?:all|both) of them|again|now)\s[—–-]\s"
);
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
    let mut out = Prose { cut: answer.chars().nth(LOOKED_AT).is_some(), ..Prose::default() };
    let answer: String = answer.chars().take(LOOKED_AT).filter(|c| !matches!(c, '⟦' | '⟧')).collect();
    let answer = unwrapped(&THOUGHT.replace_all(&answer, " "));
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
        let text = STATE.replace(&text, |found: &regex::Captures<'_>| {
            format!("{}: {}", &found[1], if &found[2] == "new" { "created" } else { &found[2] })
        });
        let text =
            BESIDE.replace_all(&text, |found: &regex::Captures<'_>| if found[0].ends_with(')') { "" } else { " " });
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

/// The text of an answer that is one block of Markdown, one quotation or one object of JSON.
fn unwrapped(answer: &str) -> String {
    let whole = answer.trim();
    if let Some(inside) = whole.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"))
        && let Some((info, inside)) = inside.split_once('\n')
        && matches!(info.trim().to_ascii_lowercase().as_str(), "md" | "markdown")
        && !inside.contains("```")
    {
        return inside.to_owned();
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(whole) {
        let line = |(name, value): (&String, &serde_json::Value)| Some(format!("{name}: {}", value.as_str()?));
        return fields.iter().filter_map(line).collect::<Vec<_>>().join("\n\n");
    }
    let quoted = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('>');
    let callout = |line: &str| line.trim_start().starts_with("> [!");
    if !whole.is_empty() && (whole.lines().all(quoted) || whole.lines().any(callout)) {
        let line = |line: &str| line.trim_start().trim_start_matches('>').trim_start_matches(" [!").to_owned();
        return whole.lines().map(line).collect::<Vec<_>>().join("\n");
    }
    answer.to_owned()
}

impl Prose {
    fn aside(&mut self, what: &str) -> String {
        self.aside.push(what.trim().to_owned());
        format!("⟦m{}⟧", self.aside.len() - 1)
    }

    fn set_aside(&mut self, text: &str) -> String {
        CODE.replace_all(text, |found: &regex::Captures<'_>| {
            let inside = found.get(1).or_else(|| found.get(2)).map_or("", |inside| inside.as_str());
            if SAID_BY_RUNNER.is_match(inside.trim()) { inside.to_owned() } else { self.aside(inside) }
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

/// Whether a path looks like a file or folder of the workspace, by its name alone: no route, media type or branch.
pub(super) fn looks_like_a_file(path: &str) -> bool {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let named = extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) || NAMES.contains(&name);
    if NO_FILES.contains(&path.to_ascii_lowercase().as_str()) {
        return false;
    }
    if path.starts_with('/') {
        return named && PLACES.iter().any(|place| path.starts_with(place));
    }
    let folder = path.trim_start_matches("./").split_once('/').is_some_and(|(first, _)| FOLDERS.contains(&first));
    is_file(path) && named || folder || path.starts_with("./") || (path.ends_with('/') && is_path(path))
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
    let lower = text.to_lowercase();
    let mut segments: Vec<String> = Vec::new();
    let mut open = false;
    // Behind "Acceptance criteria:" the items of the list, behind such a heading also what stands right below it.
    let (mut planned, mut headed) = (false, false);
    // Behind "Files changed:" what each item of the list names.
    let mut listing = String::new();
    // Behind "Here is a draft of the message:" everything, until somebody says `I` again.
    let mut drafted = false;
    // In a table of tests every row tells of one.
    let mut tests = false;
    // In a table of problems they tell what was found.
    let mut findings = false;
    for line in text.lines() {
        let trimmed = line.trim();
        drafted &= !trimmed.starts_with("I ") && !trimmed.starts_with("I'");
        if drafted {
            continue;
        }
        drafted = DRAFT.is_match(&trimmed.to_lowercase());
        let row = trimmed.starts_with('|');
        tests = row && (tests || TEST_TABLE.is_match(&trimmed.to_lowercase()));
        findings = row && (findings || FINDINGS.is_match(&trimmed.to_lowercase()));
        if trimmed.is_empty() || trimmed.starts_with('>') {
            open = false;
            continue;
        }
        let item = ITEM.find(line);
        let alone = trimmed.starts_with('#') || trimmed.starts_with('|');
        let body = item.map_or(trimmed, |item| line[item.end()..].trim());
        let body = body.trim_start_matches('#').trim();
        let labelled = labelled_row(body).filter(|_| !findings);
        let body = labelled.as_deref().unwrap_or(body);
        // A box that is not ticked is what is still to be done.
        let Some(body) = (match body.strip_prefix("[ ]") {
            Some(_) => None,
            None => Some(body.strip_prefix("[x]").or_else(|| body.strip_prefix("[X]")).unwrap_or(body)),
        }) else {
            open = false;
            continue;
        };
        let ticked = body.starts_with('✅') || trimmed.contains("[x]") || trimmed.contains("[X]");
        let below = planned && !ticked && (item.is_some() || (headed && !alone));
        if below || (planned && item.is_none() && line.starts_with("  ")) {
            open = false;
            headed = false;
            continue;
        }
        if item.is_none() || !planned {
            let label = body.trim_matches(|c| matches!(c, '*' | '_' | ' '));
            let short = label.split(' ').count() <= 6 && !label.ends_with(['.', '!']);
            headed = trimmed.starts_with('#') || (trimmed.starts_with("**") && trimmed.ends_with("**"));
            let introduces = item.is_none() && (label.ends_with(':') || (headed && short));
            planned = introduces && is_plan(&label.to_lowercase());
            if item.is_none() && (!trimmed.is_empty() || !listing.is_empty()) {
                let label = label.to_lowercase();
                let deed = LISTED.find(&label).map_or("changed", |deed| deed.as_str());
                let deed = if deed == "new" { "created" } else { deed };
                let one_word = ONE_WORD.is_match(&label) && !OF_OTHERS.is_match(&lower);
                let lists = (LISTING.is_match(&label) && (headed || label.ends_with(':'))) || one_word;
                listing = if lists { format!("Files {deed}: ") } else { String::new() };
            }
            // "### Fixed" is a heading; what it says stands below it.
            if headed && trimmed.starts_with('#') && !label.contains(' ') && label.ends_with("ed") {
                open = false;
                continue;
            }
        }
        match segments.last_mut() {
            Some(last) if open && item.is_none() && !alone => {
                last.push(' ');
                last.push_str(body);
            }
            // What an item says of its file itself is more than what its list says.
            _ if item.is_some() && SAYS_ITSELF.is_match(&body.to_lowercase()) => segments.push(body.to_owned()),
            _ if item.is_some() => segments.push(format!("{listing}{body}")),
            _ if tests && !TEST_TABLE.is_match(&body.to_lowercase()) => segments.push(format!("test {body}")),
            _ => segments.push(body.to_owned()),
        }
        open = !alone;
    }
    segments
}

/// "| `a.rs` | added a check |" as "`a.rs`: added a check".
fn labelled_row(row: &str) -> Option<String> {
    let (file, rest) = row.strip_prefix('|')?.trim_start().split_once('|')?;
    (file.trim().starts_with('`') && file.trim().ends_with('`')).then(|| format!("{}: {rest}", file.trim()))
}

/// Signs as words, and without the marks of emphasis.
fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '✅' | '✔' | '☑' | '🟢' | '✓' => out.push_str(" passed "),
            // Not the word alone: "failed tests pass" tells of tests that were repaired.
            '❌' | '✗' | '✘' | '🔴' | '✖' => out.push_str(" ⟦x⟧ failed "),
            '’' => out.push('\''),
            '*' | '|' | '\u{fe0f}' => out.push(' '),
            _ => out.push(c),
        }
    }
    let out = out.replace("__", " ").split_whitespace().collect::<Vec<_>>().join(" ").replace(" : ", ": ");
    let out = ARROW.replace_all(&out, "$1: $2");
    EMPHASIS.replace_all(&out, "$1$2$3").into_owned()
}
