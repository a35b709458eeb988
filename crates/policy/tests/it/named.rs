//! Kinds of resources that are known by a name: one key of a rule for each, and what was a `mcp_tool` before.

use portcullis_base::{GrantId, IntentId, Risk, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, NamedKind, Resource, ResourceKind};
use portcullis_event::facts::PermissionDecided;
use portcullis_policy::{
    Asker, Decision, Grant, GrantScope, Layer, Policy, PolicyBuilder, RecordedQuestion, Satisfies, parse_rules,
};
use serde_json::json;

/// Every kind of resource as it is recorded, one of it, and a rule's key and pattern that means just that one.
const KINDS: [(&str, &str, &str); 12] = [
    ("path", "/workspace/a", "path = \"a\""),
    ("argv", "[\"ls\"]", "argv = [\"ls\"]"),
    ("host", "a", "host = \"a\""),
    ("url", "http://b/", "host = \"b\""),
    ("opaque", "a", "opaque = true"),
    ("mcp_tool", "a", "mcp_tool = \"a\""),
    ("task", "a", "task = \"a\""),
    ("artifact", "a", "artifact = \"a\""),
    ("shell", "a", "shell = \"a\""),
    ("session", "a", "target_session = \"a\""),
    ("memory", "a", "memory = \"a\""),
    ("skill", "a", "skill = \"a\""),
];

fn policy(rules: &str) -> Policy {
    let rules = parse_rules(rules, "r.toml", Layer::User).expect("well formed");
    PolicyBuilder::new().rules(rules).build().expect("unique ids")
}

fn asker(grants: &[Grant]) -> Asker<'_> {
    let now = Timestamp::from_micros(1);
    Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Ask, grants }
}

fn touching(action: &str, resource: Resource) -> [AccessRequest; 1] {
    [AccessRequest::new(Action::new(action), resource, [Risk::Write].into())]
}

#[test]
fn a_rule_of_each_kind_matches_a_resource_of_that_kind_and_of_no_other() {
    assert!(NamedKind::ALL.iter().all(|named| KINDS.iter().any(|(kind, ..)| *kind == named.as_str())));
    for (of_rule, _, key) in KINDS {
        let denied = |key: &str, kind: &str, name: &str| {
            let read: ResourceKind = serde_json::from_value(json!(kind)).expect("a kind");
            assert_eq!((read.as_str(), serde_json::to_value(read).expect("text")), (kind, json!(kind)));
            let policy = policy(&format!("[[rules]]\naction = \"*\"\n{key}\neffect = \"deny\"\n"));
            matches!(policy.decide(&touching("x", Resource::own(read, name)), &asker(&[])), Decision::Deny(_))
        };
        let is_named = NamedKind::ALL.iter().any(|named| named.as_str() == of_rule);
        let wild = key.replace("\"a\"", "\"*\"");
        for (kind, name, _) in KINDS {
            let same = kind == of_rule;
            assert_eq!(denied(key, kind, name), same, "{key}: {kind}");
            if is_named {
                assert_eq!(denied(&wild, kind, name), same, "{wild}: {kind}");
                assert!(!denied(key, kind, "b"), "{key}: another {kind}");
            }
        }
    }
}

#[test]
fn a_name_that_was_a_tools_once_is_refused_with_its_line_and_the_key_to_write_instead() {
    let read = |action: &str, names: &str| {
        let rule = format!("# one\n[[rules]]\naction = \"{action}\"\neffect = \"deny\"\nmcp_tool = {names}\n");
        parse_rules(&rule, "r.toml", Layer::User).map(|_| ()).map_err(|error| error.to_string())
    };
    for (action, names, instead) in [
        ("shell_set_env", "\"env:*\"", "shell = \"env:*\""),
        ("*", "\"env:PATH\"", "shell = \"env:PATH\""),
        ("shell_*", "[\"x\", \"env:A\"]", "shell = \"env:A\""),
        ("shell_*", "\"*\"", "shell = \"*\""),
        ("shell_unset_env", "\"*\"", "shell = \"*\""),
        ("bash", "\"shell\"", "shell = \"shell\""),
        ("*", "\"shell\"", "shell = \"shell\""),
        ("shell_describe", "\"shell:sesn_1\"", "shell = \"sesn_1\""),
        ("task_wait", "\"task_1\"", "task = \"task_1\""),
        ("*", "\"task_*\"", "task = \"task_*\""),
        ("artifact_read", "\"*\"", "artifact = \"*\""),
        ("*", "\"art_*\"", "artifact = \"art_*\""),
        ("sandbox_describe", "\"sandbox\"", "target_session = \"sandbox\""),
    ] {
        let said = read(action, names).expect_err(names);
        assert!(said.starts_with("r.toml:5: ") && said.ends_with(&format!("write `{instead}`")), "{action}: {said}");
    }
    for (action, names) in [
        ("*", "\"*\""),
        ("*", "\"github__*\""),
        ("*", "\"shellcheck\""),
        ("s*", "\"slack__send\""),
        ("shell", "\"shell\""),
        ("task_create", "\"task_create\""),
        ("task_*", "\"tracker__*\""),
    ] {
        assert_eq!(read(action, names), Ok(()), "{action} {names} means tools");
    }
}

/// What is remembered for it.
fn grant(policy: &Policy, asked: &[AccessRequest]) -> Grant {
    let Decision::Ask(ask) = policy.decide(asked, &asker(&[])) else { panic!("asked") };
    Grant {
        id: GrantId::from_u128(1),
        rule: ask.suggested_rules[0].rule(),
        satisfies: Satisfies::from(ask.deciding.as_ref().expect("the default asks")),
        scope: GrantScope::default(),
        created_by: "ada".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    }
}

#[test]
fn l33_a_rule_suggested_for_any_kind_can_be_written_down_and_remembered_and_allows_the_call() {
    let empty = policy("");
    for kind in NamedKind::ALL {
        let asked = touching("shell_set_env", Resource::own(kind, "env:A*"));
        let near = touching("shell_set_env", Resource::own(kind, "env:AB"));
        let Decision::Ask(ask) = empty.decide(&asked, &asker(&[])) else { panic!("asked") };
        let [suggested] = &ask.suggested_rules[..] else { panic!("one rule for {kind:?}") };
        let grants = [grant(&empty, &asked)];
        let stored = serde_json::to_string(&grants[0]).expect("JSON");
        assert_eq!(serde_json::from_str::<Grant>(&stored).expect("read back"), grants[0], "{stored}");
        let allows = |policy: &Policy, what, grants| matches!(policy.decide(what, &asker(grants)), Decision::Allow(_));
        assert!(allows(&empty, &asked, &grants) && !allows(&empty, &near, &grants), "{kind:?}");
        // Nothing is asked about this name as a tool's any more.
        if kind != NamedKind::McpTool {
            let written = policy(&suggested.to_toml());
            assert!(allows(&written, &asked, &[]) && !allows(&written, &near, &[]), "{}", suggested.to_toml());
        }
    }
}

#[test]
fn a_grant_from_before_that_named_a_variable_as_a_tool_does_not_answer_for_the_variable() {
    let empty = policy("");
    let variable = |kind| touching("shell_set_env", Resource::own(kind, "env:A"));
    let mut old = grant(&empty, &variable(NamedKind::McpTool));
    let stored = serde_json::to_value(&old).expect("JSON");
    assert_eq!(stored["rule"]["resource"], json!({"mcp_tool": ["env:A"]}), "as it always was stored");
    old = serde_json::from_value(stored).expect("still read");
    let now = |grants: &[Grant]| empty.decide(&variable(NamedKind::Shell), &asker(grants));
    assert!(matches!(now(&[old]), Decision::Ask(_)));
    assert!(matches!(now(&[grant(&empty, &variable(NamedKind::Shell))]), Decision::Allow(_)), "the control");
    let two = json!({"mcp_tool": ["a"], "task": ["b"]});
    assert!(serde_json::from_value::<portcullis_policy::ResourcePattern>(two).is_err(), "one kind a rule");
}

#[test]
fn rules_of_today_are_asked_about_what_a_log_from_before_called_a_tool() {
    let decided = |action: &str, kind: &str, name: &str, rule: &str| {
        let touched = json!({"action": action, "kind": kind, "name": name, "inside": true, "risk": ["write"]});
        let recorded: PermissionDecided = serde_json::from_value::<PermissionDecided>(json!({
            "intent_id": IntentId::from_u128(1),
            "decision": "ask",
            "reason": "",
            "resources": [touched],
            "default_policy": "ask",
        }))
        .expect("a recorded decision");
        let policy = policy(&format!("[[rules]]\naction = \"*\"\n{rule}\neffect = \"deny\"\n"));
        let question = RecordedQuestion::of(&recorded).expect("whole");
        matches!(question.ask(&policy, &asker(&[]), Vec::new), Decision::Deny(_))
    };
    assert!(decided("shell_set_env", "mcp_tool", "env:A", "shell = \"env:A\""));
    assert!(decided("shell_set_env", "shell", "env:A", "shell = \"env:A\""), "as it is recorded now");
    assert!(decided("shell_history", "mcp_tool", "shell:sesn_1", "shell = \"sesn_1\""));
    assert!(decided("task_wait", "mcp_tool", "task_1", "task = \"task_1\""));
    let tool = |rule| decided("task_create", "mcp_tool", "task_create", rule);
    assert!(tool("mcp_tool = \"*\"") && !tool("task = \"*\""), "a client's tool stays one");
}
