//! The adapters against fake providers on loopback: real HTTP, real streams, scripted answers.

mod aimock;
mod anthropic;
mod catalog;
mod chat;
mod chat_quirks;
mod chat_servers;
mod counts;
mod fake;
mod faults;
mod gemini;
mod media;
mod openai_types;
mod reasoning;
mod responses;
mod talk;
mod turns;
