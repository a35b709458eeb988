//! Making a directory, beneath its mount and nowhere else.

use crate::parents::{Parents, split};
use crate::{FileError, Kind, ResolvedPlace, VirtualPath};

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeDir {
    /// The directories that were not there before, outermost first; none if all were.
    pub created: Vec<VirtualPath>,
    /// Whether a power cut cannot take them away any more.
    pub synced: bool,
}

/// Makes the directory. With `parents`, also those that it lies in, and one that is there is as good as made; without, it
/// must be new and its parent must be there. On an error nothing is left behind.
///
/// # Errors
/// [`FileError::TargetExists`] if something else stands there, and whatever keeps a file from being written there.
pub fn make_dir(resolved: &ResolvedPlace, parents: bool) -> Result<MadeDir, FileError> {
    let path = resolved.path();
    let exists = || FileError::TargetExists { path: path.clone() };
    resolved.check_writable()?;
    match resolved.kind() {
        Some(Kind::Directory) if parents => return Ok(MadeDir { created: Vec::new(), synced: true }),
        Some(_) => return Err(exists()),
        None => {}
    }
    let (_, name) = split(resolved)?;
    let mut opened = Parents::open(resolved, parents)?;
    opened.check_unmoved(path)?;
    let made = opened.make_and_enter(name, path)?;
    // Another one made it in the same moment.
    if !made && !parents {
        return Err(exists());
    }
    let synced = opened.sync();
    Ok(MadeDir { created: opened.keep(), synced })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::{MountTable, TreeOwner};

    #[test]
    fn a_directory_is_made_with_its_parents_only_where_that_is_asked_for() {
        let root = tempfile::tempdir().expect("dir");
        let table = MountTable::workspace(root.path(), TreeOwner::SessionOwn).expect("mount");
        let place = |path: &str| table.resolve(path).expect("inside");
        assert!(matches!(make_dir(&place("a/b"), false), Err(FileError::NotFound { .. })));
        assert!(!root.path().join("a").exists(), "nothing is left behind");
        let made = make_dir(&place("a/b"), true).expect("made");
        let names: Vec<&str> = made.created.iter().map(VirtualPath::as_str).collect();
        assert_eq!(names, ["/workspace/a", "/workspace/a/b"]);
        let mode = fs::metadata(root.path().join("a/b")).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "in the session's own tree");
        assert_eq!(make_dir(&place("a/b"), true).expect("there").created, []);
        assert!(matches!(make_dir(&place("a/b"), false), Err(FileError::TargetExists { .. })));
        fs::write(root.path().join("file"), "").expect("a file");
        assert!(matches!(make_dir(&place("file"), true), Err(FileError::TargetExists { .. })));
        assert!(matches!(table.resolve("file/x"), Err(FileError::WrongKind { .. })), "refused before that");
    }

    #[test]
    fn no_directory_is_made_in_the_configuration_or_outside() {
        let (root, outside) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let table = MountTable::workspace(root.path(), TreeOwner::PersonsTree).expect("mount");
        let resolved = table.resolve(".portcullis/rules").expect("inside");
        assert!(matches!(make_dir(&resolved, true), Err(FileError::ReadOnlyMount { .. })));
        assert!(!root.path().join(".portcullis").exists());
        // A link that is put there after the look is not followed.
        let resolved = table.resolve("later/new").expect("inside");
        symlink(outside.path(), root.path().join("later")).expect("a link");
        assert!(make_dir(&resolved, true).is_err());
        assert_eq!(fs::read_dir(outside.path()).expect("listed").count(), 0);
    }
}
