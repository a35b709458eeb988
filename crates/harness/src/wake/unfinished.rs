//! Answers that are no whole ones, by what their provider says of them: nothing of what was taken back is run.

use portcullis_model::{Answer, AnswerPart, Failure, ModelError, ModelName, Stop};

use super::request::{ResponseOutcome, stop_word};
use crate::context::quoted;

/// What becomes of an answer before anything is done with it.
pub(super) fn heard(model: &ModelName, mut answer: Answer) -> ResponseOutcome {
    let calls = answer.calls().count();
    if answer.stop == Stop::Refusal && calls > 0 {
        // The provider withdrew the answer: what it had called for by then is no wish any more.
        answer.parts.retain(|part| !matches!(part, AnswerPart::Call(_)));
        let text = format!("the answer was refused or withheld in the middle; the {calls} calls in it were not run");
        answer.warnings.push(text);
    }
    if matches!(answer.stop, Stop::Other(_)) && calls == 0 && answer.text().trim().is_empty() {
        let word = quoted::name(&stop_word(&answer.stop));
        let text = format!("{model}: the answer ended with {word} and says nothing. Try again");
        return ResponseOutcome::Failed(ModelError::new(Failure::Server, text));
    }
    ResponseOutcome::Answer(Box::new(answer))
}
