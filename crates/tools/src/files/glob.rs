//! `glob`: the entries whose names match.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use portcullis_base::Timestamp;
use portcullis_contract::{
    BuildError, Content, Precondition, Strategy, Tool, ToolBuilder, ToolContext, ToolFailure, UserText,
};
use portcullis_sandbox::{self as sandbox, Entry, Kind, PassedOver, Visitor, Walk};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileTools, failure};
use crate::count::Count;
use crate::executor;
use crate::search::left_out::{LeftOut, LeftOutCounts, LeftOutReason};
use crate::search::names::NamePattern;
use crate::search::order::PathKey;
use crate::search::scope::{self, Scope, in_line, shown_path};
use crate::search::{stoppable, threads};

const DESCRIPTION: &str = "Lists files and directories of the workspace, or of one directory of it, whose names match a \
glob: `*` and `?` stay inside a name, `**` crosses directories. A pattern without `/` matches names at any depth, \
another one the path relative to `path`. The newest come first; directories end with `/`. Links are listed and never \
followed; what .gitignore names is left out unless `path` names it.";

#[derive(Debug, Deserialize, JsonSchema)]
struct GlobInput {
    /// Such as `*.rs` or `src/**/*.rs`.
    #[schemars(regex(pattern = r"\S"), length(max = 4096))]
    pattern: String,
    /// The directory to list, relative to the workspace. Absent or empty means the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Only files, or only directories.
    #[serde(default)]
    kind: Option<EntryKind>,
    /// How many entries to show. 0 or less, or absent, means 40; above 1000 means 1000.
    #[serde(default)]
    limit: Count<40, 1000>,
    /// How many levels to go down; 1 is the directory itself. 0 or less, or absent, means all; above 256 means 256.
    #[serde(default)]
    max_depth: Count<0, 256>,
    /// `mtime` (default): the newest first. `path`: level by level, by name.
    #[serde(default)]
    sort: Option<Sort>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Wanted")]
pub(crate) enum EntryKind {
    File,
    Directory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    #[default]
    Mtime,
    Path,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GlobOutput {
    /// The directory that was listed, relative to the workspace.
    path: String,
    /// How many entries are shown.
    count: u64,
    /// How many there are; absent if the listing ended at its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// There are more than are shown.
    truncated: bool,
    entries: Vec<GlobEntry>,
    /// What was not looked at.
    left_out: LeftOutCounts,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Listed")]
pub(crate) struct GlobEntry {
    path: String,
    kind: ListedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListedKind {
    File,
    Directory,
    /// A link, pipe, socket or device.
    Other,
}

/// What a listing is asked for, whatever its input looks like.
pub(crate) trait Listing: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The directory; the workspace if it names none.
    fn path(&self) -> Option<&str>;

    /// What of it is wanted.
    ///
    /// # Errors
    /// If the input says something that no listing can be.
    fn wish(&self) -> Result<GlobRequest, Precondition>;

    /// A line for each value that was lowered to its cap.
    fn lowered(&self) -> Vec<String>;

    /// What is looked for, in a few words for people.
    fn what(&self) -> String;
}

impl Listing for GlobInput {
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn wish(&self) -> Result<GlobRequest, Precondition> {
        GlobRequest::matching(&self.pattern, self.kind, self.sort, self.limit.value(), self.max_depth.value())
    }

    fn lowered(&self) -> Vec<String> {
        [self.limit.lowered("limit"), self.max_depth.lowered("max_depth")].into_iter().flatten().collect()
    }

    fn what(&self) -> String {
        format!("Glob {}", self.pattern.trim())
    }
}

pub(super) fn tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    listing::<GlobInput>(parts, DESCRIPTION, "glob").build()
}

/// A tool that lists: whatever its input looks like, it asks what `glob` asks.
pub(crate) fn listing<I: Listing>(parts: Arc<FileTools>, description: &str, name: &str) -> ToolBuilder<I, GlobOutput> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<I, GlobOutput>(description)
        .semantics(scope::semantics(Strategy::Head))
        .executor(executor(name))
        .resolve(move |input: &I, caller| {
            input.wish()?;
            named.under_every_name(scope::name(&named, input.path())?, caller, &["glob", "read"])
        })
        .plan_access(|_, resolved| scope::plan("glob", resolved))
        .precheck(move |_, resolved, _| {
            let checked = scope::check(&checked, &resolved, Kind::Directory);
            async move { checked }
        })
        .execute_resolved(move |input: I, resolved, context| {
            let place = parts.place(&resolved).map(|place| (Arc::clone(&parts), place));
            async move {
                let (parts, place) = place.map_err(failure)?;
                let scope = Scope::new(parts, place, context.caller(), "glob");
                glob(&input, scope, context).await
            }
        })
        .to_model(|_, output| said(output))
        .to_user(to_user)
}

async fn glob(input: &impl Listing, scope: Scope, context: ToolContext) -> Result<GlobOutput, ToolFailure> {
    input.lowered().into_iter().for_each(|line| context.warn(line));
    let wish = input.wish().map_err(ToolFailure::precondition)?;
    let output = stoppable(&context, move |stop| list(&scope, &wish, stop)).await.map_err(failure)?;
    if output.entries.is_empty() {
        context.nothing_found();
    }
    Ok(output)
}

/// The entries that a listing asks for.
pub(crate) struct GlobRequest {
    pub(crate) pattern: NamePattern,
    pub(crate) kind: Option<EntryKind>,
    pub(crate) sort: Sort,
    pub(crate) limit: u64,
    /// All levels if there is none.
    pub(crate) max_depth: Option<u64>,
    /// Also what `.gitignore` names.
    pub(crate) ignored: bool,
}

impl GlobRequest {
    /// Names that match a pattern. A depth of 0 means all levels.
    pub(crate) fn matching(
        pattern: &str,
        kind: Option<EntryKind>,
        sort: Option<Sort>,
        limit: u64,
        max_depth: u64,
    ) -> Result<Self, Precondition> {
        let pattern = NamePattern::parse(pattern)?;
        let max_depth = Some(max_depth).filter(|depth| *depth > 0);
        Ok(Self { pattern, kind, sort: sort.unwrap_or_default(), limit, max_depth, ignored: false })
    }

    fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

/// Where an entry stands in the listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ListingRank {
    Newest(Reverse<Timestamp>, PathKey),
    Level(usize, PathKey),
}

/// An entry that matches the pattern.
struct GlobMatch {
    /// Its virtual path.
    path: String,
    kind: Kind,
}

fn list(scope: &Scope, wish: &GlobRequest, stop: &AtomicBool) -> Result<GlobOutput, sandbox::FileError> {
    let listers = (0..threads()).map(|_| Lister::new(scope, wish)).collect();
    let max_depth = wish.max_depth.and_then(|depth| usize::try_from(depth).ok()).unwrap_or(usize::MAX);
    let walk = Walk { table: &scope.parts.mounts, start: &scope.place, max_depth, ignored: wish.ignored, stop };
    let mut listers = walk.run(listers)?;
    let mut all = BTreeMap::new();
    listers.iter_mut().for_each(|lister| all.append(&mut lister.first));
    let more = all.len() > wish.limit();
    let mut counts = LeftOutCounts::default();
    let end = all.keys().nth(wish.limit()).filter(|_| wish.sort == Sort::Path).cloned();
    let mut entries = Vec::new();
    for found in all.into_values().take(wish.limit()) {
        if !still(scope, &found) {
            counts.add(LeftOutReason::Changed);
            continue;
        }
        let kind = match found.kind {
            Kind::File => ListedKind::File,
            Kind::Directory => ListedKind::Directory,
            Kind::Other => ListedKind::Other,
        };
        entries.push(GlobEntry { path: shown_path(&found.path).to_owned(), kind });
    }
    let within = |path: &PathKey| end.as_ref().is_none_or(|end| level(path.clone()) <= *end);
    listers.iter().for_each(|lister| lister.left_out.count(end.is_none(), within, &mut counts));
    Ok(GlobOutput {
        path: super::shown(&scope.place).to_owned(),
        count: entries.len() as u64,
        total: end.is_none().then(|| listers.iter().map(|lister| lister.matched).sum()),
        truncated: more,
        entries,
        left_out: counts,
    })
}

/// A name is shown only of what still stands there, seen from the mount. Of what is neither file nor
/// directory, a link perhaps, that is asked of its directory.
fn still(scope: &Scope, found: &GlobMatch) -> bool {
    match found.kind {
        Kind::Other => {
            let above = found.path.rsplit_once('/').map_or("/", |(above, _)| above);
            scope.still(above, Kind::Directory).is_some()
        }
        kind => scope.still(&found.path, kind).is_some(),
    }
}

fn level(path: PathKey) -> ListingRank {
    ListingRank::Level(path.0.matches('/').count() + 1, path)
}

/// One thread of a listing.
struct Lister<'l> {
    scope: &'l Scope,
    wish: &'l GlobRequest,
    /// The first of what this thread found, and one more than is shown.
    first: BTreeMap<ListingRank, GlobMatch>,
    matched: u64,
    left_out: LeftOut,
}

impl<'l> Lister<'l> {
    fn new(scope: &'l Scope, wish: &'l GlobRequest) -> Self {
        Self { scope, wish, first: BTreeMap::new(), matched: 0, left_out: LeftOut::default() }
    }

    fn is_of_kind(&self, entry: &Entry<'_>) -> bool {
        match self.wish.kind {
            None => true,
            Some(EntryKind::File) => entry.kind() == Kind::File,
            Some(EntryKind::Directory) => entry.kind() == Kind::Directory,
        }
    }
}

impl Visitor for Lister<'_> {
    fn found(&mut self, entry: &Entry<'_>) {
        if !self.is_of_kind(entry) {
            return;
        }
        // Whatever the pattern: a count that follows it would tell names, letter by letter.
        if self.scope.closes(|| entry.relative()) || self.scope.closes_elsewhere(entry) {
            return self.left_out.add(entry.relative(), LeftOutReason::Closed);
        }
        if !self.wish.pattern.matches(entry.parents(), entry.name(), || entry.path()) {
            return;
        }
        let relative = entry.relative();
        // As it is now: it may be gone, or hidden.
        let Some(stat) = entry.stat().filter(|stat| stat.kind == entry.kind()) else { return };
        self.matched += 1;
        let rank = match self.wish.sort {
            Sort::Mtime => ListingRank::Newest(Reverse(stat.mtime), PathKey(relative)),
            Sort::Path => level(PathKey(relative)),
        };
        self.first.insert(rank, GlobMatch { path: entry.path(), kind: entry.kind() });
        if self.first.len() > self.wish.limit() + 1 {
            self.first.pop_last();
        }
    }

    fn enters(&mut self, dir: &Entry<'_>) -> bool {
        // With enough on higher levels, what lies deeper is not among the first.
        let full = self.first.len() > self.wish.limit();
        let deeper = match self.first.last_key_value() {
            Some((ListingRank::Level(depth, _), _)) if full => dir.depth() >= *depth,
            _ => false,
        };
        !deeper && (self.wish.pattern.reaches_into(&dir.relative()) || self.scope.closes(|| dir.relative()))
    }

    fn passed_over(&mut self, path: String, why: PassedOver) {
        self.left_out.add(path, why.into());
    }
}

fn said(output: &Value) -> Vec<Content> {
    let Ok(output) = GlobOutput::deserialize(output) else { return Vec::new() };
    let mut text = String::new();
    for entry in &output.entries {
        text.push_str(&in_line(&entry.path));
        text.push_str(if entry.kind == ListedKind::Directory { "/\n" } else { "\n" });
    }
    text.push_str(&summary(&output));
    text.push('\n');
    vec![Content::text(text)]
}

fn summary(output: &GlobOutput) -> String {
    let mut text = match (output.count, output.total) {
        (0, _) => "no matches".to_owned(),
        (shown, Some(total)) if output.truncated => {
            format!("the first {shown} of {total} entries; narrow the pattern or the path, or raise limit")
        }
        (shown, _) if output.truncated => {
            format!("the first {shown} entries; there are more: narrow the pattern or the path, or raise limit")
        }
        (1, _) => "1 entry".to_owned(),
        (shown, _) => format!("{shown} entries"),
    };
    let left_out = output.left_out.said();
    if !left_out.is_empty() {
        text.push_str(&format!("; {left_out}"));
    }
    text
}

fn to_user(input: &impl Listing, output: &Value) -> UserText {
    let Ok(output) = GlobOutput::deserialize(output) else { return UserText::default() };
    UserText { title: format!("{} in {}", input.what(), output.path), summary: summary(&output) }
}
