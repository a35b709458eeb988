//! Rules, commands and what they come to.
//!
//! One binary: what is linked once is waited for once.

mod carried;
mod commands;
#[path = "../../../command/tests/it/corpus/mod.rs"]
mod corpus;
mod dodges;
mod fed;
mod files;
mod gate;
mod laws;
mod looking;
mod named;
mod neighbours;
mod oracle;
mod same_program;
mod spellings;
mod worlds;
