//! What the live parts of a runtime tell a model when its session wakes (agent-runtime 6.7).

use portcullis_event::fold::Shell;
use portcullis_harness::{Extras, SuggestedCall};
use portcullis_pipeline::Session;
use portcullis_tools::{LiveShell as _, LiveView, ShellKnown, Shells};

/// How long a wait for a busy shell is suggested, in milliseconds.
const WAIT_MS: u32 = 1_000;
/// Tools that look at a busy shell and change nothing.
const SAFE: [&str; 4] = ["shell_describe", "shell_read_last_output", "shell_history", "shell_wait"];

/// Notes of a runtime's own.
pub(crate) struct LiveNotes {
    pub(crate) shells: Option<Shells>,
}

impl Extras for LiveNotes {
    fn notes(&self, session: &Session) -> Vec<String> {
        let id = session.key().session;
        let Some(view) = self.shells.as_ref().and_then(|shells| shells.look(id)) else { return Vec::new() };
        let offer = session.gate().offer(id);
        shell_busy(&view, |name| offer.entries().any(|(known, _)| known.as_str() == name)).into_iter().collect()
    }

    fn first_look(&self, said: &str, shell: &Shell) -> Option<SuggestedCall> {
        let known = ShellKnown { last_command: shell.recent().next().is_some(), cwd: shell.cwd() };
        let portcullis_tools::LookSuggestion { intent, tool, input } = portcullis_tools::first_look(said, &known)?;
        Some(SuggestedCall { intent, tool, input })
    }

    fn context_tool(&self) -> Option<&'static str> {
        Some("session_describe_context")
    }
}

/// Ids and times only: the command line and what it wrote are read with the tool that is named (L67).
fn shell_busy(view: &LiveView, offers: impl Fn(&str) -> bool) -> Option<String> {
    let current = view.current.as_ref()?;
    let safe: Vec<&str> = SAFE.into_iter().filter(|name| offers(name)).collect();
    let mut note =
        format!("[shell-busy] shell={} startedAt={} safeTools={}", view.shell_id, current.started_at, safe.join(","));
    let wrote = current.stdout_preview.is_some() || current.stderr_preview.is_some();
    if wrote && offers("shell_read_last_output") {
        note.push_str(" nextTool=shell_read_last_output nextArgs={}");
    } else if offers("shell_wait") {
        note.push_str(&format!(" nextTool=shell_wait nextArgs={{\"timeoutMs\":{WAIT_MS}}}"));
    }
    Some(note)
}

#[cfg(test)]
mod tests {
    use portcullis_base::{ShellId, Timestamp};
    use portcullis_tools::LiveCommand;

    use super::*;

    fn view(wrote: Option<&str>) -> LiveView {
        let started_at = Timestamp::from_micros(1_000_000);
        LiveView {
            shell_id: ShellId::from_u128(7),
            shell_path: "/bin/sh".to_owned(),
            mount_path: "/workspace".to_owned(),
            cwd: "/workspace".to_owned(),
            started_at,
            updated_at: started_at,
            last_command_at: None,
            command_count: 1,
            current: Some(LiveCommand {
                command: "curl SECRETWORD".to_owned(),
                started_at,
                stdout_preview: wrote.map(str::to_owned),
                stderr_preview: None,
            }),
            env_keys: Vec::new(),
            env: std::collections::BTreeMap::new(),
            changed: Vec::new(),
            altered: None,
        }
    }

    #[test]
    fn l67_a_busy_shell_is_told_by_ids_and_times_and_never_by_its_command_or_output() {
        let silent = shell_busy(&view(None), |_| true).expect("it is busy");
        assert!(silent.starts_with(&format!("[shell-busy] shell={} startedAt=", ShellId::from_u128(7))), "{silent}");
        assert!(silent.ends_with("nextTool=shell_wait nextArgs={\"timeoutMs\":1000}"), "{silent}");
        let wrote = shell_busy(&view(Some("SECRETWORD")), |_| true).expect("it is busy");
        assert!(wrote.ends_with("nextTool=shell_read_last_output nextArgs={}"), "{wrote}");
        assert!(!silent.contains("SECRETWORD") && !wrote.contains("SECRETWORD"));
        let unoffered = shell_busy(&view(None), |_| false).expect("it is busy");
        assert!(!unoffered.contains("nextTool"), "a tool that is not there is not named: {unoffered}");
        assert_eq!(shell_busy(&LiveView { current: None, ..view(None) }, |_| true), None);
    }
}
