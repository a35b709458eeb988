//! How fast simulated worlds run (store §12, F1). In a process of its own: its virtual time must not reach the others.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::table::Row;

/// Seeds that are measured; the rest of the ten thousand is reckoned.
const MEASURED: u32 = 1_000;
const SEEDS: u32 = 10_000;
const MUST: Duration = Duration::from_secs(300);

pub fn run() -> Result<Vec<Row>> {
    let binary = std::env::current_exe()?.with_file_name("simulate");
    let begun = Instant::now();
    let ran = Command::new(&binary).args(["--seeds", &MEASURED.to_string()]).status();
    let status = ran.with_context(|| {
        format!("{} does not run; `cargo build --release -p portcullis-simulation` builds it", binary.display())
    })?;
    ensure!(status.success(), "a seed breaks a rule; it is printed above");
    let all = begun.elapsed() * SEEDS / MEASURED;
    Ok(vec![Row {
        what: format!("simulation of {SEEDS} seeds, reckoned from {MEASURED}"),
        measured: format!("{:.0} s", all.as_secs_f64()),
        anchor: "–".to_owned(),
        must: format!("≤ {} s", MUST.as_secs()),
        reached: all <= MUST,
    }])
}
