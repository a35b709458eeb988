//! What the tests of any crate need of a store.
//!
//! Owns: the conformance suite that every backend runs ([`mod@conformance`]), a small world with a clock that stands still
//! ([`World`]), and stores around another store ([`StoreWrapper`]): one that counts ([`CountingStore`]), one
//! that fails on order ([`FaultyStore`]).
//! Knows nothing of: SQL, tools, sandboxes, models.
//!
//! Invariant: a product crate names this crate among its dev-dependencies only, so that no release holds it. `xtask`
//! checks that. The tools of the repository (simulation, benchmarks) may depend on it.

pub mod conformance;
mod counting;
mod faulty;
mod liveness;
mod world;
mod wrapped;

pub use counting::{CountingStore, StoreCallCounts};
pub use faulty::{Fault, FaultKind, FaultyStore};
pub use liveness::FixedLiveness;
pub use world::{ParkedAsk, World};
pub use wrapped::{StoreCall, StoreWork, StoreWrapper, Wrapped};
