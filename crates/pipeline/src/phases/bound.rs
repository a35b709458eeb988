//! Phase 7, `Settled → Observation`: one boundary for every tool (tool-contract §17). What does not fit is kept
//! whole as an artifact and shown in part, and the part says so. What cannot be kept is never a success.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use portcullis_base::{
    ArtifactKind, ArtifactRef, Code, Phase, Recorded, SideEffectState, Trust, Window, canonical_json, limits,
};
use portcullis_contract::{Anchor, Content, seam};
use portcullis_event::{ContentFormat, ContentPart, Observed};
use serde_json::json;

use crate::output::append_fit::fit;
use crate::output::delivered::clip_delivered;
use crate::output::evidence::{Evidence, Label, RetainError};
use crate::output::preview::{self, Limits, Preview, Totals};
use crate::output::shown_lines::unchanged;
use crate::output::spool::{CapturedBytes, CapturedStream};
use crate::output::tool_evidence::keep_handed_over;
use crate::phases::normalize::{Settled, settle_flags, unshowable};
use crate::phases::refuse::{ERROR_MAX, SUMMARY_MAX};
use crate::phases::schedule::Invocation;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;
use crate::tasks::shell_facts::write_shell;

/// Warnings of one call that are shown.
const WARNINGS: usize = 32;
/// Characters of a title: one line on a screen.
const TITLE_CHARS: usize = 72;

pub(crate) async fn bound(session: &SessionShared, settled: Settled, facts: &mut Append) -> Observed {
    let Settled { invocation, exit: _, mut observed, mut content, streams, kept, refused, shell } = settled;
    let intent = &invocation.authorized.validated.visible.intent;
    let evidence = Evidence { session, turn_id: intent.turn_id, intent_id: Some(intent.id) };

    keep_handed_over(&evidence, kept, &mut observed, &mut content, facts).await;
    if refused > 0 && observed.ok {
        retention_failed(&mut observed, &RetainError::TooMany { more: refused });
    }
    let lost = streams.iter().find_map(|stream| match &stream.bytes {
        CapturedBytes::Lost(why) => Some(RetainError::Io(why.clone())),
        _ => None,
    });
    if let Some(error) = lost {
        retention_failed(&mut observed, &error);
    }
    write_shell(&evidence, &invocation, shell, &streams, &mut observed.warnings, facts).await;
    redact(session, &mut observed);
    brief(session, &mut observed, &mut content);
    unchanged(session, intent, &mut observed, &mut content);
    // Before the structured value is shrunk: if it is the channel, the model sees a preview of all of it.
    let channel = Channel::of(content, &observed, &streams, session);
    shrink_structured(&evidence, &mut observed, facts).await;

    let limits = limits_of(&invocation);
    match catch_unwind(AssertUnwindSafe(|| seam::anchors(&invocation.tool, &*channel.window()))) {
        Ok(anchors) => {
            let shown = show(&evidence, &invocation, channel, &limits, anchors.as_deref(), &mut observed, facts).await;
            if let Err(error) = shown {
                retention_failed(&mut observed, &error);
            }
        }
        Err(panic) => {
            unshowable(session, &*panic, &mut observed, facts);
            settle_flags(session, &mut observed, seam::semantics(&invocation.tool).read_only);
        }
    }
    if let Some(turn) = &intent.turn {
        turn.spend(shown_bytes(&observed));
    }
    fit(session, &mut observed, facts);
    facts.free.extend(invocation.keys);
    if invocation.slot.is_taken() {
        facts.slots.push(invocation.slot);
    }
    observed
}

/// A message too long for a line is content like any other: kept whole, shown in part.
fn brief(session: &SessionShared, observed: &mut Observed, content: &mut Option<Vec<Content>>) {
    if observed.summary.len() > SUMMARY_MAX {
        if !observed.ok {
            content.get_or_insert_default().push(Content::text(observed.summary.clone()));
        }
        observed.summary = session.tidy(&observed.summary, SUMMARY_MAX);
    }
    // Masked above: half a secret could not be told from other text.
    if let Some((cut, _)) = observed.title.char_indices().nth(TITLE_CHARS) {
        observed.title.truncate(cut);
        observed.title.push('…');
    }
    let more = observed.warnings.len().saturating_sub(WARNINGS);
    observed.warnings.truncate(WARNINGS);
    for warning in &mut observed.warnings {
        *warning = session.tidy(warning, ERROR_MAX);
    }
    if more > 0 {
        observed.warnings.push(format!("{more} more warnings"));
    }
}

/// What the model is shown of this settlement, in bytes: its channel, whichever that is (R9).
pub(crate) fn shown_bytes(observed: &Observed) -> usize {
    let text: usize = observed.content.iter().filter_map(|part| part.text.as_ref()).map(String::len).sum();
    let structured = observed.structured.as_ref().filter(|_| observed.structured_is_channel);
    text + structured.and_then(|value| canonical_json(value).ok()).map_or(0, |json| json.len())
}

fn limits_of(invocation: &Invocation) -> Limits {
    let share =
        invocation.authorized.validated.visible.intent.turn.as_ref().map_or(limits::MAX_MODEL_BYTES, |t| t.share());
    let own = seam::semantics(&invocation.tool).max_result.unwrap_or(usize::MAX);
    // Code of the tool: one that breaks here asks for nothing.
    let wanted = catch_unwind(AssertUnwindSafe(|| {
        seam::result_limit(&invocation.tool, &invocation.authorized.validated.input).unwrap_or(usize::MAX)
    }));
    Limits { lines: limits::MAX_MODEL_LINES, bytes: share.min(own).min(wanted.unwrap_or(usize::MAX)) }
}

/// R2: never a success. What happened stays true and is shown; nobody should rerun an action to get its output.
pub(crate) fn retention_failed(observed: &mut Observed, error: &RetainError) {
    observed.ok = false;
    observed.code = Recorded::Known(Code::RetentionFailed);
    observed.phase = Recorded::Known(Phase::Bound);
    observed.recovery = Recorded::Known(Code::RetentionFailed.row().recovery);
    observed.retryable = observed.side_effects.state == SideEffectState::None;
    observed.truncated = true;
    observed.retained = false;
    observed.summary = format!("the whole output could not be kept: {error}");
}

fn redact(session: &SessionShared, observed: &mut Observed) {
    let redactor = &session.scope.output_redactor;
    observed.summary = redactor.redact_text(&observed.summary).into_owned();
    observed.title = redactor.redact_text(&observed.title).into_owned();
    for warning in &mut observed.warnings {
        *warning = redactor.redact_text(warning).into_owned();
    }
    if let Some(structured) = &mut observed.structured {
        redactor.redact_value(structured);
    }
}

/// A structured value over its cap leaves the event and is named there instead.
async fn shrink_structured(evidence: &Evidence<'_>, observed: &mut Observed, facts: &mut Append) {
    let Some(structured) = &observed.structured else { return };
    // Cheap for the common case: an output that cannot be near the cap is not serialised to be measured.
    let Ok(text) = serde_json::to_string(structured) else { return };
    if text.len() <= limits::STRUCTURED_INLINE_MAX {
        return;
    }
    let id = evidence.fresh_id();
    let label = Label { id, kind: ArtifactKind::Structured, mime: "application/json", lines: None, complete: true };
    match evidence.keep(label, text.into_bytes(), facts).await {
        Ok(artifact) => {
            // If it was the model's channel, the model now sees a preview of it.
            observed.structured = Some(json!({ "$artifact": artifact.id }));
            observed.artifacts.push(artifact);
        }
        Err(error) => {
            observed.structured = None;
            retention_failed(observed, &error);
        }
    }
}

/// One text-like part of what the model sees.
struct TextPart {
    source: String,
    window: Arc<dyn Window>,
    /// The stream it is, if its bytes are an artifact already.
    stream: Option<usize>,
    complete: bool,
}

/// The model channel (R9): text parts if there is any content, else the structured value.
struct Channel<'a> {
    parts: Vec<TextPart>,
    media: Vec<(String, String, portcullis_base::ArtifactId)>,
    streams: &'a [CapturedStream],
    structured: bool,
}

impl<'a> Channel<'a> {
    fn of(
        content: Option<Vec<Content>>,
        observed: &Observed,
        streams: &'a [CapturedStream],
        session: &SessionShared,
    ) -> Self {
        let mut channel = Self { parts: Vec::new(), media: Vec::new(), streams, structured: false };
        let Some(content) = content else {
            if let Some(structured) = observed.structured.as_ref().filter(|_| observed.structured_is_channel) {
                channel.structured = true;
                channel.parts.push(TextPart {
                    source: "output".to_owned(),
                    window: Arc::new(canonical_json(structured).unwrap_or_default().into_bytes()),
                    stream: None,
                    complete: true,
                });
            }
            return channel;
        };
        for part in content {
            match part {
                Content::Text { text } => {
                    let text = session.scope.output_redactor.redact_text(&text).into_owned();
                    let window: Arc<dyn Window> = Arc::new(text.into_bytes());
                    channel.parts.push(TextPart { source: "output".to_owned(), window, stream: None, complete: true });
                }
                Content::Media { mime, artifact, name } => {
                    channel.media.push((mime, session.tidy(&name, ERROR_MAX), artifact));
                }
                Content::Spool(spool) => {
                    let index = spool.index as usize;
                    if let Some(stream) = streams.get(index)
                        && let Some(window) = stream.window()
                    {
                        channel.parts.push(TextPart {
                            source: session.tidy(&stream.name, ERROR_MAX),
                            window,
                            stream: Some(index),
                            complete: stream.complete(),
                        });
                    }
                }
            }
        }
        channel
    }

    fn window(&self) -> Arc<dyn Window> {
        match self.parts.as_slice() {
            [only] => Arc::clone(&only.window),
            many => Arc::new(JoinedWindows::new(many.iter().map(|part| Arc::clone(&part.window)).collect())),
        }
    }

    fn complete(&self) -> bool {
        self.parts.iter().all(|part| part.complete)
    }
}

/// Several windows one after the other, each beginning on a line of its own.
struct JoinedWindows {
    parts: Vec<(u64, Arc<dyn Window>)>,
    len: u64,
}

impl JoinedWindows {
    fn new(windows: Vec<Arc<dyn Window>>) -> Self {
        let mut joined = Self { parts: Vec::new(), len: 0 };
        let last = windows.len().saturating_sub(1);
        for (i, window) in windows.into_iter().enumerate() {
            let len = window.len();
            let ends_line = len == 0 || window.slice(len - 1, len).is_ok_and(|end| end == b"\n");
            joined.push(window);
            if i < last && !ends_line {
                joined.push(Arc::new(b"\n".to_vec()));
            }
        }
        joined
    }

    fn push(&mut self, window: Arc<dyn Window>) {
        let start = self.len;
        self.len += window.len();
        self.parts.push((start, window));
    }
}

impl Window for JoinedWindows {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        for (start, window) in &self.parts {
            let at = offset + filled as u64;
            if filled < buf.len() && at >= *start && at < start + window.len() {
                filled += window.read_at(at - start, &mut buf[filled..])?;
            }
        }
        Ok(filled)
    }
}

/// Puts the channel into the observation: whole if it fits, else as a preview of a kept artifact.
async fn show(
    evidence: &Evidence<'_>,
    invocation: &Invocation,
    channel: Channel<'_>,
    limits: &Limits,
    anchors: Option<&[Anchor]>,
    observed: &mut Observed,
    facts: &mut Append,
) -> Result<(), RetainError> {
    show_media(&channel, observed);
    if channel.parts.is_empty() {
        return Ok(());
    }
    let io_error = |e: io::Error| RetainError::Io(e.to_string());
    let window = channel.window();
    let id = evidence.fresh_id();
    let complete = channel.complete();
    let cut_with = |rest: &str| {
        let header = |totals: &Totals| {
            let kept = if complete { "in all" } else { "kept of more that was written" };
            format!("[output cut: {} bytes, {} lines {kept}; {rest}]", totals.bytes, totals.lines)
        };
        let strategy = seam::semantics(&invocation.tool).truncation;
        preview::preview(&*window, limits, strategy, anchors, &header).map_err(io_error)
    };
    let Some(cut) = cut_with(&format!("read the rest with artifact_read {{\"id\":\"{id}\"}}"))? else {
        if !channel.structured {
            for part in &channel.parts {
                let bytes = part.window.slice(0, part.window.len()).map_err(io_error)?;
                observed.content.push(text_part(&part.source, String::from_utf8_lossy(&bytes).into_owned()));
            }
            // A stream the producer wrote more of than was kept is not the whole output, however short.
            if !complete {
                keep_channel(evidence, &channel, Arc::clone(&window), id, None, observed, facts).await?;
            }
        }
        return Ok(());
    };
    clip_delivered(&mut observed.files, &*window, &cut.segments).map_err(io_error)?;
    let lines = Some(preview::totals(&*window).map_err(io_error)?.lines);
    let kept = keep_channel(evidence, &channel, Arc::clone(&window), id, lines, observed, facts).await;
    if let Err(error) = kept {
        // There is nothing to read the rest from, and the preview must not say that there is.
        if let Some(cut) = cut_with("the rest could not be kept")? {
            apply_cut(&channel, cut, observed);
        }
        return Err(error);
    }
    apply_cut(&channel, cut, observed);
    observed.suggested_next_tool = Some(json!({"tool": "artifact_read", "inputHint": {"id": id}}));
    Ok(())
}

fn apply_cut(channel: &Channel<'_>, cut: Preview, observed: &mut Observed) {
    let source = channel.parts.iter().map(|part| part.source.as_str()).collect::<Vec<_>>().join("+");
    observed.truncated = true;
    observed.total_bytes = cut.total_bytes;
    observed.omitted_bytes = cut.omitted_bytes;
    observed.omitted_lines = cut.omitted_lines;
    observed.content.push(text_part(&source, cut.text));
    observed.structured_is_channel = false;
}

/// The exact channel becomes an artifact; a stream that is one already is named, not copied.
async fn keep_channel(
    evidence: &Evidence<'_>,
    channel: &Channel<'_>,
    window: Arc<dyn Window>,
    id: portcullis_base::ArtifactId,
    lines: Option<u64>,
    observed: &mut Observed,
    facts: &mut Append,
) -> Result<(), RetainError> {
    let kind = if channel.structured { ArtifactKind::Structured } else { ArtifactKind::CommandOutput };
    let mime = if channel.structured { "application/json" } else { "text/plain" };
    let label = Label { id, kind, mime, lines, complete: channel.complete() };
    let stored = match channel.parts.as_slice() {
        [TextPart { stream: Some(index), .. }] => match &channel.streams[*index].bytes {
            CapturedBytes::Stored(stored) => Some(stored),
            _ => None,
        },
        _ => None,
    };
    let artifact: ArtifactRef = match stored {
        Some(stored) => evidence.name_spool(label, stored, facts).await?,
        None => evidence.keep_window(label, window, facts).await?,
    };
    observed.artifacts.push(artifact);
    Ok(())
}

fn show_media(channel: &Channel<'_>, observed: &mut Observed) {
    for (mime, name, id) in &channel.media {
        let artifact = observed.artifacts.iter().find(|artifact| artifact.id == *id).cloned();
        let format = if mime.starts_with("image/") { ContentFormat::Image } else { ContentFormat::ArtifactRef };
        observed.content.push(ContentPart {
            trust: Trust::ToolOutputUntrusted,
            format,
            source: name.clone(),
            text: None,
            artifact,
        });
    }
}

fn text_part(source: &str, text: String) -> ContentPart {
    ContentPart {
        trust: Trust::ToolOutputUntrusted,
        format: ContentFormat::Text,
        source: source.to_owned(),
        text: Some(text),
        artifact: None,
    }
}
