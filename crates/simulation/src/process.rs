//! One process: a gate of its own over its own way to the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{Actor, Clock, Entropy, IdGen, LocationId, TenantId, WorkerId, limits};
use portcullis_contract::{ToolName, ToolOrigin};
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
use crate::dice::Dice;
use crate::ground::Ground;
use crate::jobs::RULES;
use crate::link::{Link, LinkState};

/// On whose behalf processes act.
const PRINCIPALS: [&str; 3] = ["user:ada", "user:bo", "key:ci"];

fn principal_of(process: &str, seed: u64) -> String {
    Dice::of(seed, &format!("principal of {process}")).pick(&PRINCIPALS).to_owned()
}

/// Where every call of a run works.
const LOCATION: LocationId = LocationId::from_u128(7);

/// A process of a run, alive or not.
pub struct Process {
    pub name: String,
    pub ground: Arc<Ground>,
    pub link: Arc<Link>,
    pub clock: Arc<SimClock>,
    pub store: Arc<Wrapped<Connection>>,
    gates: BTreeMap<TenantId, Gate>,
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
        let rules = parse_rules(RULES, "simulation.toml", Layer::User).map_err(|e| e.to_string())?;
        let policy = PolicyBuilder::new().rules(rules).build().map_err(|e| e.to_string())?;
        let principal = principal_of(&name, ground.options.seed);
        let scope = |tenant: TenantId| ScopeParts {
            tenant,
            principal: principal.clone(),
            actor: Actor::user(&principal),
            agent: "agent".to_owned(),
            toolset: registry.fresh_toolset(),
            tools: ToolChoice::default(),
            location: LOCATION,
            project: "project".to_owned(),
            policy: policy.clone(),
            approvals: Approvals::Wait,
            answers: None,
            ask_expiry: ground.options.ask_expiry,
            redactor: Redactor::none(),
            variables: BTreeMap::new(),
        };
        let parts = GateParts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            artifacts: Arc::clone(&ground.artifacts) as _,
            registry: registry.clone(),
            sealer: Sealer::new(&SealingKey::from_bytes([9; 32])),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids,
            entropy: Arc::clone(&ground.ids) as Arc<dyn Entropy>,
            held_sessions: HeldSessions::default(),
            artifact_quota: limits::ARTIFACT_QUOTA,
        };
        // One gate for all tenants, as in a real process.
        let own = Gate::new(parts, scope(ground.tenants[0]));
        let mut gates: BTreeMap<TenantId, Gate> =
            ground.tenants[1..].iter().map(|tenant| (*tenant, own.beside(scope(*tenant)))).collect();
        gates.insert(ground.tenants[0], own);
        let worker = WorkerId::make(&*ground.ids, clock.now());
        ground.oracle.born(worker, Arc::clone(&link), principal);
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
            gates,
            owner,
            interrupt: Mutex::default(),
            _registered: registered,
        }))
    }

    /// Where it runs calls of a tenant.
    #[must_use]
    pub fn gate(&self, tenant: TenantId) -> &Gate {
        // Invariant: there is one for each tenant of the run, and no session is anybody else's.
        &self.gates[&tenant]
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
