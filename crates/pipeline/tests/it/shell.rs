//! What calls tell of their session's shell: durable with the end of the call, however it ended; values of the
//! environment sealed, and opened by nobody but a launch.

use crate::common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{Effects, Note, Process, World, acting, acts, call_in, change, observed, runtime, tool};
use portcullis_base::{AppendId, Code, CommandId, EnvKey, SessionId, ShellId, limits};
use portcullis_contract::{Caller, DefaultPolicy, EndedCommand, Semantics, ShellFact, Tool, ToolContext, ToolFailure};
use portcullis_event::facts::SessionCreated;
use portcullis_event::fold::ShellStatus;
use portcullis_event::{Body, Event, State};
use portcullis_pipeline::{Environment, Session, ShellError};
use portcullis_secret::SecretText;
use portcullis_store::{RecordWrite, SessionKey, VARIABLE, variable_id};

const VALUE: &str = "canary of the environment";

fn key(name: &str) -> EnvKey {
    name.parse().expect("a name that a session may set")
}

fn set(name: &str, value: &str) -> ShellFact {
    ShellFact::EnvSet(key(name), SecretText::new(value))
}

/// A tool that tells `facts` and then does what `end` says.
fn telling<F, Fut>(semantics: Semantics, facts: Vec<ShellFact>, end: F) -> Tool
where
    F: Fn(ToolContext) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolFailure>> + Send + 'static,
{
    let run = move |_: Note, context: ToolContext| {
        let (facts, end) = (facts.clone(), end.clone());
        async move {
            facts.into_iter().for_each(|fact| context.shell(fact));
            end(context).await
        }
    };
    if semantics.read_only { tool(semantics, run) } else { acting(semantics, run).build().expect("a sound tool") }
}

async fn fine(_: ToolContext) -> Result<String, ToolFailure> {
    Ok("done".to_owned())
}

fn ended(n: u128) -> EndedCommand {
    EndedCommand {
        command_id: CommandId::from_u128(n),
        command: "shell".to_owned(),
        args: vec![format!("echo {n}")],
        cwd: "/workspace".to_owned(),
        exit_code: Some(0),
        timed_out: false,
        duration_ms: 7,
        shell_id: None,
        stdout: None,
        stderr: None,
    }
}

fn caller(session: SessionId) -> Caller {
    Caller {
        tenant: portcullis_event::LOCAL_TENANT,
        principal: "tester".to_owned(),
        actor: portcullis_event::Actor::agent("tester"),
        session_id: session,
        agent: "tester".to_owned(),
        message_id: portcullis_base::MessageId::from_u128(1),
        call_id: "c".to_owned(),
        turn_id: portcullis_base::TurnId::from_u128(1),
        intent_id: portcullis_base::IntentId::from_u128(1),
        asker_env: std::collections::BTreeMap::new(),
    }
}

async fn environment(process: &Process) -> Environment {
    process.gate.shells().environment(&caller(process.session)).await.expect("it is held")
}

fn exposed(environment: &Environment) -> Vec<(&str, &str)> {
    environment.values.iter().map(|(key, value)| (key.as_str(), value.expose())).collect()
}

/// The append of the one event of this type.
fn append_of(events: &[Event], kind: &str) -> AppendId {
    let mut found = events.iter().filter(|event| event.kind.as_str() == kind);
    let append = found.next().unwrap_or_else(|| panic!("no {kind}")).append_id;
    assert!(found.next().is_none(), "more than one {kind}");
    append
}

async fn call(session: &Session, tool: &str) -> portcullis_event::Observed {
    observed(&call_in(session, tool, r#"{"text":"x"}"#).await.expect("no halt").0).clone()
}

fn facts() -> Vec<ShellFact> {
    vec![ShellFact::Cwd("/workspace/sub".to_owned()), set("A", VALUE)]
}

#[test]
fn check20_what_a_call_told_stands_however_it_ended() {
    runtime().block_on(async {
        let breaks = async |_: ToolContext| -> Result<String, ToolFailure> { panic!("a defect") };
        let fails = async |_: ToolContext| Err(ToolFailure::command(Some(3), None, "no"));
        let hangs = async |_: ToolContext| {
            tokio::time::sleep(Duration::from_secs(3_600 * 24)).await;
            Ok(String::new())
        };
        for (tool, code) in [
            (telling(acts(), facts(), fine), Code::Ok),
            (telling(acts(), facts(), fails), Code::CommandFailed),
            (telling(acts(), facts(), breaks), Code::InternalError),
            (telling(acts(), facts(), hangs), Code::Timeout),
        ] {
            let world = World::new().await;
            let process = world.process([("tell", tool)]);
            let session = process.open().await;
            assert_eq!(call(&session, "tell").await.code.known(), Some(code));
            session.release().await.expect("released");
            drop(process);

            let events = world.events().await;
            let end = append_of(&events, "tool.observation");
            assert_eq!(append_of(&events, "session.updated"), end, "{code}: in the append of the observation");
            assert_eq!(append_of(&events, "variable.set"), end, "{code}");
            let work: BTreeSet<AppendId> = events[1..].iter().map(|event| event.append_id).collect();
            assert_eq!(work.len(), 2, "{code}: two appends, as ever");

            let later = world.process([]);
            let session = later.open().await;
            assert_eq!(session.state().shell.cwd(), Some("/workspace/sub"), "{code}");
            assert_eq!(exposed(&environment(&later).await), [("A", VALUE)], "{code}");
        }
    });
}

#[tokio::test]
async fn l23_a_command_of_a_call_that_only_looks_costs_no_append_more_and_its_output_is_kept() {
    let world = World::new().await;
    let run = async |context: ToolContext| {
        let (mut out, mut err) = (context.spool("stdout"), context.spool("stderr"));
        out.write(format!("{}\nlast line\n", "é".repeat(1_000)).as_bytes()).expect("taken");
        err.write(b"oh").expect("taken");
        let (stdout, stderr) = (Some(out.finish()), Some(err.finish()));
        context.shell(ShellFact::Finished(Box::new(EndedCommand { stdout, stderr, ..ended(1) })));
        Ok("ran".to_owned())
    };
    let process = world.process([("run", telling(Semantics::read_only(), Vec::new(), run))]);
    let session = process.open().await;
    let mut facts = portcullis_pipeline::Append::new();
    let turn = session.begin_turn(&mut facts);
    let said = common::proposal("c", common::fresh_message(), "run", r#"{"text":"x"}"#);
    let (facts, disposition) = session.admit(facts, &turn, said).settled().await.expect("no halt");
    session.commit(facts).await.expect("committed");
    assert!(observed(&disposition).ok);
    let work: BTreeSet<AppendId> = world.events().await[1..].iter().map(|event| event.append_id).collect();
    assert_eq!(work.len(), 1);

    let seen = process.gate.shells().look(&caller(world.session), None).await.expect("its own");
    let last = seen.shell.recent().next().expect("it is recorded").clone();
    let preview = last.fact.command.stdout_preview.clone().expect("it wrote");
    assert_eq!(preview.chars().count(), limits::OUTPUT_PREVIEW);
    assert!(preview.starts_with("…é") && preview.ends_with("\nlast line\n"), "{preview}");
    assert_eq!(last.fact.command.stderr_preview.as_deref(), Some("oh"));
    let shelf = process.gate.shelf();
    for (artifact, bytes) in [(last.fact.stdout_ref, 2_011), (last.fact.stderr_ref, 2)] {
        let (_, window) = shelf.open(artifact.expect("kept"), Some(world.session)).await.expect("readable");
        assert_eq!(window.len(), bytes);
    }
}

#[tokio::test]
async fn check17_h12_l69_a_value_is_in_no_event_row_or_view() {
    let world = World::new().await;
    let process = world.process([("tell", telling(acts(), facts(), fine))]);
    let session = process.open().await;
    let seen = call(&session, "tell").await;
    let state = session.state();
    let rows = world.store.records(world.key().tenant, VARIABLE).await.expect("rows");
    assert_eq!(rows.len(), 1, "its sealed row");
    let events = serde_json::to_string(&world.events().await).expect("json");
    let shown = format!("{seen:?} {} {state:?}", serde_json::to_string(&state).expect("json"));
    let opened = environment(&process).await;
    assert_eq!(exposed(&opened), [("A", VALUE)], "it is there");
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    for (what, text) in
        [("events", events), ("views", shown), ("rows", format!("{rows:?}")), ("printed", format!("{opened:?}"))]
    {
        assert!(!text.contains(VALUE) && !text.contains(&hex) && !text.contains("canary"), "{what}: {text}");
    }
    // Taken out, it is gone.
    session.release().await.expect("released");
    drop(process);
    let process = world.process([("untell", telling(acts(), vec![ShellFact::EnvUnset(key("A"))], fine))]);
    let session = process.open().await;
    assert!(call(&session, "untell").await.ok);
    assert!(world.store.records(world.key().tenant, VARIABLE).await.expect("rows").is_empty());
    assert!(environment(&process).await.values.is_empty());
    assert!(call(&session, "untell").await.ok, "what is not there can be taken out");
    assert_eq!(world.types().await.iter().filter(|kind| *kind == "variable.deleted").count(), 1);
}

#[tokio::test]
async fn h12_a_sealed_value_that_was_put_back_or_moved_or_sealed_elsewhere_is_lost_and_never_another() {
    let world = World::new().await;
    let tools = || {
        [
            ("first", telling(acts(), vec![set("A", "one"), set("B", "two")], fine)),
            ("again", telling(acts(), vec![set("A", "three")], fine)),
        ]
    };
    let process = world.process(tools());
    let session = process.open().await;
    let tenant = world.key().tenant;
    let row = async |name: &str| {
        let id = variable_id(world.session, name);
        world.store.record(tenant, VARIABLE, &id).await.expect("read").expect("a row").body
    };
    let put = async |name: &str, body| {
        let id = variable_id(world.session, name);
        let write = RecordWrite { kind: VARIABLE.to_owned(), id, expected: None, body };
        world.store.put_record(tenant, write).await.expect("written");
    };
    assert!(call(&session, "first").await.ok);
    let old = row("A").await;
    assert!(call(&session, "again").await.ok);
    let new = row("A").await;
    assert_eq!(exposed(&environment(&process).await), [("A", "three"), ("B", "two")]);

    put("A", Some(old)).await;
    let opened = environment(&process).await;
    assert_eq!((exposed(&opened), &opened.lost[..]), (vec![("B", "two")], &["A".to_owned()][..]), "put back");
    put("A", Some(new.clone())).await;
    put("B", Some(new)).await;
    let opened = environment(&process).await;
    assert_eq!((exposed(&opened), &opened.lost[..]), (vec![("A", "three")], &["B".to_owned()][..]), "moved");
    put("B", None).await;
    assert_eq!(environment(&process).await.lost, ["B"], "gone");
    session.release().await.expect("released");
    drop(process);
    let stranger = world.process_with(std::sync::Arc::clone(&world.store), [1; 32], tools());
    let _session = stranger.open().await;
    let opened = environment(&stranger).await;
    assert!(opened.values.is_empty());
    assert_eq!(opened.lost, ["A", "B"], "another key");
}

#[tokio::test]
async fn what_an_environment_cannot_hold_is_told_by_name_and_not_by_value() {
    let world = World::new().await;
    let long = "x".repeat(limits::ENV_VALUE + 1);
    let told = vec![set("LONG", &long), set("NUL", "a\0b"), set("FINE", "")];
    let many: Vec<ShellFact> = (0..limits::ENV_NAMES).map(|n| set(&format!("N{n}"), "v")).collect();
    let more = [many.clone(), vec![ShellFact::EnvUnset(key("N0"))]].concat();
    let commands = (0..=limits::SHELL_FACTS as u128).map(|n| ShellFact::Finished(Box::new(ended(n)))).collect();
    let process = world.process([
        ("odd", telling(acts(), told, fine)),
        ("many", telling(acts(), many, fine)),
        ("more", telling(acts(), more, fine)),
        ("commands", telling(acts(), commands, fine)),
    ]);
    let session = process.open().await;
    let seen = call(&session, "odd").await;
    assert!(seen.ok && seen.warnings.len() == 2, "{:?}", seen.warnings);
    assert!(seen.warnings[0].contains("`LONG`") && seen.warnings[1].contains("`NUL`"), "{:?}", seen.warnings);
    assert!(!format!("{seen:?}").contains("xxxx"));
    assert_eq!(exposed(&environment(&process).await), [("FINE", "")]);
    let seen = call(&session, "many").await;
    assert_eq!(session.state().shell.env().len(), limits::ENV_NAMES);
    assert!(seen.warnings.iter().any(|line| line.contains("names already")), "{:?}", seen.warnings);
    let over = "1 more changes of the shell were not kept".to_owned();
    assert!(call(&session, "more").await.warnings.contains(&over));
    let seen = call(&session, "commands").await;
    assert_eq!(seen.warnings, [over]);
}

#[tokio::test]
async fn l69_words_of_a_command_are_masked_and_a_folder_with_a_secret_in_its_name_is_not_kept() {
    let mut world = World::new().await;
    world.secrets = vec!["hunter2-hunter2".to_owned()];
    let command = EndedCommand {
        args: vec!["curl -H hunter2-hunter2".to_owned(), "w".repeat(2 * limits::COMMAND_WORDS), "lost".to_owned()],
        cwd: "/workspace/hunter2-hunter2".to_owned(),
        ..ended(1)
    };
    let shell_id = ShellId::from_u128(1);
    let opened = ShellFact::Opened {
        shell_id,
        shell_path: "/bin/bash".to_owned(),
        cwd: "/workspace/hunter2-hunter2".to_owned(),
    };
    let told = vec![
        ShellFact::Cwd("/workspace/hunter2-hunter2".to_owned()),
        opened,
        ShellFact::Finished(Box::new(command)),
        ShellFact::Closed { shell_id, reason: "hunter2-hunter2".to_owned() },
    ];
    let process = world.process([("tell", telling(acts(), told, fine))]);
    let session = process.open().await;
    let seen = call(&session, "tell").await;
    assert!(seen.warnings[0].contains("folder of the shell was not kept"), "{:?}", seen.warnings);
    assert!(!serde_json::to_string(&world.events().await).expect("json").contains("hunter2"));
    let shell = session.state().shell;
    assert_eq!(shell.cwd(), None);
    assert_eq!(shell.persistent().map(|shell| shell.status), Some(ShellStatus::Closed));
    let last = shell.recent().next().expect("recorded");
    assert_eq!(last.fact.command.args[0], "curl -H ***");
    let words: usize = last.fact.command.args.iter().map(String::len).sum();
    assert!(words < limits::COMMAND_WORDS + 100, "{words}");
    assert_eq!(last.fact.command.args[2], "… (1 words more)");
}

#[tokio::test]
async fn a_session_sees_the_shell_of_its_like_and_of_no_other() {
    let world = World::new().await;
    let like = SessionId::from_u128(77);
    world.create(like).await;
    let elsewhere = SessionId::from_u128(78);
    let created = SessionCreated {
        agent_id: None,
        agent_version: 0,
        environment_id: None,
        parent_session_id: None,
        root_session_id: elsewhere,
        depth: 0,
        name: None,
        tags: Vec::new(),
        config_hash: portcullis_base::Digest::of(b""),
        has_setup: false,
        workspace: Some("/another".to_owned()),
        custom_tools: Vec::new(),
    };
    world.client(elsewhere, &created).await.expect("created");
    let foreign = SessionId::from_u128(79);
    let agent_id = Some(portcullis_base::AgentId::from_u128(1));
    let created = SessionCreated { agent_id, root_session_id: foreign, workspace: None, ..created };
    world.client(foreign, &created).await.expect("created");

    let mut other = world.process([("tell", telling(acts(), facts(), fine))]);
    other.session = like;
    assert!(observed(&other.call("tell", "x").await).ok);
    let process = world.process([]);
    let _session = process.open().await;
    let book = process.gate.shells();
    let own = caller(world.session);
    let seen = book.look(&own, Some(like)).await.expect("of the same agent and workspace");
    assert_eq!((seen.own, seen.shell.cwd()), (false, Some("/workspace/sub")));
    assert!(book.look(&own, Some(world.session)).await.expect("its own").own);
    for hidden in [elsewhere, foreign, SessionId::from_u128(80)] {
        let refused = book.look(&own, Some(hidden)).await.expect_err("not its like");
        assert!(matches!(refused, ShellError::NotInScope { .. }));
        assert_eq!(refused.to_string(), format!("Session {hidden} is not available to agent tester"));
    }
}

#[tokio::test]
async fn a_command_is_found_by_its_id_however_long_ago_it_ran() {
    let world = World::new().await;
    let many = limits::KNOWN_COMMANDS as u128 + 10;
    let batch = |first: u128| {
        let facts = (first..(first + 20).min(many)).map(|n| ShellFact::Finished(Box::new(ended(n)))).collect();
        telling(acts(), facts, fine)
    };
    for first in (0..many).step_by(20) {
        let process = world.process([("batch", batch(first))]);
        assert!(observed(&process.call("batch", "x").await).ok);
    }
    let process = world.process([("change", change(&Effects::default(), DefaultPolicy::Allow))]);
    let _session = process.open().await;
    let book = process.gate.shells();
    let seen = book.look(&caller(world.session), None).await.expect("its own");
    for n in [0, 9, 10, many - 6, many - 1] {
        let found = book.command(&seen, CommandId::from_u128(n)).await.expect("read");
        assert_eq!(found.map(|c| c.fact.command.args), Some(vec![format!("echo {n}")]), "{n}");
    }
    assert!(book.command(&seen, CommandId::from_u128(many)).await.expect("read").is_none());
    let newest = book.history(&seen, 8).await.expect("read");
    let ids: Vec<u128> = newest.iter().map(|c| c.fact.command.command_id.as_u128()).collect();
    assert_eq!(ids, (many - 8..many).rev().collect::<Vec<_>>());
    assert!(book.offers(world.session, "change") && !book.offers(world.session, "shell_open"));
}

#[tokio::test]
async fn l70_l71_the_shell_is_the_same_from_the_log() {
    let world = World::new().await;
    let shell_id = ShellId::from_u128(1);
    let opened = ShellFact::Opened { shell_id, shell_path: "/bin/bash".to_owned(), cwd: "/workspace".to_owned() };
    let command = EndedCommand { shell_id: Some(shell_id), ..ended(1) };
    let told = vec![opened, set("A", VALUE), ShellFact::Finished(Box::new(command)), ShellFact::EnvUnset(key("A"))];
    let process = world.process([("tell", telling(acts(), told, fine))]);
    let session = process.open().await;
    assert!(call(&session, "tell").await.ok);
    let events = world.events().await;
    assert_eq!(State::fold(&events).digest(), session.state().digest());
    let finished = events.iter().find_map(|event| match event.body() {
        Body::CommandFinished(fact) => Some(fact),
        _ => None,
    });
    let finished = finished.expect("recorded");
    assert_eq!((finished.cwd.as_deref(), &finished.env_keys[..]), (Some("/workspace"), &["A".to_owned()][..]));
    let key = SessionKey { tenant: world.key().tenant, session: world.session };
    assert_eq!(world.store.head(key).await.expect("a head").expect("there").last_seq, session.state().seq);
}
