//! The binary as a person or a program uses it.
//!
//! One binary: what is linked once is waited for once.

mod approvals;
mod builds;
mod calls;
mod common;
mod custom;
mod demo;
mod disk_full;
mod driven;
mod faults;
mod gc;
mod grants;
mod hand;
mod hidden;
mod import;
mod inbox;
mod leases;
mod levels;
mod newcomers;
mod operator;
#[cfg(feature = "otel")]
mod otel;
mod pairs;
mod persistent_shell;
mod places;
mod policy;
mod processes;
mod programs;
mod proof;
mod read_only_hand;
mod retention;
mod rm;
mod run;
mod run_faults;
mod run_kills;
mod run_races;
mod run_talk;
mod run_undo;
mod sandbox_actions;
mod search;
mod searches;
mod shell;
mod shell_checks;
mod shell_lifetime;
mod telemetry;
mod time_travel;
mod unwritable;
mod wakes;
mod watch;
mod wording;
mod worker;
