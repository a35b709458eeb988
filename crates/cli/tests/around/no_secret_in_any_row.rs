//! A secret that a person, a model, a tool or a client says anywhere stands in no row, no artifact and no export.
//!
//! The secret is the value of a model provider's key variable, which the runtime knows, said in every place where text
//! enters the store. Then every column of every table is read, the packed events through `sessions export`.

use std::fs;
use std::path::Path;

use rusqlite::types::ValueRef;
use serde_json::json;

use crate::arena::{Arena, EVERYBODY};
use crate::common::Ran;

const KEY: &str = "sk-ant-a1b2c3d4e5f6g7h8i9j0-planted-by-a-test";
/// What would be left of it where a text is cut before it is masked.
const PART: &str = "sk-ant-a1b2";

/// The binary with the key in its environment, as a person who uses that provider has it.
fn knowing(arena: &Arena, args: &[&str]) -> Ran {
    arena.command(args).env("ANTHROPIC_API_KEY", KEY).output().expect("it runs").into()
}

/// A model that repeats the secret in everything that a model can say.
fn script() -> String {
    let call = |name: &str, input: serde_json::Value| {
        format!("[[turn]]\ncalls = [{{ name = {name:?}, arguments = {:?} }}]\n", input.to_string())
    };
    [
        format!("[[turn]]\nthinking = \"{KEY}\"\ntext = \"I say {KEY}\"\ncalls = [{{ name = \"read\", arguments = {:?} }}]\n", json!({"file_path": "notes.txt"}).to_string()),
        call("grep", json!({"pattern": KEY})),
        call("read", json!({"file_path": format!("{KEY}.txt")})),
        call("bash", json!({"command": format!("echo {KEY}; echo {KEY} >&2; cat notes.txt; exit 3")})),
        call("write", json!({"file_path": format!("made-{KEY}.txt"), "content": KEY})),
        call(KEY, json!({"x": KEY})),
        call("glob", json!({"pattern": format!("{KEY}*"), "no_such_field": KEY})),
        format!("[[turn]]\ntext = \"done: {KEY}\"\n"),
    ]
    .concat()
}

#[test]
fn l69_a_secret_said_anywhere_stands_in_no_column_of_any_table() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/notes.txt", &format!("the key is {KEY}\n"));
        arena.write("script.toml", &script());
        arena.write(
            "client.json",
            &json!([{"name": "order", "description": KEY, "input_schema": {"type": "object", "description": KEY}}])
                .to_string(),
        );
        let model = format!("scripted:{}", arena.path("script.toml").display());
        let prompt = format!("use {KEY} please");

        knowing(&arena, &["run", "--model", &model, "--approvals", "allow", &prompt]);
        let client = arena.path("client.json").display().to_string();
        let named = format!("name {KEY}");
        let session = knowing(&arena, &["sessions", "new", "--name", &named, "--custom-tools", &client, &prompt])
            .ends(0)
            .id("sesn_");
        knowing(&arena, &["sessions", "send", &session, &prompt]);
        // However far before it a text begins that is cut.
        for lead in (4..80).step_by(9) {
            let prompt = format!("{} {KEY}", "x".repeat(lead));
            knowing(&arena, &["sessions", "new", &prompt]).ends(0);
            knowing(&arena, &["call", "bash", &json!({"command": format!("echo {prompt}")}).to_string()]);
        }
        knowing(&arena, &["sessions", "interrupt", &session, "--note", KEY]);
        knowing(&arena, &["sessions", "fork", &session, "--at", "2"]);
        knowing(&arena, &["call", "read", &json!({"file_path": "notes.txt"}).to_string()]);
        let ask = knowing(&arena, &["call", "shell_run", &json!({"command": format!("echo {KEY}")}).to_string()])
            .ends(3)
            .id("ask_");
        knowing(&arena, &["approvals", "deny", &ask, "--feedback", KEY]);
        let ask = knowing(
            &arena,
            &["call", "shell_run", &json!({"command": format!("echo {KEY} | tee out.txt; cat notes.txt")}).to_string()],
        )
        .ends(3)
        .id("ask_");
        knowing(&arena, &["approvals", "allow", &ask]);
        assert!(arena.read("work/out.txt").contains(KEY), "the approved call runs with what it was given");
        knowing(&arena, &["call", "shell_set_env", &json!({"key": "WORD", "value": KEY}).to_string()]);
        knowing(&arena, &["sessions", "search", KEY]);

        let data = arena.home().join(".local/share/portcullis");
        let columns = columns_with_the_secret(&data.join("portcullis.db"));
        assert!(columns.is_empty(), "{who:?}: {columns:?}");
        for session in sessions(&arena) {
            let log = knowing(&arena, &["sessions", "export", &session, "--with-artifacts"]).ends(0);
            assert!(
                !log.out.contains(PART),
                "{who:?}: the export of {session} holds the secret:\n{}",
                around(&log.out)
            );
        }
        let mut files = Vec::new();
        files_with_the_secret(&data, &mut files);
        assert!(files.is_empty(), "{who:?}: {files:?}");
    }
}

fn sessions(arena: &Arena) -> Vec<String> {
    let listed = knowing(arena, &["sessions", "list", "--json"]).ends(0);
    let words = listed.out.split('"').filter(|word| word.starts_with("sesn_")).map(str::to_owned);
    let all: std::collections::BTreeSet<String> = words.collect();
    assert!(all.len() >= 3, "several sessions were made: {}", listed.out);
    all.into_iter().collect()
}

fn around(text: &str) -> &str {
    let at = text.find(PART).unwrap_or(0);
    &text[text.floor_char_boundary(at.saturating_sub(300))..text.ceil_char_boundary((at + 100).min(text.len()))]
}

/// `table.column` of every value that holds the secret, and `control` if the search itself finds nothing planted.
fn columns_with_the_secret(database: &Path) -> Vec<String> {
    let store = rusqlite::Connection::open(database).expect("opens");
    let names = |sql: &str| -> Vec<String> {
        let mut asked = store.prepare(sql).expect("prepared");
        asked.query_map([], |row| row.get(0)).expect("asked").map(|name| name.expect("a name")).collect()
    };
    let holds = |value: ValueRef<'_>| match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.windows(PART.len()).any(|part| part == PART.as_bytes()),
        _ => false,
    };
    let mut found = Vec::new();
    for table in names("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'") {
        let mut asked = store.prepare(&format!("select * from \"{table}\"")).expect("prepared");
        let columns: Vec<String> = asked.column_names().map(str::to_owned).collect();
        let mut rows = asked.query([]).expect("asked");
        while let Some(row) = rows.next().expect("a row") {
            for (at, column) in columns.iter().enumerate() {
                if holds(row.get_ref(at).expect("a value")) {
                    found.push(format!("{table}.{column}"));
                }
            }
        }
    }
    assert!(holds(ValueRef::Text(format!("x{KEY}y").as_bytes())), "control: the search finds what is there");
    found
}

fn files_with_the_secret(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with_the_secret(&path, found);
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(PART.len()).any(|part| part == PART.as_bytes())) {
            found.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
}
