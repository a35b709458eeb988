//! What the rules say of paths that a call did not name and a tool comes upon: the files of a search,
//! the entries of a listing. Permission was asked for the folder; a rule may speak of less than that.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_base::{Risk, RiskSet, SessionId, Timestamp};
use portcullis_contract::{AccessRequest, Action, Caller, DefaultPolicy, Resource, ResourceClass};
use portcullis_policy::{Asker, Decision, DeniedPath, DeniedProgram, Policy, RuleRef};
use portcullis_secret::{RedactingStream, Redactor};

use crate::gate::{Gate, ScopedGate};

/// The rules in force, for tools that come upon paths. Holds no gate alive.
#[derive(Clone, Default)]
pub struct PathRules {
    gate: ScopedGate,
}

impl PathRules {
    pub(crate) fn new(gate: &Gate) -> Self {
        Self { gate: ScopedGate::of(gate) }
    }

    /// Text that a tool is about to cut, with secrets and keys masked: of half a secret nobody could tell later that it
    /// is one (L69).
    #[must_use]
    pub fn masked<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.gate
            .upgrade()
            .map_or(Cow::Borrowed(text), |gate| Cow::Owned(gate.scope.output_redactor.redact_bytes(text).into_owned()))
    }

    /// The same for text that is too long to be held: what is pushed through it comes out masked.
    #[must_use]
    pub fn masking(&self) -> RedactingStream {
        self.gate.upgrade().map_or_else(|| Redactor::none().stream(), |gate| gate.scope.output_redactor.stream())
    }

    /// The rules as they stand now, for one call that was let through with `named` and reads under
    /// each of these actions. Without a gate, nothing is open.
    #[must_use]
    pub fn now(&self, caller: &Caller, actions: &[&str], named: &str) -> OpenPaths {
        let actions: Vec<Action> = actions.iter().map(|word| Action::new(*word)).collect();
        let rules = self.gate.upgrade().map(|gate| Rules {
            policy: gate.policy(),
            agent: caller.agent.clone(),
            session: caller.session_id,
            project: gate.scope.project.clone(),
            now: gate.inner.clock.now(),
        });
        let everything = rules.as_ref().is_some_and(|rules| rules.never_stop(&actions));
        let mut open = OpenPaths { rules, actions, everything, answered: Vec::new() };
        // A remembered allow reaches what it names and nothing beneath (tool-contract 13.4): only a person's answer to
        // this very call, which showed what it searches, speaks for what lies there.
        if self.gate.upgrade().is_some_and(|gate| gate.inner.was_answered(caller.session_id, caller.intent_id)) {
            open.answered = open.asks(named);
        }
        open
    }

    /// What the rules deny a caller under these actions, as they stand now. `None` without a gate: then everything is.
    #[must_use]
    pub fn denied(&self, caller: &Caller, actions: &[&str]) -> Option<Vec<DeniedPath>> {
        let gate = self.gate.upgrade()?;
        let actions: Vec<Action> = actions.iter().map(|word| Action::new(*word)).collect();
        Some(gate.policy().denied_paths(&actions, &asker(&gate, caller)))
    }

    /// The programs that the rules deny a caller as a whole under these actions, as they stand now.
    #[must_use]
    pub fn denied_programs(&self, caller: &Caller, actions: &[&str]) -> Vec<DeniedProgram> {
        let Some(gate) = self.gate.upgrade() else { return Vec::new() };
        let actions: Vec<Action> = actions.iter().map(|word| Action::new(*word)).collect();
        gate.policy().denied_programs(&actions, &asker(&gate, caller))
    }

    /// The places that the rules ask a caller about under these actions, unless a person has answered this very call,
    /// which showed what it does. A rule that asks about everything has asked already about what the call names.
    #[must_use]
    pub fn asked(&self, caller: &Caller, actions: &[&str]) -> Vec<DeniedPath> {
        let Some(gate) = self.gate.upgrade() else { return Vec::new() };
        if gate.inner.was_answered(caller.session_id, caller.intent_id) {
            return Vec::new();
        }
        let actions: Vec<Action> = actions.iter().map(|word| Action::new(*word)).collect();
        let mut asked = gate.policy().asked_paths(&actions, &asker(&gate, caller));
        asked.retain(|asked| asked.what.is_some());
        asked
    }
}

/// The caller, as rules alone are asked about it: no grant answers here, and where no rule speaks all is open.
fn asker<'a>(gate: &'a Gate, caller: &'a Caller) -> Asker<'a> {
    Asker {
        agent: Some(&caller.agent),
        session: Some(caller.session_id),
        project: Some(&gate.scope.project),
        now: gate.inner.clock.now(),
        default: DefaultPolicy::Allow,
        grants: &[],
    }
}

struct Rules {
    policy: Arc<Policy>,
    agent: String,
    session: SessionId,
    project: String,
    now: Timestamp,
}

impl Rules {
    /// Whether no rule can stop a read under these actions.
    fn never_stop(&self, actions: &[Action]) -> bool {
        !actions.iter().any(|action| self.policy.may_stop(action))
    }

    fn decide(&self, action: &Action, path: &str) -> Decision {
        self.weigh(action, Resource::path(path, path))
    }

    fn weigh(&self, action: &Action, resource: Resource) -> Decision {
        let request = AccessRequest::new(action.clone(), resource, RiskSet::from([Risk::Read]));
        let asker = Asker {
            agent: Some(&self.agent),
            session: Some(self.session),
            project: Some(&self.project),
            now: self.now,
            default: DefaultPolicy::Allow,
            grants: &[],
        };
        self.policy.decide(&[request], &asker)
    }
}

/// Which paths one call may look at.
pub struct OpenPaths {
    rules: Option<Rules>,
    actions: Vec<Action>,
    everything: bool,
    /// Rules that asked about what the call named: its approval answers them for what lies beneath.
    answered: Vec<RuleRef>,
}

impl OpenPaths {
    /// Whether no path needs to be asked about.
    #[must_use]
    pub fn everything(&self) -> bool {
        self.everything
    }

    /// Whether the rules let the call look at this canonical path. What a rule would ask about is
    /// closed, unless that very rule was answered for what the call named: nobody is asked midway.
    #[must_use]
    pub fn may_see(&self, path: &str) -> bool {
        if self.everything {
            return true;
        }
        let Some(rules) = &self.rules else { return false };
        self.actions.iter().all(|action| match rules.decide(action, path) {
            Decision::Allow(_) => true,
            Decision::Deny(_) => false,
            Decision::Ask(ask) => ask.deciding.is_some_and(|rule| self.answered.contains(&rule)),
        })
    }

    /// The same for a path that a tool found to be more than a file.
    #[must_use]
    pub fn may_show(&self, path: &str, class: ResourceClass) -> bool {
        let Some(rules) = &self.rules else { return false };
        let resource = Resource::path(path, path).classed(Some(class));
        self.actions.iter().all(|action| matches!(rules.weigh(action, resource.clone()), Decision::Allow(_)))
    }

    fn asks(&self, named: &str) -> Vec<RuleRef> {
        let Some(rules) = self.rules.as_ref().filter(|_| !self.everything) else { return Vec::new() };
        let asks = self.actions.iter().filter_map(|action| match rules.decide(action, named) {
            Decision::Ask(ask) => ask.deciding,
            _ => None,
        });
        asks.collect()
    }
}
