//! L33 on input: what a line feeds to a command is no part of its words, so that no remembered answer reaches it.

use portcullis_base::{GrantId, Timestamp};
use portcullis_command::{analyse, read_only};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy};
use portcullis_policy::{
    Asker, Decision, Grant, GrantScope, Layer, Policy, PolicyBuilder, Satisfies, lexical, line_access, parse_rules,
};
use proptest::prelude::*;

fn policy(rules: &str) -> Policy {
    let rules = parse_rules(rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn requests(line: &str) -> Vec<AccessRequest> {
    line_access(&analyse(line), &Action::new("bash"), line, &lexical("/workspace"))
}

/// As in profile `code`: reading inside is allowed, running is asked about.
fn decide(policy: &Policy, line: &str, grants: &[Grant]) -> Decision {
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Auto, grants };
    policy.decide(&requests(line), &asker)
}

/// What is remembered of a yes to this line, if anything can be.
fn remembered(policy: &Policy, line: &str) -> Option<Grant> {
    let Decision::Ask(ask) = decide(policy, line, &[]) else { panic!("{line} is asked about") };
    let suggested = ask.suggested_rules.first()?;
    Some(Grant {
        id: GrantId::from_u128(1),
        rule: suggested.rule(),
        satisfies: Satisfies::from(ask.deciding.as_ref().expect("the default asks")),
        scope: GrantScope::default(),
        created_by: "ada".into(),
        created_at: Timestamp::from_micros(0),
        expires_at: None,
        uses: 0,
    })
}

/// The same words with input, in every way that a line has: `@` is the command, `%` what it reads.
const FEEDS: &[&str] = &[
    "@ <<'E'\n%\nE",
    "@ <<E\n%\nE",
    "@ <<-E\n%\nE",
    "@ <<< '%'",
    "<<< '%' @",
    "@ 3<<< '%' <&3",
    "@ < '%'",
    "@ <> '%'",
    "echo '%' | @",
    "cat a |& @",
    "cat a | @ | tail -1",
    "(@) <<< '%'",
    "{ ls; @; } <<< '%'",
    "echo '%' | { @; }",
    "if true; then @; fi <<< '%'",
    "while @; do ls; done <<< '%'",
    "for f in a; do ls; done | @",
    "echo '%' | (ls; (@))",
    "coproc @",
    "ls && @ <<< '%'",
    "@; @ <<< '%'",
];

#[test]
fn l33_a_command_that_is_fed_cannot_be_remembered_and_no_remembered_answer_reaches_it() {
    let policy = policy("");
    for command in
        ["patch -p1", "xargs -0", "git apply", "make -f Makefile", "gzip -d a.txt", "git hash-object -w", "sort -o a"]
    {
        let grant = remembered(&policy, command).unwrap_or_else(|| panic!("{command} can be remembered"));
        for feed in FEEDS {
            let line = feed.replace('@', command).replace('%', "a.txt");
            assert!(analyse(&line).fed.iter().any(|argv| argv.join(" ") == command), "{line}: {:?}", analyse(&line));
            assert!(remembered(&policy, &line).is_none(), "{line} must not be remembered");
            let decision = decide(&policy, &line, std::slice::from_ref(&grant));
            assert!(matches!(decision, Decision::Ask(_)), "{line} is reached by a yes to {command}");
        }
    }
}

#[test]
fn l33_what_shells_and_interpreters_read_from_their_input_is_opaque() {
    for line in [
        "bash /dev/stdin <<< ls",
        "sh -x /dev/stdin <<< ls",
        "bash //dev/./stdin <<< ls",
        "bash /dev/fd/0 <<< ls",
        "bash /proc/self/fd/0 <<< ls",
        "bash /proc/1/fd/0 <<< ls",
        "bash ../../dev/stdin <<< ls",
        "bash -s a b <<< ls",
        "bash -es a <<< ls",
        "bash -o pipefail <<< ls",
        "bash -eo pipefail <<< ls",
        "bash -O extglob <<< ls",
        "bash --rcfile a <<< ls",
        "bash --rcfile /dev/stdin -ic true <<< ls",
        "bash - <<< ls",
        "bash -- <<< ls",
        "posh <<< ls",
        "yash <<< ls",
        "ksh93 <<< ls",
        "bash5 <<< ls",
        "echo ls | bash /dev/stdin",
        "echo ls | nice sh",
        "python3 /dev/stdin <<< 'import os'",
        "python3 - <<< 'import os'",
        "python3 - a b <<< 'import os'",
        "python3 -W ignore <<< 'import os'",
        "python3 -u -X dev - <<< 'import os'",
        "python3.12 -I -W ignore - a <<< 'import os'",
        "node /dev/stdin <<< x",
        "node - a <<< x",
        "perl /dev/stdin <<< x",
        "perl -I lib <<< x",
        "ruby - <<< x",
        "php -d a=b <<< x",
        "deno run - <<< x",
        "make -f /dev/stdin <<< 'all:;ls'",
        "make -f - <<< 'all:;ls'",
        "make -f- <<< 'all:;ls'",
        "make --file=/dev/stdin <<< 'all:;ls'",
        "make --makefile /dev/stdin <<< 'all:;ls'",
        "gmake -C a -sf /dev/stdin <<< 'all:;ls'",
        "echo rm v | xargs env",
        "echo rm v | xargs -n1 sudo -u root",
        "echo rm v | xargs timeout 5",
        "echo rm | xargs -I{} {} v",
        "echo rm | xargs -I % % v",
        "echo rm | xargs -i {} v",
        "echo rm | xargs --replace=@ env @ v",
        "echo x | xargs sh",
        "echo x | xargs bash -c",
        "find . -exec {} v ';'",
        "find . -exec env {} ';'",
    ] {
        assert!(!analyse(line).opaque.is_empty(), "{line}: {:?}", analyse(line));
    }
}

#[test]
fn l33_a_rule_that_a_person_wrote_holds_for_a_command_that_is_fed() {
    let written = policy("[[rules]]\naction = \"*\"\nargv = [\"patch\"]\neffect = \"allow\"\n");
    for line in ["patch -p1 <<'E'\na\nE", "patch -p1 <<< a", "patch -p1 < a.diff"] {
        assert!(matches!(decide(&written, line, &[]), Decision::Allow(_)), "{line}");
    }
    // It does not hold for a shell that reads what it runs: nobody can tell what that is.
    let shell = policy("[[rules]]\naction = \"*\"\nargv = [\"bash\"]\neffect = \"allow\"\n");
    assert!(matches!(decide(&shell, "bash a.sh", &[]), Decision::Allow(_)));
    assert!(matches!(decide(&shell, "bash /dev/stdin <<< ls", &[]), Decision::Ask(_)));
}

#[test]
fn l33_what_is_not_fed_is_still_remembered() {
    let policy = policy("");
    for line in [
        "git commit -m x",
        "cargo test",
        "cargo test 2>&1 | tail -5",
        "cargo test | grep FAILED | head -n 3",
        "npm test < /dev/null",
        "npm test 2>/dev/null",
        "cargo build && cargo test",
        "patch -p1 -i a.diff",
        "python3 script.py -",
        "python3 -m pytest",
        "python3 -W ignore script.py",
        "bash script.sh a",
        "bash -e script.sh",
        "bash -c 'echo a | patch -p1'",
        "bash -euo pipefail -c 'cargo test | tail'",
        "make -f other.mk",
        "make -j4 test",
        "exec 3<&-",
    ] {
        let grant = remembered(&policy, line).unwrap_or_else(|| panic!("{line}: {:?}", analyse(line)));
        assert!(matches!(decide(&policy, line, std::slice::from_ref(&grant)), Decision::Allow(_)), "{line}");
        assert_eq!(analyse(line).fed, Vec::<Vec<String>>::new(), "{line}");
    }
    for line in ["grep x f | head", "cat a | sort | uniq -c", "head < a.txt", "ls | wc -l"] {
        assert!(read_only(line).is_ok(), "{line}");
        assert_eq!(analyse(line).fed, Vec::<Vec<String>>::new(), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The neighbour "the same words, other input", of whatever was remembered.
    #[test]
    fn l33_the_same_words_with_other_input_are_no_neighbour_that_is_reached(
        words in proptest::collection::vec("x[a-c-]{0,3}", 1..4),
        input in "[a-c ;.]{1,12}",
        first in proptest::sample::select(FEEDS), other in proptest::sample::select(FEEDS),
    ) {
        let policy = policy("");
        let command = words.join(" ");
        let fed = |feed: &str, input: &str| feed.replace('@', &command).replace('%', input);
        let grant = remembered(&policy, &command).expect("plain words can be remembered");
        let reached = decide(&policy, &fed(other, &input), std::slice::from_ref(&grant));
        prop_assert!(matches!(reached, Decision::Ask(_)), "{}", fed(other, &input));
        // And a fed command leaves nothing that could reach another.
        prop_assert!(remembered(&policy, &fed(first, &input)).is_none(), "{}", fed(first, &input));
    }
}
