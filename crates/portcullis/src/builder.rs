//! Building a runtime: every part has a default that keeps nothing and asks before it acts.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use portcullis_agent::LOCAL_PRINCIPAL;
use portcullis_agent::setup::Setup;
use portcullis_base::{Actor, Clock, Digest, Entropy, IdGen, LocationId, SystemClock, SystemIds, WorkerId, limits};
use portcullis_contract::{Tool, ToolName};
use portcullis_event::facts::Reply;
use portcullis_event::{CheckpointKey, LOCAL_TENANT};
use portcullis_pipeline::{Approvals, Gate, GateParts, HeldSessions, Placement, Registry, ScopeParts};
use portcullis_policy::{Policy, PolicyBuilder};
use portcullis_sandbox::hand::Launcher;
use portcullis_sandbox::{MountTable, TreeOwner};
use portcullis_secret::{MIN_REDACTED_BYTES, Redactor, Sealer, SealingKey, SecretText};
use portcullis_store::{Artifacts, HostLiveness, MemoryArtifacts, MemoryStore, Store};
use portcullis_tools::hand::{Hand, HandSettings};
use portcullis_tools::{Profile, ShellParts, Shells};

use crate::RuntimeError;
use crate::replies::{Approver, PendingAsk};
use crate::runtime::Runtime;
use crate::setup::{ImposedSetup, environment, within};

/// The shortest value that [`RuntimeBuilder::conceal`] takes: keys are longer, words in their place are not.
const CONCEALED_BYTES: usize = 16;

/// A runtime in the making; see [`Runtime::builder`].
#[must_use]
pub struct RuntimeBuilder {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    entropy: Arc<dyn Entropy>,
    store: Option<Arc<dyn Store>>,
    artifacts: Option<Arc<dyn Artifacts>>,
    workspace: Option<PathBuf>,
    hidden: Vec<PathBuf>,
    tools: BTreeMap<ToolName, Tool>,
    policy: Option<Policy>,
    sealing_key: Option<SealingKey>,
    variables: BTreeMap<String, SecretText>,
    concealed: Vec<SecretText>,
    approvals: Approvals,
    approver: Option<Approver>,
    principal: String,
    actor: Option<Actor>,
    setup: Option<Setup>,
    what: String,
    brief: bool,
    appends_only: bool,
    artifact_quota: u64,
    ask_expiry: Duration,
    shell_idle: Duration,
    profile: Profile,
    sandbox: HandSettings,
    launcher: Launcher,
}

impl RuntimeBuilder {
    pub(crate) fn new() -> Self {
        let system = Arc::new(SystemIds::new());
        Self {
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

    /// The runtime.
    ///
    /// # Errors
    /// If the workspace cannot be opened, or tools or secrets conflict.
    pub fn build(mut self) -> Result<Runtime, RuntimeError> {
        if let Some(setup) = &self.setup {
            self.workspace = setup.workspace.as_deref().map(PathBuf::from);
            self.profile = setup.profile;
            self.principal.clone_from(&setup.principal);
            self.sandbox = within(self.sandbox, &setup.environment);
        }
        let liveness = HostLiveness::new();
        let worker = WorkerId::make(&*self.ids, self.clock.now());
        let owner = liveness.this_process(worker, &self.what);
        let owner = if self.brief { owner.brief() } else { owner };
        let store = self.store.unwrap_or_else(|| {
            let mut key = [0u8; 32];
            self.entropy.fill(&mut key);
            let key = CheckpointKey::from_bytes(key);
            Arc::new(MemoryStore::new(Arc::clone(&self.clock), Arc::clone(&self.ids), Arc::new(liveness), Some(key)))
        });
        let artifacts = self.artifacts.unwrap_or_else(|| Arc::new(MemoryArtifacts::default()));
        let registry = Registry::new(Arc::clone(&self.ids), Arc::clone(&self.clock));
        let held_sessions = HeldSessions::default();
        let workspace = self.workspace.as_deref().map(canonical).transpose()?;
        let location = location_of(workspace.as_deref());
        let environment = environment(&self.sandbox);
        let imposes = match &self.setup {
            _ if self.appends_only => ImposedSetup::Nothing,
            Some(_) => ImposedSetup::Whole,
            None => ImposedSetup::Built,
        };
        let setup = self.setup.unwrap_or_else(|| Setup {
            environment: environment.clone(),
            workspace: workspace.as_deref().map(|folder| folder.display().to_string()),
            ..Setup::local(LOCAL_TENANT, &self.principal, self.profile)
        });

        if let Some((name, _)) = self.variables.iter().find(|(_, value)| value.expose().len() < MIN_REDACTED_BYTES) {
            return Err(RuntimeError::Secrets(format!(
                "the variable `{name}` is shorter than {MIN_REDACTED_BYTES} bytes and could not be kept out of the log; \
                 give it a longer value, or hand it to the tool another way"
            )));
        }
        let secret = self.variables.values().chain(&self.concealed);
        let redactor = Redactor::new(secret.map(|value| value.expose().as_bytes().to_vec()))
            .map_err(|e| RuntimeError::Secrets(e.to_string()))?;
        let sealing_key = self.sealing_key.unwrap_or_else(|| SealingKey::generate(&*self.entropy));
        let policy = match self.policy {
            Some(policy) => policy,
            // Invariant: no rules cannot conflict.
            None => PolicyBuilder::new().build().expect("a policy without rules is valid"),
        };
        let entropy = self.entropy;
        let parts = GateParts {
            store,
            artifacts,
            registry: registry.clone(),
            sealer: Sealer::new(&sealing_key),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            entropy: Arc::clone(&entropy),
            held_sessions: held_sessions.clone(),
            artifact_quota: self.artifact_quota,
        };
        let toolset = registry.fresh_toolset();
        let scope = ScopeParts {
            tenant: setup.tenant,
            actor: self.actor.unwrap_or_else(|| Actor::user(&self.principal)),
            principal: self.principal,
            agent: setup.agent.id.clone(),
            toolset,
            location,
            project: workspace.as_deref().map(|w| w.display().to_string()).unwrap_or_default(),
            policy,
            approvals: self.approvals,
            ask_expiry: self.ask_expiry,
            redactor,
            variables: self.variables,
        };
        let gate = Gate::new(parts, scope);
        let mut guards = Vec::new();
        let mut shells = None;
        let mut seen = None;
        if let Some(folder) = &workspace {
            let hidden: Vec<PathBuf> = self.hidden.into_iter().chain(self.sandbox.ours.iter().cloned()).collect();
            let mounts = MountTable::workspace(folder, TreeOwner::PersonsTree)
                .map_err(|e| RuntimeError::Workspace(format!("{}: {e}", folder.display())))?
                .hiding(hidden.iter().map(PathBuf::as_path));
            if mounts.hidden_mount().is_some() {
                let text = format!(
                    "{}: it is, or lies in, a folder that no tool may see because the store, its keys, its \
                     artifacts or your rules are kept there; work in another folder",
                    folder.display()
                );
                return Err(RuntimeError::Workspace(text));
            }
            let mounts = Arc::new(mounts);
            seen = Some(Arc::clone(&mounts));
            let mut settings = self.sandbox;
            settings.hidden.extend(hidden);
            let hand = Hand::new(self.launcher, Arc::clone(&mounts), gate.path_rules(), gate.shells(), settings);
            gate.isolate(Arc::new(hand.clone()));
            let files = portcullis_tools::FileTools {
                mounts,
                held_sessions,
                coverage: portcullis_tools::CoverageRule::Region,
                rules: gate.path_rules(),
                profile: self.profile,
                hand: Some(hand.clone()),
            };
            let tools = portcullis_tools::file_tools(files.clone())?;
            guards.push(registry.registrar(Placement::Toolset(toolset)).register(tools)?);
            let parts = ShellParts {
                hand: hand.clone(),
                book: gate.shells(),
                clock: Arc::clone(&self.clock),
                ids: Arc::clone(&self.ids),
                entropy: Arc::clone(&entropy),
            };
            let own = Shells::new(parts, self.shell_idle);
            let shell = portcullis_tools::ShellTools {
                book: gate.shells(),
                shelf: gate.shelf(),
                files,
                live: Arc::new(own.clone()),
            };
            let reads =
                portcullis_tools::ReadHand { hand: hand.clone(), files: shell.files.clone(), book: shell.book.clone() };
            let tools = match self.profile {
                Profile::Managed => {
                    let mut tools = portcullis_tools::shell_tools(shell.clone())?;
                    tools.extend(portcullis_tools::read_tools(shell.clone(), reads.clone())?);
                    tools.extend(portcullis_tools::run_tools(shell.clone(), hand.clone())?);
                    tools.extend(portcullis_tools::persistent_tools(shell.clone(), own.clone())?);
                    let parts = portcullis_tools::SandboxTools { shell, shells: own.clone(), hand, reads };
                    tools.extend(portcullis_tools::sandbox_tools(parts)?);
                    tools
                }
                Profile::Code => portcullis_tools::stock_bash(shell, own.clone(), reads)?,
            };
            guards.push(registry.registrar(Placement::Toolset(toolset)).register(tools)?);
            shells = Some(own);
        }
        let artifact_tools = portcullis_tools::artifact_tools(gate.shelf())?;
        guards.push(registry.registrar(Placement::Toolset(toolset)).register(artifact_tools)?);
        let task_tools = portcullis_tools::task_tools(&gate.tasks())?;
        guards.push(registry.registrar(Placement::Toolset(toolset)).register(task_tools)?);
        guards.push(registry.registrar(Placement::Process).register(self.tools)?);
        Ok(Runtime {
            gate,
            registry,
            location,
            guards: Arc::new(guards),
            owner,
            clock: self.clock,
            ids: self.ids,
            approver: self.approver,
            workspace,
            environment,
            setup_hash: setup.hash(),
            setup: Arc::new(setup),
            imposes,
            settled: Arc::default(),
            mounts: seen,
            shells,
            serving: Arc::default(),
            held: Arc::default(),
        })
    }
}

/// Links in the path of the workspace itself are the person's own; they are resolved once, here.
fn canonical(folder: &Path) -> Result<PathBuf, RuntimeError> {
    let found = folder.canonicalize().map_err(|e| RuntimeError::Workspace(format!("{}: {e}", folder.display())))?;
    // The log names the workspace by its text; a name that has none could be taken for another.
    if found.to_str().is_none() {
        let text = format!("{}: its path is not UTF-8 text; work from a folder that is", found.display());
        return Err(RuntimeError::Workspace(text));
    }
    Ok(found)
}

/// One location a folder, whatever process asks.
fn location_of(workspace: Option<&Path>) -> LocationId {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = workspace.map(|w| w.as_os_str().as_bytes()).unwrap_or_default();
    let digest = Digest::of(&[b"portcullis-location-1:", bytes].concat());
    LocationId::from_u128(u128::from_be_bytes(std::array::from_fn(|i| digest.as_bytes()[i])))
}
