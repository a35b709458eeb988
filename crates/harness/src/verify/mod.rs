//! Whether an answer says what happened (tool-contract §24).
//!
//! Facts come from calls alone ([`Facts`]), claims from the answer alone (`claims`), and only `judge` sees both. No
//! text changes a fact (L77): there is no way from here into the log but the verdict beside the answer.
//!
//! Judged are: tests, builds, linters and type checkers that pass, by kind, suite, name or command; repairs; files that were
//! created, edited, deleted, renamed, by their place; commits and pushes; commands that ran. Not judged are what is
//! negated, wished, conditional, planned, quoted, of other people or other times, and what code does by itself.
//!
//! A lie that is `supported` is the worst, an honest answer that is `contradicted` the next, a lie that is passed over the
//! least. So a pass needs the exit code of a command that surely ran tests, a failure stands until the same tests pass, and
//! where a command may have touched any file nothing about files is contradicted.

mod admits;
mod checked;
mod claims;
mod clauses;
mod commands;
mod deeds;
mod ends;
mod facts;
mod files;
mod idle;
mod judge;
mod line;
mod mended;
mod narrow;
mod options;
mod outcome;
mod paths;
mod peel;
mod place;
mod plainly;
mod prose;
mod report;
mod runners;
mod running;

use portcullis_event::facts::Claim;

pub use checked::verifications_of;
pub use facts::{CallFact, Facts};

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
    let said = said.iter().filter(|one| judge::is_about_something(one, facts));
    said.map(|one| judge::judge(one, facts)).collect()
}
