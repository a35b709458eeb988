//! `cargo xtask bench [NAME…]`: the table of the issue, measured in one run. Machines are noisy, so
//! every figure that depends on the disk stands beside plain rusqlite doing the same in the same run.

mod anchor;
mod files;
mod fold;
mod gate;
mod sessions;
mod spool;
mod startup;
mod table;
mod world;

use anyhow::Result;
use table::Row;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows: Vec<Row> = Vec::new();
    let mut run = |name: &str, bench: &dyn Fn() -> Result<Vec<Row>>| -> Result<()> {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            eprintln!("measuring {name} …");
            rows.extend(bench()?);
        }
        Ok(())
    };
    // First: nothing else has grown this process's memory yet.
    run("spool", &|| runtime.block_on(spool::run()))?;
    run("gate", &|| runtime.block_on(gate::run()))?;
    run("files", &|| runtime.block_on(files::run()))?;
    run("sessions", &|| runtime.block_on(sessions::run()))?;
    run("fold", &|| runtime.block_on(fold::run()))?;
    run("startup", &startup::run)?;
    table::print(&rows);
    anyhow::ensure!(!rows.is_empty(), "no such benchmark; there are: spool gate files sessions fold startup");
    anyhow::ensure!(rows.iter().all(|row| row.reached), "some figures were not reached in this run");
    Ok(())
}
