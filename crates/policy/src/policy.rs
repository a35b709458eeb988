//! The rules of every layer, as one value that does not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_base::{Digest, fingerprint};
use portcullis_contract::Action;

use crate::index::Index;
use crate::{
    Asker, EnterprisePolicy, Layer, PathPattern, PolicyError, ResourcePattern, Rule, RuleEffect, RuleId, RuleRef,
    RuleSource,
};

/// What is recorded when a person trusts a project's rules file: the hash of exactly this text.
#[must_use]
pub fn file_hash(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Gathers rules.
#[derive(Debug, Clone, Default)]
pub struct PolicyBuilder {
    rules: Vec<Rule>,
    project_trusted: bool,
}

impl PolicyBuilder {
    /// Without any rule everything rests on the tools' defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds rules of any layer.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Adds the deny rules of the organisation.
    #[must_use]
    pub fn enterprise(self, enterprise: &EnterprisePolicy) -> Self {
        self.rules(enterprise.rules().iter().cloned())
    }

    /// Whether the user has trusted this exact project file.
    #[must_use]
    pub fn project_trust(mut self, trusted: bool) -> Self {
        self.project_trusted = trusted;
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// If two rules bear one id: a decision could not name which of them it rests on.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let mut by_id: BTreeMap<RuleId, Rule> = BTreeMap::new();
        for rule in self.rules {
            if let Some(first) = by_id.get(&rule.id) {
                return Err(PolicyError::DuplicateId {
                    id: rule.id.to_string(),
                    first: first.source.clone(),
                    second: rule.source,
                });
            }
            by_id.insert(rule.id.clone(), rule);
        }
        // Sorted by id: the order of writing is gone, and with it any way to depend on it (L28).
        let rules: Vec<Rule> = by_id.into_values().collect();
        let hashes: Vec<Digest> = rules.iter().map(Rule::hash).collect();
        let index = Index::new(&rules);
        let revision = revision(&rules, &hashes, self.project_trusted);
        Ok(Policy { rules, hashes, index, project_trusted: self.project_trusted, revision, parents: Vec::new() })
    }
}

fn revision(rules: &[Rule], hashes: &[Digest], project_trusted: bool) -> Digest {
    let parts: Vec<(&str, &Digest)> = rules.iter().map(|rule| rule.id.as_str()).zip(hashes).collect();
    // Invariant: texts and a bool are always JSON.
    fingerprint(&(project_trusted, parts)).expect("ids and hashes are JSON")
}

/// Files that a rule denies.
#[derive(Debug, Clone)]
pub struct DeniedPath {
    pub rule: RuleId,
    /// Which; `None` = every one.
    pub what: Option<PathPattern>,
}

/// A program that a rule denies whatever words follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedProgram {
    pub rule: RuleId,
    /// As the rule writes it.
    pub program: String,
}

/// The rules of all layers. Immutable: a change of rules is another policy with another revision.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Vec<Rule>,
    hashes: Vec<Digest>,
    index: Index,
    project_trusted: bool,
    revision: Digest,
    /// Whose decisions bind this one's as well (tool-contract 13.6).
    parents: Vec<Arc<Policy>>,
}

impl Policy {
    /// What a child may do that was sent by someone under `parent`: no more than both allow (tool-contract 13.6, L38).
    /// Every decision is the stricter of the two, at any depth.
    #[must_use]
    pub fn intersect(mut self, parent: &Arc<Self>) -> Self {
        self.parents.push(Arc::clone(parent));
        // Invariant: digests are always JSON.
        self.revision = fingerprint(&(self.revision, parent.revision)).expect("digests are JSON");
        self
    }

    pub(crate) fn parents(&self) -> &[Arc<Self>] {
        &self.parents
    }

    /// The fingerprint of what this policy decides, whatever order its rules were written in.
    #[must_use]
    pub fn revision(&self) -> Digest {
        self.revision
    }

    /// The same rules, with the project's allow rules in force or inert.
    #[must_use]
    pub fn with_project_trust(mut self, trusted: bool) -> Self {
        self.project_trusted = trusted;
        self.revision = revision(&self.rules, &self.hashes, trusted);
        for parent in std::mem::take(&mut self.parents) {
            self = self.intersect(&parent);
        }
        self
    }

    /// Every rule, by id.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Rules without effect: allows of a project file that the user has not trusted.
    pub fn inert_rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| self.is_inert(rule))
    }

    pub(crate) fn is_inert(&self, rule: &Rule) -> bool {
        !self.project_trusted && rule.layer == Layer::Project && rule.effect == RuleEffect::Allow
    }

    pub(crate) const fn project_trusted(&self) -> bool {
        self.project_trusted
    }

    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn reference(&self, rule: usize) -> RuleRef {
        let Rule { id, source, .. } = &self.rules[rule];
        RuleRef { id: id.clone(), source: Some(source.clone()), hash: self.hashes[rule] }
    }

    /// Whether a rule, of this policy or of one that binds it, can stop something that is done under `action`.
    #[must_use]
    pub fn may_stop(&self, action: &Action) -> bool {
        let stops = |rule: &Rule| rule.effect != RuleEffect::Allow && rule.action.matches(action);
        self.rules.iter().any(stops) || self.parents.iter().any(|parent| parent.may_stop(action))
    }

    /// What rules in force deny under one of `actions`, of this policy or of one that binds it: for whoever must keep
    /// the files themselves away, and not only decide about a name.
    #[must_use]
    pub fn denied_paths(&self, actions: &[Action], asker: &Asker<'_>) -> Vec<DeniedPath> {
        self.paths_with(RuleEffect::Deny, actions, asker)
    }

    /// The same of what rules ask about: nobody has said yes to it, either.
    #[must_use]
    pub fn asked_paths(&self, actions: &[Action], asker: &Asker<'_>) -> Vec<DeniedPath> {
        self.paths_with(RuleEffect::Ask, actions, asker)
    }

    /// The programs that rules deny as a whole under any of these actions. A rule about a verb is one about lines.
    #[must_use]
    pub fn denied_programs(&self, actions: &[Action], asker: &Asker<'_>) -> Vec<DeniedProgram> {
        let denies = |rule: &&Rule| {
            let speaks = actions.iter().any(|action| rule.action.matches(action));
            rule.effect == RuleEffect::Deny && speaks && rule.in_force(asker)
        };
        let mut out = Vec::new();
        for rule in self.rules.iter().filter(denies) {
            let ResourcePattern::Argv(all) = &rule.resource else { continue };
            let whole = all.iter().filter(|pattern| pattern.words().len() == 1 && !pattern.is_exact());
            out.extend(
                whole.map(|pattern| DeniedProgram { rule: rule.id.clone(), program: pattern.first().to_owned() }),
            );
        }
        out.extend(self.parents.iter().flat_map(|parent| parent.denied_programs(actions, asker)));
        out
    }

    fn paths_with(&self, effect: RuleEffect, actions: &[Action], asker: &Asker<'_>) -> Vec<DeniedPath> {
        let mut out = Vec::new();
        for rule in &self.rules {
            let speaks = rule.effect == effect && actions.iter().any(|action| rule.action.matches(action));
            if !speaks || !rule.in_force(asker) {
                continue;
            }
            let denied = |what| DeniedPath { rule: rule.id.clone(), what };
            match &rule.resource {
                ResourcePattern::Any => out.push(denied(None)),
                ResourcePattern::Path(all) => out.extend(all.iter().map(|pattern| denied(Some(pattern.clone())))),
                ResourcePattern::Argv(_)
                | ResourcePattern::Host(_)
                | ResourcePattern::Named(..)
                | ResourcePattern::Opaque => {}
            }
        }
        out.extend(self.parents.iter().flat_map(|parent| parent.paths_with(effect, actions, asker)));
        out
    }

    /// `reason` as a model may read it: where it names the file of one of these rules, it names the layer instead (R10).
    #[must_use]
    pub fn without_files(&self, reason: &str, rules: &[RuleId]) -> String {
        let named = self.rules.iter().filter(|rule| rules.contains(&rule.id));
        let own = named.fold(reason.to_owned(), |said, Rule { layer, source, .. }| {
            said.replace(&format!("({source})"), &format!("({} rules, line {})", layer.as_str(), source.line))
        });
        self.parents.iter().fold(own, |said, parent| parent.without_files(&said, rules))
    }

    /// Where a rule is written, of this policy or of one that binds it.
    #[must_use]
    pub fn place_of(&self, rule: &str) -> Option<&RuleSource> {
        let own = self.rules.iter().find(|known| known.id.as_str() == rule).map(|known| &known.source);
        own.or_else(|| self.parents.iter().find_map(|parent| parent.place_of(rule)))
    }

    /// The rule that denies `action` whatever it touches, if there is one: such a tool is not worth
    /// offering (tool-contract 8.2).
    #[must_use]
    pub fn wholly_denied(&self, action: &Action, asker: &Asker<'_>) -> Option<RuleId> {
        let denies =
            |rule: &&Rule| rule.effect == RuleEffect::Deny && rule.action.matches(action) && rule.in_force(asker);
        let own = self.index.any().iter().map(|i| &self.rules[*i]).find(denies).map(|rule| rule.id.clone());
        own.or_else(|| self.parents.iter().find_map(|parent| parent.wholly_denied(action, asker)))
    }
}
