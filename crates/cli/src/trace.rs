//! `sessions trace`: what a wake did and how long each part took, drawn from the times of its events.

use std::fmt::Write as _;

use portcullis::SessionId;
use portcullis::operations::{SpanDocument, span_name as name, span_result as result};
use portcullis_agent::trace::{Span, SpanKind};
use portcullis_base::{Timestamp, WakeId};
use portcullis_terminal::render::{self, BOLD, Term, safe_line, styled};
use serde_json::json;

use crate::exit::failed;
use crate::world::World;

/// Columns of a drawing where nobody says how wide the place is.
const WIDTH: usize = 100;
/// The least and the most that a drawing takes.
const WIDTHS: (usize, usize) = (32, 200);
/// Columns of the names, where there is room; at most this share of the whole.
const NAMES: usize = 30;
const NAMES_SHARE: usize = 3;
/// Columns of the times.
const TIMES: usize = 10;

pub async fn run(
    world: &World,
    session: SessionId,
    (wanted, all): (Option<WakeId>, bool),
    term: &Term,
) -> anyhow::Result<()> {
    let mut wakes = world.archive.trace(session).await?;
    if let Some(wanted) = wanted {
        wakes.retain(|(id, _)| *id == wanted);
        if wakes.is_empty() {
            return Err(failed(format!("session {session} has no wake {wanted}; --all draws those it has")));
        }
    } else if !all && wakes.len() > 1 {
        wakes.drain(..wakes.len() - 1);
    }
    if term.json {
        let wakes: Vec<SpanDocument> = wakes.iter().map(|(_, span)| SpanDocument::of(span)).collect();
        return Ok(term.document(&json!({"session_id": session, "wakes": wakes}))?);
    }
    if wakes.is_empty() {
        term.note("no model has worked in this session; `portcullis sessions show` lists its calls");
        return Ok(());
    }
    let width = width(term);
    let drawn: Vec<String> = wakes.iter().map(|(id, span)| drawing(*id, span, width)).collect();
    Ok(term.print(drawn.join("\n").trim_end())?)
}

/// How wide the terminal is; a pipe gets the usual width.
fn width(term: &Term) -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns: Option<usize> = told.or_else(|| term.columns());
    columns.unwrap_or(WIDTH).clamp(WIDTHS.0, WIDTHS.1)
}

fn drawing(id: WakeId, wake: &Span, width: usize) -> String {
    let last = wake.spans.iter().filter_map(|span| span.to).chain(wake.to).max().unwrap_or(wake.from);
    let names = NAMES.min(width / NAMES_SHARE);
    let scale = Scale { from: wake.from, to: last, names, columns: width.saturating_sub(names + TIMES + 2).max(1) };
    let id = id.to_string();
    // An id is of use only whole.
    let mut text = styled(BOLD, &id);
    match width.checked_sub(id.len() + 2) {
        Some(room @ 12..) => text.push_str(&format!(" {}\n", safe_line(&name(wake), room))),
        _ => text.push_str(&format!("\n{}\n", safe_line(&name(wake), width - 1))),
    }
    let result = result(wake).unwrap_or_else(|| "not ended".to_owned());
    let began = format!("began {}, {result}", wake.from);
    match began.chars().count() <= width {
        true => text.push_str(&began),
        false => text.push_str(&format!("began {}\n{}", wake.from, safe_line(&result, width - 1))),
    }
    text.push('\n');
    row(&mut text, wake, 0, &scale);
    for span in &wake.spans {
        row(&mut text, span, 1, &scale);
        // A phase that took no time is no news.
        for phase in span.spans.iter().filter(|phase| phase.to.is_none_or(|to| to > phase.from)) {
            row(&mut text, phase, 2, &scale);
        }
    }
    text
}

struct Scale {
    from: Timestamp,
    to: Timestamp,
    /// Of the names before the bars.
    names: usize,
    /// Of the bars.
    columns: usize,
}

impl Scale {
    /// The column of a time.
    fn column(&self, at: Timestamp) -> usize {
        let whole = self.to.since(self.from).as_micros().max(1);
        let part = at.since(self.from).as_micros().min(whole);
        usize::try_from(part * self.columns as u128 / whole).unwrap_or(self.columns).min(self.columns - 1)
    }
}

fn row(text: &mut String, span: &Span, depth: usize, scale: &Scale) {
    let label = match (span.kind, result(span)) {
        (SpanKind::Wake, _) => "wake".to_owned(),
        (SpanKind::ModelRequest, _) => format!("model {}", span.name),
        (SpanKind::Call, Some(code)) if code != "ok" => format!("{} {code}", name(span)),
        _ => name(span),
    };
    let label = format!("{}{}", "  ".repeat(depth), safe_line(&label, (scale.names - 2).saturating_sub(2 * depth)));
    let time = match span.to {
        Some(to) => render::span(u64::try_from(to.since(span.from).as_micros()).unwrap_or(u64::MAX)),
        None => "open".to_owned(),
    };
    let begin = scale.column(span.from);
    let end = scale.column(span.to.unwrap_or(scale.to)).max(begin);
    let mark = match span.kind {
        SpanKind::Approval => "·",
        SpanKind::Gate | SpanKind::Queue | SpanKind::Settle => "░",
        SpanKind::ModelRequest => "▒",
        _ => "█",
    };
    let bar = format!("{}{}", " ".repeat(begin), mark.repeat(end - begin + 1));
    let pad = scale.names.saturating_sub(label.chars().count());
    let _ = writeln!(text, "{label}{}{time:>TIMES$}  {bar}", " ".repeat(pad));
}
