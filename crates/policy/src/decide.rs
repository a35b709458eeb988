//! The evaluation of tool-contract 13.2, resource by resource, and what the parts add up to.

use std::collections::BTreeSet;

use portcullis_base::{GrantId, Risk, fingerprint};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource, ResourceKind};

use crate::restrict::RestrictedForms;
use crate::special_names::{BuiltIn, SpecialResource};
use crate::subject::Subject;
use crate::suggest::{self, AskedResource};
use crate::{
    Allow, Ask, Asker, Decision, Deny, Layer, Policy, ResourcePattern, Rule, RuleEffect, RuleId, RuleRef, Specificity,
};

/// What speaks for an effect: a rule of the policy, a rule that is built in, or the tool's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EffectSource {
    Rule(usize),
    /// A rule whose command may be hidden in what is asked about.
    Hidden(usize),
    BuiltIn(BuiltIn),
    ToolDefault,
}

/// The effect on one resource before grants, and whose voice it is.
type Verdict = (RuleEffect, EffectSource);

/// What is known so far about a whole call.
#[derive(Default)]
struct Tally<'r> {
    /// By number, which is the order of ids.
    matched: BTreeSet<usize>,
    defaults: BTreeSet<RuleId>,
    inert: BTreeSet<RuleId>,
    grants: BTreeSet<GrantId>,
    denied: Option<String>,
    allowed: Option<String>,
    asking: Vec<AskedResource<'r>>,
    /// Asks of the tool's default about commands that only look.
    looking: Vec<AskedResource<'r>>,
    /// Whether another command than those is decided about.
    acts: bool,
}

impl Policy {
    /// Decides a call: the strictest over all its requests and their resources.
    ///
    /// Equal rules, requests and asker give equal decisions. A call that names nothing is asked
    /// about (L31): what it would touch is not known.
    #[must_use]
    pub fn decide(&self, requests: &[AccessRequest], asker: &Asker<'_>) -> Decision {
        let own = self.decide_alone(requests, asker);
        self.parents().iter().fold(own, |so_far, parent| so_far.strictest(parent.decide(requests, asker)))
    }

    fn decide_alone(&self, requests: &[AccessRequest], asker: &Asker<'_>) -> Decision {
        let mut tally = Tally::default();
        for request in requests {
            for resource in request.resources() {
                self.weigh(request, resource, asker, &mut tally);
            }
        }
        // Beside other commands, what only looks needs no answer of its own; by itself it is asked about.
        if !tally.acts {
            tally.asking.append(&mut tally.looking);
        }
        let written = tally.matched.into_iter().map(|rule| self.rules()[rule].id.clone());
        let mut policy_ids: Vec<RuleId> = written.chain(tally.defaults).collect();
        policy_ids.sort();
        if let Some(reason) = tally.denied {
            return Decision::Deny(Deny { reason, policy_ids });
        }
        if tally.asking.is_empty()
            && let Some(reason) = tally.allowed
        {
            let grant_ids = tally.grants.into_iter().collect();
            return Decision::Allow(Allow { reason, policy_ids, grant_ids });
        }
        // A pinned ask is the stricter one, and therefore the one shown.
        let hiding = tally.asking.iter().find(|ask| ask.denied);
        let shown = hiding.or(tally.asking.iter().find(|ask| ask.pinned)).or(tally.asking.first());
        let reason = match shown {
            None => "the call names nothing that it would touch".to_owned(),
            Some(ask) => format!("{}{}{}", ask.reason, suggest::also(ask, &tally.asking), would_allow(&tally.inert)),
        };
        Decision::Ask(Ask {
            pinned: shown.is_some_and(|ask| ask.pinned),
            only_a_person: hiding.is_some(),
            reason,
            policy_ids,
            deciding: shown.map(|ask| ask.deciding.clone()),
            suggested_rules: suggest::exactly(&tally.asking),
        })
    }

    /// The pre-check of R5: deny rules only, by name alone. `None` says nothing about allow or ask.
    #[must_use]
    pub fn denies(&self, requests: &[AccessRequest], asker: &Asker<'_>) -> Option<Deny> {
        let mut ids = BTreeSet::new();
        let mut reason = None;
        for request in requests {
            for resource in request.resources() {
                let subject = Subject::of(resource);
                let inside = self.restricting(&request.action, resource, &subject, asker).sure;
                for (rule, _) in self.matching(&request.action, &subject, asker).into_iter().chain(inside) {
                    if self.rules()[rule].effect == RuleEffect::Deny {
                        ids.insert(self.rules()[rule].id.clone());
                        reason.get_or_insert_with(|| self.say(EffectSource::Rule(rule), "denies", request, resource));
                    }
                }
            }
        }
        for above in self.parents().iter().filter_map(|parent| parent.denies(requests, asker)) {
            reason.get_or_insert(above.reason);
            ids.extend(above.policy_ids);
        }
        reason.map(|reason| Deny { reason, policy_ids: ids.into_iter().collect() })
    }

    /// Rules in force that match, in the order of their ids, each with its closest fit.
    fn matching(&self, action: &Action, subject: &Subject, asker: &Asker<'_>) -> Vec<(usize, Specificity)> {
        self.index().matching(subject, |rule| {
            let rule = &self.rules()[rule];
            rule.action.matches(action) && rule.in_force(asker)
        })
    }

    fn weigh<'r>(&self, request: &'r AccessRequest, resource: &'r Resource, asker: &Asker<'_>, tally: &mut Tally<'r>) {
        let subject = Subject::of(resource);
        let classed = SpecialResource::of(request, resource, &subject);
        let covers = |pattern: &ResourcePattern| {
            pattern.may_allow(&subject) && classed.as_ref().is_none_or(|classed| classed.is_named_by(pattern))
        };
        let mut pool = Vec::new();
        for (rule, fit) in self.matching(&request.action, &subject, asker) {
            let Rule { id, effect, resource, .. } = &self.rules()[rule];
            if self.is_inert(&self.rules()[rule]) {
                tally.inert.insert(id.clone());
            } else if *effect != RuleEffect::Allow || covers(resource) {
                tally.matched.insert(rule);
                pool.push((rule, fit));
            }
        }
        let RestrictedForms { sure, hidden } = self.restricting(&request.action, resource, &subject, asker);
        for (rule, fit) in sure {
            if tally.matched.insert(rule) || !pool.iter().any(|hit| hit.0 == rule) {
                pool.push((rule, fit));
            }
        }
        let by_default = tool_default(request, resource, &subject, asker.default);
        let (by_default, nobody) = match &classed {
            Some(classed) => (by_default.max(RuleEffect::Ask), EffectSource::BuiltIn(classed.class)),
            None => (by_default, EffectSource::ToolDefault),
        };
        tally.matched.extend(&hidden);
        // A deny is the stricter one, and therefore the one that is named.
        let hidden = hidden.iter().copied().max_by_key(|rule| (self.rules()[*rule].effect, std::cmp::Reverse(*rule)));
        let (effect, voice) = match (self.verdict(&pool, by_default), hidden) {
            (verdict @ (RuleEffect::Deny, _), _) => verdict,
            (_, Some(rule)) => (RuleEffect::AskPinned, EffectSource::Hidden(rule)),
            ((effect, EffectSource::ToolDefault), None) => (effect, nobody),
            (ruled, None) => ruled,
        };
        match voice {
            EffectSource::Rule(_) | EffectSource::Hidden(_) => {}
            EffectSource::BuiltIn(class) => drop(tally.defaults.insert(RuleId::built_in(class.word()))),
            EffectSource::ToolDefault => drop(tally.defaults.insert(RuleId::tool_default(request.action.as_str()))),
        }
        let looks = effect == RuleEffect::Ask && voice == EffectSource::ToolDefault && self.only_looks(resource, asker);
        tally.acts |= resource.kind == ResourceKind::Argv && !looks;
        match effect {
            RuleEffect::Deny => {
                tally.denied.get_or_insert_with(|| self.say(voice, "denies", request, resource));
            }
            RuleEffect::Allow => {
                tally.allowed.get_or_insert_with(|| self.say(voice, "allows", request, resource));
            }
            RuleEffect::Ask | RuleEffect::AskPinned => {
                let pinned = effect == RuleEffect::AskPinned;
                let deciding = match voice {
                    EffectSource::Rule(rule) | EffectSource::Hidden(rule) => self.reference(rule),
                    EffectSource::BuiltIn(class) => built_in_reference(&request.action, class),
                    EffectSource::ToolDefault => default_reference(&request.action, asker.default),
                };
                // What is fed was never shown by its words, so that no remembered answer is about it (L33).
                let granted = asker
                    .grants
                    .iter()
                    .filter(|g| !pinned && !resource.fed && covers(&g.rule.resource))
                    .filter(|g| g.answers(&deciding, &request.action, &subject, asker))
                    .map(|grant| grant.id)
                    .min();
                if let Some(id) = granted {
                    tally.allowed.get_or_insert_with(|| format!("grant {id} answers rule `{}`", deciding.id));
                    tally.grants.insert(id);
                } else {
                    let mut reason = self.say(voice, "asks about", request, resource);
                    if let Some(classed) = &classed {
                        reason.push_str(&format!(": {}", classed.said()));
                    }
                    let action = &request.action;
                    let denied =
                        matches!(voice, EffectSource::Hidden(rule) if self.rules()[rule].effect == RuleEffect::Deny);
                    let asks = if looks { &mut tally.looking } else { &mut tally.asking };
                    asks.push(AskedResource { action, resource, subject, pinned, denied, deciding, reason });
                }
            }
        }
    }

    /// Steps 1 to 4 of tool-contract 13.2, with one care for L29. An ask of an untrusted project decides only where
    /// the other rules would allow. Where they ask anyway the ask stays theirs, so that a grant given
    /// for the project's rule never answers in the place of another rule's.
    fn verdict(&self, pool: &[(usize, Specificity)], by_default: RuleEffect) -> Verdict {
        let all = self.steps(pool, by_default);
        let (RuleEffect::Ask, EffectSource::Rule(rule)) = all else {
            return all;
        };
        if self.project_trusted() || self.rules()[rule].layer != Layer::Project {
            return all;
        }
        let others: Vec<_> = pool.iter().copied().filter(|hit| self.rules()[hit.0].layer != Layer::Project).collect();
        match self.steps(&others, by_default) {
            (RuleEffect::Allow, _) => all,
            theirs => theirs,
        }
    }

    fn steps(&self, pool: &[(usize, Specificity)], by_default: RuleEffect) -> Verdict {
        let first = |effect| {
            let hit = pool.iter().find(|hit| self.rules()[hit.0].effect == effect);
            hit.map(|hit| (effect, EffectSource::Rule(hit.0)))
        };
        if let Some(verdict) = first(RuleEffect::Deny).or_else(|| first(RuleEffect::AskPinned)) {
            return verdict;
        }
        // The tool's default is a layer like the others: pinned, it cannot be outvoted either (R8).
        if by_default == RuleEffect::AskPinned {
            return (by_default, EffectSource::ToolDefault);
        }
        let rank = |hit: &(usize, Specificity)| (std::cmp::Reverse(self.rules()[hit.0].layer), hit.1);
        let Some(best) = pool.iter().map(rank).max() else {
            return (by_default, EffectSource::ToolDefault);
        };
        let mut top = pool.iter().filter(|hit| rank(hit) == best).map(|hit| hit.0);
        let asks = top.clone().find(|rule| self.rules()[*rule].effect == RuleEffect::Ask);
        match asks.or_else(|| top.next()) {
            Some(rule) => (self.rules()[rule].effect, EffectSource::Rule(rule)),
            None => (by_default, EffectSource::ToolDefault),
        }
    }

    fn say(&self, voice: EffectSource, verb: &str, request: &AccessRequest, resource: &Resource) -> String {
        let who = match voice {
            EffectSource::Rule(rule) => {
                let Rule { id, source, .. } = &self.rules()[rule];
                format!("rule `{id}` ({source})")
            }
            EffectSource::Hidden(rule) => {
                let Rule { id, source, resource: denied, effect, .. } = &self.rules()[rule];
                let (says, who) = match effect {
                    RuleEffect::Deny => ("denies", "only a person can allow it, no flag and no earlier answer"),
                    _ => ("asks every time about", "a person has to look"),
                };
                let shown = suggest::shown(resource);
                return format!(
                    "rule `{id}` ({source}) {says} {denied}, which {shown} may run without naming it; {who}"
                );
            }
            EffectSource::BuiltIn(class) => format!("the built-in rule `{}`", RuleId::built_in(class.word())),
            EffectSource::ToolDefault => "the tool's default".to_owned(),
        };
        format!("{who} {verb} `{}` on {}", request.action, suggest::shown(resource))
    }
}

/// What the weakest layer says of one resource.
fn tool_default(request: &AccessRequest, resource: &Resource, subject: &Subject, default: DefaultPolicy) -> RuleEffect {
    let inside = resource.inside && *subject != Subject::Opaque;
    let only_reads = !request.risk.is_empty() && request.risk.iter().all(|risk| *risk == Risk::Read);
    match default {
        DefaultPolicy::AskPinned => RuleEffect::AskPinned,
        DefaultPolicy::Allow if inside => RuleEffect::Allow,
        DefaultPolicy::Auto if inside && only_reads => RuleEffect::Allow,
        DefaultPolicy::Allow | DefaultPolicy::Auto | DefaultPolicy::Ask => RuleEffect::Ask,
    }
}

/// The name and hash a tool's default has for grants; another default is another hash.
fn default_reference(action: &Action, default: DefaultPolicy) -> RuleRef {
    // Invariant: a word and an enum are always JSON.
    let hash = fingerprint(&("tool_default", action, default)).expect("a default is JSON");
    RuleRef { id: RuleId::tool_default(action.as_str()), source: None, hash }
}

/// The same of a built-in rule.
fn built_in_reference(action: &Action, class: BuiltIn) -> RuleRef {
    // Invariant: words are always JSON.
    let hash = fingerprint(&("built_in", action, class.word())).expect("words are JSON");
    RuleRef { id: RuleId::built_in(class.word()), source: None, hash }
}

fn would_allow(inert: &BTreeSet<RuleId>) -> String {
    match inert.first() {
        None => String::new(),
        Some(id) => format!("; rule `{id}` would allow it once its project file is trusted"),
    }
}
