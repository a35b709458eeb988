//! Sessions and their calls as programs read them: rows of lists, where one stands (agent-runtime 5.10), and trees.

use portcullis_agent::calls::RecordedCall;
use portcullis_agent::status::{Activation, Standing, head_reads_as};
use portcullis_agent::tree::{Branch, Forest};
use portcullis_base::SessionId;
use portcullis_base::shown::word;
use portcullis_event::fold::HandedOver;
use portcullis_harness::Settings as Wakes;
use portcullis_store::SessionSummary;
use serde_json::{Value, json};

use super::lease;

/// A session in a list.
#[must_use]
pub fn session_row(summary: &SessionSummary) -> Value {
    let SessionSummary { session_id, row, head } = summary;
    json!({
        "session_id": session_id,
        "title": row.title,
        "workspace": row.workspace,
        "status": head_reads_as(head),
        "events": head.last_seq,
        "waiting": head.blocked_n,
        "next_wake_at": head.wake.map(|wake| wake.due_at),
        "created_at": row.created_at,
        "updated_at": head.updated_at,
        "head_hash": head.last_hash,
    })
}

/// A call in a list.
#[must_use]
pub fn call_row(call: &RecordedCall) -> Value {
    let mut value = json!(call.row);
    if let Some(observed) = &call.observed {
        value["ok"] = json!(observed.ok);
        value["code"] = json!(observed.code);
        value["duration_us"] = json!(observed.duration_us);
        value["summary"] = json!(observed.summary);
        value["warnings"] = json!(observed.warnings);
    }
    value
}

/// One flat list, parents before children: a tree may be deeper than a reader of JSON can go.
#[must_use]
pub fn tree_document(forest: &Forest, root: SessionId) -> Value {
    let row = |Branch { summary, forked_from, depth, .. }: Branch<'_>| {
        let SessionSummary { session_id, row, head } = summary;
        json!({
            "session_id": session_id,
            "parent_session_id": row.parent_session_id,
            "forked_from": forked_from,
            "depth": depth,
            "title": row.title,
            "status": head_reads_as(head),
            "events": head.last_seq,
            "waiting": head.blocked_n,
        })
    };
    let rows: Vec<Value> = forest.beneath(root).into_iter().map(row).collect();
    json!({"root": root, "tree": rows})
}

/// Where a session stands. `answer` names how a client gives the result of a call, and `commands` what answers all that
/// the session waits for, as the way in writes them.
#[must_use]
pub fn status_document(
    session: SessionId,
    standing: &Standing,
    answer: &dyn Fn(&HandedOver) -> String,
    commands: &[String],
) -> Value {
    let Standing { created, head, state, asks, activation } = standing;
    let (resilience, progress) = (Wakes::default(), &state.progress);
    let custom: Vec<Value> = progress
        .asked_of_client()
        .map(|call| {
            json!({
                "id": call.event_id, "name": call.name, "input": call.input, "requested_at": call.requested_at,
                "answer_command": answer(call),
            })
        })
        .collect();
    let (status, stopped) = (standing.status(), standing.stop_reason());
    json!({
        "session_id": session,
        "agent_id": created.agent_id,
        "environment_id": created.environment_id,
        "workspace": created.workspace,
        "status": status,
        "stop_reason": stopped,
        "summary": progress.last_summary,
        "turns": progress.usage.turns,
        "usage": progress.usage,
        "pending_events": standing.pending_inputs(),
        "runnable_pending_event": standing.runnable(),
        "next_due_at": head.next_due_at,
        "next_retry_at": standing.next_retry(),
        "retry_streak": head.failure_streak,
        "pending_queued_wakes": state.wakes.len(),
        "next_queued_wake_at": state.wakes.next().map(|(due, _)| due),
        "lease": lease(head),
        "resilience": {
            "retryable_tries": resilience.retryable_tries,
            "other_tries": resilience.other_tries,
            "first_retry_ms": resilience.first_retry.as_millis() as u64,
            "backoff_base_ms": resilience.backoff_base.as_millis() as u64,
            "backoff_max_ms": resilience.backoff_max.as_millis() as u64,
        },
        "staged_drafts": [],
        "resources": 0,
        "latest_activation": activation.as_ref().map(activation_document),
        "unknown_invocations": progress.unknown,
        "pending_custom_tool": custom.first(),
        "pending_custom_tools": custom,
        "pending_confirmation": asks.first().map(|ask| json!({
            "id": ask.ask_id, "tool_use_id": ask.tool_use_id, "tool": ask.facts.get("tool"), "policy": ask.kind,
            "requested_seq": ask.asked_seq, "expires_at": ask.expires_at,
        })),
        "events": head.last_seq,
        "commands": commands,
    })
}

fn activation_document(Activation { began, ended }: &Activation) -> Value {
    let kind = match ended {
        None => "activation.leased".to_owned(),
        Some(end) => format!("activation.{}", word(&end.disposition)),
    };
    json!({
        "kind": kind,
        "claim_id": began.span_id,
        "activation": began.activation,
        "result": ended.as_ref().map(|end| end.result),
        "summary": ended.as_ref().map(|end| end.summary.as_str()),
        "error_code": ended.as_ref().and_then(|end| end.error_code.as_deref()),
    })
}
