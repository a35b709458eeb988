//! Alone in its process, because a TLS provider is installed for a whole process and never taken back.

use std::sync::Arc;

use portcullis_base::SystemClock;
use portcullis_model::{Failure, HttpModel, HttpSettings, WireFormat};

#[test]
fn without_a_tls_provider_a_model_is_refused_in_words_and_not_by_a_panic() {
    let mut settings = HttpSettings::new(Arc::new(SystemClock::new()));
    settings.base_url = Some("http://127.0.0.1:1".to_owned());
    let error = HttpModel::new(WireFormat::OpenAiChat, "openai-chat/m".parse().expect("a name"), settings)
        .expect_err("no provider");
    assert_eq!(error.failure, Failure::Config);
    assert!(error.message.contains("install_default"), "{}", error.message);
}
