//! The tools of the persistent shell (agent-runtime 7.8, 10.4): `shell_open`, `shell_exec`, `shell_wait`, `shell_restart`,
//! `shell_close`, and the `bash` of profile `code`.
//!
//! A shell lives in the process that opened it ([`Shells`]); its folder and its exported environment are the session's
//! and outlive it. So a call in another process, or after a crash, finds a fresh shell in the same place.

mod exec;
mod job;
mod manage;
mod read_only_lines;
mod running_shell;
mod shells;
mod sink;
mod stock;
mod verdict;
mod wait;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_contract::{BuildError, Caller, Tool, ToolName};

pub use shells::{LeftBehind, ShellParts, Shells};

use super::{NoVariables, ShellTools, WithEnv};
use crate::command::ReadHand;
use crate::tool_name;

/// What these tools are made of.
pub(super) struct Persistent {
    shell: ShellTools,
    shells: Shells,
}

impl Persistent {
    fn new(mut shell: ShellTools, shells: Shells) -> Arc<Self> {
        shell.live = Arc::new(shells.clone());
        Arc::new(Self { shell, shells })
    }
}

/// `shell_open`, `shell_exec`, `shell_wait`, `shell_restart` and `shell_close`.
///
/// # Errors
/// As [`super::shell_tools`].
pub fn persistent_tools(shell: ShellTools, shells: Shells) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let parts = Persistent::new(shell, shells);
    Ok(BTreeMap::from([
        (tool_name("shell_open"), manage::open::<NoVariables<manage::OpenInput>>(Arc::clone(&parts))?),
        (tool_name("shell_exec"), exec::tool::<NoVariables<exec::ExecInput>>(Arc::clone(&parts))?),
        (tool_name("shell_wait"), wait::tool(Arc::clone(&parts))?),
        (tool_name("shell_restart"), manage::restart(Arc::clone(&parts))?),
        (tool_name("shell_close"), manage::close(parts)?),
    ]))
}

/// `shell_open` and `shell_exec` with variables of a call.
pub(crate) fn persistent_with_env(shell: ShellTools, shells: Shells) -> Result<(Tool, Tool), BuildError> {
    let parts = Persistent::new(shell, shells);
    let open = manage::open::<WithEnv<manage::OpenInput>>(Arc::clone(&parts))?;
    Ok((open, exec::tool::<WithEnv<exec::ExecInput>>(parts)?))
}

/// The `bash` of profile `code`: the stock one of Managed-Agents clients. What only reads runs in the read-only hand.
///
/// # Errors
/// As [`super::shell_tools`].
pub fn stock_bash(shell: ShellTools, shells: Shells, reads: ReadHand) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    Ok(BTreeMap::from([(tool_name("bash"), stock::tool(Persistent::new(shell, shells), reads)?)]))
}

/// Who changes or uses a session's shell holds this; the tools that set its folder and environment do, too.
fn shell_key(caller: &Caller) -> String {
    format!("shell:{}", caller.session_id)
}
