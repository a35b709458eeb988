//! L33: a suggested rule, tried on two hundred neighbours of what was asked, allows none beyond its displayed reach.

use portcullis_base::{GrantId, Risk, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource};
use portcullis_policy::{Asker, Decision, Grant, GrantScope, Policy, PolicyBuilder, Satisfies};
use proptest::prelude::*;

fn asker(grants: &[Grant]) -> Asker<'_> {
    let now = Timestamp::from_micros(1);
    Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Ask, grants }
}

fn edit(path: &str) -> [AccessRequest; 1] {
    [AccessRequest::new(Action::new("edit"), Resource::path(path, path), [Risk::Write].into())]
}

fn run(words: &[String]) -> [AccessRequest; 1] {
    [AccessRequest::new(Action::new("run"), Resource::argv(words, ""), [Risk::Execute].into())]
}

/// What a person remembers who answers this ask.
fn adopted(policy: &Policy, asked: &[AccessRequest]) -> (Grant, Vec<String>) {
    let Decision::Ask(ask) = policy.decide(asked, &asker(&[])) else { panic!("nothing allows it") };
    let suggested = &ask.suggested_rules[0];
    assert!(suggested.would_allow.len() >= 3 && suggested.would_not_allow.len() == 3, "{suggested:?}");
    let grant = Grant {
        id: GrantId::from_u128(1),
        rule: suggested.rule(),
        satisfies: Satisfies::from(ask.deciding.as_ref().expect("a default asked")),
        scope: GrantScope::default(),
        created_by: "ada".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    };
    (grant, suggested.would_not_allow.clone())
}

fn allowed(policy: &Policy, request: &[AccessRequest], grant: &Grant) -> bool {
    matches!(policy.decide(request, &asker(std::slice::from_ref(grant))), Decision::Allow(_))
}

/// A text near `text`: a character changed, left out or put in, wildcards among them.
fn near(text: &str, at: usize, with: char, how: usize) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = at % chars.len().max(1);
    match how % 4 {
        0 => chars.insert(at, with),
        1 if chars.len() > 1 => drop(chars.remove(at)),
        2 => chars[at] = with,
        _ => chars.push(with),
    }
    chars.into_iter().collect()
}

/// The segments that a path names, however it is written.
fn plain(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect()
}

const NEIGHBOURS: usize = 200;
/// What means something to some pattern, and what does not.
const CHARS: &str = "[*?\\[\\]{}$!\\\\./ a-cA-C\u{e9}\n-]";

fn changes() -> impl Strategy<Value = Vec<(usize, char, usize)>> {
    let char = CHARS.prop_map(|text: String| text.chars().next().unwrap_or('x'));
    proptest::collection::vec((0usize..64, char, 0usize..8), NEIGHBOURS)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l33_a_suggested_path_reaches_none_of_two_hundred_neighbours(
        name in "[*?\\[\\]{}$\\\\a-c ]{1,6}(/[*?a-c]{1,4}){0,2}", changes in changes(),
    ) {
        let policy = PolicyBuilder::new().build().expect("no rules");
        let path = format!("/workspace/{name}");
        let (grant, near_misses) = adopted(&policy, &edit(&path));
        prop_assert!(allowed(&policy, &edit(&path), &grant));
        for miss in near_misses {
            prop_assert!(!allowed(&policy, &edit(&miss), &grant), "{miss} was shown as out of reach");
        }
        for (at, with, how) in changes {
            let other = if how < 4 { near(&path, at + 1, with, how) } else { format!("{path}/{with}") };
            prop_assert!(plain(&other) == plain(&path) || !allowed(&policy, &edit(&other), &grant), "{path:?} reaches {other:?}");
        }
    }

    #[test]
    fn l33_a_suggested_command_reaches_none_of_two_hundred_neighbours(
        words in proptest::collection::vec("[*?$\\\\a-c -]{1,5}", 1..4), changes in changes(),
    ) {
        let policy = PolicyBuilder::new().build().expect("no rules");
        let (grant, _) = adopted(&policy, &run(&words));
        prop_assert!(allowed(&policy, &run(&words), &grant));
        for (at, with, how) in changes {
            let mut other = words.clone();
            match how {
                0..4 => {
                    let word = at % other.len();
                    other[word] = near(&words[word], at / 4, with, how);
                }
                4 => other.push(with.to_string()),
                5 => other.insert(0, with.to_string()),
                6 => other.truncate(at % words.len()),
                _ => other.reverse(),
            }
            prop_assert!(other == words || !allowed(&policy, &run(&other), &grant), "{words:?} reaches {other:?}");
            // One more command in the same call is not what was asked about.
            let both = [run(&words), run(&[with.to_string()])].concat();
            prop_assert!(words == [with.to_string()] || !allowed(&policy, &both, &grant));
        }
    }
}
