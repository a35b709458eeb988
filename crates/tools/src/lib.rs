//! The managed tools, thin: each states what it takes, what it touches and what it did.
//!
//! Owns: the inputs and outputs of `read`, `write`, `edit`, `glob`, `grep`, `artifact_read`, `artifact_grep`, `task_output`,
//! `task_wait`, `task_cancel`, `bash`, of the shell tools and of `sandbox_describe` and `sandbox_execute`, and what a model and a person see of them. Knows nothing of: who may call them (`policy`), how a file is reached without
//! leaving its mount (`sandbox`), how much of an output is shown and where evidence is kept (`pipeline`).
//!
//! Invariants: a tool names a place by its canonical virtual path and never by a host path (H6); no
//! content is opened before the deny pre-check (L37); nothing is changed that was not read first, and
//! every change is a compare-and-swap on the hash that was read (tool-contract §19).

mod artifact_grep;
mod artifacts;
mod command;
mod count;
mod deferred_close;
mod diff;
mod files;
pub mod hand;
mod image;
pub mod instead;
mod look_suggestion;
mod names;
mod page;
mod profile;
mod sandbox;
mod search;
mod shell;
mod tasks;

pub use artifacts::artifact_tools;
pub use command::{ReadHand, ReadLine, ReadRan, read_tools};
pub use diff::{LineChange, unified_diff};
pub use files::{CoverageRule, FileTools, file_tools};
pub use look_suggestion::{LookSuggestion, ShellKnown, first_look};
pub use names::is_built_in;
pub use portcullis_agent::setup::Profile;
pub use sandbox::{SandboxTools, sandbox_tools};
pub use shell::{
    CarryOver, Change, LeftBehind, LiveCommand, LiveShell, LiveView, NoLiveShell, ShellBusy, ShellParts, ShellTools,
    Shells, carry_over, persistent_tools, run_tools, shell_tools, stock_bash,
};
pub use tasks::task_tools;

use portcullis_contract::{Diff, ExecutorId, ExecutorKind, ToolName};

/// The version of these implementations; an approval that outlives a restart is bound to it.
const IMPL_VERSION: &str = "2";

/// Work on at most this many bytes is done on the spot: handing it to another thread costs more.
const ON_THE_SPOT: u64 = 256 << 10;

fn executor(name: &str) -> ExecutorId {
    ExecutorId { kind: ExecutorKind::Builtin, id: format!("portcullis.{name}"), impl_version: IMPL_VERSION.to_owned() }
}

fn tool_name(name: &'static str) -> ToolName {
    // Invariant: the names of this crate are literals inside the grammar; a test registers them all.
    name.parse().expect("a literal tool name")
}

/// Runs work that waits for a disk, where it disturbs nobody. A panic in it is the caller's.
async fn on_disk<T: Send + 'static>(bytes: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= ON_THE_SPOT {
        return work();
    }
    off_thread(work).await
}

/// The diff of a change of so many bytes: a small one is made when a person is asked, on the spot; a large one here,
/// where it disturbs nobody.
fn diff_of(bytes: u64, make: impl FnOnce() -> String + Send + 'static) -> Diff {
    if bytes <= ON_THE_SPOT { Diff::later(make) } else { Diff::from(make()) }
}

/// Runs work that waits for a disk to have written. Where it can, it stays in this thread, whose
/// other tasks go on in another one: that is two wake-ups less on the way of every edit.
async fn synced<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => off_thread(work).await,
    }
}

/// Runs blocking work in a thread of its own, whatever its size.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down and will not poll this again.
            Err(_) => std::future::pending().await,
        },
    }
}
