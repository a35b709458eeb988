//! `read`: one page of a text file, or a medium. Records what was delivered (tool-contract §19).

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_base::{ArtifactKind, Digest, Effect, EffectSet, FileFact, LineRange, Risk, limits};
use portcullis_contract::{
    BuildError, Content, DefaultPolicy, Precondition, Prepared, Semantics, Strategy, Tool, ToolContext, ToolFailure,
    UserText,
};
use portcullis_pipeline::PathRules;
use portcullis_sandbox::{self as sandbox, ContentKind, FileContent, LineEnding, TextFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileTools, access, counted, failure, precondition, require_file, shown};
use crate::count::{Count, Pair, UNBOUNDED};
use crate::page::{self, PageLimits};
use crate::profile::default_policy;
use crate::{executor, image, on_disk};

const LINES: u64 = limits::READ_LINES as u64;
const BYTES: u64 = limits::READ_BYTES as u64;

const DESCRIPTION: &str = "Reads a file of the workspace. Text comes exactly as it stands, without line numbers, as one \
page of at most 2000 lines and 51200 bytes; a longer file says how to read on; \
choose other lines with one of view_range, start_line and line_count, and tail_lines. Images and PDF files come as media. \
Lines that an earlier result still shows are pointed to and not sent again (`file_unchanged`). \
A file must be read before `edit` or `write` may change it.";

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadInput {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    file_path: String,
    /// `[first, last]`: these lines, counted from 1, both included; a last of 0 or less means to the end.
    #[serde(default)]
    view_range: Pair,
    /// The first line to read, counted from 1; give line_count with it. 0 or less, or absent, means 1.
    #[serde(default)]
    start_line: Count<1, UNBOUNDED>,
    /// How many lines to read. 0 or less, or absent, means 2000; above 2000 means 2000.
    #[serde(default)]
    line_count: Count<LINES, LINES>,
    /// Read this many lines from the end instead. 0 or less, or absent, means not used; above 2000 means 2000.
    #[serde(default)]
    tail_lines: Count<0, LINES>,
    /// End the page after at most this many characters. 0 or less, or absent, means 51200; above 51200 means 51200.
    #[serde(default)]
    max_chars: Count<BYTES, BYTES>,
}

/// The part of a file that a call reads.
#[derive(Debug, Clone, Copy)]
enum ReadRange {
    /// From the first line on, as many as a page holds.
    Start,
    Lines(LineRange),
    Tail(u64),
}

impl ReadInput {
    /// The rules between the fields, which a schema cannot say.
    fn wanted(&self) -> Result<ReadRange, Precondition> {
        let by_count = self.start_line.given() || self.line_count.given();
        let selectors = [self.view_range.given().is_some(), by_count, self.tail_lines.given()];
        if selectors.iter().filter(|used| **used).count() > 1 {
            let text = "give at most one of view_range, start_line with line_count, line_count, and tail_lines";
            return Err(Precondition::schema("", text));
        }
        if self.start_line.given() && !self.line_count.written() {
            return Err(Precondition::schema("/start_line", "start_line needs line_count: say how many lines to read"));
        }
        if let Some([first, last]) = self.view_range.given() {
            let first = first.max(1);
            if last != 0 && last < first {
                let text =
                    format!("view_range ends at line {last}, before it begins at line {first}; give [first, last]");
                return Err(Precondition::schema("/view_range", text));
            }
            return Ok(ReadRange::Lines(LineRange { first, last: if last == 0 { u64::MAX } else { last } }));
        }
        if self.tail_lines.given() {
            return Ok(ReadRange::Tail(self.tail_lines.value()));
        }
        if by_count {
            let first = self.start_line.value();
            return Ok(ReadRange::Lines(LineRange { first, last: first.saturating_add(self.line_count.value() - 1) }));
        }
        Ok(ReadRange::Start)
    }

    fn limits(&self) -> PageLimits {
        PageLimits { chars: usize::try_from(self.max_chars.value()).unwrap_or(usize::MAX), ..PageLimits::default() }
    }

    fn warn(&self, context: &ToolContext) {
        let lowered = [
            self.line_count.lowered("line_count"),
            self.tail_lines.lowered("tail_lines"),
            self.max_chars.lowered("max_chars"),
        ];
        lowered.into_iter().flatten().for_each(|line| context.warn(line));
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Eol {
    None,
    Lf,
    Crlf,
    Mixed,
}

impl From<LineEnding> for Eol {
    fn from(ending: LineEnding) -> Self {
        match ending {
            LineEnding::None => Self::None,
            LineEnding::Lf => Self::Lf,
            LineEnding::CrLf => Self::Crlf,
            LineEnding::Mixed => Self::Mixed,
        }
    }
}

/// Part of the output of a text file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Page {
    /// How many lines the whole file has.
    total_lines: u64,
    /// The first line of the page, counted from 1.
    first_line: u64,
    /// Its last whole line; below first_line if it holds none.
    last_line: u64,
    /// The page ended before everything that was asked for.
    truncated: bool,
    /// The page is the beginning of one line that is longer than a page.
    inside_line: bool,
    /// How many characters of what was asked for are not on the page.
    #[serde(default, skip_serializing_if = "is_none")]
    left_out_chars: u64,
    /// Where to read on, if there is more of what was asked for, or more after a full page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextPage>,
    eol: Eol,
    /// The file begins with a byte order mark, which is not part of the text.
    bom: bool,
    /// The text itself; not kept twice in the session's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A call that delivers what this one left out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
struct NextPage {
    start_line: u64,
    line_count: u64,
}

/// Part of the output of an image or document.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Medium {
    mime: String,
    /// Where its bytes are kept.
    artifact: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ReadOutput {
    /// Relative to the workspace.
    path: String,
    sha256: String,
    /// Bytes of the whole file.
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<Page>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media: Option<Medium>,
}

pub(super) fn tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<ReadInput, ReadOutput>(DESCRIPTION)
        .semantics(Semantics {
            effects: EffectSet::from([Effect::ResourceRead, Effect::SandboxExecute]),
            truncation: Strategy::Head,
            default_policy: default_policy(parts.profile, DefaultPolicy::Allow),
            ..Semantics::read_only()
        })
        .executor(executor("read"))
        .resolve(move |input: &ReadInput, caller| {
            input.wanted()?;
            named.under_every_name(named.name(&input.file_path)?, caller, &["read"]).map(|found| named.to_read(found))
        })
        .plan_access(|_, resolved| access("read", Risk::Read, Effect::ResourceRead, resolved))
        .precheck(move |_, resolved, _| {
            let found = checked.place(&resolved).and_then(|place| require_file(&place)).map_err(precondition);
            async move { found.map(|()| Prepared::default()) }
        })
        .execute_resolved(move |input, resolved, context| {
            let (place, rules) = (parts.place(&resolved), parts.rules.clone());
            async move { read(input, place.map_err(failure)?, rules, context).await }
        })
        .to_model(to_model)
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_text(output))
        .build()
}

async fn read(
    input: ReadInput,
    place: sandbox::ResolvedPlace,
    rules: PathRules,
    context: ToolContext,
) -> Result<ReadOutput, ToolFailure> {
    let wanted = input.wanted().map_err(ToolFailure::precondition)?;
    input.warn(&context);
    let size = sandbox::stat(&place).map_err(failure)?.size;
    on_disk(size, move || {
        let content = sandbox::read_file(&place, limits::FILE_MAX).map_err(failure)?;
        match sandbox::content_kind(&content.bytes) {
            ContentKind::Media(mime) => read_medium(&place, mime, content, &context),
            ContentKind::Text | ContentKind::Binary => {
                read_text(&place, content, (wanted, &input.limits()), &rules, &context)
            }
        }
    })
    .await
}

fn read_medium(
    place: &sandbox::ResolvedPlace,
    mime: &'static str,
    content: FileContent,
    context: &ToolContext,
) -> Result<ReadOutput, ToolFailure> {
    if let Some(why) = image::refusal(mime, &content.bytes) {
        return Err(ToolFailure::media(format!("`{}` ({mime}) cannot be shown: {why}", shown(place))));
    }
    let FileContent { bytes, sha256, size, .. } = content;
    let artifact = context.keep(ArtifactKind::Media, mime, bytes)?.to_string();
    let media = Some(Medium { mime: mime.to_owned(), artifact });
    Ok(ReadOutput { path: shown(place).to_owned(), sha256: sha256.to_string(), size, page: None, media })
}

fn read_text(
    place: &sandbox::ResolvedPlace,
    content: FileContent,
    (wanted, limits): (ReadRange, &PageLimits),
    rules: &PathRules,
    context: &ToolContext,
) -> Result<ReadOutput, ToolFailure> {
    let FileContent { bytes, sha256, size, mtime, .. } = content;
    let text = TextFile::parse(bytes).map_err(|not| failure(not.at(place.path())))?;
    let text = masked(text, rules);
    let mut page = page_of(&text, wanted, limits);
    if page.inside_line {
        page.text =
            Some(beginning(text.lines(LineRange { first: page.first_line, last: page.first_line }), limits, rules));
    }
    let delivered = LineRange { first: page.first_line, last: page.last_line };
    let lines = if delivered.is_empty() { Vec::new() } else { vec![delivered] };
    // A page past the end of a file delivers nothing of it, and so is no read of it.
    if text.line_count() == 0 || !delivered.is_empty() || page.inside_line {
        let path = place.path().as_str().to_owned();
        context.file(FileFact::Delivered { path, sha256, size, mtime, total_lines: text.line_count(), lines });
    }
    Ok(output(place, sha256, size, page))
}

/// The file with its secrets masked before lines are chosen: of a line in the middle of a private key nobody could tell
/// what it is. A declared secret of several lines becomes one mask; then lines are counted as they stand in the file, and
/// what is shown of them is masked with everything else that is shown.
fn masked(text: TextFile, rules: &PathRules) -> TextFile {
    let masked = match rules.masked(text.text().as_bytes()) {
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().filter(|masked| masked != text.text()),
        Cow::Borrowed(_) => None,
    };
    let masked = masked.map(|masked| text.with_text(masked));
    masked.filter(|masked| masked.line_count() == text.line_count()).unwrap_or(text)
}

fn output(place: &sandbox::ResolvedPlace, sha256: Digest, size: u64, page: Page) -> ReadOutput {
    ReadOutput { path: shown(place).to_owned(), sha256: sha256.to_string(), size, page: Some(page), media: None }
}

fn page_of(file: &TextFile, wanted: ReadRange, limits: &PageLimits) -> Page {
    let total = file.line_count();
    let range = match wanted {
        ReadRange::Start => LineRange { first: 1, last: total },
        ReadRange::Lines(range) => file.clip(range),
        ReadRange::Tail(count) => file.tail(count),
    };
    let whole = file.lines(range);
    // The end of a file is asked for with `tail`: what does not fit is left out at the front.
    let skipped = match wanted {
        ReadRange::Tail(_) => page::tail(whole.as_bytes(), limits).unwrap_or_else(|| last_line_start(whole)),
        ReadRange::Start | ReadRange::Lines(_) => 0,
    };
    let first = range.first + page::count_lines(&whole.as_bytes()[..skipped]);
    let cut = page::head(&whole.as_bytes()[skipped..], limits);
    let text = &whole[skipped..skipped + cut.len];
    let last = first + cut.lines - 1;
    // A line longer than a page is passed over: no call delivers it whole.
    let on = if cut.inside_line { first + 1 } else { last + 1 };
    let next = if skipped > 0 {
        Some((range.first, first - 1))
    } else if on <= range.last {
        Some((on, range.last))
    } else {
        // A model that pages through a file asks for full pages and reads that there are more.
        (cut.lines == limits.lines && on <= total).then_some((on, total))
    };
    let truncated = cut.inside_line || skipped > 0 || cut.len < whole.len() - skipped;
    let chars = |text: &str| text.chars().count() as u64;
    Page {
        total_lines: total,
        first_line: first,
        last_line: last,
        truncated,
        left_out_chars: if truncated { chars(whole) - chars(text) } else { 0 },
        inside_line: cut.inside_line,
        next: next.map(|(from, to)| NextPage { start_line: from, line_count: (to - from + 1).min(LINES) }),
        eol: file.line_ending().into(),
        bom: file.has_bom(),
        text: Some(text.to_owned()),
    }
}

/// As much of a line that no page holds as fits, secrets masked before the cut can fall into one.
fn beginning(line: &str, limits: &PageLimits, rules: &PathRules) -> String {
    let masked = rules.masked(line.as_bytes());
    String::from_utf8_lossy(&masked[..page::head(&masked, limits).len]).into_owned()
}

fn last_line_start(text: &str) -> usize {
    text[..text.len().saturating_sub(1)].rfind('\n').map_or(0, |at| at + 1)
}

/// Exactly the delivered lines: what a model was shown is counted in lines of this text.
fn to_model(_: &ReadInput, output: &Value) -> Vec<Content> {
    if let Some(text) = output.pointer("/page/text").and_then(Value::as_str) {
        return if text.is_empty() { Vec::new() } else { vec![Content::text(text)] };
    }
    let word = |pointer| output.pointer(pointer).and_then(Value::as_str);
    match (word("/media/mime"), word("/media/artifact").and_then(|id| id.parse().ok())) {
        (Some(mime), Some(artifact)) => {
            vec![Content::Media { mime: mime.to_owned(), artifact, name: word("/path").unwrap_or_default().to_owned() }]
        }
        _ => Vec::new(),
    }
}

fn to_user(output: &Value) -> UserText {
    let Ok(output) = ReadOutput::deserialize(output) else { return UserText::default() };
    let summary = match (&output.page, &output.media) {
        (Some(page), _) => summary(page),
        (None, Some(media)) => format!("{}, {} bytes", media.mime, output.size),
        (None, None) => String::new(),
    };
    UserText { title: format!("Read {}", output.path), summary }
}

fn summary(page: &Page) -> String {
    let Page { total_lines: total, first_line: first, last_line: last, .. } = *page;
    let mut text = if total == 0 {
        return "the file is empty".to_owned();
    } else if page.inside_line {
        format!("the beginning of line {first} of {total}, which is longer than the page")
    } else if last < first {
        format!("no lines; the file has {}", counted(total, "line"))
    } else if first == 1 && last == total {
        counted(total, "line")
    } else if first == last {
        format!("line {first} of {total}")
    } else {
        format!("lines {first}–{last} of {total}")
    };
    if let Some(NextPage { start_line, line_count }) = page.next {
        text.push_str(&format!("; read on with start_line {start_line}, line_count {line_count}"));
    }
    text
}

fn without_text(output: &Value) -> Value {
    let mut kept = output.clone();
    if let Some(page) = kept.get_mut("page").and_then(Value::as_object_mut) {
        page.remove("text");
    }
    kept
}
