//! What a session acts by: for whom, where, under which rules and with which secrets. A gate serves many scopes at once;
//! an open session holds one of them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use portcullis_base::{Actor, LocationId, SessionId, TenantId, Timestamp};
use portcullis_contract::{Action, DefaultPolicy};
use portcullis_policy::{Asker, Policy, RuleId};
use portcullis_secret::{Redactor, SecretText};
use tokio_util::task::TaskTracker;

use crate::asks::answer::KnownAnswers;
use crate::isolation::{Isolated, Isolation};
use crate::registry::registrations::{Places, ToolsetId};
use crate::registry::tool_choice::{ChosenTools, ToolChoice};
use crate::tenants::TenantBooks;

/// Whether a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// An ask waits for a person.
    Wait,
    /// Headless: an ask is refused at once. Nothing ever waits for nobody (tool-contract 13.6).
    Unavailable,
}

/// What a scope is made of.
pub struct ScopeParts {
    pub tenant: TenantId,
    /// On whose behalf calls are made; an approval is bound to it.
    pub principal: String,
    /// Who makes the calls that no model proposes: a person, a key, a caller over MCP.
    pub actor: Actor,
    /// Whose model proposes the others.
    pub agent: String,
    /// The built-in tools that its sessions have.
    pub toolset: ToolsetId,
    /// Which of all tools they are offered.
    pub tools: ToolChoice,
    /// What keys of the scheduler and tools of plugins belong to.
    pub location: LocationId,
    /// The project rules and grants are scoped to.
    pub project: String,
    pub policy: Policy,
    pub approvals: Approvals,
    /// Who may know the answer to an ask when it is raised.
    pub answers: Option<KnownAnswers>,
    pub ask_expiry: Duration,
    pub redactor: Redactor,
    pub variables: BTreeMap<String, SecretText>,
}

/// See [`ScopeParts`].
pub(crate) struct Scope {
    pub(crate) tenant: TenantId,
    pub(crate) books: TenantBooks,
    pub(crate) principal: String,
    pub(crate) actor: Actor,
    pub(crate) agent: String,
    pub(crate) toolset: ToolsetId,
    pub(crate) tools: ChosenTools,
    pub(crate) location: LocationId,
    pub(crate) project: String,
    policy: RwLock<Arc<Policy>>,
    pub(crate) approvals: Approvals,
    pub(crate) answers: Option<KnownAnswers>,
    pub(crate) ask_expiry: Duration,
    /// Masks known secrets, in whatever is written.
    pub(crate) redactor: Arc<Redactor>,
    /// Masks values that look like keys as well, in what tools bring back. Inputs stay as they are: a call must run with
    /// what was proposed.
    pub(crate) output_redactor: Arc<Redactor>,
    pub(crate) variables: BTreeMap<String, SecretText>,
    /// Every task of its sessions.
    pub(crate) tracker: TaskTracker,
    /// The hand that runs commands for tools. It is none before it is known, and where no tool runs any.
    isolation: OnceLock<Arc<dyn Isolation>>,
}

impl Scope {
    pub(crate) fn new(number: u64, parts: ScopeParts, books: TenantBooks) -> Self {
        Self {
            tenant: parts.tenant,
            books,
            principal: parts.principal,
            actor: parts.actor,
            agent: parts.agent,
            toolset: parts.toolset,
            tools: ChosenTools { number, choice: Arc::new(parts.tools) },
            location: parts.location,
            project: parts.project,
            policy: RwLock::new(Arc::new(parts.policy)),
            approvals: parts.approvals,
            answers: parts.answers,
            ask_expiry: parts.ask_expiry,
            output_redactor: Arc::new(parts.redactor.and_keys()),
            redactor: Arc::new(parts.redactor),
            variables: parts.variables,
            tracker: TaskTracker::new(),
            isolation: OnceLock::new(),
        }
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The first one stays.
    pub(crate) fn isolate(&self, isolation: Arc<dyn Isolation>) {
        let _ = self.isolation.set(isolation);
    }

    /// Where the tools of a session are looked up.
    pub(crate) fn places(&self, session: SessionId) -> Places {
        Places { toolset: self.toolset, location: self.location, session }
    }

    /// The rule that denies a tool whatever it would touch.
    pub(crate) fn wholly_denied(&self, name: &str, session: SessionId, now: Timestamp) -> Option<RuleId> {
        let asker = Asker {
            agent: None,
            session: Some(session),
            project: Some(&self.project),
            now,
            default: DefaultPolicy::Ask,
            grants: &[],
        };
        self.policy().wholly_denied(&Action::new(name), &asker)
    }

    /// A rule, and for a person its file and line.
    pub(crate) fn placed(&self, rule: &RuleId) -> String {
        let place = self.policy().place_of(rule.as_str()).map(|place| format!(" ({place})"));
        format!("`{rule}`{}", place.unwrap_or_default())
    }

    /// What the commands of a tool with this sandbox profile get.
    pub(crate) fn isolated(&self, profile: Option<&str>) -> Option<Isolated> {
        self.isolation.get()?.of(profile?)
    }
}
