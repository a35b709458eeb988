//! Asks that `--approvals allow` or `deny` answers where no person sits: in `sessions wake` and `worker`.

use portcullis::{Runtime, RuntimeError, SessionId};
use portcullis_store::StoreError;

use crate::ask::Ask;
use crate::ask_view;
use crate::render::{Term, safe_line};
use crate::run::asks;
use crate::world::World;

/// Characters of a call on the line that says how it was answered.
const CALL_CHARS: usize = 100;

/// Answers every ask of a session that waits, as the flag says. Gives how many it answered.
pub async fn answer(world: &World, runtime: &Runtime, session: SessionId, term: &Term) -> anyhow::Result<usize> {
    let mut answered = 0;
    for ask in Ask::pending(world).await?.into_iter().filter(|ask| ask.row.session_id == session) {
        // What only a person may allow stays, and is told with what else waits.
        let Some(answer) = asks::by_flag(world.settings.approvals, &ask) else { continue };
        let word = if answer.reply.allows() { "allowed" } else { "refused" };
        if answer.reply.allows() {
            // As for `approvals allow`: nobody allows what nobody could be shown.
            ask_view::diff(world, &ask.row).await?;
        }
        match runtime.reply(ask.row.ask_id, answer).await {
            Ok(_) => {}
            // Somebody was quicker, or its time ran out.
            Err(RuntimeError::Store(StoreError::AskSettled { .. } | StoreError::AskExpired(_))) => continue,
            Err(error) => return Err(error.into()),
        }
        answered += 1;
        let call = safe_line(&ask_view::call(&ask.row), CALL_CHARS);
        term.note(&format!("{word} by --approvals: {call} ({})", ask.row.ask_id));
    }
    Ok(answered)
}
