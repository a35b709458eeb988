//! The rows of the two corpus files.

// Each test binary looks at some of the cells.
#![allow(dead_code)]

pub struct Row {
    pub id: String,
    pub command: String,
    pub class: String,
    pub mapped: String,
}

/// Reads one file; cells have `\\`, `\n`, `\r` and `\t` escaped.
pub fn rows(file: &str) -> Vec<Row> {
    let path = format!("{}/../command/tests/it/corpus/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    let rows: Vec<Row> = text.split('\n').skip(1).filter(|line| !line.is_empty()).map(row).collect();
    assert!(rows.len() > 100, "{path} has {} rows", rows.len());
    rows
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.split('\t').collect();
    assert!(cells.len() >= 5, "{line}");
    Row { id: cells[0].to_owned(), command: plain(cells[1]), class: cells[2].to_owned(), mapped: cells[4].to_owned() }
}

fn plain(cell: &str) -> String {
    let mut out = String::new();
    let mut chars = cell.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                other => other.expect("an escape has a character"),
            }),
            c => out.push(c),
        }
    }
    out
}
