//! Whether git tracks a file as it is: then everyone with the repository has it too.
//!
//! The index of git is a file of the workspace, which commands can write. An entry proves something only if it has the hash
//! of the file's own content: a command that was shown nothing of the file cannot know that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use portcullis_sandbox::read_small;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// Bytes of an index that is looked through: some 500,000 files. A larger one tracks nothing for us.
const INDEX_MAX: u64 = 64 << 20;
/// Bytes of a file whose content is compared. A larger one of such a name is no text of a project.
const CONTENT_MAX: u64 = 4 << 20;
/// Bytes of the file that leads to a git folder elsewhere.
const GITLINK_MAX: u64 = 4 << 10;
/// Bytes before the hash of an entry: two times, device, inode, mode, owner, group, size.
const STAT_BYTES: usize = 40;
/// Bytes of a hash, in the two kinds of repositories.
const HASHES: [usize; 2] = [20, 32];

/// What the index of its repository says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitTracking {
    No,
    /// There is an entry for other content: the file was changed since, or a command made the entry. Nobody can tell.
    Listed,
    /// Git has what stands there.
    AsItIs,
}

/// What the indexes say of these files, by host paths. Each index is read once.
pub(crate) fn look(files: &[PathBuf]) -> Vec<GitTracking> {
    let mut answers = vec![GitTracking::No; files.len()];
    let mut repositories: HashMap<PathBuf, HashMap<Vec<u8>, usize>> = HashMap::new();
    for (which, file) in files.iter().enumerate() {
        if let Some((root, index)) = repository(file)
            && let Ok(beneath) = file.strip_prefix(&root)
        {
            repositories.entry(index).or_default().insert(beneath.as_os_str().as_encoded_bytes().to_owned(), which);
        }
    }
    for (index, wanted) in repositories {
        let Some(bytes) = read_small(&index, INDEX_MAX) else { continue };
        for hash in HASHES {
            let _ = entries(&bytes, hash, |path, noted| {
                let Some(which) = wanted.get(path) else { return };
                if blob(&files[*which], hash).is_some_and(|blob| blob == noted) {
                    answers[*which] = GitTracking::AsItIs;
                } else if answers[*which] == GitTracking::No {
                    answers[*which] = GitTracking::Listed;
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
        let text = String::from_utf8(read_small(&git, GITLINK_MAX)?).ok()?;
        let named = text.strip_prefix("gitdir:")?.trim().to_owned();
        return Some((folder.to_owned(), folder.join(named).join("index")));
    }
    None
}

/// The hash that git gives a file's content.
fn blob(file: &Path, bytes: usize) -> Option<Vec<u8>> {
    let content = read_small(file, CONTENT_MAX)?;
    let head = format!("blob {}\0", content.len());
    Some(match bytes {
        20 => Sha1::new().chain_update(head).chain_update(content).finalize().to_vec(),
        _ => Sha256::new().chain_update(head).chain_update(content).finalize().to_vec(),
    })
}

/// Gives `each` the path and the hash of every entry; versions 2 to 4 of the format. `None` where the bytes are none.
fn entries(index: &[u8], hash: usize, mut each: impl FnMut(&[u8], &[u8])) -> Option<()> {
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
        each(&path, index.get(start + STAT_BYTES..start + STAT_BYTES + hash)?);
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
    use std::fs;
    use std::process::Command;

    use super::*;

    fn of(file: PathBuf) -> GitTracking {
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
                assert_eq!(of(at(name)), GitTracking::AsItIs, "{version} {name}");
            }
            // Only the intention to add it is there.
            let added = if version == "3" { GitTracking::Listed } else { GitTracking::No };
            assert_eq!(of(at("conf/.env.local")), added, "{version}");
            assert_eq!(of(at("none")), GitTracking::No, "{version}");
            // Changed since: what git knows is not what stands there.
            fs::write(at("conf/.env"), "other").expect("written");
            assert_eq!(of(at("conf/.env")), GitTracking::Listed, "{version}");
            // A copy of the tree, or another file with the same content, is what git has.
            fs::remove_file(at("conf/.env")).and_then(|()| fs::write(at("conf/.env"), "text")).expect("written");
            assert_eq!(of(at("conf/.env")), GitTracking::AsItIs, "{version}");
        }
    }

    #[test]
    fn an_entry_that_was_made_for_another_file_counts_for_nothing() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        git(tree.path(), &["init", "-q"]);
        fs::write(at(".env"), "KEY=1").expect("written");
        // What a command sees in its place.
        fs::rename(at(".env"), at("away")).expect("renamed");
        fs::write(at(".env"), "").expect("written");
        git(tree.path(), &["add", "-f", ".env"]);
        fs::rename(at("away"), at(".env")).expect("renamed back");
        assert_eq!(of(at(".env")), GitTracking::Listed);
        fs::write(at(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").expect("written");
        assert_eq!(of(at(".env")), GitTracking::No);
    }
}
