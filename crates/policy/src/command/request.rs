//! From an analysed line to what rules decide about.

use std::collections::BTreeSet;

use portcullis_base::{CommandFacts, OtherForm, Risk, RiskSet};
use portcullis_contract::{AccessRequest, Action, Resource, ResourceKind};

use super::analyse::{Analysis, Redirected, forms};
use super::{marks, place};

impl Analysis {
    /// With what the file system tells of the programs: `names` gives, for a program as it is written, the names of the
    /// links and of the file that it leads to. Every command that the line comes down to is looked at.
    #[must_use]
    pub fn linked(mut self, names: &dyn Fn(&str) -> Vec<String>) -> Self {
        let with_names = |(at, argv): (usize, &Vec<String>)| {
            let written = marks::put_on(argv, self.open.get(at).map_or(&[], Vec::as_slice));
            let forms = forms(&written);
            let mut out = Vec::new();
            for form in std::iter::once(&written).chain(&forms) {
                let Some((program, rest)) = form.split_first().filter(|_| !marks::hides_program(form)) else {
                    continue;
                };
                for name in names(program) {
                    let (words, open) = marks::taken_off([&[name], rest].concat());
                    let other = OtherForm { words, open };
                    if !out.contains(&other) {
                        out.push(other);
                    }
                }
            }
            out
        };
        self.linked = self.commands.iter().enumerate().map(with_names).collect();
        self
    }

    /// What a tool that runs the line plans: under `action` each simple command by its words, and what
    /// could not be told; then each file that a redirection names, as a `write` or a `read`.
    ///
    /// An allow must hold for every part. `resolve` gives the resource of a path that is seen from the
    /// working directory, with its links resolved; [`lexical`] does it by the text alone.
    #[must_use]
    pub fn requests(&self, action: &Action, line: &str, resolve: &dyn Fn(&str) -> Resource) -> Vec<AccessRequest> {
        let commands = self.commands.iter().enumerate().map(|(at, argv)| Resource {
            fed: self.fed.contains(argv),
            command: CommandFacts {
                open: self.open.get(at).cloned().unwrap_or_default(),
                linked: self.linked.get(at).cloned().unwrap_or_default(),
                hides: false,
            },
            ..Resource::argv(argv, argv.join(" "))
        });
        let opaque = (!self.opaque.is_empty() || self.commands.is_empty()).then(|| Resource {
            command: CommandFacts { hides: self.hides, ..CommandFacts::default() },
            ..Resource::opaque(line)
        });
        let mut parts = commands.chain(opaque);
        let mut out = Vec::new();
        if let Some(first) = parts.next() {
            let request = AccessRequest::new(action.clone(), first, RiskSet::from([Risk::Execute]));
            let request = parts.fold(request, AccessRequest::also);
            let request = self.opaque.iter().fold(request, |request, why| request.fact("not_analysed", why));
            let programs: BTreeSet<&str> =
                self.fed.iter().filter_map(|argv| argv.first()).map(String::as_str).collect();
            let fed = |request: AccessRequest, name| {
                request.fact("input", format!("`{name}` takes input that no rule can name: an answer holds once"))
            };
            out.push(programs.into_iter().fold(request, fed));
        }
        for Redirected { path, writes } in &self.redirections {
            let resource = if self.moves() && !path.starts_with('/') {
                // Where it will be is known only when the line runs.
                Resource::opaque(path)
            } else {
                resolve(path)
            };
            let (action, risk) = if *writes { ("write", Risk::Write) } else { ("read", Risk::Read) };
            out.push(AccessRequest::new(Action::new(action), resource, RiskSet::from([risk])));
        }
        out
    }

    /// Whether a command of the line may change the working directory of those after it.
    fn moves(&self) -> bool {
        let moves = |word: &String| matches!(word.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | ".");
        !self.opaque.is_empty() || self.commands.iter().flatten().any(moves)
    }
}

/// Resolves paths from `cwd` by their text; what climbs is opaque, for only the tree knows where it ends.
pub fn lexical(cwd: &str) -> impl Fn(&str) -> Resource + '_ {
    move |path| {
        if path.is_empty() || path.split('/').any(|name| name == "..") {
            return Resource::opaque(path);
        }
        let canonical = place::join(cwd, path);
        let inside = place::within(&canonical, crate::WORKSPACE);
        Resource { inside, ..Resource::bare(ResourceKind::Path, canonical, path.to_owned()) }
    }
}
