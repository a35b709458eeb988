//! Taking back a call that waits for an answer (13.7): whoever made it does not want it any more.

use portcullis_base::AskId;
use portcullis_event::AskState;
use portcullis_event::facts::Closing;
use tokio_util::sync::CancellationToken;

use crate::append::Append;
use crate::attend::stored;
use crate::gate::Disposition;
use crate::permission;
use crate::session::Session;
use crate::step::Halt;

impl Session {
    /// Closes a pending ask as superseded and settles its call. If someone answered first, their answer
    /// counts, and `cancel` interrupts the call that it lets run.
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn withdraw(&self, ask: AskId, cancel: &CancellationToken) -> Result<Option<Disposition>, Halt> {
        let _attending = self.shared.attending.lock().await;
        let shared = &self.shared;
        shared.catch_up().await?;
        let Some(found) = shared.state().asks.get(ask).cloned() else { return Ok(None) };
        let Some(intent) = shared.state().intents.get(found.intent_id).cloned() else { return Ok(None) };
        let now = match found.state {
            AskState::Pending => self.close_unless_answered(&intent, ask, Closing::Superseded).await?,
            _ => Some(found),
        };
        self.move_on(&intent, now, cancel).await
    }
}

impl Session {
    /// Somebody interrupted the session: the ask is closed and its call settled, whether it was answered meanwhile or
    /// not. An answer that came in the same moment is void (H26).
    ///
    /// # Errors
    /// If the log refused a write.
    pub async fn supersede(&self, ask: AskId) -> Result<Option<Disposition>, Halt> {
        let _attending = self.shared.attending.lock().await;
        let shared = &self.shared;
        shared.catch_up().await?;
        let Some(mut found) = shared.state().asks.get(ask).cloned() else { return Ok(None) };
        let Some(intent) = shared.state().intents.get(found.intent_id).cloned() else { return Ok(None) };
        if found.state == AskState::Pending {
            match self.close_unless_answered(&intent, ask, Closing::Superseded).await? {
                Some(closed) => found = closed,
                None => return Ok(None),
            }
        }
        if found.state == AskState::Answered {
            let mut facts = Append::new();
            permission::close(shared, &stored(&intent, String::new(), None), ask, Closing::Voided, &mut facts);
            shared.flush(facts).await?;
        }
        found.state = AskState::Superseded;
        found.reply = None;
        self.move_on(&intent, Some(found), &CancellationToken::new()).await
    }
}
