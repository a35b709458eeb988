//! Whether the words of an answer hold.

mod awkward;
mod denials;
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
