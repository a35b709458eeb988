//! The store's promises and its backend in memory.
//!
//! One binary: what is linked once is waited for once.

mod artifacts;
mod head_updates;
mod memory;
mod retention;
mod sweep;
