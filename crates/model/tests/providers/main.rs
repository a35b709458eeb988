//! The adapters against fake providers on loopback: real HTTP, real streams, scripted answers.

mod anthropic;
mod fake;
mod faults;
