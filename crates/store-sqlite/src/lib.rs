//! The embedded store: one SQLite file, one writer thread with group commit, a few readers.
//!
//! Owns: the schema and its migrations, the writer, the read pool, what happens when the disk fails.
//! Knows nothing of: what a commit means. `portcullis_store::plan` decides that for every backend;
//! here its result becomes rows.
//!
//! Invariant: an answer `Ok` is given only after the transaction that holds its rows was synced (S6).

mod aftermath;
mod apply;
mod backup;
mod ballast;
mod batch;
mod brought_forward;
mod codec;
mod connect;
mod due;
mod error;
mod facts;
mod file_system;
mod files;
mod headroom;
mod heads;
mod idle;
mod import;
mod leases;
mod lists;
mod locks;
mod mark;
mod migrate;
mod notices;
mod op;
mod outbox;
mod projections;
mod query;
mod readers;
mod records;
mod removal;
mod runs;
mod search;
mod store;
mod strands;
mod sweep;
mod tail;
#[cfg(test)]
mod testing;
mod wakes;
mod writer;

pub use connect::Durability;
pub use store::{SqliteConfig, SqliteStore};
