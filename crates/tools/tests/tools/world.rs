//! A workspace, a gate over a store in memory, and sessions in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_base::{
    AppendId, Code, Digest, IdGen, LocationId, ManualClock, MessageId, Phase, Reason, Recorded, Retry, SeededIds,
    SessionId, SideEffects, TenantId, Timestamp, WorkerId, limits,
};
use portcullis_contract::{Caller, Tool, ToolDefinition, ToolName, ToolOrigin};
use portcullis_event::facts::SessionCreated;
use portcullis_event::fold::Baseline;
use portcullis_event::{Actor, Observed, Stamp};
use portcullis_pipeline::{
    Admission, Append, Approvals, ArtifactShelf, Disposition, Gate, GateParts, HeldSessions, Opened, Placement,
    Proposal, RegistrationGuard, Registry, ScopeParts, Session, ShellBook, ToolChoice, Turn,
};
use portcullis_policy::{Layer, Policy, PolicyBuilder, parse_rules};
use portcullis_sandbox::hand::Launcher;
use portcullis_sandbox::{Access, Mount, MountTable, TreeOwner, VirtualPath};
use portcullis_secret::{Redactor, Sealer, SealingKey};
use portcullis_store::{Artifacts, Commit, HostLiveness, Log as _, MemoryArtifacts, MemoryStore, SessionKey, Store};
use portcullis_tools::hand::HandSettings;
use portcullis_tools::{
    CoverageRule, FileTools, LiveShell, NoLiveShell, Profile, ReadHand, SandboxTools, ShellParts, ShellTools, Shells,
    artifact_tools, file_tools, persistent_tools, read_tools, run_tools, sandbox_tools, shell_tools, task_tools,
};
use serde_json::Value;
use tempfile::TempDir;

pub const TENANT: TenantId = TenantId::from_u128(1);

pub struct World {
    pub dir: TempDir,
    store: Arc<MemoryStore>,
    artifacts: Arc<MemoryArtifacts>,
    clock: Arc<ManualClock>,
    ids: Arc<SeededIds>,
    pub owner: TreeOwner,
    pub coverage: CoverageRule,
    /// Rules of the person, as TOML.
    pub rules: &'static str,
    /// A second, read-only mount, if there is one.
    pub shelf_dir: Option<TempDir>,
    /// Places of the workspace that no tool sees.
    pub hidden: Vec<&'static str>,
    /// Shells that processes of this world run.
    pub live: Arc<dyn LiveShell>,
    /// With the tools that run commands, and those of the sandbox. No command runs: a test is no launcher.
    pub sandbox: bool,
}

/// One process: a gate with the tools registered.
pub struct Process {
    gate: Gate,
    pub held_sessions: HeldSessions,
    _registered: RegistrationGuard,
    ids: Arc<SeededIds>,
    clock: Arc<ManualClock>,
    host: PathBuf,
    /// What is registered.
    pub tools: BTreeMap<ToolName, Tool>,
}

/// A claimed session of a process.
pub struct Hand<'p> {
    process: &'p Process,
    pub session: Session,
}

impl World {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let ids = Arc::new(SeededIds::new(7));
        let store = MemoryStore::new(clock.clone(), ids.clone(), Arc::new(HostLiveness::new()), None);
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            store: Arc::new(store),
            artifacts: Arc::default(),
            clock,
            ids,
            owner: TreeOwner::SessionOwn,
            coverage: CoverageRule::Region,
            rules: "",
            shelf_dir: None,
            hidden: Vec::new(),
            live: Arc::new(NoLiveShell),
            sandbox: false,
        }
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    pub fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a text file")
    }

    /// Every file and directory of the workspace.
    pub fn tree(&self) -> Vec<String> {
        fn walk(dir: &Path, root: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                found.push(path.strip_prefix(root).expect("beneath").display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    walk(&path, root, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found.sort();
        found
    }

    pub fn start(&self) -> Process {
        self.start_with(BTreeMap::new())
    }

    /// A process with the tools of this crate and `more`.
    pub fn start_with(&self, more: BTreeMap<ToolName, Tool>) -> Process {
        let mut mounts = MountTable::workspace(self.dir.path(), self.owner).expect("a mount");
        if let Some(dir) = &self.shelf_dir {
            let root = VirtualPath::new("/books").expect("a path");
            mounts.add(Mount::open(root, dir.path(), Access::ReadOnly, self.owner).expect("a mount"));
        }
        let hidden: Vec<PathBuf> = self.hidden.iter().map(|name| self.path(name)).collect();
        let mounts = mounts.hiding(hidden.iter().map(PathBuf::as_path));
        let held_sessions = HeldSessions::default();
        let store: Arc<dyn Store> = self.store.clone();
        let artifacts: Arc<dyn Artifacts> = self.artifacts.clone();
        let shelf = ArtifactShelf::new(store.clone(), artifacts.clone(), TENANT);
        let registry = Registry::new(self.ids.clone(), self.clock.clone());
        let registrar = registry.registrar(Placement::Process, ToolOrigin::Builtin);
        let rules = parse_rules(self.rules, "rules.toml", Layer::User).expect("rules");
        let toolset = registry.fresh_toolset();
        let parts = GateParts {
            store,
            artifacts,
            registry,
            sealer: Sealer::new(&SealingKey::from_bytes([9; 32])),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            entropy: self.ids.clone(),
            held_sessions: held_sessions.clone(),
            artifact_quota: limits::ARTIFACT_QUOTA,
        };
        let scope = ScopeParts {
            tenant: TENANT,
            principal: "user:test".to_owned(),
            actor: Actor::user("test"),
            agent: "tester".to_owned(),
            toolset,
            tools: ToolChoice::default(),
            location: LocationId::from_u128(1),
            project: "test".to_owned(),
            policy: PolicyBuilder::new().rules(rules).build().expect("a policy"),
            approvals: Approvals::Unavailable,
            answers: None,
            ask_expiry: limits::ASK_EXPIRY,
            redactor: Redactor::none(),
            variables: BTreeMap::new(),
        };
        let gate = Gate::new(parts, scope);
        let files = FileTools {
            profile: Profile::Managed,
            hand: None,
            mounts: Arc::new(mounts),
            held_sessions: held_sessions.clone(),
            coverage: self.coverage,
            rules: gate.path_rules(),
        };
        let mut tools = file_tools(files.clone()).expect("file tools");
        let live = Arc::clone(&self.live);
        let shell = ShellTools { book: gate.shells(), shelf: shelf.clone(), files, live };
        if self.sandbox {
            tools.extend(self.with_commands(&gate, &shell));
        }
        tools.extend(shell_tools(shell).expect("shell tools"));
        tools.extend(artifact_tools(shelf).expect("artifact tools"));
        tools.extend(task_tools(&gate.tasks()).expect("task tools"));
        tools.extend(more);
        let registered = registrar.register(tools.clone()).expect("registered");
        let (ids, clock) = (self.ids.clone(), self.clock.clone());
        Process { gate, held_sessions, _registered: registered, ids, clock, host: self.dir.path().to_owned(), tools }
    }

    fn with_commands(&self, gate: &Gate, shell: &ShellTools) -> BTreeMap<ToolName, Tool> {
        let mounts = Arc::clone(&shell.files.mounts);
        let (rules, book) = (gate.path_rules(), gate.shells());
        let hand =
            portcullis_tools::hand::Hand::new(Launcher::this_program(), mounts, rules, book, HandSettings::default());
        let reads = ReadHand { hand: hand.clone(), files: shell.files.clone(), book: gate.shells() };
        let parts = ShellParts {
            hand: hand.clone(),
            book: gate.shells(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            entropy: self.ids.clone(),
        };
        let shells = Shells::new(parts, portcullis_base::limits::SHELL_IDLE);
        let mut tools = read_tools(shell.clone(), reads.clone()).expect("bash");
        tools.extend(run_tools(shell.clone(), hand.clone()).expect("shell_run"));
        tools.extend(persistent_tools(shell.clone(), shells.clone()).expect("the persistent shell"));
        tools.extend(sandbox_tools(SandboxTools { shell: shell.clone(), shells, hand, reads }).expect("the sandbox"));
        tools
    }

    /// A new session.
    pub async fn session(&self) -> SessionId {
        let session = SessionId::from_u128(self.ids.next(Timestamp::from_micros(0)));
        let created = SessionCreated {
            agent_id: None,
            agent_version: 1,
            environment_id: None,
            parent_session_id: None,
            root_session_id: session,
            depth: 0,
            name: None,
            tags: Vec::new(),
            config_hash: Digest::of(b""),
            has_setup: false,
            workspace: None,
            custom_tools: Vec::new(),
        };
        let actor = Actor::user("test");
        let stamp = Stamp { ids: &*self.ids, clock: &*self.clock, actor: &actor, turn_id: None, wake_id: None };
        let append = AppendId::from_u128(self.ids.next(Timestamp::from_micros(0)));
        let commit = Commit::client(SessionKey { tenant: TENANT, session }, append, vec![stamp.draft(&created)]);
        self.store.commit(commit).await.expect("a session");
        session
    }
}

/// Who calls in a session.
pub fn caller(session: SessionId) -> Caller {
    Caller {
        tenant: TENANT,
        principal: "user:test".to_owned(),
        actor: Actor::agent("tester"),
        session_id: session,
        agent: "tester".to_owned(),
        message_id: portcullis_base::MessageId::from_u128(1),
        call_id: "c".to_owned(),
        turn_id: portcullis_base::TurnId::from_u128(1),
        intent_id: portcullis_base::IntentId::from_u128(1),
        asker_env: std::collections::BTreeMap::new(),
    }
}

impl Process {
    /// From now on under the rules of whoever sent it as well (tool-contract 13.6).
    pub fn sent_under(&self, rules: &str) {
        let rules = parse_rules(rules, "parent.toml", Layer::User).expect("rules");
        let parent = PolicyBuilder::new().rules(rules).build().expect("a policy");
        self.gate.set_policy(Policy::clone(&self.gate.policy()).intersect(&Arc::new(parent)));
    }

    /// What would become of a call.
    pub async fn explain(&self, session: SessionId, tool: &str, input: &Value) -> portcullis_pipeline::Explained {
        self.gate.explain(session, "tester", tool, &input.to_string()).await
    }

    /// The shells of its sessions.
    pub fn shells(&self) -> ShellBook {
        self.gate.shells()
    }

    /// What is offered to a session, by name.
    pub fn definitions(&self, session: SessionId) -> BTreeMap<String, ToolDefinition> {
        let offer = self.gate.offer(session);
        offer.entries().map(|(name, entry)| (name.to_string(), (*entry.definition).clone())).collect()
    }

    pub async fn open(&self, session: SessionId) -> Hand<'_> {
        let worker = WorkerId::from_u128(self.ids.next(Timestamp::from_micros(0)));
        let owner = HostLiveness::new().this_process(worker, "test");
        match self.gate.open(session, owner).await.expect("a store") {
            Opened::Ready(session) => Hand { process: self, session },
            Opened::Held(owner) => panic!("held by {owner}"),
        }
    }
}

impl Hand<'_> {
    pub fn id(&self) -> SessionId {
        self.session.key().session
    }

    pub fn baseline(&self, path: &str) -> Option<Baseline> {
        self.process.held_sessions.baseline(self.id(), &format!("/workspace/{path}"))
    }

    /// Proposes a call and does not wait for it.
    pub fn propose(&self, tool: &str, input: &Value) -> Admission {
        let mut facts = Append::new();
        let turn = self.session.begin_turn(&mut facts);
        self.propose_in(&turn, facts, tool, input)
    }

    /// Proposes a call of a turn that has begun.
    pub fn propose_in(&self, turn: &Arc<Turn>, facts: Append, tool: &str, input: &Value) -> Admission {
        let message_id = MessageId::from_u128(self.process.ids.next(Timestamp::from_micros(0)));
        let (call_id, tool, input) = ("c1".to_owned(), tool.to_owned(), input.to_string());
        self.session
            .admit(
                facts,
                turn,
                Proposal { actor: Actor::agent("tester"), message_id, call_id, tool, input, stated_reason: None },
            )
            .spawned()
    }

    pub async fn settle(&self, admission: Admission) -> Observed {
        let (facts, disposition) = admission.settled().await.expect("a log that takes writes");
        self.session.commit(facts).await.expect("a commit");
        let Disposition::Settled(observation) = disposition else { panic!("parked: {disposition:?}") };
        let observed = observation.session_view().clone();
        // H6, for every call of every test.
        let host = self.process.host.display().to_string();
        let shown = format!("{} {}", observation.model_view(), serde_json::to_string(&observed).expect("json"));
        assert!(!shown.contains(&host), "a host path is shown: {shown}");
        observed
    }

    pub async fn call(&self, tool: &str, input: Value) -> Observed {
        self.process.clock.advance(std::time::Duration::from_millis(1));
        self.settle(self.propose(tool, &input)).await
    }

    /// A call that must succeed.
    pub async fn done(&self, tool: &str, input: Value) -> Observed {
        let observed = self.call(tool, input).await;
        assert!(observed.ok, "{tool}: {} {}", observed.code, observed.summary);
        observed
    }

    /// A call that must be refused with this code, reason and phase, and with all that the code promises.
    pub async fn refused(
        &self,
        tool: &str,
        input: Value,
        code: Code,
        reason: Option<Reason>,
        phase: Phase,
    ) -> Observed {
        let observed = self.call(tool, input).await;
        check_refusal(&observed, code, reason, phase);
        observed
    }
}

pub fn check_refusal(observed: &Observed, code: Code, reason: Option<Reason>, phase: Phase) {
    let row = code.row();
    assert_eq!(observed.code, Recorded::Known(code), "{}", observed.summary);
    assert_eq!(observed.reason.as_ref().and_then(Recorded::known), reason, "{}", observed.summary);
    assert_eq!(observed.phase, Recorded::Known(phase), "{}", observed.summary);
    assert!(row.phases.contains(&phase));
    assert!(!observed.ok);
    assert_eq!(observed.side_effects, SideEffects::none());
    assert_eq!(observed.recovery, Recorded::Known(row.recovery));
    assert_eq!(observed.retryable, row.retry == Retry::Yes);
    assert!(observed.files.is_empty() && observed.artifacts.is_empty());
    assert!(!observed.summary.is_empty());
}

/// What a model is shown.
pub fn text(observed: &Observed) -> String {
    observed.content.iter().filter_map(|part| part.text.as_deref()).collect()
}

/// `1\n2\n…n\n`, each line `prefix` and its number.
pub fn numbered(prefix: &str, lines: u64) -> String {
    (1..=lines).map(|n| format!("{prefix}{n}\n")).collect()
}
