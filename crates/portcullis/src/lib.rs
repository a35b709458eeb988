//! Portcullis for embedders: typed tools, the gate and a store, without a server.
//!
//! ```
//! use portcullis::{CallOutcome, Runtime, Semantics, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Name { name: String }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = Tool::builder::<Name, String>("Greets someone.")
//!     .semantics(Semantics::read_only())
//!     .execute(|input, _| async move { Ok(format!("Hello, {}!", input.name)) })
//!     .build()?;
//! let runtime = Runtime::builder().tool("greet", greet)?.build()?;
//! let session = runtime.create_session("demo").await?;
//! let CallOutcome::Observed(seen) = runtime.call(session, "greet", r#"{"name":"Ada"}"#).await? else { unreachable!() };
//! assert!(seen.ok());
//! # Ok(()) }
//! ```
//!
//! Owns: putting the parts together. Knows nothing of: HTTP, MCP, SQL, terminals. There is no global state:
//! two runtimes share nothing, unless one was made [beside](Runtime::beside) the other.
#![warn(missing_docs)]

mod agent;
mod build;
mod builder;
mod call;
mod error;
mod guidance;
mod held;
mod ingress;
#[cfg(feature = "local")]
pub mod local;
mod notes;
#[cfg(doctest)]
mod opacity;
pub mod operations;
mod plugin;
mod queue;
mod reaches;
mod replies;
mod runtime;
mod serve;
mod setup;
mod tasks;

pub use agent::{Agent, AgentParts};
pub use builder::RuntimeBuilder;
pub use call::{CallOutcome, RunningCall};
pub use error::RuntimeError;
pub use guidance::{GUIDANCE_BYTES, ProjectGuidance};
pub use held::HeldSession;
pub use ingress::Refused;
pub use plugin::{LocationServices, Plugin, PluginScope};
pub use reaches::REACHES;
pub use replies::{PendingAsk, SettledAsk};
pub use runtime::Runtime;
pub use setup::environment;

pub use portcullis_agent::setup::{Environment, Mode, ModelSetup, Setup};
pub use portcullis_agent::{SessionSetup, SessionSetupError, SetupOrigin, session_setup, session_setup_at};
pub use portcullis_base::{
    Actor, ArtifactId, ArtifactKind, AskId, Clock, Code, CommandId, Entropy, EnvKey, EnvKeyError, EventId, FileFact,
    GrantId, IdGen, IntentId, IsolationLevel, Phase, Reason, Risk, RiskSet, SessionId, ShellId, SideEffect,
    SideEffects, SystemClock, SystemIds, TaskId,
};
pub use portcullis_contract::{
    AccessRequest, Action, Background, BuildError, Caller, Concurrency, Content, DefaultPolicy, Diff, EndedCommand,
    GateStop, Interrupt, NamedKind, NotBackgrounded, Ownership, Precondition, Prepared, Resolved, Resource,
    ResourceKind, Semantics, ShellFact, SpoolRef, Tool, ToolBuilder, ToolContext, ToolDefinition, ToolFailure,
    ToolName, ToolOrigin, UserText, Visibility,
};
pub use portcullis_event::Observed;
pub use portcullis_event::facts::{CustomTool, Exit, PermissionAsked, Reply, TaskCompleted};
pub use portcullis_harness as harness;
pub use portcullis_model as model;
pub use portcullis_pipeline::{
    Approvals, AskAnswer, Attended, Disposition, GrantBook, GrantError, Halt, KnownAnswers, Observation, Offer,
    Progress, Registrar, RegistrationError, RegistrationGuard, RememberedGrant, Revocation,
};
pub use portcullis_policy::{
    Grant, GrantRule, GrantScope, Layer, Policy, PolicyBuilder, PolicyError, Rule, parse_rules,
};
pub use portcullis_sandbox::hand;
pub use portcullis_secret::{SealingKey, SecretText};
pub use portcullis_store::{
    ArtifactRow, Artifacts, AskRow, DISK_FULL, ForkError, Head, Hit, HolderKind, LeaseOwner, Leftover, LogFault,
    LostEnd, MemoryArtifacts, MemoryStore, Proof, Query, RebuiltLog, SessionSummary, Store, StoreError, VerifiedLog,
    WakeRow, Witness,
};
pub use portcullis_tools::hand::{HandSettings, NetworkAccess};
pub use portcullis_tools::{Profile, instead, unified_diff};
pub use tokio_util::sync::CancellationToken;
