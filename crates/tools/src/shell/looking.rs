//! Which commands of a line only look, and at what, so that they need no rule of their own beside commands that are allowed
//! (tool-contract 13.3). Whatever is not certain is left to the rules about words.

use std::path::{Path, PathBuf};

use portcullis_command::{self as command, Analysis, ReadPlan};
use portcullis_contract::{AccessRequest, Resource};
use portcullis_sandbox::VirtualPath;

use super::ShellTools;
use super::places::{LineFolders, joined};
use crate::command::looked_at;

/// A file that takes everything.
const NOTHING: &str = "/dev/null";

impl ShellTools {
    /// The accesses of a line, with the places that those of its commands look at which do nothing else.
    pub(super) fn with_looking(
        &self,
        mut requests: Vec<AccessRequest>,
        (line, analysis): (&str, &Analysis),
        places: &LineFolders<'_>,
    ) -> Vec<AccessRequest> {
        let plain = places.settled && analysis.opaque.is_empty() && !analysis.hides && analysis.commands.len() > 1;
        let writes = analysis.redirections.iter().any(|file| file.path != NOTHING);
        // A word behind a function, an alias or another `PATH` may stand for anything.
        if !plain || writes || command::leaves(line).is_some() || requests.is_empty() {
            return requests;
        }
        let mut at = 0;
        let first = requests.remove(0).mapped(|resource| {
            let looks_at = self.looks_at(at, analysis, places);
            at += 1;
            Resource { looks_at, ..resource }
        });
        requests.insert(0, first);
        requests
    }

    /// What one of the commands looks at, if that is all it does.
    fn looks_at(&self, at: usize, analysis: &Analysis, places: &LineFolders<'_>) -> Option<Vec<Resource>> {
        let argv = analysis.commands.get(at)?;
        let (program, words) = argv.split_first()?;
        let told = analysis.open.get(at).is_none_or(Vec::is_empty)
            && !analysis.fed.contains(argv)
            && !analysis.inputs.iter().any(|(fed, _)| fed == argv);
        let cwd = places.of(analysis.folders.get(at)?).filter(|_| told && self.is_installed(program))?;
        if program == "cd" {
            let [folder] = words else { return None };
            let is_name = !folder.is_empty() && !folder.starts_with(['-', '~']);
            let found = is_name.then(|| places.folder(&joined(&cwd, folder))).flatten()?;
            return Some(vec![Resource::path(found, folder)]);
        }
        let plan = ReadPlan::from_argv(program, words).ok()?;
        looked_at(&self.files, &plan, &VirtualPath::new(&cwd).ok()?)
    }

    /// Whether nothing in a mount, which commands can write, is found before the program of the system.
    fn is_installed(&self, program: &str) -> bool {
        let mounts: Vec<PathBuf> = self.files.mounts.mounts().filter_map(|mount| mount.host_place()).collect();
        let host = self.files.hand.as_ref().and_then(|hand| hand.settings().host.as_ref());
        let path = host.and_then(|host| host.variables.iter().find(|(name, _)| name == "PATH"));
        let folders = path.map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>()).unwrap_or_default();
        let planted = |folder: &Path| {
            let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
            !folder.is_absolute()
                || (mounts.iter().any(|mount| real.starts_with(mount) || folder.starts_with(mount))
                    && folder.join(program).symlink_metadata().is_ok())
        };
        !program.contains('/') && !folders.iter().any(|folder| planted(folder))
    }
}
