//! Whether the words of an answer hold.

mod awkward;
mod files;
mod histories;
mod honest;
mod judged;
mod laws;
mod lies;
mod reached;
mod runs;
mod verifications;
mod world;
