//! From a name to a model: which provider, with which key, at which address.
//!
//! The environment is handed in, never read here: the same names and values always give the same model.

mod destination;
mod listing;
mod providers;
mod windows;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{Clock, edits, nearest};
use portcullis_secret::SecretText;
use serde_json::{Map, Value};

pub use self::destination::Destination;
pub(crate) use self::listing::Listing;
use self::listing::ListingModel;
pub use self::providers::key_variables;
use self::providers::{PROVIDERS, Provider};
use crate::http::HttpClient;
use crate::request::SCRIPTED;
use crate::{Failure, HttpModel, HttpSettings, Model, ModelError, ModelName, ModelSetting, Scripted};

/// Names that people know a provider by, or a server that speaks like it.
const OTHER_NAMES: [(&str, &[&str]); 4] = [
    ("anthropic", &["claude"]),
    ("openai", &["gpt", "chatgpt"]),
    ("gemini", &["google", "vertex"]),
    (
        "openai-chat",
        &[
            "ollama",
            "llama",
            "llama.cpp",
            "llamacpp",
            "vllm",
            "lmstudio",
            "lm-studio",
            "local",
            "openrouter",
            "mistral",
            "groq",
            "deepseek",
            "azure",
            "together",
            "xai",
        ],
    ),
];

/// Letters in which a mistyped name may differ; more of them are another name.
const MISTYPED: usize = 3;

/// What a person has set for models, by flag or file. It beats the environment.
#[derive(Clone)]
pub struct ModelSettings {
    /// `--base-url`: another address than the provider's own.
    pub base_url: Option<String>,
    /// The longest silence of a provider that is waited for.
    pub timeout: Option<Duration>,
    /// How many tokens the model can read, where the person knows better than our table.
    pub window: Option<u64>,
    /// Whether images and documents are sent where that is a choice; `None`: to the models that are known to take them.
    pub media: Option<bool>,
    /// Further fields of the request, as the provider names them.
    pub extra: Map<String, Value>,
    /// `--strict-script`.
    pub strict_script: bool,
    pub clock: Arc<dyn Clock>,
}

impl ModelSettings {
    /// Nothing set.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            base_url: None,
            timeout: None,
            window: None,
            media: None,
            extra: Map::new(),
            strict_script: false,
            clock,
        }
    }
}

/// A model that was taken because none was named.
pub struct ChosenModel {
    pub model: Arc<dyn Model>,
    /// Why this one, for a person: `ANTHROPIC_API_KEY is set`.
    pub because: String,
}

/// A provider that is configured.
pub struct AtHand {
    pub provider: &'static str,
    /// Its model where none is named; `None`: the first one that its server lists.
    pub default_model: Option<&'static str>,
    /// Why it counts as configured, for a person.
    pub because: String,
}

/// Names to models.
pub struct Catalog<'e> {
    settings: ModelSettings,
    environment: &'e (dyn Fn(&str) -> Option<String> + Send + Sync),
}

impl<'e> Catalog<'e> {
    /// `environment` looks up a variable.
    pub fn new(settings: ModelSettings, environment: &'e (dyn Fn(&str) -> Option<String> + Send + Sync)) -> Self {
        Self { settings, environment }
    }

    /// The model of that name, `PROVIDER/MODEL` or `scripted:FILE`. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: an unknown provider (names the nearest), no key (names the variable), a script that is wrong.
    pub fn open(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        if name.provider == SCRIPTED {
            let script = Scripted::load(Path::new(&name.id))?.strict(self.settings.strict_script);
            return Ok(Arc::new(script.with_window(self.settings.window)));
        }
        let provider = self.provider(name)?;
        let settings = self.http(provider, name);
        if settings.key.is_none() && !(provider.keyless && settings.base_url.is_some()) {
            return Err(no_key(provider, name));
        }
        let model = HttpModel::new(provider.format, name.clone(), settings)?;
        Ok(match provider.format.endpoint().listing {
            Some(listing) => Arc::new(ListingModel { model, listing }),
            None => Arc::new(model),
        })
    }

    /// [`Self::open`] for the text of a name.
    ///
    /// # Errors
    /// As there, and where the text is no name.
    pub fn open_text(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.open(&name.parse()?)
    }

    /// What a person should know before this model is asked: their key would be sent so that others can read it.
    #[must_use]
    pub fn caution(&self, name: &ModelName) -> Option<String> {
        let provider = self.provider(name).ok()?;
        let settings = self.http(provider, name);
        let (url, _) = (settings.base_url?, settings.key?);
        let host = crate::http::read_by_others(&url)?;
        let key = provider.key();
        Some(format!(
            "the key in {key} goes to {host} without encryption, and every machine on the way can read it: use https://, or unset {key}"
        ))
    }

    /// The first model that is configured, in the order of the table: an address without a model asks its server for one.
    ///
    /// # Errors
    /// [`Failure::Config`] if none is, saying what to set; whatever a server answers that was asked for its models.
    pub async fn first(&self) -> Result<ChosenModel, ModelError> {
        for provider in PROVIDERS {
            let Some(because) = self.configured(provider) else { continue };
            let id = match provider.default_model {
                Some(id) => id.to_owned(),
                None => self.first_listed(provider).await?,
            };
            let model = self.open(&ModelName { provider: provider.name.to_owned(), id })?;
            return Ok(ChosenModel { model, because });
        }
        let keys: Vec<&str> = PROVIDERS.iter().filter(|p| !p.keyless).map(|provider| provider.key()).collect();
        let what = format!("no model is configured: none of {} is set", keys.join(", "));
        Err(ModelError::new(Failure::Config, what).mended_by(ModelSetting::ModelOrServer))
    }

    /// The providers that are configured, in the order in which one is looked for. Nobody is asked anything.
    #[must_use]
    pub fn at_hand(&self) -> Vec<AtHand> {
        let found = PROVIDERS.iter().filter_map(|provider| {
            let because = self.configured(provider)?;
            Some(AtHand { provider: provider.name, default_model: provider.default_model, because })
        });
        found.collect()
    }

    /// The ids of the models that a provider's server has, in its order.
    ///
    /// # Errors
    /// [`Failure::Config`] for a provider that cannot be asked; whatever stood in the way otherwise.
    pub async fn choices(&self, provider: &str) -> Result<Vec<String>, ModelError> {
        // Only for the words of errors: nobody is asked for this model.
        let name = ModelName { provider: provider.to_owned(), id: "models".to_owned() };
        let provider = self.provider(&name)?;
        let Some(listing) = provider.format.endpoint().listing else {
            let what = format!("{}: this provider is not asked for its models; see its documentation", provider.name);
            return Err(ModelError::new(Failure::Config, what));
        };
        let settings = self.http(provider, &name);
        if settings.key.is_none() && !(provider.keyless && settings.base_url.is_some()) {
            return Err(no_key(provider, &name));
        }
        listing.ids(&HttpClient::new(&name, provider.format.endpoint().place, &settings)?).await
    }

    async fn first_listed(&self, provider: &Provider) -> Result<String, ModelError> {
        let ids = self.choices(provider.name).await?;
        ids.into_iter().next().ok_or_else(|| {
            let what = format!("{}: the server lists no model; load one there, or name it", provider.name);
            ModelError::new(Failure::Config, what).mended_by(ModelSetting::Model)
        })
    }

    /// Why a provider counts as configured, if it does.
    fn configured(&self, provider: &Provider) -> Option<String> {
        match (provider.keyless, &self.settings.base_url) {
            // An address without a model is a compatible server's. No other provider's key goes there unasked.
            (true, Some(_)) => Some("its address is given".to_owned()),
            (false, Some(_)) => None,
            // With a key alone the provider's own service is meant, which has a row of its own.
            (true, None) => {
                provider.base_url.filter(|name| self.variable(name).is_some()).map(|name| format!("{name} is set"))
            }
            (false, None) => self.variable(provider.key()).map(|_| format!("{} is set", provider.key())),
        }
    }

    fn provider(&self, name: &ModelName) -> Result<&'static Provider, ModelError> {
        let known = || PROVIDERS.iter().map(|provider| provider.name).chain([SCRIPTED]);
        PROVIDERS.iter().find(|provider| provider.name == name.provider).ok_or_else(|| {
            let meant = OTHER_NAMES.iter().find(|(_, names)| names.contains(&name.provider.as_str())).map(|(meant, _)| *meant);
            let near = || nearest(&name.provider, known()).filter(|near| edits(&name.provider, near) <= MISTYPED);
            let meant = meant.or_else(near).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            let all = known().collect::<Vec<_>>().join(", ");
            let what = format!(
                "{name}: there is no provider `{}`; {meant}Known: {all}. A server of your own is openai-chat/MODEL with its address",
                name.provider
            );
            ModelError::new(Failure::Config, what).mended_by(ModelSetting::Server)
        })
    }

    fn http(&self, provider: &Provider, name: &ModelName) -> HttpSettings {
        let mut http = HttpSettings::new(Arc::clone(&self.settings.clock));
        http.base_url = self.settings.base_url.clone().or_else(|| self.variable(provider.base_url?));
        http.key = self.variable(provider.key()).map(SecretText::new);
        let hosted = http.base_url.as_deref().is_some_and(crate::http::is_hosted);
        http.window = self.settings.window.or_else(|| windows::window(provider.name, &name.id, hosted));
        http.media = self.settings.media;
        http.extra = self.settings.extra.clone();
        if let Some(timeout) = self.settings.timeout {
            http.limits.idle = timeout;
        }
        http
    }

    /// A variable that is set and says something.
    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

fn no_key(provider: &Provider, name: &ModelName) -> ModelError {
    let error = |or: &str| ModelError::new(Failure::Config, format!("{name}: no key: set {}{or}", provider.key()));
    match provider.base_url {
        Some(variable) if provider.keyless => {
            error(&format!(", or {variable} for a server that needs no key")).mended_by(ModelSetting::Server)
        }
        _ => error(""),
    }
}
