//! Taking back a call that waits for an answer (13.7): whoever made it does not want it any more.

use portcullis_base::AskId;
use portcullis_event::AskState;
use portcullis_event::facts::Closing;
use portcullis_store::StoreError;
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
        if found.state == AskState::Pending {
            let mut facts = Append::new();
            permission::close(shared, &stored(&intent, String::new(), None), ask, Closing::Superseded, &mut facts);
            match shared.flush(facts).await {
                Ok(()) => {}
                Err(Halt::PersistFailed(StoreError::AskSettled { .. })) => shared.catch_up().await?,
                Err(halt) => return Err(halt),
            }
        }
        let now = shared.state().asks.get(ask).cloned();
        self.move_on(&intent, now, cancel).await
    }
}
