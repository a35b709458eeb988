//! `write`: a whole file, new or replaced. The content is exact, line ends included, except that a
//! replaced file keeps the byte order mark and the line ends of which the new content says nothing.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_base::{ArtifactKind, Effect, FileFact, LineRange, Reason, Risk, SideEffect, limits};
use portcullis_contract::{
    BuildError, Caller, Content, Precondition, Prepared, Resolved, Semantics, Tool, ToolContext, ToolFailure, UserText,
};
use portcullis_event::fold::Baseline;
use portcullis_sandbox::{self as sandbox, Expect, FileError, Kind, LineEnding, TextFile, WritePlan, WrittenFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CoverageRule, FileTools, access, counted, failure, precondition, require_file, shown};
use crate::deferred_close::LetGo;
use crate::diff::{LineChange, unified_diff};
use crate::{diff_of, executor, on_disk, page, synced};

const DESCRIPTION: &str = "Writes a whole file of the workspace, exactly as given, and makes missing directories. A \
file that exists must have been read in full before, and must not have changed since; it keeps its byte order mark, \
and its CRLF line ends if the content has only LF. To change a part of a file, use `edit`.";

const APPEND: &str = "Puts text at the end of a file of the workspace, exactly as given, or makes the file. A file that \
exists must have been read in full before, and must not have changed since.";

const BOM: char = '\u{feff}';

/// What becomes of a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It holds the content and nothing else.
    Whole,
    /// It holds the content after its own.
    Append,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WriteInput {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    file_path: String,
    /// The whole new content; may be empty.
    content: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct WriteOutput {
    /// Relative to the workspace.
    path: String,
    /// There was no file before.
    created: bool,
    sha256: String,
    /// Bytes of the new content.
    size: u64,
    total_lines: u64,
    added_lines: u64,
    removed_lines: u64,
    /// Where the diff is kept.
    diff_artifact: String,
}

pub(super) fn tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    writing(parts, Mode::Whole, DESCRIPTION, "write")
}

/// The same with what is there kept in front: it asks and needs what `write` does.
pub(super) fn appending(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    writing(parts, Mode::Append, APPEND, "append")
}

fn writing(parts: Arc<FileTools>, mode: Mode, description: &str, name: &str) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    let replaced = LetGo::default();
    Tool::builder::<WriteInput, WriteOutput>(description)
        .semantics(Semantics { destructive: true, ..parts.mutating() })
        .executor(executor(name))
        .resolve(move |input: &WriteInput, caller| {
            named.under_every_name(named.name(&input.file_path)?, caller, &["write"]).map(|found| named.to_write(found))
        })
        .keyed()
        .plan_access(|_, resolved| access("write", Risk::Write, Effect::ResourceWrite, resolved))
        .precheck(move |input, resolved, caller| {
            let parts = Arc::clone(&checked);
            async move { check(&parts, mode, input, &resolved, &caller).await }
        })
        .execute_resolved(move |input, resolved, context| {
            let (parts, replaced) = (Arc::clone(&parts), replaced.clone());
            // A write waits for the disk, and for other writers in its directory.
            synced(move || write(&parts, (mode, &input), &resolved, &context, &replaced))
        })
        .to_model(move |_, output| vec![Content::text(said(mode, output))])
        .to_user(move |_, output| to_user(mode, output))
        .build()
}

async fn check(
    parts: &FileTools,
    mode: Mode,
    input: Arc<WriteInput>,
    resolved: &Resolved,
    caller: &Caller,
) -> Result<Prepared, Precondition> {
    let place = parts.place(resolved).map_err(precondition)?;
    place.check_writable().map_err(precondition)?;
    let facts = |creates: bool, bytes: usize| {
        let bytes = bytes.to_string();
        vec![("creates".to_owned(), creates.to_string()), ("bytes".to_owned(), bytes)]
    };
    if place.kind().is_none() {
        require_values(&place, "", &input.content)?;
        let (bytes, content) = (input.content.len(), Arc::clone(&input));
        let diff = diff_of(bytes as u64, move || unified_diff(shown(&place), None, &content.content).shown());
        return Ok(Prepared { diff: Some(diff), facts: facts(true, bytes), ..Prepared::default() });
    }
    require_file(&place).map_err(precondition)?;
    let size = sandbox::stat(&place).map_err(precondition)?.size;
    let baseline = parts.baseline(caller, &place);
    let coverage = parts.coverage;
    let content = Arc::clone(&input);
    let (diff, bytes) = on_disk(size, move || {
        let found = sandbox::read_file(&place, limits::FILE_MAX).map_err(precondition)?;
        let sha256 = found.sha256;
        let old = TextFile::parse(found.bytes).map_err(|not| precondition(not.at(place.path())))?;
        let baseline = baseline.ok_or_else(|| not_read(&place))?;
        if baseline.sha256 != sha256 {
            return Err(changed(&place));
        }
        require_whole(&place, &old, &baseline, coverage)?;
        let new = mode.over(&old, &content.content).into_owned();
        require_values(&place, old.text(), &new)?;
        let bytes = new.len();
        let compare = move || {
            let old = String::from_utf8(old.to_bytes()).unwrap_or_default();
            unified_diff(shown(&place), Some(&old), &new).shown()
        };
        Ok((diff_of(size.max(bytes as u64), compare), bytes))
    })
    .await?;
    Ok(Prepared { diff: Some(diff), facts: facts(false, bytes), ..Prepared::default() })
}

impl Mode {
    /// What is written over `old`: its byte order mark stays, which a model is never shown, and so do its
    /// line ends if they are all `\r\n`, unless the content has a `\r` and so speaks of line ends itself.
    fn over<'c>(self, old: &TextFile, content: &'c str) -> Cow<'c, str> {
        let mut new = Cow::Borrowed(content);
        if old.line_ending() == LineEnding::CrLf && content.contains('\n') && !content.contains('\r') {
            new = Cow::Owned(content.replace('\n', "\r\n"));
        }
        if self == Self::Append {
            let kept = String::from_utf8(old.to_bytes()).unwrap_or_default();
            return Cow::Owned(kept + &new);
        }
        if old.has_bom() && !content.starts_with(BOM) {
            new.to_mut().insert(0, BOM);
        }
        new
    }
}

/// The file was never delivered to this session.
pub(super) fn not_read(place: &sandbox::ResolvedPlace) -> Precondition {
    let text = format!("`{}` exists and was not read in this session; read it first", shown(place));
    Precondition::failed(Reason::FileNotRead, text)
}

/// The file is not what was delivered.
pub(super) fn changed(place: &sandbox::ResolvedPlace) -> Precondition {
    Precondition::stale(format!("`{}` changed since it was read; read it again", shown(place)))
}

/// Refuses a text with more markers in it than the file has: the file holds the values that the model was not shown, and
/// the markers would take their place.
pub(super) fn require_values(place: &sandbox::ResolvedPlace, old: &str, new: &str) -> Result<(), Precondition> {
    let had = |marker: &str| old.matches(marker).count();
    let Some((marker, _)) = portcullis_secret::markers(new).into_iter().find(|(marker, times)| *times > had(marker))
    else {
        return Ok(());
    };
    let text = format!(
        "`{marker}` would be written into `{}`. That marker stands where a secret value was kept from you; the value itself \
         is in the file. Leave that part of the file as it is: `edit` the lines around it",
        shown(place)
    );
    Err(Precondition::failed(Reason::ContentMismatch, text))
}

pub(super) fn require_whole(
    place: &sandbox::ResolvedPlace,
    old: &TextFile,
    baseline: &Baseline,
    rule: CoverageRule,
) -> Result<(), Precondition> {
    if rule == CoverageRule::Any || baseline.is_full() {
        return Ok(());
    }
    let gap = first_gap(baseline);
    Err(unread(place, old, baseline, gap, LineRange { first: gap.first, last: baseline.total_lines }))
}

/// The lines of `gap` were not delivered; says how to get them. If one of the `needed` lines cannot be
/// had at all, says that instead.
pub(super) fn unread(
    place: &sandbox::ResolvedPlace,
    old: &TextFile,
    baseline: &Baseline,
    gap: LineRange,
    needed: LineRange,
) -> Precondition {
    let needed = old.clip(needed);
    let endless = |line: &u64| {
        let line = LineRange { first: *line, last: *line };
        old.lines(line).len() > limits::READ_BYTES && !baseline.coverage.contains(line)
    };
    if let Some(line) = (needed.first..=needed.last).find(endless) {
        let text = format!(
            "line {line} of `{}` is longer than one page ({} bytes): it cannot be read whole, so it cannot be edited \
             with this tool",
            shown(place),
            limits::READ_BYTES,
        );
        return Precondition::failed(Reason::RegionNotRead, text);
    }
    let LineRange { first, last } = gap;
    let text = format!(
        "lines {first}–{last} of `{}` were not read; read them with start_line {first}, line_count {}",
        shown(place),
        gap.len().min(limits::READ_LINES as u64),
    );
    Precondition::failed(Reason::RegionNotRead, text)
}

/// The first lines of a file that were not delivered.
fn first_gap(baseline: &Baseline) -> LineRange {
    let mut next = 1;
    for range in baseline.coverage.ranges() {
        if range.first > next {
            return LineRange { first: next, last: range.first - 1 };
        }
        next = range.last + 1;
    }
    LineRange { first: next, last: baseline.total_lines }
}

fn write(
    parts: &FileTools,
    (mode, input): (Mode, &WriteInput),
    resolved: &Resolved,
    context: &ToolContext,
    replaced: &LetGo,
) -> Result<WriteOutput, ToolFailure> {
    let place = parts.place(resolved).map_err(failure)?;
    let mut content = Cow::Borrowed(input.content.as_str());
    let mut before = None;
    let expect = match (place.kind(), parts.baseline(context.caller(), &place)) {
        // What was not read may only be created: a file that came meanwhile stays (`target_exists`).
        (None, _) | (Some(_), None) => Expect::Absent,
        (Some(Kind::File), Some(baseline)) => {
            let old = known(&place, &baseline)?;
            require_whole(&place, &old, &baseline, parts.coverage).map_err(ToolFailure::precondition)?;
            content = mode.over(&old, &input.content);
            before = Some(old.to_bytes());
            Expect::Sha256(baseline.sha256)
        }
        (Some(_), Some(_)) => {
            require_file(&place).map_err(failure)?;
            Expect::Absent
        }
    };
    let plan = WritePlan { content: content.as_bytes(), expect, create_parents: true };
    let old = before.as_deref().map(String::from_utf8_lossy);
    let change = || unified_diff(shown(&place), old.as_deref(), &content);
    let (mut written, change) =
        parts.writing(&place, || sandbox::write_file_while(&place, &plan, change).map_err(failure))?;
    replaced.take(std::mem::take(&mut written.replaced));
    let total_lines = page::count_lines(content.strip_prefix(BOM).unwrap_or(&content).as_bytes());
    context.file(FileFact::Written {
        path: place.path().as_str().to_owned(),
        sha256: written.sha256,
        size: written.size,
        mtime: written.mtime,
        total_lines,
    });
    let kept = report(context, &place, &written, &content, change)?;
    Ok(WriteOutput {
        path: shown(&place).to_owned(),
        created: written.before.is_none(),
        sha256: written.sha256.to_string(),
        size: written.size,
        total_lines,
        added_lines: kept.change.added,
        removed_lines: kept.change.removed,
        diff_artifact: kept.diff_artifact,
    })
}

/// The file as it was read. The swap then holds only for exactly that content.
fn known(place: &sandbox::ResolvedPlace, baseline: &Baseline) -> Result<TextFile, ToolFailure> {
    let stale = || ToolFailure::precondition(changed(place));
    let found = sandbox::read_file(place, limits::FILE_MAX).map_err(|error| match error {
        FileError::NotFound { .. } => stale(),
        other => failure(other),
    })?;
    if found.sha256 != baseline.sha256 {
        return Err(stale());
    }
    TextFile::parse(found.bytes).map_err(|not| failure(not.at(place.path())))
}

/// What [`report`] made on the way.
pub(super) struct ReportedWrite {
    pub(super) change: LineChange,
    pub(super) diff_artifact: String,
}

/// States a write: before, after and diff are kept, and what happened is a side effect (tool-contract 15.2).
pub(super) fn report(
    context: &ToolContext,
    place: &sandbox::ResolvedPlace,
    written: &WrittenFile,
    after: &str,
    change: LineChange,
) -> Result<ReportedWrite, ToolFailure> {
    const TEXT: &str = "text/plain";
    for dir in &written.created_dirs {
        let target = dir.display_relative().to_owned();
        let kind = "directory_created".to_owned();
        context.did(SideEffect { kind, target, before: None, after: None, reversible: true });
    }
    // The write is stated even where its evidence is over the limit.
    let keep = |bytes: &[u8]| context.keep(ArtifactKind::File, TEXT, bytes.to_vec()).ok().map(|id| id.to_string());
    let before = written.before.as_ref().map(|before| keep(&before.bytes));
    context.did(SideEffect {
        kind: if before.is_some() { "file_modified" } else { "file_created" }.to_owned(),
        target: shown(place).to_owned(),
        reversible: before != Some(None),
        before: before.flatten(),
        after: keep(after.as_bytes()),
    });
    if !written.synced {
        context.warn("the disk did not confirm the new file name; a power cut may bring the old content back");
    }
    let diff = context.keep(ArtifactKind::Diff, "text/x-diff", change.text.clone().into_bytes())?;
    Ok(ReportedWrite { change, diff_artifact: diff.to_string() })
}

/// What was done to the file.
fn verb(mode: Mode, output: &WriteOutput) -> &'static str {
    match mode {
        _ if output.created => "created",
        Mode::Whole => "replaced",
        Mode::Append => "appended to",
    }
}

fn said(mode: Mode, output: &Value) -> String {
    let Ok(output) = WriteOutput::deserialize(output) else { return String::new() };
    let verb = verb(mode, &output);
    format!("{verb} {}: {}, {}", output.path, counted(output.total_lines, "line"), counted(output.size, "byte"))
}

fn to_user(mode: Mode, output: &Value) -> UserText {
    let Ok(output) = WriteOutput::deserialize(output) else { return UserText::default() };
    let summary = if output.created {
        format!("created, {}", counted(output.total_lines, "line"))
    } else {
        format!("{}, +{} −{} lines", verb(mode, &output), output.added_lines, output.removed_lines)
    };
    UserText { title: format!("Write {}", output.path), summary }
}
