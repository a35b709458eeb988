//! From a name to a model.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{ManualClock, Timestamp};
use portcullis_model::{Catalog, Failure, ModelError, ModelSetting, ModelSettings};

use crate::providers::fake::{Fake, KEY, Reply, ask, said, tls};

fn settings() -> ModelSettings {
    tls();
    ModelSettings::new(Arc::new(ManualClock::new(Timestamp::from_micros(0))))
}

/// An environment with these variables and no other.
fn environment(set: &[(&'static str, &str)]) -> impl Fn(&str) -> Option<String> + Send + Sync + use<> {
    let set: HashMap<&'static str, String> = set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    move |name: &str| set.get(name).cloned()
}

fn refused(name: &str, set: &[(&'static str, &str)]) -> ModelError {
    let environment = environment(set);
    let error = Catalog::new(settings(), &environment).open_text(name).err().expect("refused");
    assert_eq!(error.failure, Failure::Config);
    assert!(!error.message.contains(KEY), "{error}");
    error
}

const KEYS: &[(&str, &str)] = &[("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY), ("GEMINI_API_KEY", KEY)];

#[test]
fn each_provider_opens_by_its_name() {
    let environment = environment(KEYS);
    let catalog = Catalog::new(settings(), &environment);
    let cases = [
        ("anthropic/claude-sonnet-5", Some(200_000)),
        ("openai/gpt-5.5", Some(272_000)),
        ("openai-chat/org/some-model:7b", None),
        ("gemini/gemini-3.6-flash", Some(1_048_576)),
        ("anthropic/unheard-of", None),
    ];
    for (name, window) in cases {
        let model = catalog.open_text(name).expect(name);
        assert_eq!((model.name().to_string().as_str(), model.window()), (name, window));
    }
    let known = ModelSettings { window: Some(32_768), ..settings() };
    let model = Catalog::new(known, &environment).open_text("openai-chat/m").expect("a model");
    assert_eq!(model.window(), Some(32_768), "what a person sets counts");
}

#[test]
fn a_script_opens_by_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.toml");
    std::fs::write(&path, "[[turn]]\ntext = \"hi\"\n").expect("written");
    let environment = environment(&[]);
    let name = format!("scripted:{}", path.display());
    let model = Catalog::new(settings(), &environment).open_text(&name).expect("a script");
    assert_eq!(model.name().to_string(), name);
    assert!(refused("scripted:absent.toml", &[]).message.contains("absent.toml"));
}

#[test]
fn what_is_no_name_or_no_provider_is_refused_with_the_nearest() {
    assert!(refused("claude", &[]).message.contains("PROVIDER/MODEL"));
    assert!(refused("scripted:", &[]).message.contains("scripted:FILE"));
    let error = refused("antropic/claude-sonnet-5", KEYS);
    assert!(error.message.contains("did you mean `anthropic`?"), "{error}");
    assert!(refused("open-ai/x", KEYS).message.contains("did you mean `openai`?"));
    let local = refused("ollama/qwen", KEYS);
    assert!(local.message.contains("did you mean `openai-chat`?"), "{local}");
    assert_eq!(local.setting, Some(ModelSetting::Server));
    let strange = refused("zzzzzzzz/x", KEYS).message;
    assert!(!strange.contains("did you mean") && strange.contains("Known: anthropic"), "{strange}");
}

#[test]
fn a_missing_key_names_its_variable() {
    for (name, variable) in [
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY"),
        ("openai/gpt-5.5", "OPENAI_API_KEY"),
        ("openai-chat/m", "OPENAI_API_KEY, or OPENAI_BASE_URL"),
        ("gemini/gemini-3.6-flash", "GEMINI_API_KEY"),
    ] {
        let error = refused(name, &[("ANTHROPIC_API_KEY", "  "), ("GEMINI_API_KEY", "")]);
        assert!(error.message.contains(&format!("set {variable}")), "{error}");
    }
}

#[tokio::test]
async fn a_server_of_ones_own_needs_no_key_and_an_address_on_the_flag_beats_the_variable() {
    let fake = Fake::start([Reply::json(500, "{}"), Reply::json(500, "{}")]).await;
    let environment = environment(&[("OPENAI_BASE_URL", &fake.url)]);
    let model = Catalog::new(settings(), &environment).open_text("openai-chat/m").expect("no key needed");
    ask(model.as_ref(), &said("go")).await.error();
    assert_eq!(fake.seen().len(), 1);
    assert!(!fake.seen()[0].headers.contains_key("authorization"));

    let flagged = Fake::start([Reply::json(500, "{}")]).await;
    let chosen = ModelSettings { base_url: Some(flagged.url.clone()), ..settings() };
    let model = Catalog::new(chosen, &environment).open_text("openai-chat/m").expect("a model");
    ask(model.as_ref(), &said("go")).await.error();
    assert_eq!((fake.seen().len(), flagged.seen().len()), (1, 1));
}

#[tokio::test]
async fn without_a_name_the_first_that_is_configured_is_taken_and_told() {
    let cases = [
        (KEYS, "anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY is set"),
        (&KEYS[1..], "openai/gpt-5.5", "OPENAI_API_KEY is set"),
        (&KEYS[2..], "gemini/gemini-3.6-flash", "GEMINI_API_KEY is set"),
    ];
    for (set, name, because) in cases {
        let environment = environment(set);
        let chosen = Catalog::new(settings(), &environment).first().await.expect(name);
        assert_eq!((chosen.model.name().to_string().as_str(), chosen.because.as_str()), (name, because));
    }
    let none = environment(&[]);
    let error = Catalog::new(settings(), &none).first().await.err().expect("none is configured");
    assert_eq!(error.failure, Failure::Config);
    assert_eq!(error.setting, Some(ModelSetting::ModelOrServer));
    // What else would mend it is the setting's to say.
    for word in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        assert!(error.message.contains(word), "{error}");
    }
}

const MODELS: &str = r#"{"object":"list","data":[{"id":"qwen3:8b"},{"id":"llama3.3:latest"}]}"#;

#[tokio::test]
async fn an_address_without_a_model_takes_the_first_that_the_server_lists() {
    let fake =
        Fake::start([Reply::json(200, MODELS), Reply::json(200, MODELS), Reply::json(200, r#"{"data":[]}"#)]).await;
    // A key for another provider does not go to this address.
    let environment = environment(&[("ANTHROPIC_API_KEY", KEY)]);
    let chosen = ModelSettings { base_url: Some(fake.url.clone()), ..settings() };
    let catalog = Catalog::new(chosen, &environment);
    let first = catalog.first().await.expect("the first");
    assert_eq!(
        (first.model.name().to_string().as_str(), first.because.as_str()),
        ("openai-chat/qwen3:8b", "its address is given")
    );
    assert_eq!(catalog.choices("openai-chat").await.expect("a list"), ["qwen3:8b", "llama3.3:latest"]);
    let error = catalog.first().await.err().expect("an empty list");
    assert!(error.message.contains("name it"), "{error}");
    assert_eq!(error.setting, Some(ModelSetting::Model));
    for seen in fake.seen() {
        assert_eq!(seen.path, "/v1/models");
        assert!(!format!("{:?}", seen.headers).contains(KEY));
    }
}

#[tokio::test]
async fn a_model_that_the_server_does_not_have_is_refused_with_the_choices() {
    let unknown = r#"{"error":{"message":"model 'lama3.3' not found","type":"not_found_error"}}"#;
    let fake = Fake::start([
        Reply::json(404, unknown),
        Reply::json(200, MODELS),
        Reply::json(404, unknown),
        Reply::json(200, MODELS),
        Reply::json(404, unknown),
        Reply::json(500, "{}"),
        Reply::json(429, "{}"),
    ])
    .await;
    let environment = environment(&[("OPENAI_BASE_URL", &fake.url)]);
    let catalog = Catalog::new(settings(), &environment);
    let open = |name: &str| catalog.open_text(name).expect("a model");

    let error = ask(open("openai-chat/lama3.3").as_ref(), &said("go")).await.error();
    assert_eq!((error.failure, error.status), (Failure::BadRequest, Some(404)));
    assert!(error.message.contains("it has `llama3.3:latest`, `qwen3:8b`. Check"), "the nearest first: {error}");

    let error = ask(open("openai-chat/llama3.3").as_ref(), &said("go")).await.error();
    assert!(!error.message.contains("it has"), "`:latest` may be left out, so it is something else: {error}");
    let error = ask(open("openai-chat/lama3.3").as_ref(), &said("go")).await.error();
    assert!(error.message.contains("not found"), "a server that lists nothing changes nothing: {error}");
    let error = ask(open("openai-chat/lama3.3").as_ref(), &said("go")).await.error();
    assert_eq!(error.failure, Failure::RateLimited);
    let echo = format!(r#"{{"data":[{{"id":"{KEY}"}}]}}"#);
    let spiteful = Fake::start([Reply::json(404, unknown), Reply::json(200, &echo)]).await;
    let keyed = self::environment(&[("OPENAI_BASE_URL", &spiteful.url), ("OPENAI_API_KEY", KEY)]);
    let model = Catalog::new(settings(), &keyed).open_text("openai-chat/m").expect("a model");
    assert!(ask(model.as_ref(), &said("go")).await.error().message.contains("it has `***`"), "L69");
    assert_eq!(fake.seen().len(), 7, "only where the model may be unknown is the list asked for");
}

#[tokio::test]
async fn a_server_that_takes_any_name_keeps_its_own_words_for_what_it_refuses() {
    let bad = |message: &str| {
        let body = serde_json::json!({"error": {"code": 400, "message": message, "type": "invalid_request_error"}});
        Reply::json(400, &body.to_string())
    };
    let list = || Reply::json(200, MODELS);
    let replies = [bad("tools.0: schema not found"), bad("Invalid model: any-model-word"), list()];
    let fake = Fake::start(replies).await;
    let environment = environment(&[("OPENAI_BASE_URL", &fake.url)]);
    let catalog = Catalog::new(settings(), &environment);
    let model = catalog.open_text("openai-chat/any-model-word").expect("a model");
    let error = ask(model.as_ref(), &said("go")).await.error();
    assert!(error.message.contains("schema not found") && !error.message.contains("it has"), "{error}");
    assert_eq!(fake.seen().len(), 1, "and the list is not asked for");
    let error = ask(model.as_ref(), &said("go")).await.error();
    for words in ["Invalid model: any-model-word", "the server has no model `any-model-word`; it has `", "`qwen3:8b`"] {
        assert!(error.message.contains(words), "its own words and the choices: {error}");
    }
    assert_eq!((error.failure, error.status), (Failure::BadRequest, Some(400)));
}

#[tokio::test]
async fn gemini_lists_its_models_by_their_ids() {
    let list = r#"{"models":[{"name":"models/gemini-3.6-flash"},{"name":"tunedModels/x"}]}"#;
    let fake = Fake::start([Reply::json(200, list)]).await;
    let environment = environment(&[("GEMINI_API_KEY", KEY)]);
    let chosen = ModelSettings { base_url: Some(fake.url.clone()), ..settings() };
    let choices = Catalog::new(chosen, &environment).choices("gemini").await.expect("a list");
    assert_eq!(choices, ["gemini-3.6-flash", "tunedModels/x"]);
    assert_eq!(fake.seen()[0].path, "/v1beta/models?pageSize=1000");
}

#[tokio::test]
async fn check_5_7_the_timeout_that_a_person_sets_is_kept() {
    let fake = Fake::start([Reply::pieces(vec![crate::providers::fake::Piece::Hang])]).await;
    let environment = environment(&[("OPENAI_BASE_URL", &fake.url)]);
    let chosen = ModelSettings { timeout: Some(Duration::from_millis(50)), ..settings() };
    let model = Catalog::new(chosen, &environment).open_text("openai-chat/m").expect("a model");
    assert_eq!(ask(model.as_ref(), &said("go")).await.error().failure, Failure::Timeout);
}

#[tokio::test]
async fn the_table_of_the_documentation_is_the_table_of_the_code() {
    let page = include_str!("../../../../../docs/models.md");
    for (set, provider) in [(0, "anthropic"), (1, "openai"), (2, "gemini")] {
        let (variable, key) = KEYS[set];
        let environment = environment(&[(variable, key)]);
        let chosen = Catalog::new(settings(), &environment).first().await.expect(provider);
        let row = page.lines().find(|line| line.starts_with(&format!("| `{provider}` |"))).expect(provider);
        assert!(row.contains(&format!("`{variable}`")), "{row}");
        assert!(row.ends_with(&format!("| `{}` |", chosen.model.name().id)), "{row}");
    }
}

#[test]
fn l69_a_key_that_others_could_read_on_the_way_is_warned_about() {
    let name = "openai-chat/m".parse().expect("a name");
    let caution = |url: &str, set: &[(&'static str, &str)]| {
        let (environment, mut settings) = (environment(set), settings());
        settings.base_url = Some(url.to_owned());
        Catalog::new(settings, &environment).caution(&name)
    };
    let told = caution("http://llm.example:8080/v1", KEYS).expect("a warning");
    assert!(told.contains("OPENAI_API_KEY") && told.contains("llm.example") && !told.contains(KEY), "{told}");
    assert!(caution("http://192.168.1.5:11434", KEYS).is_some(), "also in a network of one's own");
    for url in ["https://llm.example", "http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"] {
        assert_eq!(caution(url, KEYS), None, "{url}");
    }
    assert_eq!(caution("http://llm.example", &[]), None, "no key, nothing to read");
}
