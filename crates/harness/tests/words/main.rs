//! What the model is shown, what it wants, and whether its words hold: pure functions, tested without a session.

mod directive;
mod fence;
mod fixtures;
mod laws;
mod liars;
mod verifications;
mod world;
