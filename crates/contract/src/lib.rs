//! The tool type: what a tool is, without sessions, storage or models.
//!
//! Owns: [`Tool`] and its builder, names, semantics, typed codecs, accesses, [`ToolContext`],
//! [`ToolFailure`], content. Knows nothing of: who calls a tool, whether it may run, where results go.
//!
//! Invariants: a tool has no name and exactly one executor; nothing public yields its schema,
//! executor or projections except a derived [`ToolDefinition`] (L2). `crates/pipeline` opens a tool
//! through [`seam`]; clippy forbids that module elsewhere and the facade does not re-export it.
#![warn(missing_docs)]

mod access;
mod arrival;
mod builder;
mod built;
mod choice;
mod codec;
mod content;
mod context;
mod definition;
mod diff;
mod external;
mod failure;
mod finite;
mod import;
mod name;
mod reshape;
mod resolved;
#[doc(hidden)]
pub mod seam;
mod semantics;
mod shell_fact;
mod stop;
mod strict;
mod surroundings;
mod tool;
mod visibility;

pub use access::{AccessRequest, Action, NamedKind, Resource, ResourceClass, ResourceKind};
pub use arrival::Arrival;
pub use builder::{BuildError, ToolBuilder};
pub use choice::ChoiceFace;
pub use codec::InputFault;
pub use content::{Anchor, Content, SpoolRef, UserText};
pub use context::{Background, Caller, Cancelled, GateStop, NotBackgrounded, Spool, TooMuchEvidence, ToolContext};
pub use definition::{DefinitionVersion, ExecutorId, ExecutorKind, ToolDefinition};
pub use diff::Diff;
pub use failure::ToolFailure;
pub use import::{ImportError, import_name};
pub use name::{InvalidName, ToolName};
pub use reshape::Reshape;
pub use resolved::{Precondition, Prepared, Resolved};
pub use semantics::{
    Concurrency, DefaultPolicy, Interrupt, Ownership, Semantics, Strategy, Timeout, Variable, VariableKind,
    VerificationKind,
};
pub use shell_fact::{EndedCommand, ShellFact};
pub use stop::StopCause;
pub use surroundings::{Bound, SurroundingFacts, Surroundings};
pub use tool::Tool;
pub use visibility::{Mode, ToolOrigin, Visibility};
