//! Putting a runtime together: what the process shares, the scope of its sessions, and the tools of that scope.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use portcullis_agent::setup::Setup;
use portcullis_base::{Actor, Clock, Digest, Entropy, IdGen, LocationId, SessionId, WorkerId};
use portcullis_contract::{Tool, ToolName, ToolOrigin};
use portcullis_event::{CheckpointKey, LOCAL_TENANT};
use portcullis_pipeline::{Gate, GateParts, HeldSessions, Placement, Registry, ScopeParts, Session};
use portcullis_policy::{Policy, PolicyBuilder};
use portcullis_sandbox::hand::Launcher;
use portcullis_sandbox::{MountTable, TreeOwner};
use portcullis_secret::{MIN_REDACTED_BYTES, Redactor, Sealer, SealingKey};
use portcullis_store::{HostLiveness, MemoryArtifacts, MemoryStore};
use portcullis_tools::hand::{Hand, HandSettings};
use portcullis_tools::{Profile, ShellParts, Shells};

use crate::RuntimeError;
use crate::builder::RuntimeBuilder;
use crate::plugin::Plugins;
use crate::runtime::Runtime;
use crate::setup::{ImposedSetup, environment, tool_choice, within};

/// What the runtimes of a process have in common besides their gate.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) worker: WorkerId,
    pub(crate) held_sessions: HeldSessions,
    /// Sessions that this process serves, see [`Runtime::serve`].
    pub(crate) serving: Arc<Mutex<BTreeSet<SessionId>>>,
    /// Sessions that were claimed for their next wake.
    pub(crate) held: Arc<Mutex<BTreeMap<SessionId, Session>>>,
    pub(crate) plugins: Plugins,
}

/// The tools of a workspace, and what they work with.
struct Workshop {
    mounts: Arc<MountTable>,
    shells: Shells,
    tools: BTreeMap<ToolName, Tool>,
}

impl RuntimeBuilder {
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
        let workspace = self.workspace.as_deref().map(canonical).transpose()?;
        let environment = environment(&self.sandbox);
        let imposes = match &self.setup {
            _ if self.appends_only => ImposedSetup::Nothing,
            Some(_) => ImposedSetup::Whole,
            None => ImposedSetup::Built,
        };
        let setup = self.setup.take().unwrap_or_else(|| Setup {
            environment: environment.clone(),
            workspace: workspace.as_deref().map(|folder| folder.display().to_string()),
            ..Setup::local(LOCAL_TENANT, &self.principal, self.profile)
        });
        let location = location_of(workspace.as_deref());
        let (gate, process) = self.gate(&setup, workspace.as_deref(), location)?;
        let owner = HostLiveness::new().this_process(process.worker, &self.what);
        let owner = if self.brief { owner.brief() } else { owner };

        let builtin = gate.registry().registrar(Placement::Toolset(gate.toolset()), ToolOrigin::Builtin);
        let mut tools = portcullis_tools::artifact_tools(gate.shelf())?;
        tools.extend(portcullis_tools::task_tools(&gate.tasks())?);
        let (mut mounts, mut shells) = (None, None);
        let application = std::mem::take(&mut self.tools);
        let approver = self.approver.take();
        if let Some(folder) = &workspace {
            let made = self.workshop(&gate, &process, folder)?;
            (mounts, shells) = (Some(made.mounts), Some(made.shells));
            tools.extend(made.tools);
        }
        let mut guards = vec![builtin.register(tools)?];
        guards.push(gate.registry().registrar(Placement::Process, ToolOrigin::Application).register(application)?);
        Ok(Runtime {
            gate,
            process,
            location,
            guards: Arc::new(guards),
            owner,
            approver,
            workspace,
            environment,
            setup_hash: setup.hash(),
            setup: Arc::new(setup),
            imposes,
            settled: Arc::default(),
            mounts,
            shells,
        })
    }

    /// A gate for the sessions of one scope: one that others of the process stand at already, or a new one.
    fn gate(
        &mut self,
        setup: &Setup,
        workspace: Option<&Path>,
        location: LocationId,
    ) -> Result<(Gate, Process), RuntimeError> {
        if let Some((name, _)) = self.variables.iter().find(|(_, value)| value.expose().len() < MIN_REDACTED_BYTES) {
            return Err(RuntimeError::Secrets(format!(
                "the variable `{name}` is shorter than {MIN_REDACTED_BYTES} bytes and could not be kept out of the log; \
                 give it a longer value, or hand it to the tool another way"
            )));
        }
        let secret = self.variables.values().chain(&self.concealed);
        let redactor = Redactor::new(secret.map(|value| value.expose().as_bytes().to_vec()))
            .map_err(|e| RuntimeError::Secrets(e.to_string()))?;
        let registry = match &self.beside {
            Some(other) => other.gate.registry().clone(),
            None => Registry::new(Arc::clone(&self.ids), Arc::clone(&self.clock)),
        };
        let scope = ScopeParts {
            tenant: setup.tenant,
            principal: self.principal.clone(),
            actor: self.actor.take().unwrap_or_else(|| Actor::user(&self.principal)),
            agent: setup.agent.id.clone(),
            toolset: registry.fresh_toolset(),
            tools: tool_choice(setup),
            location,
            project: workspace.map(|w| w.display().to_string()).unwrap_or_default(),
            policy: self.policy.take().unwrap_or_else(no_rules),
            approvals: self.approvals,
            answers: self.answers.take(),
            ask_expiry: self.ask_expiry,
            redactor,
            variables: std::mem::take(&mut self.variables),
        };
        if let Some(other) = &self.beside {
            return Ok((other.gate.beside(scope), other.process.clone()));
        }
        let process = Process {
            worker: WorkerId::make(&*self.ids, self.clock.now()),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            entropy: Arc::clone(&self.entropy),
            held_sessions: HeldSessions::default(),
            serving: Arc::default(),
            held: Arc::default(),
            plugins: Plugins::default(),
        };
        let store = self.store.take().unwrap_or_else(|| {
            let mut key = [0u8; 32];
            self.entropy.fill(&mut key);
            let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
            let key = CheckpointKey::from_bytes(key);
            Arc::new(MemoryStore::new(clock, ids, Arc::new(HostLiveness::new()), Some(key)))
        });
        let sealing_key = self.sealing_key.take().unwrap_or_else(|| SealingKey::generate(&*self.entropy));
        let parts = GateParts {
            store,
            artifacts: self.artifacts.take().unwrap_or_else(|| Arc::new(MemoryArtifacts::default())),
            registry,
            sealer: Sealer::new(&sealing_key),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            entropy: Arc::clone(&self.entropy),
            held_sessions: process.held_sessions.clone(),
            artifact_quota: self.artifact_quota,
        };
        Ok((Gate::new(parts, scope), process))
    }

    /// The tools that work in a folder.
    fn workshop(self, gate: &Gate, process: &Process, folder: &Path) -> Result<Workshop, RuntimeError> {
        let hidden: Vec<PathBuf> = self.hidden.into_iter().chain(self.sandbox.ours.iter().cloned()).collect();
        let mounts = MountTable::workspace(folder, TreeOwner::PersonsTree)
            .map_err(|e| RuntimeError::Workspace(format!("{}: {e}", folder.display())))?
            .hiding(hidden.iter().map(PathBuf::as_path));
        if mounts.hidden_mount().is_some() {
            let text = format!(
                "{}: it is, or lies in, a folder that no tool may see because the store, its keys, its artifacts or your \
                 rules are kept there; work in another folder",
                folder.display()
            );
            return Err(RuntimeError::Workspace(text));
        }
        let mounts = Arc::new(mounts);
        let mut settings = self.sandbox;
        settings.hidden.extend(hidden);
        let hand = hand_of(self.launcher, gate, &mounts, settings);
        let files = portcullis_tools::FileTools {
            mounts: Arc::clone(&mounts),
            held_sessions: process.held_sessions.clone(),
            coverage: portcullis_tools::CoverageRule::Region,
            rules: gate.path_rules(),
            profile: self.profile,
            hand: Some(hand.clone()),
        };
        let mut tools = portcullis_tools::file_tools(files.clone())?;
        let parts = ShellParts {
            hand: hand.clone(),
            book: gate.shells(),
            clock: Arc::clone(&process.clock),
            ids: Arc::clone(&process.ids),
            entropy: Arc::clone(&process.entropy),
        };
        let shells = Shells::new(parts, self.shell_idle);
        let live = Arc::new(shells.clone());
        let shell = portcullis_tools::ShellTools { book: gate.shells(), shelf: gate.shelf(), files, live };
        let reads =
            portcullis_tools::ReadHand { hand: hand.clone(), files: shell.files.clone(), book: shell.book.clone() };
        match self.profile {
            Profile::Managed => {
                tools.extend(portcullis_tools::shell_tools(shell.clone())?);
                tools.extend(portcullis_tools::read_tools(shell.clone(), reads.clone())?);
                tools.extend(portcullis_tools::run_tools(shell.clone(), hand.clone())?);
                tools.extend(portcullis_tools::persistent_tools(shell.clone(), shells.clone())?);
                let parts = portcullis_tools::SandboxTools { shell, shells: shells.clone(), hand, reads };
                tools.extend(portcullis_tools::sandbox_tools(parts)?);
            }
            Profile::Code => tools.extend(portcullis_tools::stock_bash(shell, shells.clone(), reads)?),
        }
        Ok(Workshop { mounts, shells, tools })
    }
}

/// What runs commands for the tools of a scope. The gate is told what stands between them and the machine.
fn hand_of(launcher: Launcher, gate: &Gate, mounts: &Arc<MountTable>, settings: HandSettings) -> Hand {
    let hand = Hand::new(launcher, Arc::clone(mounts), gate.path_rules(), gate.shells(), settings);
    gate.isolate(Arc::new(hand.clone()));
    hand
}

fn no_rules() -> Policy {
    // Invariant: no rules cannot conflict.
    PolicyBuilder::new().build().expect("a policy without rules is valid")
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
