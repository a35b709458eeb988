//! `sessions trace`: what a wake did and how long each part took, drawn from the times of its events.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis::SessionId;
use portcullis_base::{EventId, IntentId, Timestamp, WakeId};
use portcullis_event::{Body, Event};
use serde::Serialize;
use serde_json::json;

use crate::exit::failed;
use crate::render::{self, BOLD, Term, safe_line, styled};
use crate::replay::IntentsOf;
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

/// A part of a wake.
#[derive(Debug, Clone, Serialize)]
struct Span {
    /// `wake`, `model_request`, `call`, `gate`, `approval`, `queue`, `run` or `settle`.
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    from: Timestamp,
    /// `None`: it has not ended.
    to: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    spans: Vec<Span>,
}

impl Span {
    fn new(kind: &'static str, name: impl Into<String>, from: Timestamp) -> Self {
        Self { kind, name: name.into(), id: None, from, to: None, result: None, spans: Vec::new() }
    }
}

/// Times of a call in one wake, as its events came.
#[derive(Debug)]
struct Call {
    tool: String,
    proposed: Timestamp,
    asked: Option<Timestamp>,
    answered: Option<Timestamp>,
    scheduled: Option<Timestamp>,
    started: Option<Timestamp>,
    completed: Option<Timestamp>,
    observed: Option<(Timestamp, String)>,
    /// When the wake ended that left it to another.
    paused: Option<Timestamp>,
}

/// One wake as it is read.
struct Wake {
    id: WakeId,
    span: Span,
    requests: BTreeMap<EventId, usize>,
    calls: BTreeMap<IntentId, Call>,
}

pub async fn run(
    world: &World,
    session: SessionId,
    (wanted, all): (Option<WakeId>, bool),
    term: &Term,
) -> anyhow::Result<()> {
    world.created(session).await?;
    let mut reader = Reader::default();
    world
        .each_page(session, 0, |page| {
            page.iter().for_each(|event| reader.take(event));
            Ok(())
        })
        .await?;
    let mut wakes: Vec<(WakeId, Span)> = reader.wakes.into_iter().map(|wake| (wake.id, wake.whole())).collect();
    if let Some(wanted) = wanted {
        wakes.retain(|(id, _)| *id == wanted);
        if wakes.is_empty() {
            return Err(failed(format!("session {session} has no wake {wanted}; --all draws those it has")));
        }
    } else if !all && wakes.len() > 1 {
        wakes.drain(..wakes.len() - 1);
    }
    if term.json {
        let wakes: Vec<_> = wakes.iter().map(|(_, span)| span).collect();
        return term.document(&json!({"session_id": session, "wakes": wakes}));
    }
    if wakes.is_empty() {
        term.note("no model has worked in this session; `portcullis sessions show` lists its calls");
        return Ok(());
    }
    let width = width(term);
    let drawn: Vec<String> = wakes.iter().map(|(id, span)| drawing(*id, span, width)).collect();
    Ok(term.print(drawn.join("\n").trim_end())?)
}

#[derive(Default)]
struct Reader {
    wakes: Vec<Wake>,
    intents: IntentsOf,
}

impl Reader {
    fn take(&mut self, event: &Event) {
        let at = event.at;
        match event.body() {
            Body::SpanStarted(span) => {
                let mut wake = Span::new("wake", safe_line(&span.summary, 200), at);
                wake.id = Some(span.span_id.to_string());
                self.wakes.push(Wake {
                    id: span.span_id,
                    span: wake,
                    requests: BTreeMap::new(),
                    calls: BTreeMap::new(),
                });
            }
            Body::SpanCompleted(span) => {
                if let Some(wake) = self.wakes.iter_mut().rfind(|wake| wake.id == span.span_id) {
                    wake.span.to = Some(at);
                    let why = span.error_code.map(|code| format!(" ({})", safe_line(&code, 40))).unwrap_or_default();
                    wake.span.result = Some(format!("{}{why}", render::word(&span.result)));
                }
            }
            body => {
                // What a person answers between two wakes belongs to the call that waited.
                let of_call = self.intents.of(&body);
                let owner = of_call
                    .and_then(|intent| self.wakes.iter().rposition(|wake| wake.calls.contains_key(&intent)))
                    .or_else(|| {
                        let id = event.wake_id?;
                        self.wakes.iter().rposition(|wake| wake.id == id)
                    });
                let owner =
                    of_call.filter(|_| runs(&body)).and_then(|intent| self.taken_up(owner?, event, intent)).or(owner);
                if let Some(wake) = owner.and_then(|at| self.wakes.get_mut(at)) {
                    wake.take(event.id, at, body, of_call);
                }
            }
        }
    }
}

impl Reader {
    /// A call that waited in one wake and gets on in another: in the first it was blocked, and in the other it runs
    /// (agent-runtime 3.5). The place of the other.
    fn taken_up(&mut self, owner: usize, event: &Event, intent: IntentId) -> Option<usize> {
        let here = event.wake_id?;
        let here = self.wakes.iter().rposition(|wake| wake.id == here).filter(|here| *here != owner)?;
        let left = self.wakes.get_mut(owner)?;
        let ended = left.span.to?;
        let call = left.calls.get_mut(&intent)?;
        call.paused = Some(ended);
        let rest = Call::new(call.tool.clone(), event.at);
        self.wakes.get_mut(here)?.calls.insert(intent, rest);
        Some(here)
    }
}

/// Whether a call gets on by it, other than by somebody's answer.
fn runs(body: &Body) -> bool {
    matches!(body, Body::Scheduled(_) | Body::InvocationStarted(_) | Body::InvocationCompleted(_) | Body::Observed(_))
}

impl Wake {
    fn take(&mut self, event: EventId, at: Timestamp, body: Body, intent: Option<IntentId>) {
        match body {
            Body::ModelRequestStart(start) => {
                self.requests.insert(event, self.span.spans.len());
                self.span.spans.push(Span::new("model_request", start.model, at));
            }
            Body::ModelRequestEnd(end) => {
                let place = self.requests.get(&end.model_request_start_id).copied();
                if let Some(span) = place.and_then(|place| self.span.spans.get_mut(place)) {
                    span.to = Some(at);
                    let tokens = end
                        .model_usage
                        .map(|usage| format!(", {} tokens in, {} out", usage.input_tokens, usage.output_tokens));
                    span.result = Some(format!("{}{}", safe_line(&end.stop, 40), tokens.unwrap_or_default()));
                }
            }
            Body::IntentProposed(intent) => {
                self.calls.insert(intent.intent_id, Call::new(intent.tool.clone(), at));
            }
            body => {
                let Some(call) = intent.and_then(|intent| self.calls.get_mut(&intent)) else { return };
                match body {
                    Body::PermissionAsked(_) => call.asked = Some(at),
                    Body::AskReplied(_) | Body::AskClosed(_) => call.answered = call.answered.or(Some(at)),
                    Body::Scheduled(_) => call.scheduled = Some(at),
                    Body::InvocationStarted(_) => call.started = Some(at),
                    Body::InvocationCompleted(_) => call.completed = Some(at),
                    Body::Observed(seen) => call.observed = Some((at, seen.code.to_string())),
                    _ => {}
                }
            }
        }
    }

    /// The wake with its calls in their place.
    fn whole(mut self) -> Span {
        for (id, call) in self.calls {
            self.span.spans.push(call.span(id));
        }
        self.span.spans.sort_by_key(|span| span.from);
        self.span
    }
}

impl Call {
    fn new(tool: String, proposed: Timestamp) -> Self {
        Self {
            tool,
            proposed,
            asked: None,
            answered: None,
            scheduled: None,
            started: None,
            completed: None,
            observed: None,
            paused: None,
        }
    }

    fn span(self, id: IntentId) -> Span {
        let mut span = Span::new("call", safe_line(&self.tool, 60), self.proposed);
        span.id = Some(id.to_string());
        span.to = self.observed.as_ref().map(|(at, _)| *at).or(self.paused);
        span.result = self.observed.as_ref().map(|(_, code)| code.clone());
        span.result = span.result.or_else(|| self.paused.map(|_| "blocked".to_owned()));
        let end = span.to;
        let mut phase = |kind, from: Option<Timestamp>, to: Option<Timestamp>| {
            if let Some(from) = from {
                span.spans.push(Span { to, ..Span::new(kind, kind, from) });
            }
        };
        let decided = self.asked.or(self.scheduled).or(self.started).or(end);
        phase("gate", Some(self.proposed), decided);
        phase("approval", self.asked, self.answered);
        let ready = self.scheduled.filter(|_| self.started.is_some());
        phase("queue", ready, self.started);
        phase("run", self.started, self.completed.or(end));
        phase("settle", self.completed, end);
        span
    }
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
        Some(room @ 12..) => text.push_str(&format!(" {}\n", safe_line(&wake.name, room))),
        _ => text.push_str(&format!("\n{}\n", safe_line(&wake.name, width - 1))),
    }
    let result = wake.result.as_deref().unwrap_or("not ended");
    let began = format!("began {}, {result}", wake.from);
    match began.chars().count() <= width {
        true => text.push_str(&began),
        false => text.push_str(&format!("began {}\n{}", wake.from, safe_line(result, width - 1))),
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
    let label = match (span.kind, &span.result) {
        ("wake", _) => "wake".to_owned(),
        ("model_request", _) => format!("model {}", span.name),
        ("call", Some(code)) if code != "ok" => format!("{} {code}", span.name),
        _ => span.name.clone(),
    };
    let label = format!("{}{}", "  ".repeat(depth), safe_line(&label, (scale.names - 2).saturating_sub(2 * depth)));
    let time = match span.to {
        Some(to) => render::span(u64::try_from(to.since(span.from).as_micros()).unwrap_or(u64::MAX)),
        None => "open".to_owned(),
    };
    let begin = scale.column(span.from);
    let end = scale.column(span.to.unwrap_or(scale.to)).max(begin);
    let mark = match span.kind {
        "approval" => "·",
        "gate" | "queue" | "settle" => "░",
        "model_request" => "▒",
        _ => "█",
    };
    let bar = format!("{}{}", " ".repeat(begin), mark.repeat(end - begin + 1));
    let pad = scale.names.saturating_sub(label.chars().count());
    let _ = writeln!(text, "{label}{}{time:>TIMES$}  {bar}", " ".repeat(pad));
}
