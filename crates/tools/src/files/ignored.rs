//! Whether git ignores a file: what it ignores, `git add -A` does not stage.
//!
//! Only ignore files of the tree and of its repository count. A person's own (`core.excludesFile`) are not there for a command,
//! nor for the next person who works in the tree.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use portcullis_sandbox::read_small;

/// Bytes of an ignore file that is read. A larger one ignores nothing for us.
const IGNORE_MAX: u64 = 1 << 20;

/// Ignore files, each read once.
#[derive(Default)]
pub(crate) struct IgnoreFiles {
    read: HashMap<PathBuf, Gitignore>,
}

impl IgnoreFiles {
    /// Whether git ignores what stands at `place`, by host paths. Without a repository around it, the ignore files of `top`
    /// and below count: a repository that is made there has them.
    pub(crate) fn cover(&mut self, place: &Path, top: &Path) -> bool {
        let repository = place.ancestors().skip(1).find(|folder| folder.join(".git").symlink_metadata().is_ok());
        let Ok(beneath) = place.strip_prefix(repository.unwrap_or(top)) else { return false };
        let top = repository.unwrap_or(top);
        let mut folders = vec![top.to_owned()];
        for name in beneath.iter() {
            let inner = folders.last().map_or_else(PathBuf::new, |folder| folder.join(name));
            // What lies in an ignored folder cannot be taken out of it again.
            if self.matches(&inner, &folders, repository.is_some()) {
                return true;
            }
            folders.push(inner);
        }
        false
    }

    /// The nearest ignore file that says something decides; the repository's own list comes last.
    fn matches(&mut self, place: &Path, around: &[PathBuf], repository: bool) -> bool {
        let is_folder = place.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let exclude = around.first().filter(|_| repository).map(|top| (top, top.join(".git/info/exclude")));
        let files = around.iter().rev().map(|folder| (folder, folder.join(".gitignore"))).chain(exclude);
        for (folder, file) in files {
            match self.file(folder, file).matched(place, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn file(&mut self, folder: &Path, file: PathBuf) -> &Gitignore {
        self.read.entry(file).or_insert_with_key(|file| {
            let text = read_small(file, IGNORE_MAX).unwrap_or_default();
            let mut patterns = GitignoreBuilder::new(folder);
            for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
                // A pattern that is none ignores nothing, as for git.
                let _ = patterns.add_line(None, line);
            }
            patterns.build().unwrap_or_else(|_| Gitignore::empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_ignored_if_git_says_so() {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        let git = |words: &[&str]| {
            Command::new("git").current_dir(tree.path()).args(words).env("HOME", "/nowhere").output().expect("git runs")
        };
        assert!(git(&["init", "-q"]).status.success());
        for (name, text) in [
            (
                ".gitignore",
                "\u{feff}*.local\r\n/top.env\nbuild/\nout\n!out/keep.env\nx/**/deep.env\n# .env\n\\#a.env\n",
            ),
            ("a/.gitignore", "!.env.local\n.env\n"),
            ("b/.gitignore", "*\n"),
            (".git/info/exclude", "listed.env\n!no.local\n"),
        ] {
            fs::create_dir_all(at(name).parent().expect("a folder"))
                .and_then(|()| fs::write(at(name), text))
                .expect("written");
        }
        std::os::unix::fs::symlink("../b/.gitignore", {
            fs::create_dir_all(at("linked")).expect("a folder");
            at("linked/.gitignore")
        })
        .expect("a link");
        let mut seen = [0, 0];
        for name in [
            ".env",
            ".env.local",
            "top.env",
            "a/top.env",
            "build/.env",
            "a/build/.env",
            "out/keep.env",
            "out/.env",
            "x/deep.env",
            "x/y/z/deep.env",
            "a/.env",
            "a/.env.local",
            "a/c/.env.local",
            "b/.env",
            "b/c/.env",
            "listed.env",
            "a/listed.env",
            "no.local",
            "#a.env",
            "linked/.env",
            "c/.env",
        ] {
            fs::create_dir_all(at(name).parent().expect("a folder"))
                .and_then(|()| fs::write(at(name), "x"))
                .expect("written");
            let said = git(&["check-ignore", "-q", name]).status.success();
            assert_eq!(IgnoreFiles::default().cover(&at(name), tree.path()), said, "{name}");
            seen[usize::from(said)] += 1;
        }
        assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
        // Without a repository only the tree's own files tell.
        fs::remove_dir_all(at(".git")).expect("removed");
        assert!(IgnoreFiles::default().cover(&at("build/.env"), tree.path()));
        assert!(!IgnoreFiles::default().cover(&at("listed.env"), tree.path()));
    }
}
