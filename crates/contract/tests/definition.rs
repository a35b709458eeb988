//! L6 and tool-contract 3.2: a definition's version is its content, and a tool that contradicts itself is not built.
#![allow(clippy::disallowed_methods, reason = "these are the tests of the seam")]
#![allow(clippy::expect_used, reason = "a test")]

use portcullis_base::{EffectSet, Risk, RiskSet};
use portcullis_contract::{
    BuildError, Concurrency, DefaultPolicy, Interrupt, Ownership, Semantics, Strategy, Timeout, Tool, ToolBuilder,
    Variable, VariableKind, VerificationKind, seam,
};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct OneWay {
    alpha: Option<u8>,
    beta: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct OtherWay {
    beta: Option<String>,
    alpha: Option<u8>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct More {
    alpha: Option<u8>,
    beta: Option<String>,
    gamma: Option<bool>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Told {
    /// Says something of it.
    alpha: Option<u8>,
    beta: Option<String>,
}

fn builder<I, O>(description: &str, semantics: Semantics) -> ToolBuilder<I, O>
where
    I: for<'de> Deserialize<'de> + JsonSchema + Send + Sync + 'static,
    O: Default + Serialize + JsonSchema + Send + 'static,
{
    Tool::builder::<I, O>(description).semantics(semantics).execute(|_, _| async { Ok(O::default()) })
}

fn version<I>(description: &str, semantics: Semantics) -> String
where
    I: for<'de> Deserialize<'de> + JsonSchema + Send + Sync + 'static,
{
    version_of(&builder::<I, String>(description, semantics).keyed().build().expect("a sound tool"))
}

fn version_of(tool: &Tool) -> String {
    seam::version(tool).to_string()
}

#[test]
fn l06_the_version_ignores_key_order_name_and_executor() {
    let plain = version::<OneWay>("Does it.", Semantics::read_only());
    assert!(plain.starts_with("dv1:"));
    assert_eq!(plain.len(), "dv1:".len() + 64);
    assert_eq!(plain, version::<OneWay>("Does it.", Semantics::read_only()), "built again");
    assert_eq!(plain, version::<OtherWay>("Does it.", Semantics::read_only()), "fields in another order");

    let tool = builder::<OneWay, String>("Does it.", Semantics::read_only())
        .to_model(|_, _| Vec::new())
        .build()
        .expect("a sound tool");
    let named = |name: &str| seam::definition(&name.parse().expect("a name"), &tool);
    assert_eq!(named("a").version, named("b").version);
    assert_eq!(version_of(&tool), plain, "what a tool does inside is not its definition");
    assert_eq!(version_of(&tool.with_access_alias("edit")), plain);
    let elsewhere = std::thread::spawn(|| version::<OneWay>("Does it.", Semantics::read_only())).join();
    assert_eq!(elsewhere.expect("no panic"), plain);
}

#[test]
fn l06_any_change_of_description_or_schema_changes_the_version() {
    let read_only = Semantics::read_only;
    let versions = [
        version::<OneWay>("Does it.", read_only()),
        version::<OneWay>("Does it", read_only()),
        version::<More>("Does it.", read_only()),
        version::<Told>("Does it.", read_only()),
        version_of(&builder::<OneWay, u8>("Does it.", read_only()).build().expect("a sound tool")),
        version_of(&builder::<OneWay, Vec<String>>("Does it.", read_only()).build().expect("a sound tool")),
    ];
    let distinct: std::collections::BTreeSet<&String> = versions.iter().collect();
    assert_eq!(distinct.len(), versions.len(), "{versions:?}");
}

#[test]
fn l06_any_change_of_semantics_changes_the_version() {
    let base = || Semantics { read_only: false, concurrency: Concurrency::Exclusive, ..Semantics::read_only() };
    let changes: Vec<(&str, Semantics)> = vec![
        ("ownership", Semantics { ownership: Ownership::Mcp, ..base() }),
        ("risk", Semantics { risk: RiskSet::from([Risk::Read, Risk::Network]), ..base() }),
        (
            "effects",
            Semantics { effects: serde_json::from_str::<EffectSet>(r#"["session_read"]"#).expect("a set"), ..base() },
        ),
        ("read_only", Semantics { read_only: true, ..base() }),
        ("destructive", Semantics { destructive: true, ..base() }),
        ("idempotent", Semantics { idempotent: false, ..base() }),
        ("reversible", Semantics { reversible: false, ..base() }),
        ("concurrency", Semantics { concurrency: Concurrency::Keyed, ..base() }),
        ("default_ms", Semantics { timeout: Timeout { default_ms: 1, max_ms: 600_000 }, ..base() }),
        ("max_ms", Semantics { timeout: Timeout { default_ms: 60_000, max_ms: 600_001 }, ..base() }),
        ("backgroundable", Semantics { backgroundable: true, ..base() }),
        ("stream_progress", Semantics { stream_progress: true, ..base() }),
        ("sandbox", Semantics { sandbox: Some("strict".to_owned()), ..base() }),
        ("interrupt", Semantics { interrupt: Interrupt::Finish, ..base() }),
        ("default_policy", Semantics { default_policy: DefaultPolicy::Ask, ..base() }),
        ("truncation", Semantics { truncation: Strategy::Tail, ..base() }),
        ("max_result", Semantics { max_result: Some(1), ..base() }),
        ("variables", Semantics { variables: vec![variable(VariableKind::Text)], ..base() }),
        ("a variable", Semantics { variables: vec![variable(VariableKind::Secret)], ..base() }),
        ("verifies", Semantics { verifies: Some(VerificationKind::Tests), ..base() }),
    ];
    let mut seen = std::collections::BTreeMap::from([(version::<OneWay>("Does it.", base()), "nothing")]);
    for (what, semantics) in changes {
        let version = version::<OneWay>("Does it.", semantics);
        assert_eq!(seen.insert(version, what), None, "{what} must matter");
    }
}

fn variable(kind: VariableKind) -> Variable {
    Variable { name: "V".to_owned(), kind, required: true, scoped: false, description: "for it".to_owned() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l06_versions_are_equal_exactly_for_equal_definitions(
        left in ("[ab]{0,2}", 0..3u64, any::<bool>()),
        right in ("[ab]{0,2}", 0..3u64, any::<bool>()),
    ) {
        let version = |(description, ms, idempotent): &(String, u64, bool)| {
            let timeout = Timeout { default_ms: *ms, max_ms: 9 };
            version::<OneWay>(description, Semantics { timeout, idempotent: *idempotent, ..Semantics::read_only() })
        };
        prop_assert_eq!(version(&left) == version(&right), left == right);
    }
}

#[test]
fn every_contradiction_of_the_semantics_is_refused() {
    let refused = |semantics: Semantics| {
        let built = builder::<OneWay, String>("Does it.", semantics).build();
        matches!(built, Err(BuildError::Contradiction(_)))
    };
    assert!(!refused(Semantics::read_only()));
    assert!(!refused(Semantics::mutating()));
    let read_only = Semantics::read_only;
    let mutating = Semantics::mutating;
    assert!(refused(Semantics { risk: RiskSet::from([Risk::Write]), ..read_only() }), "read_only that writes");
    assert!(refused(Semantics { destructive: true, ..read_only() }), "read_only that destroys");
    assert!(refused(Semantics { concurrency: Concurrency::Safe, ..mutating() }), "safe that is not read_only");
    assert!(refused(Semantics { risk: RiskSet::from([Risk::Execute]), ..mutating() }), "execute without a sandbox");
    let boxed = Semantics { risk: RiskSet::from([Risk::Execute]), sandbox: Some("p".to_owned()), ..mutating() };
    assert!(!refused(boxed));
    assert!(refused(Semantics { concurrency: Concurrency::Keyed, ..mutating() }), "keyed without a key function");
    let keyed = Semantics { concurrency: Concurrency::Keyed, ..mutating() };
    assert!(builder::<OneWay, String>("Does it.", keyed).keyed().build().is_ok());
    let timeout = Timeout { default_ms: 2, max_ms: 1 };
    assert!(refused(Semantics { timeout, ..read_only() }), "a longest time below the usual one");
    assert!(refused(Semantics { dynamic_access: true, ..mutating() }), "dynamic_access of a plain tool");
    let midway = Semantics { dynamic_access: true, ..mutating() };
    let parts = |semantics| builder::<OneWay, String>("Does it.", semantics).parts_are_intents().build();
    assert!(parts(midway.clone()).is_ok());
    let after = parts(Semantics { backgroundable: true, ..midway });
    assert!(matches!(after, Err(BuildError::Contradiction(_))), "stopped by the gate after its observation");
}

#[test]
fn l01_a_tool_has_exactly_one_executor() {
    let none = Tool::builder::<OneWay, String>("Does nothing.").semantics(Semantics::read_only()).build();
    assert!(matches!(none, Err(BuildError::NoExecutor)));
}

#[test]
fn l02_a_tool_prints_nothing_of_itself() {
    let tool = builder::<OneWay, String>("Has a secret plan.", Semantics::read_only()).build().expect("a sound tool");
    assert_eq!(format!("{tool:?}"), "Tool(..)");
}
