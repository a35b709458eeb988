//! The mount that a shown path lies in.

use std::sync::Arc;

use portcullis_sandbox::MountTable;

/// Where a shown path that does not begin with `/` begins.
const WORKSPACE: &str = "/workspace";

/// The mounts, for naming alone.
#[derive(Clone)]
pub(super) struct MountNames(pub(super) Arc<MountTable>);

impl MountNames {
    /// The root of the mount that a path lies in, of all the longest. By names alone: a shown path is canonical.
    pub(super) fn mount_path(&self, shown: &str) -> String {
        let whole = match shown {
            "." => WORKSPACE.to_owned(),
            _ if shown.starts_with('/') => shown.to_owned(),
            _ => format!("{WORKSPACE}/{shown}"),
        };
        let holds = |root: &&str| {
            let rest = whole.strip_prefix(root.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let roots = self.0.mounts().map(|mount| mount.root().as_str());
        roots.filter(holds).max_by_key(|root| root.len()).unwrap_or(WORKSPACE).to_owned()
    }
}
