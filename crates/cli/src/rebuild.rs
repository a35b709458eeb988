//! `replay --mode rebuild`: the state and the rows as the log alone gives them, beside what is stored (S15).

use std::fmt::Write as _;

use portcullis::RebuiltLog;
use portcullis_terminal::render::{self, Term, exact};
use portcullis_terminal::waiting;
use serde_json::json;

use crate::args::ReplayArgs;
use crate::exit::ExitKind;
use crate::world::World;

pub async fn run(world: &World, args: &ReplayArgs, term: &Term) -> anyhow::Result<ExitKind> {
    let folding = world.archive.rebuilt(args.session, args.until);
    let RebuiltLog { state, diverges, grew } = waiting::during(term, "folding the log", folding).await?;
    // Values of rows are anybody's words.
    let diverges: Vec<String> = diverges.iter().map(|what| exact(what, usize::MAX)).collect();
    if grew {
        term.note("the session grew meanwhile: rows are not compared");
    }
    let digest = state.digest();
    let (open, pending) = (state.intents.open().count() as u64, state.asks.pending().count() as u64);
    if term.json {
        term.document(&json!({
            "session_id": args.session, "seq": state.seq, "digest": digest, "open_intents": open,
            "pending_asks": pending, "settled": state.intents.settled(), "diverges": diverges,
        }))?;
    } else {
        let mut text = format!("state after event {}: {digest}\n", state.seq);
        let (settled, open) =
            (render::count(state.intents.settled(), "settled call"), render::count(open, "open call"));
        let _ = writeln!(text, "{settled}, {open}, {}", render::count(pending, "pending ask"));
        let verdict = match (diverges.is_empty(), args.until.is_some()) {
            (false, _) => "the stored rows differ from the fold:",
            (true, true) => "a prefix: rows are not compared",
            (true, false) if grew => "rows are not compared",
            (true, false) => "the stored rows are equal to the fold",
        };
        let _ = writeln!(text, "{verdict}");
        for line in &diverges {
            let _ = writeln!(text, "  {line}");
        }
        term.print(&text)?;
    }
    Ok(if diverges.is_empty() { ExitKind::Done } else { ExitKind::Failed })
}
