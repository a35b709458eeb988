//! The table of event types: one row says everything that is known of a type besides its payload.
//!
//! | column | meaning |
//! |---|---|
//! | the word | the type as it stands in the log (tool-contract §22) |
//! | the payload | a struct of [`facts`](crate::facts) |
//! | `Holder`, `Client`, `Outbox`, `ClientAndOutbox` | who may append it ([`Writers`]) |
//! | `Nothing`, `Input` | whether it is input of the session ([`InputKind`]) |
//! | `told`, `aside` | whether it is a part of the conversation with the model ([`Conversation`]) |
//! | `names` | the intent, ask, invocation, wakes, artifacts and contents that it names ([`EventRefs`]) |
//! | `reads` | how it reads to a person, in one line |
//!
//! A type without a row does not exist, and a row that lacks a column does not compile.

use std::borrow::Cow;

use serde::Serialize;

use crate::body::{EventBody, EventRefs, EventType, InputKind, Writers, events};
use crate::facts::*;
use crate::observation::Observed;
use crate::upcast::upcast;

/// The events that the conversation with the model is rebuilt from: those whose row says `told`.
#[derive(Debug, Clone, Copy)]
pub enum Conversation<'e> {
    UserMessage(&'e UserMessage),
    UserInterrupt(&'e UserInterrupt),
    UserCustomToolResult(&'e UserCustomToolResult),
    UserToolResult(&'e UserToolResult),
    ThreadMessageReceived(&'e ThreadMessageReceived),
    ThreadCreated(&'e ThreadCreated),
    SystemMessage(&'e SystemMessage),
    InputConsumed(&'e InputConsumed),
    CustomToolUse(&'e CustomToolUse),
    ToolUse(&'e ToolUse),
    ContextCompacted(&'e ContextCompacted),
    ModelRequestStart(&'e ModelRequestStart),
    ModelRequestEnd(&'e ModelRequestEnd),
    IntentProposed(&'e IntentProposed),
    Observed(&'e Observed),
    InvocationResolved(&'e InvocationResolved),
    FinalChecked(&'e FinalChecked),
    TaskCompleted(&'e TaskCompleted),
    WakeQueued(&'e WakeQueued),
    WakeConsumed(&'e WakeConsumed),
}

events! {
    "session.created" => SessionCreated, Client, Nothing, aside,
        names |fact| EventRefs::contents(fact.has_setup.then_some(fact.config_hash)),
        reads |fact| format!("session made in {}", cut(fact.workspace.as_deref().unwrap_or("no workspace"), LONG));
    "session.updated" => SessionUpdated, Client, Nothing, aside,
        names |fact| EventRefs::contents(fact.config_hash),
        reads |fact| match &fact.shell_cwd {
            Some(cwd) => format!("commands run in {} now", cut(cwd, LONG)),
            None if fact.config_hash.is_some() => "the session has another setup".to_owned(),
            None => "session changed".to_owned(),
        };
    "session.status_running" => StatusRunning, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |_| "the session runs".to_owned();
    "session.status_idle" => StatusIdle, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("the session is idle: {}", fact.stop_reason.as_str());
    "session.status_rescheduled" => StatusRescheduled, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| match fact.next_due_at {
            Some(at) => format!("the session goes on at {at}"),
            None => "the session goes on by itself".to_owned(),
        };
    "session.status_terminated" => StatusTerminated, Client, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("the session was terminated: {}", cut(&fact.stop_reason, SHORT));
    "session.usage" => SessionUsage, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!(
            "used so far: {} model requests, {} calls, {} tokens in, {} out",
            fact.turns, fact.tool_calls, fact.input_tokens, fact.output_tokens
        );
    "session.error" => SessionError, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("error: {} ({})", cut(&fact.error.message, LONG), cut(&fact.error.retry_status, SHORT));
    "session.forked" => SessionForked, Client, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("forked from {} at event {}", fact.from_session_id, fact.at_seq);
    "session.erased" => SessionErased, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("events {} to {} erased by {}", fact.from_seq, fact.to_seq, cut(&fact.by, SHORT));
    "user.message" => UserMessage, ClientAndOutbox, Input, told,
        names |_| EventRefs::default(),
        reads |fact| format!("said: {}", cut(&text_of(&fact.content), LONG));
    "user.define_outcome" => OutcomeDefined, ClientAndOutbox, Input, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("is to reach: {}", cut(&fact.title, LONG));
    "user.interrupt" => UserInterrupt, Client, Input, told,
        names |_| EventRefs::default(),
        reads |fact| match &fact.note {
            Some(note) => format!("interrupted: {}", cut(note, LONG)),
            None => "interrupted".to_owned(),
        };
    "user.custom_tool_result" => UserCustomToolResult, Client, Input, told,
        names |_| EventRefs::default(),
        reads |fact| {
            let verdict = if fact.is_error { "the client's call failed" } else { "the client's call ended" };
            format!("{verdict}: {}", cut(&text_of(&fact.content), LONG))
        };
    "user.tool_result" => UserToolResult, Client, Input, told,
        names |_| EventRefs::default(),
        reads |fact| {
            let verdict = if fact.is_error { "the environment's call failed" } else { "the environment's call ended" };
            format!("{verdict}: {}", cut(&text_of(&fact.content), LONG))
        };
    "agent.thread_message_received" => ThreadMessageReceived, Outbox, Input, told,
        names |_| EventRefs::default(),
        reads |fact| format!("{} of {}: {}", word(&fact.kind), fact.from_session_thread_id, cut(&text_of(&fact.content), LONG));
    "session.thread_created" => ThreadCreated, Holder, Nothing, told,
        names |fact| EventRefs { intent: fact.intent_id, ..EventRefs::default() },
        reads |fact| format!("made the child session {} of {}", fact.session_thread_id, cut(&fact.agent_name, SHORT));
    "system.message" => SystemMessage, Client, Input, told,
        names |_| EventRefs::default(),
        reads |fact| format!("the operator said: {}", cut(&text_of(&fact.content), LONG));
    "tool.queued" => ToolQueued, ClientAndOutbox, Input, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("call of {} queued by {}", cut(&fact.name, SHORT), cut(&fact.by, SHORT));
    "input.consumed" => InputConsumed, Holder, Nothing, told,
        names |_| EventRefs::default(),
        reads |fact| format!("{} taken up", count(fact.event_ids.len(), "input"));
    "agent.message" => AgentMessage, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("the model said: {}", cut(&text_of(&fact.content), LONG));
    "agent.custom_tool_use" => CustomToolUse, Outbox, Nothing, told,
        names |fact| EventRefs { intent: fact.intent_id, ..EventRefs::default() },
        reads |fact| format!("a client is asked to run {}", cut(&fact.name, SHORT));
    "agent.thread_context_compacted" => ContextCompacted, Holder, Nothing, told,
        names |fact| carried(&[&fact.summary]),
        reads |fact| {
            let (first, last) = fact.dropped_event_range;
            format!("events {first} to {last} gave way to a summary")
        };
    "span.started" => SpanStarted, Holder, Nothing, aside,
        names |fact| EventRefs::wakes(&fact.activation.queued_wake_ids),
        reads |fact| format!("wake began: {}", cut(&fact.summary, LONG));
    "span.completed" => SpanCompleted, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("wake ended: {}: {}", word(&fact.result), cut(&fact.summary, LONG));
    "span.model_request_start" => ModelRequestStart, Holder, Nothing, told,
        names |fact| {
            let parts: Vec<&Carried> = std::iter::once(&fact.context).chain(&fact.system).collect();
            carried(&parts)
        },
        reads |fact| format!("{} is asked", cut(&fact.model, SHORT));
    "span.model_request_end" => ModelRequestEnd, Holder, Nothing, told,
        names |fact| carried(&fact.parts.iter().collect::<Vec<_>>()),
        reads |fact| {
            let verb = if fact.is_error { "failed" } else { "stopped" };
            format!("the model {verb}: {}", cut(&fact.stop, LONG))
        };
    "span.outcome_evaluation_end" => OutcomeEvaluated, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("judged: {} ({}): {}", word(&fact.result), word(&fact.trend), cut(&fact.explanation, LONG));
    "agent.tool_use" => ToolUse, Outbox, Nothing, told,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |_| "shown to clients".to_owned();
    "agent.tool_result" => ToolResult, Outbox, Nothing, aside,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |fact| format!("told to clients: {}", if fact.is_error { "it failed" } else { "ok" });
    "tool.menu" => MenuFrozen, Holder, Nothing, aside,
        names |fact| EventRefs::contents(Some(fact.hash)),
        reads |fact| format!("{} offered, {} hidden", count(fact.count as usize, "tool"), fact.hidden.len());
    "tool.intent" => IntentProposed, Holder, Nothing, told,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |fact| format!("proposed: {} {}", cut(&fact.tool, SHORT), cut(&fact.raw_input.to_string(), LONG));
    "tool.lookup" => LookedUp, Holder, Nothing, aside,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |fact| match (fact.found, &fact.code) {
            (true, _) => "found".to_owned(),
            (false, Some(code)) => format!("not found: {code}"),
            (false, None) => "not found".to_owned(),
        };
    "tool.validation" => InputValidated, Holder, Nothing, aside,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |fact| {
            let verdict = if fact.ok { "holds" } else { "does not hold" };
            let names = cut(&fact.resolved.join(", "), LONG);
            format!("checked ({}): {verdict} {names}", word(&fact.stage)).trim_end().to_owned()
        };
    "tool.permission" => PermissionDecided, Holder, Nothing, aside,
        names |fact| EventRefs::intent(fact.intent_id),
        reads |fact| format!("decided: {}: {}", word(&fact.decision), cut(&fact.reason, LONG));
    "tool.permission.asked" => PermissionAsked, Holder, Nothing, aside,
        names |fact| {
            // The diff, and the facts themselves where they are too long for the event.
            let named = ["diff", "whole"].into_iter().filter_map(|name| fact.facts.get(name).cloned());
            let artifacts = named.filter_map(|value| serde_json::from_value(value).ok()).collect();
            EventRefs { intent: Some(fact.intent_id), artifacts, ..EventRefs::ask(fact.ask_id) }
        },
        reads |fact| format!("asked: {}, until {}", fact.ask_id, fact.expires_at);
    "tool.permission.replied" => AskReplied, Client, Input, aside,
        names |fact| EventRefs::ask(fact.ask_id),
        reads |fact| format!(
            "answered: {} by {} through {}",
            word(&fact.reply),
            cut(&fact.approver, SHORT),
            cut(&fact.channel, SHORT)
        );
    "tool.permission.closed" => AskClosed, Holder, Nothing, aside,
        names |fact| EventRefs::ask(fact.ask_id),
        reads |fact| format!("ask closed: {}", word(&fact.state));
    "tool.scheduled" => Scheduled, Holder, Nothing, aside,
        names |fact| EventRefs { intent: Some(fact.intent_id), ..EventRefs::invocation(fact.plan.invocation_id) },
        reads |fact| format!("queued as {}", fact.plan.invocation_id);
    "tool.invocation.started" => InvocationStarted, Holder, Nothing, aside,
        names |fact| EventRefs { intent: Some(fact.intent_id), ..EventRefs::invocation(fact.invocation_id) },
        reads |fact| format!("started {} (attempt {})", fact.invocation_id, fact.attempt);
    "tool.invocation.progress" => InvocationProgressed, Holder, Nothing, aside,
        names |fact| EventRefs::invocation(fact.invocation_id),
        reads |fact| format!("said: {}", cut(&fact.checkpoint, LONG));
    "tool.invocation.effected" => InvocationEffected, Holder, Nothing, aside,
        names |fact| EventRefs { intent: Some(fact.intent_id), ..EventRefs::invocation(fact.invocation_id) },
        reads |fact| match &fact.side_effects.items[..] {
            [] => "made its effect".to_owned(),
            effects => format!("made its effect: {}", count(effects.len(), "change")),
        };
    "tool.invocation.backgrounded" => InvocationBackgrounded, Holder, Nothing, aside,
        names |fact| EventRefs::invocation(fact.invocation_id),
        reads |fact| format!("goes on in the background as {}", fact.task_id);
    "tool.invocation.completed" => InvocationCompleted, Holder, Nothing, aside,
        names |fact| EventRefs { intent: Some(fact.intent_id), ..EventRefs::invocation(fact.invocation_id) },
        reads |fact| format!("ended: {} after {}", word(&fact.exit), span(fact.duration_us));
    "tool.artifact.stored" => ArtifactStored, Holder, Nothing, aside,
        names |fact| EventRefs { intent: fact.intent_id, artifacts: vec![fact.artifact.clone()], ..EventRefs::default() },
        reads |fact| format!("kept {} bytes as {}", fact.artifact.bytes, fact.artifact.id);
    "tool.observation" => Observed, Holder, Nothing, told,
        names |fact| EventRefs {
            invocation: fact.invocation_id,
            artifacts: fact.artifacts.clone(),
            ..EventRefs::intent(fact.intent_id)
        },
        reads |fact| {
            format!("observed: {}: {}{}", fact.code, cut(&fact.summary, LONG), warned_of(&fact.warnings))
        };
    "tool.recovered" => CallRecovered, Holder, Nothing, aside,
        names |fact| EventRefs { intent: Some(fact.intent_id), ..EventRefs::invocation(fact.invocation_id) },
        reads |fact| format!("recovered: {}", cut(&fact.decision, SHORT));
    "tool.invocation.resolved" => InvocationResolved, Client, Nothing, told,
        names |fact| EventRefs::invocation(fact.invocation_id),
        reads |fact| format!("{} says of {}: {}", cut(&fact.by, SHORT), fact.invocation_id, word(&fact.resolution));
    "tool.verification" => Verification, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("verified ({}): {}: {}", word(&fact.kind), word(&fact.verdict), cut(&fact.target, LONG));
    "final.checked" => FinalChecked, Holder, Nothing, told,
        names |_| EventRefs::default(),
        reads |fact| format!("the answer is {} ({})", word(&fact.verdict), count(fact.claims.len(), "claim"));
    "learning.captured" => LearningCaptured, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("learned: {}", cut(&fact.title, LONG));
    "task.completed" => TaskCompleted, Holder, Nothing, told,
        names |fact| EventRefs { artifacts: fact.artifacts.clone(), ..EventRefs::intent(fact.intent_id) },
        reads |fact| {
            let warned = warned_of(&fact.warnings);
            format!("{} ended: {}: {}{warned}", fact.task_id, fact.code, cut(&fact.summary, LONG))
        };
    "wake.queued" => WakeQueued, Client, Input, told,
        names |fact| EventRefs::wakes(&[fact.queued_wake_id]),
        reads |fact| format!("wake queued for {}: {}", fact.due_at, cut(&fact.reason, LONG));
    "wake.consumed" => WakeConsumed, Holder, Nothing, told,
        names |fact| EventRefs::wakes(&fact.queued_wake_ids),
        reads |fact| format!("{} taken up", count(fact.queued_wake_ids.len(), "queued wake"));
    "wake.cancelled" => WakeCancelled, Client, Nothing, aside,
        names |fact| EventRefs::wakes(&fact.queued_wake_ids),
        reads |fact| format!("{} cancelled by {}", count(fact.queued_wake_ids.len(), "wake"), cut(&fact.by, SHORT));
    "grant.created" => GrantCreated, Client, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("remembered as {}", fact.grant_id);
    "grant.revoked" => GrantRevoked, Client, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("{} revoked by {}", fact.grant_id, cut(&fact.by, SHORT));
    "shell.opened" => ShellOpened, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("shell {} opened: {}", fact.shell_id, cut(&fact.shell_path, SHORT));
    "shell.closed" => ShellClosed, Client, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| {
            format!("shell {} closed: {}{}", fact.shell_id, cut(&fact.reason, SHORT), warned_of(&fact.warnings))
        };
    "shell.command_finished" => CommandFinished, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| {
            let CommandRecord { command, args, exit_code, .. } = &fact.command;
            let ended = exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
            format!("{ended}: {}", cut(&format!("{command} {}", args.join(" ")), LONG))
        };
    "variable.set" => VariableSet, Client, Nothing, aside,
        names |fact| EventRefs { invocation: fact.invocation_id, ..EventRefs::default() },
        reads |fact| format!("variable {} set", cut(&fact.name, SHORT));
    "variable.deleted" => VariableDeleted, Client, Nothing, aside,
        names |fact| EventRefs { invocation: fact.invocation_id, ..EventRefs::default() },
        reads |fact| format!("variable {} deleted", cut(&fact.name, SHORT));
    "operator.loss_accepted" => LossAccepted, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("the loss of {} accepted by {}", count(fact.logs.len(), "log end"), cut(&fact.by, SHORT));
    "operator.artifacts_expired" => ArtifactsExpired, Holder, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("{} expired, by {}", count(fact.artifacts.len(), "artifact"), cut(&fact.by, SHORT));
    "ledger.session_created" => LedgerSessionCreated, Outbox, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("{} made", fact.session_id);
    "ledger.checkpoint" => LedgerCheckpoint, Outbox, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("{} is at event {}", fact.session_id, fact.seq);
    "ledger.session_deleted" => LedgerSessionDeleted, Outbox, Nothing, aside,
        names |_| EventRefs::default(),
        reads |fact| format!("{} deleted by {}", fact.session_id, cut(&fact.by, SHORT));
}

/// Characters that a line shows of a text, and of a name.
const LONG: usize = 200;
const SHORT: usize = 80;

/// The text on one line, at most `max` characters of it.
fn cut(text: &str, max: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(max) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// The warnings of an event, behind what else it says.
fn warned_of(warnings: &[String]) -> String {
    warnings.iter().map(|text| format!("; warning: {}", cut(text, LONG))).collect()
}

/// The word that a value has in the log.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// `1 event`, `2 events`.
fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A count of microseconds as a person says it.
fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Contents that are artifacts where they are too large for the event.
fn carried(contents: &[&Carried]) -> EventRefs {
    let artifacts = contents.iter().filter_map(|carried| match carried {
        Carried::Artifact(artifact) => Some(artifact.clone()),
        Carried::Inline(_) => None,
    });
    EventRefs { artifacts: artifacts.collect(), ..EventRefs::default() }
}

/// A newer version of a known type is still JSON. A known type whose stored content is not JSON is damaged.
fn is_damaged(kind: &EventType, raw: Option<&str>) -> bool {
    kind.is_known() && raw.is_some_and(|raw| serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err())
}

/// What a person is told of an event that this program cannot read.
fn unknown_in_words(kind: &EventType, raw: Option<&str>) -> String {
    match raw {
        _ if !kind.is_known() => format!("{kind} (not known to this program)"),
        None => format!("{kind} (erased)"),
        Some(raw) if is_damaged(kind, Some(raw)) => format!("{kind}: its content is missing or damaged"),
        Some(_) => format!("{kind} (a version that this program does not read)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_this_program_writes_only_these_types_are_not_the_holders_alone() {
        let listed = |may: fn(Writers) -> bool| -> Vec<&str> {
            Body::KINDS.iter().copied().filter(|word| may(EventType::known(word).writers())).collect()
        };
        assert_eq!(
            listed(Writers::client),
            [
                "session.created",
                "session.updated",
                "session.status_terminated",
                "session.forked",
                "user.message",
                "user.define_outcome",
                "user.interrupt",
                "user.custom_tool_result",
                "user.tool_result",
                "system.message",
                "tool.queued",
                "tool.permission.replied",
                "tool.invocation.resolved",
                "wake.queued",
                "wake.cancelled",
                "grant.created",
                "grant.revoked",
                "shell.closed",
                "variable.set",
                "variable.deleted"
            ]
        );
        assert_eq!(
            listed(Writers::outbox),
            [
                "user.message",
                "user.define_outcome",
                "agent.thread_message_received",
                "tool.queued",
                "agent.custom_tool_use",
                "agent.tool_use",
                "agent.tool_result",
                "ledger.session_created",
                "ledger.checkpoint",
                "ledger.session_deleted"
            ]
        );
        assert_eq!(EventType::known("from.the_future").writers(), Writers::Holder);
    }

    #[test]
    fn l72_an_event_that_cannot_be_read_says_why() {
        let words = |kind: &'static str, raw: Option<&str>| Body::decode(&EventType::known(kind), 99, raw).in_words();
        assert!(words("from.the_future", Some("{}")).contains("not known"));
        assert!(words("user.message", None).contains("erased"));
        assert!(words("user.message", Some("{")).contains("damaged"));
        let damaged = |kind: &'static str, raw| Body::decode(&EventType::known(kind), 99, raw).is_damaged();
        assert!(damaged("user.message", Some("{")) && !damaged("user.message", None));
        assert!(!damaged("user.message", Some("{}")) && !damaged("from.the_future", Some("{")));
    }
}
