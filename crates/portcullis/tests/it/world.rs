//! A runtime in memory over a real folder, and an agent in it whose model says what it was told to.

use std::sync::Arc;

use portcullis::harness::{NoWatcher, Settings, Woken};
use portcullis::model::Model;
use portcullis::{Agent, AgentParts, CancellationToken, Profile, Runtime, RuntimeBuilder, SessionId, SystemIds};
use portcullis_event::Body;

use crate::brain::Brain;

pub struct World {
    pub runtime: Runtime,
    pub agent: Agent,
    pub brain: Arc<Brain>,
    pub session: SessionId,
    pub folder: tempfile::TempDir,
}

pub async fn world(brain: Brain) -> World {
    World::with(brain, Settings::default(), |builder| builder).await
}

pub fn parts(model: Arc<dyn Model>, settings: Settings) -> AgentParts {
    AgentParts {
        model,
        settings: Settings { directive: false, ..settings },
        watcher: Arc::new(NoWatcher),
        entropy: Arc::new(SystemIds::new()),
        sandbox: "isolated".to_owned(),
    }
}

impl World {
    pub async fn with(brain: Brain, settings: Settings, more: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let builder = Runtime::builder().workspace(folder.path()).profile(Profile::Code);
        let runtime = more(builder).build().expect("a runtime");
        let brain = Arc::new(brain);
        let agent = runtime.agent(parts(Arc::clone(&brain) as _, settings));
        let session = runtime.create_session("test").await.expect("a session");
        Self { runtime, agent, brain, session, folder }
    }

    /// The same session with another model.
    pub fn agent_with(&self, model: impl Model + 'static) -> Agent {
        self.runtime.agent(parts(Arc::new(model), Settings::default()))
    }

    /// An agent without a reader, which is asked for a directive.
    pub fn alone(&self, model: Arc<dyn Model>) -> Agent {
        let parts = parts(model, Settings::default());
        self.runtime.agent(AgentParts { settings: Settings::default(), ..parts })
    }

    pub fn key(&self) -> portcullis_store::SessionKey {
        portcullis_store::SessionKey { tenant: self.runtime.gate().tenant(), session: self.session }
    }

    /// Everything that its events hold.
    pub async fn log(&self) -> String {
        self.events().await.iter().filter_map(|event| event.payload.as_deref().map(str::to_owned)).collect()
    }

    pub async fn say(&self, text: &str) {
        self.runtime.say(self.session, "me", text).await.expect("said");
    }

    /// Waits until the log has an event of this kind.
    pub async fn until(&self, kind: &str) {
        while !self.kinds().await.iter().any(|known| known == kind) {
            tokio::task::yield_now().await;
        }
    }

    /// How many events of this kind the log has.
    pub async fn count(&self, kind: &str) -> usize {
        self.kinds().await.iter().filter(|known| *known == kind).count()
    }

    pub async fn events(&self) -> Vec<portcullis_event::Event> {
        self.runtime.gate().store().read(self.key(), 0, 10_000).await.expect("the log")
    }

    pub async fn kinds(&self) -> Vec<String> {
        self.events().await.iter().map(|event| event.kind.to_string()).collect()
    }

    /// Queues a wake that is due now, as an operator may: the retry is then taken up with it.
    pub async fn make_due(&self) {
        use portcullis_event::facts::{Priority, WakeQueued};
        let now = portcullis::Clock::now(&portcullis::SystemClock::new());
        let ids = SystemIds::new();
        let wake = WakeQueued {
            queued_wake_id: portcullis_base::QueuedWakeId::make(&ids, now),
            due_at: now,
            reason: "operator".to_owned(),
            note: None,
            dedupe_key: Some(portcullis_event::facts::retry_key(self.session)),
            priority: Priority::Normal,
        };
        let actor = portcullis_event::Actor::user("me");
        let clock = portcullis::SystemClock::new();
        let stamp = portcullis_event::Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
        let append = portcullis_base::AppendId::make(&ids, now);
        let commit = portcullis_store::Commit::client(self.key(), append, vec![stamp.draft(&wake)]);
        self.runtime.gate().store().commit(commit).await.expect("a queued wake");
    }

    pub async fn wake(&self) -> Woken {
        let woken = self.agent.wake(self.session, &CancellationToken::new()).await.expect("a wake");
        self.totals_are_true().await;
        woken
    }

    /// What each wake says was used so far is what its log holds, whatever it ended with (H9).
    async fn totals_are_true(&self) {
        let mut counted = portcullis_event::facts::SessionUsage::default();
        for event in self.events().await {
            match event.body() {
                Body::SessionUsage(told) => {
                    let wakes = told.wakes;
                    assert_eq!(*told, portcullis_event::facts::SessionUsage { wakes, ..counted }, "at {}", event.seq);
                }
                fact => counted.count(&fact),
            }
        }
    }
}

/// The one ask that waits.
pub async fn pending(world: &World) -> portcullis::AskId {
    let filter = portcullis_store::AskFilter { session: Some(world.session), pending: true };
    let asks = world.runtime.gate().store().asks(world.runtime.gate().tenant(), filter).await.expect("asks");
    assert_eq!(asks.len(), 1, "one ask waits");
    asks[0].ask_id
}

/// Allows the one ask that waits, once.
pub async fn allow_pending(world: &World) -> portcullis::AskId {
    let ask = pending(world).await;
    world.runtime.reply(ask, portcullis::AskAnswer::by("me", portcullis::Reply::AllowOnce)).await.expect("a reply");
    ask
}

pub fn executed(woken: Woken) -> portcullis::harness::WakeEnd {
    match woken {
        Woken::Executed(end) => *end,
        Woken::Idle => panic!("there was work"),
    }
}

pub const WRITE: &str = r#"{"file_path":"new.txt","content":"made\n"}"#;
