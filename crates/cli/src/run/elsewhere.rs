//! Asks of a run that somebody else answered. Whoever answers carries the call out, so the run waits for its end and shows it as
//! if it had run here.

use std::time::Duration;

use portcullis::harness::LiveEvent;
use portcullis::{AskRow, Runtime, SessionId};
use portcullis_base::{Clock as _, SystemClock};
use portcullis_event::AskState;
use portcullis_terminal::render::{DIM, styled};
use serde_json::Value;

use super::screen::Screen;
use crate::world::World;

/// How long whoever answered has to take up the session before it is taken up here. He claims it right after his answer.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether he did, and whether the call has ended.
const LOOK: Duration = Duration::from_millis(50);
/// A wait of this length is told.
const LONG: Duration = Duration::from_secs(1);

/// Where an answer was given that is not ours.
pub struct OtherAnswers<'a> {
    pub world: &'a World,
    pub runtime: &'a Runtime,
    pub screen: &'a Screen,
    pub session: SessionId,
}

impl OtherAnswers<'_> {
    /// Shows how each call ended, once it has. Those that nobody carries out are left to the next wake, which shows them itself.
    pub async fn carried_out(&self, mut asks: Vec<AskRow>) -> anyhow::Result<()> {
        let clock = SystemClock::new();
        let began = clock.monotonic();
        let (mut seen, mut told) = (began, false);
        loop {
            let mut open = Vec::new();
            for ask in asks {
                match self.runtime.observation(self.session, ask.intent_id, ask.asked_seq).await? {
                    Some(observed) => {
                        let input = ask.facts.get("input").map(Value::to_string).unwrap_or_default();
                        self.screen.show(LiveEvent::CallEnded { input: &input, observed: &observed });
                    }
                    None => open.push(ask),
                }
            }
            asks = open;
            // Nobody carries out what nobody answered.
            if !asks.iter().any(|ask| ask.state == AskState::Answered) {
                return Ok(());
            }
            let now = clock.monotonic();
            match self.world.archive.holder(self.session, clock.now()).await? {
                Some(owner) => {
                    seen = now;
                    if now - began >= LONG && !std::mem::replace(&mut told, true) {
                        let words = format!("in use by {owner}; this goes on when that is done");
                        self.screen.line(&styled(DIM, &words));
                    }
                }
                None if now - seen >= GRACE => return Ok(()),
                None => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
