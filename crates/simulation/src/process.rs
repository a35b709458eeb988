//! One process: a gate of its own over its own way to the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{Actor, Clock, Entropy, IdGen, LocationId, WorkerId, limits};
use portcullis_contract::{ToolName, ToolOrigin};
use portcullis_event::LOCAL_TENANT;
use portcullis_pipeline::{
    Approvals, Gate, GateParts, HeldSessions, Placement, RegistrationGuard, Registry, ScopeParts, ToolChoice,
};
use portcullis_policy::{Layer, PolicyBuilder, parse_rules};
use portcullis_secret::{Redactor, Sealer, SealingKey};
use portcullis_store::{HolderKind, LeaseOwner, Liveness, Store};
use portcullis_store_testkit::Wrapped;
use tokio_util::sync::CancellationToken;

use crate::clock::SimClock;
use crate::connection::Connection;
use crate::ground::Ground;
use crate::jobs::RULES;
use crate::link::{Link, LinkState};

/// Where every call of a run works.
const LOCATION: LocationId = LocationId::from_u128(7);

/// A process of a run, alive or not.
pub struct Process {
    pub name: String,
    pub ground: Arc<Ground>,
    pub link: Arc<Link>,
    pub clock: Arc<SimClock>,
    pub store: Arc<Wrapped<Connection>>,
    pub gate: Gate,
    pub owner: LeaseOwner,
    interrupt: Mutex<CancellationToken>,
    _registered: RegistrationGuard,
}

impl Process {
    /// A new process with all tools.
    ///
    /// # Errors
    /// A fault of the simulation itself, in words.
    pub fn start(ground: &Arc<Ground>, name: String) -> Result<Arc<Self>, String> {
        let link = Arc::new(Link::default());
        let clock = Arc::new(SimClock::new(ground.begun));
        let store = Arc::new(Connection::new(ground, &link, &name));
        let ids = Arc::clone(&ground.ids) as Arc<dyn IdGen>;
        let registry = Registry::new(Arc::clone(&ids), Arc::clone(&clock) as Arc<dyn Clock>);
        let mut tools = BTreeMap::new();
        for (name, tool) in &ground.tools {
            let name: ToolName = name.parse().map_err(|e| format!("{name}: {e}"))?;
            tools.insert(name, tool.clone());
        }
        let registered = registry
            .registrar(Placement::Location(LOCATION), ToolOrigin::Builtin)
            .register(tools)
            .map_err(|e| e.to_string())?;
        let toolset = registry.fresh_toolset();
        let rules = parse_rules(RULES, "simulation.toml", Layer::User).map_err(|e| e.to_string())?;
        let policy = PolicyBuilder::new().rules(rules).build().map_err(|e| e.to_string())?;
        let parts = GateParts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            artifacts: Arc::clone(&ground.artifacts) as _,
            registry,
            sealer: Sealer::new(&SealingKey::from_bytes([9; 32])),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids,
            entropy: Arc::clone(&ground.ids) as Arc<dyn Entropy>,
            held_sessions: HeldSessions::default(),
            artifact_quota: limits::ARTIFACT_QUOTA,
        };
        let scope = ScopeParts {
            tenant: LOCAL_TENANT,
            principal: "person".to_owned(),
            actor: Actor::user("person"),
            agent: "agent".to_owned(),
            toolset,
            tools: ToolChoice::default(),
            location: LOCATION,
            project: "project".to_owned(),
            policy,
            approvals: Approvals::Wait,
            ask_expiry: ground.options.ask_expiry,
            redactor: Redactor::none(),
            variables: BTreeMap::new(),
        };
        let gate = Gate::new(parts, scope);
        let worker = WorkerId::make(&*ground.ids, clock.now());
        ground.oracle.born(worker, Arc::clone(&link));
        let owner = LeaseOwner {
            worker,
            host: "simulation".to_owned(),
            pid: 1,
            started: 1,
            what: name.clone(),
            kind: HolderKind::Standing,
        };
        Ok(Arc::new(Self {
            name,
            ground: Arc::clone(ground),
            link,
            clock,
            store,
            gate,
            owner,
            interrupt: Mutex::default(),
            _registered: registered,
        }))
    }

    /// Ends it between two of its steps: from here on it reaches nothing. What it had sent may still arrive.
    pub fn kill(&self) {
        self.link.set(LinkState::Dead);
        self.ground.oracle.died(self.owner.worker);
        if self.ground.options.proven_deaths {
            self.ground.liveness.set(self.owner.worker, Liveness::Dead);
        }
    }

    /// What stops the calls that are made now.
    #[must_use]
    pub fn interrupt(&self) -> CancellationToken {
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A person presses Ctrl-C.
    pub fn interrupt_now(&self) {
        let mut interrupt = self.interrupt.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *interrupt).cancel();
    }
}
