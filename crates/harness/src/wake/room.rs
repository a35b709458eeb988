//! Room for the next request: what a compaction drops, and what it shows cut where that is not enough
//! (agent-runtime 6.4).

use portcullis_event::facts::ContextCompacted;
use portcullis_pipeline::Halt;
use serde_json::json;

use super::Wake;
use crate::context::{FALLBACK, budget, guided, kept_middle, room_of, tokens};
use crate::live_event::LiveEvent;

/// Which part of the budget must have come since a compaction before the next one is worth it.
const GROWTH_SHARE: u64 = 4;

/// Of what a provider refused, which part is tried next.
const REFUSED_SHARE: u64 = 2;

/// Where nobody knows the window, only refusals tell of it: each try is half of the one before.
const SHRINKS_WITHOUT_WINDOW: u32 = 4;

/// What a person can do about it.
const WINDOW_UNKNOWN: &str = ". How much the model can read is not known: set `window` under `[model]` to its tokens";

impl Wake<'_> {
    /// Whether a refusal is answered with a shorter conversation: once, until the model has answered. What the provider
    /// says of its window is better than our estimate.
    pub(super) fn may_shrink(&mut self) -> bool {
        let most = if self.harness.model.window().is_some() { 1 } else { SHRINKS_WITHOUT_WINDOW };
        self.shrunk += 1;
        self.shrunk <= most
    }

    /// Makes room if the next request would pass the budget, or if the provider says it does. It is told to the model and
    /// recorded (agent-runtime 6.4).
    pub(super) async fn make_room(&mut self, too_long: bool, system: &str) -> Result<bool, Halt> {
        let message = self.message_chars();
        let next = tokens(system.len()) + tokens(self.context.chars()) + tokens(message);
        if too_long {
            // For the rest of the wake: the model shall not run into the same wall at every turn.
            self.learned = Some((next / REFUSED_SHARE).min(self.learned.unwrap_or(u64::MAX)));
        }
        let budget = self.token_budget(system, message);
        // What is protected may be over the budget by itself. Then a compaction at every request would free nothing and
        // never leave the beginning as it is: the next one waits until a share of the budget has come.
        let little_came = tokens(self.context.grown()) * GROWTH_SHARE < budget;
        // Some servers do not refuse what is longer than they can read, and leave out the beginning without a word.
        let never_fits = self.harness.model.window().is_some_and(|window| next > window);
        if !too_long && !never_fits && (next <= budget || little_came) {
            return Ok(false);
        }
        if too_long || never_fits {
            return self.cut_to_fit(room_of(budget, system.len(), message)).await;
        }
        let Some(kept) = self.context.keep_from() else { return Ok(false) };
        let summary = self.summary_until(kept.seq);
        self.compact(summary, kept.seq, None).await?;
        Ok(true)
    }

    /// Whatever the conversation holds, it goes on: what stays of it after a compaction has at most `room` characters.
    async fn cut_to_fit(&mut self, room: usize) -> Result<bool, Halt> {
        // The places of the answers are known once they are in the log.
        self.flush().await?;
        let end = self.session.with_state(|state| state.seq) + 1;
        let summary = kept_middle(&self.summary_until(end), room);
        let fitting = self.context.fitting(room.saturating_sub(summary.len()), end);
        if summary.len() + fitting.chars >= self.context.chars() {
            return Ok(false);
        }
        let summary = kept_middle(&self.summary_until(fitting.kept_from), room);
        self.compact(summary, fitting.kept_from, fitting.cut_to).await?;
        if let Some(most) = fitting.cut_to {
            let text = format!(
                "the newest results and answers are longer than the model can read: each is shown to it with at most {most} \
                 bytes from here on; the log has them whole{}",
                if self.assumed().is_some() { WINDOW_UNKNOWN } else { "" }
            );
            self.tell(LiveEvent::Warning(&text));
        }
        Ok(true)
    }

    fn summary_until(&self, kept_from: u64) -> String {
        let guidance = self.harness.settings.guidance.as_ref().map(guided);
        self.context.digested.text(guidance.as_deref(), (1, kept_from.saturating_sub(1)))
    }

    async fn compact(&mut self, summary: String, kept_from: u64, cut_to: Option<usize>) -> Result<(), Halt> {
        let before = self.context.conversation.messages().len();
        let turn_id = portcullis_base::TurnId::make(&*self.harness.ids, self.now());
        let carried = self.session.carry(&mut self.facts, turn_id, json!(summary)).await?;
        let dropped_event_range = (1, kept_from.saturating_sub(1));
        let fact = ContextCompacted { dropped_event_range, summary: carried, kept_from_seq: kept_from, cut_to };
        self.session.note(&mut self.facts, None, &fact);
        self.context.compact(summary, kept_from, cut_to);
        let after = self.context.conversation.messages().len();
        let messages = before.saturating_sub(after);
        if messages > 0 || cut_to.is_none() {
            self.tell(LiveEvent::Compacted { messages, assumed: self.assumed() });
        }
        Ok(())
    }

    /// The tokens that are assumed to fit, where nothing says how many do.
    fn assumed(&self) -> Option<u64> {
        let said = self.harness.settings.token_budget.or(self.harness.model.window());
        said.is_none().then_some(FALLBACK)
    }

    pub(super) fn token_budget(&self, system: &str, message: usize) -> u64 {
        let (settings, window) = (&self.harness.settings, self.harness.model.window());
        let whole = budget(settings.token_budget, window, system.len(), message);
        match self.learned {
            Some(learned) => budget(Some(learned.min(whole)), None, system.len(), message),
            None => whole,
        }
    }
}
