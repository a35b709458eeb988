//! Real programs that try to leave a hand. Every attack first runs outside, where it must work: an
//! attack that could not succeed anyway proves nothing. Then it runs at every level that promises to
//! stop it, must end with the promised error, and must leave the host as it was.
//!
//! The programs are in `attacks.py`. These tests need Linux with user namespaces, Landlock (ABI 6) and
//! seccomp, `/usr/bin/python3`, `setpriv`, and root for the controls; without them they fail and say so.

mod arena;
mod exhaustion;
mod files;
mod kernel;
mod machine;
mod mounts;
mod privileges;
mod processes;
mod sockets;
#[path = "../hand/world.rs"]
#[allow(dead_code, reason = "shared with the tests of the hand, which use all of it")]
mod world;
