//! Observations to make facts from.

use portcullis_base::{
    Code, IntentId, InvocationId, MenuId, ObservationId, Phase, Recovery, SideEffects, Trust, TurnId,
};
use portcullis_event::{ContentFormat, ContentPart, Observed};

/// A call that did nothing and said nothing.
pub fn observed(tool: &str, code: Code, phase: Phase) -> Observed {
    Observed {
        observation_id: ObservationId::from_u128(7),
        intent_id: IntentId::from_u128(8),
        call_id: "c1".to_owned(),
        tool: tool.to_owned(),
        turn_id: TurnId::from_u128(9),
        menu_id: MenuId::from_u128(10),
        invocation_id: Some(InvocationId::from_u128(11)),
        definition_version: None,
        executor_id: None,
        attempt: 1,
        ok: code == Code::Ok,
        phase: phase.into(),
        code: code.into(),
        reason: None,
        tool_code: None,
        title: tool.to_owned(),
        summary: "done".to_owned(),
        content: Vec::new(),
        structured: None,
        structured_is_channel: false,
        exit_code: None,
        signal: None,
        duration_us: 1_000,
        side_effects: SideEffects::none(),
        retryable: false,
        recovery: Recovery::None.into(),
        errors: Vec::new(),
        truncated: false,
        omitted_bytes: 0,
        omitted_lines: 0,
        total_bytes: 0,
        retained: true,
        capture: Vec::new(),
        artifacts: Vec::new(),
        files: Vec::new(),
        unchanged_since: None,
        suggested_next_tool: None,
        next_hint: None,
        permission: None,
        sandbox: None,
        synthetic: false,
        incident_id: None,
        warnings: Vec::new(),
    }
}

pub fn untrusted(source: &str, text: &str) -> ContentPart {
    ContentPart {
        trust: Trust::ToolOutputUntrusted,
        format: ContentFormat::Text,
        source: source.to_owned(),
        text: Some(text.to_owned()),
        artifact: None,
    }
}
