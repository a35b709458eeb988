//! One wake of a session: what the model is shown, what it wants, and what became of it.
//!
//! Owns: the context, the model loop, the directive, failures and retries, the worker.
//! Knows nothing of: which tools exist, how a model is spoken to, transports.

pub mod context;
pub mod directive;
mod live_event;
mod redrive;
mod settings;
mod wake;
mod worker;

pub use context::BASE_PROMPT;
pub use live_event::{Live, LiveEvent, NoWatcher, Watcher};
pub use redrive::{CallSeen, Divergence, Redrive, RedriveError, RedriveResult};
pub use settings::{Guidance, Settings};
pub use wake::{Extras, Harness, KnownTalks, Limit, NoExtras, SuggestedCall, WakeEnd, WakeStop, Woken};
pub use worker::{
    Activity, CYCLES, Crew, Journal, POLL, Post, SESSIONS_AT_ONCE, ServeFault, Skip, Worker, WorkerSettings, WorkerStop,
};
