//! The hand, second half: processes under kernel isolation.
//!
//! A [`Plan`] says what to run and what it may see; a [`Launcher`] runs it; a [`Running`] is the
//! process tree, which dies whole. How it works:
//!
//! - **We never fork.** The launcher is this very program, started anew by `posix_spawn` with a hidden
//!   first word ([`init`]). So the price of a launch does not grow with our memory, and no lock of
//!   ours is ever copied into a child.
//!   From the second command on one stands by ([`standby`]).
//! - **The launcher is strict, its caller decides.** It puts up exactly the layers it was told to, and
//!   on the first failure says which step it was and why. Only the caller may then ask for less, down
//!   to [`Plan::minimum`], and what is missing is in the [`Posture`] of what runs. Nothing of the
//!   person's program has run by then.
//! - **The tree dies whole.** The program's ancestor is an init of ours in its own pid namespace, tied
//!   to us by a parent-death signal. Without pid namespaces it is a subreaper, and the posture says
//!   what that cannot catch.
//! - **Nothing is made in a person's tree**, mount points included.

mod cgroup;
mod control;
mod disk;
mod error;
mod filter;
mod identity;
mod launcher;
mod lookup_path;
mod plan;
mod posture;
mod probe;
mod running;
mod spawn;
mod stage;
mod standby;
mod toolchain;
mod watch;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};

pub use disk::{DiskBreach, DiskLimit, DiskWatch, FreeSpace};
pub use error::{CannotHold, LaunchError, Unheld};
pub use launcher::Launcher;
pub use lookup_path::{Step, can_change, way_to};
pub use plan::{Bind, BindAccess, Guard, Limits, Network, OnUnheld, Output, Plan, Source, Stdin, Tmp, View};
pub use posture::{Layer, MissingLayer, Posture};
pub use running::{Exit, ProcessEnd, Running, Target};
pub use rustix::process::Signal;
pub use toolchain::{Host, Toolchains, toolchains};

/// The first word by which a start of this program is a launcher.
const HIDDEN_WORD: &str = "\u{1}portcullis-hand";

static INIT: AtomicBool = AtomicBool::new(false);

/// The first line of `main`, before a runtime or a thread is started. If this start of the program
/// is a launcher, it becomes one and never returns; otherwise it costs one look at the arguments.
pub fn init() {
    if std::env::args_os().nth(1).is_some_and(|word| word == HIDDEN_WORD) {
        stage::run();
    }
    INIT.store(true, Ordering::Release);
}

/// Whether [`init`] was called, so that this program can be its own launcher.
pub(crate) fn is_init() -> bool {
    INIT.load(Ordering::Acquire)
}
