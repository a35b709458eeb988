//! Phase 2, `Visible → Validated`: is the input what the tool advertises, and can it run as things
//! stand? Order (R5): schema, resolve, deny pre-check by names alone, then checks that may look at content.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use portcullis_base::{Code, IncidentId, Phase, Reason};
use portcullis_contract::seam::{self, Decoded};
use portcullis_contract::{AccessRequest, Caller, InputFault, Precondition, Prepared, Resolved, SurroundingFacts};
use portcullis_event::Observed;
use portcullis_event::facts::{InputError, InputValidated, Stage};

use crate::phases::execute::words;
use crate::phases::lookup::Visible;
use crate::phases::masked_names::CallRedactor;
use crate::phases::permission::precheck_denies;
use crate::phases::refuse::{Refusal, SUMMARY_MAX, refuse_and_void, tidy_error};
use crate::phases::step::Step;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// Names of what a call would touch that its `tool.validation` lists.
const RESOLVED_SHOWN: usize = 128;

/// An intent whose input is decoded, resolved and fit to run, if it may.
pub(crate) struct Validated {
    pub(crate) visible: Visible,
    pub(crate) input: Decoded,
    pub(crate) resolved: Resolved,
    pub(crate) access: Vec<AccessRequest>,
    pub(crate) prepared: Prepared,
    /// What else decides what it does. Looked for only where a person is or was asked.
    pub(crate) around: SurroundingFacts,
    pub(crate) caller: Arc<Caller>,
    pub(crate) names: CallRedactor,
}

pub(crate) async fn validate(session: &SessionShared, mut visible: Visible, facts: &mut Append) -> Step<Validated> {
    let recheck = !visible.intent.is_fresh();
    let stage = |stage| if recheck { Stage::Recheck } else { stage };
    let caller = Arc::new(session.caller(&visible.intent));

    let input = match guarded(|| seam::decode(visible.tool(), &visible.intent.proposal.input)) {
        Ok(Ok(input)) => input,
        Err(panic) => return Step::Refused(broken(session, &visible, &*panic, facts)),
        Ok(Err(error)) => {
            let text = format!("the input of `{}` is not what it takes: {}", visible.name, first(&error.faults));
            let refusal = Refusal::new(error.code, text).errors(shown(error.faults));
            return invalid(session, &visible, stage(Stage::Schema), refusal, facts);
        }
    };
    // From here on the call is that of the tool its input chose: asked, scheduled, run and shown as that (H44).
    let input = match guarded(|| visible.choose(input, &caller)) {
        Ok(input) => input,
        Err(panic) => return Step::Refused(broken(session, &visible, &*panic, facts)),
    };
    let tool = visible.tool();
    let resolved = match guarded(|| seam::resolve(tool, &input, &caller)) {
        Ok(Ok(resolved)) => resolved,
        Err(panic) => return Step::Refused(broken(session, &visible, &*panic, facts)),
        Ok(Err(found)) => return invalid(session, &visible, stage(Stage::Resolve), failed(found), facts),
    };
    let access = match guarded(|| seam::plan_access(tool, &visible.name, &input, &resolved)) {
        Ok(access) => access,
        Err(panic) => return Step::Refused(broken(session, &visible, &*panic, facts)),
    };
    let done = visible.intent.arrived().is_some();
    if !done && let Some(denied) = precheck_denies(session, &visible, &access) {
        checked(session, &visible, stage(Stage::Resolve), &resolved, facts);
        return denied.refuse(session, &visible, facts);
    }
    if visible.intent.turn.as_ref().is_some_and(|turn| turn.in_loop()) {
        let key = match guarded(|| seam::loop_key(tool, &input)) {
            Ok(key) => key,
            Err(panic) => return Step::Refused(broken(session, &visible, &*panic, facts)),
        };
        if let Err(looping) = session.loops.enter(visible.intent.id, visible.name.as_str(), &key) {
            return invalid(session, &visible, stage(Stage::Runtime), *looping, facts);
        }
    }
    if let Some(missing) = missing_variable(session, &visible) {
        return invalid(session, &visible, stage(Stage::Runtime), missing, facts);
    }
    let checking = AssertUnwindSafe(async { seam::precheck(tool, &input, &resolved, &caller).await }).catch_unwind();
    match checking.await {
        Err(panic) => Step::Refused(broken(session, &visible, &*panic, facts)),
        Ok(Ok(prepared)) => {
            checked(session, &visible, stage(Stage::Runtime), &resolved, facts);
            let names = CallRedactor::of(session, visible.tool(), &input);
            Step::Next(Validated {
                visible,
                input,
                resolved,
                access,
                prepared,
                around: SurroundingFacts::default(),
                caller,
                names,
            })
        }
        Ok(Err(found)) => invalid(session, &visible, stage(Stage::Runtime), failed(found), facts),
    }
}

/// Runs a tool's own code that comes before its execution.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    std::panic::catch_unwind(AssertUnwindSafe(f))
}

/// A tool whose own code broke before anything started: a defect, and nothing happened. Its words are
/// in the log, for operators (R6). Of the two phases of its code only `normalize` needs no start (L22).
pub(crate) fn broken(
    session: &SessionShared,
    visible: &Visible,
    panic: &(dyn Any + Send),
    facts: &mut Append,
) -> Box<Observed> {
    let text = format!("the tool panicked before it started: {}", words(panic));
    let message = session.tidy(&text, SUMMARY_MAX);
    let errors = vec![InputError { path: String::new(), rule: Code::InternalError.as_str().to_owned(), message }];
    let stage = if visible.intent.is_fresh() { Stage::Runtime } else { Stage::Recheck };
    let fact = InputValidated { intent_id: visible.intent.id, stage, ok: false, errors, resolved: Vec::new() };
    session.note(facts, visible.intent.turn_id, &fact);
    let summary = "the tool broke before it started; the incident is recorded for an operator";
    let mut refusal = Refusal::new(Code::InternalError, summary);
    refusal.phase = Phase::Validate;
    let mut observed = refuse_and_void(session, &visible.intent, refusal, facts);
    observed.synthetic = true;
    observed.incident_id = Some(IncidentId::make(&*session.gate.ids, session.gate.clock.now()));
    observed
}

fn checked(session: &SessionShared, visible: &Visible, stage: Stage, resolved: &Resolved, facts: &mut Append) {
    let names = resolved.resources.iter().take(RESOLVED_SHOWN);
    let mut names: Vec<String> = names.map(|resource| session.tidy(&resource.canonical, SUMMARY_MAX)).collect();
    if resolved.resources.len() > RESOLVED_SHOWN {
        names.push(format!("… ({} in all)", resolved.resources.len()));
    }
    let fact = InputValidated { intent_id: visible.intent.id, stage, ok: true, errors: Vec::new(), resolved: names };
    session.note(facts, visible.intent.turn_id, &fact);
}

fn invalid(
    session: &SessionShared,
    visible: &Visible,
    stage: Stage,
    refusal: Refusal,
    facts: &mut Append,
) -> Step<Validated> {
    let errors = if refusal.errors.is_empty() {
        let rule = refusal.reason.map_or(refusal.code.as_str(), Reason::as_str);
        vec![InputError { path: String::new(), rule: rule.to_owned(), message: refusal.summary.clone() }]
    } else {
        refusal.errors.clone()
    };
    let errors = errors.into_iter().map(|error| tidy_error(session, error)).collect();
    let fact = InputValidated { intent_id: visible.intent.id, stage, ok: false, errors, resolved: Vec::new() };
    session.note(facts, visible.intent.turn_id, &fact);
    Step::Refused(refuse_and_void(session, &visible.intent, refusal, facts))
}

pub(crate) fn failed(found: Precondition) -> Refusal {
    let parts = seam::precondition_parts(found);
    Refusal::new(parts.code, parts.message).reason(parts.reason).errors(shown(parts.faults))
}

fn missing_variable(session: &SessionShared, visible: &Visible) -> Option<Refusal> {
    let wanted = seam::semantics(visible.tool()).variables.iter();
    let missing = wanted.filter(|v| v.required).find(|v| !session.scope.variables.contains_key(&v.name))?;
    let text = format!(
        "`{}` needs the variable `{}` ({}); set it and call again",
        visible.name, missing.name, missing.description
    );
    Some(Refusal::new(Code::RuntimePreconditionFailed, text).reason(Some(Reason::VariableMissing)))
}

pub(crate) fn first(faults: &[InputFault]) -> String {
    faults.first().map_or_else(String::new, |fault| {
        if fault.path.is_empty() { fault.message.clone() } else { format!("at `{}`: {}", fault.path, fault.message) }
    })
}

fn shown(faults: Vec<InputFault>) -> Vec<InputError> {
    faults.into_iter().map(|f| InputError { path: f.path, rule: f.rule, message: f.message }).collect()
}
