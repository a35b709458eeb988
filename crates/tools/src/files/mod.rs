//! The file tools (agent-runtime 7.7): what they share.

pub(crate) mod class;
mod edit;
pub(crate) mod glob;
mod grep;
pub(crate) mod hard_links;
pub(crate) mod ignored;
mod own_writes;
mod read;
mod tracked;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Code, Effect, EffectSet, Reason, Risk, RiskSet, SideEffect, SideEffects};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Caller, Concurrency, DefaultPolicy, Precondition, Resolved, Resource, Semantics,
    Tool, ToolFailure, ToolName,
};
use portcullis_event::fold::Baseline;
use portcullis_pipeline::{HeldSessions, PathRules};
use portcullis_sandbox::{self as sandbox, FileError, Kind, MountTable, TreeOwner};

pub(crate) use own_writes::OwnWrites;

use crate::hand::Hand;
use crate::profile::default_policy;
use crate::{Profile, tool_name};

/// How much of a file must have been read before it is changed (setting `baseline.coverage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoverageRule {
    /// `edit`: the lines it replaces; `write`: the whole file.
    #[default]
    Region,
    /// Something of it, at its present content.
    Any,
    /// The whole file, for both.
    Full,
}

/// What the file tools are made of. Their authority is what is in here and nothing else.
#[derive(Clone)]
pub struct FileTools {
    /// What can be reached.
    pub mounts: Arc<MountTable>,
    /// What each session was shown.
    pub held_sessions: HeldSessions,
    /// How much must have been shown.
    pub coverage: CoverageRule,
    /// What the rules say of files that a search comes upon.
    pub rules: PathRules,
    /// What holds where no rule speaks.
    pub profile: Profile,
    /// The hand of the same workspace. It knows which files run later because a setting of git or a link leads to them.
    pub hand: Option<Hand>,
}

/// `read`, `write`, `edit`, `glob` and `grep` over these mounts.
///
/// # Errors
/// Never for the tools as they are written: a tool that contradicts itself is a defect of this crate.
pub fn file_tools(parts: FileTools) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let parts = Arc::new(parts);
    Ok(BTreeMap::from([
        (tool_name("read"), read::tool(Arc::clone(&parts))?),
        (tool_name("write"), write::tool(Arc::clone(&parts))?),
        (tool_name("edit"), edit::tool(Arc::clone(&parts))?),
        (tool_name("glob"), glob::tool(Arc::clone(&parts))?),
        (tool_name("grep"), grep::tool(parts)?),
    ]))
}

/// What `write` does, with what is there kept in front.
pub(crate) fn append_tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    write::appending(parts)
}

impl FileTools {
    /// What a typed path names, canonically, and after it the names of links that led there: a rule
    /// on one of those counts too. Metadata only; a place where nothing stands is one too, so that a
    /// denied path does not tell whether it exists.
    fn name(&self, raw: &str) -> Result<Resolved, Precondition> {
        self.named(raw, "/file_path")
    }

    /// As [`Self::name`], for a path that stands in `field` of the input.
    pub(crate) fn named(&self, raw: &str, field: &str) -> Result<Resolved, Precondition> {
        let place = self.mounts.resolve(raw.trim()).map_err(|error| match error {
            FileError::InvalidPath { .. } => Precondition::schema(field, error.to_string()),
            other => precondition(other),
        })?;
        let canonical = place.path().as_str();
        Ok(Resolved {
            resources: std::iter::once(place.path())
                .chain(place.also_named())
                .map(|name| Resource::path(name.as_str(), raw))
                .collect(),
            keys: vec![format!("fs:{canonical}")],
            cwd: None,
        })
    }

    /// The place that was decided on. If a link now leads elsewhere, it is not that place any more.
    pub(crate) fn place(&self, resolved: &Resolved) -> Result<sandbox::ResolvedPlace, FileError> {
        let canonical = resolved.resources.first().map_or("", |resource| resource.canonical.as_str());
        let place = self.mounts.resolve(canonical)?;
        if place.path().as_str() == canonical {
            return Ok(place);
        }
        Err(FileError::PathChanged { path: place.path().clone() })
    }

    fn baseline(&self, caller: &Caller, place: &sandbox::ResolvedPlace) -> Option<Baseline> {
        self.held_sessions.baseline(caller.session_id, place.path().as_str())
    }

    /// What a tool that changes files is. In a person's own tree it asks unless a rule or grant allows;
    /// one such tree among the writable mounts is enough, for the default is one per tool.
    pub(crate) fn mutating(&self) -> Semantics {
        let mut writable = self.mounts.mounts().filter(|mount| mount.access() == sandbox::Access::ReadWrite);
        let own = writable.all(|mount| mount.owner() == TreeOwner::SessionOwn);
        Semantics {
            effects: EffectSet::from([Effect::ResourceWrite, Effect::SandboxExecute]),
            concurrency: Concurrency::Keyed,
            reversible: true,
            default_policy: if own { DefaultPolicy::Allow } else { default_policy(self.profile, DefaultPolicy::Ask) },
            ..Semantics::mutating()
        }
    }
}

/// An access to what the call names: one place under all its names, of which the strictest decides.
pub(crate) fn access(action: &str, risk: Risk, effect: Effect, resolved: &Resolved) -> Vec<AccessRequest> {
    let mut names = resolved.resources.iter().cloned();
    let Some(canonical) = names.next() else { return Vec::new() };
    let request = AccessRequest::new(Action::new(action), canonical, RiskSet::from([risk]));
    let mut request = names.fold(request, AccessRequest::also);
    request.effects = EffectSet::from([effect, Effect::SandboxExecute]);
    if risk == Risk::Write {
        request = class::with_places(request);
    }
    vec![request.reversible()]
}

/// Only a file can be read or changed.
fn require_file(place: &sandbox::ResolvedPlace) -> Result<(), FileError> {
    let path = place.path().clone();
    match place.kind() {
        Some(Kind::File) => Ok(()),
        Some(found) => Err(FileError::WrongKind { path, wanted: Kind::File, found }),
        None => Err(FileError::NotFound { path }),
    }
}

/// As a model and a person see the place.
pub(crate) fn shown(place: &sandbox::ResolvedPlace) -> &str {
    place.path().display_relative()
}

/// A file error found while nothing has started.
pub(crate) fn precondition(error: FileError) -> Precondition {
    let text = error.to_string();
    match (&error, error.reason()) {
        (_, Some(reason)) => Precondition::failed(reason, text),
        (FileError::InvalidPath { .. }, _) => Precondition::schema("/file_path", text),
        (FileError::StaleBaseline { .. } | FileError::PathChanged { .. }, _) => Precondition::stale(text),
        // Too large to be delivered is not read, whatever was tried.
        (FileError::TooLarge { .. }, _) => Precondition::failed(Reason::FileNotRead, text),
        // What cannot be looked at is not there for this session.
        _ => Precondition::failed(Reason::NotFound, text),
    }
}

/// A file error of an executor.
pub(crate) fn failure(error: FileError) -> ToolFailure {
    match &error {
        FileError::TooLarge { .. } => ToolFailure::new("file_too_large", error.to_string()),
        FileError::Torn { path, .. } => {
            let target = path.display_relative().to_owned();
            let done =
                SideEffect { kind: "file_modified".to_owned(), target, before: None, after: None, reversible: false };
            ToolFailure::partial(SideEffects::occurred(vec![done]), error.to_string())
        }
        FileError::Io { .. } => ToolFailure::new("io_error", error.to_string()).retryable(true),
        other if other.code() == Code::SchemaInvalid => ToolFailure::new("invalid_path", error.to_string()),
        _ => ToolFailure::precondition(precondition(error)),
    }
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
