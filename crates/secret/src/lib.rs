//! Values that do not print themselves, sealing at rest, and redaction of text and streams.
//!
//! Owns: [`SecretText`] and [`SecretBytes`], the [`Sealer`] with its [`SealingKey`], the
//! [`Redactor`] that keeps known secrets out of whatever is written (SA-36, L69), and the removal of
//! fields that a schema marks `x-portcullis-sensitive` (tool-contract §4); the names of files that hold secrets by custom
//! ([`file_names`]).
//! Knows nothing of: where secrets come from, where sealed bytes are kept, who may see what.
//!
//! Invariant: nothing in this crate prints a secret. Every error, `Debug`, `Display` and
//! `Serialize` of a secret-bearing type is free of its content; [`SecretText::expose`] and
//! [`SecretBytes::expose`] are the only ways out, and easy to search for.

pub mod file_names;
mod forms;
mod key;
mod key_file;
mod redactor;
mod seal;
mod sensitive;
mod shapes;
mod sounding;
mod stream;
mod value;

pub use forms::MIN_REDACTED_BYTES;
pub use key::SealingKey;
pub use key_file::KeyFileError;
pub use redactor::{Redactor, RedactorError, markers};
pub use seal::{Aad, OpenError, SealError, Sealed, Sealer};
pub use sensitive::{RestoreError, marks_sensitive, redact_sensitive, restore_sensitive};
pub use stream::RedactingStream;
pub use value::{NotUtf8Secret, SecretBytes, SecretText};

/// What stands wherever a secret stood.
pub const MASK: &str = "***";

/// The schema keyword that marks a property whose value never enters an event (tool-contract §4).
pub const SENSITIVE_KEYWORD: &str = "x-portcullis-sensitive";
