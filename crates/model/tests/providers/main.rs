//! The adapters against fake providers on loopback: real HTTP, real streams, scripted answers.

mod anthropic;
mod catalog;
mod fake;
mod faults;
mod gemini;
