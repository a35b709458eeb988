//! A model that says again what a model said once (`replay --mode redrive`, tests of the harness). It invents nothing.
//!
//! Where it is follows from the conversation: its answers so far are those of the recording. After a compaction only the
//! newest of them are there, and they are looked for in the recording.

use async_trait::async_trait;

use crate::{
    Answer, AnswerPart, Delta, DeltaSink, Failure, Message, Model, ModelError, ModelName, Request, Stop, ToolSpec,
    Usage, UserPart,
};

/// One recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What stood right before it; `None`: not compared.
    pub before: Option<Vec<UserPart>>,
    pub parts: Vec<AnswerPart>,
    pub stop: Stop,
    pub usage: Option<Usage>,
}

impl Recording {
    /// An answer, whatever stood before it.
    #[must_use]
    pub fn new(parts: Vec<AnswerPart>, stop: Stop, usage: Option<Usage>) -> Self {
        Self { before: None, parts, stop, usage }
    }

    /// Only after this: anything else diverges.
    #[must_use]
    pub fn after(self, before: Vec<UserPart>) -> Self {
        Self { before: Some(before), ..self }
    }
}

/// A model that plays a recording.
#[derive(Debug)]
pub struct RecordedModel {
    name: ModelName,
    wire: &'static str,
    window: Option<u64>,
    answers: Vec<Recording>,
}

/// The wire format of a recording whose model is not known: its opaque parts go nowhere.
const WIRE: &str = "recorded";

impl RecordedModel {
    /// Plays these answers, as the model of that name.
    #[must_use]
    pub fn new(name: ModelName, answers: Vec<Recording>) -> Self {
        Self { name, wire: WIRE, window: None, answers }
    }

    /// Says that its opaque parts are of this wire format, as [`Model::wire`] of the model that was recorded.
    #[must_use]
    pub fn on_wire(self, wire: &'static str) -> Self {
        Self { wire, ..self }
    }

    /// Says how many tokens the recorded model could read, so that a conversation is compacted where it was.
    #[must_use]
    pub fn with_window(self, window: Option<u64>) -> Self {
        Self { window, ..self }
    }

    /// The answer that belongs to this conversation.
    fn place(&self, messages: &[Message]) -> Result<&Recording, ModelError> {
        let shown: Vec<(usize, &[AnswerPart])> = messages
            .iter()
            .enumerate()
            .filter_map(|(at, message)| match message {
                Message::Assistant(parts) => Some((at, parts.as_slice())),
                Message::User(_) => None,
            })
            .collect();
        // The whole conversation first; what stood first after a compaction comes after the recording's first answers.
        let mut first_fault = None;
        for skipped in 0..=self.answers.len().saturating_sub(shown.len()) {
            if skipped > 0 && shown.is_empty() {
                break;
            }
            match self.fits(messages, &shown, skipped) {
                Ok(recording) => return Ok(recording),
                Err(fault) => {
                    first_fault.get_or_insert(fault);
                }
            }
        }
        let (at, what) = first_fault.unwrap_or((messages.len(), "there are more answers than were recorded"));
        Err(ModelError::new(
            Failure::Diverged,
            format!(
                "{}: the conversation is not the recorded one from message {} on: {what} ({} recorded answers)",
                self.name,
                at + 1,
                self.answers.len()
            ),
        ))
    }

    /// The answer for a conversation that begins after the first `skipped` answers, or the first message that differs.
    fn fits(
        &self,
        messages: &[Message],
        shown: &[(usize, &[AnswerPart])],
        skipped: usize,
    ) -> Result<&Recording, (usize, &'static str)> {
        let before = |at: usize| match at.checked_sub(1).map(|at| &messages[at]) {
            Some(Message::User(parts)) => parts.as_slice(),
            _ => &[],
        };
        for (nth, (at, parts)) in shown.iter().enumerate() {
            let Some(recording) = self.answers.get(skipped + nth) else {
                return Err((*at, "no answer was recorded for it"));
            };
            // A compaction rewrites what stood before the first answer it keeps.
            let rewritten = nth == 0 && skipped > 0;
            if !rewritten && recording.before.as_deref().is_some_and(|wanted| wanted != before(*at)) {
                return Err((at.saturating_sub(1), "what the model was shown differs"));
            }
            if recording.parts != *parts {
                return Err((*at, "the model's answer differs"));
            }
        }
        match self.answers.get(skipped + shown.len()) {
            None => Err((messages.len(), "the recording has ended")),
            Some(recording) if recording.before.as_deref().is_some_and(|wanted| wanted != before(messages.len())) => {
                Err((messages.len().saturating_sub(1), "what the model was shown differs"))
            }
            Some(recording) => Ok(recording),
        }
    }
}

#[async_trait]
impl Model for RecordedModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        self.wire
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn fits(&self, _tools: &[ToolSpec]) -> Result<(), ModelError> {
        Ok(())
    }

    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        let Recording { parts, stop, usage, .. } = self.place(request.conversation.messages())?.clone();
        for part in &parts {
            match part {
                AnswerPart::Text(text) => heard(Delta::Text(text)),
                AnswerPart::Call(call) => heard(Delta::Call { name: &call.name }),
                AnswerPart::Opaque(_) => {}
            }
        }
        Ok(Answer { parts, stop, usage, warnings: Vec::new() })
    }
}
