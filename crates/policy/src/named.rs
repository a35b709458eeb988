//! Kinds of resources that are known by a name: the key of a rule for each, and how rules said it before.

use portcullis_contract::{Action, NamedKind};

use crate::ActionPattern;

/// The key under which a rule names what is of this kind. `session` is taken: it says in whose session a rule holds.
pub(crate) const fn rule_key(kind: NamedKind) -> &'static str {
    match kind {
        NamedKind::Session => "target_session",
        kind => kind.as_str(),
    }
}

pub(crate) fn kind_of_key(key: &str) -> Option<NamedKind> {
    NamedKind::ALL.into_iter().find(|kind| rule_key(*kind) == key)
}

/// What was a `mcp_tool` before it had a kind of its own: the actions that touched it, and how its names begin.
const FORMER: [(NamedKind, &[&str], &[&str]); 4] = [
    (NamedKind::Task, &["task_cancel", "task_output", "task_wait"], &["task_"]),
    (NamedKind::Artifact, &["artifact_grep", "artifact_read"], &["art_"]),
    (NamedKind::Session, &["sandbox_describe"], &["sandbox"]),
    (
        NamedKind::Shell,
        &[
            "bash",
            "shell_close",
            "shell_describe",
            "shell_history",
            "shell_open",
            "shell_read_command",
            "shell_read_last_output",
            "shell_restart",
            "shell_set_env",
            "shell_unset_env",
            "shell_wait",
        ],
        &["env:", FORMER_SHELL, "shell"],
    ),
];
/// What stood before the id of a session, where it was the shell of that one.
const FORMER_SHELL: &str = "shell:";

/// Of which kind is now what `name`, a name or a pattern, meant as a `mcp_tool` under `action`, and its name there. `None`
/// if it means a tool.
///
/// A name under an action of ours never was anybody else's. Under an action that begins with a wildcard only a name that
/// begins as those did is one: `*` there means tools.
pub(crate) fn formerly<'n>(action: &ActionPattern, name: &'n str) -> Option<(NamedKind, &'n str)> {
    let fixed = name.split(['*', '?']).next().unwrap_or_default();
    let broad = action.as_str().starts_with(['*', '?']);
    let begins_so = |former: &&str| {
        let whole = !former.ends_with([':', '_']);
        let same = if whole { name == *former } else { name.starts_with(former) };
        same || (fixed != name && !broad && former.starts_with(fixed))
    };
    let (kind, ..) = FORMER.into_iter().find(|(_, actions, names)| {
        let ours = actions.iter().any(|ours| action.matches(&Action::new(*ours)));
        ours && (action.literal_word().is_some() || names.iter().any(begins_so))
    })?;
    Some((kind, name.strip_prefix(FORMER_SHELL).unwrap_or(name)))
}
