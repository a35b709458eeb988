//! Phase 3, `Validated → Authorized`: may it start? Deny beats ask, ask beats allow; a stored reply
//! is read, never assumed. Nothing else in the program makes an [`Authorized`].

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use portcullis_base::{AskId, Code};
use portcullis_contract::{AccessRequest, DefaultPolicy, Prepared, SurroundingFacts, seam};
use portcullis_event::facts::{AskClosed, Closing, PermissionDecided, Verdict};
use portcullis_event::{AskState, Permission, fold};
use portcullis_policy::{Allow, Ask, Asker, Decision, Deny, Policy};

use crate::asks::ask::{self, PermissionQuestion, RaisedAsk};
use crate::asks::binding;
use crate::asks::grants;
use crate::asks::rule_requests::DecisionSubject;
use crate::output::evidence::no_room;
use crate::phases::intent::{AnsweredAtOnce, Intent, Origin};
use crate::phases::lookup::Visible;
use crate::phases::refuse::{Refusal, SUMMARY_MAX, refuse, refuse_and_void};
use crate::phases::step::Step;
use crate::phases::validate::{Validated, broken, guarded};
use crate::scope::Approvals;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// An intent that may start.
pub(crate) struct Authorized {
    pub(crate) validated: Validated,
    pub(crate) permission: Permission,
}

pub(crate) async fn permission(
    session: &SessionShared,
    mut validated: Validated,
    facts: &mut Append,
) -> Step<Authorized> {
    if validated.visible.intent.arrived().is_some() {
        // It was decided before the client was asked. A rule that came since undoes nothing.
        let permission = earlier(validated.visible.intent.ask());
        return Step::Next(Authorized { validated, permission });
    }
    let fresh = validated.visible.intent.is_fresh();
    let (policy, decision) = weigh(session, &validated.visible, &validated.access, fresh).await;
    // A person who is or was asked is shown the diff and the surroundings; for everyone else nobody need look.
    let asked = validated.visible.intent.ask().cloned();
    if asked.is_some() || matches!(decision, Decision::Ask(_)) {
        match look(&validated.prepared).await {
            Ok(around) => validated.around = around,
            Err(panic) => return Step::Refused(broken(session, &validated.visible, &*panic, facts)),
        }
    }
    if let Some(ask) = asked {
        return answered(session, validated, &ask, &policy, decision, facts);
    }
    match decision {
        Decision::Allow(allow) => {
            let permission = allowed(session, &PermissionQuestion::of(&validated), allow, facts);
            Step::Next(Authorized { validated, permission })
        }
        Decision::Deny(deny) => RuleDenial::late(deny, session, &PermissionQuestion::of(&validated)).refuse(
            session,
            &validated.visible,
            facts,
        ),
        Decision::Ask(ask) => {
            let policy_ids = ask.policy_ids.iter().map(ToString::to_string).collect();
            match raise(session, &PermissionQuestion::of(&validated), ask, &policy, facts).await {
                Ok(RaisedAsk::Waits(ask)) => Step::Parked(ask),
                Ok(RaisedAsk::Answered(ask)) => answered_at_once(session, validated, *ask, policy_ids),
                Err(refusal) => Step::Refused(refuse(session, &validated.visible.intent, refusal)),
            }
        }
    }
}

/// What a person is shown of a call besides its input, made by the tool's own code.
async fn look(prepared: &Prepared) -> Result<SurroundingFacts, Box<dyn Any + Send>> {
    guarded(|| prepared.diff.as_ref().map(|diff| diff.text().len()))?;
    match &prepared.around {
        Some(surroundings) => AssertUnwindSafe(async { surroundings.look().await }).catch_unwind().await,
        None => Ok(SurroundingFacts::default()),
    }
}

/// What rules and, where they may answer, grants say of accesses: the one place where both are asked.
pub(crate) async fn weigh(
    session: &SessionShared,
    visible: &Visible,
    access: &[AccessRequest],
    grants_answer: bool,
) -> (Arc<Policy>, Decision) {
    let policy = session.scope.policy();
    let mut decision = policy.decide(access, &asker(session, visible));
    // Grants answer unpinned asks and nothing else, so only those look for them.
    if grants_answer && matches!(&decision, Decision::Ask(ask) if !ask.pinned) {
        let grants = session.scope.remembered().await;
        if !grants.is_empty() {
            let asker = Asker { grants: &grants, ..asker(session, visible) };
            decision = policy.decide(access, &asker);
        }
    }
    (policy, decision)
}

/// Records an allow by rules and grants.
pub(crate) fn allowed(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    allow: Allow,
    facts: &mut Append,
) -> Permission {
    let ids: Vec<String> = allow.policy_ids.iter().map(ToString::to_string).collect();
    decided(session, question, Verdict::Allow, &allow.reason, &ids, &allow.grant_ids, facts);
    facts.records.extend(allow.grant_ids.iter().map(|id| grants::used(*id)));
    Permission {
        decision: Verdict::Allow,
        policy_ids: ids,
        ask_id: None,
        grant_ids: allow.grant_ids,
        approver: None,
        feedback: None,
    }
}

/// The deny pre-check of R5: deny rules only, by resolved names, before any content is opened (L37).
pub(crate) fn precheck_denies(
    session: &SessionShared,
    visible: &Visible,
    access: &[AccessRequest],
) -> Option<RuleDenial> {
    let policy = session.scope.policy();
    let asker = asker(session, visible);
    let weighed = || DecisionSubject::of(session, access, asker.default);
    policy.denies(access, &asker).map(|deny| RuleDenial { deny, precheck: true, weighed: weighed() })
}

fn asker<'a>(session: &'a SessionShared, visible: &Visible) -> Asker<'a> {
    Asker {
        agent: Some(&session.scope.agent),
        session: Some(session.key.session),
        project: Some(&session.scope.project),
        now: session.gate.clock.now(),
        default: default_policy(session, visible),
        grants: &[],
    }
}

fn default_policy(session: &SessionShared, visible: &Visible) -> DefaultPolicy {
    session.tools().choice.default_of(visible.name.as_str(), seam::semantics(visible.tool()))
}

/// A deny by rule, before or after runtime validation.
pub(crate) struct RuleDenial {
    deny: Deny,
    precheck: bool,
    weighed: DecisionSubject,
}

impl RuleDenial {
    pub(crate) fn refuse<T>(self, session: &SessionShared, visible: &Visible, facts: &mut Append) -> Step<T> {
        // A re-admitted intent has its `tool.permission` already; the void of its ask says what happened.
        if visible.intent.is_fresh() {
            self.note(session, &visible.intent, facts);
        }
        let refusal = self.refusal(&session.scope.policy(), visible.intent.ask().map(|ask| ask.ask_id));
        Step::Refused(refuse_and_void(session, &visible.intent, refusal, facts))
    }

    /// Found when everything that is asked was decided.
    pub(crate) fn late(deny: Deny, session: &SessionShared, question: &PermissionQuestion<'_>) -> Self {
        let weighed =
            DecisionSubject::of(session, question.access, default_policy(session, &question.validated.visible));
        Self { deny, precheck: false, weighed }
    }

    pub(crate) fn note(&self, session: &SessionShared, intent: &Intent, facts: &mut Append) {
        let fact = PermissionDecided {
            intent_id: intent.id,
            decision: Verdict::Deny,
            reason: session.tidy(&self.deny.reason, SUMMARY_MAX),
            policy_ids: self.policy_ids(),
            grant_ids: Vec::new(),
            resources: self.weighed.resources.clone(),
            partial: self.weighed.partial,
            default_policy: self.weighed.default_policy.clone(),
            precheck: self.precheck,
        };
        session.note(facts, intent.turn_id, &fact);
    }

    pub(crate) fn refusal(self, policy: &Policy, ask_id: Option<AskId>) -> Refusal {
        let permission = Permission {
            decision: Verdict::Deny,
            policy_ids: self.policy_ids(),
            ask_id,
            grant_ids: Vec::new(),
            approver: None,
            feedback: None,
        };
        let told = policy.without_files(&self.deny.reason, &self.deny.policy_ids);
        Refusal::new(Code::PolicyDenied, told).permission(permission)
    }

    fn policy_ids(&self) -> Vec<String> {
        self.deny.policy_ids.iter().map(ToString::to_string).collect()
    }
}

fn decided(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    decision: Verdict,
    reason: &str,
    policy_ids: &[String],
    grant_ids: &[portcullis_base::GrantId],
    facts: &mut Append,
) {
    let visible = &question.validated.visible;
    let intent = &visible.intent;
    let DecisionSubject { resources, partial, default_policy } =
        DecisionSubject::of(session, question.access, default_policy(session, visible));
    let fact = PermissionDecided {
        intent_id: intent.id,
        decision,
        reason: session.tidy(reason, SUMMARY_MAX),
        policy_ids: policy_ids.to_vec(),
        grant_ids: grant_ids.to_vec(),
        resources,
        partial,
        default_policy,
        precheck: false,
    };
    session.note(facts, intent.turn_id, &fact);
}

/// Records that a person must say, and asks if a person can be asked.
pub(crate) async fn raise(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    ask: Ask,
    policy: &Policy,
    facts: &mut Append,
) -> Result<RaisedAsk, Refusal> {
    let ids: Vec<String> = ask.policy_ids.iter().map(ToString::to_string).collect();
    decided(session, question, Verdict::Ask, &ask.reason, &ids, &[], facts);
    if session.scope.approvals == Approvals::Unavailable {
        let text = format!("{}, and nobody can be asked here", policy.without_files(&ask.reason, &ask.policy_ids));
        let permission = Permission {
            decision: Verdict::Ask,
            policy_ids: ids,
            ask_id: None,
            grant_ids: Vec::new(),
            approver: None,
            feedback: None,
        };
        return Err(Refusal::new(Code::ApprovalUnavailable, text).permission(permission));
    }
    // If what a person must see cannot be kept, nobody is asked.
    ask::raise(session, question, ask, policy, facts).await.map_err(|error| no_room(&error))
}

/// Whether a stored ask lets its call run: answered, in time, with a yes.
pub(crate) fn allows(ask: &fold::Ask) -> bool {
    ask.state == AskState::Answered && ask.reply.as_ref().is_some_and(|reply| reply.reply.allows())
}

/// The allow that let a client run a call; the rules that it went by stand in its `tool.permission`.
fn earlier(ask: Option<&fold::Ask>) -> Permission {
    match ask {
        Some(ask) => by_answer(ask, Vec::new()),
        None => Permission {
            decision: Verdict::Allow,
            policy_ids: Vec::new(),
            ask_id: None,
            grant_ids: Vec::new(),
            approver: None,
            feedback: None,
        },
    }
}

/// Why an ask that does not let its call run settles it.
pub(crate) fn unanswered_or_denied(ask: &fold::Ask) -> Refusal {
    let reply = ask.reply.as_ref().filter(|_| ask.state == AskState::Answered);
    let (code, text) = match (reply, ask.state) {
        (Some(reply), _) => {
            let words = reply.feedback.as_ref().map(|feedback| format!(": {feedback}")).unwrap_or_default();
            (Code::UserDenied, format!("{} said no{words}", reply.approver))
        }
        (None, AskState::Superseded) => (
            Code::ApprovalSuperseded,
            "the session was interrupted before this was answered; it did not run".to_owned(),
        ),
        (None, AskState::Voided) => {
            (Code::PolicyDenied, "the approval is void; call again to be asked again".to_owned())
        }
        (None, _) => (Code::ApprovalExpired, "nobody answered in time; ask again if it is still wanted".to_owned()),
    };
    // A person's no is a denial; what nobody answered is still a question.
    let said_no = reply.is_some_and(|reply| !reply.reply.allows());
    Refusal::new(code, text).permission(Permission {
        decision: if said_no { Verdict::Deny } else { Verdict::Ask },
        policy_ids: Vec::new(),
        ask_id: Some(ask.ask_id),
        grant_ids: Vec::new(),
        approver: reply.map(|reply| reply.approver.clone()),
        feedback: reply.and_then(|reply| reply.feedback.clone()),
    })
}

/// A stored intent comes back approved: the approval counts once, for exactly what was shown (tool-contract 13.7).
fn answered(
    session: &SessionShared,
    validated: Validated,
    ask: &fold::Ask,
    policy: &Policy,
    decision: Decision,
    facts: &mut Append,
) -> Step<Authorized> {
    let intent = &validated.visible.intent;
    if let Decision::Deny(deny) = decision {
        return RuleDenial::late(deny, session, &PermissionQuestion::of(&validated)).refuse(
            session,
            &validated.visible,
            facts,
        );
    }
    if !allows(ask) {
        return Step::Refused(refuse(session, intent, unanswered_or_denied(ask)));
    }
    if let Some(refusal) = difference(session, &PermissionQuestion::of(&validated), ask, policy) {
        return Step::Refused(refuse_and_void(session, intent, refusal, facts));
    }
    let permission = by_answer(ask, decision.policy_ids().iter().map(ToString::to_string).collect());
    Step::Next(Authorized { validated, permission })
}

/// The answer was known when the ask was raised: what it was given for and what may start are one and the same.
fn answered_at_once(
    session: &SessionShared,
    mut validated: Validated,
    ask: fold::Ask,
    policy_ids: Vec<String>,
) -> Step<Authorized> {
    let intent = &mut validated.visible.intent;
    if !allows(&ask) {
        return Step::Refused(refuse(session, intent, unanswered_or_denied(&ask)));
    }
    let permission = by_answer(&ask, policy_ids);
    let _entry = session.answered.enter(intent.id);
    intent.origin = Origin::Fresh { answered: Some(Box::new(AnsweredAtOnce { ask, _entry })) };
    Step::Next(Authorized { validated, permission })
}

/// The right that an answer gives.
fn by_answer(ask: &fold::Ask, policy_ids: Vec<String>) -> Permission {
    let reply = ask.reply.as_ref();
    Permission {
        decision: Verdict::Allow,
        policy_ids,
        ask_id: Some(ask.ask_id),
        grant_ids: reply.and_then(|reply| reply.grant_id).into_iter().collect(),
        approver: reply.map(|reply| reply.approver.clone()),
        feedback: None,
    }
}

/// Why an approval does not count for `question` any more: it was given for something else.
pub(crate) fn difference(
    session: &SessionShared,
    question: &PermissionQuestion<'_>,
    ask: &fold::Ask,
    policy: &Policy,
) -> Option<Refusal> {
    let visible = &question.validated.visible;
    let same_input = ask.input_hash == visible.intent.input_hash;
    let same_rules = ask.policy_revision == session.tools().choice.revision(policy);
    let same_tool = ask.definition_version == seam::version(visible.tool()).as_str();
    let same_principal = ask.principal == session.scope.principal;
    let same_view = ask.shown == ask::shown(session, question);
    let (code, why) = match (same_input && same_tool && same_principal, same_rules, same_view) {
        (true, true, true) => {
            (Code::StaleFileBaseline, Cow::Owned(binding::changed(&ask.bound, &binding::to(session, question))?))
        }
        (true, true, false) => {
            (Code::StaleFileBaseline, "what this call would do is no longer what was shown when it was approved".into())
        }
        (_, false, _) => (Code::PolicyDenied, "the rules changed after this was asked".into()),
        (false, ..) => (Code::PolicyDenied, "the call is not the one that was approved".into()),
    };
    let mut refusal = unanswered_or_denied(ask);
    refusal.code = code;
    refusal.phase = code.row().phases[0];
    refusal.summary = format!("{why}, so the approval is void; call again to be asked again");
    Some(refusal)
}

/// Why a call that was decided on may not start any more: while it waited for its turn, what it would do became something
/// else. Nobody decided on that.
pub(crate) async fn changed_meanwhile(session: &SessionShared, authorized: &Authorized) -> Option<Refusal> {
    let Validated { visible, input, access, prepared, around, caller, .. } = &authorized.validated;
    if visible.intent.arrived().is_some() {
        return None;
    }
    let tool = visible.tool();
    let again = guarded(|| {
        let resolved = seam::resolve(tool, input, caller).ok()?;
        Some(seam::plan_access(tool, &visible.name, input, &resolved))
    });
    // What cannot be resolved any more cannot run either; its tool says so.
    let differs = matches!(&again, Ok(Some(again)) if ask::names(again) != ask::names(access));
    let why = match (differs, visible.intent.ask()) {
        (true, _) => "what this call would do changed while it waited for its turn".to_owned(),
        (false, None) => return None,
        (false, Some(_)) => {
            let now = look(prepared).await.ok()?;
            binding::changed(&binding::of(session, around), &binding::of(session, &now))?
        }
    };
    let permission = authorized.permission.clone();
    Some(Refusal::new(Code::StaleFileBaseline, format!("{why}, so it did not run; call again")).permission(permission))
}

/// An approval that cannot take effect is recorded as void.
pub(crate) fn void_answered(session: &SessionShared, intent: &Intent, facts: &mut Append) {
    if let Some(ask) = intent.ask()
        && allows(ask)
    {
        close(session, intent, ask.ask_id, Closing::Voided, facts);
    }
}

pub(crate) fn close(session: &SessionShared, intent: &Intent, ask_id: AskId, state: Closing, facts: &mut Append) {
    let fact = AskClosed { ask_id, state, by: session.actor.as_str().to_owned() };
    session.note(facts, intent.turn_id, &fact);
}
