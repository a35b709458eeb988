//! The model of a choice: by name, or the first that the environment has a key for.

use std::sync::Arc;

use portcullis_agent::setup::ModelSetup;
use portcullis_base::SystemClock;
use portcullis_config::ModelChoice;
use portcullis_model::{Catalog, Destination, Model, ModelError, ModelSettings};

/// A model that is about to be opened.
pub struct ModelOpening<'a> {
    choice: &'a ModelChoice,
    catalog: Catalog<'static>,
}

/// A model that can be asked, and what a person should know of it.
pub struct OpenedModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// How a setup names it.
    pub setup: Option<ModelSetup>,
    /// Why it is this one, where nobody named it.
    pub because: Option<String>,
    /// What is to be minded with it.
    pub caution: Option<String>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl<'a> ModelOpening<'a> {
    /// Prepares to open the model of a choice. A strict script answers nothing but what it holds.
    #[must_use]
    pub fn new(choice: &'a ModelChoice, strict_script: bool) -> Self {
        let mut settings = ModelSettings::new(Arc::new(SystemClock::new()));
        settings.base_url.clone_from(&choice.base_url);
        settings.timeout = choice.timeout;
        settings.window = choice.window;
        settings.media = choice.media;
        settings.strict_script = strict_script;
        Self { choice, catalog: Catalog::new(settings, &variable) }
    }

    /// Whether it speaks to a server.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        !self.choice.name.as_deref().is_some_and(|name| name.starts_with("scripted:"))
    }

    /// Where its requests go, as far as that is known before anybody is asked.
    #[must_use]
    pub fn destination(&self) -> Option<Destination> {
        self.catalog.destination(self.choice.name.as_deref())
    }

    /// Opens it. Nothing is sent, except where a server of one's own is asked for the name of its model.
    ///
    /// # Errors
    /// If there is no such model, or none is at hand.
    pub async fn open(self) -> Result<OpenedModel, ModelError> {
        let (model, because) = match &self.choice.name {
            Some(name) => (self.catalog.open_text(name)?, None),
            None => {
                let found = self.catalog.first().await?;
                (found.model, Some(found.because.to_string()))
            }
        };
        let caution = self.catalog.caution(model.name()).map(|caution| caution.to_string());
        let setup = self.choice.setup(Some(model.name().to_string()));
        Ok(OpenedModel { model, setup, because, caution })
    }
}
