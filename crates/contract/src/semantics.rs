//! Readable governance metadata of a tool (tool-contract 3.2).

pub use portcullis_base::VerificationKind;
use portcullis_base::{EffectSet, Risk, RiskSet};
use serde::{Deserialize, Serialize};

/// Who runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ownership {
    /// The runtime itself.
    Managed,
    /// An MCP server.
    Mcp,
    /// The client, later.
    Custom,
}

/// What may run beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// Read-only; overlaps other safe calls.
    Safe,
    /// Alone in its location.
    Exclusive,
    /// Excludes calls with a conflicting key; needs a key function.
    Keyed,
}

/// What an interrupt does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// It is stopped at once.
    Cancel,
    /// It is let finish first.
    Finish,
    /// It goes on by itself.
    Detach,
}

/// What the gate does when no rule speaks (tool-contract 13.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultPolicy {
    /// It runs.
    Allow,
    /// A person is asked, unless a rule or grant answers.
    Ask,
    /// Every call asks; no grant satisfies it.
    AskPinned,
    /// Read-only work runs, the rest asks.
    Auto,
}

impl DefaultPolicy {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::AskPinned => "ask_pinned",
            Self::Auto => "auto",
        }
    }
}

/// Which part of a long output the model is shown (tool-contract §18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The start.
    Head,
    /// The end.
    Tail,
    /// Half of each.
    HeadTail,
    /// A little of both ends, and windows round what went wrong.
    AroundErrors,
    /// Round matches, fairly over files.
    MatchContext,
}

/// How long it may run. The clock stands still while it waits in a queue or for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timeout {
    /// Where the input asks for nothing.
    pub default_ms: u64,
    /// What a request is clamped to.
    pub max_ms: u64,
}

/// Text or secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// May be shown.
    Text,
    /// Never shown, sealed at rest.
    Secret,
}

/// A named value the tool declares; it can see no other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Text or secret.
    pub kind: VariableKind,
    /// Whether the tool cannot run without it.
    pub required: bool,
    /// Whether it is bound to one agent.
    pub scoped: bool,
    /// What it is for.
    pub description: String,
}

/// Everything the gate, the scheduler and a catalog know of a tool. Part of `definition_version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semantics {
    /// Who runs it.
    pub ownership: Ownership,
    /// What the gate weighs.
    pub risk: RiskSet,
    /// What catalogs show.
    pub effects: EffectSet,
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy what cannot be brought back.
    pub destructive: bool,
    /// Twice is as good as once.
    pub idempotent: bool,
    /// What it does can be undone.
    pub reversible: bool,
    /// What may run beside it.
    pub concurrency: Concurrency,
    /// How long it may run.
    pub timeout: Timeout,
    /// It may go on after its observation.
    pub backgroundable: bool,
    /// It reports progress.
    pub stream_progress: bool,
    /// The sandbox profile it must run in; `None` = none needed.
    pub sandbox: Option<String>,
    /// What an interrupt does to it.
    pub interrupt: Interrupt,
    /// What the gate does when no rule speaks.
    pub default_policy: DefaultPolicy,
    /// Which part of a long output is shown.
    pub truncation: Strategy,
    /// May only lower the global limit, in bytes.
    pub max_result: Option<usize>,
    /// The variables it may read.
    pub variables: Vec<Variable>,
    /// What its success proves.
    pub verifies: Option<VerificationKind>,
    /// It finds accesses midway (R3).
    pub dynamic_access: bool,
    /// All that it changes is in the log, through the book of effects: its start is durable with its effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_log: bool,
}

impl Semantics {
    /// A tool that only looks: overlaps others, is cancelled at once, allowed by default.
    #[must_use]
    pub fn read_only() -> Self {
        Self {
            ownership: Ownership::Managed,
            risk: RiskSet::from([Risk::Read]),
            effects: EffectSet::new(),
            read_only: true,
            destructive: false,
            idempotent: true,
            reversible: true,
            concurrency: Concurrency::Safe,
            timeout: Timeout { default_ms: 60_000, max_ms: 600_000 },
            backgroundable: false,
            stream_progress: false,
            sandbox: None,
            interrupt: Interrupt::Cancel,
            default_policy: DefaultPolicy::Allow,
            truncation: Strategy::HeadTail,
            max_result: None,
            variables: Vec::new(),
            verifies: None,
            dynamic_access: false,
            in_log: false,
        }
    }

    /// A tool that changes something: alone in its location, let finish on interrupt, asked for by default.
    #[must_use]
    pub fn mutating() -> Self {
        Self {
            risk: RiskSet::from([Risk::Write]),
            read_only: false,
            idempotent: false,
            reversible: false,
            concurrency: Concurrency::Exclusive,
            interrupt: Interrupt::Finish,
            default_policy: DefaultPolicy::Ask,
            ..Self::read_only()
        }
    }

    /// Whether a call cannot touch the world, and so costs one append (tool-contract 10.2). One that may stop at the
    /// gate midway has its start in the log first: what is asked there comes after it.
    #[must_use]
    pub fn inert(&self) -> bool {
        self.read_only
            && !self.dynamic_access
            && self.risk.iter().all(|risk| *risk == Risk::Read)
            && self.variables.iter().all(|v| v.kind != VariableKind::Secret)
    }

    /// The contradictions that `build()` refuses.
    pub(crate) fn contradiction(&self, has_keys: bool, parts_are_intents: bool) -> Option<&'static str> {
        if self.read_only && (self.destructive || self.risk.contains(&Risk::Write)) {
            return Some("read_only contradicts risk `write` and `destructive`");
        }
        if self.concurrency == Concurrency::Safe && !self.read_only {
            return Some("concurrency `safe` needs read_only");
        }
        if self.risk.contains(&Risk::Execute) && self.sandbox.is_none() {
            return Some("risk `execute` needs a sandbox profile");
        }
        if self.concurrency == Concurrency::Keyed && !has_keys {
            return Some("concurrency `keyed` needs a key function");
        }
        if self.timeout.max_ms < self.timeout.default_ms {
            return Some("timeout.max_ms is below timeout.default_ms");
        }
        if self.dynamic_access && !parts_are_intents {
            return Some("dynamic_access is only for tools whose parts are intents of their own");
        }
        let leaves_the_log = self.sandbox.is_some() || self.risk.contains(&Risk::Network) || self.dynamic_access;
        if self.in_log && (self.read_only || self.backgroundable || leaves_the_log) {
            return Some("in_log is only for tools that change the log and nothing else, and end with their call");
        }
        if self.dynamic_access && self.backgroundable {
            // The gate's word is the call's settlement (L25); one that went on after its observation has none left.
            return Some("dynamic_access contradicts backgroundable");
        }
        None
    }
}
