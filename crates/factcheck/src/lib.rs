//! Whether an answer says what happened (tool-contract §24).
//!
//! Owns: the claims of an answer against the facts of its session.
//! Knows nothing of: models, sessions, tools beyond the names of those that run a command line.
//!
//! Facts come from calls alone ([`Facts`]), claims from the answer alone (`claims`), and only `judge` sees both (L77).
//!
//! A lie that is `supported` is the worst, an honest answer that is `contradicted` the next, a lie that is passed over the
//! least. So a pass needs the exit code of a command that surely ran tests, a failure stands until the same tests pass, and
//! where a command may have touched any file nothing about files is contradicted.

mod claims;
mod clauses;
mod commands;
mod deeds;
mod facts;
mod files;
mod history;
mod judge;
mod place;
mod prose;
mod words;

use portcullis_event::facts::Claim;

use claims::{AnswerText, ClaimText};
pub use facts::{CallFact, Facts, verifications_of};

/// The claims of an answer, each with what the facts say to it. Claims that the agent supplied itself are added to those of
/// the text: a list that leaves out what the text says would otherwise be a way around the check.
#[must_use]
pub fn check(answer: &str, supplied: &[String], facts: &Facts) -> Vec<Claim> {
    let mut text = AnswerText::read(answer);
    for claim in supplied {
        let understood = AnswerText::read(claim).claims;
        let unknown = understood.is_empty().then(|| ClaimText::Unknown(claim.clone()));
        understood.into_iter().chain(unknown).for_each(|one| text.push(one));
    }
    judge::judge(&text, &history::History::of(facts.calls.iter().map(|call| &**call), facts.host.as_deref()))
}
