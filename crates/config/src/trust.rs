//! Which project files a person trusts: each by its path and the hash of exactly its text, so that any change of it
//! voids the trust (tool-contract 13.2). One small file a trust, in the data folder, which no tool sees.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use portcullis_base::{Digest, Timestamp};
use portcullis_policy::file_hash;
use serde::{Deserialize, Serialize};

use crate::draft::DraftFile;
use crate::error::ConfigError;
use crate::home::Home;

/// What was trusted, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    pub file: PathBuf,
    pub sha256: Digest,
    pub by: String,
    pub at: Timestamp,
}

fn place(home: &Home, file: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    home.root().join("trusted").join(format!("{}.json", Digest::of(file.as_os_str().as_bytes())))
}

/// A record that says nothing: its file is not trusted until somebody trusts it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableTrust {
    /// Which record, and what is wrong with it.
    pub what: String,
    /// The project's file that it is about.
    pub file: PathBuf,
}

/// Whether exactly this text of this file is trusted. `file` is its path with links resolved.
pub fn holds(home: &Home, file: &Path, text: &str) -> Result<bool, UnreadableTrust> {
    let place = place(home, file);
    let unreadable = |why: String| UnreadableTrust {
        what: format!("the record of trust {} {why}, so {} is not trusted", place.display(), file.display()),
        file: file.to_owned(),
    };
    let kept = match fs::read_to_string(&place) {
        Ok(kept) => kept,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(unreadable(format!("cannot be read ({e})"))),
    };
    let kept: TrustRecord = match serde_json::from_str(&kept) {
        Ok(kept) => kept,
        Err(_) if kept.trim().is_empty() => return Err(unreadable("is empty".to_owned())),
        Err(e) => return Err(unreadable(format!("is damaged ({e})"))),
    };
    Ok(kept.file == file && kept.sha256 == file_hash(text))
}

/// Keeps a trust, whole or not at all, in place of an older one of the same file.
pub fn keep(home: &Home, trusted: &TrustRecord) -> Result<(), ConfigError> {
    let place = place(home, &trusted.file);
    let cannot = |why: io::Error| ConfigError::cannot_keep(&place, why);
    let folder = place.parent().unwrap_or(home.root());
    // It may be the first thing that is kept at all. A process that can write here decides what is trusted.
    home.prepare()?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
    let text = serde_json::to_string_pretty(trusted).map_err(|e| cannot(e.into()))? + "\n";
    let mut draft = DraftFile::begin(&place).map_err(cannot)?;
    draft.write_all(text.as_bytes()).and_then(|()| draft.replace()).map_err(cannot)
}
