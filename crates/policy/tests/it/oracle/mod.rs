//! A naive evaluator of tool-contract 13.2, written apart from the crate: it tries every rule on every resource,
//! with its own matching, and is meant to be read rather than to be fast.

use portcullis_base::{Risk, Timestamp};
use portcullis_contract::{DefaultPolicy, NamedKind, ResourceKind};

pub const WORKSPACE: &str = "/workspace";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Allow,
    Ask,
    Pinned,
    Deny,
}

#[derive(Debug, Clone)]
pub enum Pattern {
    Any,
    Opaque,
    Paths(Vec<String>),
    /// Words, and whether nothing may follow.
    Argv(Vec<String>, bool),
    Host(String),
    Tool(String),
}

#[derive(Debug, Clone)]
pub struct NaiveRule {
    pub id: String,
    /// 0 is strongest; 2 is the project.
    pub layer: usize,
    pub action: String,
    pub pattern: Pattern,
    pub effect: &'static str,
    pub agent: Option<String>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct Touch {
    pub action: String,
    pub kind: ResourceKind,
    pub text: String,
    pub inside: bool,
    pub risk: Vec<Risk>,
}

pub struct World<'a> {
    pub rules: &'a [NaiveRule],
    pub project_trusted: bool,
    pub agent: Option<&'a str>,
    pub now: Timestamp,
    pub default: DefaultPolicy,
}

/// Glob over characters; `deep` lets `*` cross slashes.
fn glob(pattern: &[char], text: &[char], deep: bool) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => {
            glob(&pattern[1..], text, deep)
                || text.first().is_some_and(|c| (deep || *c != '/') && glob(pattern, &text[1..], deep))
        }
        (Some('\\'), Some(c)) => pattern.get(1) == Some(c) && glob(&pattern[2..], &text[1..], deep),
        (Some('?'), Some(c)) => (deep || *c != '/') && glob(&pattern[1..], &text[1..], deep),
        (Some(p), Some(c)) => p == c && glob(&pattern[1..], &text[1..], deep),
        _ => false,
    }
}

pub fn word_matches(pattern: &str, word: &str) -> bool {
    let chars = |s: &str| s.chars().collect::<Vec<_>>();
    glob(&chars(pattern), &chars(word), true)
}

fn anchored(pattern: &str) -> String {
    if pattern.starts_with('/') { pattern.to_owned() } else { format!("{WORKSPACE}/{pattern}") }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|s| !s.is_empty()).collect()
}

fn segments_match(pattern: &[&str], path: &[&str]) -> bool {
    match pattern.first() {
        None => path.is_empty(),
        Some(&"**") => segments_match(&pattern[1..], path) || (!path.is_empty() && segments_match(pattern, &path[1..])),
        Some(name) => {
            let chars = |s: &str| s.chars().collect::<Vec<_>>();
            path.first().is_some_and(|s| glob(&chars(name), &chars(s), false))
                && segments_match(&pattern[1..], &path[1..])
        }
    }
}

pub fn path_matches(pattern: &str, path: &str) -> bool {
    let pattern = anchored(pattern);
    segments_match(&segments(&pattern), &segments(path))
}

type Fit = (usize, usize, bool);

fn literal_chars(pattern: &str) -> usize {
    pattern.replace("\\", "").chars().filter(|c| !matches!(c, '*' | '?' | '/')).count()
        + pattern.matches("\\*").count()
        + pattern.matches("\\?").count()
}

fn wild(segment: &str) -> bool {
    segment.replace("\\*", "").replace("\\?", "").contains(['*', '?'])
}

/// Whether and how closely a pattern fits.
fn fit(pattern: &Pattern, touch: &Touch) -> Option<Fit> {
    let text = touch.text.as_str();
    match (pattern, touch.kind) {
        (Pattern::Any, _) => Some((0, 0, false)),
        (Pattern::Opaque, ResourceKind::Opaque) => Some((0, 0, true)),
        (Pattern::Paths(all), ResourceKind::Path) => all
            .iter()
            .filter(|p| path_matches(p, text))
            .map(|p| {
                let p = anchored(p);
                let leading = segments(&p).iter().take_while(|s| !wild(s)).count();
                (leading, literal_chars(&p), leading == segments(&p).len())
            })
            .max(),
        (Pattern::Argv(words, exact), ResourceKind::Argv) => {
            let argv: Vec<String> = serde_json::from_str(text).ok()?;
            let prefix = argv.len() >= words.len() && argv.iter().zip(words).all(|(a, b)| a == b);
            let fits = prefix && (!exact || argv.len() == words.len());
            fits.then(|| (words.len(), words.concat().chars().count(), *exact))
        }
        (Pattern::Host(host), ResourceKind::Host) => match host.strip_prefix("*.") {
            Some(parent) => {
                text.ends_with(&format!(".{parent}")).then(|| (parent.split('.').count(), parent.len(), false))
            }
            None => (host == text).then(|| (host.split('.').count(), host.len(), true)),
        },
        (Pattern::Tool(glob), ResourceKind::Named(NamedKind::McpTool)) => {
            word_matches(glob, text).then(|| (usize::from(!wild(glob)), literal_chars(glob), !wild(glob)))
        }
        _ => None,
    }
}

impl World<'_> {
    fn matching(&self, touch: &Touch) -> Vec<(&NaiveRule, Fit)> {
        self.rules
            .iter()
            .filter(|r| word_matches(&r.action, &touch.action))
            .filter(|r| r.agent.is_none() || r.agent.as_deref() == self.agent)
            .filter(|r| r.expires_at.is_none_or(|end| self.now < end))
            .filter(|r| !(r.layer == 2 && r.effect == "allow" && !self.project_trusted))
            .filter(|r| {
                let explicit = matches!(r.pattern, Pattern::Opaque);
                !(touch.kind == ResourceKind::Opaque && r.effect == "allow" && !explicit)
            })
            .filter_map(|r| Some((r, fit(&r.pattern, touch)?)))
            .collect()
    }

    /// Rules that forbid what a command, whose program nobody knows, may run: a tail of its words (L32). Unless a rule that
    /// is as strong allows what is opaque, or names the denied program among the words it allows.
    fn hidden(&self, touch: &Touch) -> Vec<&NaiveRule> {
        if touch.kind != ResourceKind::Argv {
            return Vec::new();
        }
        let argv: Vec<String> = serde_json::from_str(&touch.text).expect("words");
        // Git knows its own words: one that is the name of a program is that program only where a rule names its verb too.
        let verb_needed = argv[0] == "git";
        let in_force = |r: &&NaiveRule| {
            word_matches(&r.action, &touch.action)
                && (r.agent.is_none() || r.agent.as_deref() == self.agent)
                && r.expires_at.is_none_or(|end| self.now < end)
                && !(r.layer == 2 && r.effect == "allow" && !self.project_trusted)
        };
        let rules: Vec<&NaiveRule> = self.rules.iter().filter(in_force).collect();
        let restricts = |r: &NaiveRule| r.effect == "deny" || r.effect == "ask_pinned";
        let on_a_tail = |r: &NaiveRule| {
            (1..argv.len()).any(|at| {
                let tail = serde_json::to_string(&argv[at..]).expect("words");
                matches!(&r.pattern, Pattern::Argv(words, _) if !verb_needed || words.len() > 1)
                    && fit(&r.pattern, &Touch { text: tail, ..touch.clone() }).is_some()
            })
        };
        // No word of these worlds is a verb of git: each may be an alias, which is anything.
        let is_alias = verb_needed && argv.len() > 1;
        let on_a_tail = |r: &NaiveRule| on_a_tail(r) || (is_alias && matches!(r.pattern, Pattern::Argv(..)));
        let vouches = |allow: &NaiveRule, denied: &NaiveRule| {
            let names = match (&allow.pattern, &denied.pattern) {
                (Pattern::Opaque, _) => true,
                (Pattern::Argv(allowed, _), Pattern::Argv(denied, _)) => {
                    let alias = is_alias && allowed.len() > 1;
                    let named = allowed.iter().skip(1).any(|word| *word == denied[0]);
                    fit(&allow.pattern, touch).is_some() && (alias || named)
                }
                _ => false,
            };
            allow.effect == "allow" && allow.layer <= denied.layer && names
        };
        let hidden = rules.iter().filter(|r| restricts(r) && on_a_tail(r));
        hidden.filter(|r| !rules.iter().any(|allow| vouches(allow, r))).copied().collect()
    }

    /// One resource, without grants.
    pub fn one(&self, touch: &Touch) -> Verdict {
        let matching = self.matching(touch);
        let has = |effect| matching.iter().any(|(r, _)| r.effect == effect);
        if has("deny") {
            return Verdict::Deny;
        }
        if has("ask_pinned") || !self.hidden(touch).is_empty() || self.default == DefaultPolicy::AskPinned {
            return Verdict::Pinned;
        }
        if let Some(layer) = matching.iter().map(|(r, _)| r.layer).min() {
            let in_layer: Vec<_> = matching.iter().filter(|(r, _)| r.layer == layer).collect();
            let best = in_layer.iter().map(|(_, fit)| *fit).max().expect("a layer with a match");
            let asks = in_layer.iter().any(|(r, fit)| *fit == best && r.effect == "ask");
            return if asks { Verdict::Ask } else { Verdict::Allow };
        }
        let pure_read = !touch.risk.is_empty() && touch.risk.iter().all(|r| *r == Risk::Read);
        let inside = touch.inside && touch.kind != ResourceKind::Opaque;
        match self.default {
            DefaultPolicy::Allow if inside => Verdict::Allow,
            DefaultPolicy::Auto if inside && pure_read => Verdict::Allow,
            _ => Verdict::Ask,
        }
    }

    /// The strictest over all; nothing named is asked about.
    pub fn all(&self, touches: &[Touch]) -> Verdict {
        touches.iter().map(|t| self.one(t)).max().unwrap_or(Verdict::Ask)
    }

    pub fn matched_ids(&self, touches: &[Touch]) -> Vec<String> {
        let matching = touches.iter().flat_map(|t| self.matching(t)).map(|(r, _)| r);
        let hidden = touches.iter().flat_map(|t| self.hidden(t));
        let mut ids: Vec<String> = matching.chain(hidden).map(|r| r.id.clone()).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}
