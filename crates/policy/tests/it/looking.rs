//! Commands that only look need no rule of their own beside others (tool-contract 13.3), and weaken nothing.

use portcullis_base::{Risk, RiskSet, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource, ResourceClass};
use portcullis_policy::{Asker, Decision, Grant, GrantScope, Layer, Policy, PolicyBuilder, Satisfies, parse_rules};
use proptest::prelude::*;

fn policy(rules: &str) -> Policy {
    let rules = parse_rules(rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn rule(argv: &str, effect: &str) -> String {
    format!("[[rules]]\naction = \"bash\"\nargv = [\"{argv}\"]\neffect = \"{effect}\"\n")
}

fn command(word: &str) -> Resource {
    Resource::argv(&[word.to_owned()], word)
}

/// The same command, known to look at these places and to do nothing else.
fn looking(word: &str, places: &[Resource]) -> Resource {
    Resource { looks_at: Some(places.to_vec()), ..command(word) }
}

fn with(policy: &Policy, parts: &[Resource], default: DefaultPolicy, grants: &[Grant]) -> Decision {
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default, grants };
    let mut parts = parts.iter().cloned();
    let first = parts.next().expect("a part");
    let request = AccessRequest::new(Action::new("bash"), first, RiskSet::from([Risk::Execute]));
    policy.decide(&[parts.fold(request, AccessRequest::also)], &asker)
}

fn decide(policy: &Policy, parts: &[Resource]) -> Decision {
    with(policy, parts, DefaultPolicy::Auto, &[])
}

fn allows(decision: &Decision) -> bool {
    matches!(decision, Decision::Allow(_))
}

fn inside(name: &str) -> Resource {
    Resource::path(format!("/workspace/{name}"), name)
}

#[test]
fn a_command_that_only_looks_needs_no_rule_beside_one_that_is_allowed() {
    let make = policy(&rule("make", "allow"));
    for places in [vec![], vec![inside("a")], vec![inside("a"), inside("b/c")]] {
        assert!(allows(&decide(&make, &[command("make"), looking("tail", &places)])));
        assert!(allows(&decide(&make, &[looking("cd", &places), command("make"), looking("ls", &places)])));
    }
    // The controls: not known to only look, nothing beside it, another command beside it, another default.
    assert!(!allows(&decide(&make, &[command("make"), command("tail")])));
    assert!(!allows(&decide(&make, &[looking("cd", &[]), looking("ls", &[])])));
    assert!(!allows(&decide(&make, &[command("make"), looking("ls", &[]), command("curl")])));
    for default in [DefaultPolicy::Ask, DefaultPolicy::AskPinned] {
        assert!(!allows(&with(&make, &[command("make"), looking("ls", &[])], default, &[])), "{default:?}");
    }
}

#[test]
fn what_it_looks_at_must_be_readable_unasked() {
    let make = rule("make", "allow");
    let outside = Resource { inside: false, ..inside("x") };
    let secret = inside(".env").classed(Some(ResourceClass::Secret(".env".to_owned())));
    let parts = |place: &Resource| [command("make"), looking("cat", std::slice::from_ref(place))];
    for place in [outside, secret, Resource::opaque("x")] {
        assert!(!allows(&decide(&policy(&make), &parts(&place))), "{place:?}");
    }
    let read = |path: &str, effect: &str| {
        policy(&format!("{make}[[rules]]\naction = \"read\"\npath = \"{path}\"\neffect = \"{effect}\"\n"))
    };
    assert!(!allows(&decide(&read("/workspace/a", "deny"), &parts(&inside("a")))));
    assert!(allows(&decide(&read("/workspace/a", "deny"), &parts(&inside("b")))));
    // A command before it may put the one file in the place of the other.
    for effect in ["ask", "ask_pinned"] {
        assert!(!allows(&decide(&read("/workspace/a", effect), &parts(&inside("b")))), "{effect}");
        assert!(allows(&decide(&read("/workspace/a", effect), &[command("make"), looking("pwd", &[])])), "{effect}");
    }
}

#[test]
fn l33_a_remembered_answer_to_the_rest_of_a_line_settles_the_line() {
    let policy = policy("");
    let parts = [command("make"), looking("tail", &[])];
    let Decision::Ask(ask) = decide(&policy, &parts) else { panic!("it is asked about") };
    assert!(ask.reason.contains("make") && !ask.reason.contains("tail"), "{}", ask.reason);
    let grant = Grant {
        id: portcullis_base::GrantId::from_u128(1),
        rule: ask.suggested_rules.first().expect("a rule").rule(),
        satisfies: Satisfies::from(ask.deciding.as_ref().expect("the default asks")),
        scope: GrantScope::default(),
        created_by: "ada".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    };
    assert!(allows(&with(&policy, &parts, DefaultPolicy::Auto, std::slice::from_ref(&grant))));
    let more = [&parts[..], &[command("curl")]].concat();
    assert!(!allows(&with(&policy, &more, DefaultPolicy::Auto, std::slice::from_ref(&grant))));
}

const WORDS: [&str; 4] = ["make", "git", "tail", "ls"];
const EFFECTS: [&str; 4] = ["allow", "ask", "ask_pinned", "deny"];

/// From the mildest to the strictest, with whose ask it is.
fn strictness(decision: &Decision) -> (u8, bool) {
    match decision {
        Decision::Allow(_) => (0, false),
        Decision::Ask(ask) => (1 + u8::from(ask.pinned), ask.only_a_person),
        Decision::Deny(_) => (3, false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the rules are: beside such a part every other part is decided as before, a line with a denied part stays
    /// denied, and a rule about the part itself holds.
    #[test]
    fn a_part_that_only_looks_changes_the_decision_of_no_other(
        rules in proptest::collection::vec((proptest::sample::select(&WORDS[..]), proptest::sample::select(&EFFECTS[..])), 0..5),
        words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 1..4),
        added in proptest::sample::select(&WORDS[2..]),
        at in any::<proptest::sample::Index>(),
    ) {
        let text: String = rules.iter().map(|(word, effect)| rule(word, effect)).collect();
        let policy = policy(&text);
        let line: Vec<Resource> = words.iter().map(|word| command(word)).collect();
        let insert = |part: Resource| {
            let mut longer = line.clone();
            longer.insert(at.index(line.len() + 1), part);
            decide(&policy, &longer)
        };
        let (alone, looks, plain) = (decide(&policy, &line), insert(looking(added, &[inside("a")])), insert(command(added)));
        let spoken_of = rules.iter().any(|(word, _)| *word == added);
        // Never milder than the line without it, never stricter than with a part of which nothing is known.
        prop_assert!(strictness(&alone) <= strictness(&looks), "{alone:?} {looks:?}");
        prop_assert!(strictness(&looks) <= strictness(&plain), "{looks:?} {plain:?}");
        if spoken_of {
            prop_assert_eq!(strictness(&looks), strictness(&plain));
        } else {
            prop_assert_eq!(strictness(&looks), strictness(&alone));
            if let (Decision::Ask(before), Decision::Ask(after)) = (&alone, &looks) {
                prop_assert_eq!(&before.deciding, &after.deciding);
                prop_assert_eq!(&before.suggested_rules, &after.suggested_rules);
            }
        }
    }
}
