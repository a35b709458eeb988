//! Sessions and what they run as (ruling 51): a runtime is built from a setup, a session is made with one, and a change of
//! it is an event.

use std::sync::{Arc, PoisonError};

use portcullis_agent::setup::{Environment, ResourceLimits, Setup, ToolPolicy, ToolSetup};
use portcullis_agent::{SessionSetup, SetupOrigin, session_setup};
use portcullis_base::{AppendId, Digest, SessionId};
use portcullis_contract::DefaultPolicy;
use portcullis_event::facts::SessionUpdated;
use portcullis_event::{Actor, SessionStatus};
use portcullis_pipeline::{NamedTool, Opened, Session, ToolChoice};
use portcullis_sandbox::hand::Limits;
use portcullis_store::{Blob, Commit, StoreError};
use portcullis_tools::hand::HandSettings;

use crate::RuntimeError;
use crate::runtime::{Runtime, give_back};

/// What a runtime changes in the setup of a session that it takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImposedSetup {
    /// It only appends to the log, and runs nothing.
    Nothing,
    /// What its builder was told: profile, principal, environment, folder.
    Built,
    /// All of it: it was built from a whole setup.
    Whole,
}

/// What a runtime remembers of a session whose setup it has compared with its own.
#[derive(Clone)]
pub(crate) struct SettledSetup {
    hash: Digest,
    tools: Arc<ToolChoice>,
}

/// Sessions of which a runtime remembers that they run as it does; past it all are forgotten, which costs each one look.
const SETTLED_MOST: usize = 4_096;

/// How often a change of a setup is offered to a log that others append to meanwhile.
const CHANGE_TRIES: u32 = 20;

/// What the machine gives, as a part of a setup.
#[must_use]
pub fn environment(hand: &HandSettings) -> Environment {
    let Limits { memory, pids, disk_use, .. } = hand.limits;
    Environment {
        minimum: hand.minimum,
        network: hand.network,
        limits: ResourceLimits { memory_bytes: memory, processes: pids, disk_bytes: disk_use },
        ..Environment::default()
    }
}

/// What commands get: what the machine gives, and never more than the setup says.
pub(crate) fn within(mut hand: HandSettings, environment: &Environment) -> HandSettings {
    let limits = environment.limits;
    hand.minimum = hand.minimum.max(environment.minimum);
    hand.network = hand.network.min(environment.network);
    hand.limits.memory = least(hand.limits.memory, limits.memory_bytes);
    hand.limits.pids = least(hand.limits.pids, limits.processes);
    hand.limits.disk_use = least(hand.limits.disk_use, limits.disk_bytes);
    hand
}

/// Which tools a setup offers, and what it says of single ones.
pub(crate) fn tool_choice(setup: &Setup) -> ToolChoice {
    let named = |tool: &ToolSetup| NamedTool {
        offered: tool.enabled,
        default: tool.policy.map(|policy| match policy {
            ToolPolicy::AlwaysAllow => DefaultPolicy::Allow,
            ToolPolicy::AlwaysAsk => DefaultPolicy::AskPinned,
            ToolPolicy::Auto => DefaultPolicy::Auto,
        }),
    };
    ToolChoice {
        mode: setup.mode,
        phase: setup.phase.clone(),
        profile: setup.profile.as_str().to_owned(),
        network: setup.environment.network.as_str().to_owned(),
        named_only: !setup.tools.enabled,
        named: setup.tools.tools.iter().map(|(name, tool)| (name.clone(), named(tool))).collect(),
    }
}

/// The lower of two limits, of which none is no limit.
fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The content that events name a setup by.
pub(crate) fn content(setup: &Setup) -> Blob {
    let bytes = setup.to_bytes();
    Blob { sha256: Digest::of(&bytes), bytes }
}

impl Runtime {
    /// What sessions run as that this runtime makes.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What its commands really get: no more than the machine gives, and no more than the setup says.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The setup as it may be written: known secrets masked (L69).
    pub(crate) fn masked_setup(&self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        setup.custom_tools = setup.custom_tools.iter().map(|tool| self.masked_tool(tool)).collect();
        for section in &mut setup.system {
            section.text = self.gate.masked(&section.text);
        }
        setup
    }

    /// Claims a session, which then runs as this runtime does: where its log says otherwise, the log is told first.
    ///
    /// # Errors
    /// If there is no such session, its setup cannot be known, or the store fails.
    pub(crate) async fn open(&self, session: SessionId) -> Result<Opened, RuntimeError> {
        let opened = self.gate.open(session, self.owner.clone()).await?;
        let Opened::Ready(held) = opened else { return Ok(opened) };
        match self.settle_setup(&held).await {
            Ok(()) => Ok(Opened::Ready(held)),
            Err(error) => {
                give_back(held).await;
                Err(error)
            }
        }
    }

    async fn settle_setup(&self, held: &Session) -> Result<(), RuntimeError> {
        let (in_force, status) = held.with_state(|state| (state.session.setup_at(u64::MAX), state.session.status));
        // Of a session that ended nothing runs any more.
        if status == SessionStatus::Terminated {
            return Ok(());
        }
        if self.imposes == ImposedSetup::Nothing || in_force == Some(self.setup_hash) {
            return Ok(());
        }
        let session = held.key().session;
        let known = || self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = known().get(&session).cloned();
        if let Some(SettledSetup { tools, .. }) = settled.filter(|settled| Some(settled.hash) == in_force) {
            held.choose_tools(tools);
            return Ok(());
        }
        let setup = match self.imposes {
            ImposedSetup::Whole => Setup::clone(&self.setup),
            _ => self.imposed_on(session_setup(&**self.gate.store(), held.key()).await?.setup),
        };
        let content = content(&self.masked_setup(&setup));
        let hash = content.sha256;
        if in_force != Some(hash) {
            held.adopt_setup(content).await?;
        }
        let mut known = known();
        if known.len() >= SETTLED_MOST {
            known.clear();
        }
        let tools = Arc::new(tool_choice(&setup));
        known.insert(session, SettledSetup { hash, tools: Arc::clone(&tools) });
        held.choose_tools(tools);
        Ok(())
    }

    /// A session's own setup, with what this runtime was built with.
    fn imposed_on(&self, setup: Setup) -> Setup {
        let own = Setup::clone(&self.setup);
        let Setup { tenant, principal, profile, environment, .. } = own;
        let workspace = own.workspace.or(setup.workspace);
        Setup { tenant, principal, profile, environment, workspace, ..setup }
    }

    /// Records that a session runs as `setup` from here on. `seen` is what the caller decided by: if the session has another
    /// setup by now, nothing changes. A session that has this very setup is left alone.
    ///
    /// # Errors
    /// [`RuntimeError::SetupChanged`] if another process changed it meanwhile; otherwise if the store fails.
    pub async fn change_setup(
        &self,
        session: SessionId,
        seen: &SessionSetup,
        setup: &Setup,
    ) -> Result<(), RuntimeError> {
        let setup = self.masked_setup(setup);
        let blob = content(&setup);
        if seen.origin == SetupOrigin::Recorded(blob.sha256) {
            return Ok(());
        }
        let actor = Actor::system();
        let key = self.key(session);
        let changed = SessionUpdated { config_hash: Some(blob.sha256), ..SessionUpdated::default() };
        let draft = self.stamp(&actor).draft(&changed);
        for _ in 0..CHANGE_TRIES {
            let head = self.gate.store().head(key).await?.ok_or(StoreError::NoSession(session))?;
            let now = session_setup(&**self.gate.store(), key).await?.origin;
            if now == SetupOrigin::Recorded(blob.sha256) {
                return Ok(());
            }
            if now != seen.origin {
                return Err(RuntimeError::SetupChanged(session));
            }
            let append = AppendId::make(&*self.process.ids, self.process.clock.now());
            let mut commit = Commit::client(key, append, vec![draft.clone()]);
            commit.blobs = vec![blob.clone()];
            commit.only_at = Some(head.last_seq);
            match self.gate.store().commit(commit).await {
                Err(StoreError::MovedOn { .. }) => {}
                committed => return Ok(committed.map(drop)?),
            }
        }
        Err(RuntimeError::SetupChanged(session))
    }
}
