//! `artifact_read`: one page of kept evidence, read in windows and never whole (tool-contract 17.2).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use portcullis_base::{
    ArtifactId, ArtifactKind, ArtifactRef, Effect, EffectSet, Reason, Risk, RiskSet, Window, limits,
};
use portcullis_contract::{
    AccessRequest, Action, BuildError, Content, NamedKind, Precondition, Resolved, Resource, Semantics, Strategy, Tool,
    ToolContext, ToolFailure, ToolName, UserText,
};
use portcullis_pipeline::{ArtifactShelf, ShelfError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::count::{Count, Pair};
use crate::page::{self, PageLimits};
use crate::{artifact_grep, executor, on_disk, tool_name};

const LINES: u64 = limits::READ_LINES as u64;
const BYTES: u64 = limits::READ_BYTES as u64;
/// Lines shown before and after what `around` finds.
const AROUND: u64 = 20;
/// Bytes looked at in one go.
const CHUNK: u64 = 64 << 10;
/// A NUL this early means that an artifact is not text.
const SNIFF: u64 = 8 << 10;

const DESCRIPTION: &str = "Reads a page of an artifact: the full output behind a cut result, or the content of a file \
before or after a change, by its id (`art_…`). Without a selector the first page; else one of lines, tail, around and \
range. A page holds at most 2000 lines and 51200 bytes and says how to read on.";

/// `artifact_read` and `artifact_grep` over a shelf.
///
/// # Errors
/// Never for the tool as it is written: a tool that contradicts itself is a defect of this crate.
pub fn artifact_tools(shelf: ArtifactShelf) -> Result<BTreeMap<ToolName, Tool>, BuildError> {
    let grep = artifact_grep::tool(shelf.clone())?;
    Ok(BTreeMap::from([(tool_name("artifact_read"), tool(shelf)?), (tool_name("artifact_grep"), grep)]))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ArtifactReadInput {
    /// The artifact's id, as an earlier result names it.
    #[schemars(regex(pattern = r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    id: String,
    /// `[start, end]`: bytes counted from 0, end not included; an end of 0 or less means to the end.
    #[serde(default)]
    range: Pair,
    /// The place where this exact text first stands, with 20 lines before and after it. Empty means not used.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    around: Option<String>,
    /// `[first, last]`: these lines, counted from 1, both included; a last of 0 or less means to the end.
    #[serde(default)]
    lines: Pair,
    /// This many lines from the end. 0 or less, or absent, means not used; above 2000 means 2000.
    #[serde(default)]
    tail: Count<0, LINES>,
}

/// The part of an artifact that a call reads.
#[derive(Debug, Clone)]
enum ArtifactRange {
    Head,
    Range { start: u64, end: u64 },
    Lines { first: u64, last: u64 },
    Tail(u64),
    Around(String),
}

impl ArtifactReadInput {
    fn around(&self) -> Option<&str> {
        self.around.as_deref().filter(|text| !text.is_empty())
    }

    fn wanted(&self) -> Result<ArtifactRange, Precondition> {
        let (range, lines) = (self.range.given(), self.lines.given());
        let selectors = [range.is_some(), self.around().is_some(), lines.is_some(), self.tail.given()];
        if selectors.iter().filter(|used| **used).count() > 1 {
            return Err(Precondition::schema("", "give at most one of range, around, lines and tail"));
        }
        let open_end = |end: u64| if end == 0 { u64::MAX } else { end };
        if let Some([start, end]) = range {
            let end = open_end(end);
            if end < start {
                return Err(Precondition::schema(
                    "/range",
                    format!("range ends at {end}, before it begins at {start}"),
                ));
            }
            return Ok(ArtifactRange::Range { start, end });
        }
        if let Some([first, last]) = lines {
            let (first, last) = (first.max(1), open_end(last));
            if last < first {
                return Err(Precondition::schema(
                    "/lines",
                    format!("lines ends at {last}, before it begins at {first}"),
                ));
            }
            return Ok(ArtifactRange::Lines { first, last });
        }
        if let Some(text) = self.around() {
            return Ok(ArtifactRange::Around(text.to_owned()));
        }
        Ok(if self.tail.given() { ArtifactRange::Tail(self.tail.value()) } else { ArtifactRange::Head })
    }

    fn artifact(&self) -> Result<ArtifactId, Precondition> {
        self.id.parse().map_err(|error| Precondition::schema("/id", format!("{error}")))
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ArtifactPage {
    id: String,
    mime: String,
    /// Bytes of the whole artifact.
    size: u64,
    total_lines: u64,
    /// The producer's whole output; false if some of it was discarded.
    complete: bool,
    /// Where the page begins, in bytes from 0.
    start: u64,
    /// Where it ends, not included.
    end: u64,
    /// The line the page begins in, counted from 1.
    first_line: u64,
    /// The line it ends in; below first_line if the page is empty.
    last_line: u64,
    /// The page ended before everything that was asked for.
    truncated: bool,
    /// Where to read on, as a `range`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_range: Option<[u64; 2]>,
    /// Where to read on, as `lines`, if the page ends with a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_lines: Option<[u64; 2]>,
    /// The text itself; not kept twice in the session's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

fn tool(shelf: ArtifactShelf) -> Result<Tool, BuildError> {
    Tool::builder::<ArtifactReadInput, ArtifactPage>(DESCRIPTION)
        .semantics(Semantics {
            effects: EffectSet::from([Effect::SessionRead]),
            truncation: Strategy::Head,
            ..Semantics::read_only()
        })
        .executor(executor("artifact_read"))
        .resolve(|input: &ArtifactReadInput, _| {
            input.wanted()?;
            let own = Resource::own(NamedKind::Artifact, input.artifact()?.to_string());
            Ok(Resolved { resources: vec![own], ..Resolved::default() })
        })
        .plan_access(|_, resolved| {
            let own = resolved.resources.iter().cloned();
            own.map(|own| AccessRequest::new(Action::new("artifact_read"), own, RiskSet::from([Risk::Read]))).collect()
        })
        .execute(move |input, context| {
            let shelf = shelf.clone();
            async move { read(&shelf, &input, &context).await }
        })
        .to_model(|_, output| match output.get("text").and_then(Value::as_str) {
            Some(text) if !text.is_empty() => vec![Content::text(text)],
            _ => Vec::new(),
        })
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_text(output))
        .build()
}

async fn read(
    shelf: &ArtifactShelf,
    input: &ArtifactReadInput,
    context: &ToolContext,
) -> Result<ArtifactPage, ToolFailure> {
    let id = input.artifact().map_err(ToolFailure::precondition)?;
    let wanted = input.wanted().map_err(ToolFailure::precondition)?;
    if let Some(lowered) = input.tail.lowered("tail") {
        context.warn(lowered);
    }
    let (artifact, window) = shelf.open(id, Some(context.caller().session_id)).await.map_err(closed)?;
    on_disk(window.len(), move || page_of(&artifact, &window, &wanted)).await
}

/// Why the shelf gave nothing. The store's own words may name places on the host and stay inside.
pub(crate) fn closed(error: ShelfError) -> ToolFailure {
    match error {
        ShelfError::NotFound(_) => ToolFailure::precondition(Precondition::failed(Reason::NotFound, error.to_string())),
        ShelfError::Expired { .. } => ToolFailure::new("artifact_expired", error.to_string()),
        ShelfError::Lost(_) => ToolFailure::new("artifact_lost", error.to_string()),
        ShelfError::Store(_) => {
            ToolFailure::new("store_error", "the store could not be read; try again").retryable(true)
        }
    }
}

fn page_of(
    artifact: &ArtifactRef,
    window: &Arc<dyn Window>,
    wanted: &ArtifactRange,
) -> Result<ArtifactPage, ToolFailure> {
    let unreadable = |error: io::Error| {
        ToolFailure::new("io_error", format!("artifact {} could not be read: {}", artifact.id, error.kind()))
            .retryable(true)
    };
    if is_binary(artifact, &**window).map_err(unreadable)? {
        let text = format!("artifact {} is not text ({}, {} bytes)", artifact.id, artifact.mime, artifact.bytes);
        return Err(ToolFailure::precondition(Precondition::failed(Reason::BinaryFile, text)));
    }
    let Some(span) = select(&**window, wanted).map_err(unreadable)? else {
        let text = format!("the text does not stand in artifact {}; search for a shorter part of it", artifact.id);
        return Err(ToolFailure::precondition(Precondition::failed(Reason::TargetNotFound, text)));
    };
    show(artifact, &**window, span).map_err(unreadable)
}

/// A page: bytes `start..end`, and whether more was asked for after it.
struct Span {
    start: u64,
    end: u64,
    truncated: bool,
}

/// What processes wrote is shown as text whatever it holds; of the rest, what begins like text is.
pub(crate) fn is_binary(artifact: &ArtifactRef, window: &dyn Window) -> io::Result<bool> {
    match artifact.kind {
        ArtifactKind::CommandOutput => Ok(false),
        ArtifactKind::Media => Ok(true),
        _ => Ok(window.slice(0, SNIFF)?.contains(&0)),
    }
}

/// Finds the page. `None` if the text to find is not there.
fn select(window: &dyn Window, wanted: &ArtifactRange) -> io::Result<Option<Span>> {
    let len = window.len();
    Ok(Some(match wanted {
        ArtifactRange::Head => head(window, 0, len)?,
        ArtifactRange::Range { start, end } => {
            let start = boundary(window, (*start).min(len))?;
            head(window, start, back_to_boundary(window, (*end).min(len))?.max(start))?
        }
        ArtifactRange::Lines { first, last } => {
            let start = line_start(window, *first)?;
            let end = if *last == u64::MAX { len } else { line_start(window, last + 1)? };
            head(window, start, end)?
        }
        ArtifactRange::Tail(lines) => tail(window, *lines)?,
        ArtifactRange::Around(text) => match find(window, text.as_bytes())? {
            Some(at) => around(window, at, at + text.len() as u64)?,
            None => return Ok(None),
        },
    }))
}

/// The first page of `start..end`.
fn head(window: &dyn Window, start: u64, end: u64) -> io::Result<Span> {
    // One byte more than a page holds: a line that this slice cuts cannot fit, and so is not taken for whole.
    let text = window.slice(start, end.min(start.saturating_add(BYTES + 1)))?;
    let ends_at = start + page::head(&text, &PageLimits::default()).len as u64;
    Ok(Span { start, end: ends_at, truncated: ends_at < end })
}

/// The last lines, as many as a page holds; of a last line longer than that, its end.
fn tail(window: &dyn Window, lines: u64) -> io::Result<Span> {
    let len = window.len();
    // As in `head`: a first line that this slice cuts cannot fit.
    let from = len.saturating_sub(BYTES + 1);
    let text = window.slice(from, len)?;
    let start = match page::tail(&text, &PageLimits { lines, ..PageLimits::default() }) {
        Some(at) => from + at as u64,
        None => boundary(window, len.saturating_sub(BYTES))?,
    };
    let truncated = start > 0 && line_ends(window, start, len)? < lines;
    Ok(Span { start, end: len, truncated })
}

/// The lines round `at..to`, at most half a page on either side.
fn around(window: &dyn Window, at: u64, to: u64) -> io::Result<Span> {
    let half = BYTES / 2 - (to - at);
    let before = window.slice(at.saturating_sub(half), at)?;
    let after = window.slice(to, to + half)?;
    let line_of = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lead =
        page::tail(&before[..line_of], &PageLimits { lines: AROUND, ..PageLimits::default() }).unwrap_or(line_of);
    let start = at - (before.len() - lead) as u64;
    let mut ends = after.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let trail = ends.nth(usize::try_from(AROUND).unwrap_or(0)).unwrap_or(after.len());
    let start = boundary(window, start)?;
    let end = back_to_boundary(window, to + trail as u64)?;
    Ok(Span { start, end, truncated: false })
}

/// The first place at or after `at` where a character begins.
fn boundary(window: &dyn Window, at: u64) -> io::Result<u64> {
    let next = window.slice(at, at + 4)?;
    Ok(at + next.iter().position(|byte| page::begins_char(*byte)).unwrap_or(0) as u64)
}

/// The last place at or before `at` where a character begins.
fn back_to_boundary(window: &dyn Window, at: u64) -> io::Result<u64> {
    if at >= window.len() {
        return Ok(window.len());
    }
    let from = at.saturating_sub(3);
    let before = window.slice(from, at + 1)?;
    Ok(before.iter().rposition(|byte| page::begins_char(*byte)).map_or(at, |found| from + found as u64))
}

/// Where line `number` begins; the end for a line past the last.
fn line_start(window: &dyn Window, number: u64) -> io::Result<u64> {
    let mut left = number.saturating_sub(1);
    let mut at = 0;
    while left > 0 && at < window.len() {
        let chunk = window.slice(at, at + CHUNK)?;
        if chunk.is_empty() {
            break;
        }
        for (i, _) in chunk.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            left -= 1;
            if left == 0 {
                return Ok(at + i as u64 + 1);
            }
        }
        at += chunk.len() as u64;
    }
    Ok(if left == 0 { 0 } else { window.len() })
}

/// Line ends in `start..end`.
fn line_ends(window: &dyn Window, start: u64, end: u64) -> io::Result<u64> {
    let (mut at, mut ends) = (start, 0);
    while at < end {
        let chunk = window.slice(at, end.min(at + CHUNK))?;
        if chunk.is_empty() {
            break;
        }
        ends += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        at += chunk.len() as u64;
    }
    Ok(ends)
}

/// Where `text` first stands.
fn find(window: &dyn Window, text: &[u8]) -> io::Result<Option<u64>> {
    let Some(first) = text.first() else { return Ok(None) };
    let mut at = 0;
    while at < window.len() {
        // Chunks overlap by all but one byte of the text: no place is missed between two.
        let chunk = window.slice(at, at + CHUNK + text.len() as u64 - 1)?;
        let begins = chunk.iter().enumerate().filter(|(_, byte)| *byte == first).map(|(i, _)| i);
        if let Some(found) = begins.into_iter().find(|i| chunk[*i..].starts_with(text)) {
            return Ok(Some(at + found as u64));
        }
        at += CHUNK;
    }
    Ok(None)
}

fn show(artifact: &ArtifactRef, window: &dyn Window, span: Span) -> io::Result<ArtifactPage> {
    let Span { start, end, truncated } = span;
    let size = window.len();
    let bytes = window.slice(start, end)?;
    let first_line = line_ends(window, 0, start)? + 1;
    let last_line = first_line + page::count_lines(&bytes) - 1;
    let ends_line = size > 0 && window.slice(size - 1, size)? == b"\n";
    let total_lines = first_line - 1 + line_ends(window, start, size)? + u64::from(size > 0 && !ends_line);
    let at_line_end = bytes.last() == Some(&b'\n');
    let more = end < size;
    Ok(ArtifactPage {
        id: artifact.id.to_string(),
        mime: artifact.mime.clone(),
        size,
        total_lines,
        complete: artifact.complete,
        start,
        end,
        first_line,
        last_line,
        truncated,
        next_range: (more && !at_line_end).then(|| [end, size.min(end + BYTES)]),
        next_lines: (more && at_line_end).then(|| [last_line + 1, total_lines.min(last_line + LINES)]),
        text: Some(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

fn to_user(output: &Value) -> UserText {
    let Ok(page) = ArtifactPage::deserialize(output) else { return UserText::default() };
    let ArtifactPage { first_line: first, last_line: last, total_lines, size, .. } = page;
    let mut summary = if size == 0 {
        "the artifact is empty".to_owned()
    } else if last < first {
        format!("nothing there; the artifact has {total_lines} lines, {size} bytes")
    } else {
        format!("lines {first}–{last} of {total_lines} (bytes {}–{} of {size})", page.start, page.end)
    };
    if let Some([first, last]) = page.next_lines {
        summary.push_str(&format!("; read on with lines [{first}, {last}]"));
    }
    if let Some([start, end]) = page.next_range {
        summary.push_str(&format!("; read on with range [{start}, {end}]"));
    }
    if !page.complete {
        summary.push_str("; the producer wrote more than was kept");
    }
    UserText { title: format!("Read {}", page.id), summary }
}

fn without_text(output: &Value) -> Value {
    let mut kept = output.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.remove("text");
    }
    kept
}
