//! Where the commands of a line run: what its text says of their folders, looked up in the file system.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis_command::{Folder, PlacedCommand};
use portcullis_sandbox::{self as sandbox, Kind, MountTable};

use super::program::lexical;
use super::project_script;

/// Where a line starts, and what its folders are seen in.
pub(super) struct LineFolders<'a> {
    pub(super) mounts: &'a MountTable,
    /// The canonical virtual path.
    pub(super) start: &'a str,
    /// No variable and no shell makes `cd` mean something else.
    pub(super) settled: bool,
}

impl LineFolders<'_> {
    /// The canonical virtual path of a folder; `None` if it is not known before the line runs which one that is.
    pub(super) fn of(&self, folder: &Folder) -> Option<String> {
        match folder {
            Folder::Start => Some(self.start.to_owned()),
            Folder::At(steps) => self.followed(steps).filter(|_| self.settled),
            Folder::Elsewhere | Folder::Unknown => None,
        }
    }

    /// Follows each step. A shell takes `..` for a name to cut off and the kernel for the folder above, so a folder that
    /// the two of them do not agree about is not known.
    fn followed(&self, steps: &[String]) -> Option<String> {
        let (mut by_text, mut by_links) = (self.start.to_owned(), self.start.to_owned());
        for step in steps {
            by_links = self.folder(&joined(&by_links, step))?;
            by_text = lexical(Path::new(&joined(&by_text, step))).to_str()?.to_owned();
            if by_text != by_links && self.folder(&by_text)? != by_links {
                return None;
            }
        }
        Some(by_links)
    }

    /// The canonical path of a folder that is there.
    pub(super) fn folder(&self, path: &str) -> Option<String> {
        let found = self.mounts.resolve(path).ok().filter(|found| found.kind() == Some(Kind::Directory))?;
        Some(found.path().as_str().to_owned())
    }

    /// The canonical path of a file that is there, and what tells it from another.
    pub(super) fn file(&self, path: &str) -> Option<(String, String)> {
        let found = self.mounts.resolve(path).ok().filter(|found| found.kind() == Some(Kind::File))?;
        Some((found.path().as_str().to_owned(), sandbox::identity(&found).ok()?))
    }

    /// The folders that commands of a line change into, by their steps as they are written, each where it leads.
    pub(super) fn entered(&self, placed: &[PlacedCommand]) -> BTreeMap<String, Option<String>> {
        let entered = placed.iter().filter_map(|command| match &command.folder {
            Folder::At(steps) => Some((written(steps), self.of(&command.folder))),
            Folder::Start | Folder::Elsewhere | Folder::Unknown => None,
        });
        entered.collect()
    }

    /// Programs, as they are written, of which it is not known before the line runs which file they are or which script of
    /// a project they run.
    pub(super) fn unknown<'c>(&self, placed: &'c [PlacedCommand]) -> Vec<&'c str> {
        let mut out: Vec<&str> = Vec::new();
        for PlacedCommand { argv, folder } in placed {
            let Some(program) = argv.first().map(String::as_str).filter(|program| !out.contains(program)) else {
                continue;
            };
            let found_there = is_relative(program) || project_script::runs_scripts(argv);
            if found_there && *folder != Folder::Elsewhere && self.of(folder).is_none() {
                out.push(program);
            }
        }
        out
    }
}

/// A program that is found from the folder it is run in.
pub(crate) fn is_relative(program: &str) -> bool {
    program.contains('/') && !program.starts_with('/') && !portcullis_command::is_assignment(program)
}

/// A path as it is seen from a folder.
pub(super) fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Steps as one path.
pub(super) fn written(steps: &[String]) -> String {
    steps.iter().fold(String::new(), |path, step| if path.is_empty() { step.clone() } else { joined(&path, step) })
}
