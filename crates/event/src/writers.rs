//! Who may append which type: the column *Writer* of tool-contract §22. The holder of a session's lease may append any
//! type; these are the others. What is not listed, a type from the future included, is the holder's alone.

use crate::EventType;

/// Types that a client may append (writer c).
const CLIENT: &[&str] = &[
    "user.message",
    "user.define_outcome",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "system.message",
    "tool.queued",
    "message.injected",
    "message.updated",
    "message.deleted",
    "value.set",
    "app.event",
    "session.created",
    "session.updated",
    "session.status_terminated",
    "session.stopped",
    "session.continued",
    "session.forked",
    "wake.queued",
    "wake.cancelled",
    "tool.permission.replied",
    "tool.invocation.resolved",
    "grant.created",
    "grant.revoked",
    "variable.set",
    "variable.read",
    "variable.deleted",
    "variables.requested",
    "variables.fulfilled",
    "variables.expired",
    "variables.cancelled",
    "effect.scheduled",
    "effect.started",
    "effect.finished",
    "effect.cancelled",
];

/// Types that another session's outbox may deliver (writer o).
const OUTBOX: &[&str] = &[
    "user.message",
    "user.define_outcome",
    "agent.thread_message_received",
    "tool.queued",
    "session.thread_status_running",
    "session.thread_status_idle",
    "session.thread_status_rescheduled",
    "session.thread_status_terminated",
    "agent.tool_use",
    "agent.mcp_tool_use",
    "agent.custom_tool_use",
    "agent.tool_result",
    "agent.mcp_tool_result",
    "attachment.copied",
    "ledger.session_created",
    "ledger.checkpoint",
    "ledger.session_archived",
    "ledger.session_deleted",
];

/// Types that ask something of a session: one that is terminated takes none of them (H18).
const INPUT: &[&str] = &[
    "user.message",
    "user.define_outcome",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "system.message",
    "tool.queued",
    "tool.permission.replied",
    "wake.queued",
];

/// Whether events of this type ask something of a session.
#[must_use]
pub fn is_input(kind: &EventType) -> bool {
    INPUT.contains(&kind.as_str())
}

/// Whether a client may append events of this type.
#[must_use]
pub fn client_may_append(kind: &EventType) -> bool {
    CLIENT.contains(&kind.as_str())
}

/// Whether an outbox may deliver events of this type.
#[must_use]
pub fn outbox_may_append(kind: &EventType) -> bool {
    OUTBOX.contains(&kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    #[test]
    fn of_what_this_program_writes_only_these_types_are_not_the_holders_alone() {
        let listed = |may: fn(&EventType) -> bool| -> Vec<&str> {
            Body::KINDS.iter().copied().filter(|word| may(&EventType::known(word))).collect()
        };
        assert_eq!(
            listed(client_may_append),
            [
                "session.created",
                "session.updated",
                "session.status_terminated",
                "session.forked",
                "user.message",
                "user.interrupt",
                "user.custom_tool_result",
                "system.message",
                "tool.queued",
                "tool.permission.replied",
                "tool.invocation.resolved",
                "wake.queued",
                "wake.cancelled",
                "grant.created",
                "grant.revoked",
                "variable.set",
                "variable.deleted"
            ]
        );
        assert_eq!(
            listed(outbox_may_append),
            [
                "user.message",
                "tool.queued",
                "agent.custom_tool_use",
                "agent.tool_use",
                "agent.tool_result",
                "ledger.session_created",
                "ledger.checkpoint",
                "ledger.session_archived",
                "ledger.session_deleted"
            ]
        );
        assert!(!client_may_append(&EventType::known("from.the_future")));
    }
}
