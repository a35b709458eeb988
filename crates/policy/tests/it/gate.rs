//! Single decisions that a person would want to read, and the time one takes.

use portcullis_base::{Risk, RiskSet, SessionId, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource, ResourceKind};
use portcullis_policy::{
    Asker, Decision, EnterprisePolicy, Grant, Layer, Policy, PolicyBuilder, Rule, file_hash, parse_rules,
};

fn asker(default: DefaultPolicy, grants: &[Grant]) -> Asker<'_> {
    let now = Timestamp::from_micros(1_000);
    Asker { agent: Some("a"), session: Some(SessionId::from_u128(7)), project: Some("p"), now, default, grants }
}

fn rules(text: &str, layer: Layer) -> Vec<Rule> {
    parse_rules(text, "r.toml", layer).expect("well formed")
}

fn user(text: &str) -> Policy {
    PolicyBuilder::new().rules(rules(text, Layer::User)).build().expect("unique ids")
}

fn request(action: &str, resource: Resource, risk: Risk) -> [AccessRequest; 1] {
    [AccessRequest::new(Action::new(action), resource, RiskSet::from([risk]))]
}

fn read(path: &str) -> [AccessRequest; 1] {
    request("read", Resource::path(path, path), Risk::Read)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn run(argv: &[&str]) -> [AccessRequest; 1] {
    request("shell_run", Resource::argv(&words(argv), argv.join(" ")), Risk::Execute)
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(ask) if ask.pinned => "pinned",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}

#[test]
fn without_rules_reads_inside_run_and_the_rest_asks() {
    let empty = user("");
    let mut outside = Resource::path("/etc/passwd", "/etc/passwd");
    outside.inside = false;
    use DefaultPolicy::{Allow, Ask, AskPinned, Auto};
    for (requests, wants) in [
        (read("/workspace/a"), [(Allow, "allow"), (Auto, "allow"), (Ask, "ask"), (AskPinned, "pinned")]),
        (
            request("edit", Resource::path("/workspace/a", "a"), Risk::Write),
            [(Allow, "allow"), (Auto, "ask"), (Ask, "ask"), (AskPinned, "pinned")],
        ),
        (request("read", outside, Risk::Read), [(Allow, "ask"), (Auto, "ask"), (Ask, "ask"), (AskPinned, "pinned")]),
        (run(&["ls"]), [(Allow, "ask"), (Auto, "ask"), (Ask, "ask"), (AskPinned, "pinned")]),
        (
            request("x", Resource::own(ResourceKind::Opaque, "?"), Risk::Read),
            [(Allow, "ask"), (Auto, "ask"), (Ask, "ask"), (AskPinned, "pinned")],
        ),
    ] {
        for (default, want) in wants {
            assert_eq!(word(&empty.decide(&requests, &asker(default, &[]))), want, "{default:?} {requests:?}");
        }
    }
}

#[test]
fn a_denied_folder_is_denied_with_everything_in_it() {
    let policy = user(
        "[[rules]]\nid=\"d\"\naction=\"*\"\npath=\"secrets/**\"\neffect=\"deny\"\n[[rules]]\nid=\"a\"\naction=\"*\"\neffect=\"allow\"",
    );
    for path in ["/workspace/secrets", "/workspace/secrets/a", "/workspace/secrets/a/b/.c", "/workspace//secrets/./x/"]
    {
        let Decision::Deny(deny) = policy.decide(&read(path), &asker(DefaultPolicy::Allow, &[])) else {
            panic!("{path}")
        };
        assert_eq!(deny.policy_ids.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "d"], "all that matched");
        assert!(deny.reason.contains("rule `d` (r.toml:1) denies `read`"), "{}", deny.reason);
    }
    for path in ["/workspace/secretsx", "/workspace/a/secrets", "/secrets/a"] {
        assert_eq!(word(&policy.decide(&read(path), &asker(DefaultPolicy::Allow, &[]))), "allow", "{path}");
    }
}

#[test]
fn a_question_mark_is_one_character_and_not_one_byte() {
    let policy = user("[[rules]]\naction=\"*\"\npath=\"secr?t\"\neffect=\"deny\"");
    for (path, want) in [
        ("/workspace/secret", "deny"),
        ("/workspace/secrét", "deny"),
        ("/workspace/secr密t", "deny"),
        ("/workspace/secreet", "allow"),
    ] {
        assert_eq!(word(&policy.decide(&read(path), &asker(DefaultPolicy::Allow, &[]))), want, "{path}");
    }
}

#[test]
fn argv_is_compared_word_by_word() {
    let policy = user(
        "[[rules]]\naction=\"shell_run\"\nargv=[[\"git\",\"status\"],[\"ls\",\"$\"],[\"echo\",\"\\\\$\"]]\neffect=\"allow\"",
    );
    for (argv, want) in [
        (&["git", "status"][..], "allow"),
        (&["git", "status", "-s"], "allow"),
        (&["git"], "ask"),
        (&["git", "status;rm"], "ask"),
        (&["git status"], "ask"),
        (&["ls"], "allow"),
        (&["ls", "-l"], "ask"),
        (&["echo", "$"], "allow"),
        (&["echo", "x"], "ask"),
    ] {
        assert_eq!(word(&policy.decide(&run(argv), &asker(DefaultPolicy::Ask, &[]))), want, "{argv:?}");
    }
    let both = [run(&["git", "status"]), run(&["curl", "x"])].concat();
    assert_eq!(
        word(&policy.decide(&both, &asker(DefaultPolicy::Ask, &[]))),
        "ask",
        "l30: every command must be allowed"
    );
}

#[test]
fn a_host_rule_speaks_of_urls_too() {
    let policy = user(
        "[[rules]]\naction=\"fetch\"\nhost=\"*.evil.com\"\neffect=\"deny\"\n[[rules]]\naction=\"fetch\"\nhost=\"good.com\"\neffect=\"allow\"",
    );
    for (url, want) in [
        ("https://a.evil.com:8443/x", "deny"),
        ("https://u@A.EVIL.com./", "deny"),
        ("https://good.com/a?b", "allow"),
        ("https://good.com\\.evil.com/", "ask"),
        ("https://good.com@other.org/", "ask"),
    ] {
        let requests = request("fetch", Resource::own(ResourceKind::Url, url), Risk::Network);
        assert_eq!(word(&policy.decide(&requests, &asker(DefaultPolicy::Ask, &[]))), want, "{url}");
    }
}

#[test]
fn l29_a_projects_allow_is_inert_until_its_exact_text_is_trusted() {
    let text = "[[rules]]\nid=\"p\"\naction=\"edit\"\npath=\"**\"\neffect=\"allow\"";
    let policy = PolicyBuilder::new().rules(rules(text, Layer::Project)).build().expect("unique");
    let edit = request("edit", Resource::path("/workspace/a", "a"), Risk::Write);
    let Decision::Ask(ask) = policy.decide(&edit, &asker(DefaultPolicy::Ask, &[])) else { panic!("inert") };
    assert!(ask.reason.contains("rule `p` would allow it once its project file is trusted"), "{}", ask.reason);
    assert!(!ask.policy_ids.iter().any(|id| id.as_str() == "p"));
    assert_eq!(policy.inert_rules().count(), 1);
    let before = policy.revision();
    let trusted = policy.with_project_trust(true);
    assert_ne!(trusted.revision(), before);
    assert_eq!(trusted.inert_rules().count(), 0);
    assert_eq!(word(&trusted.decide(&edit, &asker(DefaultPolicy::Ask, &[]))), "allow");
    assert_ne!(file_hash(text), file_hash(&format!("{text} ")));
}

#[test]
fn r8_a_pinned_default_asks_whatever_allows_say() {
    let policy = user("[[rules]]\naction=\"*\"\neffect=\"allow\"");
    let decision = policy.decide(&run(&["ls"]), &asker(DefaultPolicy::AskPinned, &[]));
    let Decision::Ask(ask) = decision else { panic!("pinned") };
    assert!(ask.pinned && ask.suggested_rules.is_empty());
    assert_eq!(ask.deciding.expect("a default decides").id.as_str(), "tool_default:shell_run");
}

#[test]
fn l31_only_a_written_opaque_rule_allows_the_opaque() {
    let opaque = request("shell_run", Resource::opaque("eval $x"), Risk::Execute);
    let any = user("[[rules]]\naction=\"*\"\neffect=\"allow\"");
    assert_eq!(word(&any.decide(&opaque, &asker(DefaultPolicy::Allow, &[]))), "ask");
    let written = user("[[rules]]\naction=\"*\"\nopaque=true\neffect=\"allow\"");
    assert_eq!(word(&written.decide(&opaque, &asker(DefaultPolicy::Allow, &[]))), "allow");
}

#[test]
fn l33_what_a_person_typed_stays_literal() {
    let policy = user("");
    for path in
        ["/workspace/*", "/workspace/[id]/{a,b}?.ts", "/workspace/a\\*b", "/workspace/**/x", "/workspace/\"q\"\n'"]
    {
        let edit = request("edit", Resource::path(path, path), Risk::Write);
        let Decision::Ask(ask) = policy.decide(&edit, &asker(DefaultPolicy::Ask, &[])) else { panic!("asks") };
        let suggested = &ask.suggested_rules[0];
        let adopted = PolicyBuilder::new().rules(rules(&suggested.to_toml(), Layer::User)).build().expect("one rule");
        assert_eq!(word(&adopted.decide(&edit, &asker(DefaultPolicy::Ask, &[]))), "allow", "{path}");
        for other in ["/workspace/i/a1.ts", "/workspace/axb", "/workspace/q/x", "/workspace/zz", "/workspace"] {
            let near = request("edit", Resource::path(other, other), Risk::Write);
            assert_eq!(
                word(&adopted.decide(&near, &asker(DefaultPolicy::Ask, &[]))),
                "ask",
                "{path} must not reach {other}"
            );
        }
        assert_eq!((suggested.would_allow[0].as_str(), suggested.would_allow.len()), (path, 3));
        assert_eq!(suggested.would_not_allow.len(), 3);
        assert!(suggested.reach.ends_with(&format!("on exactly: {path}")), "{}", suggested.reach);
    }
    let Decision::Ask(ask) = policy.decide(&run(&["npm", "test", "$"]), &asker(DefaultPolicy::Ask, &[])) else {
        panic!("asks")
    };
    let adopted =
        PolicyBuilder::new().rules(rules(&ask.suggested_rules[0].to_toml(), Layer::User)).build().expect("one rule");
    for (argv, want) in
        [(&["npm", "test", "$"][..], "allow"), (&["npm", "test"], "ask"), (&["npm", "test", "$", "x"], "ask")]
    {
        assert_eq!(word(&adopted.decide(&run(argv), &asker(DefaultPolicy::Ask, &[]))), want, "{argv:?}");
    }
}

#[test]
fn l33_nothing_is_suggested_that_one_grant_could_not_settle() {
    let policy = user("[[rules]]\nid=\"x\"\naction=\"edit\"\npath=\"a\"\neffect=\"ask\"");
    let edit = |p: &str| request("edit", Resource::path(p, p), Risk::Write);
    let suggested = |requests: &[AccessRequest]| match policy.decide(requests, &asker(DefaultPolicy::Ask, &[])) {
        Decision::Ask(ask) => ask.suggested_rules.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(suggested(&[edit("/workspace/b"), edit("/workspace/c")].concat()), 1);
    assert_eq!(suggested(&[edit("/workspace/a"), edit("/workspace/b")].concat()), 0, "two deciding rules");
    assert_eq!(suggested(&[edit("/workspace/b"), run(&["ls"])].concat()), 0, "two actions");
    assert_eq!(suggested(&request("edit", Resource::opaque("?"), Risk::Write)), 0, "opaque");
}

#[test]
fn enterprise_denies_reach_every_decision() {
    let enterprise = EnterprisePolicy::parse("[[rules]]\nid=\"e\"\naction=\"web_*\"\neffect=\"deny\"", "policy.toml")
        .expect("well formed");
    let policy = PolicyBuilder::new()
        .enterprise(&enterprise)
        .rules(rules("[[rules]]\naction=\"*\"\neffect=\"allow\"", Layer::User))
        .build()
        .expect("unique");
    let here = asker(DefaultPolicy::Allow, &[]);
    assert_eq!(
        word(&policy.decide(&request("web_fetch", Resource::own(ResourceKind::Host, "x.y"), Risk::Network), &here)),
        "deny"
    );
    assert_eq!(policy.wholly_denied(&Action::new("web_fetch"), &here).expect("for every resource").as_str(), "e");
    assert_eq!(policy.wholly_denied(&Action::new("read"), &here), None);
}

#[test]
fn wholly_denied_means_for_this_asker_now_and_every_resource() {
    let policy = user(
        "[[rules]]\naction=\"a\"\npath=\"/**\"\neffect=\"deny\"\n[[rules]]\naction=\"b\"\nagent=\"z\"\neffect=\"deny\"\n[[rules]]\naction=\"c\"\nexpires_at=\"1970-01-01T00:00:01Z\"\neffect=\"deny\"",
    );
    let at = |agent, now| Asker {
        agent,
        session: Some(SessionId::from_u128(1)),
        project: None,
        now,
        default: DefaultPolicy::Ask,
        grants: &[],
    };
    let (early, late) = (Timestamp::from_micros(0), Timestamp::from_micros(1_000_000));
    let hidden = |action: &str, who: &Asker<'_>| policy.wholly_denied(&Action::new(action), who).is_some();
    assert!(!hidden("a", &at(None, early)));
    assert!(hidden("b", &at(Some("z"), early)) && !hidden("b", &at(None, early)));
    assert!(hidden("c", &at(None, early)) && !hidden("c", &at(None, late)));
}

/// Measured in release: `cargo test --release -p portcullis-policy --test gate -- --nocapture speed`.
#[test]
fn speed_of_a_decision_among_a_thousand_rules() {
    for (name, pattern) in [
        ("deep names", "path=\"**/name#\""),
        ("suffixes", "path=\"**/*.e#\""),
        ("folders", "path=\"d#/**\""),
        ("inner stars", "path=\"d*#/*x\""),
        ("literals", "path=\"d#/f\""),
        ("argv", "argv=[\"git\",\"c#\"]"),
        ("any", ""),
    ] {
        let effects = ["allow", "ask", "deny"];
        let text: String = (0..1_000)
            .map(|i| {
                format!(
                    "[[rules]]\naction=\"a{}\"\n{}\neffect=\"{}\"\n",
                    i % 7,
                    pattern.replace('#', &i.to_string()),
                    effects[i % 3]
                )
            })
            .collect();
        let policy = user(&text);
        let requests = [
            request("a3", Resource::path("/workspace/d17/deep/er/name412.e9x", ""), Risk::Read),
            request("a3", Resource::argv(&words(&["git", "c12"]), ""), Risk::Execute),
        ];
        let rounds = 2_000;
        let start = std::time::Instant::now();
        for i in 0..rounds {
            std::hint::black_box(policy.decide(&requests[i % 2], &asker(DefaultPolicy::Ask, &[])));
        }
        let each = start.elapsed() / u32::try_from(rounds).expect("few");
        println!("{name}: {each:?} a decision");
        // A wide margin: debug builds on a busy machine. Quadratic work would still show.
        assert!(each < std::time::Duration::from_millis(5), "{name}: {each:?}");
    }
}
