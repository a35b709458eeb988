//! The read-only hand (agent-runtime 8.7): runs command lines that were understood whole and can only read, argv by
//! argv, never by a shell. One idea a file: `list` the line, `pipeline` its programs, `builtins` what we do ourselves,
//! `operands` the words that are paths, `globs` patterns, `result` what the end means, `bash` the tool.
//!
//! A line goes two ways: [`ReadHand::line`] looks at every place it names and opens nothing, so that rules can decide;
//! [`ReadHand::run`] runs what was decided on, and nothing else.

mod bash;
mod builtins;
mod globs;
mod list;
mod operands;
mod pipeline;
mod result;

use portcullis_base::{Effect, EffectSet, Reason, Risk, RiskSet};
use portcullis_command::ReadPlan;
use portcullis_contract::{AccessRequest, Action, Caller, Precondition, Resource};
use portcullis_pipeline::ShellBook;
use portcullis_policy::plan_access;
use portcullis_sandbox::{Kind, VirtualPath};

pub use bash::read_tools;
pub(crate) use bash::{MAX_MS, read_with_env};
pub(crate) use globs::matched;
pub(crate) use list::NAMES as ENV_NAMES;
pub use result::ReadRan;

use crate::files::FileTools;
use crate::hand::Hand;
use operands::LinePlaces;

/// Runs lines that only read.
#[derive(Clone)]
pub struct ReadHand {
    /// What starts programs.
    pub hand: Hand,
    /// Where places are looked up.
    pub files: FileTools,
    /// The session's folder and environment.
    pub book: ShellBook,
}

/// A line whose places are known.
#[derive(Debug, Clone)]
pub struct ReadLine {
    plan: ReadPlan,
    cwd: VirtualPath,
    resources: Vec<Resource>,
}

impl ReadLine {
    /// Of what was decided on before: only these places may be touched.
    #[must_use]
    pub fn decided(plan: ReadPlan, cwd: VirtualPath, resources: Vec<Resource>) -> Self {
        Self { plan, cwd, resources }
    }

    /// What would run.
    #[must_use]
    pub fn plan(&self) -> &ReadPlan {
        &self.plan
    }

    /// The folder it begins in.
    #[must_use]
    pub fn cwd(&self) -> &VirtualPath {
        &self.cwd
    }

    /// Every place that it may look at, under every name that leads there.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// What rules decide about: each stage by its words under `action`, and each place as a `read`.
    #[must_use]
    pub fn requests(&self, action: &Action) -> Vec<AccessRequest> {
        let mut requests = plan_access(&self.plan, action, self.cwd.as_str());
        requests.truncate(1);
        let mut places = self.resources.iter().cloned();
        if let Some(first) = places.next() {
            let read = AccessRequest::new(Action::new("read"), first, RiskSet::from([Risk::Read]));
            requests.push(places.fold(read, AccessRequest::also).reversible());
        }
        for request in &mut requests {
            request.effects = EffectSet::from([Effect::ResourceRead, Effect::SandboxExecute]);
        }
        requests
    }
}

impl ReadHand {
    /// The folder that a call runs in: the one it names, else the session's.
    ///
    /// # Errors
    /// If it is no folder of the mounts.
    pub fn cwd(&self, caller: &Caller, named: Option<&str>) -> Result<VirtualPath, Precondition> {
        let named = named.map(str::trim).filter(|named| !named.is_empty()).map(str::to_owned);
        let text = named.or_else(|| self.book.cwd(caller)).unwrap_or_else(|| "/workspace".to_owned());
        let invalid = |why: &dyn std::fmt::Display| {
            Precondition::failed(Reason::CwdInvalid, format!("the working directory cannot be used: {why}"))
        };
        let place = self.files.mounts.resolve(&text).map_err(|error| invalid(&error))?;
        match place.kind() {
            Some(Kind::Directory) => Ok(place.path().clone()),
            _ => Err(invalid(&format!("`{text}` is no directory; name one with cwd, or set one with shell_set_cwd"))),
        }
    }

    /// Looks at every place that a plan names, seen from `cwd`. Nothing is opened, and nothing runs.
    ///
    /// # Errors
    /// If a word leads outside the mounts, is no file that can be read, or is a pattern without an answer.
    pub fn line(&self, caller: &Caller, plan: ReadPlan, cwd: VirtualPath) -> Result<ReadLine, Precondition> {
        self.hand.warm();
        let LinePlaces { mut resources, opened, linked } = operands::named(&self.files.mounts, &plan, &cwd)?;
        // What only sounds like a secret, or is one by its content, is asked about as `read` asks.
        for resource in resources.iter_mut().filter(|resource| opened.contains(&resource.canonical)) {
            resource.class = self.files.secret_at(&resource.canonical);
        }
        if !linked.is_empty() {
            let denied = self.files.denied_with_other_names(caller, &["bash", "read"]).map_err(|error| {
                let text = format!(
                    "`{}` has other names, and whether a rule denies one of them cannot be found out: {error}",
                    linked.first().map_or("", |(_, raw)| raw.as_str())
                );
                Precondition::failed(Reason::NotInScope, text)
            })?;
            for (object, raw) in &linked {
                let names = denied.iter().filter(|denied| denied.object == *object);
                resources.extend(names.map(|denied| Resource::path(denied.path.clone(), raw.clone())));
            }
        }
        Ok(ReadLine { plan, cwd, resources })
    }
}

/// Every place that a plan looks at, seen from `cwd`, with what it is. `None` if a word leads outside, names what is not there
/// yet, or a file that has other names.
pub(crate) fn looked_at(files: &FileTools, plan: &ReadPlan, cwd: &VirtualPath) -> Option<Vec<Resource>> {
    let there = |word: &str| {
        let path = if word.starts_with('/') { word.to_owned() } else { format!("{}/{word}", cwd.as_str()) };
        files.mounts.resolve(&path).is_ok_and(|place| matches!(place.kind(), Some(Kind::File | Kind::Directory)))
    };
    let mut paths = plan.stages().flat_map(|stage| stage.args()).filter(|arg| arg.is_path());
    if !paths.all(|arg| arg.word().as_literal().is_some_and(there)) {
        return None;
    }
    let LinePlaces { mut resources, opened, linked } = operands::named(&files.mounts, plan, cwd).ok()?;
    for resource in resources.iter_mut().filter(|resource| opened.contains(&resource.canonical)) {
        resource.class = files.secret_at(&resource.canonical);
    }
    linked.is_empty().then_some(resources)
}

/// Whether every program of a plan is on this machine.
pub(crate) fn installed(plan: &ReadPlan) -> Result<(), Precondition> {
    let stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    let mut programs = stages.filter(|stage| stage.builtin().is_none()).map(|stage| stage.program());
    match programs.find(|name| builtins::program(name).is_none()) {
        Some(name) => Err(not_installed(name)),
        None => Ok(()),
    }
}

fn not_installed(name: &str) -> Precondition {
    let text = format!(
        "the program `{name}` is not installed on this machine (looked in {}); use another one, or install it",
        builtins::TRUSTED.join(" and ")
    );
    Precondition::failed(Reason::NotFound, text)
}
