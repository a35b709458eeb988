//! The repository on disk: where it is, which files belong to it, and what git says of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The work tree this command was started for.
pub struct Repo {
    root: PathBuf,
}

impl Repo {
    /// Finds the root: the parent of `xtask` when started by cargo, else the work tree of the current directory.
    pub fn find() -> Result<Self> {
        let by_cargo = std::env::var_os("CARGO_MANIFEST_DIR")
            .map(PathBuf::from)
            .and_then(|xtask| xtask.parent().map(Path::to_path_buf));
        let root = match by_cargo {
            Some(root) => root,
            None => {
                let top = process::output(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
                PathBuf::from(top.trim_end())
            }
        };
        let root =
            root.canonicalize().with_context(|| format!("the repository root {} cannot be read", root.display()))?;
        Ok(Self { root })
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A cargo command that runs at the root, with the cargo that started this program.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(process::cargo());
        command.current_dir(&self.root);
        command
    }

    /// A git command that runs at the root.
    pub fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.root);
        command
    }

    /// Every file that is tracked or would be added by `git add --all`, relative to the root, sorted. New files count,
    /// so that a check does not pass only because a file was not added yet.
    pub fn files(&self) -> Result<Vec<String>> {
        let listed =
            process::output(self.git().args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|name| !name.is_empty())
            // A file deleted but not yet staged is still listed.
            .filter(|name| self.path(name).symlink_metadata().is_ok())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    pub fn status(&self) -> Result<String> {
        process::output(self.git().args(["status", "--porcelain"]))
    }
}
