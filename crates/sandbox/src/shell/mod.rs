//! The persistent shell: one `bash` that runs one command after another, each with its folder, its exported environment
//! and its functions left behind for the next (agent-runtime 10.4).
//!
//! How it is driven:
//!
//! - **One socket is its standard input**, and nothing else is said between us. What it shall run comes in as lines that
//!   it reads; when a command is over the shell itself answers on the same socket: status, folder, environment
//!   ([`frame`]). Standard output and error are pipes that nobody ever searches, so output of any size and content can
//!   neither hide nor fake an end.
//! - **A command does not have the socket.** While it runs, its standard input is `/dev/null` and the shell's own copy of
//!   the socket is closed by every exec. It is a socket and no pipe because what `/proc/PID/fd` shows of a pipe can be
//!   opened anew by any process of the same user, and of a socket it cannot; `pidfd_getfd`, `ptrace` and their like are
//!   refused by the hand. On top of that an answer counts only with the random token of its command.
//! - **What remains:** what a command leaves *in the shell itself* (functions, traps, aliases) is part of that shell, and
//!   can lie about later commands of it as it can replace `ls`. It gains nothing that the command could not have printed,
//!   and a restart is clean.
//! - **The shell is an interactive one without a terminal**, because only such a one drops the rest of a command list when
//!   it is interrupted and lives on: `sleep 99; rm -r build` must not go on with the `rm`.

mod frame;
mod program;
mod run;

pub use frame::{Fault, Frames, Report, Token};
pub use program::{Program, quoted};
pub use run::{FinishedLine, Shell, ShellDied, ShellLine, Sink, StartError, Stream, line};
