//! The read-only hand, executed: `bash` of the managed profile through the whole gate, with the real binary as launcher.

mod corpus_rows;
mod generated;
mod levels;
mod lines;
mod stopping;
mod unseen;
mod world;

#[path = "../../../../command/tests/it/corpus/mod.rs"]
mod corpus;
