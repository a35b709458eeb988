//! The typed content of an event: the types this program writes, and `Unknown` for the rest (L72).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::facts::*;
use crate::observation::Observed;
use crate::upcast::upcast;

/// The type word of an event, such as `tool.intent`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventType(Cow<'static, str>);

impl EventType {
    /// A type this program writes.
    #[must_use]
    pub const fn known(word: &'static str) -> Self {
        Self(Cow::Borrowed(word))
    }

    /// A type as it stands in a log.
    #[must_use]
    pub fn recorded(word: String) -> Self {
        Self(Cow::Owned(word))
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A payload with a type word and a version of its own.
pub trait EventBody: Serialize + Clone {
    /// The type word.
    const KIND: EventType;
    /// The payload version that this program writes.
    const VERSION: u32 = 1;

    /// The same content as one of all bodies.
    fn to_body(&self) -> Body;

    /// The payload text, serialised once.
    fn to_payload(&self) -> String {
        let mut text = Vec::with_capacity(USUAL_PAYLOAD);
        // Invariant: payloads are structs with text keys and finite numbers, which serde_json always takes, and JSON is
        // UTF-8.
        serde_json::to_writer(&mut text, self).expect("an event payload is always JSON");
        String::from_utf8(text).expect("JSON is UTF-8")
    }
}

/// Most payloads are shorter, and then their text is never moved while it grows.
const USUAL_PAYLOAD: usize = 1_000;

macro_rules! bodies {
    ($($word:literal => $variant:ident,)*) => {
        /// Every payload this program writes, and what it does not know.
        #[derive(Debug, Clone)]
        pub enum Body {
            // Boxed: the largest is forty times the smallest, and a log in memory holds many.
            $($variant(Box<$variant>),)*
            /// A type, version or payload this program does not read; nothing of it is lost.
            Unknown { kind: EventType, raw: Option<String> },
        }

        $(impl EventBody for $variant {
            const KIND: EventType = EventType::known($word);

            fn to_body(&self) -> Body {
                Body::$variant(Box::new(self.clone()))
            }
        })*

        impl Body {
            /// The type words this program writes.
            pub const KINDS: &'static [&'static str] = &[$($word,)*];

            /// Reads a stored payload. Whatever this program does not know is [`Body::Unknown`].
            #[must_use]
            pub fn decode(kind: &EventType, v: u32, payload: Option<&str>) -> Self {
                let unknown = || Self::Unknown { kind: kind.clone(), raw: payload.map(str::to_owned) };
                let Some(text) = payload else { return unknown() };
                let Some(text) = upcast(kind.as_str(), v, Cow::Borrowed(text)) else { return unknown() };
                match kind.as_str() {
                    $($word => serde_json::from_str(&text).map(Self::$variant).unwrap_or_else(|_| unknown()),)*
                    _ => unknown(),
                }
            }
        }
    };
}

bodies! {
    "session.created" => SessionCreated,
    "session.updated" => SessionUpdated,
    "session.status_running" => StatusRunning,
    "session.status_idle" => StatusIdle,
    "session.status_rescheduled" => StatusRescheduled,
    "session.status_terminated" => StatusTerminated,
    "session.usage" => SessionUsage,
    "session.error" => SessionError,
    "session.forked" => SessionForked,
    "session.deleted" => SessionDeleted,
    "session.erased" => SessionErased,
    "user.message" => UserMessage,
    "user.interrupt" => UserInterrupt,
    "user.custom_tool_result" => UserCustomToolResult,
    "system.message" => SystemMessage,
    "tool.queued" => ToolQueued,
    "input.consumed" => InputConsumed,
    "agent.message" => AgentMessage,
    "agent.custom_tool_use" => CustomToolUse,
    "agent.thread_context_compacted" => ContextCompacted,
    "span.started" => SpanStarted,
    "span.completed" => SpanCompleted,
    "span.model_request_start" => ModelRequestStart,
    "span.model_request_end" => ModelRequestEnd,
    "agent.tool_use" => ToolUse,
    "agent.tool_result" => ToolResult,
    "tool.menu" => MenuFrozen,
    "tool.intent" => IntentProposed,
    "tool.lookup" => LookedUp,
    "tool.validation" => Checked,
    "tool.permission" => Decided,
    "tool.permission.asked" => Asked,
    "tool.permission.replied" => Replied,
    "tool.permission.closed" => AskClosed,
    "tool.scheduled" => Scheduled,
    "tool.invocation.started" => Started,
    "tool.invocation.progress" => Progressed,
    "tool.invocation.backgrounded" => Backgrounded,
    "tool.invocation.completed" => Completed,
    "tool.artifact.stored" => ArtifactStored,
    "tool.observation" => Observed,
    "tool.recovered" => Recovered,
    "tool.invocation.resolved" => InvocationResolved,
    "tool.verification" => Verification,
    "final.checked" => FinalChecked,
    "learning.captured" => LearningCaptured,
    "task.completed" => TaskCompleted,
    "wake.queued" => WakeQueued,
    "wake.consumed" => WakeConsumed,
    "wake.cancelled" => WakeCancelled,
    "grant.created" => GrantCreated,
    "grant.revoked" => GrantRevoked,
    "shell.opened" => ShellOpened,
    "shell.closed" => ShellClosed,
    "shell.command_finished" => CommandFinished,
    "variable.set" => VariableSet,
    "variable.deleted" => VariableDeleted,
    "operator.loss_accepted" => LossAccepted,
    "ledger.session_created" => LedgerSessionCreated,
    "ledger.checkpoint" => LedgerCheckpoint,
    "ledger.session_archived" => LedgerSessionArchived,
    "ledger.session_deleted" => LedgerSessionDeleted,
}
