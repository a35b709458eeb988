//! Asks that `--approvals allow` or `deny` answers where no person sits: in `sessions wake` and `worker`.

use portcullis::operations::{AskView, answer_waiting};
use portcullis::{Runtime, SessionId};
use portcullis_terminal::render::{Term, safe_line};

use crate::ask_view;
use crate::run::asks;
use crate::world::World;

/// Characters of a call on the line that says how it was answered.
const CALL_CHARS: usize = 100;

/// Answers every ask of a session that waits, as the flag says. What only a person may allow stays, and is told with what
/// else waits. Gives how many it answered.
pub async fn answer(world: &World, runtime: &Runtime, session: SessionId, term: &Term) -> anyhow::Result<usize> {
    let answer = |ask: &AskView| asks::by_flag(world.settings.approvals, ask.only_a_person);
    let told = |ask: &AskView, allowed| tell(ask, allowed, term);
    Ok(answer_waiting(&world.archive, runtime, session, answer, told).await?)
}

/// Says that an ask was answered.
pub fn tell(ask: &AskView, allowed: bool, term: &Term) {
    let word = if allowed { "allowed" } else { "refused" };
    let call = safe_line(&ask_view::call(&ask.row.facts), CALL_CHARS);
    term.note(&format!("{word} by --approvals: {call} ({})", ask.row.ask_id));
}
