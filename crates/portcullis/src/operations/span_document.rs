//! The parts of a wake in words, and as programs read them.

use portcullis_agent::trace::{Span, SpanEnd, SpanKind};
use portcullis_base::Timestamp;
use portcullis_base::shown::{safe_line, word};
use serde::Serialize;

/// What a part is called; a model, a tool and a person may have chosen the words.
#[must_use]
pub fn span_name(span: &Span) -> String {
    match span.kind {
        SpanKind::Wake => safe_line(&span.name, 200),
        SpanKind::Call => safe_line(&span.name, 60),
        _ => span.name.clone(),
    }
}

/// How it ended, in words.
#[must_use]
pub fn span_result(span: &Span) -> Option<String> {
    Some(match span.end.as_ref()? {
        SpanEnd::Wake { result, error_code } => {
            let why = error_code.as_ref().map(|code| format!(" ({})", safe_line(code, 40))).unwrap_or_default();
            format!("{}{why}", word(result))
        }
        SpanEnd::ModelRequest { stop, usage } => {
            let usage = usage.as_ref();
            let tokens = usage.map(|usage| format!(", {} tokens in, {} out", usage.input_tokens, usage.output_tokens));
            format!("{}{}", safe_line(stop, 40), tokens.unwrap_or_default())
        }
        SpanEnd::Observed(code) => code.clone(),
        SpanEnd::Blocked => "blocked".to_owned(),
    })
}

/// A part as programs read it.
#[derive(Debug, Serialize)]
pub struct SpanDocument {
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    from: Timestamp,
    to: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    spans: Vec<SpanDocument>,
}

impl SpanDocument {
    /// A part with all that is in it.
    #[must_use]
    pub fn of(span: &Span) -> Self {
        let Span { kind, id, from, to, spans, .. } = span;
        Self {
            kind: kind.as_str(),
            name: span_name(span),
            id: id.clone(),
            from: *from,
            to: *to,
            result: span_result(span),
            spans: spans.iter().map(Self::of).collect(),
        }
    }
}
