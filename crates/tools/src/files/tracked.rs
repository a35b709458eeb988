//! Whether git tracks a file as it is: then whoever has the repository has it too.
//!
//! The index of git is a file of the workspace, which commands can write. An entry counts only if everything that git
//! noted of the file is true, its time of change to the nanosecond among it: git itself takes such a file as unchanged, and
//! a command that was shown an empty file in its place could not know it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes of an index that is looked through: some 500,000 files. A larger one tracks nothing for us.
const INDEX_MAX: u64 = 64 << 20;
/// Bytes before the hash of an entry: two times, device, inode, mode, owner, group, size.
const STAT_BYTES: usize = 40;
const HASHES: [usize; 2] = [20, 32];

/// Whether the file at this host path is tracked and unchanged since git last looked.
pub(super) fn is_tracked(file: &Path) -> bool {
    let Some((root, index)) = repository(file) else { return false };
    let (Ok(meta), Ok(beneath)) = (file.symlink_metadata(), file.strip_prefix(&root)) else { return false };
    let Some(bytes) =
        fs::metadata(&index).ok().filter(|meta| meta.len() <= INDEX_MAX).and_then(|_| fs::read(&index).ok())
    else {
        return false;
    };
    let wanted = beneath.as_os_str().as_encoded_bytes();
    HASHES.iter().any(|hash| entry(&bytes, *hash, wanted).is_some_and(|stat| stat == stat_of(&meta)) && meta.len() > 0)
}

/// The working tree that a file lies in, and its index.
fn repository(file: &Path) -> Option<(PathBuf, PathBuf)> {
    for folder in file.ancestors().skip(1) {
        let git = folder.join(".git");
        let Ok(meta) = git.symlink_metadata() else { continue };
        if meta.is_dir() {
            return Some((folder.to_owned(), git.join("index")));
        }
        let text = fs::read_to_string(&git).ok()?;
        let named = text.strip_prefix("gitdir:")?.trim().to_owned();
        return Some((folder.to_owned(), folder.join(named).join("index")));
    }
    None
}

/// What git keeps of a file's metadata.
fn stat_of(meta: &fs::Metadata) -> [u32; 6] {
    let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
    let time = |value: i64| low(u64::try_from(value).unwrap_or(0));
    [
        time(meta.ctime()),
        time(meta.ctime_nsec()),
        time(meta.mtime()),
        time(meta.mtime_nsec()),
        low(meta.ino()),
        low(meta.len()),
    ]
}

/// The metadata of the entry with this path; versions 2 to 4 of the format.
fn entry(index: &[u8], hash: usize, wanted: &[u8]) -> Option<[u32; 6]> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|_| index.starts_with(b"DIRC"))?;
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..number(8)? {
        let start = at;
        let flags = u16::from_be_bytes(index.get(at + STAT_BYTES + hash..at + STAT_BYTES + hash + 2)?.try_into().ok()?);
        at += STAT_BYTES + hash + 2 + if version >= 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        if version == 4 {
            let (cut, used) = varint(index.get(at..)?)?;
            path.truncate(path.len().checked_sub(cut)?);
            at += used;
        } else {
            path.clear();
        }
        let length = index.get(at..)?.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&index[at..at + length]);
        at += length + 1;
        if version != 4 {
            // Padded with NULs to a multiple of eight bytes.
            at = start + (at - start).next_multiple_of(8);
        }
        if path == wanted {
            let field = |n: usize| number(start + 4 * n);
            return Some([field(0)?, field(1)?, field(2)?, field(3)?, field(5)?, field(9)?]);
        }
    }
    None
}

/// A number as version 4 writes it, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut used = 1;
    while bytes[used - 1] & 0x80 != 0 {
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(bytes.get(used)? & 0x7f))?;
        used += 1;
    }
    Some((value, used))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(tree: &Path, words: &[&str]) {
        let done = Command::new("git").current_dir(tree).args(words).env("HOME", tree).output().expect("git runs");
        assert!(done.status.success(), "{words:?}: {done:?}");
    }

    #[test]
    fn what_git_tracks_is_told_from_what_it_does_not_in_every_version_of_its_index() {
        for version in ["2", "3", "4"] {
            let tree = tempfile::tempdir().expect("a folder");
            let at = |name: &str| tree.path().join(name);
            git(tree.path(), &["init", "-q"]);
            fs::create_dir_all(at("conf/deep")).expect("folders");
            for name in ["a", "conf/.env", "conf/.env.local", "conf/deep/server.pem", "z"] {
                fs::write(at(name), "text").expect("written");
            }
            git(tree.path(), &["config", "index.version", version]);
            git(tree.path(), &["add", "a", "conf/.env", "conf/deep/server.pem", "z"]);
            git(tree.path(), &["update-index", "--index-version", version]);
            if version == "3" {
                // An entry with extended flags is what makes the version 3.
                git(tree.path(), &["add", "-N", "conf/.env.local"]);
            }
            for name in ["a", "conf/.env", "conf/deep/server.pem", "z"] {
                assert!(is_tracked(&at(name)), "{version} {name}");
            }
            assert!(!is_tracked(&at("conf/.env.local")), "{version}");
            assert!(!is_tracked(&at("none")), "{version}");
            // Changed since: what git knows is not what stands there.
            fs::write(at("conf/.env"), "other").expect("written");
            assert!(!is_tracked(&at("conf/.env")), "{version}");
        }
    }

    #[test]
    fn an_entry_that_was_made_for_another_file_counts_for_nothing() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        git(tree.path(), &["init", "-q"]);
        fs::write(at(".env"), "KEY=1").expect("written");
        fs::write(at("real"), "KEY=1").expect("written");
        fs::rename(at(".env"), at("away")).expect("renamed");
        fs::copy(at("real"), at(".env")).expect("copied");
        git(tree.path(), &["add", "-f", ".env"]);
        fs::rename(at("away"), at(".env")).expect("renamed back");
        assert!(!is_tracked(&at(".env")));
        fs::write(at(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").expect("written");
        assert!(!is_tracked(&at(".env")));
    }
}
