//! L32 as properties: a denied command in generated spellings, lines that hide one, and lines of every day that do neither.

use portcullis_base::Timestamp;
use portcullis_command::analyse;
use portcullis_contract::{Action, DefaultPolicy};
use portcullis_policy::{Asker, Decision, Layer, Policy, PolicyBuilder, lexical, line_access, parse_rules};
use proptest::prelude::*;

use crate::corpus;

const ALLOW: &str = "[[rules]]\naction = \"*\"\neffect = \"allow\"\n";

fn policy(denied: &[&[&str]]) -> Policy {
    let words =
        |argv: &&[&str]| format!("[{}]", argv.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "));
    let all: Vec<String> = denied.iter().map(words).collect();
    let rules =
        format!("[[rules]]\nid = \"no\"\naction = \"*\"\nargv = [{}]\neffect = \"deny\"\n{ALLOW}", all.join(", "));
    let rules = parse_rules(&rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn decide(policy: &Policy, line: &str) -> Decision {
    let requests = line_access(&analyse(line), &Action::new("bash"), line, &lexical("/workspace"));
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Auto, grants: &[] };
    policy.decide(&requests, &asker)
}

/// A program, a verb that a rule denies, and options that may stand before the verb.
fn denied() -> impl Strategy<Value = (&'static str, &'static str, Vec<&'static str>)> {
    let rows: Vec<(&str, &str, &[&str])> = vec![
        ("git", "push", &["-C .", "--no-pager", "-c a.b=c", "--git-dir=.git", "--work-tree .", "-P", "--unheard-of"]),
        ("npm", "publish", &["--prefix x", "-w a", "--silent", "--registry=r", "--tag next"]),
        ("docker", "push", &["--context a", "-H tcp://h", "-D", "--config=c", "-l debug"]),
        ("kubectl", "delete", &["-n ns", "--namespace=ns", "--context c", "-v 4", "--insecure-skip-tls-verify"]),
        ("cargo", "publish", &["+nightly", "-Z x", "--locked", "--color never", "-q"]),
        ("pip", "install", &["--python p", "-q", "--proxy=x", "--isolated"]),
        ("terraform", "destroy", &["-chdir=a"]),
        ("systemctl", "stop", &["--user", "-H h", "--no-pager"]),
        ("helm", "uninstall", &["-n a", "--kube-context c", "--debug"]),
        ("make", "deploy", &["-C a", "-j4", "all", "V=1", "-f b.mk"]),
        ("gh", "release", &["-R a/b", "--repo=a/b"]),
        ("mytool", "deploy", &["-x", "--config c", "--y=z"]),
    ];
    proptest::sample::select(rows).prop_flat_map(|(program, verb, options)| {
        (Just(program), Just(verb), proptest::collection::vec(proptest::sample::select(options.to_vec()), 0..4))
    })
}

fn wrapper() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "{}",
        "env A=b {}",
        "sudo -u root {}",
        "timeout 5 {}",
        "ssh-agent {}",
        "logsave f {}",
        "x86_64 {}",
        "nice {}",
        "bash -c '{}'",
        "true; {}",
        "$({})",
        "strace -f {}",
        "ld.so {}",
        "xargs {}",
        "(cd a && {})",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l32_options_paths_and_wrappers_change_nothing(
        (program, verb, options) in denied(), around in wrapper(), path in any::<bool>(),
    ) {
        let policy = policy(&[&[program, verb]]);
        let name = if path { format!("/usr/bin/{program}") } else { program.to_owned() };
        let command = [vec![name.as_str()], options.clone(), vec![verb, "more"]].concat().join(" ");
        let line = around.replace("{}", &command);
        let decision = decide(&policy, &line);
        prop_assert!(matches!(decision, Decision::Deny(_)), "{}: {:?}", line, decision);
    }

    #[test]
    fn l31_a_verb_that_becomes_known_later_is_for_a_person(
        (program, verb, options) in denied(), around in wrapper(), quoted in any::<bool>(),
    ) {
        let policy = policy(&[&[program, verb]]);
        let open = if quoted { "\"$v\"" } else { "$v" };
        let command = [vec![program], options, vec![open]].concat().join(" ");
        let line = around.replace("{}", &command);
        let decision = decide(&policy, &line);
        prop_assert!(matches!(&decision, Decision::Ask(ask) if ask.only_a_person && ask.pinned), "{}: {:?}", line, decision);
        prop_assert!(decision.reason().contains("rule `no` (rules.toml:1)"), "{}", decision.reason());
    }
}

/// A denied option, and the options of the program that a reader of options tells it from.
fn options() -> impl Strategy<Value = (&'static [&'static str], &'static str, &'static str)> {
    proptest::sample::select(vec![
        (&["rm", "-rf"][..], "rRfdiIv", "recursive force dir verbose interactive one-file-system preserve-root help"),
        (
            &["sed", "-i"],
            "nEsuzi::",
            "in-place:: quiet silent regexp-extended separate null-data unbuffered posix help",
        ),
        (&["chmod", "-R"], "Rcfv", "recursive changes quiet silent verbose preserve-root reference: help"),
        (&["cp", "-r"], "rRfaiv", "recursive archive force interactive verbose attributes-only reflink:: parents help"),
        (&["git", "reset", "--hard"], "qN", "hard soft mixed merge keep quiet patch help"),
        (&["git", "commit", "--no-verify"], "nam:", "no-verify no-edit all amend message: signoff help"),
    ])
}

/// The options that `getopt_long` reads in some words, each by its whole name; none if it does not take them.
fn read_by_getopt(letters: &str, long: &str, words: &[String]) -> Option<Vec<String>> {
    let mut getopt = std::process::Command::new("getopt");
    let read = getopt.args(["-q", "-o", letters, "-l", &long.replace(' ', ","), "--"]).args(words).output().ok()?;
    let text = String::from_utf8(read.stdout).ok().filter(|_| read.status.success())?;
    let quoted = text.split_whitespace().take_while(|word| *word != "--");
    Some(quoted.filter(|word| word.starts_with('-')).map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The reader of options of the C library is the judge: what it takes for the denied options is denied or asked about.
    #[test]
    fn l32_every_way_to_write_an_option_that_getopt_reads_is_seen(
        (denied, letters, long) in options(), picks in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..14), 1..4),
        bundles in proptest::collection::vec("[rRfinav]{1,3}", 0..3),
    ) {
        let names: Vec<&str> = long.split(' ').map(|name| name.trim_end_matches(':')).collect();
        let begun = picks.iter().map(|(name, end)| {
            let name = name.get(&names);
            format!("--{}", &name[..(*end).min(name.len())])
        });
        let words: Vec<String> = begun.chain(bundles.iter().map(|letters| format!("-{letters}"))).collect();
        let Some(read) = read_by_getopt(letters, long, &words) else { return Ok(()) };
        let has = |all: &[&str]| read.iter().any(|option| all.contains(&option.as_str()));
        let means = match denied[0] {
            "rm" => has(&["-r", "-R", "--recursive"]) && has(&["-f", "--force"]),
            "sed" => has(&["-i", "--in-place"]),
            "chmod" => has(&["-R", "--recursive"]),
            "cp" => has(&["-r", "-R", "--recursive"]),
            _ if denied[1] == "reset" => has(&["--hard"]),
            _ => has(&["-n", "--no-verify"]),
        };
        let verbs = denied.iter().filter(|word| !word.starts_with('-')).copied().collect::<Vec<_>>().join(" ");
        let line = format!("{verbs} {} x", words.join(" "));
        let decision = decide(&policy(&[denied]), &line);
        let seen = match &decision {
            Decision::Deny(_) => true,
            Decision::Ask(ask) => ask.only_a_person,
            Decision::Allow(_) => false,
        };
        prop_assert!(seen || !means, "{}: {:?}: {:?}", line, read, decision);
        // The control: where nothing of it is written, nothing is seen.
        let plain = decide(&policy(&[denied]), &format!("{verbs} x"));
        prop_assert!(matches!(plain, Decision::Allow(_)), "{:?}", plain);
    }
}

/// What people deny.
fn typical() -> Policy {
    policy(&[&["git", "push"], &["rm"], &["npm", "publish"], &["docker"]])
}

#[test]
fn benign_lines_are_neither_denied_nor_a_persons_business() {
    let policy = typical();
    let (mut wrong, rows) = (Vec::new(), corpus::rows("commands-benign.tsv"));
    for row in &rows {
        match decide(&policy, &row.command) {
            Decision::Deny(deny) => wrong.push((row.command.clone(), deny.reason)),
            Decision::Ask(ask) if ask.only_a_person => wrong.push((row.command.clone(), ask.reason)),
            _ => {}
        }
    }
    assert_eq!(wrong, [], "of {}", rows.len());
}

#[test]
fn a_decision_about_a_line_is_quick() {
    let policy = typical();
    let lines =
        ["git -C . --no-pager log --oneline -5", "env A=b timeout 5 cargo test -- --nocapture", "frob a b c d e f"];
    let each = 200;
    let begun = std::time::Instant::now();
    for _ in 0..each {
        for line in lines {
            let _ = decide(&policy, line);
        }
    }
    // Thirty microseconds where the optimiser has been; this build is many times slower, and shares its machine.
    let spent = begun.elapsed() / (each * lines.len() as u32);
    assert!(spent.as_micros() < 3_000, "{spent:?} a line");
}
