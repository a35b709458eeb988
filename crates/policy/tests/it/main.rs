//! Rules, commands and what they come to.
//!
//! One binary: what is linked once is waited for once.

mod commands;
mod corpus;
mod differential;
mod dodges;
mod fed;
mod files;
mod gate;
mod hostile;
mod laws;
mod mapping;
mod neighbours;
mod oracle;
mod quiet;
mod read_only;
mod real_shell;
mod spellings;
mod worlds;
