//! Rules, decisions and structured asks (tool-contract §13).
//!
//! Owns: the [`Rule`] and its TOML form ([`parse_rules`]), the root-owned [`EnterprisePolicy`], the
//! immutable [`Policy`] and its [`Decision`]s, [`Grant`]s, [`SuggestedRule`]s and questions asked before.
//! Knows nothing of: tools, sessions, people, storage. It decides; asking, remembering and running
//! are done elsewhere.
//!
//! Invariants: a decision is a function of the rules as a set, the requests, and the [`Asker`]; it
//! reads no clock and no file. No rule is ever dropped silently: a file that cannot be read whole is
//! an error with file and line. Nothing but a written `opaque = true` rule or a person allows what
//! analysis could not name.

mod action;
mod argv;
mod command_access;
mod decide;
mod decision;
mod enterprise;
mod error;
mod fit;
mod given;
mod glob;
mod grant;
mod host;
mod index;
mod lint;
mod literal;
mod looking;
mod named;
mod parse;
mod path;
pub mod places;
mod policy;
mod recorded;
mod refspec;
mod resource;
mod restrict;
mod rule;
mod special_names;
mod subject;
mod suggest;
mod tables;

pub use action::{ActionPattern, WordPattern};
pub use argv::ArgvPattern;
pub use command_access::{lexical, line_access, plan_access};
pub use decision::{Allow, Ask, Asker, Decision, Deny};
pub use enterprise::{EnterprisePolicy, FileOwner, OwnerCheck, SystemOwner};
pub use error::{PatternError, PolicyError, Problem};
pub use grant::{Grant, GrantRule, GrantScope, Satisfies};
pub use host::HostPattern;
pub use lint::{ActionReach, Fault, Finding, lint, probably_meant};
pub use parse::parse_rules;
pub use path::{PathPattern, WORKSPACE};
pub use places::{LaterPlace, PlaceKind};
pub use policy::{DeniedPath, DeniedProgram, Policy, PolicyBuilder, file_hash};
pub use recorded::RecordedQuestion;
pub use resource::{ResourcePattern, Specificity};
pub use rule::{Layer, Rule, RuleEffect, RuleId, RuleRef, RuleSource, Scope};
pub use suggest::SuggestedRule;
