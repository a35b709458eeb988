//! Phase 2, `Visible → Validated`: is the input what the tool advertises, and can it run as things
//! stand? Order (R5): schema, resolve, deny pre-check by names alone, then checks that may look at content.

use std::sync::Arc;

use portcullis_base::{Code, Reason};
use portcullis_contract::seam::{self, Decoded};
use portcullis_contract::{AccessRequest, Caller, InputFault, Precondition, Prepared, Resolved};
use portcullis_event::facts::{Checked, InputError, Stage};

use crate::append::Append;
use crate::lookup::Visible;
use crate::permission::precheck_denies;
use crate::refuse::{Refusal, refuse};
use crate::session::SessionShared;
use crate::step::Step;

/// An intent whose input is decoded, resolved and fit to run, if it may.
pub(crate) struct Validated {
    pub(crate) visible: Visible,
    pub(crate) input: Decoded,
    pub(crate) resolved: Resolved,
    pub(crate) access: Vec<AccessRequest>,
    pub(crate) prepared: Prepared,
    pub(crate) caller: Arc<Caller>,
}

pub(crate) async fn validate(session: &SessionShared, visible: Visible, facts: &mut Append) -> Step<Validated> {
    let recheck = !visible.intent.is_fresh();
    let stage = |stage| if recheck { Stage::Recheck } else { stage };
    let tool = visible.tool();
    let caller = Arc::new(session.caller(&visible.intent));

    let input = match seam::decode(tool, &visible.intent.proposal.input) {
        Ok(input) => input,
        Err(error) => {
            let text = format!("the input of `{}` is not what it takes: {}", visible.name, first(&error.faults));
            let refusal = Refusal::new(error.code, text).errors(shown(error.faults));
            return invalid(session, &visible, stage(Stage::Schema), refusal, facts);
        }
    };
    let resolved = match seam::resolve(tool, &input, &caller) {
        Ok(resolved) => resolved,
        Err(found) => return invalid(session, &visible, stage(Stage::Resolve), failed(found), facts),
    };
    let access = seam::plan_access(tool, &visible.name, &input, &resolved);
    if let Some(denied) = precheck_denies(session, &visible, &access) {
        checked(session, &visible, stage(Stage::Resolve), &resolved, facts);
        return denied.refuse(session, &visible, facts);
    }
    if let Some(missing) = missing_variable(session, &visible) {
        return invalid(session, &visible, stage(Stage::Runtime), missing, facts);
    }
    match seam::precheck(tool, &input, &resolved, &caller).await {
        Ok(prepared) => {
            checked(session, &visible, stage(Stage::Runtime), &resolved, facts);
            Step::Next(Validated { visible, input, resolved, access, prepared, caller })
        }
        Err(found) => invalid(session, &visible, stage(Stage::Runtime), failed(found), facts),
    }
}

fn checked(session: &SessionShared, visible: &Visible, stage: Stage, resolved: &Resolved, facts: &mut Append) {
    let names = resolved.resources.iter().map(|resource| resource.canonical.clone()).collect();
    let fact = Checked { intent_id: visible.intent.id, stage, ok: true, errors: Vec::new(), resolved: names };
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
    let fact = Checked { intent_id: visible.intent.id, stage, ok: false, errors, resolved: Vec::new() };
    session.note(facts, visible.intent.turn_id, &fact);
    crate::permission::void_answered(session, &visible.intent, facts);
    Step::Refused(refuse(session, &visible.intent, refusal))
}

fn failed(found: Precondition) -> Refusal {
    let parts = seam::precondition_parts(found);
    Refusal::new(parts.code, parts.message).reason(parts.reason).errors(shown(parts.faults))
}

fn missing_variable(session: &SessionShared, visible: &Visible) -> Option<Refusal> {
    let wanted = seam::semantics(visible.tool()).variables.iter();
    let missing = wanted.filter(|v| v.required).find(|v| !session.gate.variables.contains_key(&v.name))?;
    let text = format!(
        "`{}` needs the variable `{}` ({}); set it and call again",
        visible.name, missing.name, missing.description
    );
    Some(Refusal::new(Code::RuntimePreconditionFailed, text).reason(Some(Reason::VariableMissing)))
}

fn first(faults: &[InputFault]) -> String {
    faults.first().map_or_else(String::new, |fault| {
        if fault.path.is_empty() { fault.message.clone() } else { format!("at `{}`: {}", fault.path, fault.message) }
    })
}

fn shown(faults: Vec<InputFault>) -> Vec<InputError> {
    faults.into_iter().map(|f| InputError { path: f.path, rule: f.rule, message: f.message }).collect()
}
