//! Commands of a line that only look (tool-contract 13.3): beside commands that are decided about by themselves they need no
//! rule of their own.
//!
//! What is set aside here is an ask of the tool's default and nothing else: a rule that speaks of the command, a denied command
//! that may hide in it and a pinned default are decided before.

use portcullis_base::{Risk, RiskSet};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource};

use crate::{Asker, Decision, Policy, ResourcePattern, RuleEffect};

/// The action under which the places are read that such a command names.
const READ: &str = "read";

impl Policy {
    /// Whether a command only looks, and at nothing that would be asked about: then, alone, it would run unasked.
    pub(crate) fn only_looks(&self, resource: &Resource, asker: &Asker<'_>) -> bool {
        let Some(places) = resource.looks_at.as_ref().filter(|_| asker.default == DefaultPolicy::Auto) else {
            return false;
        };
        // Another command of the line may put a file that is asked about in the place of one that is not.
        let sure = places.is_empty() || !self.asks_about_reading(asker);
        let words_are_all = !resource.fed && resource.command.open.is_empty() && !resource.command.hides;
        sure && words_are_all && places.iter().all(|place| self.reads_unasked(place, asker))
    }

    fn reads_unasked(&self, place: &Resource, asker: &Asker<'_>) -> bool {
        let read = AccessRequest::new(Action::new(READ), place.clone(), RiskSet::from([Risk::Read]));
        matches!(self.decide(&[read], &Asker { grants: &[], ..*asker }), Decision::Allow(_))
    }

    fn asks_about_reading(&self, asker: &Asker<'_>) -> bool {
        let read = Action::new(READ);
        self.rules().iter().any(|rule| {
            matches!(rule.effect, RuleEffect::Ask | RuleEffect::AskPinned)
                && !matches!(
                    rule.resource,
                    ResourcePattern::Argv(_) | ResourcePattern::Host(_) | ResourcePattern::Named(..)
                )
                && rule.action.matches(&read)
                && rule.in_force(asker)
        })
    }
}
