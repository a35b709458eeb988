//! What tests of any crate need of a store: a small world with a clock that stands still, a store
//! that counts, and a store that fails on order.

mod counting;
mod faulty;
mod liveness;
mod world;

pub use counting::{CountingStore, Counts};
pub use faulty::{Fault, FaultKind, FaultyStore};
pub use liveness::FixedLiveness;
pub use world::{Parked, World};
