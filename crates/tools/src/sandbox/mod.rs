//! `sandbox_describe` and `sandbox_execute` (agent-runtime 7.9, 10.1–10.3).
//!
//! An action is its first-class tool in another shape, so it asks, locks, checks and runs exactly what that does (H44):
//! there is no second way to a file or a command here. One idea a file: `table` which actions there are, `text` files,
//! `listing` and `stat` directories, `mkdir`, `commands` and `shells` what runs, `describe` what all of it stands in,
//! `place` the mount that a path lies in.

mod commands;
mod describe;
mod listing;
mod mkdir;
mod mount_names;
mod shells;
mod stat;
mod table;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Effect, EffectSet};
use portcullis_contract::{BuildError, ChoiceFace, Reshape, Semantics, Tool, ToolName};
use serde_json::{Map, Value};

use crate::command::ReadHand;
use crate::files::FileTools;
use crate::hand::Hand;
use crate::shell::{ShellTools, Shells, persistent_tools, shell_tools};
use crate::{executor, file_tools, tool_name};
use mount_names::MountNames;

const EXECUTE: &str = "Does one action of the sandbox by its name. Each asks for exactly what its own tool asks: the file \
actions as read, write, edit, glob and grep, run_command as bash, run_shell as shell_run, those of the persistent shell as \
shell_open, shell_exec, shell_wait, shell_describe and shell_close. Prefer those tools; they are the same hand. \
sandbox_describe tells what there is.";

/// What the sandbox tools are made of.
#[derive(Clone)]
pub struct SandboxTools {
    /// The session's shell, and its files.
    pub shell: ShellTools,
    /// The persistent shells of this process.
    pub shells: Shells,
    /// What runs commands.
    pub hand: Hand,
    /// What runs commands that only read.
    pub reads: ReadHand,
}

impl SandboxTools {
    fn files(&self) -> Arc<FileTools> {
        Arc::new(self.shell.files.clone())
    }
}

/// `sandbox_describe` and `sandbox_execute`.
///
/// # Errors
/// Never for the tools as they are written: a tool that contradicts itself is a defect of this crate.
pub fn sandbox_tools(parts: SandboxTools) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let own = FirstClassTools(own_tools(&parts)?);
    let places = MountNames(Arc::clone(&parts.shell.files.mounts));
    let mut actions = text::actions(&own, &places, parts.files())?;
    actions.extend(listing::actions(&own, &places, &parts.files())?);
    actions.extend(commands::actions(&parts)?);
    actions.extend(shells::actions(&own, &parts)?);
    actions.insert("stat", stat::tool(parts.files(), places.clone())?);
    actions.insert("mkdir", mkdir::tool(parts.files(), places)?);
    actions.insert("inspect", describe::inspect(parts.hand.clone())?);
    let face = ChoiceFace {
        description: EXECUTE.to_owned(),
        semantics: Semantics { effects: EffectSet::from([Effect::SandboxExecute]), ..Semantics::mutating() },
        executor: executor("sandbox_execute"),
    };
    let actions = actions.into_iter().map(|(name, tool)| (name.to_owned(), tool)).collect();
    Ok(BTreeMap::from([
        (tool_name("sandbox_describe"), describe::tool(parts.hand)?),
        (tool_name("sandbox_execute"), Tool::one_of(face, actions)?),
    ]))
}

/// Actions by name.
type Actions = BTreeMap<&'static str, Tool>;

/// The first-class tools, by name.
struct FirstClassTools(BTreeMap<ToolName, Tool>);

fn own_tools(parts: &SandboxTools) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let mut tools = file_tools(parts.shell.files.clone())?;
    tools.extend(shell_tools(parts.shell.clone())?);
    tools.extend(persistent_tools(parts.shell.clone(), parts.shells.clone())?);
    Ok(tools)
}

impl FirstClassTools {
    fn tool(&self, name: &'static str) -> Result<&Tool, BuildError> {
        self.0.get(&tool_name(name)).ok_or_else(|| BuildError::Schema(format!("there is no tool `{name}`")))
    }
}

/// The shape of an action, which is described in the words of the table.
fn reshape(
    name: &str,
    takes: Option<&'static [&'static str]>,
    structured: impl Fn(&Value, &Value) -> Value + Send + Sync + 'static,
) -> Reshape {
    Reshape {
        description: table::description(name).to_owned(),
        executor: executor(name),
        takes,
        fields: &[],
        words: &[],
        structured: Box::new(structured),
        shows_document: false,
    }
}

/// These fields of a document; what it has not is null.
fn pick(document: &Value, fields: &[&str]) -> Map<String, Value> {
    fields.iter().map(|field| ((*field).to_owned(), document.get(field).cloned().unwrap_or(Value::Null))).collect()
}

/// A text of a document; empty if it has none.
fn word<'d>(document: &'d Value, field: &str) -> &'d str {
    document.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Characters of a text of a document.
fn chars(document: &Value, field: &str) -> usize {
    word(document, field).chars().count()
}
