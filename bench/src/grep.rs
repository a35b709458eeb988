//! `grep` without a match over 20,000 files through the gate, beside `rg` doing the same. The two take
//! turns, so that a busy machine is busy for both. What is measured of `rg` includes its start, and of
//! ours the decision and the commit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis::Runtime;
use serde_json::json;

use crate::table::{Row, millis, p50};
use crate::world::{artifacts, call, hold, sqlite};

const ROUNDS: u128 = 15;
const DIRS: usize = 400;
const FILES: usize = 50;
/// Bytes a file, on average.
const SIZE: usize = 10_000;
const PATTERN: &str = "needle_that_is_nowhere";

pub async fn run() -> Result<Vec<Row>> {
    install()?;
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    let bytes = tree(&workspace)?;
    let runtime =
        Runtime::builder().store(sqlite(folder.path())?, artifacts(folder.path())?).workspace(&workspace).build()?;
    let session = runtime.create_session("bench").await?;
    let session = hold(&runtime, session).await?;
    let input = || json!({"pattern": PATTERN}).to_string();
    // Once each, so that all files are in memory for both.
    rg(&workspace)?;
    let first = call(&session, 1, "grep", input()).await?;
    let expected = format!("no matches in {} files", DIRS * FILES);
    ensure!(first.session_view().summary == expected, "found otherwise: {}", first.session_view().summary);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        let begun = Instant::now();
        ensure!(call(&session, 100 + n, "grep", input()).await?.ok(), "grep works");
        ours.push(begun.elapsed());
        theirs.push(rg(&workspace)?);
    }
    let (ours, theirs) = (p50(ours), p50(theirs));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    Ok(vec![Row {
        what: format!("`grep`, no match, {} files, {} MB, p50", DIRS * FILES, bytes / 1_000_000),
        measured: format!("{}, {ratio:.2} ×", millis(ours)),
        anchor: format!("{} `rg`", millis(theirs)),
        must: "≥ 0.8 × the speed of `rg`".to_owned(),
        reached: ratio >= 0.8,
    }])
}

/// One search by `rg`, from its start to its end.
fn rg(folder: &Path) -> Result<Duration> {
    let begun = Instant::now();
    let status = Command::new("rg").arg(PATTERN).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    ensure!(status.code() == Some(1), "rg found something, or failed: {status}");
    Ok(begun.elapsed())
}

fn install() -> Result<()> {
    let there = || Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
    if !there() {
        eprintln!("installing ripgrep to compare with …");
        let status = Command::new("apt-get").args(["install", "-y", "-q", "ripgrep"]).stdout(Stdio::null()).status();
        ensure!(status.is_ok_and(|s| s.success()) && there(), "rg is not there; install the package `ripgrep`");
    }
    Ok(())
}

/// Directories of words, from a fixed seed.
fn tree(root: &Path) -> Result<usize> {
    const WORDS: &[&str] =
        &["fn", "let", "the", "gate", "a need", "need", "value", "return", "self", "0x7f", "// note"];
    let mut seed: u64 = 7;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % below
    };
    let mut bytes = 0;
    for dir in 0..DIRS {
        let path = root.join(format!("part{}", dir % 20)).join(format!("dir{dir}"));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let size = SIZE / 2 + next(SIZE);
            let mut text = String::with_capacity(size + 16);
            while text.len() < size {
                text.push_str(WORDS[next(WORDS.len())]);
                text.push(if next(8) == 0 { '\n' } else { ' ' });
            }
            bytes += text.len();
            std::fs::write(path.join(format!("file{file}.rs")), text).context("the tree could not be written")?;
        }
    }
    Ok(bytes)
}
