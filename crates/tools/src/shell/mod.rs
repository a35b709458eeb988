//! The shell tools that start no process (agent-runtime 7.8): what the log knows of a session's shell, and changes of
//! its folder and environment. What runs in this process comes through [`LiveShell`].

mod cargo_alias;
mod carry;
mod change;
mod describe;
mod env_input;
mod git_alias;
mod history;
mod last_output;
mod line;
mod line_input;
mod line_surroundings;
mod looking;
mod makefile;
mod named_files;
mod package_script;
mod persistent;
mod places;
mod posture;
mod program;
mod programs;
mod project_script;
mod recipe_file;
mod run;
mod script_file;
mod session_shell;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Effect, EffectSet, Reason, Risk, RiskSet, SessionId};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Content, NamedKind, Precondition, Resolved, Resource, Semantics, Tool,
    ToolContext, ToolFailure, ToolName,
};
use portcullis_pipeline::{ArtifactShelf, ShellBook, ShellError, ShellSeen};
use serde_json::Value;

pub use carry::{CarryOver, carry_over};
pub(crate) use persistent::persistent_with_env;
pub use persistent::{LeftBehind, ShellParts, Shells, persistent_tools, stock_bash};
pub use session_shell::{Change, LiveCommand, LiveShell, LiveView, NoLiveShell, ShellBusy};

use crate::files::FileTools;
use crate::hand::Hand;
use crate::tool_name;
pub(crate) use env_input::{BringsVariables, NoVariables, WithEnv};
use line_input::LineInput;
pub(crate) use named_files::{found_as, pieces};
pub(crate) use places::is_relative;
use posture::Posture;
pub(crate) use programs::is_interpreter;
pub(crate) use project_script::runs_scripts;
pub(crate) use view::StateView;

/// What the shell tools are made of.
#[derive(Clone)]
pub struct ShellTools {
    /// What the log knows.
    pub book: ShellBook,
    /// What commands wrote.
    pub shelf: ArtifactShelf,
    /// Where folders are looked up.
    pub files: FileTools,
    /// What this process runs.
    pub live: Arc<dyn LiveShell>,
}

/// `shell_describe`, `shell_history`, `shell_read_last_output`, `shell_read_command`, `shell_set_cwd`, `shell_set_env`
/// and `shell_unset_env`.
///
/// # Errors
/// Never for the tools as they are written: a tool that contradicts itself is a defect of this crate.
pub fn shell_tools(parts: ShellTools) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let parts = Arc::new(parts);
    Ok(BTreeMap::from([
        (tool_name("shell_describe"), describe::tool(Arc::clone(&parts))?),
        (tool_name("shell_history"), history::list(Arc::clone(&parts))?),
        (tool_name("shell_read_command"), history::one(Arc::clone(&parts))?),
        (tool_name("shell_read_last_output"), last_output::tool(Arc::clone(&parts))?),
        (tool_name("shell_set_cwd"), change::set_cwd(Arc::clone(&parts))?),
        (tool_name("shell_set_env"), change::set_env(Arc::clone(&parts))?),
        (tool_name("shell_unset_env"), change::unset_env(parts)?),
    ]))
}

/// `shell_run`.
///
/// # Errors
/// As [`shell_tools`].
pub fn run_tools(parts: ShellTools, hand: Hand) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    Ok(BTreeMap::from([(tool_name("shell_run"), run::tool::<NoVariables<LineInput>>(parts, hand)?)]))
}

/// The same with variables of a call.
pub(crate) fn run_with_env(parts: ShellTools, hand: Hand) -> Result<Tool, BuildError> {
    run::tool::<WithEnv<LineInput>>(parts, hand)
}

/// The folder of a shell whose folder nobody has changed.
const HOME: &str = "/workspace";

impl ShellTools {
    /// The caller's own shell as the log knows it; none if nobody ever touched it.
    pub(crate) async fn state(&self, context: &ToolContext) -> Result<Option<StateView>, ToolFailure> {
        self.look(context, None).await.map(|(_, posture)| posture.state)
    }

    /// The shell that a call may look at, and how it stands.
    async fn look(&self, context: &ToolContext, wanted: Option<&str>) -> Result<(ShellSeen, Posture), ToolFailure> {
        let wanted = session_id(wanted).map_err(ToolFailure::precondition)?;
        let seen = self.book.look(context.caller(), wanted).await.map_err(unseen)?;
        let live = if seen.own { self.live.look(seen.session) } else { None };
        let own = context.caller().session_id;
        let posture = Posture::of(&seen, live, &|tool| self.book.offers(own, tool));
        Ok((seen, posture))
    }
}

/// The session that an input names. Blank is none.
fn session_id(text: Option<&str>) -> Result<Option<SessionId>, Precondition> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = text.parse().map_err(|_| Precondition::schema("/sessionId", "session id must be sesn_ + UUIDv7"));
    parsed.map(Some)
}

/// What the tools that look are. Whose shell it is, is known only when the log is read: that is no business of rules.
fn looking() -> Semantics {
    Semantics { effects: EffectSet::from([Effect::MemoryRead, Effect::SandboxExecute]), ..Semantics::read_only() }
}

/// The one thing such a call is about.
fn about_shell(wanted: Option<&str>) -> Result<Resolved, Precondition> {
    let name = session_id(wanted)?.map_or_else(|| "shell".to_owned(), |session| session.to_string());
    Ok(Resolved { resources: vec![Resource::own(NamedKind::Shell, name)], ..Resolved::default() })
}

fn accesses(action: &str, resolved: &Resolved, risk: Risk) -> Vec<AccessRequest> {
    let own = resolved.resources.iter().cloned();
    let requests = own.map(|own| AccessRequest::new(Action::new(action), own, RiskSet::from([risk])));
    requests.map(AccessRequest::reversible).collect()
}

/// Why no shell can be started.
pub(crate) fn no_shell() -> ToolFailure {
    ToolFailure::new("no_shell", "there is neither /bin/bash nor /bin/sh on this machine; install one of them")
}

/// How a command failed, with what shells mean by their own two codes.
pub(crate) fn failed_words(code: i32) -> String {
    let meaning = match code {
        126 => ", by which a shell says that it cannot run the program",
        127 => ", by which a shell says that it found no program of that name in the sandbox",
        _ => "",
    };
    format!("the command ended with exit code {code}{meaning}")
}

/// Why the book showed nothing. The store's own words may name places on the host and stay inside.
pub(crate) fn unseen(error: ShellError) -> ToolFailure {
    match error {
        ShellError::NotInScope { .. } => {
            ToolFailure::precondition(Precondition::failed(Reason::NotInScope, error.to_string()))
        }
        ShellError::Store(_) => {
            ToolFailure::new("store_error", "the store could not be read; try again").retryable(true)
        }
    }
}

/// The document itself, as it stands.
fn document(output: &Value) -> Vec<Content> {
    vec![Content::text(serde_json::to_string_pretty(output).unwrap_or_default())]
}

/// A text of the document, for people; empty if it has none.
fn word<'a>(output: &'a Value, field: &str) -> &'a str {
    output.get(field).and_then(Value::as_str).unwrap_or_default()
}
