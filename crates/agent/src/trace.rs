//! What each wake of a session did and how long each part took, drawn from the times of its events.

use std::collections::BTreeMap;

use portcullis_base::{AskId, EventId, IntentId, InvocationId, Timestamp, WakeId};
use portcullis_event::facts::{ModelUsage, SpanResult};
use portcullis_event::{Body, Event, EventRefs};
use portcullis_store::{Log, Pages, SessionKey, StoreError};

/// What a part of a wake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Wake,
    ModelRequest,
    Call,
    Gate,
    Approval,
    Queue,
    Run,
    Settle,
}

impl SpanKind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wake => "wake",
            Self::ModelRequest => "model_request",
            Self::Call => "call",
            Self::Gate => "gate",
            Self::Approval => "approval",
            Self::Queue => "queue",
            Self::Run => "run",
            Self::Settle => "settle",
        }
    }
}

/// How a part ended.
#[derive(Debug, Clone)]
pub enum SpanEnd {
    Wake {
        result: SpanResult,
        error_code: Option<String>,
    },
    ModelRequest {
        stop: String,
        usage: Option<ModelUsage>,
    },
    /// The code of the observation.
    Observed(String),
    /// The wake ended and left the call to another.
    Blocked,
}

/// A part of a wake.
#[derive(Debug, Clone)]
pub struct Span {
    pub kind: SpanKind,
    /// What a wake was about, the model, the tool; of a phase, its word.
    pub name: String,
    /// Of wakes and calls.
    pub id: Option<String>,
    pub from: Timestamp,
    /// `None`: it has not ended.
    pub to: Option<Timestamp>,
    pub end: Option<SpanEnd>,
    pub spans: Vec<Span>,
}

/// Every wake of a session, oldest first.
///
/// # Errors
/// If the store cannot be read.
pub async fn read(log: &dyn Log, key: SessionKey) -> Result<Vec<(WakeId, Span)>, StoreError> {
    let mut reader = Reader::default();
    let mut pages = Pages::of(log, key);
    while let Some(page) = pages.next().await? {
        page.iter().for_each(|event| reader.take(event));
    }
    Ok(reader.wakes.into_iter().map(|wake| (wake.id, wake.whole())).collect())
}

impl Span {
    fn new(kind: SpanKind, name: impl Into<String>, from: Timestamp) -> Self {
        Self { kind, name: name.into(), id: None, from, to: None, end: None, spans: Vec::new() }
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
                let mut wake = Span::new(SpanKind::Wake, span.summary, at);
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
                    wake.span.end = Some(SpanEnd::Wake { result: span.result, error_code: span.error_code });
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
                self.span.spans.push(Span::new(SpanKind::ModelRequest, start.model, at));
            }
            Body::ModelRequestEnd(end) => {
                let place = self.requests.get(&end.model_request_start_id).copied();
                if let Some(span) = place.and_then(|place| self.span.spans.get_mut(place)) {
                    span.to = Some(at);
                    span.end = Some(SpanEnd::ModelRequest { stop: end.stop, usage: end.model_usage });
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
        let mut span = Span::new(SpanKind::Call, self.tool, self.proposed);
        span.id = Some(id.to_string());
        span.to = self.observed.as_ref().map(|(at, _)| *at).or(self.paused);
        let blocked = self.paused.map(|_| SpanEnd::Blocked);
        span.end = self.observed.map(|(_, code)| SpanEnd::Observed(code)).or(blocked);
        let end = span.to;
        let mut phase = |kind: SpanKind, from: Option<Timestamp>, to: Option<Timestamp>| {
            if let Some(from) = from {
                span.spans.push(Span { to, ..Span::new(kind, kind.as_str(), from) });
            }
        };
        let decided = self.asked.or(self.scheduled).or(self.started).or(end);
        phase(SpanKind::Gate, Some(self.proposed), decided);
        phase(SpanKind::Approval, self.asked, self.answered);
        let ready = self.scheduled.filter(|_| self.started.is_some());
        phase(SpanKind::Queue, ready, self.started);
        phase(SpanKind::Run, self.started, self.completed.or(end));
        phase(SpanKind::Settle, self.completed, end);
        span
    }
}

/// Whose asks and invocations there were: some events name only those.
#[derive(Default)]
pub struct IntentsOf {
    asks: BTreeMap<AskId, IntentId>,
    invocations: BTreeMap<InvocationId, IntentId>,
}

impl IntentsOf {
    /// The intent that an event belongs to. Events come in the order of their log.
    pub fn of(&mut self, body: &Body) -> Option<IntentId> {
        let EventRefs { intent, ask, invocation, .. } = body.names();
        let of_ask = ask.and_then(|ask| self.asks.get(&ask).copied());
        let of_invocation = invocation.and_then(|invocation| self.invocations.get(&invocation).copied());
        let intent = intent.or(of_ask).or(of_invocation)?;
        self.asks.extend(ask.map(|ask| (ask, intent)));
        self.invocations.extend(invocation.map(|invocation| (invocation, intent)));
        Some(intent)
    }
}
