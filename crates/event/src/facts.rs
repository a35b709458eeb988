//! The payloads of the facts that one intent leaves behind, in the order of the phases
//! (tool-contract §22), and those of sessions and ledgers.

use std::collections::BTreeMap;

use portcullis_base::{
    AgentId, ArtifactId, ArtifactRef, AskId, Code, Digest, EventId, GrantId, IntentId, InvocationId, IsolationLevel,
    MenuId, MessageId, Reason, Recorded, RegistrationId, SessionId, SideEffects, Timestamp, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::outcomes::{OutcomeAuthor, OutcomeDefined, OutcomeEvaluated, OutcomeStatus, OutcomeTrend};
pub use crate::shell::{
    CommandFinished, CommandRecord, SHELL_SOURCE, SessionUpdated, ShellClosed, ShellOpened, VariableDeleted,
    VariableSet,
};
pub use crate::spans::{
    Activation, ActivationKind, Disposition, LoopOutcome, SpanCompleted, SpanResult, SpanStarted, StatusIdle,
    StatusRescheduled, StatusRunning, StatusTerminated, StopReason,
};
pub use crate::talk::{
    AgentMessage, Block, Carried, ContextCompacted, CustomToolUse, ErrorFact, InvocationResolved, ModelRequestEnd,
    ModelRequestStart, ModelUsage, Resolution, SessionError, SessionForked, SessionUsage, SystemMessage,
    UserCustomToolResult, UserInterrupt, UserMessage, UserToolResult, text_of,
};
pub use crate::tasks::{InvocationBackgrounded, TaskCompleted};
pub use crate::threads::{ThreadCreated, ThreadMessageKind, ThreadMessageReceived};
pub use crate::touched_resource::{Grantable, TouchedResource};
pub use crate::verified::{
    Claim, ClaimVerdict, FinalChecked, FinalVerdict, LearningCaptured, LearningKind, Verification, VerificationKind,
    VerificationVerdict,
};
pub use crate::wakes::{Priority, WakeCancelled, WakeConsumed, WakeQueued, WakeState, carry_on_key, retry_key};

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

// --- sessions ---------------------------------------------------------------------------------

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated {
    pub agent_id: Option<AgentId>,
    pub agent_version: u32,
    pub environment_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    pub root_session_id: SessionId,
    pub depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Names its setup (ruling 51), if [`SessionCreated::has_setup`].
    pub config_hash: Digest,
    /// Whether `config_hash` is the hash of a stored setup. Logs from before there were setups have another digest there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_setup: bool,
    /// The workspace its tools work in: a later holder works in the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Tools that the client of the session runs itself. A later holder offers the same ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_tools: Vec<CustomTool>,
}

/// A tool that a client runs, as it was declared (agent-runtime 7.13).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// The payloads of these events were taken out; their hashes stand. It is the last event of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionErased {
    pub from_seq: u64,
    pub to_seq: u64,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A person gave up events that were recorded and are gone (operator log only): from here on these logs go on without
/// them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossAccepted {
    pub by: String,
    pub logs: Vec<LostLog>,
}

/// A retention policy took the bytes of these artifacts, or they came in without them (operator log only): a row says so only
/// where this does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactsExpired {
    pub by: String,
    pub artifacts: Vec<ArtifactId>,
}

/// One log that lost its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostLog {
    pub session_id: SessionId,
    /// The newest event that was recorded.
    pub recorded: u64,
    /// The last one that is left; 0: none.
    pub found: u64,
}

/// A call asked for by a process that does not hold the lease; the holder takes it up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolQueued {
    pub name: String,
    pub input: Value,
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputConsumed {
    pub event_ids: Vec<EventId>,
}

/// How a call that was asked about at the root of its session ended; content is rendered from `tool.observation` of the
/// session that the copy comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The `agent.tool_use` that it answers.
    pub tool_use_id: EventId,
    pub intent_id: IntentId,
    pub is_error: bool,
}

/// Where an ask of a descendant surfaces (tool-contract 13.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtRoot {
    pub session_id: SessionId,
    /// The copy of its `agent.tool_use` there; an answer to it answers the ask.
    pub tool_use_id: EventId,
}

/// What a managed client sees of a call; name and input are rendered from `tool.intent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub intent_id: IntentId,
    pub evaluated_permission: String,
    pub evaluation: String,
    /// The worker of the environment is to run it, and nobody else is asked anything.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_environment: bool,
}

// --- one intent, top to bottom ----------------------------------------------------------------

/// A tool that was not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenTool {
    pub name: String,
    pub reason: Recorded<Reason>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MenuFrozen {
    pub menu_id: MenuId,
    pub turn_id: TurnId,
    /// The artifact that holds the body; equal menus share one.
    pub hash: Digest,
    pub count: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenTool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentProposed {
    pub intent_id: IntentId,
    pub call_id: String,
    pub message_id: MessageId,
    pub tool: String,
    /// As the model wrote it, with sensitive values and known secrets replaced. A JSON value where
    /// it parses, else the text.
    pub raw_input: Value,
    /// Of the input before redaction: an approval is bound to it.
    pub input_hash: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_reason: Option<String>,
    pub menu_id: MenuId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_invocation_id: Option<InvocationId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookedUp {
    pub intent_id: IntentId,
    pub found: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_id: Option<RegistrationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Recorded<Code>>,
}

/// Which check of the validation phase spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Schema,
    Resolve,
    Runtime,
    /// A re-admission after a park or a crash.
    Recheck,
}

/// One thing wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputError {
    pub path: String,
    pub rule: String,
    pub message: String,
}

/// The fact that the input of an intent was checked, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputValidated {
    pub intent_id: IntentId,
    pub stage: Stage,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputError>,
    /// Canonical names of what the call is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<String>,
}

/// What the gate said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// The fact that the rules decided about an intent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDecided {
    pub intent_id: IntentId,
    pub decision: Verdict,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant_ids: Vec<GrantId>,
    /// What the rules were asked about, so that other rules can be asked the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<TouchedResource>,
    /// Names in `resources` are masked, cut or left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// What the tool's own default was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default_policy: String,
    /// Denied by names alone, before any content was looked at (R5).
    #[serde(default, skip_serializing_if = "is_false")]
    pub precheck: bool,
}

/// The fact that a person was asked about an intent, and what the ask showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionAsked {
    pub ask_id: AskId,
    pub intent_id: IntentId,
    /// `tool_confirmation`, `custom_tool_result`, `variables` or `question`.
    pub kind: String,
    /// What a person is shown (tool-contract 13.4), as ordered name → value.
    pub facts: Value,
    #[serde(default)]
    pub suggested_rules: Vec<Value>,
    pub pinned: bool,
    /// It may hide a command that a rule denies: only a person may allow it, and no flag.
    #[serde(default, skip_serializing_if = "is_false")]
    pub only_a_person: bool,
    pub input_hash: Digest,
    pub expires_at: Timestamp,
    /// What an approval is bound to besides the input (tool-contract 13.7).
    pub definition_version: String,
    pub policy_revision: Digest,
    pub principal: String,
    /// Of the accesses and the whole diff a person was shown.
    pub shown: Digest,
    /// What else decides what the call does; asks of before 0.2 have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundTo>,
    /// Variables of the asking process that the approved call runs with, such as `PATH`; asks of before have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asker_env: BTreeMap<String, String>,
    /// What a remembered allow would answer and for whom (tool-contract 13.5); none if no rule is suggested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grantable: Option<Grantable>,
    /// Held live inside this running invocation (R3): an answer lets it go on, and nothing runs anew by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<InvocationId>,
    /// Where else it is shown; none for a session that is nobody's child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<AtRoot>,
}

/// One thing that decides what a call does, besides its input: a folder, the environment, a program, a script
/// (tool-contract 13.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundTo {
    /// The subject of a sentence, such as `the folder`.
    pub name: String,
    /// What a person was shown of it; empty if the name says all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// Keyed with the sealing key, so that nobody can guess a value by it.
    pub digest: Digest,
}

/// What a person answered (tool-contract 13.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    AllowOnce,
    AllowSession,
    AllowSaved,
    Deny,
    DenyWithFeedback,
    DenyAndStop,
}

impl Reply {
    /// Whether the parked call may run.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowSession | Self::AllowSaved)
    }
}

/// The channel of a reply that a flag gave, and no person.
pub const BY_FLAG: &str = "flag";

/// The fact that an ask was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskReplied {
    pub ask_id: AskId,
    pub reply: Reply,
    pub approver: String,
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_process: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
}

/// How an ask ended without an answer that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    Expired,
    Superseded,
    Voided,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskClosed {
    pub ask_id: AskId,
    pub state: Closing,
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    pub intent_id: IntentId,
    pub plan: Plan,
    pub queue_pos: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// The part of an execution plan that is worth keeping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub invocation_id: InvocationId,
    pub concurrency: String,
    pub timeout_ms: u64,
}

/// The fact that an invocation starts. It is durable before any effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationStarted {
    pub invocation_id: InvocationId,
    pub intent_id: IntentId,
    pub executor_id: String,
    pub definition_version: String,
    pub sandbox: Option<SandboxUsed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub attempt: u32,
    /// What recovery must know without the tool at hand: a read-only call did nothing to the world.
    pub read_only: bool,
}

/// The isolation an invocation really got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxUsed {
    pub profile: String,
    pub level: IsolationLevel,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A checkpoint of a running invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationProgressed {
    pub invocation_id: InvocationId,
    /// What it said of itself then; untrusted.
    pub checkpoint: String,
}

/// What a running call changed in the log itself, in the append that changed it. If the process of the call ends after it,
/// the call is settled by this fact: its effect is known, and so is its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationEffected {
    pub invocation_id: InvocationId,
    pub intent_id: IntentId,
    /// What the call answers with.
    pub output: Value,
    pub side_effects: SideEffects,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Ok,
    Error,
    Cancelled,
    Timeout,
    Unknown,
}

/// What of a stream was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    pub stream: String,
    pub total_bytes: u64,
    pub kept_bytes: u64,
    pub complete: bool,
}

/// The fact that an invocation ended, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationCompleted {
    pub invocation_id: InvocationId,
    pub intent_id: IntentId,
    pub exit: Exit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_us: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<Capture>,
    pub side_effects: SideEffects,
    /// The serialized raw outcome, where the batch was split and must be finished after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_ref: Option<Value>,
    /// A defect's own words, for operators; never shown to a model (R6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactStored {
    #[serde(flatten)]
    pub artifact: ArtifactRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<IntentId>,
}

/// The fact that recovery settled what a dead holder left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecovered {
    pub invocation_id: InvocationId,
    pub intent_id: IntentId,
    /// `outcome_unknown`, `finished` or `retention_failed`.
    pub decision: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantCreated {
    pub grant_id: GrantId,
    /// As crate `policy` writes it; the log does not interpret it.
    pub grant: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantRevoked {
    pub grant_id: GrantId,
    pub by: String,
}

// --- the ledger ---------------------------------------------------------------------------------

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerSessionCreated {
    pub session_id: SessionId,
    pub first_hash: Digest,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerCheckpoint {
    pub session_id: SessionId,
    pub seq: u64,
    pub hash: Digest,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerSessionDeleted {
    pub session_id: SessionId,
    pub seq: u64,
    pub hash: Digest,
    pub by: String,
}
