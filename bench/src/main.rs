//! `cargo xtask bench [NAME…]`: the table of measurements, all made in one run. Machines are noisy, so
//! every figure that depends on the disk stands beside plain rusqlite doing the same in the same run.

mod anchor;
mod asked;
mod files;
mod fold;
mod gate;
mod grep;
mod hand;
mod held;
mod known;
mod lists;
mod loopback;
mod memory;
mod opening;
mod policy;
mod readers;
mod recovery;
mod run;
mod search;
mod sessions;
mod shell;
mod simulation;
mod spool;
mod startup;
mod table;
mod turns;
mod waiting;
mod world;

use anyhow::Result;
use table::Row;

type BoxFuture = std::pin::Pin<Box<dyn Future<Output = Result<Vec<Row>>> + Send>>;

fn main() -> Result<()> {
    // Commands are started by this very program.
    portcullis::hand::init();
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
    // In a task, as every caller in the product is one.
    let task = |bench: BoxFuture| runtime.block_on(async { tokio::spawn(bench).await? });
    // First: nothing else has grown this process's memory yet.
    run("spool", &|| task(Box::pin(spool::run())))?;
    run("gate", &|| task(Box::pin(gate::run())))?;
    run("files", &|| task(Box::pin(files::run())))?;
    run("grep", &|| task(Box::pin(grep::run())))?;
    run("sessions", &|| task(Box::pin(sessions::run())))?;
    run("fold", &|| task(Box::pin(fold::run())))?;
    run("recovery", &|| task(Box::pin(recovery::run())))?;
    run("policy", &|| task(Box::pin(policy::run())))?;
    run("search", &|| task(Box::pin(search::run())))?;
    run("lists", &|| task(Box::pin(lists::run())))?;
    run("readers", &|| task(Box::pin(readers::run())))?;
    run("opening", &|| task(Box::pin(opening::run())))?;
    run("held", &|| task(Box::pin(held::run())))?;
    run("hand", &|| task(Box::pin(hand::run())))?;
    run("shell", &|| task(Box::pin(shell::run())))?;
    run("waiting", &|| task(Box::pin(waiting::run())))?;
    run("turns", &|| task(Box::pin(turns::run())))?;
    run("known", &|| task(Box::pin(known::run())))?;
    run("run", &|| task(Box::pin(run::run())))?;
    run("startup", &startup::run)?;
    run("simulation", &simulation::run)?;
    table::print(&rows);
    anyhow::ensure!(
        !rows.is_empty(),
        "no such benchmark; there are: spool gate files grep sessions fold recovery policy search lists readers opening held hand shell waiting \
         turns known run startup simulation"
    );
    // Printed, not judged: a busy machine must not fail a change.
    let missed = rows.iter().filter(|row| !row.reached).count();
    if missed > 0 {
        eprintln!("{missed} of {} figures were not reached in this run", rows.len());
    }
    Ok(())
}
