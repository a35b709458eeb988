//! Configuration files on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_sandbox::{FileError, MountTable, TreeOwner};

use crate::error::UnreadableFile;

/// A longer file is not a configuration.
const MAX_BYTES: u64 = 4 << 20;
/// A project's own, beneath its workspace.
const PROJECT_FILE: &str = ".portcullis/config.toml";

/// Where a project keeps what it wants of us.
pub fn project_file(workspace: &Path) -> PathBuf {
    workspace.join(PROJECT_FILE)
}

/// The text of a project's file, `None` if there is none. It is opened within the workspace: a repository may hold links,
/// and one to rules that somebody trusts elsewhere must not bring that trust here.
pub(crate) fn read_project(workspace: &Path) -> Result<Option<String>, UnreadableFile> {
    let path = project_file(workspace);
    if !exists(&path)? {
        return Ok(None);
    }
    let cannot = |why: String| UnreadableFile::because(&path, why);
    let bytes = read_project_file(workspace, PROJECT_FILE, MAX_BYTES);
    let bytes = bytes.map_err(|why| cannot(format!("{why}; a project's rules stand in a regular file of its own")))?;
    bytes.map(String::from_utf8).transpose().map_err(|_| cannot("it is not UTF-8 text".to_owned()))
}

/// The text of a file, `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, UnreadableFile> {
    match exists(path)? {
        true => fs::read_to_string(path).map(Some).map_err(|e| UnreadableFile::because(path, e.to_string())),
        false => Ok(None),
    }
}

/// Whether there is a file that could be a configuration.
fn exists(path: &Path) -> Result<bool, UnreadableFile> {
    let cannot = |why: String| UnreadableFile::because(path, why);
    let gone = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    // A link that leads nowhere is a configuration that is lost, not one that was never written.
    let links = |path: &Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink());
    match fs::metadata(path) {
        Err(e) if gone(&e) && links(path) => Err(cannot("it is a link that leads nowhere".to_owned())),
        Err(e) if gone(&e) && path.parent().is_some_and(|folder| links(folder) && !folder.is_dir()) => {
            Err(cannot("its folder is a link that leads nowhere".to_owned()))
        }
        Err(e) if gone(&e) => Ok(false),
        Err(e) => Err(cannot(e.to_string())),
        // Opening a pipe would wait for a writer.
        Ok(facts) if !facts.is_file() => Err(cannot("it is not a regular file".to_owned())),
        Ok(facts) if facts.len() > MAX_BYTES => Err(cannot("it is longer than 4 MiB".to_owned())),
        Ok(_) => Ok(true),
    }
}

/// The bytes of a file of the project in `folder` that this program itself reads; `None` if there is none. A link that
/// leads out of the folder is refused, as is what is no regular file or has more than `most` bytes.
///
/// # Errors
/// The words say what is wrong and name no path of the host.
pub fn read_project_file(folder: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
    let mounts = MountTable::workspace(folder, TreeOwner::PersonsTree).map_err(|e| e.to_string())?;
    let resolved = match mounts.resolve(name) {
        Ok(resolved) if resolved.kind().is_none() => return Ok(None),
        Err(FileError::NotFound { .. }) => return Ok(None),
        Err(FileError::PathEscape { .. }) => return Err("it leads out of the workspace".to_owned()),
        other => other.map_err(|e| e.to_string())?,
    };
    match portcullis_sandbox::read_file(&resolved, most) {
        Ok(content) => Ok(Some(content.bytes)),
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(FileError::WrongKind { .. }) => Err("it is not a regular file".to_owned()),
        Err(FileError::TooLarge { .. }) => Err(format!("it is longer than {most} bytes")),
        Err(error) => Err(error.to_string()),
    }
}
