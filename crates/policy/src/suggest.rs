//! Rules offered with an ask: exactly what was asked, and no more (L33).

use portcullis_base::Digest;
use portcullis_command::{self as command, ProgramReads};
use portcullis_contract::{Action, NamedKind, Resource, ResourceKind};
use serde::{Deserialize, Serialize};

use crate::named::rule_key;
use crate::resource::ResourceText;
use crate::subject::Subject;
use crate::{
    ActionPattern, ArgvPattern, GrantRule, HostPattern, PathPattern, ResourcePattern, RuleEffect, RuleId, RuleRef,
    WordPattern,
};

/// Characters of a resource shown in a sentence.
const SHOWN_CHARS: usize = 200;

/// Further parts of a call that the reason of an ask names.
const ALSO_SHOWN: usize = 4;

/// Things shown that a rule would allow, and that it would not.
const EXAMPLES: usize = 3;

/// One resource that an ask is about.
pub(crate) struct AskedResource<'r> {
    pub(crate) action: &'r Action,
    pub(crate) resource: &'r Resource,
    pub(crate) subject: Subject,
    pub(crate) pinned: bool,
    /// It may hide a command that a rule denies.
    pub(crate) denied: bool,
    pub(crate) deciding: RuleRef,
    pub(crate) reason: String,
}

/// A rule that would answer this ask for good, with its exact reach.
///
/// Adopted as a grant for the ask's deciding rule, it allows this very call. Whatever a person or a
/// model typed stands in it escaped: a `*` in a file's name stays a `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedRule {
    /// Always `allow`.
    pub effect: RuleEffect,
    pub action: ActionPattern,
    pub resource: ResourcePattern,
    /// In words, everything it allows.
    pub reach: String,
    /// Everything it names, then what it takes no account of: at least three.
    pub would_allow: Vec<String>,
    /// Three near misses, each checked against the pattern.
    pub would_not_allow: Vec<String>,
}

impl SuggestedRule {
    /// What a grant made from it allows.
    #[must_use]
    pub fn rule(&self) -> GrantRule {
        GrantRule { action: self.action.clone(), resource: self.resource.clone() }
    }

    /// The rule as a person would write it into a configuration file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let value = |text: &str| toml::Value::from(text).to_string();
        let list = |all: &[String]| format!("[{}]", all.iter().map(|t| value(t)).collect::<Vec<_>>().join(", "));
        let resource = match ResourceText::from(&self.resource) {
            ResourceText::Any => String::new(),
            ResourceText::Path(all) => format!("path = {}\n", list(&all)),
            ResourceText::Argv(all) => {
                let all: Vec<String> = all.iter().map(|words| list(words)).collect();
                format!("argv = [{}]\n", all.join(", "))
            }
            ResourceText::Host(all) => format!("host = {}\n", list(&all)),
            ResourceText::Opaque => "opaque = true\n".to_owned(),
            ResourceText::Named(kinds) => {
                kinds.iter().map(|(kind, all)| format!("{} = {}\n", rule_key(*kind), list(all))).collect()
            }
        };
        let (action, effect) = (value(self.action.as_str()), value(self.effect.as_str()));
        format!("[[rules]]\naction = {action}\n{resource}effect = {effect}\n")
    }
}

/// The resource as a sentence shows it: on one line, bounded.
pub(crate) fn shown(resource: &Resource) -> String {
    let mut text: String = resource.canonical.chars().take(SHOWN_CHARS).collect();
    if text.len() < resource.canonical.len() {
        text.push('…');
    }
    match resource.kind {
        // Its words are quoted already.
        ResourceKind::Argv => format!("{text:?}").trim_matches('"').replace("\\\"", "\""),
        _ => format!("{text:?}"),
    }
}

/// The other parts of a call that the rule of this ask asks about. A command line is asked about as a whole, so that its
/// first command alone would say little.
pub(crate) fn also(ask: &AskedResource<'_>, asking: &[AskedResource<'_>]) -> String {
    let by_the_same = |other: &&AskedResource<'_>| {
        other.deciding.id == ask.deciding.id && (other.pinned, other.denied) == (ask.pinned, ask.denied)
    };
    let name = |other: &AskedResource<'_>| match other.resource.kind {
        ResourceKind::Opaque => "the line as a whole".to_owned(),
        _ => shown(other.resource),
    };
    let mut others: Vec<String> = asking.iter().filter(by_the_same).map(name).collect();
    others.dedup();
    others.retain(|other| *other != shown(ask.resource));
    let more = others.len().saturating_sub(ALSO_SHOWN);
    others.truncate(ALSO_SHOWN);
    match (others.join(", "), more) {
        (none, _) if none.is_empty() => none,
        (some, 0) => format!("; also on {some}"),
        (some, more) => format!("; also on {some} and {more} more"),
    }
}

/// The rule that allows exactly what is asked, if one rule can.
///
/// None if a part is pinned, opaque, a secret or fed by its line; or if the parts differ in action, kind or deciding
/// rule: a grant answers one rule and speaks of one kind, so that it could not settle the call.
pub(crate) fn exactly(asking: &[AskedResource<'_>]) -> Vec<SuggestedRule> {
    suggestion(asking).into_iter().collect()
}

fn suggestion(asking: &[AskedResource<'_>]) -> Option<SuggestedRule> {
    let first = asking.first()?;
    let key = |ask: &AskedResource<'_>| -> (RuleId, Digest) { (ask.deciding.id.clone(), ask.deciding.hash) };
    let together = |ask: &AskedResource<'_>| {
        !ask.pinned && !ask.resource.fed && ask.action == first.action && key(ask) == key(first)
    };
    if !asking.iter().all(together) {
        return None;
    }
    let resource = pattern(asking)?;
    let action = ActionPattern::literal(first.action);
    let (mut would_allow, mut would_not_allow) = (Vec::new(), Vec::new());
    for ask in asking {
        push_new(&mut would_allow, example(&ask.subject, ask.resource));
        for near in neighbours(&ask.subject) {
            // Two parts of one call may be each other's neighbours.
            if !resource.fits(&near) {
                push_new(&mut would_not_allow, example(&near, ask.resource));
            }
        }
    }
    let reach = format!("`{}` on exactly: {}", first.action, would_allow.join(", "));
    // A rule names what is touched and nothing else; the person who adopts it must know what that leaves open.
    let open = left_open(&first.subject);
    would_allow.extend(open.iter().take(EXAMPLES.saturating_sub(would_allow.len())).map(|text| (*text).to_owned()));
    would_not_allow.truncate(EXAMPLES);
    let rule = SuggestedRule { effect: RuleEffect::Allow, action, resource, reach, would_allow, would_not_allow };
    readable(&rule).then_some(rule)
}

/// Whether the rule survives being written down: one too long to be read back is not offered.
fn readable(rule: &SuggestedRule) -> bool {
    ActionPattern::parse(rule.action.as_str()).as_ref() == Ok(&rule.action)
        && ResourcePattern::try_from(ResourceText::from(&rule.resource)).is_ok()
}

fn push_new(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// One pattern of one kind for every part.
fn pattern(asking: &[AskedResource<'_>]) -> Option<ResourcePattern> {
    let all = || asking.iter().map(|ask| &ask.subject);
    Some(match &asking.first()?.subject {
        Subject::Path(_) => ResourcePattern::Path(all().map(path).collect::<Option<_>>()?),
        Subject::Argv(_) => ResourcePattern::Argv(all().map(argv).collect::<Option<_>>()?),
        Subject::Host(_) => ResourcePattern::Host(all().map(host).collect::<Option<_>>()?),
        Subject::Named(kind, _) => {
            ResourcePattern::Named(*kind, all().map(|subject| name(*kind, subject)).collect::<Option<_>>()?)
        }
        Subject::Secret | Subject::Opaque => return None,
    })
}

fn path(subject: &Subject) -> Option<PathPattern> {
    match subject {
        Subject::Path(path) => Some(PathPattern::literal(path)),
        _ => None,
    }
}

fn argv(subject: &Subject) -> Option<ArgvPattern> {
    match subject {
        Subject::Argv(words) => ArgvPattern::exactly(words),
        _ => None,
    }
}

fn host(subject: &Subject) -> Option<HostPattern> {
    match subject {
        Subject::Host(name) => Some(HostPattern::exactly(name)),
        _ => None,
    }
}

fn name(kind: NamedKind, subject: &Subject) -> Option<WordPattern> {
    match subject {
        Subject::Named(its, name) if *its == kind => Some(WordPattern::literal(name)),
        _ => None,
    }
}

fn example(subject: &Subject, asked: &Resource) -> String {
    match subject {
        Subject::Path(path) if path.is_empty() => "/".to_owned(),
        Subject::Path(text) | Subject::Named(_, text) => text.clone(),
        // A rule reaches a whole host, and an ask about a URL must say so.
        Subject::Host(name) => format!("{name} (every address and port there)"),
        Subject::Argv(words) => serde_json::to_string(words).unwrap_or_default(),
        Subject::Secret | Subject::Opaque => asked.canonical.clone(),
    }
}

/// What an exact rule still does not look at.
fn left_open(subject: &Subject) -> [&'static str; 2] {
    match subject {
        // Scripts, makefiles and packages are what they are when the command runs again.
        Subject::Argv(words) if command::reads(words) != ProgramReads::Text => [
            "the same command again, any number of times, whatever the files that it runs hold by then",
            "the same command in any folder",
        ],
        Subject::Argv(_) => ["the same command in any folder", "the same command again, any number of times"],
        Subject::Path(_) => ["the same with any other content or arguments", "the same again, any number of times"],
        _ => ["the same with any other arguments", "the same again, any number of times"],
    }
}

/// What a person might think is included, and is not: at least three that differ from it.
fn neighbours(subject: &Subject) -> Vec<Subject> {
    match subject {
        Subject::Path(path) => {
            let folder = path.rfind('/').map_or("", |cut| &path[..cut]);
            let beside = format!("{folder}/another");
            [beside, format!("{path}/beneath"), folder.to_owned(), format!("{path}/another/one"), format!("{path}.bak")]
                .map(Subject::Path)
                .into()
        }
        Subject::Argv(words) => {
            let with = |change: &dyn Fn(&mut Vec<String>)| {
                let mut words = words.clone();
                change(&mut words);
                Subject::Argv(words)
            };
            let longer = with(&|words| words.push("--more".to_owned()));
            let other = with(&|words| words.last_mut().into_iter().for_each(|last| last.push_str("-other")));
            let shorter = with(&|words| words.truncate(words.len().saturating_sub(1).max(1)));
            vec![longer, shorter, other, with(&|words| words.insert(0, "sudo".to_owned()))]
        }
        Subject::Host(name) => {
            let near = [format!("sub.{name}"), format!("{name}.example"), format!("not-{name}")];
            near.map(Subject::Host).into()
        }
        Subject::Named(kind, name) => {
            let near = [format!("{name}_other"), format!("{name}s"), format!("other_{name}")];
            near.map(|name| Subject::Named(*kind, name)).into()
        }
        Subject::Secret | Subject::Opaque => Vec::new(),
    }
}
