//! Finds the rules that speak of a resource without trying each one.
//!
//! Every pattern hangs on the part of it that is fixed: a path pattern on its leading folder, an
//! argv pattern on its first word, a host pattern on its name. A look-up walks the few keys that the
//! resource can hang on and verifies only what it finds there.

use std::collections::HashMap;

use crate::subject::Subject;
use crate::{ArgvPattern, HostPattern, PathPattern, ResourcePattern, Rule, Specificity, WordPattern};

/// A pattern of the rule with this number, and how closely it fits where it matches.
#[derive(Debug, Clone)]
struct Entry<P> {
    rule: usize,
    pattern: P,
    fit: Specificity,
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
    tools: HashMap<String, Vec<Entry<()>>>,
    tool_globs: Vec<Entry<WordPattern>>,
    any: Vec<usize>,
    opaque: Vec<usize>,
}

impl Index {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (rule, Rule { resource, .. }) in rules.iter().enumerate() {
            index.insert(rule, resource);
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
            ResourcePattern::McpTool(all) => {
                for pattern in all {
                    let fit = pattern.specificity();
                    match pattern.as_literal() {
                        Some(name) => {
                            self.tools.entry(name.to_owned()).or_default().push(Entry { rule, pattern: (), fit })
                        }
                        None => {
                            self.tool_globs.push(Entry { rule, pattern: pattern.clone(), fit });
                        }
                    }
                }
            }
        }
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
            Subject::McpTool(name) => {
                out.extend(all(&self.tools, name).map(|e| (e.rule, e.fit)));
                let fits = self.tool_globs.iter().filter(|e| accept(e.rule) && e.pattern.matches(name));
                out.extend(fits.map(|e| (e.rule, e.fit)));
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

fn all<'m, P>(map: &'m HashMap<String, Vec<Entry<P>>>, key: &str) -> impl Iterator<Item = &'m Entry<P>> {
    map.get(key).into_iter().flatten()
}
