//! Attacks around the sandbox: on what is planted for later, on what a person is shown, and on what a rule means.
//!
//! Each file attacks one class with many generated spellings. Every attack has a control: the same attempt without the
//! guard must work, because an attack that could not succeed proves nothing. The tests run the real binary as root and as
//! an ordinary user; they need root (to become that user) and `setpriv`, and fail if either is missing.

mod approved_elsewhere;
#[allow(dead_code, reason = "each class uses the part of it that it needs")]
mod arena;
mod argv_denies;
mod argv_everyday;
mod bound_files;
mod code_loading_variables;
#[path = "../it/common/mod.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which use all of it")]
mod common;
mod depth;
mod git_aliases;
mod git_configuration;
mod looking_parts;
mod no_secret_in_any_row;
mod planted_configuration;
mod quoted_scripts;
mod run_later;
mod shadowed_programs;
mod shown_to_the_end;
mod store_damaged;
mod store_gone;
mod store_growth;
mod store_rows;
mod store_waits;
mod told_truly;
mod typed_answers;
mod workspace_secrets;
