//! Deterministic simulation (store §12, F1): many workers in one thread, on virtual time, from one seed.
//!
//! Owns: a world in which processes die, lines are cut, clocks jump and stores fail, and the checks of what is left. The
//! pipeline and the in-memory store in it are the real ones. Knows nothing of: transports, SQL, models.
//!
//! A run is a function of its seed. [`run_seed`] has a runtime of its own, so seeds run side by side in threads.

mod checks;
mod clock;
mod connection;
mod dice;
mod ground;
mod hints;
mod jobs;
mod link;
mod options;
mod oracle;
mod people;
mod post;
mod process;
mod run;
mod seeds;
mod worker;

pub use options::{Hints, Options};
pub use run::Outcome;
pub use seeds::{Failure, Tally, run_options, run_seed, run_seeds};
pub use worker::POLL_MS;
