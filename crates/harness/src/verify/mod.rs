//! Whether an answer says what happened (tool-contract §24).
//!
//! Facts come from calls alone ([`Facts`]), claims from the answer alone (`claims`), and only `judge` sees both. No
//! text changes a fact (L77): there is no way from here into the log but the verdict beside the answer.

mod claims;
mod facts;
mod judge;
mod line;
mod paths;
mod prose;
mod report;
mod runners;

use portcullis_event::facts::Claim;

pub use facts::{CallFact, Facts, verifications_of};

/// The claims of an answer, each with what the facts say to it.
#[must_use]
pub fn check(answer: &str, facts: &Facts) -> Vec<Claim> {
    check_with(answer, &[], facts)
}

/// As [`check`], with claims that the agent supplied itself. They are added to those of the text: a list that leaves
/// out what the text says would otherwise be a way around the check.
#[must_use]
pub fn check_with(answer: &str, supplied: &[String], facts: &Facts) -> Vec<Claim> {
    let mut said = claims::claims(answer);
    for claim in supplied {
        let mut understood = claims::claims(claim);
        if understood.is_empty() {
            understood.push(claims::Said::Unknown(claim.clone()));
        }
        for one in understood {
            if !said.contains(&one) {
                said.push(one);
            }
        }
    }
    said.iter().map(|one| judge::judge(one, facts)).collect()
}
