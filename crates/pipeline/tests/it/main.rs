//! The gate, from an intent to its observation.
//!
//! One binary: what is linked once is waited for once.

mod appends;
mod asks;
mod bounding;
mod children;
mod choice;
mod common;
mod crash;
mod effects;
mod grammar;
mod known_answers;
mod leases;
mod lineage;
mod locks;
mod loops;
mod midway;
mod outcomes;
mod progress;
mod quota;
mod registry;
mod scopes;
mod secrets;
mod shell;
mod stop_cause;
mod surroundings;
mod tasks;
mod turns;
mod words;
