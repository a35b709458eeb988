//! Rules that are well-formed and still do nothing: they can never match, or another always decides first.

use std::fmt;

use portcullis_base::{Timestamp, edits};
use portcullis_contract::{Action, NamedKind, ResourceKind};

use crate::literal::{StrayWord, stray};
use crate::named::rule_key;
use crate::{ArgvPattern, Layer, PathPattern, ResourcePattern, Rule, RuleEffect, RuleId, RuleSource, Scope, WORKSPACE};

/// Letters by which a misspelt word may differ from the one that was meant.
const TYPO: usize = 2;

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("can never match: it ran out at {0}; remove it, or give it a later time")]
    Expired(Timestamp),
    #[error("can never match {0}: paths are virtual, and the workspace is {WORKSPACE}; write the path as it is there")]
    OutOfReach(String),
    #[error("can never match {0:?}: it begins or ends with a blank; take the blanks away")]
    Blank(String),
    #[error("can never match {pattern}: {why}")]
    Literal { pattern: String, why: String },
    #[error("does not match what {pattern} seems to mean: {why}")]
    Wildcard { pattern: String, why: String },
    #[error("names the action `{action}`, which no tool has; `{nearest}` was meant, perhaps")]
    Misspelt { action: String, nearest: String },
    #[error(
        "can never match: no tool has the action `{action}`; those of this build are {known}. A rule for a tool that a \
         client runs names the tool with `mcp_tool` as well"
    )]
    NoTool { action: String, known: String },
    #[error("can never match: what `{action}` does is not decided by {kind}; {instead}")]
    NoSuchKind { action: String, kind: String, instead: String },
    #[error(
        "never decides: {actions} asks every time by its own default, which only a deny changes; a rule for the `bash` of \
         `--profile code` has action = \"bash\" or \"*\""
    )]
    Pinned { actions: String },
    #[error("can never match the project {project:?}: {why}")]
    Project { project: String, why: &'static str },
    #[error(
        "does not hold for {left}: the same words run there as well; write action = \"*\", or a rule of its own for each"
    )]
    OtherTools { left: String },
    #[error("never decides: {by} ({place}) {why}; remove one of the two")]
    Shadowed { by: RuleId, place: RuleSource, why: &'static str },
}

/// A rule that does nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: RuleId,
    pub source: RuleSource,
    pub fault: Fault,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: rule `{}` {}", self.source, self.rule, self.fault)
    }
}

/// What rules about one action can match. A tool that a client runs is known to nobody here; a rule that names it with
/// `mcp_tool` is taken at its word.
#[derive(Debug, Clone, Copy)]
pub struct ActionReach<'a> {
    pub action: &'a str,
    /// The kinds of resources that are touched under it, and the effects of a rule about such a resource that count.
    pub kinds: &'a [(ResourceKind, &'a [RuleEffect])],
    /// The tool's own default asks every time.
    pub pinned: bool,
}

impl ActionReach<'_> {
    fn counts(&self, kind: ResourceKind, effect: RuleEffect) -> bool {
        self.kinds.iter().any(|(known, effects)| *known == kind && effects.contains(&effect))
    }
}

/// Every finding, in the order of the rules. `actions` are those of the tools there are.
#[must_use]
pub fn lint(rules: &[Rule], actions: &[ActionReach<'_>], now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let mut found = |fault| findings.push(Finding { rule: rule.id.clone(), source: rule.source.clone(), fault });
        if let Some(end) = rule.expires_at.filter(|end| *end <= now) {
            found(Fault::Expired(end));
            continue;
        }
        match &rule.resource {
            ResourcePattern::Path(all) => all.iter().filter_map(stray_path).for_each(&mut found),
            ResourcePattern::Argv(all) => {
                all.iter().filter_map(|pattern| stray_words(pattern, rule.effect)).for_each(&mut found);
            }
            _ => {}
        }
        if let Some(fault) = rule.scope.project.as_deref().and_then(stray_project) {
            found(fault);
        }
        if let Some(fault) = out_of_reach(rule, actions).or_else(|| pinned_by_default(rule, actions)) {
            found(fault);
        }
        // What decides before a rule that matches nothing is of no interest.
        if findings.last().is_some_and(|last: &Finding| last.rule == rule.id) {
            continue;
        }
        if let Some(fault) = left_to_others(rule, rules, actions) {
            findings.push(Finding { rule: rule.id.clone(), source: rule.source.clone(), fault });
        }
        let others = rules.iter().enumerate().filter(|(i, _)| *i != at);
        let in_force = others.filter(|(_, other)| other.expires_at.is_none());
        let shadow = in_force.into_iter().find_map(|(i, other)| {
            // Of two that say the same, the one written first stays.
            let mutual = covers(rule, other) && rule.effect == other.effect && rule.layer == other.layer;
            if !covers(other, rule) || (mutual && at < i) {
                return None;
            }
            outweighs(other, rule, mutual).map(|why| (other, why))
        });
        if let Some((other, why)) = shadow {
            let fault = Fault::Shadowed { by: other.id.clone(), place: other.source.clone(), why };
            findings.push(Finding { rule: rule.id.clone(), source: rule.source.clone(), fault });
        }
    }
    findings
}

fn stray_path(pattern: &PathPattern) -> Option<Fault> {
    let text = pattern.as_str();
    let named = text.strip_prefix(WORKSPACE).and_then(|rest| rest.strip_prefix('/')).unwrap_or(text);
    if named.trim() != named {
        return Some(Fault::Blank(named.to_owned()));
    }
    let meant = |why: &str| Some(Fault::Wildcard { pattern: pattern.to_string(), why: why.to_owned() });
    if named.starts_with('$') {
        return meant("a path in a rule has no variables; write it as it is beneath /workspace");
    }
    if named.starts_with("!/") || named.starts_with("!**") {
        return meant("`!` excludes nothing; write a rule of its own with another effect for what is excluded");
    }
    (!within_reach(pattern)).then(|| Fault::OutOfReach(pattern.to_string()))
}

/// Why no workspace is called so, if so: a project is the absolute path of a workspace, links resolved.
fn stray_project(project: &str) -> Option<Fault> {
    let names = || project.split('/').skip(1);
    let why = if project.starts_with('~') || project.starts_with('$') {
        "a home or a variable is not filled in; write the absolute path of the workspace"
    } else if !project.starts_with('/') {
        "it is compared with the absolute path of the workspace; write that"
    } else if project.contains(['*', '?']) {
        "it is no pattern; write a rule for each workspace, or leave `project` out"
    } else if names().any(|name| matches!(name, "." | "..")) || project.contains("//") {
        "a workspace has its shortest path; write it without `.`, `..` and `//`"
    } else {
        return None;
    };
    Some(Fault::Project { project: project.to_owned(), why })
}

/// The tools that run the words which a rule forbids, or asks about each time, and that neither this rule nor another one
/// keeps from it.
fn left_to_others(rule: &Rule, rules: &[Rule], actions: &[ActionReach<'_>]) -> Option<Fault> {
    if rule.effect < RuleEffect::AskPinned || !matches!(rule.resource, ResourcePattern::Argv(_)) {
        return None;
    }
    let covered = |action: &Action| {
        rules.iter().any(|other| {
            let same_people = other.scope == Scope::default() || other.scope == rule.scope;
            let as_lasting = other.expires_at.is_none() || other.expires_at == rule.expires_at;
            let strict = other.effect >= rule.effect && as_lasting && same_people;
            strict && other.action.matches(action) && covers_resource(&other.resource, &rule.resource)
        })
    };
    let commands = actions.iter().filter(|known| known.counts(ResourceKind::Argv, rule.effect));
    let left: Vec<String> = commands
        .filter(|known| !covered(&Action::new(known.action)))
        .map(|known| format!("`{}`", known.action))
        .collect();
    (!left.is_empty()).then(|| Fault::OtherTools { left: left.join(" and ") })
}

fn within_reach(pattern: &PathPattern) -> bool {
    let (anchor, exact) = pattern.anchor();
    let beneath = anchor.strip_prefix(WORKSPACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // A pattern with a wildcard right after the root may reach anything.
    beneath || (anchor.is_empty() && !exact)
}

fn stray_words(pattern: &ArgvPattern, effect: RuleEffect) -> Option<Fault> {
    let shown = pattern.to_string();
    Some(match stray(pattern, effect)? {
        StrayWord::Never(why) => Fault::Literal { pattern: shown, why },
        StrayWord::Wildcard(why) => Fault::Wildcard { pattern: shown, why },
    })
}

/// Why nothing that is done here is of the rule's action and kind, if so.
fn out_of_reach(rule: &Rule, actions: &[ActionReach<'_>]) -> Option<Fault> {
    let action = rule.action.to_string();
    let meant: Vec<&ActionReach<'_>> =
        actions.iter().filter(|known| rule.action.matches(&Action::new(known.action))).collect();
    if meant.is_empty() {
        let nearest =
            rule.action.literal_word().and_then(|word| probably_meant(word, actions.iter().map(|a| a.action)));
        if let Some(nearest) = nearest {
            return Some(Fault::Misspelt { action, nearest: nearest.to_owned() });
        }
        let elsewhere = matches!(rule.resource, ResourcePattern::Named(NamedKind::McpTool, _)) || actions.is_empty();
        let known = || list(actions.iter().map(|known| known.action));
        return (!elsewhere).then(|| Fault::NoTool { action, known: known() });
    }
    let (kind, key, words) = match &rule.resource {
        ResourcePattern::Path(_) => (ResourceKind::Path, "path", "paths".to_owned()),
        ResourcePattern::Argv(_) => (ResourceKind::Argv, "argv", "the words of a command".to_owned()),
        ResourcePattern::Host(_) => (ResourceKind::Host, "host", "hosts".to_owned()),
        // A glob also means the tools that clients run.
        ResourcePattern::Named(NamedKind::McpTool, _) if rule.action.literal_word().is_none() => return None,
        ResourcePattern::Named(kind, _) => {
            let key = rule_key(*kind);
            (ResourceKind::Named(*kind), key, format!("names for `{key}`"))
        }
        ResourcePattern::Opaque => return None,
        ResourcePattern::Any => {
            // A tool that is denied altogether is not offered.
            let counts = rule.effect == RuleEffect::Deny || meant.iter().any(|known| !known.kinds.is_empty());
            let instead =
                "it stands for other tools, and rules about these decide; a deny of it takes it away".to_owned();
            return (!counts).then_some(Fault::NoSuchKind { action, kind: "a rule of its own".to_owned(), instead });
        }
    };
    if meant.iter().any(|known| known.counts(kind, rule.effect)) {
        return None;
    }
    let others = list(actions.iter().filter(|known| known.counts(kind, rule.effect)).map(|known| known.action));
    let instead = if others.is_empty() {
        format!("nothing in this build is; a rule without `{key}` speaks of all that the action does")
    } else {
        format!("what is: {others}. Write one of these as its action, or leave `{key}` out")
    };
    Some(Fault::NoSuchKind { action, kind: words, instead })
}

/// Whether every tool that an allow or an ask speaks of asks every time all the same (tool-contract R8).
fn pinned_by_default(rule: &Rule, actions: &[ActionReach<'_>]) -> Option<Fault> {
    let speaks_of = |known: &&ActionReach<'_>| {
        let of_kind = match &rule.resource {
            ResourcePattern::Argv(_) => known.counts(ResourceKind::Argv, rule.effect),
            ResourcePattern::Any => !known.kinds.is_empty(),
            _ => return false,
        };
        of_kind && rule.action.matches(&Action::new(known.action))
    };
    let meant: Vec<&ActionReach<'_>> = actions.iter().filter(speaks_of).collect();
    let pinned = rule.effect < RuleEffect::AskPinned && !meant.is_empty() && meant.iter().all(|known| known.pinned);
    let named = || meant.iter().map(|known| format!("`{}`", known.action)).collect::<Vec<_>>().join(" and ");
    pinned.then(|| Fault::Pinned { actions: named() })
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

/// The known word that is so near to `word` that `word` is a slip.
#[must_use]
pub fn probably_meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (far, nearest) = known.into_iter().map(|known| (edits(word, known), known)).min()?;
    (far <= TYPO && far < word.chars().count()).then_some(nearest)
}

/// Whether `one` matches whenever `other` does.
fn covers(one: &Rule, other: &Rule) -> bool {
    let action = match other.action.literal_word() {
        Some(word) => one.action.matches(&Action::new(word)),
        None => one.action == other.action || one.action.as_str() == "*",
    };
    let scope = one.scope == Scope::default() || one.scope == other.scope;
    action && scope && one.expires_at.is_none() && covers_resource(&one.resource, &other.resource)
}

fn covers_resource(one: &ResourcePattern, other: &ResourcePattern) -> bool {
    use ResourcePattern::{Any, Argv, Host, Named, Opaque, Path};
    match (one, other) {
        (Any, _) | (Opaque, Opaque) => true,
        (Path(ours), Path(theirs)) => theirs.iter().all(|their| ours.iter().any(|our| our.covers(their))),
        (Argv(ours), Argv(theirs)) => theirs.iter().all(|their| ours.iter().any(|our| our.covers(their))),
        (Host(ours), Host(theirs)) => theirs.iter().all(|their| ours.contains(their)),
        (Named(our_kind, ours), Named(their_kind, theirs)) if our_kind == their_kind => theirs.iter().all(|their| {
            ours.iter().any(|our| our == their || their.as_literal().is_some_and(|name| our.matches(name)))
        }),
        _ => false,
    }
}

/// Why `other`, which matches whenever `rule` does, leaves it nothing to decide (tool-contract 13.2).
fn outweighs(other: &Rule, rule: &Rule, mutual: bool) -> Option<&'static str> {
    // An allow of any resource does not reach what is opaque.
    let floor = other.effect == RuleEffect::Allow && matches!(rule.resource, ResourcePattern::Opaque);
    match other.effect {
        RuleEffect::Deny => Some("denies all that it speaks of"),
        RuleEffect::AskPinned if rule.effect != RuleEffect::Deny => Some("asks every time about all that it speaks of"),
        RuleEffect::Allow | RuleEffect::Ask if floor || rule.effect >= RuleEffect::AskPinned => None,
        // A project's file is believed less than its layer says while it is not trusted.
        RuleEffect::Allow | RuleEffect::Ask if other.layer < rule.layer && other.layer != Layer::Project => {
            Some("decides in a stronger layer about all that it speaks of")
        }
        _ if mutual => Some("says the same"),
        _ => None,
    }
}

impl PathPattern {
    fn covers(&self, other: &Self) -> bool {
        let (anchor, exact) = other.anchor();
        self.to_string() == other.to_string() || ((exact || self.is_beneath()) && self.matches(anchor))
    }
}

impl ArgvPattern {
    fn covers(&self, other: &Self) -> bool {
        self == other || (!self.is_exact() && self.matches(other.words()))
    }
}
