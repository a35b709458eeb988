//! The hand: what a session can reach of the file system and how it reads and writes it, and
//! processes under kernel isolation ([`hand`]).
//!
//! Owns: mounts, virtual paths, confined file actions, the text model behind `read` and `edit`,
//! launching commands. Knows nothing of: tools, permission, sessions, the log.
//!
//! Three invariants hold the crate together:
//!
//! - **Beneath by construction.** Nothing below a mount is opened by a path. Every step opens one
//!   [`Name`] (never `..`, never with a `/`) in a directory handle, without following links. Links
//!   are read and walked by [`MountTable::resolve`], so there is no string to compare and no
//!   moment between a check and an open.
//! - **What was decided on is what is touched.** A [`ResolvedPlace`] is free of links. An action that
//!   meets a link on the way stops ([`FileError::PathChanged`]): permission was asked for another
//!   place.
//! - **No host path leaves.** A [`FileError`] has no field that could hold one.

mod edit;
mod error;
pub mod hand;
mod handle;
mod hidden_places;
pub mod host_way;
mod make_dir;
pub mod matching;
mod media;
mod mount;
mod name;
mod parents;
mod read;
mod resolve;
pub mod shell;
mod small_file;
mod temp;
mod text;
pub mod tree;
mod vpath;
mod walk;
mod write;

pub use edit::{EditError, Replacement, replace_literal};
pub use error::{FileError, Kind, PathFault};
pub use make_dir::{MadeDir, make_dir};
pub use media::{ContentKind, content_kind};
pub use mount::{Access, CONFIG_DIR, Mount, MountTable, TreeOwner};
pub use name::Name;
pub use read::{
    Attempt, FileContent, FileHash, FileStat, hash_file, identity, open_dir, open_for_reading, read_file, stat,
    would_allow,
};
pub use resolve::ResolvedPlace;
pub use small_file::{read_small, read_small_beneath};
pub use text::{LineEnding, NotText, TextFile};
pub use vpath::VirtualPath;
pub use walk::{Entry, PassedOver, Visitor, Walk};
pub use write::{Expect, ReplacedFile, WritePlan, WrittenFile, write_file, write_file_while};
