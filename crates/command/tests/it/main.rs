//! Command lines, and what they come to.
//!
//! One binary: what is linked once is waited for once.

mod corpus;
mod differential;
mod folders;
mod hostile;
mod quiet;
mod read_only;
mod real_shell;
