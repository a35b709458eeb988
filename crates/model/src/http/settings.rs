//! How a provider is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::Clock;
use portcullis_secret::SecretText;
use serde_json::{Map, Value};

/// What an exchange may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Until a connection stands.
    pub connect: Duration,
    /// Without a single byte, before the answer begins and in the middle of it. The provider's pings count as bytes.
    pub idle: Duration,
    /// Bytes of an answer on the wire.
    pub answer_bytes: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // As long as a whole request may take by default (agent-runtime 5.4, step 10): a local server may read a
            // long prompt for minutes before its first word, so a person can set more.
            idle: Duration::from_secs(120),
            // The longest answers of today's models are some 128,000 tokens. Framed one token an event that is about
            // 16 MiB; twice that is a server gone wrong.
            answer_bytes: 32 << 20,
        }
    }
}

/// Where a provider is, and with which key.
#[derive(Clone)]
pub struct HttpSettings {
    /// `None`: the provider's own address.
    pub base_url: Option<String>,
    pub key: Option<SecretText>,
    /// How many tokens the model can read; `None` if nobody knows.
    pub window: Option<u64>,
    /// For Chat Completions: whether images and documents are sent. `None`: to OpenAI they are, and any other server
    /// gets words in their place: a model that cannot see fails on an image, and would on every later request.
    pub media: Option<bool>,
    pub limits: HttpLimits,
    /// Further fields of the request, such as `temperature` or `thinking`, sent as they are before the messages.
    pub extra: Map<String, Value>,
    /// For a `retry-after` that is a date.
    pub clock: Arc<dyn Clock>,
}

impl HttpSettings {
    /// The provider's own address, no key, the default limits.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            base_url: None,
            key: None,
            window: None,
            media: None,
            limits: HttpLimits::default(),
            extra: Map::new(),
            clock,
        }
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password before it has been looked at; the extra fields are a person's own.
        f.debug_struct("HttpSettings")
            .field("key", &self.key)
            .field("window", &self.window)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
