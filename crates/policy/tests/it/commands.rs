//! L30 and L32 on command lines: what is analysed, and what rules make of it.

use crate::corpus;

use portcullis_base::Timestamp;
use portcullis_command::{RedirectedFile, analyse, read_only};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, ResourceKind};
use portcullis_policy::{
    Asker, Decision, Grant, GrantScope, Layer, Policy, PolicyBuilder, Satisfies, lexical, line_access, parse_rules,
    plan_access,
};
use proptest::prelude::*;

fn policy(rules: &str) -> Policy {
    let rules = parse_rules(rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn asker(default: DefaultPolicy, grants: &[Grant]) -> Asker<'_> {
    Asker { agent: Some("a"), session: None, project: Some("p"), now: Timestamp::from_micros(1), default, grants }
}

fn requests(line: &str) -> Vec<AccessRequest> {
    line_access(&analyse(line), &Action::new("shell_run"), line, &lexical("/workspace"))
}

fn decide(policy: &Policy, line: &str) -> Decision {
    policy.decide(&requests(line), &asker(DefaultPolicy::Ask, &[]))
}

const DENY_RM: &str = "[[rules]]\naction = \"*\"\nargv = [\"rm\"]\neffect = \"deny\"\n";

/// Both the gate and the pre-check.
fn denied(policy: &Policy, line: &str) -> bool {
    let gate = matches!(decide(policy, line), Decision::Deny(_));
    let before = policy.denies(&requests(line), &asker(DefaultPolicy::Ask, &[])).is_some();
    assert_eq!(gate, before, "{line}");
    gate
}

/// Every wrapper of tool-contract 13.3 and more, each with a hole for the command's words (`@`) or line (`%`).
const WRAPPERS: &[&str] = &[
    "@",
    "env @",
    "env -i @",
    "env A=b @",
    "env -u HOME -C . @",
    "A=b @",
    "sudo @",
    "sudo -u root -- @",
    "doas @",
    "timeout 5 @",
    "timeout -s KILL 5 @",
    "timeout -k 1 --signal=TERM 5 @",
    "nohup @",
    "nice @",
    "nice -n 5 @",
    "ionice -c3 @",
    "stdbuf -oL @",
    "setsid @",
    "chroot /x @",
    "xargs @",
    "xargs -n1 -I{} @",
    "command @",
    "exec @",
    "builtin @",
    "time @",
    "time -p @",
    "! @",
    "eval @",
    "eval '%'",
    "sh -c '%'",
    "bash -c '%'",
    "bash -lc '%'",
    "dash -ec '%'",
    "zsh -c '%'",
    "/bin/sh -c '%'",
    "watch -n 1 @",
    "watch '%'",
    "find . -exec @ {} ';'",
    "find . -name x -execdir @ {} +",
    "parallel @ ::: a",
    "ssh host @",
    "ssh -p 22 host '%'",
    "busybox @",
    "flock f @",
    "taskset 1 @",
    "unshare -r @",
    "script -qc '%' f",
    "su root -c '%'",
    "(@)",
    "( (@) )",
    "((@); ls)",
    "{ @; }",
    "ls; @",
    "ls && @",
    "ls || @",
    "ls | @",
    "@ | cat",
    "ls & @",
    "ls\n@",
    "if true; then @; fi",
    "while @; do ls; done",
    "for f in a; do @; done",
    "case x in x) @;; esac",
    "f() { @; }",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "cat <(@)",
    "ls > >(@)",
    "echo ${x:-$(@)}",
    "A=$(@)",
    "A=$(@) ls",
    "coproc @",
    "cat <<E\n$(@)\nE",
    "cat <<< \"$(@)\"",
    "[[ -n $(@) ]]",
    "echo $((1 + $(@)))",
    "@ > out",
    "2>/dev/null @",
    "env -S '%'",
    "strace -f @",
    "/usr/bin/env @",
    "ls # c\n@",
];

#[test]
fn l32_a_denied_command_is_denied_in_every_wrapper() {
    let policy = policy(DENY_RM);
    for wrapper in WRAPPERS {
        for command in ["rm -rf x", "/bin/rm x", "\\rm x", "r\"\"m x"] {
            let line = wrapper.replace(['@', '%'], command);
            assert!(denied(&policy, &line), "{line}: {:?}", analyse(&line));
            // And the same with something harmless is not.
            let other = wrapper.replace(['@', '%'], "ls rm");
            // Where options are not understood, every tail counts.
            let tails = ["parallel", "unshare", "script", "su ", "strace"].iter().any(|name| wrapper.starts_with(name));
            assert!(tails || !denied(&policy, &other), "{other}");
        }
    }
}

#[test]
fn l32_an_ask_that_is_pinned_is_not_unwrapped_away() {
    let rules = "[[rules]]\naction = \"*\"\nargv = [\"git\", \"push\"]\neffect = \"ask_pinned\"\n\
                 [[rules]]\naction = \"*\"\nargv = [\"timeout\"]\neffect = \"allow\"\n";
    let policy = policy(rules);
    assert!(matches!(decide(&policy, "timeout 5 git push"), Decision::Ask(ask) if ask.pinned));
    assert!(matches!(decide(&policy, "timeout 5 git pull"), Decision::Allow(_)));
}

#[test]
fn l32_what_is_inside_a_wrapper_allows_nothing() {
    let policy = policy("[[rules]]\naction = \"*\"\nargv = [\"ls\"]\neffect = \"allow\"\n");
    assert!(matches!(decide(&policy, "ls -la"), Decision::Allow(_)));
    for line in ["sudo ls", "env ls", "A=b ls", "sh -c ls", "/tmp/ls", "xargs ls", "LD_PRELOAD=./x ls"] {
        assert!(matches!(decide(&policy, line), Decision::Ask(_)), "{line}");
    }
}

#[test]
fn l30_an_allow_must_hold_for_every_simple_command() {
    let policy = policy("[[rules]]\naction = \"*\"\nargv = [\"npm\", \"test\"]\neffect = \"allow\"\n");
    for line in [
        "npm test",
        "npm test -- --watch=false",
        "npm test && npm test x",
        "(npm test)",
        "npm test 2>&1",
        "npm test >/dev/null",
    ] {
        assert!(matches!(decide(&policy, line), Decision::Allow(_)), "{line}");
    }
    for line in [
        "npm test; curl x",
        "curl x; npm test",
        "npm test && curl x",
        "npm test | curl x",
        "npm test & curl x",
        "npm test\ncurl x",
        "npm test $(curl x)",
        "npm test `curl x`",
        "npm test \"$(curl x)\"",
        "npm test <(curl x)",
        "npm test > log",
        "npm test >> log",
        "npm test $X",
        "npm test *",
        "npm test {a,b}",
        "npm test ~",
        "A=b npm test",
        "npm test &> log",
        "npm test >& log",
        "npm test <> log",
        "npm test 2> log",
        "npm test >| log",
        "npm test {fd}> log",
        "if npm test; then curl x; fi",
        "npm 'test",
        "npm() { curl x; }; npm test",
        "npm test \u{202e}x",
        "npm test\r\ncurl x",
        "alias npm=curl; npm test",
        "npm test <<E\n$(curl x)\nE",
        "",
        "# npm test",
        "npm",
        "npm testx",
        "npm test || [[ -v 'a[$(curl x)]' ]]",
        "npm test; ((a[$(curl x)]))",
        "trap 'curl x' EXIT; npm test",
    ] {
        assert!(!matches!(decide(&policy, line), Decision::Allow(_)), "{line}: {:?}", analyse(line));
    }
}

#[test]
fn l31_interpreters_and_what_is_not_literal_are_opaque() {
    for line in [
        "python3 -c 'print(1)'",
        "python -c x",
        "node -e x",
        "node --eval=x",
        "perl -ne x a",
        "ruby -e x",
        "php -r x",
        "deno eval x",
        "awk '{print}' a",
        "bash",
        "echo x | sh",
        "bash -s",
        "python3",
        "echo x | python3 -",
        "bash <<< x",
        "sh -c \"$x\"",
        "eval \"$x\"",
        "$x",
        "ls $x",
        "ls *",
        "env python3 -c x",
        "timeout 5 node -e x",
        "source a",
        ". a",
        "sudo bash",
        "xargs sh",
    ] {
        let requests = requests(line);
        let opaque =
            requests.iter().flat_map(AccessRequest::resources).any(|resource| resource.kind == ResourceKind::Opaque);
        assert!(opaque, "{line}: {:?}", analyse(line));
        assert!(requests[0].risk.contains(&portcullis_base::Risk::Execute), "{line}");
    }
    for line in [
        "python3 script.py",
        "node app.js x",
        "bash script.sh",
        "python3 --version",
        "ls -la 'a b'",
        "cargo test -- --nocapture",
    ] {
        assert_eq!(analyse(line).opaque, Vec::<String>::new(), "{line}");
    }
}

#[test]
fn l32_a_command_behind_very_many_words_is_denied_or_opaque() {
    let policy = policy(DENY_RM);
    for many in [10, 200, 300, 5_000] {
        for line in [
            format!("env {}rm x", "A=b ".repeat(many)),
            format!("{}rm x", "sudo ".repeat(many)),
            format!("{}rm x", "ls;".repeat(many)),
        ] {
            assert!(denied(&policy, &line) || !analyse(&line).opaque.is_empty(), "{many}");
        }
    }
    assert!(denied(&policy, &format!("env {}rm x", "A=b ".repeat(200))));
}

#[test]
fn l27_redirections_are_files_for_rules() {
    let of = |line: &str| analyse(line).redirections;
    let file = |path: &str, writes| RedirectedFile { path: path.to_owned(), writes };
    assert_eq!(of("a > b < c 2>> 'd e' 3>&1 &>/dev/null"), [file("b", true), file("c", false), file("d e", true)]);
    assert_eq!(of("a <> b"), [file("b", true), file("b", false)]);
    assert_eq!(of("a >& b"), [file("b", true)]);
    assert_eq!(of("(a; b) > c"), [file("c", true)]);
    assert_eq!(of("sh -c 'a > b'"), [file("b", true)]);
    assert_eq!(of("sudo sh -c 'a > b'"), [file("b", true)]);
    let policy = policy("[[rules]]\naction = \"write\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    for line in [
        "echo x > .env",
        "echo x >> a/.env",
        "echo x > /workspace/.env",
        "sh -c 'echo x > .env'",
        "> .env",
        "{ a; } >.e'n'v",
    ] {
        assert!(denied(&policy, line), "{line}");
    }
    assert!(!denied(&policy, "cat < .env"), "it is read, not written");
    // After a cd nobody can tell.
    let moved = requests("cd x && echo y > z");
    assert!(moved.iter().any(|request| request.action.as_str() == "write"
        && request.resources().all(|resource| resource.kind == ResourceKind::Opaque)));
}

#[test]
fn l27_what_tee_writes_is_a_file_for_rules_like_a_redirection() {
    let policy = policy("[[rules]]\naction = \"write\"\npath = \"**/.env\"\neffect = \"deny\"\n");
    for line in [
        "make | tee .env",
        "make 2>&1 | tee -a log a/.env > /dev/null",
        "echo x | sudo tee /workspace/.env",
        "echo x | bash -c 'tee .env'",
        "make | /usr/bin/tee -- .env",
        "tee --append .env <<< x",
    ] {
        assert!(denied(&policy, line), "{line}");
    }
    for line in ["make | tee log", "make | grep tee .env", "make | tee"] {
        assert!(!denied(&policy, line), "{line}");
    }
    let teed = requests("make | tee build.log");
    let named =
        |request: &AccessRequest| request.resources().any(|resource| resource.canonical == "/workspace/build.log");
    assert!(teed.iter().any(|request| request.action.as_str() == "write" && named(request)), "{teed:?}");
}

#[test]
fn l33_the_suggestion_of_a_line_allows_that_line_and_no_more() {
    let policy = policy("");
    for (line, others) in [
        ("npm test; npm run lint", vec!["npm test; curl x", "npm test -- x", "npm run build", "sudo npm test"]),
        ("npm test", vec!["npm test; curl x", "npm test $(curl x)", "npm test > log", "npm test && npm run lint"]),
        ("grep 'a*' b", vec!["grep a* b", "grep ab b"]),
    ] {
        let Decision::Ask(ask) = decide(&policy, line) else { panic!("{line} is asked about") };
        let [rule] = &ask.suggested_rules[..] else { panic!("{line}: one suggestion") };
        assert!(rule.would_not_allow.len() == 3, "{rule:?}");
        let grants = [Grant {
            id: portcullis_base::GrantId::from_u128(1),
            rule: rule.rule(),
            satisfies: Satisfies::from(ask.deciding.as_ref().expect("the default asks")),
            scope: GrantScope { project: Some("p".into()), agent: Some("a".into()), session: None },
            created_by: "usr".into(),
            created_at: Timestamp::from_micros(0),
            expires_at: None,
            uses: 0,
        }];
        let with = |line: &str| policy.decide(&requests(line), &asker(DefaultPolicy::Ask, &grants));
        assert!(matches!(with(line), Decision::Allow(_)), "{line}");
        for other in others {
            assert!(matches!(with(other), Decision::Ask(_)), "{other} with {line}");
        }
    }
    let Decision::Ask(ask) = decide(&policy, "ls $x") else { panic!("opaque") };
    assert!(ask.suggested_rules.is_empty(), "what is opaque cannot be remembered");
}

#[test]
fn a_plan_that_only_reads_is_allowed_by_default_unless_a_rule_denies_a_path() {
    let rules = policy("[[rules]]\naction = \"read\"\npath = \"**/secret.txt\"\neffect = \"deny\"\n");
    let decide = |line: &str| {
        let requests = plan_access(&read_only(line).expect(line), &Action::new("bash"), "/workspace");
        rules.decide(&requests, &asker(DefaultPolicy::Auto, &[]))
    };
    for line in ["cat a.txt", "ls", "pwd", "grep -rn x src | head", "cd src && cat a"] {
        assert!(matches!(decide(line), Decision::Allow(_)), "{line}: {:?}", decide(line));
    }
    for line in [
        "cat secret.txt",
        "cat a < secret.txt",
        "cd src && cat secret.txt",
        "cat a | grep x ./b/../secret.txt",
        "ls secret.txt",
    ] {
        assert!(matches!(decide(line), Decision::Deny(_)), "{line}: {:?}", decide(line));
    }
    assert!(matches!(decide("cat ../x"), Decision::Ask(_)), "outside");
}

#[test]
fn l32_what_a_hostile_row_runs_is_denied_or_opaque() {
    let policy = policy("[[rules]]\naction = \"*\"\nargv = [\"touch\"]\neffect = \"deny\"\n");
    let (mut seen, mut by_rule) = (0, 0);
    for row in corpus::rows("commands-hostile.tsv") {
        let runs = [
            "wrapper",
            "chaining",
            "newline_injection",
            "grouping",
            "control_flow",
            "substitution",
            "cap_evasion",
            "find_exec",
        ];
        let others = [
            "ifs",
            "brace_expansion",
            "glob_binary",
            "quote_split",
            "variable_command",
            "heredoc",
            "plain_writer",
            "interpreter",
        ];
        if row.command.contains("touch") && runs.iter().chain(&others).any(|class| *class == row.class) {
            let denied = denied(&policy, &row.command);
            let opaque = !analyse(&row.command).opaque.is_empty();
            // Taken from words that only `test` evaluates, and only with an option that rules do not know.
            let by_option = matches!(row.id.as_str(), "H203" | "H205" | "H206" | "H208");
            assert!(denied || opaque || by_option, "{} {}: {:?}", row.id, row.command, analyse(&row.command));
            seen += 1;
            by_rule += usize::from(denied);
        }
    }
    assert!(seen > 70 && by_rule > 50, "{by_rule} of {seen}");
}

/// A line with a denied command in it: under wrappers that take words, and those under syntax.
fn wrapped() -> impl Strategy<Value = String> {
    let plain = WRAPPERS.iter().copied().filter(|wrapper| !wrapper.contains(['\'', '\n', '`', '%']));
    // A wrapper takes words: only a name and its options may stand before the hole, and nothing after it.
    let words = |wrapper: &&str| {
        wrapper.ends_with('@')
            && !wrapper.contains([';', '&', '|', '>', '('])
            && !["time ", "! ", "coproc "].iter().any(|name| wrapper.starts_with(name))
    };
    let (inner, outer): (Vec<_>, Vec<_>) = plain.partition(words);
    let some = |of: Vec<&'static str>, most| proptest::collection::vec(proptest::sample::select(of), 0..most);
    (some(inner, 4), some(outer, 3)).prop_map(|(inner, outer)| {
        let wrap = |line: String, wrapper: &'static str| wrapper.replace('@', &line);
        outer.into_iter().fold(inner.into_iter().fold("rm x".to_owned(), wrap), wrap)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l32_wrapper_closure(line in wrapped()) {
        let policy = policy(DENY_RM);
        let requests = requests(&line);
        let denied = policy.denies(&requests, &asker(DefaultPolicy::Ask, &[])).is_some();
        prop_assert!(denied, "{line}: {:?}", analyse(&line));
        prop_assert!(matches!(policy.decide(&requests, &asker(DefaultPolicy::Allow, &[])), Decision::Deny(_)));
    }

    #[test]
    fn l30_a_line_is_no_more_permitted_than_its_parts(
        parts in proptest::collection::vec(proptest::sample::select(&["npm test", "rm x", "ls", "curl y", "npm"][..]), 1..5),
        joiners in proptest::collection::vec(proptest::sample::select(&[";", "&&", "||", "|", "\n", "&"][..]), 4),
    ) {
        let rules = format!("{DENY_RM}[[rules]]\naction = \"*\"\nargv = [\"npm\", \"test\"]\neffect = \"allow\"\n");
        let policy = policy(&rules);
        let strict = |decision: &Decision| match decision { Decision::Allow(_) => 0, Decision::Ask(_) => 1, Decision::Deny(_) => 2 };
        let line = parts.iter().zip(joiners.iter()).map(|(part, joiner)| format!("{part} {joiner} ")).collect::<String>() + "npm test";
        let naive = parts.iter().map(|part| strict(&decide(&policy, part))).max();
        prop_assert_eq!(Some(strict(&decide(&policy, &line))), naive, "{}", line);
    }
}
