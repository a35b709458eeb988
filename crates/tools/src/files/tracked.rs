//! Whether git tracks a file as it is: then whoever has the repository has it too.
//!
//! The index of git is a file of the workspace, which commands can write. An entry proves something only if everything that
//! git noted of the file is true, its time of change to the nanosecond among it: git itself takes such a file as unchanged,
//! and a command that was shown an empty file in its place could not know it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes of an index that is looked through: some 500,000 files. A larger one tracks nothing for us.
const INDEX_MAX: u64 = 64 << 20;
/// Bytes before the hash of an entry: two times, device, inode, mode, owner, group, size.
const STAT_BYTES: usize = 40;
const HASHES: [usize; 2] = [20, 32];

/// What the index of its repository says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracked {
    No,
    /// There is an entry, and the file was changed since. Or a command made the entry: nobody can tell.
    Listed,
    /// It is the file that git last looked at.
    AsItIs,
}

/// What the indexes say of these files, by host paths. Each index is read once.
pub(crate) fn look(files: &[PathBuf]) -> Vec<Tracked> {
    let mut answers = vec![Tracked::No; files.len()];
    let mut repositories: HashMap<PathBuf, HashMap<Vec<u8>, usize>> = HashMap::new();
    for (which, file) in files.iter().enumerate() {
        if let Some((root, index)) = repository(file)
            && let Ok(beneath) = file.strip_prefix(&root)
        {
            repositories.entry(index).or_default().insert(beneath.as_os_str().as_encoded_bytes().to_owned(), which);
        }
    }
    for (index, wanted) in repositories {
        let small = fs::metadata(&index).ok().filter(|meta| meta.is_file() && meta.len() <= INDEX_MAX);
        let Some(bytes) = small.and_then(|_| fs::read(&index).ok()) else { continue };
        for hash in HASHES {
            let _ = entries(&bytes, hash, |path, noted| {
                let Some(which) = wanted.get(path) else { return };
                let file = files[*which].symlink_metadata();
                let same = file.is_ok_and(|meta| meta.len() > 0 && stat_of(&meta) == noted);
                if same {
                    answers[*which] = Tracked::AsItIs;
                } else if answers[*which] == Tracked::No {
                    answers[*which] = Tracked::Listed;
                }
            });
        }
    }
    answers
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

/// Gives `each` the path and the metadata of every entry; versions 2 to 4 of the format. `None` where the bytes are none.
fn entries(index: &[u8], hash: usize, mut each: impl FnMut(&[u8], [u32; 6])) -> Option<()> {
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
        let field = |n: usize| number(start + 4 * n);
        each(&path, [field(0)?, field(1)?, field(2)?, field(3)?, field(5)?, field(9)?]);
    }
    Some(())
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

    fn of(file: PathBuf) -> Tracked {
        look(&[file])[0]
    }

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
                assert_eq!(of(at(name)), Tracked::AsItIs, "{version} {name}");
            }
            // Only the intention to add it is there.
            let added = if version == "3" { Tracked::Listed } else { Tracked::No };
            assert_eq!(of(at("conf/.env.local")), added, "{version}");
            assert_eq!(of(at("none")), Tracked::No, "{version}");
            // Changed since: what git knows is not what stands there.
            fs::write(at("conf/.env"), "other").expect("written");
            assert_eq!(of(at("conf/.env")), Tracked::Listed, "{version}");
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
        assert_eq!(of(at(".env")), Tracked::Listed);
        fs::write(at(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").expect("written");
        assert_eq!(of(at(".env")), Tracked::No);
    }
}
