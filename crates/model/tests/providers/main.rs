//! The adapters against fake providers on loopback: real HTTP, real streams, scripted answers.

mod anthropic;
mod chat;
mod chat_quirks;
mod fake;
mod faults;
mod responses;
mod talk;
