//! The calls of a session, each with what it was given and what came of it.

use std::collections::BTreeMap;

use portcullis_base::IntentId;
use portcullis_event::facts::FinalChecked;
use portcullis_event::{Body, Observed};
use portcullis_store::{IntentRow, Log, Pages, SessionKey, StoreError};
use serde_json::Value;

/// Events that say something of a call, of its shell or of the last answer.
const KINDS: [&str; 5] = ["tool.intent", "tool.observation", "final.checked", "shell.closed", "task.completed"];

/// One call.
pub struct RecordedCall {
    pub row: IntentRow,
    /// What the model or a person gave it.
    pub input: Option<Value>,
    /// How it ended, with what the end of its background task warned of.
    pub observed: Option<Observed>,
}

/// What was done in a session.
pub struct SessionCalls {
    /// In the order of their admission.
    pub calls: Vec<RecordedCall>,
    /// What shells left behind that no call ended.
    pub warnings: Vec<String>,
    /// The newest answer, compared with the record.
    pub checked: Option<FinalChecked>,
}

impl SessionCalls {
    /// Reads them from a log.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read(log: &dyn Log, key: SessionKey) -> Result<Self, StoreError> {
        let rows = log.intents(key, false).await?;
        let mut inputs: BTreeMap<IntentId, Value> = BTreeMap::new();
        let mut observed: BTreeMap<IntentId, Observed> = BTreeMap::new();
        let mut late: BTreeMap<IntentId, Vec<String>> = BTreeMap::new();
        let (mut warnings, mut checked) = (Vec::new(), None);
        let mut pages = Pages::of(log, key);
        while let Some(page) = pages.next().await? {
            for event in page.iter().filter(|event| KINDS.contains(&event.kind.as_str())) {
                match event.body() {
                    Body::IntentProposed(fact) => drop(inputs.insert(fact.intent_id, fact.raw_input)),
                    Body::Observed(fact) => drop(observed.insert(fact.intent_id, *fact)),
                    Body::FinalChecked(fact) => checked = Some(*fact),
                    Body::ShellClosed(fact) => warnings.extend(fact.warnings),
                    Body::TaskCompleted(fact) => late.entry(fact.intent_id).or_default().extend(fact.warnings),
                    _ => {}
                }
            }
        }
        let call = |row: IntentRow| {
            let mut observed = observed.remove(&row.intent_id);
            if let (Some(observed), Some(late)) = (&mut observed, late.remove(&row.intent_id)) {
                observed.warnings.extend(late);
            }
            RecordedCall { input: inputs.remove(&row.intent_id), observed, row }
        };
        Ok(Self { calls: rows.into_iter().map(call).collect(), warnings, checked })
    }
}
