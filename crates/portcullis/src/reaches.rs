//! What rules about each tool's action can match: rules that match nothing are found by it.

use portcullis_contract::{NamedKind, ResourceKind};
use portcullis_policy::{ActionReach, RuleEffect};

const ANY: &[RuleEffect] = &RuleEffect::ALL;

/// What works on files names them.
const FILES: &[(ResourceKind, &[RuleEffect])] = &[(ResourceKind::Path, ANY)];
const ARTIFACTS: &[(ResourceKind, &[RuleEffect])] = &[(ResourceKind::Named(NamedKind::Artifact), ANY)];
const SESSIONS: &[(ResourceKind, &[RuleEffect])] = &[(ResourceKind::Named(NamedKind::Session), ANY)];
const TASKS: &[(ResourceKind, &[RuleEffect])] = &[(ResourceKind::Named(NamedKind::Task), ANY)];
/// A shell and its variables.
const SHELL: &[(ResourceKind, &[RuleEffect])] = &[(ResourceKind::Named(NamedKind::Shell), ANY)];
/// A shell that begins stands in a folder.
const NEW_SHELL: &[(ResourceKind, &[RuleEffect])] =
    &[(ResourceKind::Named(NamedKind::Shell), ANY), (ResourceKind::Path, ANY)];
/// A command is named by its words. Which files it will touch nobody knows before it runs; a deny closes them to it.
const COMMANDS: &[(ResourceKind, &[RuleEffect])] =
    &[(ResourceKind::Argv, ANY), (ResourceKind::Path, &[RuleEffect::Deny])];
/// `bash` also runs lines that only look, unasked: files that a rule asks about are closed to these as well.
const BASH: &[(ResourceKind, &[RuleEffect])] = &[
    (ResourceKind::Argv, ANY),
    (ResourceKind::Path, &[RuleEffect::Deny, RuleEffect::Ask]),
    (ResourceKind::Named(NamedKind::Shell), ANY),
];

/// Every tool that some profile has.
pub const REACHES: &[ActionReach<'static>] = &[
    reach("artifact_grep", ARTIFACTS),
    reach("artifact_read", ARTIFACTS),
    reach("bash", BASH),
    reach("edit", FILES),
    reach("glob", FILES),
    reach("grep", FILES),
    reach("read", FILES),
    reach("sandbox_describe", SESSIONS),
    // What it does is done as one of the others.
    reach("sandbox_execute", &[]),
    reach("shell_close", SHELL),
    reach("shell_describe", SHELL),
    pinned("shell_exec", COMMANDS),
    reach("shell_history", SHELL),
    reach("shell_open", NEW_SHELL),
    reach("shell_read_command", SHELL),
    reach("shell_read_last_output", SHELL),
    reach("shell_restart", NEW_SHELL),
    pinned("shell_run", COMMANDS),
    reach("shell_set_cwd", FILES),
    reach("shell_set_env", SHELL),
    reach("shell_unset_env", SHELL),
    reach("shell_wait", SHELL),
    reach("task_cancel", TASKS),
    reach("task_output", TASKS),
    reach("task_wait", TASKS),
    reach("write", FILES),
];

const fn reach(action: &'static str, kinds: &'static [(ResourceKind, &'static [RuleEffect])]) -> ActionReach<'static> {
    ActionReach { action, kinds, pinned: false }
}

const fn pinned(action: &'static str, kinds: &'static [(ResourceKind, &'static [RuleEffect])]) -> ActionReach<'static> {
    ActionReach { pinned: true, ..reach(action, kinds) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Profile, Runtime, SessionId};

    #[test]
    fn every_tool_of_every_profile_has_its_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut offered = BTreeSet::new();
        for profile in Profile::ALL {
            let runtime = Runtime::builder().workspace(folder.path()).profile(profile).build().expect("a runtime");
            let offer = runtime.offer(SessionId::from_u128(0));
            offered.extend(offer.entries().map(|(name, _)| name.to_string()));
        }
        let rows: BTreeSet<String> = REACHES.iter().map(|reach| reach.action.to_owned()).collect();
        assert_eq!(offered, rows);
    }
}
