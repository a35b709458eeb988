//! From a command line to the accesses that rules decide about.

use std::collections::BTreeSet;

use portcullis_base::{CommandFacts, Risk, RiskSet};
use portcullis_command::{Analysis, ReadPlan, RedirectedFile, path_text};
use portcullis_contract::{AccessRequest, Action, Resource, ResourceKind};

use crate::WORKSPACE;

/// What a tool that runs the line plans: under `action` each simple command by its words, and what
/// could not be told; then each file that a redirection or `tee` names, as a `write` or a `read`.
///
/// An allow must hold for every part. `resolve` gives the resource of a path that is seen from the
/// working directory, with its links resolved; [`lexical`] does it by the text alone.
#[must_use]
pub fn line_access(
    analysis: &Analysis,
    action: &Action,
    line: &str,
    resolve: &dyn Fn(&str) -> Resource,
) -> Vec<AccessRequest> {
    let commands = analysis.commands.iter().enumerate().map(|(at, argv)| Resource {
        fed: analysis.fed.contains(argv),
        command: CommandFacts {
            open: analysis.open.get(at).cloned().unwrap_or_default(),
            linked: analysis.linked.get(at).cloned().unwrap_or_default(),
            hides: false,
            input: analysis.inputs.iter().filter(|(words, _)| words == argv).map(|(_, text)| text.clone()).collect(),
        },
        ..Resource::argv(argv, argv.join(" "))
    });
    let opaque = (!analysis.opaque.is_empty() || analysis.commands.is_empty()).then(|| Resource {
        command: CommandFacts { hides: analysis.hides, ..CommandFacts::default() },
        ..Resource::opaque(line)
    });
    let mut parts = commands.chain(opaque);
    let mut out = Vec::new();
    if let Some(first) = parts.next() {
        let request = AccessRequest::new(action.clone(), first, RiskSet::from([Risk::Execute]));
        let request = parts.fold(request, AccessRequest::also);
        let request = analysis.opaque.iter().fold(request, |request, why| request.fact("not_analysed", why));
        let programs: BTreeSet<&str> =
            analysis.fed.iter().filter_map(|argv| argv.first()).map(String::as_str).collect();
        let fed = |request: AccessRequest, name| {
            request.fact("input", format!("`{name}` takes input that no rule can name: an answer holds once"))
        };
        out.push(programs.into_iter().fold(request, fed));
    }
    // What `tee` writes is written as behind `>`.
    let teed = analysis.teed().into_iter().map(|path| RedirectedFile { path, writes: true });
    let teed = teed.filter(|file| !analysis.redirections.contains(file)).collect::<Vec<_>>();
    for RedirectedFile { path, writes } in analysis.redirections.iter().chain(&teed) {
        let resource = if analysis.moves() && !path.starts_with('/') {
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

/// What rules decide about: each stage by its words, under `action`, and each place it names, as a
/// `read`. All of it only reads.
#[must_use]
pub fn plan_access(plan: &ReadPlan, action: &Action, cwd: &str) -> Vec<AccessRequest> {
    let mut words = plan.stages().map(|stage| {
        let argv = stage.argv();
        Resource { inside: true, ..Resource::argv(&argv, argv.join(" ")) }
    });
    let risk = || RiskSet::from([Risk::Read]);
    let mut out = Vec::new();
    if let Some(first) = words.next() {
        out.push(words.fold(AccessRequest::new(action.clone(), first, risk()), AccessRequest::also).reversible());
    }
    let mut places = plan.reads(cwd).into_iter().filter(|named| !named.pattern).map(|named| Resource {
        inside: path_text::within(&named.place, WORKSPACE),
        ..Resource::bare(ResourceKind::Path, named.place, named.raw)
    });
    if let Some(first) = places.next() {
        let read = AccessRequest::new(Action::new("read"), first, risk());
        out.push(places.fold(read, AccessRequest::also).reversible());
    }
    out
}

/// Resolves paths from `cwd` by their text; what climbs is opaque, for only the tree knows where it ends.
pub fn lexical(cwd: &str) -> impl Fn(&str) -> Resource + '_ {
    move |path| {
        if path.is_empty() || path.split('/').any(|name| name == "..") {
            return Resource::opaque(path);
        }
        let canonical = path_text::join(cwd, path);
        let inside = path_text::within(&canonical, WORKSPACE);
        Resource { inside, ..Resource::bare(ResourceKind::Path, canonical, path.to_owned()) }
    }
}
