//! Taking back a call that waits for an answer (tool-contract 13.7): whoever made it does not want it any more, or
//! somebody interrupted the session.

use std::time::Duration;

use portcullis_base::AskId;
use portcullis_event::facts::Closing;
use portcullis_event::{AskState, fold};
use portcullis_store::Topic;
use tokio_util::sync::CancellationToken;

use crate::gate::Disposition;
use crate::phases::permission;
use crate::phases::step::Halt;
use crate::sessions::append::Append;
use crate::sessions::attend::stored;
use crate::sessions::session::{Session, SessionShared};

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
        let Some(found) = shared.state().asks.get(ask).cloned() else { return Ok(None) };
        let Some(intent) = shared.state().intents.get(found.intent_id).cloned() else { return Ok(None) };
        self.superseded(&intent, found).await
    }

    /// The same for whoever attends.
    pub(crate) async fn superseded(
        &self,
        intent: &fold::Intent,
        mut ask: fold::Ask,
    ) -> Result<Option<Disposition>, Halt> {
        let shared = &self.shared;
        if ask.state == AskState::Pending {
            match self.close_unless_answered(intent, ask.ask_id, Closing::Superseded).await? {
                Some(closed) => ask = closed,
                None => return Ok(None),
            }
        }
        if ask.state == AskState::Answered {
            let mut facts = Append::new();
            permission::close(shared, &stored(intent, String::new(), None), ask.ask_id, Closing::Voided, &mut facts);
            shared.flush(facts).await?;
        }
        ask.state = AskState::Superseded;
        ask.reply = None;
        Box::pin(self.move_on(intent, Some(ask), &CancellationToken::new())).await
    }

    /// Works until somebody interrupts the session: then the token it is given is cancelled.
    pub async fn unless_interrupted<T, W: Future<Output = T>>(
        &self,
        cancel: &CancellationToken,
        work: impl FnOnce(CancellationToken) -> W,
    ) -> T {
        let stop = cancel.child_token();
        let begun = self.shared.state().seq;
        let mut work = std::pin::pin!(work(stop.clone()));
        tokio::select! {
            biased;
            done = &mut work => done,
            () = self.interrupted_after(begun) => {
                stop.cancel();
                work.await
            }
        }
    }

    /// Resolves when somebody has interrupted the session after `seq`, and no wake has taken that up; never else.
    pub async fn interrupted_after(&self, seq: u64) {
        // Most work is done sooner, and does not listen at all.
        tokio::time::sleep(HINTS_GATHER).await;
        let mut changes = self.shared.gate.store.changes_of(Topic::Session(self.shared.key));
        loop {
            changes.mark_unchanged();
            if self.catch_up().await.is_ok() && self.shared.state().inbox.interrupted_after(seq) {
                return;
            }
            // Hints may be lost; a store that is closing gives none.
            if let Ok(Err(_)) = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            tokio::time::sleep(HINTS_GATHER).await;
        }
    }
}

impl SessionShared {
    /// Whether somebody interrupted the session since this was asked.
    pub(crate) fn was_stopped(&self, ask: &fold::Ask) -> bool {
        self.state().inbox.interrupted_after(ask.seq)
    }
}

/// How long hints are gathered before the log is looked at: what the session itself writes gives one each time.
const HINTS_GATHER: Duration = Duration::from_millis(20);
/// How soon an interrupt is heard of which no hint came (store §7).
const LOOK_AGAIN: Duration = Duration::from_secs(1);
