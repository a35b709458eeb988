//! Rules files: what is read, what is refused, and where the fault is said to be.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use portcullis_base::IsolationLevel;
use portcullis_policy::{
    EnterprisePolicy, FileOwner, Layer, OwnerCheck, PolicyBuilder, PolicyError, Rule, RuleEffect, parse_rules,
};

fn parse(text: &str) -> Result<Vec<Rule>, PolicyError> {
    parse_rules(text, "conf/rules.toml", Layer::User)
}

/// The message of the fault in `text`.
fn fault(text: &str) -> String {
    parse(text).expect_err("the text is faulty").to_string()
}

#[test]
fn the_documented_example_is_read() {
    let rules = parse(
        r#"
model = "anything"            # belongs to others

[[rules]]
id = "no-secrets"
action = "*"
path = ["**/.env", "secrets/**"]
effect = "deny"
match = ["a/.env", "secrets", "/workspace/secrets/deep/down"]
not_match = [".envrc", "/etc/.env", "secretsx"]

[[rules]]
action = "shell_run"
argv = ["git", "status"]
effect = "allow"
agent = "reviewer"
session = "sesn_00000000000000000000000001"
expires_at = 2027-01-01T00:00:00Z
match = [["git", "status", "-s"]]
not_match = [["git", "statusx"], ["git"]]

[other]
key = 1
"#,
    )
    .expect("well formed");
    assert_eq!(rules[0].id.as_str(), "no-secrets");
    assert_eq!(rules[1].id.as_str(), "user:rules.toml:12");
    assert_eq!(rules[1].source.to_string(), "conf/rules.toml:12");
    assert_eq!(rules[1].effect, RuleEffect::Allow);
    assert_eq!(rules[1].expires_at.map(|t| t.to_string()).as_deref(), Some("2027-01-01T00:00:00.000000Z"));
}

#[test]
fn every_fault_names_file_line_and_remedy() {
    let rule = |body: &str| format!("\n[[rules]]\naction = \"read\"\neffect = \"allow\"\n{body}\n");
    for (text, want) in [
        ("a = [\n1,,\n]".to_owned(), "conf/rules.toml:2: not valid TOML"),
        (rule("efect = \"ask\""), "conf/rules.toml:5: unknown key `efect`; the nearest known one is `effect`"),
        (rule("pathes = \"x\""), "the nearest known one is `path`"),
        ("rules = 1".to_owned(), "conf/rules.toml:1: `rules` must be an array of tables, written [[rules]]"),
        ("[rules]\naction = \"x\"".to_owned(), "`rules` must be an array of tables"),
        ("[[rules]]\neffect = \"deny\"".to_owned(), "conf/rules.toml:1: `action` is missing"),
        ("\n\n[[rules]]\naction = \"x\"".to_owned(), "conf/rules.toml:3: `effect` is missing; give allow, ask"),
        (
            "[[rules]]\naction = \"x\"\neffect = \"permit\"".to_owned(),
            "conf/rules.toml:3: `permit` is not a value of `effect`",
        ),
        (
            rule("path = \"a\"\nhost = \"x.y\""),
            "conf/rules.toml:6: a rule names one kind of resource, not both `path` and `host`",
        ),
        (rule("path = \"*.{pem,key}\""), "write `\\{` for the character itself, or a list"),
        (rule("path = [\"ok\",\n\"a[bc]\"]"), "conf/rules.toml:6: pattern `a[bc]`"),
        (rule("path = \"a/../b\""), "empty, `.` or `..` segment"),
        (rule("path = \"build/\""), "`x/**` means x and everything beneath"),
        (rule("path = \"a**\""), "`**` must be a whole segment"),
        (rule("path = \"~/x\""), "paths are virtual"),
        (rule("path = \"\""), "it is empty"),
        (rule("path = []"), "`path` must be a pattern or a list of at least one"),
        (rule("argv = []"), "pattern `[]` of `argv`: it is empty"),
        (rule("argv = [\"$\"]"), "`$` alone names no command"),
        (rule("argv = \"git status\""), "`argv` must be a list of words"),
        (rule("argv = [\"git\", 1]"), "`argv` must be a string"),
        (rule("host = \"https://x.y\""), "without scheme, port or path"),
        (rule("opaque = false"), "`opaque` must be true, or be left out"),
        (rule("session = \"s1\""), "use a session id"),
        (rule("expires_at = 2027-01-01"), "a time with its zone"),
        (rule("id = \"tool_default:read\""), "does not begin with `tool_default:`"),
        (rule("id = \"two words\""), "`two words` is not a value of `id`"),
        (
            rule("path = \"src/*\"\nmatch = [\"src/a\",\n\"src/a/b\"]"),
            "conf/rules.toml:7: `match` says that the rule matches `src/a/b`, but it does not",
        ),
        (
            rule("argv = [\"rm\"]\nnot_match = [[\"rm\", \"x\"]]"),
            "`not_match` says that the rule does not match [\"rm\", \"x\"]",
        ),
        (rule("match = [\"x\"]"), "`match` needs a resource to compare with"),
    ] {
        let message = fault(&text);
        assert!(message.contains(want), "{text}\n gave: {message}\n want: {want}");
        assert!(message.starts_with("conf/rules.toml:"), "{message}");
    }
}

#[test]
fn one_bad_rule_fails_the_file_and_is_never_dropped() {
    let text = "[[rules]]\naction=\"*\"\neffect=\"deny\"\n[[rules]]\naction=\"x\"\neffect=\"dny\"\n";
    assert!(fault(text).contains("conf/rules.toml:6"));
}

#[test]
fn two_rules_with_one_id_are_refused_with_both_places() {
    let text =
        "[[rules]]\nid=\"a\"\naction=\"*\"\neffect=\"deny\"\n[[rules]]\nid=\"a\"\naction=\"x\"\neffect=\"ask\"\n";
    let error = PolicyBuilder::new().rules(parse(text).expect("each is fine")).build().expect_err("same id");
    let message = error.to_string();
    assert!(message.contains("rules.toml:1") && message.contains("rules.toml:5"), "{message}");
}

#[test]
fn a_hash_is_of_the_meaning_and_not_of_the_writing() {
    let one = |body: &str| parse(&format!("[[rules]]\n{body}")).expect("well formed")[0].hash();
    let base = one("action=\"edit\"\neffect=\"ask\"\npath=[\"a/**\",\"b\"]");
    assert_eq!(base, one("id=\"x\"\npath=[\"b\",\"/workspace/a/**\",\"b\"]\neffect=\"ask\"\naction=\"edit\""));
    for other in [
        "action=\"edit\"\neffect=\"ask_pinned\"\npath=[\"a/**\",\"b\"]",
        "action=\"edit*\"\neffect=\"ask\"\npath=[\"a/**\",\"b\"]",
        "action=\"edit\"\neffect=\"ask\"\npath=[\"a/**\"]",
        "action=\"edit\"\neffect=\"ask\"\npath=[\"a/**\",\"b\"]\nagent=\"z\"",
        "action=\"edit\"\neffect=\"ask\"\npath=[\"a/**\",\"b\"]\nexpires_at=2027-01-01T00:00:00Z",
    ] {
        assert_ne!(base, one(other), "{other}");
    }
}

struct Says(u32, u32);

impl OwnerCheck for Says {
    fn owner(&self, _: &File) -> io::Result<FileOwner> {
        Ok(FileOwner { uid: self.0, mode: self.1 })
    }
}

const GOOD: &str = "min_sandbox = \"no_pivot\"\napprovals_allow = false\n[[rules]]\naction = \"*\"\nhost = \"*.evil.com\"\neffect = \"deny\"\n";

#[test]
fn the_enterprise_file_is_honoured_only_if_it_is_roots_alone() {
    let home = tempfile::tempdir().expect("scratch");
    let path = home.path().join("policy.toml");
    fs::write(&path, GOOD).expect("written");
    let loaded = EnterprisePolicy::load_with(&path, &Says(0, 0o644)).expect("root's alone");
    assert_eq!(loaded.min_sandbox(), Some(IsolationLevel::NoPivot));
    assert!(!loaded.approvals_allow());
    assert_eq!((loaded.rules().len(), loaded.rules()[0].layer), (1, Layer::Enterprise));
    for (uid, mode) in [(1000, 0o644), (0, 0o664), (0, 0o646), (0, 0o666), (1, 0o600)] {
        let error = EnterprisePolicy::load_with(&path, &Says(uid, mode)).expect_err("not root's alone");
        assert!(error.to_string().contains("chown root"), "{error}");
    }
}

#[test]
fn the_system_tells_the_real_mode() {
    let home = tempfile::tempdir().expect("scratch");
    let path = home.path().join("policy.toml");
    fs::write(&path, GOOD).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours");
    let error = EnterprisePolicy::load(&path).expect_err("anybody may write it");
    assert!(matches!(error, PolicyError::NotTrusted { .. }), "{error}");
}

#[test]
fn no_enterprise_file_demands_nothing_and_a_bad_one_stops_the_program() {
    let home = tempfile::tempdir().expect("scratch");
    let path = home.path().join("policy.toml");
    let root = Says(0, 0o600);
    assert_eq!(EnterprisePolicy::load_with(&path, &root).expect("no file"), EnterprisePolicy::default());
    assert!(EnterprisePolicy::default().approvals_allow() && EnterprisePolicy::default().workspace_is_home());
    let strict = EnterprisePolicy::parse("workspace_is_home = false", "policy.toml").expect("parses");
    assert!(!strict.workspace_is_home() && strict.approvals_allow());
    symlink(home.path().join("nowhere"), &path).expect("linked");
    assert!(matches!(EnterprisePolicy::load_with(&path, &root), Err(PolicyError::Unreadable { .. })));
    fs::remove_file(&path).expect("ours");
    fs::create_dir(&path).expect("made");
    assert!(matches!(EnterprisePolicy::load_with(&path, &root), Err(PolicyError::Unreadable { .. })));
    fs::remove_dir(&path).expect("ours");
    for (text, want) in [
        ("[[rules]]\naction=\"*\"\neffect=\"allow\"", "policy.toml:1: the enterprise file holds deny rules only"),
        ("[[rules]]\naction=\"*\"\neffect=\"ask_pinned\"", "deny rules only"),
        ("min_sandbx = \"full\"", "policy.toml:1: unknown key `min_sandbx`; the nearest known one is `min_sandbox`"),
        ("\nmin_sandbox = \"most\"", "policy.toml:2: `most` is not a value of `min_sandbox`"),
        ("approvals_allow = \"no\"", "`approvals_allow` must be true or false"),
        ("workspace_is_home = 0", "`workspace_is_home` must be true or false"),
        ("[[rules]\n", "not valid TOML"),
    ] {
        fs::write(&path, text).expect("written");
        let error = EnterprisePolicy::load_with(&path, &root).expect_err("faulty");
        assert!(error.to_string().contains(want), "{error}\n want {want}");
    }
    fs::write(&path, [0xff]).expect("written");
    assert!(EnterprisePolicy::load_with(&path, &root).is_err(), "not text");
}
