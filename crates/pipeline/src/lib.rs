//! The gate: one intent from proposal to observation.
//!
//! Owns: the phases, the registry with its placements and overlays, menus, scheduling, bounding,
//! settlement and recovery. Knows nothing of: which tools exist, how a model is asked, how a store
//! keeps things.
//!
//! Read it in the order of the path: [`gate`] (the doors, and `pass` from top to bottom) → `phases/` (`lookup`, `validate`,
//! `permission`, `schedule`, `execute`, `normalize`, `bound`); then `sessions/session` (how facts become durable),
//! `sessions/attend` (what happens after a crash or an answer) and `asks/` (what a person is asked).
#![allow(clippy::disallowed_methods, reason = "this crate is the one that opens tools")]

mod admission;
mod asks;
mod calls;
mod gate;
mod isolation;
mod output;
mod phases;
mod registry;
mod scope;
mod sessions;
mod spans;
mod tasks;
mod tenants;

pub use admission::Admission;
pub use asks::answer::{AskAnswer, KnownAnswers};
pub use asks::explain::Explained;
pub use asks::grants::{GrantBook, GrantError, NewGrant, RememberedGrant, Revocation, Terms};
pub use asks::path_rules::{OpenPaths, PathRules};
pub use calls::{Scheduling, Stopping, TurnEnd};
pub use gate::{Disposition, Gate, GateParts, Opened};
pub use isolation::{Isolated, Isolation};
pub use output::evidence::{ArtifactShelf, ShelfError};
pub use output::shown_lines::InContext;
pub use output::spool::SoFar;
pub use phases::intent::Proposal;
pub use phases::step::Halt;
pub use phases::stored_input::input_hash;
pub use registry::menu::{MenuEntry, Offer, Turn};
pub use registry::registrations::{Placement, Registrar, RegistrationError, RegistrationGuard, Registry, ToolsetId};
pub use registry::tool_choice::{NamedTool, ToolChoice};
pub use scope::{Approvals, ScopeParts};
pub use sessions::append::Append;
pub use sessions::attend::Attended;
pub use sessions::held_sessions::HeldSessions;
pub use sessions::queued_call::SoughtCall;
pub use sessions::runner_facts::folded;
pub use sessions::session::{Observation, Session};
pub use tasks::effect_book::{Effect, EffectBook, EffectError};
pub use tasks::handed_over::{CustomToolError, custom_tools};
pub use tasks::progress::Progress;
pub use tasks::shell_book::{Environment, ShellBook, ShellError, ShellSeen};
pub use tasks::task_book::{TaskBook, TaskError, TaskSeen, TaskStanding};
