//! What the gate would decide about a call, without admitting it: nothing is run, recorded or opened. The checks that
//! look at content (is a file as it was read?) come after the rules and are not made.

use std::collections::BTreeMap;

use portcullis_base::{Code, IntentId, MessageId, Phase, RiskSet, SessionId, TurnId};
use portcullis_contract::{Caller, Semantics, seam};
use portcullis_event::facts::Verdict;
use portcullis_policy::{Allow, Ask, Asker, Decision, SuggestedRule};

use crate::gate::Gate;
use crate::isolation::Isolated;
use crate::phases::lookup::did_you_mean;
use crate::phases::validate::{first, guarded};

/// A decision that was not made.
#[derive(Debug, Clone)]
pub struct Explained {
    pub decision: Verdict,
    /// Where the call would stop, or which phase lets it go on.
    pub phase: Phase,
    /// What a refusal would be called.
    pub code: Option<Code>,
    pub reason: String,
    pub policy_ids: Vec<String>,
    pub grant_ids: Vec<String>,
    pub risk: RiskSet,
    pub read_only: bool,
    pub pinned: bool,
    /// No flag answers its ask, only a person does.
    pub only_a_person: bool,
    pub suggested_rules: Vec<SuggestedRule>,
    /// The isolation that its tool asks for; none if the runtime does it itself, confined to the mounts.
    pub sandbox: Option<String>,
    /// How far that goes here, if its commands are run here.
    pub isolated: Option<Isolated>,
    pub network: bool,
}

impl Explained {
    fn refused(phase: Phase, code: Code, reason: String) -> Self {
        Self {
            decision: Verdict::Deny,
            phase,
            code: Some(code),
            reason,
            policy_ids: Vec::new(),
            grant_ids: Vec::new(),
            risk: RiskSet::new(),
            read_only: false,
            pinned: false,
            only_a_person: false,
            suggested_rules: Vec::new(),
            sandbox: None,
            isolated: None,
            network: false,
        }
    }
}

impl Gate {
    /// What would become of this call if it were made in `session` by `agent` now.
    pub async fn explain(&self, session: SessionId, agent: &str, tool: &str, input: &str) -> Explained {
        let gate = &self.inner;
        let offer = self.offer(session);
        let Some((name, _)) = offer.entries.get_key_value(tool) else {
            return self.not_offered(session, tool);
        };
        let Some(registered) = self.effective(tool, session) else { return self.not_offered(session, tool) };
        let refusal = |semantics: &Semantics, code: Code, reason: String| Explained {
            risk: semantics.risk.clone(),
            read_only: semantics.read_only,
            ..Explained::refused(Phase::Validate, code, reason)
        };
        let now = gate.clock.now();
        let caller = Caller {
            tenant: self.scope.tenant,
            session_id: session,
            principal: self.scope.principal.clone(),
            actor: self.scope.actor.clone(),
            agent: agent.to_owned(),
            message_id: MessageId::make(&*gate.ids, now),
            call_id: "explain".to_owned(),
            turn_id: TurnId::make(&*gate.ids, now),
            intent_id: IntentId::make(&*gate.ids, now),
            asker_env: BTreeMap::new(),
        };
        let semantics = seam::semantics(&registered.tool);
        let decoded = match guarded(|| seam::decode(&registered.tool, input)) {
            Ok(Ok(decoded)) => decoded,
            Ok(Err(error)) => {
                let text = format!("the input of `{name}` is not what it takes: {}", first(&error.faults));
                return refusal(semantics, error.code, text);
            }
            Err(_) => return refusal(semantics, Code::InternalError, "the tool broke on this input".to_owned()),
        };
        let Ok((tool, decoded)) = guarded(|| seam::chosen(&registered.tool, decoded, &caller)) else {
            return refusal(semantics, Code::InternalError, "the tool broke on this input".to_owned());
        };
        let (tool, semantics) = (&tool, seam::semantics(&tool));
        let refused = |code: Code, reason: String| refusal(semantics, code, reason);
        let resolved = match guarded(|| seam::resolve(tool, &decoded, &caller)) {
            Ok(Ok(resolved)) => resolved,
            Ok(Err(found)) => {
                let parts = seam::precondition_parts(found);
                return refused(parts.code, parts.message);
            }
            Err(_) => return refused(Code::InternalError, "the tool broke on this input".to_owned()),
        };
        let Ok(access) = guarded(|| seam::plan_access(tool, name, &decoded, &resolved)) else {
            return refused(Code::InternalError, "the tool broke on this input".to_owned());
        };
        let grants = self.scope.remembered().await;
        let asker = Asker {
            agent: Some(agent),
            session: Some(session),
            project: Some(&self.scope.project),
            now,
            default: self.scope.tools.choice.default_of(name.as_str(), semantics),
            grants: &grants,
        };
        let decision = self.scope.policy().decide(&access, &asker);
        let policy_ids = decision.policy_ids().iter().map(ToString::to_string).collect();
        let reason = self.masked(decision.reason());
        let only_a_person = matches!(&decision, Decision::Ask(ask) if ask.only_a_person);
        let (verdict, code, grant_ids, pinned, suggested_rules) = match decision {
            Decision::Allow(Allow { grant_ids, .. }) => (Verdict::Allow, None, grant_ids, false, Vec::new()),
            Decision::Ask(Ask { pinned, suggested_rules, .. }) => {
                (Verdict::Ask, None, Vec::new(), pinned, suggested_rules)
            }
            Decision::Deny(_) => (Verdict::Deny, Some(Code::PolicyDenied), Vec::new(), false, Vec::new()),
        };
        Explained {
            decision: verdict,
            phase: Phase::Permission,
            code,
            reason,
            policy_ids,
            grant_ids: grant_ids.iter().map(ToString::to_string).collect(),
            risk: semantics.risk.clone(),
            read_only: semantics.read_only,
            pinned,
            only_a_person,
            suggested_rules,
            sandbox: semantics.sandbox.clone(),
            isolated: self.scope.isolated(semantics.sandbox.as_deref()),
            network: semantics.risk.contains(&portcullis_base::Risk::Network),
        }
    }

    fn not_offered(&self, session: SessionId, tool: &str) -> Explained {
        let offer = self.offer(session);
        let tool: String = tool.chars().take(128).collect();
        if let Some(hidden) = offer.hidden.iter().find(|hidden| hidden.name == tool) {
            let rule = self.wholly_denied(&tool, session);
            let by = rule.map(|rule| format!(": rule {} denies it altogether", self.scope.placed(&rule)));
            let by = by.unwrap_or_default();
            let text = format!("`{tool}` is not offered here ({}){by}", hidden.reason);
            return Explained::refused(Phase::Lookup, Code::ToolNotVisible, text);
        }
        let names = || offer.entries.keys().map(portcullis_contract::ToolName::as_str);
        let (meant, known) = (did_you_mean(&tool, names()), names().take(24).collect::<Vec<_>>());
        let text = format!("there is no tool `{tool}`{meant}; there are: {}", known.join(", "));
        Explained::refused(Phase::Lookup, Code::UnknownTool, text)
    }
}
