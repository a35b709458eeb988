//! A wake that ends at any moment, and another process that goes on with it (agent-runtime §11, check 5).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis::harness::{Settings, Woken};
use portcullis::model::{AnswerPart, Message, UserPart};
use portcullis::{
    CancellationToken, Code, Layer, MemoryArtifacts, PolicyBuilder, Runtime, Semantics, SessionId, Store, SystemClock,
    SystemIds, Tool, parse_rules,
};
use portcullis_event::{Body, Event, State};
use portcullis_store::{LeaseOwner, Liveness, LivenessOracle, MemoryStore, SessionKey};
use portcullis_store_testkit::{Fault, FaultKind, FaultyStore};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::brain::{Brain, call, said};
use crate::world::parts;

/// Whoever held a lease before is dead: here one process runs at a time.
struct AllDead;

impl LivenessOracle for AllDead {
    fn liveness(&self, _owner: &LeaseOwner) -> Liveness {
        Liveness::Dead
    }
}

#[derive(Deserialize, JsonSchema)]
struct Mark {
    word: String,
}

/// Leaves a line in a file each time it runs.
fn marking(folder: PathBuf) -> Tool {
    Tool::builder::<Mark, String>("Leaves a mark.")
        .semantics(Semantics::mutating())
        .execute(move |mark, _| {
            let file = folder.join("marks");
            async move {
                use std::io::Write as _;
                let mut file = std::fs::File::options().append(true).create(true).open(file).expect("the file");
                writeln!(file, "{}", mark.word).expect("a line");
                Ok("done".to_owned())
            }
        })
        .build()
        .expect("a sound tool")
}

fn mark(id: &str) -> AnswerPart {
    call(id, "mark", &format!(r#"{{"word":"{id}"}}"#))
}

/// Goes on by how many results it is shown.
fn next(messages: &[Message]) -> Vec<AnswerPart> {
    let results = messages.iter().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        Message::Assistant(_) => None,
    });
    match results.flatten().filter(|part| matches!(part, UserPart::Result(_))).count() {
        0 => vec![mark("m1")],
        1 => vec![said("On."), call("r1", "read", r#"{"file_path":"a.txt"}"#), mark("m2"), mark("m3")],
        _ => vec![said("That was all.")],
    }
}

struct Scene {
    folder: tempfile::TempDir,
    store: Arc<MemoryStore>,
    artifacts: Arc<MemoryArtifacts>,
    model: Arc<Brain>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "hello\n").expect("a file");
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(SystemIds::new()));
        Self {
            folder,
            store: Arc::new(MemoryStore::new(clock, ids, Arc::new(AllDead), None)),
            artifacts: Arc::new(MemoryArtifacts::default()),
            model: Arc::new(Brain::shown(next)),
        }
    }

    /// A process over the store as it sees it.
    fn process(&self, store: Arc<dyn Store>) -> Runtime {
        let rules =
            parse_rules("[[rules]]\naction = \"mark\"\nopaque = true\neffect = \"allow\"\n", "rules.toml", Layer::User);
        let policy = PolicyBuilder::new().rules(rules.expect("rules")).build().expect("a policy");
        let builder = Runtime::builder().workspace(self.folder.path()).store(store, self.artifacts.clone());
        let builder = builder.policy(policy).tool("mark", marking(self.folder.path().to_owned())).expect("a name");
        builder.build().expect("a runtime")
    }

    /// Wakes a session until nothing is due. The first error ends a process.
    async fn work(&self, runtime: &Runtime, session: SessionId) -> bool {
        let agent = runtime.agent(parts(Arc::clone(&self.model) as _, Settings::default()));
        // A few wakes at most: one that never has enough would hang the test.
        for _ in 0..6 {
            match agent.wake(session, &CancellationToken::new()).await {
                Ok(Woken::Executed(_)) => {}
                Ok(Woken::Idle) => return true,
                Err(_) => return false,
            }
        }
        panic!("it goes on for ever");
    }

    async fn events(&self, session: SessionId) -> Vec<Event> {
        let key = SessionKey { tenant: portcullis_event::LOCAL_TENANT, session };
        portcullis_store::Log::read(&*self.store, key, 0, 10_000).await.expect("the log")
    }
}

fn marks(folder: &Path) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("marks")).unwrap_or_default().lines() {
        *counted.entry(line.to_owned()).or_default() += 1;
    }
    counted
}

/// The first process meets the fault; what is then left is finished by another. `false`: the fault never came.
async fn cut(fault: Fault) -> bool {
    let scene = Scene::new();
    let sound = scene.process(scene.store.clone());
    let session = sound.create_session("cut").await.expect("a session");
    sound.say(session, "me", "go and mark").await.expect("said");
    let faulty = Arc::new(FaultyStore::new(scene.store.clone(), Some(fault)));
    let first = scene.process(faulty.clone());
    scene.work(&first, session).await;
    drop(first);
    let struck = faulty.struck();
    assert!(scene.work(&sound, session).await, "{fault:?}: the second process finds a whole store");

    let log = scene.events(session).await;
    let mut codes = BTreeMap::new();
    let (mut intents, mut spans, mut consumed) = (0, 0i32, Vec::new());
    let (mut asked, mut heard) = (Vec::new(), Vec::new());
    for event in &log {
        match event.body() {
            Body::IntentProposed(_) => intents += 1,
            Body::Observed(seen) => {
                let twice = codes.insert(seen.call_id.clone(), seen.code.known());
                assert_eq!(twice, None, "{fault:?}: {} is settled once", seen.call_id);
            }
            Body::InputConsumed(taken) => consumed.extend(taken.event_ids.clone()),
            Body::ModelRequestStart(_) => asked.push(event.id),
            Body::ModelRequestEnd(end) => heard.push(end.model_request_start_id),
            _ => {}
        }
        spans += match event.kind.to_string().as_str() {
            "span.started" => 1,
            "span.completed" => -1,
            _ => 0,
        };
    }
    assert_eq!((intents, codes.len()), (4, 4), "{fault:?}: every call once, and each has its end: {codes:?}");
    assert_eq!(spans, 0, "{fault:?}: no wake is left open");
    assert_eq!(asked, heard, "{fault:?}: and no request, each has one end (store §9)");
    assert_eq!(consumed.len(), 1, "{fault:?}: what the person said was taken up once");
    let marks = marks(scene.folder.path());
    for id in ["m1", "m2", "m3"] {
        let times = marks.get(id).copied().unwrap_or_default();
        match codes[id] {
            Some(Code::Ok) => assert_eq!(times, 1, "{fault:?}: {id} is said to have run"),
            Some(Code::OutcomeUnknown) => assert!(times <= 1, "{fault:?}: {id} ran {times} times"),
            other => panic!("{fault:?}: {id} ended as {other:?}"),
        }
    }
    let unknown = codes.values().filter(|code| **code == Some(Code::OutcomeUnknown)).count();
    assert!(unknown <= 1, "{fault:?}: at most the one in flight is unknown: {codes:?}");
    let requests = scene.model.requests();
    let last = requests.last().expect("it was asked");
    assert_eq!(last.matches("go and mark").count(), 1, "{fault:?}: its words are there once: {last}");
    let state = State::fold(&log);
    assert!(state.inbox.pending().is_empty() && state.progress.open.is_none(), "{fault:?}: nothing is left to do");
    struck
}

#[tokio::test]
async fn check05_a_wake_cut_at_every_call_of_the_store_loses_nothing_and_repeats_nothing() {
    let mut cuts = 0;
    for kind in FaultKind::ALL {
        let mut nth = 1;
        while cut(Fault { nth, kind }).await {
            (nth, cuts) = (nth + 1, cuts + 1);
        }
    }
    assert!(cuts > 4 * 8, "claim, five appends and more, in four ways: {cuts}");
}
