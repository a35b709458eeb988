//! Finds the rules that speak of a resource without trying each one.
//!
//! Every pattern hangs on the part of it that is fixed: a path pattern on its leading folder, an
//! argv pattern on its first word, a host pattern on its name. A look-up walks the few keys that the
//! resource can hang on and verifies only what it finds there.

use std::collections::HashMap;

use crate::fit::{Fit, program_key};
use crate::subject::Subject;
use crate::{ArgvPattern, HostPattern, PathPattern, ResourcePattern, Rule, RuleEffect, Specificity, WordPattern};
use portcullis_command::verbs::hyphenated;
use portcullis_command::{base, rule_by_script, same_commands};
use portcullis_contract::NamedKind;

/// A pattern of the rule with this number, and how closely it fits where it matches.
#[derive(Debug, Clone)]
struct Entry<P> {
    rule: usize,
    pattern: P,
    fit: Specificity,
}

/// Patterns over the names of one kind.
#[derive(Debug, Clone, Default)]
struct Names {
    exact: HashMap<String, Vec<Entry<()>>>,
    globs: Vec<Entry<WordPattern>>,
}

/// The rules by what they can match. Numbers are places in the policy's sorted list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// Patterns that are one path, by it.
    paths: HashMap<String, Vec<Entry<()>>>,
    /// Patterns beneath a folder, by it; the root is the empty text.
    folders: HashMap<String, Vec<Entry<PathPattern>>>,
    argv: HashMap<String, Vec<Entry<ArgvPattern>>>,
    hosts: HashMap<String, Vec<Entry<HostPattern>>>,
    named: HashMap<NamedKind, Names>,
    any: Vec<usize>,
    opaque: Vec<usize>,
    /// Patterns of rules that forbid a command or pin an ask about it, by their program under every name it has.
    restricting: HashMap<String, Vec<Entry<ArgvPattern>>>,
    /// Those rules, in order.
    restricting_rules: Vec<usize>,
}

impl Index {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (rule, Rule { resource, effect, .. }) in rules.iter().enumerate() {
            index.insert(rule, resource);
            if let (ResourcePattern::Argv(all), RuleEffect::Deny | RuleEffect::AskPinned) = (resource, effect) {
                index.restricting_rules.push(rule);
                all.iter().for_each(|pattern| index.insert_restricting(rule, pattern));
            }
        }
        index
    }

    fn insert(&mut self, rule: usize, resource: &ResourcePattern) {
        match resource {
            ResourcePattern::Any => self.any.push(rule),
            ResourcePattern::Opaque => self.opaque.push(rule),
            ResourcePattern::Path(all) => {
                for pattern in all {
                    let fit = pattern.specificity();
                    let (anchor, exact) = pattern.anchor();
                    let anchor = anchor.to_owned();
                    if exact {
                        self.paths.entry(anchor).or_default().push(Entry { rule, pattern: (), fit });
                    } else {
                        let entry = Entry { rule, pattern: pattern.clone(), fit };
                        self.folders.entry(anchor).or_default().push(entry);
                    }
                }
            }
            ResourcePattern::Argv(all) => {
                for pattern in all {
                    let entry = Entry { rule, pattern: pattern.clone(), fit: pattern.specificity() };
                    self.argv.entry(pattern.first().to_owned()).or_default().push(entry);
                }
            }
            ResourcePattern::Host(all) => {
                for pattern in all {
                    let entry = Entry { rule, pattern: pattern.clone(), fit: pattern.specificity() };
                    self.hosts.entry(pattern.name().to_owned()).or_default().push(entry);
                }
            }
            ResourcePattern::Named(kind, all) => {
                let names = self.named.entry(*kind).or_default();
                for pattern in all {
                    let fit = pattern.specificity();
                    match pattern.as_literal() {
                        Some(name) => {
                            names.exact.entry(name.to_owned()).or_default().push(Entry { rule, pattern: (), fit })
                        }
                        None => names.globs.push(Entry { rule, pattern: pattern.clone(), fit }),
                    }
                }
            }
        }
    }

    /// A pattern over commands; `docker-compose` is also the verb `compose` of `docker`, `docker run` also
    /// `docker container run`, and `python3 manage.py` the script alone.
    fn insert_restricting(&mut self, rule: usize, pattern: &ArgvPattern) {
        let fit = pattern.specificity();
        let mut insert = |pattern: ArgvPattern| {
            let key = program_key(pattern.first()).to_owned();
            self.restricting.entry(key).or_default().push(Entry { rule, pattern, fit });
        };
        if let Some((program, verb)) = hyphenated(pattern.first()) {
            insert(pattern.beginning_with(&[program.to_owned(), verb.to_owned()]));
        }
        let same = same_commands(pattern.words()).into_iter().chain(rule_by_script(pattern.words()));
        same.for_each(|words| insert(pattern.with_words(words)));
        insert(pattern.clone());
    }

    /// Whether any rule forbids a command or pins an ask about it.
    pub(crate) fn restricts_commands(&self) -> bool {
        !self.restricting_rules.is_empty()
    }

    /// Whether a word may be a program that such a rule names.
    pub(crate) fn restricts(&self, word: &str) -> bool {
        let names = |name: &str| self.restricting.contains_key(program_key(name));
        let verb = |name: &str| hyphenated(base(name)).is_some_and(|(program, _)| names(program));
        std::iter::once(word).chain(attached(word)).any(|name| names(name) || verb(name))
    }

    /// Those rules.
    pub(crate) fn restricting_rules(&self) -> impl Iterator<Item = usize> {
        self.restricting_rules.iter().copied()
    }

    /// How rules that forbid, and that `accept` takes, fit a command whose open words are marked.
    pub(crate) fn restricting(
        &self,
        form: &[String],
        accept: impl Fn(usize) -> bool,
    ) -> Vec<(usize, Fit, Specificity)> {
        let Some(program) = form.first() else { return Vec::new() };
        let entries = all(&self.restricting, program_key(program)).filter(|entry| accept(entry.rule));
        entries.map(|entry| (entry.rule, entry.pattern.fits_restricting(form), entry.fit)).collect()
    }

    /// Rules that name no resource.
    pub(crate) fn any(&self) -> &[usize] {
        &self.any
    }

    /// Every rule that `accept` takes and whose resource pattern fits, once each, in order, with its
    /// closest fit. Acceptance is asked first: it is cheaper than a pattern.
    pub(crate) fn matching(&self, subject: &Subject, accept: impl Fn(usize) -> bool) -> Vec<(usize, Specificity)> {
        let mut out: Vec<(usize, Specificity)> = Vec::new();
        match subject {
            Subject::Path(path) => {
                out.extend(all(&self.paths, path).map(|e| (e.rule, e.fit)));
                let mut folder = Some(path.as_str());
                while let Some(at) = folder {
                    let fits = all(&self.folders, at).filter(|e| accept(e.rule) && e.pattern.matches(path));
                    out.extend(fits.map(|e| (e.rule, e.fit)));
                    folder = at.rfind('/').map(|cut| &at[..cut]);
                }
            }
            Subject::Argv(argv) => {
                let first = argv.first().map_or("", String::as_str);
                let fits = all(&self.argv, first).filter(|e| e.pattern.matches(argv));
                out.extend(fits.map(|e| (e.rule, e.fit)));
            }
            Subject::Host(host) => {
                let mut name = Some(host.as_str());
                while let Some(at) = name {
                    let fits = all(&self.hosts, at).filter(|e| e.pattern.matches(host));
                    out.extend(fits.map(|e| (e.rule, e.fit)));
                    name = at.split_once('.').map(|(_, parent)| parent);
                }
            }
            Subject::Named(kind, name) => {
                if let Some(names) = self.named.get(kind) {
                    out.extend(all(&names.exact, name).map(|e| (e.rule, e.fit)));
                    let fits = names.globs.iter().filter(|e| accept(e.rule) && e.pattern.matches(name));
                    out.extend(fits.map(|e| (e.rule, e.fit)));
                }
            }
            Subject::Opaque => {
                out.extend(self.opaque.iter().map(|rule| (*rule, ResourcePattern::OPAQUE_FIT)));
            }
            Subject::Secret => {}
        }
        out.extend(self.any.iter().map(|rule| (*rule, Specificity::new(0, 0, false))));
        out.retain(|hit| accept(hit.0));
        // Closest first inside a rule, so that the one kept is the closest.
        out.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        out.dedup_by_key(|hit| hit.0);
        out
    }
}

/// What a word may hold that begins with something else: the value of an option or of a variable.
pub(crate) fn attached(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let letter = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
    value.into_iter().chain(letter).filter(|value| !value.is_empty())
}

fn all<'m, P>(map: &'m HashMap<String, Vec<Entry<P>>>, key: &str) -> impl Iterator<Item = &'m Entry<P>> {
    map.get(key).into_iter().flatten()
}
