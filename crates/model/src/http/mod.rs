//! What every provider over HTTP shares: one client, one way to read a stream, one way to say what went wrong.
//!
//! An adapter writes the body and has a [`Reader`] that hears the events of one answer; [`HttpClient::ask`] does the
//! rest. Limits of time and size, the classes of errors and the care for the key are here and nowhere else.

mod client;
#[cfg(test)]
pub(crate) mod cuts;
mod fault;
mod lines;
mod read;
mod settings;
mod wait;

pub(crate) use client::{HttpClient, ProviderAddress, Version, is_hosted, read_by_others};
pub(crate) use fault::{Fault, ProviderMessage};
#[cfg(test)]
pub(crate) use read::read_answer;
pub(crate) use read::{Flow, Reader, StreamEnd};
pub use settings::{HttpLimits, HttpSettings};
