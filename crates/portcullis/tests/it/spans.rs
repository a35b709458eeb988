//! What a subscriber is told of a wake, and what it is never told.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use portcullis::harness::Settings;
use portcullis::{CallOutcome, PolicyBuilder, SecretText, parse_rules};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed};

const SECRET: &str = "hunter2-very-secret";
const CONTENT: &str = "what-the-file-holds";
const RULES: &str = "[[rules]]\nid = \"no-writes\"\naction = \"write\"\npath = \"/workspace/**\"\neffect = \"deny\"\n";
/// The phases of a call that runs, in the order of the path.
const PHASES: [&str; 7] = ["lookup", "validate", "permission", "schedule", "execute", "normalize", "bound"];

/// A span as it ended.
#[derive(Debug, Clone, Default)]
struct Seen {
    name: &'static str,
    parent: Option<usize>,
    fields: BTreeMap<&'static str, String>,
    closed: bool,
}

/// Every span of ours in the order in which they began, and every word of spans and events.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Seen>>>,
    words: Arc<Mutex<String>>,
}

/// Where a span stands in the list.
#[derive(Clone, Copy)]
struct Place(usize);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>, &'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let _ = writeln!(self.1, "{field}={text}");
        self.0.insert(field.name(), text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("it was opened");
        let place = |span: &tracing_subscriber::registry::SpanRef<'_, S>| span.extensions().get::<Place>().copied();
        let parent = span.parent().and_then(|parent| place(&parent)).map(|place| place.0);
        let mut seen = Seen { name: attributes.metadata().name(), parent, ..Seen::default() };
        attributes.record(&mut Fields(&mut seen.fields, &mut self.words.lock().expect("whole")));
        let mut spans = self.spans.lock().expect("whole");
        span.extensions_mut().insert(Place(spans.len()));
        spans.push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let seen = &mut self.spans.lock().expect("whole")[place(&context, id)];
        values.record(&mut Fields(&mut seen.fields, &mut self.words.lock().expect("whole")));
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut Fields(&mut BTreeMap::new(), &mut self.words.lock().expect("whole")));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.spans.lock().expect("whole")[place(&context, &id)].closed = true;
    }
}

fn place<S: tracing::Subscriber + for<'s> LookupSpan<'s>>(context: &Context<'_, S>, id: &Id) -> usize {
    let span = context.span(id).expect("it was opened");
    let place = span.extensions().get::<Place>().copied();
    place.expect("it was seen").0
}

impl Collector {
    /// Collects on this thread until the guard is dropped.
    fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let collector = Self::default();
        let ours = tracing_subscriber::filter::filter_fn(|of| of.target().starts_with("portcullis"));
        let subscriber = tracing_subscriber::registry().with(collector.clone().with_filter(ours));
        (collector, tracing::subscriber::set_default(subscriber))
    }

    fn spans(&self) -> Vec<Seen> {
        self.spans.lock().expect("whole").clone()
    }
}

impl Seen {
    #[track_caller]
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no `{name}` in {self:?}"))
    }
}

/// The spans with this name, each with its place.
fn named<'s>(spans: &'s [Seen], name: &'static str) -> Vec<(usize, &'s Seen)> {
    spans.iter().enumerate().filter(|(_, span)| span.name == name).collect()
}

/// The names of what began directly inside of a span, in order.
fn inside(spans: &[Seen], of: usize) -> Vec<&'static str> {
    spans.iter().filter(|span| span.parent == Some(of)).map(|span| span.name).collect()
}

async fn world(brain: Brain) -> World {
    let rules = parse_rules(RULES, "rules.toml", portcullis::Layer::User).expect("rules");
    let policy = PolicyBuilder::new().rules(rules).build().expect("a policy");
    let world = World::with(brain, Settings::default(), |builder| {
        builder.policy(policy).variable("TOKEN", SecretText::new(SECRET.to_owned()))
    });
    let world = world.await;
    std::fs::write(world.folder.path().join("a.txt"), format!("{CONTENT} and {SECRET}\n")).expect("a file");
    world
}

const READ: &str = r#"{"file_path":"a.txt"}"#;

#[tokio::test]
async fn a_wake_is_told_with_its_requests_its_calls_and_their_phases() {
    let write = format!(r#"{{"file_path":"b.txt","content":"{CONTENT}"}}"#);
    let world =
        world(Brain::new([vec![call("c1", "read", READ), call("c2", "write", &write)], vec![said("Done.")]])).await;
    world.say("look at it").await;
    let (collector, listening) = Collector::listen();
    let end = executed(world.wake().await);
    drop(listening);
    let spans = collector.spans();
    let wakes = named(&spans, "wake");
    let [(wake, told)] = wakes[..] else { panic!("one wake: {spans:#?}") };
    assert_eq!(told.parent, None);
    assert_eq!(told.field("session"), world.session.to_string());
    assert_eq!(told.field("wake"), end.wake_id.to_string());
    assert_eq!((told.field("requests"), told.field("end")), ("2", "end_turn"));

    let requests = named(&spans, "model_request");
    assert_eq!(requests.len(), 2, "{spans:#?}");
    for ((_, request), stop) in requests.iter().zip(["tool_use", "end_turn"]) {
        assert_eq!(request.parent, Some(wake));
        assert_eq!((request.field("provider"), request.field("model")), ("fake", "brain"));
        assert!(request.field("message_id").starts_with("msg_"), "{request:?}");
        assert_eq!(request.field("stop"), stop);
        assert_eq!((request.field("input_tokens"), request.field("output_tokens")), ("10", "5"));
    }

    let calls = named(&spans, "call");
    let [(read, reads), (write, writes)] = calls[..] else { panic!("two calls: {spans:#?}") };
    assert_eq!((reads.parent, writes.parent), (Some(wake), Some(wake)));
    assert_eq!((reads.field("tool"), reads.field("call"), reads.field("code")), ("read", "c1", "ok"));
    assert_eq!((writes.field("tool"), writes.field("call"), writes.field("code")), ("write", "c2", "policy_denied"));
    assert_eq!(reads.field("session"), world.session.to_string());
    assert_ne!(reads.field("intent"), writes.field("intent"));
    let phases = |call| -> Vec<&str> { inside(&spans, call).into_iter().filter(|name| *name != "commit").collect() };
    assert_eq!(phases(read), PHASES);
    let refused = phases(write);
    assert!(PHASES.starts_with(&refused) && !refused.contains(&"execute"), "a denied call runs nothing: {refused:?}");
    let commits = named(&spans, "commit");
    assert!(commits.len() >= 3 && commits.iter().all(|(_, commit)| commit.field("events") != "0"), "{commits:#?}");
    assert!(spans.iter().all(|span| span.closed), "{spans:#?}");
}

#[tokio::test]
async fn l69_no_span_and_no_event_holds_an_input_an_output_a_prompt_or_a_secret() {
    let shown = format!("the file says {CONTENT}");
    let world = world(Brain::new([
        vec![
            said(&shown),
            call("c1", "read", READ),
            // A model may write anything where a name or an id is wanted.
            call(&shown, "read", READ),
            call("c3", &shown, READ),
            call("c4", CONTENT, READ),
            call(SECRET, "read", READ),
            call("c6", SECRET, READ),
            call("c7", "write", &format!(r#"{{"file_path":"{CONTENT}","content":"{SECRET}"}}"#)),
            call("c8", "read", &format!("{CONTENT} is no JSON")),
            call("c9", "grep", &format!(r#"{{"pattern":"{CONTENT}"}}"#)),
        ],
        vec![said(&shown)],
    ]))
    .await;
    world.say(&format!("{shown} or {SECRET}; say {CONTENT}")).await;
    let (collector, listening) = Collector::listen();
    executed(world.wake().await);
    drop(listening);
    let words = collector.words.lock().expect("whole").clone();
    assert_eq!(named(&collector.spans(), "call").len(), 9, "every call is told: {words}");
    for never in [CONTENT, SECRET, "a.txt", "file says", "is no JSON"] {
        assert!(!words.contains(never), "`{never}` was told:\n{words}");
    }
    let folder = world.folder.path().to_string_lossy().into_owned();
    assert!(!words.contains(&folder), "a place of this machine was told:\n{words}");
    let events = world.events().await;
    let log: String = events.iter().filter_map(|event| event.payload.as_deref()).collect();
    assert!(log.contains(CONTENT), "the log holds what the spans do not");
}

#[tokio::test]
async fn a_failed_request_is_told_by_its_class_alone() {
    use portcullis::model::{Failure, ModelError};
    let world = world(Brain::scripted([Err(ModelError::new(Failure::Overloaded, CONTENT))])).await;
    world.say("look at it").await;
    let (collector, listening) = Collector::listen();
    executed(world.wake().await);
    drop(listening);
    let spans = collector.spans();
    let requests = named(&spans, "model_request");
    let [(_, request)] = requests[..] else { panic!("one request: {spans:#?}") };
    assert_eq!(request.field("error"), Failure::Overloaded.as_str());
    assert!(!request.fields.contains_key("stop"), "{request:?}");
    assert_eq!(named(&spans, "wake")[0].1.field("end"), "retrying");
    assert!(!collector.words.lock().expect("whole").contains(CONTENT));
}

#[tokio::test]
async fn a_call_without_a_wake_is_told_as_well() {
    let world = world(Brain::new([])).await;
    let (collector, listening) = Collector::listen();
    let outcome = world.runtime.call(world.session, "read", READ).await.expect("no fault");
    drop(listening);
    assert!(matches!(outcome, CallOutcome::Observed(_)), "{outcome:?}");
    let spans = collector.spans();
    let [(_, told)] = named(&spans, "call")[..] else { panic!("one call: {spans:#?}") };
    assert_eq!((told.parent, told.field("code")), (None, "ok"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_on_in_the_background_holds_no_span_open_but_its_own() {
    let leave = Arc::new(tokio::sync::Notify::new());
    let runtime = portcullis::Runtime::builder().tool("job", crate::tasks::job(&leave)).expect("a name");
    let runtime = runtime.build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let (collector, listening) = Collector::listen();
    let running = runtime.begin(session, "job", "{}");
    let (seen, meanwhile) = tokio::join!(running.outcome(), async {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let spans = collector.spans();
        leave.notify_one();
        spans
    });
    drop(listening);
    assert!(matches!(seen.expect("told"), CallOutcome::Observed(_)));
    let [(_, call)] = named(&meanwhile, "call")[..] else { panic!("one call: {meanwhile:#?}") };
    assert_eq!((call.closed, call.field("code")), (true, "background_started"));
    let [(_, task)] = named(&meanwhile, "task")[..] else { panic!("one task: {meanwhile:#?}") };
    assert_eq!((task.closed, task.parent), (false, None));
    assert_eq!(task.field("intent"), call.field("intent"));
    assert!(task.field("task").starts_with("task_"), "{task:?}");
}
