//! A copy of the work tree in which mutants are tried, so that a person's tree is never changed.
//!
//! Only files that differ are written: their times change and nothing else's, so each build is incremental.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::mutant::Mutant;
use crate::process;
use crate::repo::Repo;

pub struct Scratch {
    /// Holds `tree`, `target` and the logs.
    home: PathBuf,
}

impl Scratch {
    pub fn open(target: &Path) -> Result<Self> {
        let home = target.join("mutants");
        fs::create_dir_all(home.join("tree")).with_context(|| format!("{} cannot be made", home.display()))?;
        let home = home.canonicalize()?;
        Ok(Self { home })
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.log"))
    }

    /// A cargo command inside the copy, with a target directory of its own that is kept between runs.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(process::cargo());
        command.current_dir(self.tree()).env("CARGO_TARGET_DIR", self.home.join("target"));
        // Every mutant is a build: incremental whatever the environment says, and without lines for a debugger.
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }

    /// Makes the copy equal to the repository again.
    pub fn restore(&self, repo: &Repo) -> Result<()> {
        let files: BTreeSet<String> = repo.files()?.into_iter().collect();
        for file in self.differing(repo, &files)? {
            copy(&repo.path(&file), &self.tree().join(&file)).with_context(|| format!("{file} cannot be copied"))?;
        }
        self.remove_others(&self.tree(), &files)
    }

    /// Makes the wrong change in the copy.
    pub fn apply(&self, mutant: &Mutant) -> Result<()> {
        let path = |file: &str| self.tree().join(file);
        let changed = mutant.changed(|file| {
            fs::read_to_string(path(file)).with_context(|| format!("{file} cannot be read in the copy"))
        })?;
        for (file, text) in changed {
            fs::write(path(&file), text).with_context(|| format!("{file} cannot be written in the copy"))?;
        }
        Ok(())
    }

    fn tree(&self) -> PathBuf {
        self.home.join("tree")
    }

    fn differing(&self, repo: &Repo, files: &BTreeSet<String>) -> Result<Vec<String>> {
        let mut differing = Vec::new();
        for file in files {
            if content(&repo.path(file))? != content(&self.tree().join(file))? {
                differing.push(file.clone());
            }
        }
        Ok(differing)
    }

    fn remove_others(&self, folder: &Path, files: &BTreeSet<String>) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.remove_others(&path, files)?;
                continue;
            }
            let relative = path.strip_prefix(self.tree())?;
            if !relative.to_str().is_some_and(|name| files.contains(name)) {
                fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
            }
        }
        Ok(())
    }
}

/// What a file holds, or where a link points; nothing where there is no file.
fn content(path: &Path) -> Result<Option<Vec<u8>>> {
    let Ok(data) = path.symlink_metadata() else {
        return Ok(None);
    };
    if data.is_symlink() {
        let to = fs::read_link(path)?;
        return Ok(Some(to.into_os_string().into_encoded_bytes()));
    }
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(bytes))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if to.symlink_metadata().is_ok() {
        fs::remove_file(to)?;
    }
    if from.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else {
        fs::copy(from, to)?;
    }
    Ok(())
}
