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

/// A key that nobody typed: it is the name of a file that a pattern matches, or stands in a script that an ask quotes.
#[test]
fn l69_a_key_in_the_name_of_a_file_or_in_a_quoted_script_stands_in_no_row() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let key = "AKIAIOSFODNN7EXAMPLQ";
        arena.write(&format!("work/{key}.txt"), "text\n");
        arena.write(&format!("work/sub/{key}"), "#!/bin/sh\n");
        arena.write("work/package.json", &json!({"scripts": {"test": format!("echo {key}")}}).to_string());
        for line in ["cat AKI*", "ls AKI*", "head -n 1 sub/*", "wc -l AKI?IOSF*"] {
            arena.run(&["call", "bash", &json!({ "command": line }).to_string()]).ends(0);
        }
        for (tool, input) in [("glob", json!({"pattern": "**/AKI*"})), ("grep", json!({"pattern": "text"}))] {
            arena.run(&["call", tool, &input.to_string()]).ends(0);
        }
        for line in ["sh sub/AK*", "npm test", "touch AKI*"] {
            let ask = arena.run(&["call", "shell_run", &json!({ "command": line }).to_string()]).ends(3).id("ask_");
            arena.run(&["approvals", "allow", &ask]);
        }
        let database = arena.home().join(".local/share/portcullis/portcullis.db");
        let columns = columns_with(&database, key);
        assert!(columns.is_empty(), "{who:?}: {columns:?}");
        for session in listed(&arena) {
            let log = arena.run(&["sessions", "export", &session, "--with-artifacts"]).ends(0).out;
            let at = log.find(key);
            assert!(at.is_none(), "{who:?}: {}", around_of(&log, key));
        }
        // The control: what somebody typed is kept as it was proposed, because the call runs with it.
        arena.run(&["call", "bash", &json!({"command": format!("cat {key}.txt")}).to_string()]).ends(0);
        let logs: String = listed(&arena).iter().map(|id| arena.run(&["sessions", "export", id]).ends(0).out).collect();
        assert!(logs.contains(key), "the search finds what is there");
    }
}

fn listed(arena: &Arena) -> Vec<String> {
    let listed = arena.run(&["sessions", "list", "--json"]).ends(0);
    let words = listed.out.split('"').filter(|word| word.starts_with("sesn_")).map(str::to_owned);
    words.collect::<std::collections::BTreeSet<String>>().into_iter().collect()
}

fn sessions(arena: &Arena) -> Vec<String> {
    let listed = knowing(arena, &["sessions", "list", "--json"]).ends(0);
    let words = listed.out.split('"').filter(|word| word.starts_with("sesn_")).map(str::to_owned);
    let all: std::collections::BTreeSet<String> = words.collect();
    assert!(all.len() >= 3, "several sessions were made: {}", listed.out);
    all.into_iter().collect()
}

fn around(text: &str) -> &str {
    around_of(text, PART)
}

fn around_of<'t>(text: &'t str, part: &str) -> &'t str {
    let at = text.find(part).unwrap_or(0);
    &text[text.floor_char_boundary(at.saturating_sub(300))..text.ceil_char_boundary((at + 100).min(text.len()))]
}

/// `table.column` of every value that holds the secret, and `control` if the search itself finds nothing planted.
fn columns_with_the_secret(database: &Path) -> Vec<String> {
    columns_with(database, PART)
}

fn columns_with(database: &Path, part: &str) -> Vec<String> {
    let store = rusqlite::Connection::open(database).expect("opens");
    let names = |sql: &str| -> Vec<String> {
        let mut asked = store.prepare(sql).expect("prepared");
        asked.query_map([], |row| row.get(0)).expect("asked").map(|name| name.expect("a name")).collect()
    };
    let holds = |value: ValueRef<'_>| match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            bytes.windows(part.len()).any(|bytes| bytes == part.as_bytes())
        }
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
    assert!(holds(ValueRef::Text(format!("x{part}y").as_bytes())), "control: the search finds what is there");
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
