//! State is a fold of the log, one small fold for each concern. A fold is total: an event it does
//! not know changes nothing (L72), and every prefix of a log folds to the state that was live then (L71).

mod asks;
mod baselines;
mod inbox;
mod intents;
mod progress;
mod session;
mod shell;
mod tasks;
mod wakes;
mod warnings;

use serde::{Deserialize, Serialize};

pub use asks::{Ask, Asks};
pub use baselines::{Baseline, Baselines, Coverage};
pub use inbox::{Inbox, Input, InputContent};
pub use intents::{Intent, Intents};
pub use progress::{HandedOver, OpenRequest, OpenWake, Progress};
pub use session::{QueuedCall, Session, ShownMenu};
pub use shell::{PersistentShell, RecordedCommandEnd, Shell, ShellStatus};
pub use tasks::{OpenTask, Task, TaskEnd, Tasks};
pub use wakes::Wakes;
pub use warnings::{RUNS_LATER, UnansweredWarnings};

use portcullis_base::{Digest, IntentId, canonical_json};

use crate::Event;

/// Snapshots of another version are thrown away: they are a cache. A change of what a fold keeps, or of how it applies an
/// event, raises it; the test below notices only the plainest of these changes.
pub const FOLD_VERSION: u32 = 18;

/// Everything the runtime knows of one session, rebuilt from its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub seq: u64,
    pub session: Session,
    pub intents: Intents,
    pub asks: Asks,
    pub baselines: Baselines,
    pub wakes: Wakes,
    pub tasks: Tasks,
    pub shell: Shell,
    pub inbox: Inbox,
    pub progress: Progress,
    #[serde(default, skip_serializing_if = "UnansweredWarnings::is_empty")]
    pub warned: UnansweredWarnings,
}

impl State {
    /// Takes in the next event. Events at or before `seq` were taken in already and change nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        let body = event.body_ref();
        self.session.apply(event, &body);
        self.tasks.apply(event, &body, &self.intents);
        self.intents.apply(event, &body);
        self.asks.apply(event, &body);
        self.baselines.apply(event, &body);
        self.wakes.apply(event, &body);
        self.shell.apply(event, &body);
        self.inbox.apply(event, &body);
        self.progress.apply(event, &body);
        self.warned.apply(event, &body);
    }

    /// Whether this call was handed over and its result has not come.
    #[must_use]
    pub fn awaits(&self, intent: IntentId) -> bool {
        self.progress.handed_over.values().any(|request| request.intent_id == Some(intent))
    }

    /// Asks that were answered or closed and whose call can be moved on now: work for `attend`.
    pub fn movable_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.answered().filter(|ask| !self.awaits(ask.intent_id))
    }

    /// The fold of whole logs and prefixes.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// Equal for equal states: what `rebuild` and snapshot tests compare.
    #[must_use]
    pub fn digest(&self) -> Digest {
        // Invariant: a state is structs and text-keyed maps, which always have a canonical form.
        Digest::of(canonical_json(self).expect("a state is always JSON").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`State::default`] as a snapshot of [`FOLD_VERSION`] would hold it.
    const EMPTY_STATE: &[&str] = &[
        r#"{"asks":{"live":{}},"baselines":{"files":{}},"inbox":{"pending":[]},"#,
        r#""intents":{"calls":[],"message":null,"open":{},"settled":0},"#,
        r#""progress":{"arrived":{},"enforced":false,"follow_ups":0,"handed_over":{},"kept_from_seq":0,"#,
        r#""last_stop":null,"last_summary":null,"last_wake":null,"learnt":[],"message_requests":0,"open":null,"#,
        r#""paused_turns":0,"request":null,"same_work":null,"stop_wished":null,"unknown":[],"untold_unknown":false,"#,
        r#""usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"input_tokens":0,"#,
        r#""output_tokens":0,"tool_calls":0,"turns":0,"wakes":0}},"seq":0,"#,
        r#""session":{"agent_id":null,"asked_with":null,"created":false,"custom_tools":[],"menu":null,"menus":[],"name":null,"#,
        r#""queued":[],"root":null,"setups":[],"status":"idle","workspace":null},"#,
        r#""shell":{"cwd":null,"env":{},"newest_version":0,"persistent":null,"places":[],"recent":[],"updated_at":null},"#,
        r#""tasks":{"tasks":{}},"wakes":{"pending":{}}}"#,
    ];

    /// A reminder, not a proof. It notices a field that is new, gone or renamed in `State` or in one of its folds. It does
    /// not notice a field that an empty state leaves out, a changed entry of a map or list, or a changed `apply`.
    #[test]
    fn a_state_of_another_shape_has_another_fold_version() {
        let now = canonical_json(&State::default()).expect("a state is always JSON");
        assert_eq!(
            now,
            EMPTY_STATE.concat(),
            "State has another shape: raise FOLD_VERSION, then write the new text here"
        );
    }
}
