//! The names of every built-in tool, whichever profile offers it.

/// Rules and people know what these do; no other tool goes by such a name.
const BUILT_IN: &[&str] = &[
    "artifact_grep",
    "artifact_read",
    "bash",
    "edit",
    "glob",
    "grep",
    "read",
    "sandbox_describe",
    "sandbox_execute",
    "shell_close",
    "shell_describe",
    "shell_exec",
    "shell_history",
    "shell_open",
    "shell_read_command",
    "shell_read_last_output",
    "shell_restart",
    "shell_run",
    "shell_set_cwd",
    "shell_set_env",
    "shell_unset_env",
    "shell_wait",
    "task_cancel",
    "task_output",
    "task_wait",
    "write",
];

/// Whether a profile has a tool of this name, in capitals or not.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|built_in| built_in.eq_ignore_ascii_case(name))
}
