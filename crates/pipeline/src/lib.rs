//! The gate: one intent from proposal to observation.
//!
//! Owns: the phases, the registry with its placements and overlays, menus, scheduling, bounding,
//! settlement and recovery. Knows nothing of: which tools exist, how a model is asked, how a store
//! keeps things.
//!
//! Read it in the order of the phases:
//! [`gate`] (the doors and the path) → `lookup` → `validate` → `permission` → `schedule` →
//! `execute` → `normalize` → `bound`; then `session` (how facts become durable) `attend` (what
//! happens after a crash or an answer) and `background` (calls that outlive their observation).
#![allow(clippy::disallowed_methods, reason = "this crate is the one that opens tools")]

mod admission;
mod append;
mod ask;
mod at_work;
mod attend;
mod background;
mod bound;
mod bound_to;
mod calls;
mod closed;
mod delivered;
mod evidence;
mod execute;
mod explain;
mod external;
mod fit;
mod gate;
mod grace;
mod grants;
mod handed_over;
mod held;
mod host;
mod in_context;
mod intent;
mod isolation;
mod kept;
mod keys;
mod known;
mod lineage;
mod lookup;
mod loops;
mod menu;
mod midway;
mod names;
mod normalize;
mod offers;
mod permission;
mod preview;
mod progress;
mod quota;
mod recorded;
mod refuse;
mod registry;
mod schedule;
mod session;
mod shell_book;
mod shell_facts;
mod spans;
mod spool;
mod step;
mod stored_input;
mod task_book;
mod tasks;
mod turn;
mod validate;
mod weighed;
mod withdraw;

pub use admission::Admission;
pub use append::Append;
pub use attend::Attended;
pub use calls::{Scheduling, Stopping, TurnEnd};
pub use closed::{OpenPaths, PathRules};
pub use evidence::{ArtifactShelf, ShelfError};
pub use explain::Explained;
pub use external::{CustomToolError, custom_tools};
pub use gate::{Approvals, Disposition, Gate, GateParts, Opened};
pub use grants::{GrantBook, GrantError, NewGrant, Remembered, Revocation, Terms};
pub use held::BaselineBook;
pub use in_context::InContext;
pub use intent::Proposal;
pub use isolation::{Isolated, Isolation};
pub use kept::folded;
pub use menu::{MenuEntry, Offer, Turn};
pub use progress::Progress;
pub use recorded::Sought;
pub use registry::{Placement, Registrar, RegistrationError, RegistrationGuard, Registry};
pub use session::{Observation, Session};
pub use shell_book::{Environment, ShellBook, ShellError, ShellSeen};
pub use spool::SoFar;
pub use step::Halt;
pub use stored_input::input_hash;
pub use task_book::{Standing, TaskBook, TaskError, TaskSeen};
