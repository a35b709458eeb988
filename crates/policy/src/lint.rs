//! Rules that are well-formed and still do nothing: they can never match, or another always decides first.

use std::fmt;

use portcullis_base::{Timestamp, edits};
use portcullis_contract::Action;

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
    #[error("can never match {pattern}: {why}")]
    Literal { pattern: String, why: String },
    #[error("names the action `{action}`, which no tool has; `{nearest}` was meant, perhaps")]
    Misspelt { action: String, nearest: String },
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

/// Every finding, in the order of the rules. `actions` are the tools there are; an action that is far from all of
/// them may be one of a tool to come, and is no finding.
#[must_use]
pub fn lint(rules: &[Rule], actions: &[&str], now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let mut found = |fault| findings.push(Finding { rule: rule.id.clone(), source: rule.source.clone(), fault });
        if let Some(end) = rule.expires_at.filter(|end| *end <= now) {
            found(Fault::Expired(end));
            continue;
        }
        if let ResourcePattern::Path(all) = &rule.resource {
            all.iter().filter(|pattern| !within_reach(pattern)).for_each(|p| found(Fault::OutOfReach(p.to_string())));
        }
        if let ResourcePattern::Argv(all) = &rule.resource {
            let strays = all.iter().filter_map(|pattern| Some((pattern, never_a_word(pattern)?)));
            strays.for_each(|(p, why)| found(Fault::Literal { pattern: p.to_string(), why }));
        }
        if let Some(nearest) = misspelt(rule, actions) {
            found(Fault::Misspelt { action: rule.action.to_string(), nearest: nearest.to_owned() });
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
            found(Fault::Shadowed { by: other.id.clone(), place: other.source.clone(), why });
        }
    }
    findings
}

fn within_reach(pattern: &PathPattern) -> bool {
    let (anchor, exact) = pattern.anchor();
    let beneath = anchor.strip_prefix(WORKSPACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // A pattern with a wildcard right after the root may reach anything.
    beneath || (anchor.is_empty() && !exact)
}

/// Why no command has the words of a pattern, if so: somebody wrote a wildcard or a whole line, and words are compared as
/// they are.
#[must_use]
pub fn never_a_word(pattern: &ArgvPattern) -> Option<String> {
    let words = pattern.words();
    let wild = |word: &String| matches!(word.as_str(), "*" | "**" | "?" | ".*" | "…" | "...");
    if let Some(at) = words.iter().position(wild) {
        let (rest, word) = (&words[..at], &words[at]);
        let instead = if rest.is_empty() {
            "to mean any command, leave `argv` out".to_owned()
        } else {
            format!("to mean anything that begins so, write {}", ArgvPattern::parse(rest.to_vec()).ok()?)
        };
        return Some(format!("`{word}` is no wildcard, for words are compared as they are; {instead}"));
    }
    let (program, rest) = words.split_first()?;
    if program.contains(['*', '?']) {
        return Some(format!("`{program}` is no pattern, for words are compared as they are; name the program"));
    }
    if program.trim().is_empty() {
        return Some("its first word is empty; name the program".to_owned());
    }
    let whole = |word: &str| word.contains(char::is_whitespace) && !word.contains('/');
    if rest.is_empty() && whole(program) {
        let words: Vec<String> = program.split_whitespace().map(str::to_owned).collect();
        let instead = ArgvPattern::parse(words).ok()?;
        return Some(format!("it is one word with a blank in it, and no program is called that; write {instead}"));
    }
    None
}

fn misspelt<'a>(rule: &Rule, actions: &[&'a str]) -> Option<&'a str> {
    let word = rule.action.literal_word()?;
    if actions.iter().any(|action| rule.action.matches(&Action::new(*action))) {
        return None;
    }
    probably_meant(word, actions.iter().copied())
}

/// The known word that somebody meant who wrote `word`, if one is so near that it is a slip.
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
    use ResourcePattern::{Any, Argv, Host, McpTool, Opaque, Path};
    match (one, other) {
        (Any, _) | (Opaque, Opaque) => true,
        (Path(ours), Path(theirs)) => theirs.iter().all(|their| ours.iter().any(|our| our.covers(their))),
        (Argv(ours), Argv(theirs)) => theirs.iter().all(|their| ours.iter().any(|our| our.covers(their))),
        (Host(ours), Host(theirs)) => theirs.iter().all(|their| ours.contains(their)),
        (McpTool(ours), McpTool(theirs)) => theirs.iter().all(|their| {
            ours.iter().any(|our| our == their || their.as_literal().is_some_and(|name| our.matches(name)))
        }),
        _ => false,
    }
}

/// Why `other`, which matches whenever `rule` does, leaves it nothing to decide (13.2).
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
