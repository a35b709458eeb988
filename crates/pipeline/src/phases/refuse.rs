//! The observation of an intent that was settled before anything started: every field the code
//! table promises, and side effects `none`.

use portcullis_base::{Code, ObservationId, Phase, Reason, Recorded, Retry, SideEffects};
use portcullis_event::facts::InputError;
use portcullis_event::{Observed, Permission};

use crate::phases::intent::Intent;
use crate::phases::permission::void_answered;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// Bytes of a summary: what does not fit is content, or was never worth more.
pub(crate) const SUMMARY_MAX: usize = 2_048;
/// Bytes of one message about an input, of a warning, of a name.
pub(crate) const ERROR_MAX: usize = 512;

/// Bytes of a person's words to the model: verbatim (L26) up to more than anybody types.
pub(crate) const FEEDBACK_MAX: usize = 32_768;

/// Why an intent ends here.
pub(crate) struct Refusal {
    pub(crate) phase: Phase,
    pub(crate) code: Code,
    pub(crate) reason: Option<Reason>,
    pub(crate) summary: String,
    pub(crate) errors: Vec<InputError>,
    pub(crate) permission: Option<Permission>,
}

impl Refusal {
    pub(crate) fn new(code: Code, summary: impl Into<String>) -> Self {
        let phase = code.row().phases[0];
        Self { phase, code, reason: None, summary: summary.into(), errors: Vec::new(), permission: None }
    }

    pub(crate) fn reason(mut self, reason: Option<Reason>) -> Self {
        self.reason = reason;
        self
    }

    pub(crate) fn errors(mut self, errors: Vec<InputError>) -> Self {
        self.errors = errors;
        self
    }

    pub(crate) fn permission(mut self, permission: Permission) -> Self {
        self.permission = Some(permission);
        self
    }
}

/// The observation of a refused intent. An approval that the intent came with cannot take effect any more, and is recorded
/// as void (tool-contract 13.7).
pub(crate) fn refuse_and_void(
    session: &SessionShared,
    intent: &Intent,
    refusal: Refusal,
    facts: &mut Append,
) -> Box<Observed> {
    void_answered(session, intent, facts);
    refuse(session, intent, refusal)
}

/// A settled intent with nothing but its identity filled in; the common ground of every observation.
pub(crate) fn blank(session: &SessionShared, intent: &Intent, phase: Phase, code: Code) -> Observed {
    let row = code.row();
    Observed {
        observation_id: ObservationId::make(&*session.gate.ids, session.gate.clock.now()),
        intent_id: intent.id,
        call_id: session.tidy(&intent.proposal.call_id, ERROR_MAX),
        tool: session.tool_name(intent),
        turn_id: intent.turn_id,
        menu_id: intent.menu_id,
        invocation_id: None,
        definition_version: None,
        executor_id: None,
        attempt: 0,
        ok: code.is_ok(),
        phase: Recorded::Known(phase),
        code: Recorded::Known(code),
        reason: None,
        tool_code: None,
        title: session.tool_name(intent),
        summary: String::new(),
        content: Vec::new(),
        structured: None,
        structured_is_channel: false,
        exit_code: None,
        signal: None,
        duration_us: 0,
        side_effects: SideEffects::none(),
        // Nothing has happened as far as a blank one knows.
        retryable: matches!(row.retry, Retry::Yes | Retry::IfNoEffects),
        recovery: Recorded::Known(row.recovery),
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

pub(crate) fn tidy_error(session: &SessionShared, error: InputError) -> InputError {
    InputError {
        path: session.tidy(&error.path, ERROR_MAX),
        rule: error.rule,
        message: session.tidy(&error.message, ERROR_MAX),
    }
}

/// The observation of a refusal.
pub(crate) fn refuse(session: &SessionShared, intent: &Intent, refusal: Refusal) -> Box<Observed> {
    let mut observed = blank(session, intent, refusal.phase, refusal.code);
    observed.reason = refusal.reason.map(Recorded::Known);
    observed.summary = session.tidy(&refusal.summary, SUMMARY_MAX);
    observed.errors = refusal.errors.into_iter().map(|error| tidy_error(session, error)).collect();
    observed.permission = refusal.permission.map(|permission| tidy_permission(session, permission));
    Box::new(observed)
}

/// What a person said, as it may be written.
pub(crate) fn tidy_permission(session: &SessionShared, permission: Permission) -> Permission {
    Permission {
        approver: permission.approver.map(|name| session.tidy(&name, ERROR_MAX)),
        feedback: permission.feedback.map(|words| session.tidy(&words, FEEDBACK_MAX)),
        ..permission
    }
}
