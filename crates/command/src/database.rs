//! Clients of databases, whose own commands can start a program: `.shell` of sqlite3, `\!` of psql, `system` of mysql.

use super::inline::AS_OPTION;
use super::shell::is_input;

/// Options of sqlite3 that take the next word, and how many words.
const SQLITE_VALUED: &[(&str, usize)] = &[
    ("separator", 1),
    ("newline", 1),
    ("nullvalue", 1),
    ("maxsize", 1),
    ("mmap", 1),
    ("vfs", 1),
    ("heap", 1),
    ("sorterref", 1),
    ("lookaside", 2),
    ("pagecache", 2),
    ("escape", 1),
];

/// Functions of its command line that start a program, load code or write a file.
const SQLITE_ACTS: &[&str] = &["edit", "load_extension", "writefile"];

/// Whether sqlite3 may start a program: by a command of its own, by a function, or by what it reads.
pub(super) fn sqlite_runs(words: &[String]) -> bool {
    let (mut operands, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            operands.push(word);
            continue;
        };
        if matches!(option, "cmd" | "init" | "interactive" | "") || option.starts_with('A') {
            return true;
        }
        at += SQLITE_VALUED.iter().find(|(name, _)| *name == option).map_or(0, |(_, values)| *values);
    }
    // Without a statement it takes its commands from its input.
    operands.len() < 2 || operands.iter().any(|word| is_input(word)) || operands[1..].iter().any(|sql| acts(sql))
}

fn acts(sql: &str) -> bool {
    let command = sql.lines().any(|line| line.trim_start().starts_with('.'));
    let mut names = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    command || names.any(|name| SQLITE_ACTS.contains(&name.to_ascii_lowercase().as_str()))
}

/// Whether statements hold a command of the client itself, or let the server start a program.
fn commands(statements: &str) -> bool {
    let text = statements.to_ascii_lowercase();
    let first = |statement: &str| {
        let name = statement.split_whitespace().next().unwrap_or("");
        matches!(name, "system" | "source" | "edit" | "pager")
    };
    let mut names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    // `--execute=system x`, `-esystem x`
    let long = text.strip_prefix("--").and_then(|long| long.split_once('=')).map(|(_, value)| value);
    let letter = text.strip_prefix('-').and_then(|rest| rest.get(1..));
    let own = long.or(letter).unwrap_or(&text);
    names.any(|name| name == "program") || own.split([';', '\n']).any(first)
}

/// Why the words of psql or mysql do not tell what is run, if so.
pub(super) fn hidden(words: &[String]) -> Option<&'static str> {
    // `-o '|program'` is where psql writes to.
    let own = |word: &String| word.contains(['\\', '|']) || is_input(word) || word.starts_with("--pager");
    if words.iter().any(|word| own(word) || commands(word)) {
        return Some(AS_OPTION);
    }
    let takes = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
    let input = words.iter().any(|word| matches!(word.as_str(), "-" | "-f-" | "--file=-"));
    let told = takes(&["-c", "-f", "-e", "--command", "--file", "--execute"])
        || words.iter().any(|word| matches!(word.as_str(), "--version" | "-V" | "-l" | "--list" | "--help"));
    (input || !told).then_some("a program takes its commands from its input")
}
