//! The words every Portcullis crate shares.
//!
//! Owns: ids, [`Timestamp`], [`Digest`], canonical JSON, [`Clock`], [`IdGen`], [`Entropy`], the
//! closed codes and phases, risk, trust, [`ArtifactRef`], side effects, isolation levels, limits, and how untrusted text
//! and numbers are shown to a person ([`shown`]).
//! Knows nothing of: tools, sessions, storage, models. It does no I/O beyond asking the operating
//! system for the time and for randomness, and only through the traits that tests replace.

mod actor;
mod artifact;
mod canonical;
mod clock;
mod code;
mod command_facts;
mod digest;
mod effect;
mod env_code;
mod env_key;
mod file_fact;
mod fulfiller;
mod ids;
mod isolation;
pub mod limits;
mod nearest;
mod random;
mod risk;
mod shell_variables;
pub mod shown;
mod trust;
mod verification;
mod window;

pub use actor::Actor;
pub use artifact::{ArtifactKind, ArtifactRef};
pub use canonical::{CanonicalError, canonical_json, fingerprint};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp, TimestampError};
pub use code::{Code, CodeRow, EffectRule, Phase, Reason, Recorded, Recovery, Retry};
pub use command_facts::{CommandFacts, OpenWord, OtherForm};
pub use digest::{Digest, DigestError, DigestWriter};
pub use effect::{SideEffect, SideEffectState, SideEffects};
pub use env_code::{loads_code, make_runs, runs_by_its_ending};
pub use env_key::{EnvKey, EnvKeyError};
pub use file_fact::{FileFact, Hunk, LineRange};
pub use fulfiller::Fulfiller;
pub use ids::*;
pub use isolation::IsolationLevel;
pub use nearest::{edits, nearest};
pub use random::{Entropy, IdGen, SeededIds, SystemIds};
pub use risk::{Effect, EffectSet, Risk, RiskSet};
pub use shell_variables::{ShellVariable, shell_variable};
pub use trust::Trust;
pub use verification::VerificationKind;
pub use window::Window;
