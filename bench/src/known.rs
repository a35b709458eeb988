//! Calls whose ask is answered the moment it is raised, beside the same calls where a rule allows them.

use anyhow::Result;

use crate::table::{Row, millis, p50};
use crate::turns::{Lets, Ran, wake_of_commands, wake_of_edits};

/// An answer that is known costs no commit of its own, and little time.
const MUST: f64 = 1.3;

pub async fn run() -> Result<Vec<Row>> {
    let edits = row("edit", &wake_of_edits(Lets::KnownAnswer).await?, &wake_of_edits(Lets::Rules).await?);
    let commands = row("bash", &wake_of_commands(Lets::KnownAnswer).await?, &wake_of_commands(Lets::Rules).await?);
    Ok(vec![edits, commands])
}

fn row(tool: &str, asked: &Ran, allowed: &Ran) -> Row {
    // The first call is another one, or starts what the others use.
    let middle = |ran: &Ran| p50(ran.gaps[1..].to_vec());
    let (known, ruled) = (middle(asked), middle(allowed));
    let times = known.as_secs_f64() / ruled.as_secs_f64();
    Row {
        what: format!("an asked `{tool}` whose answer is known, against an allowed one, p50"),
        measured: format!("{} = {times:.2} ×; {} commits", millis(known), asked.commits),
        anchor: format!("{}; {} commits", millis(ruled), allowed.commits),
        must: format!("≤ {MUST} ×, as many commits"),
        reached: times <= MUST && asked.commits == allowed.commits,
    }
}
