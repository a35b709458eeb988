//! Which actions there are (agent-runtime 10.3): one table, for the menu and for `sandbox_describe`.

/// One action.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Whether it can change something.
    pub(super) changes: bool,
    pub(super) description: &'static str,
    /// An input, as JSON; none where there is nothing to give.
    pub(super) example: Option<&'static str>,
}

const fn looks(name: &'static str, description: &'static str, example: Option<&'static str>) -> Row {
    Row { name, changes: false, description, example }
}

const fn changes(name: &'static str, description: &'static str, example: Option<&'static str>) -> Row {
    Row { name, changes: true, description, example }
}

/// In the order of the specification.
pub(super) const ROWS: [Row; 18] = [
    looks("inspect", "Shows which resources are mounted, where, and whether they may be changed.", None),
    looks(
        "list_dir",
        "Lists what is directly in a directory, what .gitignore names included.",
        Some(r#"{"path":"src","limit":100}"#),
    ),
    looks(
        "read_text",
        "Reads a page of a text file: from its start, some lines of it, or its end. A file must be read before it can be \
         changed.",
        Some(r#"{"path":"src/main.rs","startLine":1,"lineCount":80}"#),
    ),
    changes(
        "write_text",
        "Writes a whole file and makes missing directories. A file that exists must have been read in full.",
        Some(r#"{"path":"notes.md","content":"one line\n"}"#),
    ),
    changes(
        "append_text",
        "Puts text at the end of a file, or makes it. A file that exists must have been read in full.",
        Some(r#"{"path":"notes.md","content":"another line\n"}"#),
    ),
    changes(
        "replace_text",
        "Replaces literal text in a file that was read.",
        Some(r#"{"path":"notes.md","oldText":"one","newText":"two","replaceAll":false}"#),
    ),
    changes("mkdir", "Makes a directory, with its parents unless recursive is false.", Some(r#"{"path":"src/new"}"#)),
    looks("stat", "Shows kind, size and time of what stands at a path.", Some(r#"{"path":"src"}"#)),
    looks(
        "find_entries",
        "Lists files and directories whose path holds a text, in upper or lower case.",
        Some(r#"{"path":".","query":"config"}"#),
    ),
    looks(
        "glob_entries",
        "Lists files and directories that match a glob: `*` and `?` stay inside a name, `**` crosses directories; a \
         pattern without `/` matches names at any depth.",
        Some(r#"{"pattern":"src/**/*.rs","sort":"path"}"#),
    ),
    looks(
        "grep_text",
        "Shows the lines of text files that match a regular expression, in the order of paths.",
        Some(r#"{"pattern":"fn main","path":"src"}"#),
    ),
    looks(
        "run_command",
        "Runs a command line that only reads, or one program with its words in args. Never a shell.",
        Some(r#"{"command":"wc","args":["-l","README.md"]}"#),
    ),
    changes(
        "run_shell",
        "Runs one command line in a fresh shell; nothing survives but files. Asks every time.",
        Some(r#"{"command":"cargo test","timeoutMs":120000}"#),
    ),
    looks("inspect_persistent_shell", "Shows how this session's shell stands.", None),
    changes(
        "open_persistent_shell",
        "Opens this session's shell, or shows the one that runs.",
        Some(r#"{"cwd":"/workspace"}"#),
    ),
    changes(
        "exec_persistent_shell",
        "Runs a command in this session's shell, which is opened if there is none. Asks every time.",
        Some(r#"{"command":"export MODE=test"}"#),
    ),
    looks(
        "wait_persistent_shell",
        "Waits for the command that runs in this session's shell.",
        Some(r#"{"timeoutMs":1000}"#),
    ),
    changes("close_persistent_shell", "Closes this session's shell and ends what runs in it.", None),
];

/// What an action does.
pub(super) fn description(name: &str) -> &'static str {
    ROWS.iter().find(|row| row.name == name).map_or("", |row| row.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_json_and_every_name_is_there_once() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for row in &ROWS {
            if let Some(example) = row.example {
                let parsed: serde_json::Value = serde_json::from_str(example).expect(row.name);
                assert!(parsed.is_object(), "{}", row.name);
            }
        }
    }
}
