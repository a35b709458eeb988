//! A crew for sessions that are due: each works in a runtime by its own setup, with the model that the setup names.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use portcullis_agent::setup::{ModelSetup, Setup};
use portcullis_base::{Clock as _, Digest, SessionId, SystemClock, SystemIds, WorkerId};
use portcullis_config::{ConfigError, ModelChoice, ProjectRules, Settings};
use portcullis_harness::{Crew, Guidance, Journal, NoWatcher, Post, Settings as Wakes, Worker, WorkerSettings};
use portcullis_model::{Destination, Model, ModelError};
use portcullis_store::HostLiveness;
use tokio::sync::Mutex;

use super::{Installation, InstallationError, ModelOpening, OpenedModel, ProcessRole};
use crate::operations::{AnswerError, AskView, answer_waiting};
use crate::{Agent, AgentParts, AskAnswer, ProjectGuidance, Runtime, RuntimeError, environment};

/// Workspaces that are kept open between wakes; past it those that nobody works in are closed.
const WORKSPACES: usize = 64;

/// The model that a session has by its setup, unless a flag or a variable names another; the configured one where the
/// setup names none.
#[must_use]
pub fn model_of(settings: &Settings, setup: &Setup) -> ModelChoice {
    match &setup.model {
        Some(own) if !settings.chosen.model => settings.model.by(own),
        _ => settings.model.clone(),
    }
}

/// The setup of a session that a person goes on with: what a flag names is changed in it, and commands get what the
/// machine's configuration gives now.
#[must_use]
pub fn restarted(own: Setup, settings: &Settings) -> Setup {
    let folder = own.workspace.clone().unwrap_or_default();
    let profile = if settings.chosen.profile { settings.profile } else { own.profile };
    Setup { profile, environment: environment(&settings.hand(folder.as_ref())), ..own }
}

/// An agent for sessions of one runtime, with this guidance.
#[must_use]
pub fn guided_agent(
    runtime: &Runtime,
    model: &Arc<dyn Model>,
    choice: &ModelChoice,
    guidance: Option<Guidance>,
) -> Agent {
    runtime.agent(AgentParts {
        model: Arc::clone(model),
        settings: Wakes { guidance, ..choice.wakes() },
        watcher: Arc::new(NoWatcher),
        entropy: Arc::new(SystemIds::new()),
        sandbox: sandbox_words(runtime),
    })
}

/// What stands between commands and the machine, in one line for the model.
#[must_use]
pub fn sandbox_words(runtime: &Runtime) -> String {
    let environment = runtime.environment();
    let (level, network) = (environment.minimum, environment.network.as_str());
    format!("commands run isolated at level {level} or better; their network is {network}")
}

/// What whoever runs a crew may refuse for reasons of their own.
pub type HostError = Box<dyn Error + Send + Sync>;

/// Something that a person should know of the work of a crew.
pub enum CrewNews<'a> {
    /// What the guidance of a workspace warns of.
    Guidance(&'a ProjectGuidance),
    /// What a shell left behind when it ended.
    LeftBehind(SessionId, &'a str),
    /// An ask was answered: whether it was allowed.
    Answered(&'a AskView, bool),
    /// Asks of a session could not be answered.
    Unanswered(SessionId, &'a CrewError),
}

/// Whoever runs a crew: what it says before something is done, and hears afterwards.
pub trait CrewHost: Send + Sync {
    /// The settings as they are now: files may have changed since the crew began.
    ///
    /// # Errors
    /// If they cannot be read; the session then waits.
    fn settings(&self) -> Result<Settings, ConfigError>;

    /// Whether requests may go there. Nothing was sent yet.
    ///
    /// # Errors
    /// If they may not.
    fn may_send(&self, settings: &Settings, to: &Destination) -> Result<(), HostError>;

    /// A model was opened.
    ///
    /// # Errors
    /// If it is not to be used after all.
    fn opened(&self, settings: &Settings, to: Option<&Destination>, model: &OpenedModel) -> Result<(), HostError>;

    /// The answer to an ask that waits, if it has one without a person.
    fn answer(&self, ask: &AskView) -> Option<AskAnswer>;

    /// Hears what happens.
    fn hears(&self, news: CrewNews<'_>);

    /// Why a session cannot be worked on, for whoever reads what the worker did.
    fn words(&self, error: &CrewError) -> String;
}

/// Why a session cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// Its runtime cannot be made.
    #[error(transparent)]
    Installation(#[from] InstallationError),
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Whoever runs the crew refuses.
    #[error(transparent)]
    Host(HostError),
    /// An answer could not be given.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl CrewError {
    /// The error that this one passes on, whose kind and hint count.
    #[must_use]
    pub fn bare(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Installation(error) => Some(error),
            Self::Model(error) => Some(error),
            Self::Host(error) => Some(&**error),
            Self::Answer(error) => Some(error),
        }
    }
}

impl From<ConfigError> for CrewError {
    fn from(error: ConfigError) -> Self {
        Self::Installation(error.into())
    }
}

impl From<RuntimeError> for CrewError {
    fn from(error: RuntimeError) -> Self {
        Self::Installation(error.into())
    }
}

/// The models that sessions work with, each opened once.
pub struct CrewModels {
    host: Arc<dyn CrewHost>,
    open: Mutex<HashMap<String, CrewModel>>,
}

type CrewModel = (Arc<dyn Model>, Option<ModelSetup>);

impl CrewModels {
    /// None yet.
    #[must_use]
    pub fn new(host: Arc<dyn CrewHost>) -> Self {
        Self { host, open: Mutex::default() }
    }

    /// The model of a choice, and how a setup names it.
    ///
    /// # Errors
    /// If there is no such model, or it is not to be used.
    pub async fn of(&self, settings: &Settings, choice: &ModelChoice) -> Result<CrewModel, CrewError> {
        let mut open = self.open.lock().await;
        let name = format!("{choice:?}");
        if let Some(known) = open.get(&name) {
            return Ok(known.clone());
        }
        let opening = ModelOpening::new(choice, false);
        let to = opening.destination();
        if let Some(to) = &to {
            self.host.may_send(settings, to).map_err(CrewError::Host)?;
        }
        let opened = opening.open().await?;
        self.host.opened(settings, to.as_ref(), &opened).map_err(CrewError::Host)?;
        let opened = (opened.model, opened.setup);
        open.insert(name, opened.clone());
        Ok(opened)
    }
}

/// A runtime for each setup that sessions run as.
pub struct SessionCrew {
    installation: Arc<Installation>,
    models: CrewModels,
    role: ProcessRole,
    /// By the hash of the setup.
    open: Mutex<HashMap<Digest, Arc<OpenWorkspace>>>,
    /// Those whose rules have changed, until nobody works there any more.
    retired: Mutex<Vec<Arc<OpenWorkspace>>>,
}

struct OpenWorkspace {
    runtime: Runtime,
    agent: Agent,
    /// The settings and rules that it was made with, and the guidance.
    made_with: Digest,
    guidance: ProjectGuidance,
}

#[async_trait]
impl Crew for SessionCrew {
    async fn take(&self, session: SessionId) -> Result<Post, String> {
        let place = self.place(session).await.map_err(|error| self.host().words(&error))?;
        Ok(Post { keep: Arc::clone(&place) as _, ..place.agent.post() })
    }
}

impl SessionCrew {
    /// A crew that has taken up nothing yet.
    #[must_use]
    pub fn new(installation: Arc<Installation>, models: CrewModels, role: ProcessRole) -> Self {
        Self { installation, models, role, open: Mutex::default(), retired: Mutex::default() }
    }

    /// A worker whose sessions this crew works on.
    #[must_use]
    pub fn worker(self: &Arc<Self>, settings: WorkerSettings, journal: Arc<Journal>) -> Worker {
        let clock = Arc::new(SystemClock::new());
        let worker = WorkerId::make(self.installation.ids(), clock.now());
        Worker {
            store: self.installation.store(),
            tenant: self.installation.archive.tenant,
            clock,
            owner: HostLiveness::new().this_process(worker, self.role.what()),
            crew: Arc::clone(self) as _,
            settings,
            journal,
        }
    }

    fn host(&self) -> &dyn CrewHost {
        &*self.models.host
    }

    /// Answers what waits in sessions, as the host says. Gives how many asks that were.
    pub async fn answer_each(&self, sessions: &[SessionId]) -> usize {
        let mut answered = 0;
        for session in sessions {
            // Most of the time nothing waits, and nothing is opened for it.
            if self.installation.archive.waiting_asks(*session).await.is_ok_and(|asks| !asks.is_empty()) {
                answered += self.answer(*session).await;
            }
        }
        answered
    }

    /// Answers what waits in a session, as the host says. Gives how many asks that were.
    pub async fn answer(&self, session: SessionId) -> usize {
        let answered = async {
            let place = self.place(session).await?;
            let told = |ask: &AskView, allowed| self.host().hears(CrewNews::Answered(ask, allowed));
            let answer = |ask: &AskView| self.host().answer(ask);
            Ok(answer_waiting(&self.installation.archive, &place.runtime, session, answer, told).await?)
        };
        answered.await.unwrap_or_else(|error| {
            self.host().hears(CrewNews::Unanswered(session, &error));
            0
        })
    }

    /// A runtime for the setup of a session, as the rules and the guidance are now: what changed since the last session was
    /// taken up there holds for this one (agent-runtime 5.9). A file that cannot be read stops it, as it stops a start.
    async fn place(&self, session: SessionId) -> Result<Arc<OpenWorkspace>, CrewError> {
        let own = self.installation.archive.setup(session).await?;
        let folder = own.setup.workspace.as_ref().map(PathBuf::from).unwrap_or_default();
        let mut open = self.open.lock().await;
        self.let_go_of_retired().await;
        let settings = self.host().settings()?;
        let choice = model_of(&settings, &own.setup);
        let (model, chosen) = self.models.of(&settings, &choice).await?;
        let mut setup = own.setup.clone();
        if settings.chosen.profile {
            setup.profile = settings.profile;
        }
        if setup.model.is_some() {
            setup.model = chosen;
        }
        let name = setup.hash();
        let rules = match folder.is_dir() {
            true => format!("{:?}", ProjectRules::load(&settings.home, &folder)?),
            false => String::new(),
        };
        let made_with = Digest::of(format!("{settings:?}{rules}").as_bytes());
        if let Some(place) = open.get(&name).filter(|_| folder.is_dir()) {
            if place.made_with == made_with && place.runtime.guidance().await == place.guidance {
                place.runtime.change_setup(session, &own, &setup).await?;
                return Ok(Arc::clone(place));
            }
            tracing::info!("the rules or the guidance of a workspace changed; they are taken up");
        }
        let runtime = self.installation.runtime_by(&settings, session, setup.clone(), self.role)?;
        runtime.change_setup(session, &own, &setup).await?;
        let guidance = runtime.guidance().await;
        self.host().hears(CrewNews::Guidance(&guidance));
        let agent = guided_agent(&runtime, &model, &choice, guidance.guidance.clone());
        let place = Arc::new(OpenWorkspace { runtime, agent, made_with, guidance });
        if open.len() >= WORKSPACES {
            let idle: Vec<Digest> =
                open.iter().filter(|(_, place)| Arc::strong_count(place) == 1).map(|(name, _)| *name).collect();
            for name in idle {
                if let Some(place) = open.remove(&name) {
                    self.close_one(&place).await;
                }
            }
        }
        if let Some(old) = open.insert(name, Arc::clone(&place)) {
            self.retired.lock().await.push(old);
            self.let_go_of_retired().await;
        }
        Ok(place)
    }

    /// Nothing of theirs is left running once their last session was given back.
    async fn let_go_of_retired(&self) {
        let mut retired = self.retired.lock().await;
        for at in (0..retired.len()).rev() {
            if Arc::strong_count(&retired[at]) == 1 {
                self.close_one(&retired.swap_remove(at)).await;
            }
        }
    }

    async fn close_one(&self, place: &OpenWorkspace) {
        for (session, found) in place.runtime.shutdown().await {
            self.host().hears(CrewNews::LeftBehind(session, &found));
        }
    }

    /// Nothing of a session outlives the crew.
    pub async fn close(&self) {
        for place in self.open.lock().await.values().chain(self.retired.lock().await.iter()) {
            self.close_one(place).await;
        }
    }
}
