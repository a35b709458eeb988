//! An event in words, for a person who reads a log.

use portcullis_event::Body;
use portcullis_event::facts::text_of;

use crate::render::{self, safe, safe_line};

/// What happened, in one line; `None` where nobody has found words for it yet.
pub fn of(body: &Body) -> Option<String> {
    Some(match body {
        Body::SessionCreated(fact) => {
            let place = fact.workspace.as_deref().unwrap_or("no workspace");
            format!("session made in {}", render::exact(place, 200))
        }
        Body::MenuFrozen(fact) => {
            format!("{} offered, {} hidden", render::count(fact.count.into(), "tool"), fact.hidden.len())
        }
        Body::IntentProposed(fact) => {
            format!("proposed: {} {}", safe_line(&fact.tool, 80), safe_line(&fact.raw_input.to_string(), 200))
        }
        Body::LookedUp(fact) => match (fact.found, &fact.code) {
            (true, _) => "found".to_owned(),
            (false, Some(code)) => format!("not found: {code}"),
            (false, None) => "not found".to_owned(),
        },
        Body::Checked(fact) => {
            let stage = render::word(&fact.stage);
            let verdict = if fact.ok { "holds" } else { "does not hold" };
            let named = fact.resolved.join(", ");
            format!("checked ({stage}): {verdict} {}", safe_line(&named, 200)).trim_end().to_owned()
        }
        Body::Decided(fact) => format!("decided: {}: {}", render::word(&fact.decision), safe_line(&fact.reason, 200)),
        Body::ToolUse(_) => "shown to clients".to_owned(),
        Body::ToolResult(fact) => format!("told to clients: {}", if fact.is_error { "it failed" } else { "ok" }),
        Body::Asked(fact) => format!("asked: {}, until {}", fact.ask_id, fact.expires_at),
        Body::Replied(fact) => format!(
            "answered: {} by {} through {}",
            render::word(&fact.reply),
            safe_line(&fact.approver, 80),
            safe_line(&fact.channel, 40)
        ),
        Body::AskClosed(fact) => format!("ask closed: {}", render::word(&fact.state)),
        Body::Scheduled(fact) => format!("queued as {}", fact.plan.invocation_id),
        Body::Started(fact) => format!("started {} (attempt {})", fact.invocation_id, fact.attempt),
        Body::Completed(fact) => {
            format!("ended: {} after {}", render::word(&fact.exit), render::span(fact.duration_us))
        }
        Body::ArtifactStored(fact) => format!("kept {} bytes as {}", fact.artifact.bytes, fact.artifact.id),
        Body::Observed(fact) => {
            let warned: String =
                fact.warnings.iter().map(|text| format!("; warning: {}", safe_line(text, 200))).collect();
            format!("observed: {}: {}{warned}", fact.code, safe_line(&fact.summary, 200))
        }
        Body::Progressed(fact) => format!("said: {}", safe_line(&fact.checkpoint, 200)),
        Body::Backgrounded(fact) => format!("goes on in the background as {}", fact.task_id),
        Body::TaskCompleted(fact) => {
            format!("{} ended: {}: {}", fact.task_id, fact.code, safe_line(&fact.summary, 200))
        }
        Body::Recovered(fact) => format!("recovered: {}", safe_line(&fact.decision, 80)),
        // A newer version of it is still JSON; what is not was never written so.
        Body::Unknown { kind, raw: Some(raw) }
            if Body::KINDS.contains(&kind.as_str()) && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err() =>
        {
            format!("{}: its content is missing or damaged; `portcullis audit verify` tells more", safe(kind.as_str()))
        }
        Body::Unknown { kind, raw: None } if Body::KINDS.contains(&kind.as_str()) => {
            format!("{} (erased)", safe(kind.as_str()))
        }
        Body::Unknown { kind, .. } => format!("{} (not known to this program)", safe(kind.as_str())),
        Body::UserMessage(fact) => format!("said: {}", safe_line(&text_of(&fact.content), 200)),
        Body::AgentMessage(fact) => format!("the model said: {}", safe_line(&text_of(&fact.content), 200)),
        Body::ModelRequestEnd(fact) if fact.is_error => format!("the model failed: {}", safe_line(&fact.stop, 200)),
        Body::ModelRequestEnd(fact) => format!("the model stopped: {}", safe_line(&fact.stop, 80)),
        Body::FinalChecked(fact) => format!("the answer is {}", render::word(&fact.verdict)),
        Body::CommandFinished(fact) => {
            let line = format!("{} {}", fact.command.command, fact.command.args.join(" "));
            let code = fact.command.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
            format!("{code}: {}", safe_line(&line, 200))
        }
        Body::GrantCreated(fact) => format!("remembered as {}", fact.grant_id),
        Body::GrantRevoked(fact) => format!("{} revoked by {}", fact.grant_id, safe_line(&fact.by, 80)),
        _ => return None,
    })
}
