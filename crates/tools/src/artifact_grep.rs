//! `artifact_grep`: the matching lines of kept evidence, each with the lines round it (tool-contract 17.2).

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use portcullis_base::{ArtifactId, ArtifactRef, Effect, EffectSet, Reason, Risk, RiskSet, Window};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Content, NamedKind, Precondition, Resolved, Resource, Semantics, Strategy, Tool,
    ToolContext, ToolFailure, UserText,
};
use portcullis_pipeline::ArtifactShelf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifacts::{closed, is_binary};
use crate::count::{Count, Flag};
use crate::executor;
use crate::files::counted;
use crate::search::lines::preview;
use crate::search::pattern::{self, Style};
use crate::search::pieces::{OVERLAP, PIECE, PieceBorders, Pieces};
use crate::search::{anchors, stoppable};

const DESCRIPTION: &str = "Searches an artifact, by its id (`art_…`), for lines that match a regular expression (Rust \
syntax, one line at a time; `literal` takes the pattern as plain text). Shows the first matching lines as number:text \
with the lines round them as number-text; `artifact_read` shows more of a place with lines.";

#[derive(Debug, Deserialize, JsonSchema)]
struct ArtifactGrepInput {
    /// The artifact's id, as an earlier result names it.
    #[schemars(regex(pattern = r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    id: String,
    /// What to look for: a regular expression, matched against each line.
    #[schemars(length(min = 1, max = 10000))]
    pattern: String,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: Flag,
    /// Lines shown before and after each match. 0 or less, or absent, means 2; above 20 means 20.
    #[serde(default)]
    context: Count<2, 20>,
    /// How many matching lines to show. 0 or less, or absent, means 20; above 200 means 200.
    #[serde(default)]
    limit: Count<20, 200>,
}

impl ArtifactGrepInput {
    fn style(&self) -> Style {
        Style { literal: self.literal.0, ignore_case: false }
    }

    fn artifact(&self) -> Result<ArtifactId, Precondition> {
        self.id.parse().map_err(|error| Precondition::schema("/id", format!("{error}")))
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ArtifactMatches {
    id: String,
    /// How many matching lines are shown.
    count: u64,
    /// How many there are.
    total: u64,
    /// There are more than are shown.
    truncated: bool,
    /// The producer's whole output; false if some of it was discarded.
    complete: bool,
    /// The matching lines and those round them.
    lines: Vec<ShownLine>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ShownLine {
    /// Counted from 1.
    line: u64,
    /// At most 240 characters of it.
    text: String,
    /// It matches, and is not only near one that does.
    matches: bool,
}

pub(crate) fn tool(shelf: ArtifactShelf) -> Result<Tool, BuildError> {
    Tool::builder::<ArtifactGrepInput, ArtifactMatches>(DESCRIPTION)
        .semantics(Semantics {
            effects: EffectSet::from([Effect::SessionRead]),
            truncation: Strategy::MatchContext,
            ..Semantics::read_only()
        })
        .executor(executor("artifact_grep"))
        .resolve(|input: &ArtifactGrepInput, _| {
            pattern::compile(&input.pattern, input.style())?;
            let own = Resource::own(NamedKind::Artifact, input.artifact()?.to_string());
            Ok(Resolved { resources: vec![own], ..Resolved::default() })
        })
        .plan_access(|_, resolved| {
            let own = resolved.resources.iter().cloned();
            own.map(|own| AccessRequest::new(Action::new("artifact_grep"), own, RiskSet::from([Risk::Read]))).collect()
        })
        .execute(move |input, context| {
            let shelf = shelf.clone();
            async move { grep(&shelf, input, &context).await }
        })
        .to_model(|_, output| said(output))
        .to_user(to_user)
        .anchors(anchors::of_matches)
        .build()
}

async fn grep(
    shelf: &ArtifactShelf,
    input: ArtifactGrepInput,
    context: &ToolContext,
) -> Result<ArtifactMatches, ToolFailure> {
    let id = input.artifact().map_err(ToolFailure::precondition)?;
    let lowered = [input.context.lowered("context"), input.limit.lowered("limit")];
    lowered.into_iter().flatten().for_each(|line| context.warn(line));
    let (artifact, window) = shelf.open(id, Some(context.caller().session_id)).await.map_err(closed)?;
    let (found, long) = stoppable(context, move |stop| search(&artifact, &window, &input, stop)).await?;
    if let Some(line) = long {
        context.warn(format!(
            "line {line} is longer than {} KiB, so it was searched in pieces: `^` and `$` may match at the ends of a piece, a \
             match of more than {} KiB may be missed, and so may the lines round it",
            PIECE >> 10,
            OVERLAP >> 10
        ));
    }
    if found.lines.is_empty() {
        context.nothing_found();
    }
    Ok(found)
}

/// What was found, and the first line that was too long to be searched as one.
fn search(
    artifact: &ArtifactRef,
    window: &Arc<dyn Window>,
    input: &ArtifactGrepInput,
    stop: &AtomicBool,
) -> Result<(ArtifactMatches, Option<u64>), ToolFailure> {
    let unreadable = |error: io::Error| {
        let text = format!("artifact {} could not be searched: {}", artifact.id, error.kind());
        ToolFailure::new("io_error", text).retryable(true)
    };
    if is_binary(artifact, &**window).map_err(unreadable)? {
        let text = format!("artifact {} is not text ({}, {} bytes)", artifact.id, artifact.mime, artifact.bytes);
        return Err(ToolFailure::precondition(Precondition::failed(Reason::BinaryFile, text)));
    }
    let matcher = pattern::compile(&input.pattern, input.style()).map_err(ToolFailure::precondition)?;
    let context = usize::try_from(input.context.value()).unwrap_or(0);
    let (near, limit) = (input.context.value(), input.limit.value());
    let (reader, borders) = Pieces::new(WindowReader { window: &**window, at: 0, stop });
    let long = borders.clone();
    let mut near =
        NearbyLines { matcher: &matcher, borders, context: near, limit, total: 0, newest: 0, lines: Vec::new() };
    pattern::searcher(context).search_reader(&matcher, reader, &mut near).map_err(unreadable)?;
    let count = near.total.min(near.limit);
    let found = ArtifactMatches {
        id: artifact.id.to_string(),
        count,
        total: near.total,
        truncated: near.total > count,
        complete: artifact.complete,
        lines: near.lines,
    };
    Ok((found, long.first_long()))
}

/// The artifact as a stream that ends when the search is stopped.
struct WindowReader<'w> {
    window: &'w dyn Window,
    at: u64,
    stop: &'w AtomicBool,
}

impl Read for WindowReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let read = self.window.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Matching lines and those near them, up to the context of the last match shown.
struct NearbyLines<'m> {
    matcher: &'m grep_regex::RegexMatcher,
    borders: PieceBorders,
    context: u64,
    limit: u64,
    total: u64,
    /// The newest line that matches.
    newest: u64,
    lines: Vec<ShownLine>,
}

impl NearbyLines<'_> {
    /// Whether a line belongs to a match that is shown. What comes before a match past the limit does
    /// only if it is also near the last one shown.
    fn shows(&self, number: u64) -> bool {
        let last = self.lines.iter().rev().find(|line| line.matches).map_or(0, |line| line.line);
        self.total < self.limit || number <= last.saturating_add(self.context)
    }
}

impl Sink for NearbyLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = self.borders.line(found.line_number().unwrap_or(0));
        // Another piece of a line that was counted.
        if line == self.newest {
            return Ok(true);
        }
        self.newest = line;
        self.total += 1;
        if self.total <= self.limit {
            // A piece of the same line that does not match came before, as context.
            self.lines.pop_if(|last| last.line == line);
            self.lines.push(ShownLine { line, text: preview(found.bytes(), Some(self.matcher)), matches: true });
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.borders.line(near.line_number().unwrap_or(0));
        let again = self.lines.last().is_some_and(|last| last.line == line);
        if !again && self.shows(line) {
            self.lines.push(ShownLine { line, text: preview(near.bytes(), None), matches: false });
        }
        Ok(true)
    }
}

fn said(output: &Value) -> Vec<Content> {
    let Ok(output) = ArtifactMatches::deserialize(output) else { return Vec::new() };
    let mut text = String::new();
    let mut before: Option<u64> = None;
    for ShownLine { line, text: shown, matches } in &output.lines {
        if before.is_some_and(|before| line.saturating_sub(before) > 1) {
            text.push_str("--\n");
        }
        text.push_str(&format!("{line}{}{shown}\n", if *matches { ':' } else { '-' }));
        before = Some(*line);
    }
    text.push_str(&summary(&output));
    text.push('\n');
    vec![Content::text(text)]
}

fn summary(output: &ArtifactMatches) -> String {
    let mut text = match output.total {
        0 => "no matches".to_owned(),
        total if output.truncated => {
            format!("the first {} of {total} matching lines; narrow the pattern, or raise limit", output.count)
        }
        total => counted(total, "matching line"),
    };
    if !output.complete {
        text.push_str("; the producer wrote more than was kept");
    }
    text
}

fn to_user(input: &ArtifactGrepInput, output: &Value) -> UserText {
    let Ok(output) = ArtifactMatches::deserialize(output) else { return UserText::default() };
    UserText { title: format!("Grep {} in {}", input.pattern, output.id), summary: summary(&output) }
}
