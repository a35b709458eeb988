//! `list_dir`, `find_entries`, `glob_entries` and `grep_text`: `glob` and `grep` in the words of agent-runtime 10.3.

use std::sync::Arc;

use portcullis_contract::{BuildError, Precondition, Reshape};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::mount_names::MountNames;
use super::{Actions, FirstClassTools, pick, reshape, table, word};
use crate::count::Count;
use crate::files::FileTools;
use crate::files::glob::{EntryKind, GlobRequest, Listing, Sort, listing};
use crate::search::names::NamePattern;

#[derive(Debug, Deserialize, JsonSchema)]
struct ListDir {
    /// The directory, relative to the workspace. Absent or empty means the workspace.
    #[serde(default)]
    path: Option<String>,
    /// How many entries to show. 0 or less, or absent, means 100; above 1000 means 1000.
    #[serde(default)]
    limit: Count<100, 1000>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FindEntries {
    /// The directory to look through, relative to the workspace. Absent or empty means the workspace.
    #[serde(default)]
    path: Option<String>,
    /// The text that the path, seen from that directory, must hold; upper and lower case are the same.
    #[schemars(regex(pattern = r"\S"), length(max = 4096))]
    query: String,
    /// How many entries to show. 0 or less, or absent, means 40; above 1000 means 1000.
    #[serde(default)]
    limit: Count<40, 1000>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GlobEntries {
    /// The directory to look through, relative to the workspace. Absent or empty means the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Such as `*.rs` or `src/**/*.rs`.
    #[schemars(regex(pattern = r"\S"), length(max = 4096))]
    pattern: String,
    /// Only files, or only directories.
    #[serde(default)]
    kind: Option<EntryKind>,
    /// How many levels to go down; 1 is the directory itself. 0 or less, or absent, means all; above 256 means 256.
    #[serde(default)]
    max_depth: Count<0, 256>,
    /// `mtime` (default): the newest first. `path`: level by level, by name.
    #[serde(default)]
    sort: Option<Sort>,
    /// How many entries to show. 0 or less, or absent, means 40; above 1000 means 1000.
    #[serde(default)]
    limit: Count<40, 1000>,
}

impl Listing for ListDir {
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn wish(&self) -> Result<GlobRequest, Precondition> {
        let limit = self.limit.value();
        let pattern = NamePattern::parse("*")?;
        Ok(GlobRequest { pattern, kind: None, sort: Sort::Path, limit, max_depth: Some(1), ignored: true })
    }

    fn lowered(&self) -> Vec<String> {
        self.limit.lowered("limit").into_iter().collect()
    }

    fn what(&self) -> String {
        "List".to_owned()
    }
}

impl Listing for FindEntries {
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn wish(&self) -> Result<GlobRequest, Precondition> {
        let limit = self.limit.value();
        let pattern = NamePattern::holding(&self.query)?;
        Ok(GlobRequest { pattern, kind: None, sort: Sort::Path, limit, max_depth: None, ignored: false })
    }

    fn lowered(&self) -> Vec<String> {
        self.limit.lowered("limit").into_iter().collect()
    }

    fn what(&self) -> String {
        format!("Find {}", self.query.trim())
    }
}

impl Listing for GlobEntries {
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn wish(&self) -> Result<GlobRequest, Precondition> {
        GlobRequest::matching(&self.pattern, self.kind, self.sort, self.limit.value(), self.max_depth.value())
    }

    fn lowered(&self) -> Vec<String> {
        [self.limit.lowered("limit"), self.max_depth.lowered("maxDepth")].into_iter().flatten().collect()
    }

    fn what(&self) -> String {
        format!("Glob {}", self.pattern.trim())
    }
}

pub(super) fn actions(
    own: &FirstClassTools,
    places: &MountNames,
    files: &Arc<FileTools>,
) -> Result<Actions, BuildError> {
    let places = places.clone();
    let make = |name: &'static str| (Arc::clone(files), table::description(name), name);
    let (parts, words, name) = make("list_dir");
    let list =
        listing::<ListDir>(parts, words, name).to_structured(move |_, output| listed(&places, output)).build()?;
    let (parts, words, name) = make("find_entries");
    let find = listing::<FindEntries>(parts, words, name).to_structured(|_, output| found(output)).build()?;
    let (parts, words, name) = make("glob_entries");
    let glob = listing::<GlobEntries>(parts, words, name).to_structured(|_, output| found(output)).build()?;
    let shape =
        reshape("grep_text", Some(&["path", "pattern", "literal", "ignoreCase", "limit"]), |_, output| matched(output));
    let grep = own.tool("grep")?.reshaped(Reshape { fields: &[("ignoreCase", "ignore_case")], ..shape })?;
    Ok([("list_dir", list), ("find_entries", find), ("glob_entries", glob), ("grep_text", grep)].into())
}

fn listed(places: &MountNames, output: &Value) -> Value {
    let path = word(output, "path");
    let entries = output.get("entries").and_then(Value::as_array).into_iter().flatten().map(|entry| {
        let path = word(entry, "path");
        let name = path.rsplit('/').next().unwrap_or(path);
        json!({"name": name, "kind": entry.get("kind"), "path": path})
    });
    let mut document = pick(output, &["path", "count", "truncated"]);
    document.insert("mountPath".to_owned(), places.mount_path(path).into());
    document.insert("entries".to_owned(), entries.collect());
    document.into()
}

fn found(output: &Value) -> Value {
    pick(output, &["count", "entries", "truncated"]).into()
}

fn matched(output: &Value) -> Value {
    let files = output.get("files").and_then(Value::as_array).into_iter().flatten();
    let files = files.map(|file| json!({"path": file.get("path"), "matchCount": file.get("match_count")}));
    let mut document = pick(output, &["count", "matches", "truncated"]);
    document.insert("files".to_owned(), files.collect());
    document.into()
}
