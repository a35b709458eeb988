//! The store on SQLite: files, faults and power loss.
//!
//! One binary: what is linked once is waited for once.

mod audit;
mod backup;
mod common;
mod conformance;
mod differential;
mod durability;
mod older;
mod power_loss;
mod search;
mod size;
