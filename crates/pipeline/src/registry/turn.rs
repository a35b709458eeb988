//! How a turn begins: what is offered now is frozen, and the log knows it before the first call (L17).

use std::sync::Arc;

use portcullis_base::{MenuId, TurnId};
use portcullis_event::facts::MenuFrozen;
use portcullis_store::Blob;

use crate::output::shown_lines::InContext;
use crate::phases::step::Halt;
use crate::registry::menu::{Offer, Turn};
use crate::sessions::append::Append;
use crate::sessions::session::Session;

impl Session {
    /// Freezes what is offered now as a turn, and puts its `tool.menu` into the append.
    #[must_use]
    pub fn begin_turn(&self, facts: &mut Append) -> Arc<Turn> {
        self.freeze(facts, None)
    }

    /// The same for a turn of a model whose context this runtime builds: there the loop guard watches (L47), and what the
    /// model has before it is not sent again (L65).
    #[must_use]
    pub fn begin_loop_turn(&self, facts: &mut Append, in_context: &InContext) -> Arc<Turn> {
        self.freeze(facts, Some(in_context.clone()))
    }

    /// The turn of the newest request as the log holds it: for calls of its answer that come late, behind an ask, a crash or
    /// in another process. They belong to the menu they were shown (tool-contract 8.3). `None`: the log has no such menu, or
    /// its body is gone.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn turn_shown(&self, in_context: &InContext) -> Result<Option<Arc<Turn>>, Halt> {
        let shared = &self.shared;
        let Some(shown) = shared.state().session.asked_with.clone() else { return Ok(None) };
        let Some(body) = shared.gate.store.blob(shared.key.tenant, shown.hash).await? else { return Ok(None) };
        let offer = Offer::recorded(&body, &shown);
        let turn = |offer| Turn::new(shown.turn_id, shown.menu_id, Arc::new(offer), Some(in_context.clone()));
        Ok(offer.map(|offer| Arc::new(turn(offer))))
    }

    fn freeze(&self, facts: &mut Append, in_context: Option<InContext>) -> Arc<Turn> {
        let shared = &self.shared;
        let now = shared.gate.clock.now();
        let offer = shared.gate.offer(&shared.scope, &shared.tools(), shared.key.session);
        let turn_id = TurnId::make(&*shared.gate.ids, now);
        let menu_id = MenuId::make(&*shared.gate.ids, now);
        if !shared.state().session.menus.contains(&offer.hash) {
            facts.blobs.push(Blob { sha256: offer.hash, bytes: offer.body.clone().into_bytes() });
        }
        let fact = MenuFrozen {
            menu_id,
            turn_id,
            hash: offer.hash,
            count: u32::try_from(offer.entries.len()).unwrap_or(u32::MAX),
            hidden: offer.hidden.clone(),
        };
        shared.note(facts, turn_id, &fact);
        Arc::new(Turn::new(turn_id, menu_id, offer, in_context))
    }
}
