//! L69: a declared secret is in no event, artifact, view or log line, in no dress; and what a schema
//! marks sensitive is sealed, restored for the approved call, and gone when it has settled.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    Effects, Note, Process, World, acting, acts, call_in, call_on, fresh_message, observed, parked, proposal, touches,
    turn_of,
};
use portcullis_base::{ArtifactKind, Code, Reason, SideEffect};
use portcullis_contract::{
    AccessRequest, Action, Content, DefaultPolicy, Precondition, Prepared, Resolved, Resource, Semantics, SpoolRef,
    Tool, ToolContext, ToolFailure, UserText, Variable, VariableKind,
};
use portcullis_event::facts::Reply;
use portcullis_event::{AskState, Body};
use portcullis_pipeline::{Disposition, Proposal};
use portcullis_store::AskFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Needs escaping in URLs and in JSON, and is not ASCII.
const SECRET: &str = "hunter2/+\"q\" é&=%";

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        let digits = [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(n >> shift & 63) as usize]));
        out.extend(&digits[..=chunk.len()]);
    }
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn url(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        let _ = if b.is_ascii_alphanumeric() { write!(out, "{}", char::from(b)) } else { write!(out, "%{b:02X}") };
        out
    })
}

/// The secret in every dress it could wear.
fn dresses() -> Vec<String> {
    let json = serde_json::to_string(SECRET).expect("json");
    vec![
        SECRET.to_owned(),
        base64(SECRET.as_bytes()),
        base64(format!("user:{SECRET}").as_bytes()),
        base64(format!("x:{SECRET}").as_bytes()),
        hex(SECRET.as_bytes()),
        hex(SECRET.as_bytes()).to_uppercase(),
        url(SECRET),
        json[1..json.len() - 1].to_owned(),
    ]
}

fn all_dresses() -> String {
    dresses().join(" | ")
}

/// What must be nowhere: parts that no chance brings forth.
fn telltales() -> Vec<String> {
    let whole = base64(SECRET.as_bytes());
    let mut out = vec!["hunter2".to_owned(), url(SECRET), hex(SECRET.as_bytes()), whole[..20].to_owned()];
    out.push(hex(SECRET.as_bytes()).to_uppercase());
    for before in ["user:", "x:"] {
        let text = base64(format!("{before}{SECRET}").as_bytes());
        out.push(text[8..24].to_owned());
    }
    out
}

fn assert_clean(what: &str, text: &str) {
    for telltale in telltales() {
        assert!(!text.contains(&telltale), "{what} tells `{telltale}`: {}", &text[..text.len().min(2_000)]);
    }
}

/// Everything the world keeps and shows: events, artifacts, menus, asks, model views.
async fn assert_nothing_kept(world: &World, process: &Process) {
    for event in world.events().await {
        let payload = event.payload.as_deref().unwrap_or_default();
        assert_clean(&format!("the event {} ({})", event.kind, event.seq), payload);
        match event.body() {
            Body::ArtifactStored(stored) => {
                let (_, window) = process.gate.shelf().open(stored.artifact.id, None).await.expect("it is there");
                let bytes = window.slice(0, window.len()).expect("read");
                assert_clean(&format!("the artifact {:?}", stored.artifact.kind), &String::from_utf8_lossy(&bytes));
            }
            Body::MenuFrozen(menu) => {
                let body = world.store.blob(world.key().tenant, menu.hash).await.expect("read").expect("stored");
                assert_clean("a menu", &String::from_utf8_lossy(&body));
            }
            Body::Observed(seen) => assert_clean("a model's view", &seen.model_view().to_string()),
            Body::PermissionAsked(asked) => {
                if let Some(id) = asked.facts["diff"]["id"].as_str() {
                    let id = serde_json::from_value(serde_json::json!(id)).expect("an id");
                    let (_, window) = process.gate.shelf().open(id, None).await.expect("it is there");
                    let bytes = window.slice(0, window.len()).expect("read");
                    assert_clean("the diff of an ask", &String::from_utf8_lossy(&bytes));
                }
            }
            _ => {}
        }
    }
    let asks = world.store.asks(world.key().tenant, AskFilter { session: None, pending: false }).await.expect("asks");
    for ask in asks {
        assert_clean("the row of an ask", &format!("{ask:?}"));
    }
}

async fn secretive() -> World {
    let mut world = World::new().await;
    world.secrets = vec![SECRET.to_owned()];
    world
}

fn with_variable(semantics: Semantics) -> Semantics {
    let variable = Variable {
        name: "S0".to_owned(),
        kind: VariableKind::Secret,
        required: true,
        scoped: false,
        description: "a password".to_owned(),
    };
    Semantics { variables: vec![variable], ..semantics }
}

async fn assert_tells_nothing(tool: Tool, code: Code) {
    let world = secretive().await;
    let process = world.process([("t", tool)]);
    let seen = process.call("t", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(code));
    assert_clean("what the caller is given", &format!("{seen:?}"));
    assert_nothing_kept(&world, &process).await;
}

#[tokio::test]
async fn l69_the_tool_gets_the_secret_and_nobody_else_does() {
    let got: Arc<Mutex<String>> = Arc::default();
    let taken = Arc::clone(&got);
    let tool = acting(with_variable(acts()), move |_, context: ToolContext| {
        let secret = context.var("S0").map(|s| s.expose().to_owned()).unwrap_or_default();
        secret.clone_into(&mut taken.lock().expect("nobody panics"));
        async move { Ok(format!("I was told {secret}")) }
    });
    assert_tells_nothing(tool.build().expect("a sound tool"), Code::Ok).await;
    assert_eq!(*got.lock().expect("nobody panicked"), SECRET);
}

#[tokio::test]
async fn l69_output_text_in_every_dress() {
    let tool = acting(acts(), |_, _| async { Ok(format!("{}\n", all_dresses()).repeat(3)) });
    assert_tells_nothing(tool.build().expect("a sound tool"), Code::Ok).await;
    // Long enough to be cut and kept as an artifact.
    let long = acting(acts(), |_, _| async { Ok(format!("{}\n", all_dresses()).repeat(2_000)) });
    assert_tells_nothing(long.build().expect("a sound tool"), Code::Ok).await;
}

#[tokio::test]
async fn l69_structured_output() {
    #[derive(Serialize, JsonSchema)]
    struct Found {
        tokens: Vec<String>,
        by_name: std::collections::BTreeMap<String, String>,
    }
    let tool = |n: usize| {
        Tool::builder::<Note, Found>("Finds tokens.")
            .semantics(Semantics::read_only())
            .execute(move |_, _| async move {
                let by_name = std::collections::BTreeMap::from([(SECRET.to_owned(), SECRET.to_owned())]);
                Ok(Found { tokens: vec![all_dresses(); n], by_name })
            })
            .build()
            .expect("a sound tool")
    };
    assert_tells_nothing(tool(1), Code::Ok).await;
    assert_tells_nothing(tool(300), Code::Ok).await;
    assert_tells_nothing(tool(1_500), Code::Ok).await;
}

#[tokio::test]
async fn l69_streams_split_anywhere() {
    for size in [1, 3, 7, 64, 5_000] {
        let tool = Tool::builder::<Note, SpoolRef>("Streams.")
            .semantics(Semantics::read_only())
            .execute(move |_, context| async move {
                let mut spool = context.spool("stdout");
                for chunk in all_dresses().as_bytes().chunks(size) {
                    spool.write(chunk).expect("room");
                }
                Ok(spool.finish())
            })
            .to_model(|_, output| vec![Content::Spool(serde_json::from_value(output.clone()).expect("a spool"))])
            .build()
            .expect("a sound tool");
        assert_tells_nothing(tool, Code::Ok).await;
    }
    // Large: it goes to the large store, masked on its way.
    let large = acting(acts(), |_, context: ToolContext| async move {
        let mut spool = context.spool("stdout");
        for _ in 0..2_000 {
            spool.write(all_dresses().as_bytes()).expect("room");
            spool.write(b"\n").expect("room");
        }
        Err::<String, _>(ToolFailure::command(Some(1), None, "exit code 1"))
    });
    assert_tells_nothing(large.build().expect("a sound tool"), Code::CommandFailed).await;
}

#[tokio::test]
async fn l56_a_masked_stream_is_still_complete() {
    let world = secretive().await;
    let tool = acting(acts(), |_, context: ToolContext| async move {
        let mut spool = context.spool("stdout");
        spool.write(SECRET.as_bytes()).expect("room");
        Err::<String, _>(ToolFailure::command(Some(1), None, "exit code 1"))
    });
    let process = world.process([("t", tool.build().expect("a sound tool"))]);
    let seen = process.call("t", "x").await;
    let seen = observed(&seen);
    assert!(seen.capture[0].complete, "nothing was dropped: {:?}", seen.capture);
    assert!(seen.artifacts.is_empty() && !seen.truncated, "it was shown whole");
}

#[tokio::test]
async fn l69_words_of_failures_and_reports() {
    let failing = |failure: fn() -> ToolFailure| {
        acting(acts(), move |_, _| async move { Err::<String, _>(failure()) }).build().expect("a sound tool")
    };
    assert_tells_nothing(failing(|| ToolFailure::new("t", all_dresses())), Code::ToolFailure).await;
    assert_tells_nothing(failing(|| ToolFailure::new(SECRET, "no")), Code::ToolFailure).await;
    assert_tells_nothing(failing(|| ToolFailure::new("t", all_dresses().repeat(200))), Code::ToolFailure).await;
    let stale = || ToolFailure::precondition(Precondition::stale(all_dresses()));
    assert_tells_nothing(failing(stale), Code::StaleFileBaseline).await;

    let reports = acting(acts(), |_, context: ToolContext| async move {
        context.warn(all_dresses());
        context.did(SideEffect {
            kind: format!("sent {SECRET}"),
            target: all_dresses(),
            before: Some(all_dresses()),
            after: Some(all_dresses()),
            reversible: false,
        });
        let _ = context.spool(&all_dresses()).write(b"named after it");
        let _ = context.keep(ArtifactKind::File, "text/plain", all_dresses().into_bytes());
        let _ = context.keep(ArtifactKind::File, "text/plain", all_dresses().repeat(500).into_bytes());
        let media = context.keep(ArtifactKind::Media, "image/png", vec![1, 2, 3])?;
        Ok(media.to_string())
    })
    .to_user(|_, _| UserText { title: all_dresses(), summary: all_dresses() })
    .to_model(|_, output| {
        let artifact = serde_json::from_value(output.clone()).expect("an id");
        vec![Content::text(all_dresses()), Content::Media { mime: "image/png".into(), artifact, name: all_dresses() }]
    });
    assert_tells_nothing(reports.build().expect("a sound tool"), Code::Ok).await;
}

/// Writes down what is logged.
struct Listener(Arc<Mutex<String>>);

impl tracing::Subscriber for Listener {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{field}={value:?} ");
            }
        }
        event.record(&mut Text(&mut self.0.lock().expect("nobody panics with it")));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn l69_words_of_panics_in_the_log_and_on_it() {
    let heard: Arc<Mutex<String>> = Arc::default();
    let _listening = tracing::subscriber::set_default(Listener(Arc::clone(&heard)));
    let fine = |_: Note, _: ToolContext| async { Ok("fine".to_owned()) };
    let tools = [
        acting(acts(), |_, _| async { panic!("{}", all_dresses()) }),
        acting(acts(), fine).to_model(|_, _| panic!("{}", all_dresses())),
        acting(acts(), fine).to_structured(|_, _| panic!("{}", all_dresses())),
        acting(acts(), fine).anchors(|_| panic!("{}", all_dresses())),
        acting(acts(), fine).resolve(|_, _| panic!("{}", all_dresses())),
        acting(acts(), fine).precheck(|_, _, _| async { panic!("{}", all_dresses()) }),
    ];
    for tool in tools {
        assert_tells_nothing(tool.build().expect("a sound tool"), Code::InternalError).await;
    }
    let heard = heard.lock().expect("nobody panicked").clone();
    assert!(heard.contains("a projection panicked"), "it listens: {heard}");
    assert_clean("a log line", &heard);
}

/// Names what it is given in every way a tool can: resources, keys of access, preconditions, diffs.
fn naming(policy: DefaultPolicy) -> Tool {
    acting(Semantics { default_policy: policy, ..acts() }, |input, _| async move { Ok(input.text) })
        .resolve(|input, _| {
            let resources = touches(&input.text).resources().cloned().collect();
            Ok(Resolved { resources, cwd: Some(format!("/workspace/{}", input.text)), ..Resolved::default() })
        })
        .precheck(|input, _, _| async move {
            let diff = Some(format!("+ {}", input.text).into());
            Ok(Prepared { diff, facts: vec![("note".to_owned(), input.text.clone())], ..Prepared::default() })
        })
        .plan_access(|input, _| vec![touches(&input.text).fact("what", &input.text)])
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn l69_a_secret_in_the_input_of_every_kind_of_call() {
    let mut world = secretive().await;
    world.rules = "[[rules]]\nid = \"no\"\naction = \"never\"\neffect = \"deny\"\n".to_owned();
    let failing = acting(acts(), |_, _| async { Ok(String::new()) })
        .precheck(
            |input, _, _| async move { Err(Precondition::failed(Reason::NotFound, format!("no {}", input.text))) },
        )
        .build()
        .expect("a sound tool");
    let denied = acting(acts(), |_, _| async { Ok(String::new()) })
        .plan_access(|input, _| {
            let resource = Resource::path(format!("/workspace/{}", input.text), &input.text);
            vec![AccessRequest::new(Action::new("never"), resource, [portcullis_base::Risk::Write].into())]
        })
        .build()
        .expect("a sound tool");
    let process = world.process([
        ("allowed", naming(DefaultPolicy::Allow)),
        ("asks", naming(DefaultPolicy::Ask)),
        ("failing", failing),
        ("denied", denied),
    ]);
    let session = process.open().await;
    let whole = serde_json::json!({ "text": SECRET }).to_string();
    let dressed = serde_json::json!({ "text": all_dresses() }).to_string();
    let mistyped = serde_json::json!({ "text": [SECRET], SECRET: 1 }).to_string();
    let broken = format!("{{\"text\": {SECRET}");
    for tool in ["allowed", "asks", "failing", "denied", "nowhere", SECRET] {
        for input in [&whole, &dressed, &mistyped, &broken] {
            let turn = turn_of(&session).await;
            let said = Proposal {
                stated_reason: Some(format!("because {}", all_dresses())),
                ..proposal("c", fresh_message(), tool, input)
            };
            let seen = call_on(&session, &turn, said).await.expect("no halt");
            assert_clean("what the caller is given", &format!("{seen:?}"));
        }
    }
    session.release().await.expect("released");
    assert_nothing_kept(&world, &process).await;
}

#[tokio::test]
async fn l33_l69_no_rule_is_suggested_that_would_name_a_secret() {
    let world = secretive().await;
    let process = world.process([("asks", naming(DefaultPolicy::Ask))]);
    let suggested = |facts: &portcullis_event::Event| match facts.body() {
        Body::PermissionAsked(asked) => Some(asked.suggested_rules),
        _ => None,
    };
    parked(&process.call("asks", "plain").await);
    let rules = world.events().await.iter().find_map(suggested).expect("asked");
    assert!(!rules.is_empty(), "for a plain name there is one");
    parked(&process.call("asks", SECRET).await);
    let rules = world.events().await.iter().rev().find_map(suggested).expect("asked");
    assert!(!serde_json::json!(rules).to_string().contains("***"), "masked it would be another rule: {rules:?}");
    assert_nothing_kept(&world, &process).await;
}

#[tokio::test]
async fn l36_l69_an_approved_call_runs_with_the_secret_it_was_given() {
    let world = secretive().await;
    let got: Arc<Mutex<String>> = Arc::default();
    let tool = |got: &Arc<Mutex<String>>| {
        let got = Arc::clone(got);
        let asks = Semantics { default_policy: DefaultPolicy::Ask, ..acts() };
        acting(asks, move |input: Note, _| {
            input.text.clone_into(&mut got.lock().expect("nobody panics"));
            async { Ok("sent".to_owned()) }
        })
        .build()
        .expect("a sound tool")
    };
    let asking = world.process([("t", tool(&got))]);
    let ask = parked(&asking.call("t", SECRET).await);
    drop(asking);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let later = world.process([("t", tool(&got))]);
    let session = later.open().await;
    let attended = session.attend().await.expect("attended");
    assert!(observed(&attended[0].disposition).ok);
    assert_eq!(*got.lock().expect("nobody panicked"), SECRET, "the stored input, not its mask");
    session.release().await.expect("released");
    assert_nothing_kept(&world, &later).await;
}

// --- sensitive fields ------------------------------------------------------------------------------

const PASSWORD: &str = "hunter2 of the field";

#[derive(Deserialize, JsonSchema)]
struct Login {
    user: String,
    #[schemars(extend("x-portcullis-sensitive" = true))]
    password: Password,
}

/// A text of at least eight characters; says so with the value in its mouth, as serde does.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Password(String);

impl<'de> Deserialize<'de> for Password {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with("bad") {
            return Err(serde::de::Error::custom(format!("`{text}` will not do")));
        }
        Ok(Self(text))
    }
}

fn login(effects: &Effects, policy: DefaultPolicy) -> Tool {
    let effects = effects.clone();
    Tool::builder::<Login, String>("Logs in.")
        .semantics(Semantics { default_policy: policy, ..acts() })
        .plan_access(|input, _| vec![touches(&input.user)])
        .execute(move |input, _| {
            effects.add(format!("{}:{}", input.user, input.password.0));
            async { Ok("in".to_owned()) }
        })
        .build()
        .expect("a sound tool")
}

fn credentials(password: &str) -> String {
    serde_json::json!({"user": "me", "password": password}).to_string()
}

async fn assert_masked(world: &World, process: &Process) {
    assert_nothing_kept(world, process).await;
    let intents = world.events().await.into_iter().filter_map(|e| match e.body() {
        Body::IntentProposed(intent) => Some(intent.raw_input),
        _ => None,
    });
    for raw in intents {
        assert_eq!(raw["password"], serde_json::json!("***"), "{raw}");
    }
}

#[tokio::test]
async fn l69_a_sensitive_field_is_sealed_until_its_call_has_run() {
    let world = World::new().await;
    let asking = world.process([("login", login(&world.effects, DefaultPolicy::Ask))]);
    let session = asking.open().await;
    let (disposition, intent) = call_in(&session, "login", &credentials(PASSWORD)).await.expect("no halt");
    let ask = parked(&disposition);
    session.release().await.expect("released");
    assert_masked(&world, &asking).await;
    let sealed = world.store.sealed(world.key(), intent).await.expect("read").expect("kept with the intent");
    assert_clean("the sealed row", &String::from_utf8_lossy(&sealed));
    drop(asking);

    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let later = world.process([("login", login(&world.effects, DefaultPolicy::Ask))]);
    let session = later.open().await;
    let attended = session.attend().await.expect("attended");
    assert!(observed(&attended[0].disposition).ok);
    assert_eq!(world.effects.all(), [format!("me:{PASSWORD}")], "the real value, once");
    assert_eq!(world.store.sealed(world.key(), intent).await.expect("read"), None, "gone with the settlement");
    session.release().await.expect("released");
    assert_masked(&world, &later).await;
}

#[tokio::test]
async fn l69_a_sealed_row_is_gone_however_its_intent_ends() {
    for reply in [Some(Reply::Deny), None] {
        let world = World::new().await;
        let process = world.process([("login", login(&world.effects, DefaultPolicy::Ask))]);
        let session = process.open().await;
        let (disposition, intent) = call_in(&session, "login", &credentials(PASSWORD)).await.expect("no halt");
        match reply {
            Some(reply) => world.reply(parked(&disposition), reply).await.expect("answered"),
            None => world.clock.advance(Duration::from_secs(25 * 3_600)),
        }
        let attended = session.attend().await.expect("attended");
        assert_eq!(attended.len(), 1);
        assert_eq!(world.store.sealed(world.key(), intent).await.expect("read"), None);
        assert_eq!(world.effects.count(), 0);
        assert_masked(&world, &process).await;
    }
    // One that never parks never leaves one behind.
    let world = World::new().await;
    let process = world.process([("login", login(&world.effects, DefaultPolicy::Allow))]);
    let session = process.open().await;
    let (seen, intent) = call_in(&session, "login", &credentials(PASSWORD)).await.expect("no halt");
    assert!(observed(&seen).ok);
    assert_eq!(world.store.sealed(world.key(), intent).await.expect("read"), None);
    assert_eq!(world.effects.all(), [format!("me:{PASSWORD}")]);
    assert_masked(&world, &process).await;
}

#[tokio::test]
async fn l69_a_sensitive_field_of_a_call_that_is_refused() {
    let world = World::new().await;
    let process = world.process([("login", login(&world.effects, DefaultPolicy::Allow))]);
    let session = process.open().await;
    let code = |d: &Disposition| observed(d).code.known();

    // A wrong type, and a value that only serde refuses: the message must not quote it.
    let number = r#"{"user":"me","password":["hunter2 of the field"]}"#;
    let (seen, _) = call_in(&session, "login", number).await.expect("no halt");
    assert_eq!(code(&seen), Some(Code::SchemaInvalid));
    let (seen, _) = call_in(&session, "login", &credentials("bad hunter2 of the field")).await.expect("no halt");
    assert_eq!(code(&seen), Some(Code::SchemaInvalid));
    // Used twice, and stale.
    let turn = turn_of(&session).await;
    let message = fresh_message();
    for expected in [Code::Ok, Code::DuplicateCall] {
        let said = proposal("c", message, "login", &credentials(PASSWORD));
        assert_eq!(code(&call_on(&session, &turn, said).await.expect("no halt")), Some(expected));
    }
    drop(process.guard);
    let said = proposal("d", fresh_message(), "login", &credentials(PASSWORD));
    assert_eq!(code(&call_on(&session, &turn, said).await.expect("no halt")), Some(Code::StaleTool));
    drop(session);
    let later = world.process([("login", login(&world.effects, DefaultPolicy::Allow))]);
    assert_masked(&world, &later).await;
}

#[tokio::test]
async fn l69_an_input_that_cannot_be_unsealed_is_never_run_with_its_mask() {
    let world = World::new().await;
    let asking = world.process([("login", login(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&asking.call_raw("login", &credentials(PASSWORD)).await);
    drop(asking);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let stranger =
        world.process_with(Arc::clone(&world.store), [1; 32], [("login", login(&world.effects, DefaultPolicy::Ask))]);
    let session = stranger.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(seen.code.known(), Some(Code::RuntimePreconditionFailed));
    assert_eq!(seen.reason.as_ref().and_then(|r| r.known()), Some(Reason::ContextUnavailable));
    assert_eq!(world.effects.count(), 0, "`***` is not the password that was approved");
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.state, AskState::Voided);
    assert!(session.attend().await.expect("attended").is_empty());
}
