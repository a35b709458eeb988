//! A person's terminal.
//!
//! Owns: how untrusted text becomes harmless rows, tables and pages; how a call reads that has ended; choices by key and
//! Enter, and lines that are typed; what moves while a person waits; the terminal's mode and size, who sits at it,
//! and the signals that come from it.
//! Knows nothing of: stores, runtimes, sessions, and the commands of the command line.

mod call_text;
pub mod choice;
pub mod mode;
pub mod observed;
pub mod output_tail;
pub mod pages;
pub mod person;
pub mod render;
pub mod rows;
pub mod shell_view;
pub mod signals;
pub mod table;
pub mod typing;
pub mod waiting;

pub use call_text::CallText;
