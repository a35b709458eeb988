//! Everything an embedder needs to build a runtime is named by this one crate.

use portcullis::{CallOutcome, Code, Layer, PolicyBuilder, Runtime, SealingKey, SecretText, SystemIds, parse_rules};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn rules_variables_and_keys_are_given_without_another_crate() {
    let text = "[[rules]]\nid = \"no\"\naction = \"greet\"\neffect = \"deny\"\n";
    let rules = parse_rules(text, "rules.toml", Layer::User).expect("rules");
    let policy = PolicyBuilder::new().rules(rules).build().expect("a policy");
    let greet = portcullis::Tool::builder::<Nothing, String>("Greets.")
        .semantics(portcullis::Semantics::read_only())
        .execute(|_, _| async move { Ok("hello".to_owned()) })
        .build()
        .expect("a tool");
    let runtime = Runtime::builder()
        .policy(policy)
        .variable("TOKEN", SecretText::new("correct horse".to_owned()))
        .sealing_key(SealingKey::generate(&SystemIds::new()))
        .tool("greet", greet)
        .expect("a name")
        .build()
        .expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    let CallOutcome::Observed(seen) = runtime.call(session, "greet", "{}").await.expect("told") else {
        panic!("it is refused")
    };
    assert_eq!(seen.session_view().code.known(), Some(Code::ToolNotVisible));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wrong {
    #[expect(dead_code, reason = "only its schema is looked at")]
    #[schemars(regex(pattern = "("))]
    name: String,
}

#[test]
fn l04_a_tool_whose_schema_is_none_is_refused_when_it_is_registered() {
    let tool = portcullis::Tool::builder::<Wrong, String>("Wrong.").execute(|_, _| async { Ok(String::new()) }).build();
    let refused = Runtime::builder().tool("wrong", tool.expect("built")).err().expect("refused");
    assert!(refused.to_string().contains("its schema is not valid"), "{refused}");
}

/// Our own are compiled when they are first called, so this is where a mistake in one is found.
#[test]
fn l04_every_schema_of_our_own_tools_can_be_compiled() {
    let folder = tempfile::tempdir().expect("a folder");
    for profile in [portcullis::Profile::Code, portcullis::Profile::Managed] {
        let runtime = Runtime::builder().workspace(folder.path()).profile(profile).build().expect("a runtime");
        let sound = runtime.gate().check_tool_schemas(portcullis::SessionId::from_u128(1)).expect("schemas");
        assert!(sound > 10, "{sound} tools");
    }
}
