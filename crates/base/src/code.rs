//! The closed set of observation codes (tool-contract §12), with everything a code promises.
//!
//! Adding a code here is a minor change, changing what one means a major one. Detail goes beside a
//! code ([`Reason`], `tool_code`, `errors[]`), never into a new code.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A word of a closed set as it stands in a log: known to this program, or kept verbatim (L72).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Recorded<T> {
    Known(T),
    Other(String),
}

impl<T: Copy> Recorded<T> {
    /// The word, if this program knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<T> for Recorded<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<T: Serialize> Serialize for Recorded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(word) => word.serialize(serializer),
            Self::Other(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Recorded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?.into_owned();
        let known = T::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(&text));
        // `T` borrows nothing from `text`: words of closed sets are unit variants.
        Ok(match known {
            Ok(word) => Self::Known(word),
            Err(_) => Self::Other(text),
        })
    }
}

impl<T: fmt::Display> fmt::Display for Recorded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(word) => word.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every word of the set.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// The phase of the pipeline that settled an intent.
    Phase {
        Lookup = "lookup",
        Validate = "validate",
        Permission = "permission",
        Schedule = "schedule",
        Execute = "execute",
        Normalize = "normalize",
        Bound = "bound",
        WriteBack = "write_back",
    }
}

words! {
    /// How an intent ended.
    Code {
        Ok = "ok",
        FileUnchanged = "file_unchanged",
        BackgroundStarted = "background_started",
        NoMatches = "no_matches",
        UnknownTool = "unknown_tool",
        ToolNotVisible = "tool_not_visible",
        StaleTool = "stale_tool",
        ToolUnavailable = "tool_unavailable",
        ToolsDisabled = "tools_disabled",
        DuplicateCall = "duplicate_call",
        InputUnparseable = "input_unparseable",
        SchemaInvalid = "schema_invalid",
        RuntimePreconditionFailed = "runtime_precondition_failed",
        AmbiguousTarget = "ambiguous_target",
        StaleFileBaseline = "stale_file_baseline",
        LoopDetected = "loop_detected",
        PolicyDenied = "policy_denied",
        UserDenied = "user_denied",
        ApprovalExpired = "approval_expired",
        ApprovalUnavailable = "approval_unavailable",
        ApprovalSuperseded = "approval_superseded",
        QueueFull = "queue_full",
        QueueTimeout = "queue_timeout",
        LockConflict = "lock_conflict",
        CancelledBeforeStart = "cancelled_before_start",
        ToolFailure = "tool_failure",
        CommandFailed = "command_failed",
        Timeout = "timeout",
        Cancelled = "cancelled",
        SandboxUnavailable = "sandbox_unavailable",
        SandboxViolation = "sandbox_violation",
        ResourceLimit = "resource_limit",
        ExternalUnreachable = "external_unreachable",
        ExternalError = "external_error",
        AuthRequired = "auth_required",
        PartiallyApplied = "partially_applied",
        InternalError = "internal_error",
        OutcomeUnknown = "outcome_unknown",
        OutputInvalid = "output_invalid",
        RetentionFailed = "retention_failed",
        MediaRejected = "media_rejected",
        PersistFailed = "persist_failed",
        FenceLost = "fence_lost",
    }
}

words! {
    /// The closed detail of `runtime_precondition_failed` and `sandbox_violation`.
    Reason {
        FileNotRead = "file_not_read",
        TargetExists = "target_exists",
        RegionNotRead = "region_not_read",
        TargetNotFound = "target_not_found",
        NoChange = "no_change",
        WrongKind = "wrong_kind",
        BinaryFile = "binary_file",
        PathEscape = "path_escape",
        ReadOnlyMount = "read_only_mount",
        VaultBlocked = "vault_blocked",
        CwdInvalid = "cwd_invalid",
        CommandUnparseable = "command_unparseable",
        CommandNotAllowed = "command_not_allowed",
        OutputBudget = "output_budget",
        NotFound = "not_found",
        NotInScope = "not_in_scope",
        NotChild = "not_child",
        VersionMismatch = "version_mismatch",
        ContentMismatch = "content_mismatch",
        OutcomeGate = "outcome_gate",
        ContextUnavailable = "context_unavailable",
        VariableMissing = "variable_missing",
        SubagentEnvRequired = "subagent_env_required",
        DepthExceeded = "depth_exceeded",
        SubagentUnavailable = "subagent_unavailable",
        SubagentLimitReached = "subagent_limit_reached",
        SubagentNotActive = "subagent_not_active",
        HandoffPending = "handoff_pending",
        AttachmentNotFound = "attachment_not_found",
        AttachmentTooLarge = "attachment_too_large",
        PathHidden = "path_hidden",
        NetworkDisabled = "network_disabled",
        /// Why a tool is not offered this turn (tool-contract 8.2), as the detail of `tool_not_visible`.
        NotDiscovered = "not_discovered",
        WhollyDenied = "wholly_denied",
        Mode = "mode",
        Phase = "phase",
        Agent = "agent",
        CaseConflict = "case_conflict",
        SourceDown = "source_down",
    }
}

words! {
    /// What the model may usefully do next.
    Recovery {
        None = "none",
        ChooseOtherTool = "choose_other_tool",
        ResubmitNextTurn = "resubmit_next_turn",
        Wait = "wait",
        AnswerInText = "answer_in_text",
        FixInput = "fix_input",
        SatisfyPrecondition = "satisfy_precondition",
        NarrowTarget = "narrow_target",
        Reread = "reread",
        ChangeApproach = "change_approach",
        Explain = "explain",
        AskUser = "ask_user",
        InspectThenDecide = "inspect_then_decide",
        Operator = "operator",
    }
}

/// What a code says about side effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectRule {
    /// N: nothing can have happened.
    None,
    /// O: something happened, and the items list it.
    Occurred,
    /// U: nobody knows; a `read_only` tool still did nothing.
    UnknownUnlessReadOnly,
    /// F: as the facts say, nothing if they say nothing.
    Facts,
    /// F, else U: as the facts say, unknown if they say nothing; a `read_only` tool did nothing.
    FactsElseUnknown,
}

/// Whether the model may usefully submit again without a human or a policy change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Yes,
    No,
    /// As the tool's own failure says.
    PerFailure,
    /// Only if nothing happened to the world.
    IfNoEffects,
    /// Only if the tool is read-only.
    IfReadOnly,
}

/// One row of the table: what an observation with this code promises.
#[derive(Debug, Clone, Copy)]
pub struct CodeRow {
    pub code: Code,
    /// The phases it may appear with, its home first.
    pub phases: &'static [Phase],
    pub effects: EffectRule,
    pub retry: Retry,
    pub recovery: Recovery,
}

impl Code {
    /// Whether an observation with this code is a success.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::FileUnchanged | Self::BackgroundStarted | Self::NoMatches)
    }

    /// What this code promises.
    #[must_use]
    pub const fn row(self) -> CodeRow {
        use Code as C;
        use EffectRule as E;
        use Phase as P;
        use Recovery as V;
        use Retry as R;
        const LOOKUP: &[P] = &[P::Lookup];
        const VALIDATE: &[P] = &[P::Validate];
        const COMMIT: &[P] = &[P::Validate, P::Execute];
        const PERMISSION: &[P] = &[P::Permission];
        const SCHEDULE: &[P] = &[P::Schedule];
        const EXECUTE: &[P] = &[P::Execute];
        const NORMALIZE: &[P] = &[P::Normalize];
        const DEFECT: &[P] = &[P::Execute, P::Normalize, P::Validate];
        const BOUND: &[P] = &[P::Bound];
        const WRITE_BACK: &[P] = &[P::WriteBack];
        let (phases, effects, retry, recovery) = match self {
            C::Ok | C::FileUnchanged | C::BackgroundStarted | C::NoMatches => (EXECUTE, E::Facts, R::No, V::None),
            C::UnknownTool | C::ToolNotVisible => (LOOKUP, E::None, R::Yes, V::ChooseOtherTool),
            C::StaleTool => (LOOKUP, E::None, R::Yes, V::ResubmitNextTurn),
            C::ToolUnavailable => (LOOKUP, E::None, R::Yes, V::Wait),
            C::ToolsDisabled => (LOOKUP, E::None, R::No, V::AnswerInText),
            C::DuplicateCall => (LOOKUP, E::None, R::No, V::None),
            C::InputUnparseable | C::SchemaInvalid => (VALIDATE, E::None, R::Yes, V::FixInput),
            C::RuntimePreconditionFailed => (COMMIT, E::None, R::Yes, V::SatisfyPrecondition),
            C::AmbiguousTarget => (VALIDATE, E::None, R::Yes, V::NarrowTarget),
            C::StaleFileBaseline => (COMMIT, E::None, R::Yes, V::Reread),
            C::LoopDetected => (VALIDATE, E::None, R::No, V::ChangeApproach),
            C::PolicyDenied | C::UserDenied => (PERMISSION, E::None, R::No, V::Explain),
            C::ApprovalExpired => (PERMISSION, E::None, R::Yes, V::AskUser),
            C::ApprovalUnavailable => (PERMISSION, E::None, R::No, V::Explain),
            C::ApprovalSuperseded => (PERMISSION, E::None, R::No, V::None),
            C::QueueFull | C::QueueTimeout | C::LockConflict => (SCHEDULE, E::None, R::Yes, V::Wait),
            C::CancelledBeforeStart => (SCHEDULE, E::None, R::No, V::None),
            C::ToolFailure => (EXECUTE, E::Facts, R::PerFailure, V::InspectThenDecide),
            C::CommandFailed | C::Timeout => (EXECUTE, E::FactsElseUnknown, R::Yes, V::InspectThenDecide),
            C::Cancelled => (EXECUTE, E::FactsElseUnknown, R::No, V::InspectThenDecide),
            C::SandboxUnavailable => (EXECUTE, E::None, R::No, V::Explain),
            C::SandboxViolation => (EXECUTE, E::FactsElseUnknown, R::No, V::ChooseOtherTool),
            C::ResourceLimit => (EXECUTE, E::FactsElseUnknown, R::Yes, V::NarrowTarget),
            C::ExternalUnreachable => (EXECUTE, E::UnknownUnlessReadOnly, R::Yes, V::Wait),
            C::ExternalError => (EXECUTE, E::UnknownUnlessReadOnly, R::Yes, V::FixInput),
            C::AuthRequired => (EXECUTE, E::UnknownUnlessReadOnly, R::No, V::AskUser),
            C::PartiallyApplied => (EXECUTE, E::Occurred, R::Yes, V::Reread),
            C::InternalError => (DEFECT, E::UnknownUnlessReadOnly, R::No, V::None),
            C::OutcomeUnknown => (EXECUTE, E::UnknownUnlessReadOnly, R::IfReadOnly, V::InspectThenDecide),
            C::OutputInvalid => (NORMALIZE, E::Facts, R::No, V::None),
            C::RetentionFailed => (BOUND, E::Facts, R::IfNoEffects, V::InspectThenDecide),
            C::MediaRejected => (BOUND, E::Facts, R::Yes, V::NarrowTarget),
            C::PersistFailed | C::FenceLost => (WRITE_BACK, E::Facts, R::No, V::Operator),
        };
        CodeRow { code: self, phases, effects, retry, recovery }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l72_unknown_words_survive_read_and_write() {
        let known: Recorded<Code> = serde_json::from_str("\"stale_tool\"").expect("text");
        assert_eq!(known, Recorded::Known(Code::StaleTool));
        let other: Recorded<Code> = serde_json::from_str("\"from_the_future\"").expect("text");
        assert_eq!(serde_json::to_string(&other).expect("json"), "\"from_the_future\"");
    }

    #[test]
    fn l22_every_code_has_a_phase_and_rejections_have_no_effects() {
        for code in Code::ALL {
            let row = code.row();
            assert!(!row.phases.is_empty(), "{code}");
            let before_start = row.phases.iter().all(|p| *p < Phase::Execute);
            if before_start {
                assert_eq!(row.effects, EffectRule::None, "{code} is settled before anything started");
            }
        }
    }
}
