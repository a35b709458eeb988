//! Phase 6, `RawResult → Settled`: one common shape for every outcome. The execution's facts are
//! written before any projection runs, so that a projection bug cannot erase them (L23).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis_base::{Code, EffectRule, IncidentId, Phase, Recorded, Retry, SideEffect, SideEffectState, SideEffects};
use portcullis_contract::seam::{self, FailureParts, KeptEvidence};
use portcullis_contract::{Content, ShellFact, UserText};
use portcullis_event::facts::{Capture, Exit, InvocationCompleted};
use portcullis_event::{EventBody as _, Observed, Permission, SandboxFact};
use serde_json::Value;

use crate::asks::midway::MidwayStop;
use crate::output::spool::CapturedStream;
use crate::phases::execute::{Outcome, RawResult, words};
use crate::phases::refuse::{ERROR_MAX, Refusal, SUMMARY_MAX, blank, tidy_permission};
use crate::phases::schedule::Invocation;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// A result in the common shape, not yet bounded.
pub(crate) struct Settled {
    pub(crate) invocation: Invocation,
    pub(crate) exit: Exit,
    pub(crate) observed: Observed,
    /// What the model is to see, whole. `None`: the structured value is its channel (R9).
    pub(crate) content: Option<Vec<Content>>,
    pub(crate) streams: Vec<CapturedStream>,
    pub(crate) kept: Vec<KeptEvidence>,
    /// Pieces of evidence over the limit, which were not taken.
    pub(crate) refused: usize,
    /// What became of the session's shell. It stands however the call ended.
    pub(crate) shell: Vec<ShellFact>,
}

/// What an outcome means, before views are made of it.
struct OutcomeMeaning {
    exit: Exit,
    code: Code,
    phase: Phase,
    failure: Option<FailureParts>,
    output: Option<Value>,
    summary: String,
    defect: Option<String>,
}

pub(crate) fn normalize(session: &SessionShared, raw: RawResult, facts: &mut Append) -> Settled {
    let RawResult { invocation, outcome, mut reported, streams, duration, stop } = raw;
    // What it changed in the log stands, whatever it says of itself.
    let in_log = session.effect_of(invocation.authorized.validated.visible.intent.id);
    let in_log = in_log.map(|effected| effected.side_effects.items).unwrap_or_default();
    reported.side_effects.extend(in_log.iter().cloned());
    let returned = matches!(outcome, Outcome::Done(_));
    let mut meaning = meaning(outcome, &invocation);
    if reported.nothing_found && meaning.code == Code::Ok {
        meaning.code = Code::NoMatches;
    }
    let read_only = seam::semantics(&invocation.tool).read_only;
    let claimed = meaning.failure.as_ref().and_then(|failure| failure.side_effects.clone());
    let claimed = claimed.map(|claimed| claimed.and(in_log));
    let mut permission = invocation.authorized.permission.clone();
    let mut warnings: Vec<String> = invocation.warnings.iter().cloned().chain(reported.warnings).collect();
    if reported.shell_refused > 0 {
        warnings.push(format!("{} more changes of the shell were not kept", reported.shell_refused));
    }
    match stop {
        Some(MidwayStop::Refused(refusal)) => meaning.stopped(session, *refusal, &mut permission),
        Some(MidwayStop::Unrecorded(halt)) => {
            session.void_held(&invocation.authorized.validated.visible.intent, facts);
            warnings.push(format!("it was stopped because the log would not take what the gate decided: {halt}"));
        }
        None => {}
    }
    let under_way = meaning.failure.as_ref().is_some_and(|failure| failure.under_way);
    let rule = if under_way { EffectRule::FactsElseUnknown } else { meaning.code.row().effects };
    let mut side_effects = side_effects(rule, read_only, reported.side_effects, claimed);
    // Stopped by the gate, and then it did not even return: what it did beyond what it said is not known.
    let silent = meaning.phase == Phase::Permission && !returned && !read_only;
    if silent && side_effects.state == SideEffectState::None {
        side_effects = SideEffects::unknown(Vec::new());
    }
    let names = &invocation.authorized.validated.names;
    names.mask_effects(&mut side_effects);
    let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let intent = &invocation.authorized.validated.visible.intent;
    let completed = InvocationCompleted {
        invocation_id: invocation.id,
        intent_id: intent.id,
        exit: meaning.exit,
        exit_code: meaning.failure.as_ref().and_then(|failure| failure.exit_code).or(exit_code(&reported.shell)),
        signal: meaning.failure.as_ref().and_then(|failure| failure.signal),
        duration_us,
        capture: streams.iter().map(|stream| capture_fact(session, stream)).collect(),
        side_effects: side_effects.clone(),
        raw_ref: None,
        defect: meaning.defect.take().map(|text| session.tidy(&text, SUMMARY_MAX)),
    };
    session.note(facts, intent.turn_id, &completed);

    let mut observed = blank(session, intent, meaning.phase, meaning.code);
    observed.invocation_id = Some(invocation.id);
    observed.definition_version = Some(seam::version(&invocation.tool).to_string());
    observed.executor_id = Some(seam::executor(&invocation.tool).to_string());
    observed.attempt = invocation.attempt;
    observed.permission = Some(permission);
    observed.sandbox = sandbox_fact(session, &invocation);
    observed.exit_code = completed.exit_code;
    observed.signal = completed.signal;
    observed.duration_us = duration_us;
    observed.capture = completed.capture;
    observed.side_effects = side_effects;
    observed.warnings = warnings;
    observed.summary = meaning.summary;
    if meaning.code.is_ok() {
        observed.files = reported.files;
        names.mask_files(&mut observed.files);
    }
    if let Some(failure) = meaning.failure {
        observed.reason = failure.reason.map(Recorded::Known);
        observed.tool_code = failure.tool_code.map(|word| session.tidy(&word, ERROR_MAX));
        observed.retryable = failure.retryable;
    }
    let content = match meaning.output {
        Some(output) => project(session, &invocation, output, &mut observed, facts),
        None => streams_as_content(&streams),
    };
    settle_flags(session, &mut observed, read_only);
    Settled {
        invocation,
        exit: meaning.exit,
        observed,
        content,
        streams,
        kept: reported.kept,
        refused: reported.refused,
        shell: reported.shell,
    }
}

/// How the command that it ran to its end ended: a success has an exit code as well.
fn exit_code(facts: &[ShellFact]) -> Option<i32> {
    facts.iter().rev().find_map(|fact| match fact {
        ShellFact::Finished(ended) => ended.exit_code,
        _ => None,
    })
}

/// Where its commands ran.
fn sandbox_fact(session: &SessionShared, invocation: &Invocation) -> Option<SandboxFact> {
    let profile = seam::semantics(&invocation.tool).sandbox.as_deref()?;
    let isolated = session.scope.isolated(Some(profile))?;
    Some(SandboxFact { profile: profile.to_owned(), network: isolated.network })
}

fn meaning(outcome: Outcome, invocation: &Invocation) -> OutcomeMeaning {
    let base = |exit, code: Code, summary: String| OutcomeMeaning {
        exit,
        code,
        phase: code.row().phases[0],
        failure: None,
        output: None,
        summary,
        defect: None,
    };
    match outcome {
        Outcome::Done(Ok(Ok(output))) => {
            OutcomeMeaning { output: Some(output), ..base(Exit::Ok, Code::Ok, String::new()) }
        }
        Outcome::Done(Ok(Err(misfit))) => base(Exit::Ok, Code::OutputInvalid, misfit),
        Outcome::Done(Err(failure)) => {
            let parts = seam::failure_parts(failure);
            let phase = if parts.code == Code::MediaRejected { Phase::Bound } else { Phase::Execute };
            let summary = parts.message.clone();
            OutcomeMeaning { phase, failure: Some(parts), ..base(Exit::Error, Code::ToolFailure, summary) }
                .with_failure_code()
        }
        Outcome::Panicked(text) => {
            let summary = "the tool broke; the incident is recorded for an operator".to_owned();
            OutcomeMeaning { defect: Some(text), ..base(Exit::Error, Code::InternalError, summary) }
        }
        Outcome::TimedOut => {
            let text = format!("stopped after its timeout of {} ms", invocation.timeout.as_millis());
            base(Exit::Timeout, Code::Timeout, text)
        }
        Outcome::Cancelled => base(Exit::Cancelled, Code::Cancelled, "interrupted while running".to_owned()),
    }
}

impl OutcomeMeaning {
    /// Once the gate has stopped a call its word is what is observed, whatever the call returned (L25). How its code
    /// ended stays as it was: that is a fact.
    fn stopped(&mut self, session: &SessionShared, refusal: Refusal, permission: &mut Permission) {
        self.code = refusal.code;
        self.phase = refusal.phase;
        self.summary = session.tidy(&refusal.summary, SUMMARY_MAX);
        self.output = None;
        if let Some(failure) = &mut self.failure {
            failure.reason = None;
            failure.tool_code = None;
        }
        if let Some(said) = refusal.permission {
            *permission = tidy_permission(session, said);
        }
    }

    fn with_failure_code(mut self) -> Self {
        if let Some(failure) = &self.failure {
            self.code = failure.code;
        }
        self
    }
}

/// What the code table promises of side effects, filled with what the tool reported.
fn side_effects(
    rule: EffectRule,
    read_only: bool,
    reported: Vec<SideEffect>,
    claimed: Option<SideEffects>,
) -> SideEffects {
    if let Some(claimed) = claimed {
        return claimed;
    }
    let facts = SideEffects::occurred(reported);
    match rule {
        // A code that promises nothing happened cannot be used to hide what did: reported facts stand.
        EffectRule::None | EffectRule::Facts | EffectRule::Occurred => facts,
        EffectRule::UnknownUnlessReadOnly | EffectRule::FactsElseUnknown => {
            if read_only || facts.state == SideEffectState::Occurred {
                facts
            } else {
                SideEffects::unknown(facts.items)
            }
        }
    }
}

/// The three views of a success, behind the panic guard. A panic is a defect; the facts stand.
fn project(
    session: &SessionShared,
    invocation: &Invocation,
    output: Value,
    observed: &mut Observed,
    facts: &mut Append,
) -> Option<Vec<Content>> {
    let input = &invocation.authorized.validated.input;
    let tool = &invocation.tool;
    let views = catch_unwind(AssertUnwindSafe(|| {
        let content = seam::to_model(tool, input, &output);
        let user = seam::to_user(tool, input, &output);
        (content, user, seam::to_structured(tool, input, &output))
    }));
    match views {
        Ok((content, user, structured)) => {
            let UserText { title, summary } = user.unwrap_or_default();
            if !title.is_empty() {
                observed.title = title;
            }
            observed.summary = summary;
            let content = content.or_else(|| output.as_str().map(|text| vec![Content::text(text)]));
            observed.structured_is_channel = content.is_none();
            observed.structured = Some(structured);
            content
        }
        Err(panic) => {
            unshowable(session, &*panic, observed, facts);
            None
        }
    }
}

/// A view that panicked: a defect, and no output is presented as a success. The facts stand.
pub(crate) fn unshowable(
    session: &SessionShared,
    panic: &(dyn Any + Send),
    observed: &mut Observed,
    facts: &mut Append,
) {
    let text = format!("a projection panicked: {}", words(panic));
    record_defect(session, facts, &text);
    observed.ok = false;
    observed.phase = Recorded::Known(Phase::Normalize);
    observed.code = Recorded::Known(Code::InternalError);
    observed.summary = "the result could not be shown; the incident is recorded for an operator".to_owned();
    observed.structured = None;
    observed.structured_is_channel = false;
    observed.files.clear();
}

/// A defect of a projection is a fact about the call: it goes into its `completed`.
fn record_defect(session: &SessionShared, facts: &mut Append, text: &str) {
    let text = session.tidy(text, SUMMARY_MAX);
    tracing::error!(session = %session.key.session, "{text}");
    amend_completed(session, facts, |completed| completed.defect = Some(text));
}

/// Changes the `completed` of the call at hand, which is written but not yet durable: it and the
/// observation must say the same.
pub(crate) fn amend_completed(
    session: &SessionShared,
    facts: &mut Append,
    amend: impl FnOnce(&mut InvocationCompleted),
) {
    let kind = InvocationCompleted::KIND;
    if let Some(draft) = facts.events.iter_mut().rfind(|draft| draft.kind == kind)
        && let Ok(mut completed) = serde_json::from_str::<InvocationCompleted>(&draft.payload)
    {
        amend(&mut completed);
        *draft = session.redraft(draft, &completed);
    }
}

/// The last promises of the code table: retry, recovery, synthetic, incident.
pub(crate) fn settle_flags(session: &SessionShared, observed: &mut Observed, read_only: bool) {
    let Some(code) = observed.code.known() else { return };
    let row = code.row();
    let nothing_happened = observed.side_effects.state == SideEffectState::None;
    observed.recovery = Recorded::Known(row.recovery);
    observed.retryable = match row.retry {
        Retry::Yes => true,
        Retry::No => false,
        Retry::PerFailure => observed.retryable,
        Retry::IfNoEffects => nothing_happened,
        Retry::IfReadOnly => read_only,
    };
    if matches!(code, Code::InternalError | Code::Cancelled) {
        observed.synthetic = true;
    }
    if code == Code::InternalError {
        observed.incident_id = Some(IncidentId::make(&*session.gate.ids, session.gate.clock.now()));
    }
}

fn capture_fact(session: &SessionShared, stream: &CapturedStream) -> Capture {
    Capture {
        stream: session.tidy(&stream.name, ERROR_MAX),
        total_bytes: stream.total,
        kept_bytes: stream.kept,
        complete: stream.complete(),
    }
}

/// What a failed, stopped or broken call wrote before it ended is shown as for a success (L45).
fn streams_as_content(streams: &[CapturedStream]) -> Option<Vec<Content>> {
    let parts: Vec<Content> = (0u32..)
        .zip(streams)
        .filter(|(_, stream)| stream.kept > 0)
        .map(|(index, stream)| {
            Content::Spool(portcullis_contract::SpoolRef {
                index,
                name: stream.name.clone(),
                total_bytes: stream.total,
                kept_bytes: stream.kept,
            })
        })
        .collect();
    Some(parts)
}
