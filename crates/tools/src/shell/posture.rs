//! How a shell stands and what may be done about it (agent-runtime 7.0, 8.5). Only tools that the session is offered are
//! suggested to it.

use portcullis_base::Timestamp;
use portcullis_event::fold::ShellStatus;
use portcullis_pipeline::ShellSeen;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::session_shell::{LiveCommand, LiveView};
use super::view::{CommandView, NextStep, StateView, cwd, status_word};

/// What can be used while a command runs.
const READ_TOOLS: [&str; 10] = [
    "shell_wait",
    "shell_describe",
    "shell_history",
    "shell_read_last_output",
    "bash",
    "read",
    "glob",
    "grep",
    "session_get_snapshot",
    "retrieval_search",
];
/// What must wait until it has ended.
const AVOID_TOOLS: [&str; 4] = ["shell_run", "shell_exec", "shell_restart", "shell_close"];
/// How long the suggested wait is.
const WAIT_MS: u64 = 1_000;

/// A persistent shell with what runs in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShellView {
    shell_id: String,
    shell_path: String,
    mount_path: Option<String>,
    cwd: String,
    started_at: String,
    updated_at: String,
    last_command_at: Option<String>,
    command_count: u64,
    busy: bool,
    current_command: Option<String>,
    current_command_started_at: Option<String>,
    current_stdout_preview: Option<String>,
    current_stderr_preview: Option<String>,
    env_keys: Vec<String>,
    /// `active` or `closed`.
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Previews {
    stdout_preview: Option<String>,
    stderr_preview: Option<String>,
}

/// What to do while a command runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusyPlan {
    tool: String,
    args: Map<String, Value>,
    rationale: String,
    allowlisted_read_tools: Vec<String>,
    evidence_plan: Option<NextStep>,
    avoid_tools: Vec<String>,
    live_output_preview: Option<Previews>,
}

/// A command that runs, as `shell_read_last_output` shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveCommandView {
    shell_id: String,
    command: String,
    started_at: String,
    stdout_preview: Option<String>,
    stderr_preview: Option<String>,
}

/// How a shell stands.
pub(super) struct Posture {
    pub(super) cwd: String,
    pub(super) persistent: Option<ShellView>,
    pub(super) state: Option<StateView>,
    pub(super) last_command: Option<CommandView>,
    pub(super) live_command: Option<LiveCommandView>,
    pub(super) busy: Option<BusyPlan>,
    pub(super) recovery: Option<NextStep>,
    pub(super) read_first: Vec<NextStep>,
}

impl Posture {
    pub(super) fn of(seen: &ShellSeen, live: Option<LiveView>, offers: &dyn Fn(&str) -> bool) -> Self {
        let known = seen.shell.persistent();
        // Of the caller's own session this process would know: an active shell that it does not run died with its process.
        let status = match (&live, known) {
            (Some(_), _) => Some(ShellStatus::Active),
            (None, Some(_)) if seen.own => Some(ShellStatus::Closed),
            (None, known) => known.map(|shell| shell.status),
        };
        let cwd = live.as_ref().map_or_else(|| cwd(&seen.shell), |live| live.cwd.clone());
        let last_command = seen.shell.recent().next().map(CommandView::of);
        let current = live.as_ref().and_then(|live| live.current.as_ref().map(|command| (live, command)));
        let evidence = step(offers, "shell_read_last_output", json!({}), "shows what the last command wrote");
        let busy = current.and_then(|(_, command)| busy_plan(command, evidence.clone(), offers));
        let recovery = if seen.own { recovery_plan(status, &cwd, offers) } else { None };
        let look = step(offers, "bash", json!({"command": "pwd", "cwd": cwd}), "looks without changing anything");
        let has_output = last_command.is_some() || current.is_some();
        Self {
            read_first: look.into_iter().chain(evidence.filter(|_| has_output)).collect(),
            persistent: shell_view(seen, live.as_ref(), status, &cwd),
            state: StateView::of(&seen.shell, status),
            live_command: current.map(|(live, command)| LiveCommandView {
                shell_id: live.shell_id.to_string(),
                command: command.command.clone(),
                started_at: command.started_at.to_millis_text(),
                stdout_preview: command.stdout_preview.clone(),
                stderr_preview: command.stderr_preview.clone(),
            }),
            cwd,
            last_command,
            busy,
            recovery,
        }
    }

    /// The busy plan's step, else recovery, else nothing.
    pub(super) fn next_step(&self) -> Option<NextStep> {
        let waiting = self.busy.as_ref().map(|plan| NextStep {
            tool: plan.tool.clone(),
            args: plan.args.clone(),
            rationale: plan.rationale.clone(),
        });
        waiting.or_else(|| self.recovery.clone())
    }
}

/// A step with a tool that is offered; none with another.
fn step(offers: &dyn Fn(&str) -> bool, tool: &str, args: Value, rationale: &str) -> Option<NextStep> {
    let args = args.as_object().cloned().unwrap_or_default();
    offers(tool).then(|| NextStep { tool: tool.to_owned(), args, rationale: rationale.to_owned() })
}

fn busy_plan(command: &LiveCommand, evidence: Option<NextStep>, offers: &dyn Fn(&str) -> bool) -> Option<BusyPlan> {
    let why = "a command runs in the shell; wait for its end before the next one";
    let wait = step(offers, "shell_wait", json!({"timeoutMs": WAIT_MS}), why)?;
    let offered = |tools: &[&str]| tools.iter().filter(|tool| offers(tool)).map(|tool| (*tool).to_owned()).collect();
    let previews =
        Previews { stdout_preview: command.stdout_preview.clone(), stderr_preview: command.stderr_preview.clone() };
    let written = previews.stdout_preview.is_some() || previews.stderr_preview.is_some();
    Some(BusyPlan {
        tool: wait.tool,
        args: wait.args,
        rationale: wait.rationale,
        allowlisted_read_tools: offered(&READ_TOOLS),
        evidence_plan: evidence,
        avoid_tools: offered(&AVOID_TOOLS),
        live_output_preview: written.then_some(previews),
    })
}

fn recovery_plan(status: Option<ShellStatus>, cwd: &str, offers: &dyn Fn(&str) -> bool) -> Option<NextStep> {
    let args = json!({ "cwd": cwd });
    match status {
        Some(ShellStatus::Active) => None,
        Some(ShellStatus::Closed) => {
            step(offers, "shell_restart", args, "the session's shell has ended; its folder and environment are kept")
        }
        None => step(offers, "shell_open", args, "the session has no shell yet"),
    }
}

fn shell_view(seen: &ShellSeen, live: Option<&LiveView>, status: Option<ShellStatus>, cwd: &str) -> Option<ShellView> {
    let status = status_word(status?);
    let current = live.and_then(|live| live.current.as_ref());
    let (id, path, times, count, mount, env_keys) = match (live, seen.shell.persistent()) {
        (Some(live), _) => (
            live.shell_id,
            &live.shell_path,
            (live.started_at, live.updated_at, live.last_command_at),
            live.command_count,
            Some(live.mount_path.clone()),
            live.env_keys.clone(),
        ),
        (None, Some(known)) => (
            known.shell_id,
            &known.shell_path,
            (known.started_at, known.updated_at, known.last_command_at),
            known.command_count,
            None,
            seen.shell.env().map(|(name, _)| name.to_owned()).collect(),
        ),
        (None, None) => return None,
    };
    Some(ShellView {
        shell_id: id.to_string(),
        shell_path: path.clone(),
        mount_path: mount,
        cwd: cwd.to_owned(),
        started_at: times.0.to_millis_text(),
        updated_at: times.1.to_millis_text(),
        last_command_at: times.2.map(Timestamp::to_millis_text),
        command_count: count,
        busy: current.is_some(),
        current_command: current.map(|command| command.command.clone()),
        current_command_started_at: current.map(|command| command.started_at.to_millis_text()),
        current_stdout_preview: current.and_then(|command| command.stdout_preview.clone()),
        current_stderr_preview: current.and_then(|command| command.stderr_preview.clone()),
        env_keys,
        status,
    })
}
