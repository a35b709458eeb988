//! What a run tells, in words for a person and as documents for programs (`docs/run-json.md`).

use portcullis::harness::LiveEvent;
use portcullis_base::{Code, Recorded};
use portcullis_event::Observed;
use portcullis_event::facts::FinalChecked;
use portcullis_terminal::render::{self, DIM, GREEN, RED, YELLOW, safe_line, styled};
use serde_json::{Value, json};

use crate::hints;

/// Characters of an input on the line of its call.
pub const INPUT_CHARS: usize = 60;
/// Characters of what a call says of its outcome: enough that its advice is whole.
pub const SUMMARY_CHARS: usize = 400;
/// Characters of a claim, and half of those of the fact beside it.
const CLAIM_CHARS: usize = 120;

/// One call: whether it went well, what it was, how long it took, how it ended.
pub fn call_line(input: &str, observed: &Observed) -> String {
    let mark = if observed.ok { styled(GREEN, "✓") } else { styled(RED, "✗") };
    let what = aim(input).unwrap_or_else(|| untitled(observed).to_owned());
    let mut line = format!("{mark} {} {}", safe_line(&observed.tool, 80), safe_line(&what, INPUT_CHARS));
    let code = match (&observed.code, observed.exit_code) {
        // A command that was stopped has an exit code too, but that is not why it ended.
        (Recorded::Known(Code::Ok | Code::CommandFailed), Some(exit)) if exit != 0 => format!("exit {exit}"),
        (Recorded::Known(code), _) if observed.ok && *code == Code::Ok => String::new(),
        (code, _) => code.to_string(),
    };
    let mut tail = render::span(observed.duration_us);
    if !code.is_empty() {
        tail = format!("{code}, {tail}");
    }
    line = format!("{} {}", line.trim_end(), styled(DIM, &format!("({tail})")));
    if !observed.ok && observed.exit_code.is_none() && !observed.summary.is_empty() {
        let said = safe_line(&observed.summary, SUMMARY_CHARS);
        line.push_str(&format!(": {}", hints::followed(said, hints::of_failure(observed))));
    }
    line
}

/// A title without the name of the tool, which stands before it.
fn untitled(observed: &Observed) -> &str {
    match observed.title.split_once(' ') {
        Some((first, rest)) if first.eq_ignore_ascii_case(&observed.tool) => rest,
        None if observed.title.eq_ignore_ascii_case(&observed.tool) => "",
        _ => &observed.title,
    }
}

/// A call by its tool and what it is about.
pub fn titled(tool: &str, input: &str) -> String {
    match aim(input) {
        Some(what) => format!("{tool} {what}"),
        None => tool.to_owned(),
    }
}

/// The one field of an input that says what a call is about.
pub fn aim(input: &str) -> Option<String> {
    const TELLING: &[&str] = &["command", "file_path", "pattern", "path", "url", "query", "name"];
    let value: Value = serde_json::from_str(input).ok()?;
    TELLING.iter().find_map(|key| match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        _ => None,
    })
}

/// How many claims a fact-check looked at.
pub fn claims_checked(checked: &FinalChecked) -> String {
    match checked.claims.len() as u64 {
        0 => String::new(),
        n => format!(" ({} checked)", render::count(n, "claim")),
    }
}

/// The fact-check of an answer, in one line and one for each claim that does not hold.
pub fn verdict(checked: &FinalChecked) -> String {
    use portcullis_event::facts::FinalVerdict;
    let style = match checked.verdict {
        FinalVerdict::Supported => GREEN.bold(),
        FinalVerdict::NoClaims => DIM,
        FinalVerdict::Stale | FinalVerdict::Unsupported => YELLOW.bold(),
        FinalVerdict::Contradicted => RED.bold(),
    };
    let mut text = format!("fact-check: {}{}", styled(style, checked.verdict.as_str()), claims_checked(checked));
    for claim in &checked.claims {
        let said = safe_line(&claim.claim, CLAIM_CHARS);
        let (word, fact) = (render::word(&claim.verdict), safe_line(&claim.fact, 2 * CLAIM_CHARS));
        // The claim is in words of ours, so it stands in no quotation marks.
        text.push_str(&format!("\n  {word}: {said}: {fact}"));
    }
    text
}

/// What became of a conversation that grew long, and how to let it grow longer where the model's window is not known.
pub fn compacted(messages: usize, assumed: Option<u64>) -> String {
    let mut text = match messages {
        0 => "the conversation is shown to the model in fewer words; the log has it all".to_owned(),
        _ => format!("the conversation grew long: {messages} messages gave way to a summary; the log has them all"),
    };
    if let Some(tokens) = assumed {
        text.push_str(&format!(
            ". The context window of this model is not known, and {tokens} tokens are assumed for a conversation: set \
             `window = N` under `[model]` in the configuration to the tokens that the model can read"
        ));
    }
    text
}

/// The document of a thing that happened, or none.
pub fn document(live: LiveEvent<'_>) -> Option<Value> {
    Some(match live {
        LiveEvent::WakeBegan { wake_id } => json!({"type": "wake", "wake_id": wake_id}),
        LiveEvent::Asking { turn } => json!({"type": "request", "turn": turn}),
        LiveEvent::Text(text) => json!({"type": "text", "text": text}),
        LiveEvent::Thinking(text) => json!({"type": "thinking", "text": text}),
        LiveEvent::MessageEnd => json!({"type": "message_end"}),
        LiveEvent::BrokeOff => json!({"type": "message_broken_off"}),
        LiveEvent::CallBegan { call_id, tool, input } => {
            json!({"type": "call", "call_id": call_id, "tool": tool, "input": input})
        }
        LiveEvent::CallEnded { observed, .. } => {
            json!({"type": "observation", "call_id": observed.call_id, "observation": observed})
        }
        LiveEvent::Warning(text) => json!({"type": "warning", "text": text}),
        LiveEvent::Heard { words } => json!({"type": "heard", "messages": words}),
        LiveEvent::Compacted { messages, assumed } => {
            json!({"type": "compacted", "messages": messages, "assumed_tokens": assumed})
        }
        LiveEvent::Checked(checked) => json!({"type": "checked", "verdict": checked.verdict, "claims": checked.claims}),
        LiveEvent::HandedOver { event_id, tool } => {
            json!({"type": "custom_tool_use", "event_id": event_id, "tool": tool})
        }
        // The ask is told with its facts and commands when it is somebody's turn.
        LiveEvent::Waiting { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(aim(r#"{"file_path":"a.txt","old_string":"x"}"#).as_deref(), Some("a.txt"));
        assert_eq!(aim(r#"{"command":"sh test.sh"}"#).as_deref(), Some("sh test.sh"));
        assert_eq!(aim("not json"), None);
    }
}
