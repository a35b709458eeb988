//! What would become of a call, and why. Nothing runs.

use portcullis_base::{Code, Phase, SessionId};
use portcullis_event::facts::Verdict;
use portcullis_pipeline::Explained;
use portcullis_tools::instead::{Alternative, instead_of};
use serde_json::{Value, json};

use super::is_wrong_input;
use crate::Runtime;

/// A call, explained.
pub struct ExplainedCall {
    /// What the gate says of it.
    pub found: Explained,
    /// The tool that answers what a command asks (agent-runtime 8.6).
    pub instead: Option<Alternative>,
    /// The deny that a line meets which the read-only hand refuses before any rule is asked, where it would be run instead.
    pub denied_elsewhere: Option<String>,
}

impl Runtime {
    /// Explains a call of an agent in a session.
    pub async fn explain(&self, session: SessionId, tool: &str, input: &str) -> ExplainedCall {
        let found = self.gate.explain(session, &self.setup.agent.id, tool, input).await;
        let mut call = ExplainedCall { found, instead: instead_of(tool, input), denied_elsewhere: None };
        let line = serde_json::from_str::<Value>(input).ok().and_then(|input| input.get("command").cloned());
        if let Some(line) = line.filter(|_| call.is_refused() && !call.is_wrong_input()) {
            let there = json!({ "command": line }).to_string();
            let there = self.gate.explain(session, &self.setup.agent.id, "shell_run", &there).await;
            call.denied_elsewhere = (there.code == Some(Code::PolicyDenied)).then_some(there.reason);
        }
        call
    }
}

impl ExplainedCall {
    /// Whether the input is not what the tool takes: then no rule was asked.
    #[must_use]
    pub fn is_wrong_input(&self) -> bool {
        is_wrong_input(self.found.code)
    }

    /// Whether the call would stop before any rule is asked.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.found.decision == Verdict::Deny && self.found.phase != Phase::Permission
    }

    /// For a program.
    #[must_use]
    pub fn document(&self) -> Value {
        let found = &self.found;
        let network = match &found.isolated {
            Some(isolated) => isolated.network.as_str(),
            None if found.network => "used by the tool itself, not confined",
            None => "not used",
        };
        let level = found.isolated.as_ref().map(|isolated| isolated.level);
        let decision = if self.is_refused() { json!("refused") } else { json!(found.decision) };
        json!({
            "decision": decision,
            "phase": found.phase,
            "code": found.code,
            "reason": found.reason,
            "policy_ids": found.policy_ids,
            "grant_ids": found.grant_ids,
            "pinned": found.pinned,
            "only_a_person": found.only_a_person,
            "risk": found.risk,
            "read_only": found.read_only,
            "mapped": self.instead.as_ref().map(|found| {
                json!({"tool": found.tool, "input": found.input, "differs": found.differs})
            }),
            "suggested_rules": found.suggested_rules,
            "would_run_in": {"profile": found.sandbox, "level": level, "network": network},
            "denied_elsewhere": self.denied_elsewhere,
        })
    }
}
