//! The launcher with real processes on this kernel. These tests need Linux with user namespaces,
//! Landlock and seccomp, `perl` and `setpriv`, and root (to become somebody else); without them they
//! fail and say so.

mod builds;
mod inside;
mod levels;
mod shell;
mod standby;
mod streams;
mod tree;
mod view;
mod world;
