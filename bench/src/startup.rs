//! `portcullis tools list`, release, store exists, file cache warm.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::table::{Row, millis, p50};

pub fn run() -> Result<Vec<Row>> {
    // The binary is built by the same profile into the same folder as this one.
    let me = std::env::current_exe()?;
    let binary: PathBuf = me.with_file_name("portcullis");
    let home = tempfile::tempdir()?;
    let workspace = tempfile::tempdir()?;
    std::fs::write(workspace.path().join("a.txt"), "x\n")?;
    let run = |args: &[&str]| -> Result<Duration> {
        let begun = Instant::now();
        let status = Command::new(&binary)
            .args(args)
            .current_dir(workspace.path())
            .env("PORTCULLIS_HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("{} is missing: cargo build --release", binary.display()))?;
        ensure!(status.success(), "`portcullis {}` ended with {status}", args.join(" "));
        Ok(begun.elapsed())
    };
    run(&["call", "read", r#"{"file_path":"a.txt"}"#])?;
    let mut samples = Vec::new();
    for _ in 0..40 {
        samples.push(run(&["tools", "list"])?);
    }
    let measured = p50(samples);
    Ok(vec![Row {
        what: "`portcullis tools list`, store exists, warm, p50".to_owned(),
        measured: millis(measured),
        anchor: "–".to_owned(),
        must: "≤ 30 ms".to_owned(),
        reached: measured <= Duration::from_millis(30),
    }])
}
