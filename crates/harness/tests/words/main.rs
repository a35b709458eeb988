//! What the model is shown, what it wants, and whether its words hold: pure functions, tested without a session.

mod awkward;
mod denials;
mod directive;
mod fence;
mod fixtures;
mod laws;
mod liars;
mod lies;
mod praise;
mod reached;
mod runs;
mod told;
mod verifications;
mod wordings;
mod world;
