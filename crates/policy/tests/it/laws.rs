//! L27–L31, L33, L34 and L38 against the naive oracle.

use crate::oracle;
use crate::worlds;

use std::sync::Arc;

use portcullis_base::{Digest, GrantId, SessionId, Timestamp};
use portcullis_contract::{AccessRequest, DefaultPolicy, ResourceKind};
use portcullis_policy::{Ask, Decision, Fault, Grant, GrantScope, Layer, RuleEffect, Satisfies, lint, parse_rules};
use proptest::prelude::*;

use oracle::Verdict;
use worlds::{Scene, asker, naive_rule, policy, scene, touch, verdict as strict};

/// A grant for the ask as its first suggestion puts it.
fn adopt(ask: &Ask) -> Option<Grant> {
    Some(Grant {
        id: GrantId::from_u128(1),
        rule: ask.suggested_rules.first()?.rule(),
        satisfies: Satisfies::from(ask.deciding.as_ref()?),
        scope: GrantScope { project: Some("p".into()), agent: Some("a".into()), session: None },
        created_by: "usr".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_is_the_oracles(scene in scene()) {
        let policy = policy(&scene.rules, scene.trusted);
        let decision = policy.decide(&scene.requests(), &asker(scene.default, &[]));
        let world = scene.world();
        prop_assert_eq!(strict(&decision), world.all(&scene.touches));
        let written: Vec<String> = decision.policy_ids().iter().map(ToString::to_string)
            .filter(|id| !id.starts_with("tool_default:")).collect();
        prop_assert_eq!(written, world.matched_ids(&scene.touches), "all matched ids are reported");
    }

    #[test]
    fn l27_deny_first(scene in scene(), at in any::<prop::sample::Index>(), layer in 0usize..6) {
        prop_assume!(!scene.touches.is_empty());
        let denied = &scene.touches[at.index(scene.touches.len())];
        let mut rules = scene.rules.clone();
        let mut deny = naive_rule("zz-deny", layer, "deny");
        deny.action = worlds::escaped(&denied.action);
        rules.push(deny);
        let policy = policy(&rules, scene.trusted);
        let requests = scene.requests();
        prop_assert_eq!(strict(&policy.decide(&requests, &asker(scene.default, &[]))), Verdict::Deny);
        prop_assert!(policy.denies(&requests, &asker(scene.default, &[])).is_some());
    }

    #[test]
    fn l27_the_precheck_denies_exactly_what_the_gate_denies(scene in scene()) {
        let policy = policy(&scene.rules, scene.trusted);
        let requests = scene.requests();
        let gate = strict(&policy.decide(&requests, &asker(scene.default, &[])));
        let pre = policy.denies(&requests, &asker(scene.default, &[])).is_some();
        prop_assert_eq!(pre, gate == Verdict::Deny);
    }

    #[test]
    fn l28_order_independence(scene in scene(), seed in any::<u64>()) {
        let mut shuffled = scene.rules.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(i, usize::try_from(state >> 33).expect("31 bits") % (i + 1));
        }
        let (a, b) = (policy(&scene.rules, scene.trusted), policy(&shuffled, scene.trusted));
        prop_assert_eq!(a.revision(), b.revision());
        let requests = scene.requests();
        prop_assert_eq!(
            a.decide(&requests, &asker(scene.default, &[])),
            b.decide(&requests, &asker(scene.default, &[]))
        );
    }

    #[test]
    fn l29_monotone(scene in scene(), more in worlds::rule_strategy(), effect in 0usize..3) {
        let mut more = more;
        more.id = "zz-more".into();
        more.effect = ["deny", "ask_pinned", "allow"][effect];
        let requests = scene.requests();
        let before = strict(&policy(&scene.rules, scene.trusted).decide(&requests, &asker(scene.default, &[])));
        let mut rules = scene.rules.clone();
        rules.push(more);
        let after = strict(&policy(&rules, scene.trusted).decide(&requests, &asker(scene.default, &[])));
        if effect == 2 {
            prop_assert!(before != Verdict::Deny || after == Verdict::Deny);
        } else {
            prop_assert!(after >= before);
        }
    }

    #[test]
    fn l29_an_untrusted_project_file_never_permits_more(scene in scene()) {
        // Every ask has been granted that could be, with and without the project's file.
        let requests = scene.requests();
        let without: Vec<_> = scene.rules.iter().filter(|r| r.layer != 2).cloned().collect();
        let with_file = policy(&scene.rules, false);
        let without_file = policy(&without, false);
        let grants: Vec<Grant> = with_file
            .rules()
            .iter()
            .filter(|rule| rule.layer == Layer::Project)
            .map(worlds::grant_all)
            .collect();
        let after = strict(&with_file.decide(&requests, &asker(scene.default, &grants)));
        let before = strict(&without_file.decide(&requests, &asker(scene.default, &grants)));
        prop_assert!(after >= before, "{after:?} with the file, {before:?} without");
    }

    #[test]
    fn l30_strictest(a in scene(), b in proptest::collection::vec(touch(), 1..3)) {
        prop_assume!(!a.touches.is_empty());
        let policy = policy(&a.rules, a.trusted);
        let (left, right) = (a.requests(), worlds::requests(&b));
        // With every ask of one part granted the law still holds.
        let grants: Vec<Grant> = match policy.decide(&left, &asker(a.default, &[])) {
            Decision::Ask(ask) => adopt(&ask).into_iter().collect(),
            _ => Vec::new(),
        };
        for grants in [&grants[..], &[]] {
            let decide = |r: &[AccessRequest]| policy.decide(r, &asker(a.default, grants));
            let both = strict(&decide(&[left.clone(), right.clone()].concat()));
            prop_assert_eq!(both, strict(&decide(&left)).max(strict(&decide(&right))));
            prop_assert_eq!(strict(&decide(&left).strictest(decide(&right))), both);
        }
    }

    #[test]
    fn l31_no_empty_allow(scene in scene()) {
        let policy = policy(&scene.rules, scene.trusted);
        prop_assert_eq!(strict(&policy.decide(&[], &asker(scene.default, &[]))), Verdict::Ask);
        let explicit = scene.rules.iter().any(|r| r.effect == "allow" && matches!(r.pattern, oracle::Pattern::Opaque));
        let opaque = scene.touches.iter().any(|t| t.kind == ResourceKind::Opaque);
        if opaque && !explicit {
            prop_assert!(strict(&policy.decide(&scene.requests(), &asker(scene.default, &[]))) > Verdict::Allow);
        }
    }

    #[test]
    fn l33_suggested_rule(scene in scene(), near in proptest::collection::vec(touch(), 1..6)) {
        let policy = policy(&scene.rules, scene.trusted);
        let requests = scene.requests();
        let Decision::Ask(ask) = policy.decide(&requests, &asker(scene.default, &[])) else { return Ok(()) };
        let Some(grant) = adopt(&ask) else { return Ok(()) };
        prop_assert!(!ask.pinned);
        let grants = [grant];
        prop_assert_eq!(strict(&policy.decide(&requests, &asker(scene.default, &grants))), Verdict::Allow);
        // It survives storage and being written into a file.
        let suggested = &ask.suggested_rules[0];
        let json = serde_json::to_string(&grants[0]).expect("grants are JSON");
        prop_assert_eq!(&serde_json::from_str::<Grant>(&json).expect("read back"), &grants[0]);
        let read = parse_rules(&suggested.to_toml(), "s.toml", Layer::User).expect("TOML-able");
        prop_assert_eq!((&read[0].action, read[0].effect), (&suggested.action, RuleEffect::Allow));
        prop_assert_eq!(serde_json::to_value(&read[0].resource).expect("json"), serde_json::to_value(&suggested.resource).expect("json"));
        // A neighbour that was asked about before is still asked about, unless it was displayed.
        for near in near {
            let request = worlds::requests(std::slice::from_ref(&near));
            let before = strict(&policy.decide(&request, &asker(scene.default, &[])));
            let after = strict(&policy.decide(&request, &asker(scene.default, &grants)));
            if after != before {
                let same = scene.touches.iter().any(|t| t.action == near.action && t.kind == near.kind && t.text == near.text);
                prop_assert!(same, "{near:?} became {after:?}");
            }
        }
    }

    #[test]
    fn a_rule_found_shadowed_changes_no_decision_by_going(scene in scene()) {
        let rules: Vec<_> = policy(&scene.rules, scene.trusted).rules().to_vec();
        let requests = scene.requests();
        let before = strict(&policy(&scene.rules, scene.trusted).decide(&requests, &asker(scene.default, &[])));
        for finding in lint(&rules, &[], worlds::NOW) {
            let Fault::Shadowed { .. } = finding.fault else { continue };
            let id = finding.rule.to_string();
            let without: Vec<_> = scene.rules.iter().filter(|rule| rule.id != id).cloned().collect();
            let after = strict(&policy(&without, scene.trusted).decide(&requests, &asker(scene.default, &[])));
            prop_assert_eq!(before, after, "{}", finding);
        }
    }

    #[test]
    fn l38_delegation(child in scene(), parent in scene(), above in scene()) {
        // What a child may do, its parent and whoever sent the parent may do too, granted or not.
        let requests = child.requests();
        let parents = Arc::new(policy(&parent.rules, parent.trusted).intersect(&Arc::new(policy(&above.rules, false))));
        let effective = policy(&child.rules, child.trusted).intersect(&parents);
        let grants = match effective.decide(&requests, &asker(child.default, &[])) {
            Decision::Ask(ask) => adopt(&ask).into_iter().collect(),
            _ => Vec::new(),
        };
        for grants in [&grants[..], &[]] {
            let ours = strict(&effective.decide(&requests, &asker(child.default, grants)));
            let each = [policy(&child.rules, child.trusted), policy(&parent.rules, parent.trusted), policy(&above.rules, false)];
            let strictest = each.iter().map(|p| strict(&p.decide(&requests, &asker(child.default, grants)))).max();
            prop_assert_eq!(Some(ours), strictest);
            let denied = effective.denies(&requests, &asker(child.default, grants)).is_some();
            prop_assert_eq!(denied, ours == Verdict::Deny);
        }
        if let [grant] = &grants[..] {
            let adopted = effective.decide(&requests, &asker(child.default, std::slice::from_ref(grant)));
            prop_assert_eq!(strict(&adopted), Verdict::Allow, "a suggestion settles both asks");
        }
        prop_assert_ne!(effective.revision(), policy(&child.rules, child.trusted).revision());
    }

    #[test]
    fn l34_grant_scope(scene in scene(), change in 0usize..9) {
        let first = policy(&scene.rules, scene.trusted);
        let requests = scene.requests();
        let Decision::Ask(ask) = first.decide(&requests, &asker(scene.default, &[])) else { return Ok(()) };
        let Some(mut grant) = adopt(&ask) else { return Ok(()) };
        let base = asker(scene.default, &[]);
        match change {
            0 => grant.scope.agent = Some("other".into()),
            1 => grant.scope.agent = None,
            2 => grant.scope.project = Some("other".into()),
            3 => grant.scope.project = None,
            4 => grant.scope.session = Some(SessionId::from_u128(99)),
            5 => grant.expires_at = Some(base.now),
            6 => grant.satisfies.rule_hash = Digest::of(b"another text"),
            7 => grant.satisfies.rule_id = first.rules().iter().map(|r| r.id.clone())
                .find(|id| *id != grant.satisfies.rule_id)
                .unwrap_or_else(|| portcullis_policy::RuleId::chosen("gone").expect("a word")),
            _ => {
                // The same rule, pinned.
                let mut rules = scene.rules.clone();
                let id = grant.satisfies.rule_id.to_string();
                let Some(asking) = rules.iter_mut().find(|r| r.id == id) else { return Ok(()) };
                asking.effect = "ask_pinned";
                let decision = policy(&rules, scene.trusted).decide(&requests, &asker(scene.default, &[grant]));
                prop_assert_eq!(strict(&decision), Verdict::Pinned);
                return Ok(());
            }
        }
        let decision = first.decide(&requests, &asker(scene.default, &[grant]));
        prop_assert_eq!(decision, Decision::Ask(ask), "the grant does not count");
    }
}

#[test]
fn l34_a_changed_tool_default_voids_its_grants() {
    let scene = Scene {
        rules: vec![],
        trusted: false,
        default: DefaultPolicy::Ask,
        touches: vec![worlds::edit("/workspace/a")],
    };
    let empty = policy(&[], false);
    let Decision::Ask(ask) = empty.decide(&scene.requests(), &asker(DefaultPolicy::Ask, &[])) else {
        panic!("no rule speaks of it");
    };
    let grants = [adopt(&ask).expect("a path can be granted")];
    for (default, want) in [
        (DefaultPolicy::Ask, Verdict::Allow),
        (DefaultPolicy::Auto, Verdict::Ask),
        (DefaultPolicy::AskPinned, Verdict::Pinned),
    ] {
        assert_eq!(strict(&empty.decide(&scene.requests(), &asker(default, &grants))), want);
    }
}

#[test]
fn the_generated_worlds_reach_every_outcome() {
    // Guards the laws above against passing because nothing ever matches.
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    let mut suggestions = 0;
    for _ in 0..600 {
        let scene = scene().new_tree(&mut runner).expect("a scene").current();
        let decision = policy(&scene.rules, scene.trusted).decide(&scene.requests(), &asker(scene.default, &[]));
        *seen.entry(strict(&decision)).or_insert(0) += 1;
        if let Decision::Ask(ask) = decision {
            suggestions += ask.suggested_rules.len();
        }
    }
    assert!(seen.len() == 4 && seen.values().all(|n| *n >= 20), "{seen:?}");
    assert!(suggestions >= 20, "{suggestions}");
}
