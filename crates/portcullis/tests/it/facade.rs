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
