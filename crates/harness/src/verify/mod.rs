//! Whether an answer says what happened (tool-contract §24).
//!
//! Facts come from calls alone ([`Facts`]), claims from the answer alone (`claims`), and only `judge` sees both. No
//! text changes a fact (L77): there is no way from here into the log but the verdict beside the answer.

mod facts;
mod line;
mod report;
mod runners;

pub use facts::{CallFact, Facts, verifications_of};
