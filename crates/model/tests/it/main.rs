//! Models: the wire formats against servers on loopback, scripts and recordings.
//!
//! One binary: what is linked once is waited for once.

mod providers;
mod recorded;
mod scripted;
