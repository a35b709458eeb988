//! The store's promises and its backend in memory.
//!
//! One binary: what is linked once is waited for once.

mod artifacts;
mod memory;
mod retention;
mod sweep;
