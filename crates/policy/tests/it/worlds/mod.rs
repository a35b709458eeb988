//! Small worlds in which patterns often meet resources: few names, many wildcards, and characters
//! that mean something to a pattern.

use portcullis_base::{GrantId, Risk, SessionId, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, NamedKind, Resource, ResourceKind};
use portcullis_policy::{
    Asker, Decision, Grant, GrantRule, GrantScope, Layer, Policy, PolicyBuilder, Rule, Satisfies, parse_rules,
};
use proptest::prelude::*;

use crate::oracle::{NaiveRule, Pattern, Touch, Verdict, World};

pub const NOW: Timestamp = Timestamp::from_micros(1_000);
const LAYERS: [Layer; 6] =
    [Layer::Enterprise, Layer::User, Layer::Project, Layer::Agent, Layer::Session, Layer::ToolDefault];

#[derive(Debug, Clone)]
pub struct Scene {
    pub rules: Vec<NaiveRule>,
    pub trusted: bool,
    pub default: DefaultPolicy,
    pub touches: Vec<Touch>,
}

impl Scene {
    pub fn requests(&self) -> Vec<AccessRequest> {
        requests(&self.touches)
    }

    pub fn world(&self) -> World<'_> {
        World { rules: &self.rules, project_trusted: self.trusted, agent: Some("a"), now: NOW, default: self.default }
    }
}

pub fn requests(touches: &[Touch]) -> Vec<AccessRequest> {
    touches
        .iter()
        .map(|t| {
            let resource = Resource { inside: t.inside, ..Resource::own(t.kind, t.text.clone()) };
            AccessRequest::new(Action::new(t.action.clone()), resource, t.risk.iter().copied().collect())
        })
        .collect()
}

pub fn asker(default: DefaultPolicy, grants: &[Grant]) -> Asker<'_> {
    Asker { agent: Some("a"), session: Some(SessionId::from_u128(7)), project: Some("p"), now: NOW, default, grants }
}

pub fn verdict(decision: &Decision) -> Verdict {
    match decision {
        Decision::Allow(_) => Verdict::Allow,
        Decision::Ask(ask) if ask.pinned => Verdict::Pinned,
        Decision::Ask(_) => Verdict::Ask,
        Decision::Deny(_) => Verdict::Deny,
    }
}

pub fn escaped(word: &str) -> String {
    word.replace('*', "\\*")
}

/// The real rule, through the real parser.
pub fn rule(naive: &NaiveRule) -> Rule {
    let text = |s: &str| toml::Value::from(s).to_string();
    let list = |all: &[String]| format!("[{}]", all.iter().map(|s| text(s)).collect::<Vec<_>>().join(","));
    let mut out = format!(
        "[[rules]]\nid = {}\naction = {}\neffect = {}\n",
        text(&naive.id),
        text(&naive.action),
        text(naive.effect)
    );
    out += &match &naive.pattern {
        Pattern::Any => String::new(),
        Pattern::Opaque => "opaque = true\n".to_owned(),
        Pattern::Paths(all) => format!("path = {}\n", list(all)),
        Pattern::Argv(words, exact) => {
            let mut words = words.clone();
            if *exact {
                words.push("$".into());
            }
            format!("argv = {}\n", list(&words))
        }
        Pattern::Host(host) => format!("host = {}\n", text(host)),
        Pattern::Tool(glob) => format!("mcp_tool = {}\n", text(glob)),
    };
    if let Some(agent) = &naive.agent {
        out += &format!("agent = {}\n", text(agent));
    }
    if let Some(end) = naive.expires_at {
        out += &format!("expires_at = \"{end}\"\n");
    }
    parse_rules(&out, "world.toml", LAYERS[naive.layer]).expect("a generated rule is well formed").remove(0)
}

pub fn policy(rules: &[NaiveRule], trusted: bool) -> Policy {
    PolicyBuilder::new().rules(rules.iter().map(rule)).project_trust(trusted).build().expect("ids are unique")
}

pub fn naive_rule(id: &str, layer: usize, effect: &'static str) -> NaiveRule {
    NaiveRule { id: id.into(), layer, action: "*".into(), pattern: Pattern::Any, effect, agent: None, expires_at: None }
}

pub fn edit(path: &str) -> Touch {
    Touch { action: "edit".into(), kind: ResourceKind::Path, text: path.into(), inside: true, risk: vec![Risk::Write] }
}

/// A grant for everything a rule asks about.
pub fn grant_all(rule: &Rule) -> Grant {
    Grant {
        id: GrantId::from_u128(5),
        rule: GrantRule { action: rule.action.clone(), resource: rule.resource.clone() },
        satisfies: Satisfies { rule_id: rule.id.clone(), rule_hash: rule.hash() },
        scope: GrantScope { project: Some("p".into()), agent: Some("a".into()), session: None },
        created_by: "usr".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    }
}

pub fn default() -> impl Strategy<Value = DefaultPolicy> {
    prop_oneof![
        4 => Just(DefaultPolicy::Allow),
        4 => Just(DefaultPolicy::Ask),
        1 => Just(DefaultPolicy::AskPinned),
        4 => Just(DefaultPolicy::Auto),
    ]
}

fn action() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just("read".to_owned()), 4 => Just("edit".to_owned()), 1 => Just("e*t".to_owned())]
}

fn path() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![4 => "[ab]", 1 => Just("é".to_owned()), 1 => Just("a*".to_owned()), 1 => Just("a.b".to_owned())];
    let root = prop_oneof![6 => Just("/workspace".to_owned()), 1 => Just("/etc".to_owned()), 1 => Just(String::new())];
    (root, proptest::collection::vec(name, 0..4))
        .prop_map(|(root, names)| format!("{root}/{}", names.join("/")))
        .prop_map(|path| if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path })
}

fn path_pattern() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[ab]", 2 => Just("*".to_owned()), 3 => Just("**".to_owned()), 2 => Just("?".to_owned()),
        1 => Just("a*".to_owned()), 1 => Just("*b".to_owned()), 1 => Just("a\\*".to_owned()),
        1 => Just("?.?".to_owned()), 1 => Just("é".to_owned()),
    ];
    let root = prop_oneof![4 => Just(""), 3 => Just("/workspace/"), 1 => Just("/"), 1 => Just("/etc/")];
    (root, proptest::collection::vec(name, 1..4)).prop_map(|(root, names)| format!("{root}{}", names.join("/")))
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just("git".to_owned()), Just("a".to_owned()), Just("*".to_owned())]
}

fn kind_and_text() -> impl Strategy<Value = (ResourceKind, String)> {
    prop_oneof![
        6 => path().prop_map(|p| (ResourceKind::Path, p)),
        3 => proptest::collection::vec(word(), 1..4)
            .prop_map(|w| (ResourceKind::Argv, serde_json::to_string(&w).expect("words"))),
        1 => prop_oneof![Just("x.y"), Just("a.x.y"), Just("b.a.x.y"), Just("ax.y")]
            .prop_map(|h| (ResourceKind::Host, h.to_owned())),
        1 => prop_oneof![Just("s/t"), Just("s/u"), Just("t")].prop_map(|t| (NamedKind::McpTool.into(), t.to_owned())),
        1 => Just((ResourceKind::Secret, "token".to_owned())),
        1 => Just((ResourceKind::Opaque, "$(x)".to_owned())),
    ]
}

pub fn touch() -> impl Strategy<Value = Touch> {
    let risk = prop_oneof![
        3 => Just(vec![Risk::Read]), 2 => Just(vec![Risk::Write]),
        1 => Just(vec![Risk::Read, Risk::Execute]), 1 => Just(vec![]),
    ];
    (action(), kind_and_text(), prop::bool::weighted(0.8), risk)
        .prop_map(|(action, (kind, text), inside, risk)| Touch { action, kind, text, inside, risk })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        6 => proptest::collection::vec(path_pattern(), 1..3).prop_map(Pattern::Paths),
        3 => (proptest::collection::vec(word(), 1..3), any::<bool>()).prop_map(|(w, e)| Pattern::Argv(w, e)),
        1 => prop_oneof![Just("x.y"), Just("*.x.y"), Just("*.a.x.y"), Just("*.y")].prop_map(|h| Pattern::Host(h.into())),
        1 => prop_oneof![Just("s/t"), Just("s/*"), Just("*"), Just("?")].prop_map(|t| Pattern::Tool(t.into())),
        2 => Just(Pattern::Any),
        1 => Just(Pattern::Opaque),
    ]
}

pub fn rule_strategy() -> impl Strategy<Value = NaiveRule> {
    let actions = prop_oneof![3 => Just("*"), 2 => Just("read"), 2 => Just("edit"), 1 => Just("e*"), 1 => Just("e\\*t"), 1 => Just("????")];
    let effect = prop_oneof![8 => Just("allow"), 5 => Just("ask"), 1 => Just("ask_pinned"), 2 => Just("deny")];
    let agent = prop_oneof![6 => Just(None), 1 => Just(Some("a".to_owned())), 1 => Just(Some("b".to_owned()))];
    let expires = prop_oneof![6 => Just(None), 1 => Just(Some(NOW)), 1 => Just(Some(Timestamp::from_micros(1_001)))];
    (0usize..6, actions, pattern(), effect, agent, expires).prop_map(
        |(layer, action, pattern, effect, agent, expires_at)| NaiveRule {
            id: String::new(),
            layer,
            action: action.into(),
            pattern,
            effect,
            agent,
            expires_at,
        },
    )
}

pub fn scene() -> impl Strategy<Value = Scene> {
    let rules = proptest::collection::vec(rule_strategy(), 0..16).prop_map(|mut rules| {
        for (i, rule) in rules.iter_mut().enumerate() {
            // Ids in no relation to the order of writing.
            rule.id = format!("r{}", (i * 7 + 3) % 16);
        }
        rules
    });
    (rules, any::<bool>(), default(), proptest::collection::vec(touch(), 0..3))
        .prop_map(|(rules, trusted, default, touches)| Scene { rules, trusted, default, touches })
}
