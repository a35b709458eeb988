//! What a call gave, in words for a person.

use std::fmt::Write as _;

use portcullis_event::{ContentFormat, Observed};

use crate::call_text::CallText;
use crate::render::{YELLOW, diff, safe, safe_line, span, styled, word};
use crate::shell_view;

/// What a call warns of, a line each. What its error says is not said again.
pub fn warnings(observed: &Observed) -> impl Iterator<Item = String> {
    unsaid_warnings(observed).map(|text| warning(text))
}

/// What a call warns of and its error does not say.
pub fn unsaid_warnings(observed: &Observed) -> impl Iterator<Item = &String> {
    observed.warnings.iter().filter(|warning| observed.ok || !observed.summary.contains(*warning))
}

/// Characters of a warning: what to do about it stands at its end.
const WARNING_CHARS: usize = 2_000;

/// The same of one that was told before: it fits a row.
const TOLD_CHARS: usize = 56;

/// A warning that was told before.
pub fn repeated_warning(text: &str) -> String {
    styled(YELLOW, &format!("warning as before: {}", safe_line(text, TOLD_CHARS)))
}

/// One warning on a line of its own.
pub fn warning(text: &str) -> String {
    format!("{} {}", styled(YELLOW.bold(), "warning:"), safe_line(text, WARNING_CHARS))
}

/// What it gave; `whole` is the command that prints an artifact.
pub fn content(observed: &Observed, whole: fn(&str) -> String) -> CallText {
    if let Some(words) = shell_view::in_words(observed, whole) {
        return CallText { out: words, err: String::new() };
    }
    let mut content = CallText::default();
    for part in &observed.content {
        let text = content.part(&part.source);
        match (&part.text, &part.artifact) {
            (Some(words), _) if part.format == ContentFormat::Diff => text.push_str(&diff(words)),
            (Some(words), _) => text.push_str(&safe(words)),
            (None, Some(artifact)) => {
                let _ = write!(text, "[{}, {} bytes: artifact {}]", safe(&artifact.mime), artifact.bytes, artifact.id);
            }
            (None, None) => {}
        }
    }
    // An empty text is a result too, and prints as nothing; what stands beside it is not the result.
    if content.is_empty()
        && observed.structured_is_channel
        && observed.ok
        && let Some(value) = &observed.structured
    {
        content.out = safe(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned();
    }
    content
}

/// How a call ended that succeeded: on one line.
pub fn success(observed: &Observed) -> String {
    let mut line = format!("{}: {} in {}", safe(&observed.tool), observed.code, span(observed.duration_us));
    for words in [&observed.title, &observed.summary] {
        if !words.is_empty() {
            let _ = write!(line, "; {}", safe_line(words, 200));
        }
    }
    for artifact in &observed.artifacts {
        let (kind, id) = (word(&artifact.kind), artifact.id);
        let _ = write!(line, "; {kind}{} kept as {id}", side(observed, &id.to_string()));
    }
    line
}

/// Which side of a change an artifact holds.
fn side(observed: &Observed, artifact: &str) -> &'static str {
    let holds = |kept: &Option<String>| kept.as_deref() == Some(artifact);
    match observed.side_effects.items.iter().find(|effect| holds(&effect.before) || holds(&effect.after)) {
        // The same bytes may be both.
        Some(effect) if holds(&effect.before) && holds(&effect.after) => " before and after",
        Some(effect) if holds(&effect.before) => " before",
        Some(_) => " after",
        None => "",
    }
}

/// Phase, code, reason, summary, recovery: on one line.
pub fn failure(observed: &Observed) -> String {
    let mut line = format!("{}: {}: {}", safe(&observed.tool), observed.phase, observed.code);
    let detail = observed.reason.as_ref().map(ToString::to_string).or_else(|| observed.tool_code.clone());
    if let Some(detail) = detail {
        let _ = write!(line, " ({})", safe(&detail));
    }
    let _ = write!(line, ": {}", safe_line(&observed.summary, 1_000));
    let _ = write!(line, " [recovery: {}; side effects: {}]", observed.recovery, word(&observed.side_effects.state));
    line
}
