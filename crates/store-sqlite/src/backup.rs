//! A copy of the whole store while it is in use: one state of it, complete under its own name or not there at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_store::StoreError;
use rusqlite::params;

use crate::connect::DatabaseFile;
use crate::error::plain;

/// Copies the store to `to`, which must not exist, and says how many bytes the copy has.
///
/// Writers go on meanwhile. The write-ahead log cannot shrink until the copy is done: this is the one read that may
/// last longer than a second.
pub(crate) fn backup(place: &DatabaseFile, to: &Path) -> Result<u64, StoreError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        StoreError::Unavailable(format!("no backup was made: {what} {}: {error}", to.display()))
    };
    if fs::symlink_metadata(to).is_ok() {
        return Err(failed("it must be a new file,", &"there is one already"));
    }
    let partial = PartialBackup(beside(to));
    // Made here, so that nobody else can read it while it grows; SQLite takes an empty file as a new one.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial.0);
    made.map_err(|error| failed("cannot make", &error))?;
    let name = partial.0.to_str().ok_or_else(|| failed("its name is no text,", &"name another"))?;
    let conn = place.reader().map_err(|error| plain(&error))?;
    conn.execute("VACUUM INTO ?1", params![name]).map_err(|error| failed("cannot write", &plain(&error)))?;
    finish(&partial.0, to).map_err(|error| failed("cannot finish", &error))
}

/// Durable first, then under its name: a backup under its name is always whole.
fn finish(partial: &Path, to: &Path) -> io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    // A name taken meanwhile is left alone.
    fs::hard_link(partial, to)?;
    let folder = to.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(file.metadata()?.len())
}

fn beside(to: &Path) -> PathBuf {
    let mut name: OsString = to.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

/// The copy in the making; its own name goes with it.
struct PartialBackup(PathBuf);

impl Drop for PartialBackup {
    fn drop(&mut self) {
        // It was never a backup; what cannot be deleted is named for what it is.
        let _ = fs::remove_file(&self.0);
    }
}
