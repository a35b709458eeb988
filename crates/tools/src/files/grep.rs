//! `grep`: the lines of files that match, in the order of paths.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use grep_regex::RegexMatcher;
use portcullis_contract::{BuildError, Content, Strategy, Tool, ToolContext, ToolFailure, UserText};
use portcullis_sandbox::{self as sandbox, Kind, Walk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileTools, counted, failure};
use crate::count::{Count, Flag};
use crate::executor;
use crate::search::file_search::{FileLines, FileSearch, FirstMatches};
use crate::search::left_out::{LeftOutCounts, LeftOutReason};
use crate::search::order::PathKey;
use crate::search::pattern::{self, Style};
use crate::search::scope::{self, Scope, in_line, shown_path};
use crate::search::{anchors, stoppable, threads};

const DESCRIPTION: &str = "Searches the text files of the workspace, or of one directory or file of it, for lines that \
match a regular expression (Rust syntax, one line at a time; `literal` takes the pattern as plain text). Shows the first \
lines as path:line:text, in the order of paths. Files that .gitignore names, binary files and links are left out; a \
path that is named is searched. To see more of a file, `read` it.";

#[derive(Debug, Deserialize, JsonSchema)]
struct GrepInput {
    /// What to look for: a regular expression, matched against each line.
    #[schemars(length(min = 1, max = 10000))]
    pattern: String,
    /// The directory or file to search, relative to the workspace. Absent or empty means the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: Flag,
    /// Take upper and lower case as the same.
    #[serde(default)]
    ignore_case: Flag,
    /// How many matching lines to show. 0 or less, or absent, means 20; above 200 means 200.
    #[serde(default)]
    limit: Count<20, 200>,
}

impl GrepInput {
    fn style(&self) -> Style {
        Style { literal: self.literal.0, ignore_case: self.ignore_case.0 }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct GrepOutput {
    /// The place that was searched, relative to the workspace.
    path: String,
    /// How many matching lines are shown.
    count: u64,
    /// There are more matching lines than are shown.
    truncated: bool,
    /// In the order of paths.
    matches: Vec<Match>,
    /// The files of these lines, with all their matching lines counted.
    files: Vec<FileCount>,
    /// How many files were searched; absent if the search ended at its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched: Option<u64>,
    /// What was not searched.
    left_out: LeftOutCounts,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Match {
    path: String,
    /// Counted from 1.
    line: u64,
    /// The line, at most 240 characters of it.
    preview: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileCount {
    path: String,
    match_count: u64,
}

pub(super) fn tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<GrepInput, GrepOutput>(DESCRIPTION)
        .semantics(scope::semantics(Strategy::MatchContext))
        .executor(executor("grep"))
        .resolve(move |input: &GrepInput, caller| {
            pattern::compile(&input.pattern, input.style())?;
            let place = scope::name(&named, input.path.as_deref())?;
            named.under_every_name(place, caller, &["grep", "read"]).map(|found| named.to_read(found))
        })
        .plan_access(|_, resolved| scope::plan("grep", resolved))
        .precheck(move |_, resolved, _| {
            let checked = scope::check(&checked, &resolved, Kind::File);
            async move { checked }
        })
        .execute_resolved(move |input, resolved, context| {
            let place = parts.place(&resolved).map(|place| (Arc::clone(&parts), place));
            async move {
                let (parts, place) = place.map_err(failure)?;
                let scope = Scope::new(parts, place, context.caller(), "grep");
                grep(input, scope, context).await
            }
        })
        .to_model(|_, output| said(output))
        .to_user(to_user)
        .anchors(anchors::by_file)
        .build()
}

async fn grep(input: GrepInput, scope: Scope, context: ToolContext) -> Result<GrepOutput, ToolFailure> {
    let matcher = pattern::compile(&input.pattern, input.style()).map_err(ToolFailure::precondition)?;
    if let Some(lowered) = input.limit.lowered("limit") {
        context.warn(lowered);
    }
    let limit = usize::try_from(input.limit.value()).unwrap_or(usize::MAX);
    let output = stoppable(&context, move |stop| search(&scope, &matcher, limit, stop)).await.map_err(failure)?;
    if output.matches.is_empty() {
        context.nothing_found();
    }
    Ok(output)
}

fn search(
    scope: &Scope,
    matcher: &RegexMatcher,
    limit: usize,
    stop: &AtomicBool,
) -> Result<GrepOutput, sandbox::FileError> {
    // One line more than is shown tells whether there are more.
    let first = FirstMatches::new(limit.saturating_add(1));
    let threads = if scope.place.kind() == Some(Kind::Directory) { threads() } else { 1 };
    let searchers = (0..threads).map(|_| FileSearch::new(scope, matcher.clone(), &first, stop)).collect();
    let walk = Walk { table: &scope.parts.mounts, start: &scope.place, max_depth: usize::MAX, ignored: false, stop };
    let searchers = walk.run(searchers)?;
    let mut counts = LeftOutCounts::default();
    let mut files = first.take();
    // Names are shown only of what still stands there, seen from the mount.
    files.retain(|_, file| {
        let still = scope.still(&file.path, Kind::File);
        if still.is_none() {
            counts.add(LeftOutReason::Changed);
        }
        still.is_some()
    });
    let found: usize = files.values().map(|file| file.lines.len()).sum();
    let mut shown = GrepResults::default();
    for file in files.values() {
        shown.add(file, limit);
    }
    let ended = files.last_key_value().map(|(path, _)| path).filter(|_| found > limit);
    let within = |path: &PathKey| ended.is_none_or(|end| path <= end);
    searchers.iter().for_each(|searcher| searcher.left_out.count(ended.is_none(), within, &mut counts));
    let more_in_files = files.values().map(|file| file.count).sum::<u64>() > shown.matches.len() as u64;
    Ok(GrepOutput {
        path: super::shown(&scope.place).to_owned(),
        count: shown.matches.len() as u64,
        truncated: more_in_files,
        searched: ended.is_none().then(|| searchers.iter().map(|searcher| searcher.searched).sum()),
        matches: shown.matches,
        files: shown.files,
        left_out: counts,
    })
}

/// The matches and counts that a search shows.
#[derive(Default)]
struct GrepResults {
    matches: Vec<Match>,
    files: Vec<FileCount>,
}

impl GrepResults {
    fn add(&mut self, file: &FileLines, limit: usize) {
        let room = limit - self.matches.len();
        let path = shown_path(&file.path);
        for line in file.lines.iter().take(room) {
            self.matches.push(Match { path: path.to_owned(), line: line.number, preview: line.preview.clone() });
        }
        if room > 0 {
            self.files.push(FileCount { path: path.to_owned(), match_count: file.count });
        }
    }
}

fn said(output: &Value) -> Vec<Content> {
    let Ok(output) = GrepOutput::deserialize(output) else { return Vec::new() };
    let mut text = String::new();
    for found in &output.matches {
        text.push_str(&format!("{}:{}:{}\n", in_line(&found.path), found.line, found.preview));
    }
    text.push_str(&summary(&output));
    text.push('\n');
    vec![Content::text(text)]
}

fn summary(output: &GrepOutput) -> String {
    let found = counted(output.count, "matching line");
    let mut text = match (output.count, output.searched) {
        (0, Some(files)) => format!("no matches in {}", counted(files, "file")),
        _ if output.truncated => {
            format!("the first {found}; there are more: narrow the pattern or the path, or raise limit")
        }
        (_, Some(files)) => format!("{found} in {} of {}", output.files.len(), counted(files, "file")),
        _ => found,
    };
    let left_out = output.left_out.said();
    if !left_out.is_empty() {
        text.push_str(&format!("; {left_out}"));
    }
    text
}

fn to_user(input: &GrepInput, output: &Value) -> UserText {
    let Ok(output) = GrepOutput::deserialize(output) else { return UserText::default() };
    UserText { title: format!("Grep {} in {}", input.pattern, output.path), summary: summary(&output) }
}
