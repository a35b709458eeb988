//! One row a figure, and how it is printed.

use std::time::Duration;

pub struct Row {
    pub what: String,
    pub measured: String,
    pub anchor: String,
    pub must: String,
    pub reached: bool,
}

pub fn print(rows: &[Row]) {
    println!("| what | measured | anchor of the same run | must reach | |");
    println!("|---|---|---|---|---|");
    for row in rows {
        let verdict = if row.reached { "ok" } else { "MISSED" };
        println!("| {} | {} | {} | {} | {verdict} |", row.what, row.measured, row.anchor, row.must);
    }
}

/// The middle value.
pub fn p50(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

pub fn micros(span: Duration) -> String {
    format!("{:.1} µs", span.as_secs_f64() * 1e6)
}

pub fn millis(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1e3)
}
