//! `read` and `edit` of 4 KiB through the gate on SQLite FULL, beside plain rusqlite. The two take
//! turns, so that a slow disk is slow for both.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portcullis::{PolicyBuilder, Runtime};
use serde_json::json;

use crate::anchor::{Key, Rows};
use crate::table::{Row, millis, p50};
use crate::world::{artifacts, call, hold, sqlite};

const ROUNDS: u128 = 300;

pub async fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    std::fs::write(workspace.join("a.txt"), line.repeat(64))?;
    let store = sqlite(folder.path())?;
    let rules = "[[rules]]\naction = \"edit\"\npath = \"**\"\neffect = \"allow\"\n";
    let runtime = Runtime::builder()
        .store(store.clone(), artifacts(folder.path())?)
        .workspace(&workspace)
        .policy(policy(rules)?)
        .build()?;
    let session = runtime.create_session("bench").await?;
    let session = hold(&runtime, session).await?;
    let read = || json!({"file_path": "a.txt"}).to_string();

    // Once, to know which rows a call writes.
    ensure!(call(&session, 1, "read", read()).await?.ok(), "read works");
    let database = folder.path().join("portcullis.db");
    let read_rows = Rows::of_last_appends(&database, 1)?.remove(0);
    let plain = read_rows.fresh(&folder.path().join("plain-read.db"))?;
    let mut seq = 1_000_000;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let before = store.commits();
    for n in 0..ROUNDS {
        let begun = Instant::now();
        ensure!(call(&session, 1_000 + n, "read", read()).await?.ok(), "read works");
        ours.push(begun.elapsed());
        theirs.push(read_rows.commit(&plain, &mut seq)?);
    }
    let read_commits = (store.commits() - before) as f64 / ROUNDS as f64;
    let (ours, theirs) = (p50(ours), p50(theirs));
    let mut rows = vec![Row {
        what: format!("`read` of 4 KiB through the gate, SQLite FULL, p50; {read_commits} commits a call"),
        measured: millis(ours),
        anchor: format!("{} plain ({} rows)", millis(theirs), read_rows.count()),
        must: "≤ plain + 0.3 ms; exactly 1 commit".to_owned(),
        reached: ours <= theirs + Duration::from_micros(300) && (read_commits - 1.0).abs() < f64::EPSILON,
    }];

    // A place that is unique in the file, flipped to and fro.
    std::fs::write(workspace.join("a.txt"), format!("{}{}", "x\n".repeat(8), line.repeat(63)))?;
    ensure!(call(&session, 2, "read", read()).await?.ok(), "read works");
    let flip = |n: u128| {
        let (old, new) = if n.is_multiple_of(2) { ("x\n0", "y\n0") } else { ("y\n0", "x\n0") };
        json!({"file_path": "a.txt", "old_string": old, "new_string": new}).to_string()
    };
    let first = call(&session, 3, "edit", flip(0)).await?;
    ensure!(first.ok(), "edit works: {}", first.session_view().summary);
    // Newest first: the end of the edit frees the key that its start took.
    let keys = [Key::Frees, Key::Takes];
    let appends = Rows::of_last_appends(&database, 2)?.into_iter().zip(keys);
    let edit_rows: Vec<Rows> = appends.map(|(rows, key)| rows.and_key(key)).rev().collect();
    let plain = edit_rows[0].fresh(&folder.path().join("plain-edit.db"))?;
    let (mut ours, mut theirs, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    let before = store.commits();
    for n in 1..=ROUNDS {
        let begun = Instant::now();
        ensure!(call(&session, 10_000 + n, "edit", flip(n)).await?.ok(), "edit works");
        ours.push(begun.elapsed());
        let mut span = Duration::ZERO;
        for rows in &edit_rows {
            span += rows.commit(&plain, &mut seq)?;
        }
        theirs.push(span);
        bare.push(replaced(&folder.path().join("bare.txt"), &line.repeat(63))?);
    }
    let edit_commits = (store.commits() - before) as f64 / ROUNDS as f64;
    let (ours, theirs, bare) = (p50(ours), p50(theirs), p50(bare));
    rows.push(Row {
        what: format!("`edit` of a 4 KiB file, p50; {edit_commits} commits a call"),
        measured: millis(ours),
        anchor: format!(
            "{} two plain commits; {} a bare durable replacement of the file",
            millis(theirs),
            millis(bare)
        ),
        must: "≤ plain + 0.6 ms; exactly 2 commits".to_owned(),
        reached: ours <= theirs + Duration::from_micros(600) && (edit_commits - 2.0).abs() < f64::EPSILON,
    });
    Ok(rows)
}

/// What anyone takes to replace a file so that it survives a power failure whole.
fn replaced(path: &Path, text: &str) -> Result<Duration> {
    let begun = Instant::now();
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    std::fs::rename(&new, path)?;
    Ok(begun.elapsed())
}

fn policy(text: &str) -> Result<portcullis::Policy> {
    let rules = portcullis_policy::parse_rules(text, "bench", portcullis_policy::Layer::User)?;
    Ok(PolicyBuilder::new().rules(rules).build()?)
}
