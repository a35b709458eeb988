//! The managed tools, run through the real gate: every call here is an intent that is looked up,
//! validated, authorised, scheduled, executed, settled and written to a log.

mod artifact_search;
mod artifacts;
mod baselines;
mod changes;
mod concurrent;
#[path = "../../../command/tests/it/corpus/mod.rs"]
mod corpus;
mod definitions;
mod grep_oracle;
mod listing;
mod mapping;
mod projections;
mod races;
mod reading;
mod refusals;
mod sandbox_asks;
mod sandbox_files;
mod search_limits;
mod searching;
mod shell;
mod shell_posture;
mod tasks;
mod unseen;
mod world;
