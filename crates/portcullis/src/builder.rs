//! Building a runtime: every part has a default that keeps nothing and asks before it acts.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use portcullis_agent::LOCAL_PRINCIPAL;
use portcullis_agent::setup::Setup;
use portcullis_base::{Actor, Clock, Entropy, IdGen, SessionId, SystemClock, SystemIds, limits};
use portcullis_contract::{Tool, ToolName};
use portcullis_event::facts::{PermissionAsked, Reply};
use portcullis_pipeline::{Approvals, AskAnswer, KnownAnswers};
use portcullis_policy::Policy;
use portcullis_sandbox::hand::Launcher;
use portcullis_secret::{SealingKey, SecretText};
use portcullis_store::{Artifacts, Store};
use portcullis_tools::Profile;
use portcullis_tools::hand::HandSettings;

use crate::RuntimeError;
use crate::replies::{Approver, PendingAsk};
use crate::runtime::Runtime;

/// The shortest value that [`RuntimeBuilder::conceal`] takes: keys are longer, words in their place are not.
const CONCEALED_BYTES: usize = 16;

/// A runtime in the making; see [`Runtime::builder`].
#[must_use]
pub struct RuntimeBuilder {
    pub(crate) beside: Option<Runtime>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) artifacts: Option<Arc<dyn Artifacts>>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) tools: BTreeMap<ToolName, Tool>,
    pub(crate) policy: Option<Policy>,
    pub(crate) sealing_key: Option<SealingKey>,
    pub(crate) variables: BTreeMap<String, SecretText>,
    pub(crate) concealed: Vec<SecretText>,
    pub(crate) approvals: Approvals,
    pub(crate) approver: Option<Approver>,
    pub(crate) answers: Option<KnownAnswers>,
    pub(crate) principal: String,
    pub(crate) actor: Option<Actor>,
    pub(crate) setup: Option<Setup>,
    pub(crate) what: String,
    pub(crate) brief: bool,
    pub(crate) appends_only: bool,
    pub(crate) artifact_quota: u64,
    pub(crate) ask_expiry: Duration,
    pub(crate) shell_idle: Duration,
    pub(crate) profile: Profile,
    pub(crate) sandbox: HandSettings,
    pub(crate) launcher: Launcher,
}

impl RuntimeBuilder {
    pub(crate) fn new() -> Self {
        let system = Arc::new(SystemIds::new());
        Self {
            beside: None,
            clock: Arc::new(SystemClock::new()),
            ids: Arc::clone(&system) as Arc<dyn IdGen>,
            entropy: system,
            store: None,
            artifacts: None,
            workspace: None,
            hidden: Vec::new(),
            tools: BTreeMap::new(),
            policy: None,
            sealing_key: None,
            variables: BTreeMap::new(),
            concealed: Vec::new(),
            approvals: Approvals::Wait,
            approver: None,
            answers: None,
            principal: LOCAL_PRINCIPAL.to_owned(),
            actor: None,
            setup: None,
            what: "an embedded runtime".to_owned(),
            brief: false,
            appends_only: false,
            artifact_quota: limits::ARTIFACT_QUOTA,
            ask_expiry: limits::ASK_EXPIRY,
            shell_idle: limits::SHELL_IDLE,
            profile: Profile::Managed,
            sandbox: HandSettings::default(),
            launcher: Launcher::this_program(),
        }
    }

    /// Makes it a runtime in the process of another one: see [`Runtime::beside`].
    pub fn joining(mut self, other: &Runtime) -> Self {
        self.beside = Some(other.clone());
        self
    }

    /// Where time comes from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where ids and keys come from.
    pub fn randomness(mut self, ids: Arc<dyn IdGen>, entropy: Arc<dyn Entropy>) -> Self {
        self.ids = ids;
        self.entropy = entropy;
        self
    }

    /// Where logs and large artifacts are kept; without it, in memory.
    pub fn store(mut self, store: Arc<dyn Store>, artifacts: Arc<dyn Artifacts>) -> Self {
        self.store = Some(store);
        self.artifacts = Some(artifacts);
        self
    }

    /// A person's folder, mounted at `/workspace`, with the file tools.
    pub fn workspace(mut self, folder: impl AsRef<Path>) -> Self {
        self.workspace = Some(folder.as_ref().to_owned());
        self
    }

    /// A folder or file that no tool sees, even if it lies in the workspace: where the store and its keys
    /// are. Where it does not exist yet, no tool makes it. A workspace in a hidden folder is refused.
    pub fn hide(mut self, path: impl AsRef<Path>) -> Self {
        self.hidden.push(path.as_ref().to_owned());
        self
    }

    /// One tool more.
    ///
    /// # Errors
    /// If the name is outside the grammar, or a schema of the tool cannot be compiled.
    pub fn tool(mut self, name: &str, tool: Tool) -> Result<Self, RuntimeError> {
        tool.check_schemas()?;
        self.tools.insert(name.parse()?, tool);
        Ok(self)
    }

    /// The rules; without it, none: reads in the workspace run, everything else asks.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The key that sensitive inputs are sealed with until they settle; without it, one that dies
    /// with the process.
    pub fn sealing_key(mut self, key: SealingKey) -> Self {
        self.sealing_key = Some(key);
        self
    }

    /// A variable that tools may declare; its value is redacted everywhere. It needs at least
    /// [`MIN_REDACTED_BYTES`] bytes: a shorter one would be found in the middle of ordinary words.
    pub fn variable(mut self, name: &str, value: SecretText) -> Self {
        self.variables.insert(name.to_owned(), value);
        self
    }

    /// A value that is redacted everywhere and reaches no tool: the key of a model's provider, for one. A short one is left
    /// alone: `local` or `none` in place of a key would be found in ordinary words.
    pub fn conceal(mut self, value: SecretText) -> Self {
        if value.expose().len() >= CONCEALED_BYTES {
            self.concealed.push(value);
        }
        self
    }

    /// Whether an ask waits for a person or is refused at once.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// Who answers asks; without it they wait in the store.
    pub fn approver<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(PendingAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |ask| answer(ask).boxed()));
        self
    }

    /// Who knows the answer to an ask the moment it is raised: the call then goes on with it, for the price of one that the
    /// rules allow. `None` leaves the ask to whoever else answers. It is asked before anything is durable, so it decides by
    /// what it is shown and asks nobody; a person is asked by [`RuntimeBuilder::approver`].
    pub fn answering<F>(mut self, known: F) -> Self
    where
        F: Fn(SessionId, &PermissionAsked) -> Option<AskAnswer> + Send + Sync + 'static,
    {
        self.answers = Some(Arc::new(known));
        self
    }

    /// On whose behalf calls are made.
    pub fn principal(mut self, principal: &str) -> Self {
        self.principal = principal.to_owned();
        self
    }

    /// Who makes the calls that no model proposes, as the log names them; without it, the principal as a user.
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Acts by this setup (ruling 51): its tenant, folder, profile and principal hold in place of what else was said here,
    /// and commands get no more than its environment and [`RuntimeBuilder::sandbox`] both allow.
    pub fn setup(mut self, setup: Setup) -> Self {
        self.setup = Some(setup);
        self
    }

    /// What a person calls this process, such as `portcullis call`.
    pub fn called(mut self, what: &str) -> Self {
        self.what = what.to_owned();
        self
    }

    /// It only appends to logs: words, answers and interrupts of people. Sessions keep the setup that they have.
    pub fn appends_only(mut self) -> Self {
        self.appends_only = true;
        self
    }

    /// It holds a session for one call or answer and then lets go, so that other callers wait for it instead of leaving it
    /// their calls.
    pub fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// The most bytes that artifacts may use.
    pub fn artifact_quota(mut self, bytes: u64) -> Self {
        self.artifact_quota = bytes;
        self
    }

    /// How long an ask waits.
    pub fn ask_expiry(mut self, span: Duration) -> Self {
        self.ask_expiry = span;
        self
    }

    /// How long a persistent shell is kept that nobody uses; without it, half an hour. Its folder and exported
    /// environment outlive it.
    pub fn shell_idle(mut self, span: Duration) -> Self {
        self.shell_idle = span;
        self
    }

    /// What the runtime's own tools do where no rule speaks; without it, [`Profile::Managed`]. An approval is
    /// bound to the profile it was asked under.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// What the commands of tools get: the least isolation, network, limits, toolchains. Without it: level `full`, no
    /// network, and only the system's programs. What is [hidden](Self::hide) stays so, and its
    /// [own](HandSettings::ours) folders and files are hidden as well.
    pub fn sandbox(mut self, settings: HandSettings) -> Self {
        self.sandbox = settings;
        self
    }

    /// What starts commands; without it, this very program, which must call [`crate::hand::init`] first in `main`.
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }
}
