//! Which model works: by flag, by configuration, or the first that the environment has a key for.

use std::sync::Arc;

use portcullis::model::{Catalog, Model, ModelError, ModelSettings};
use portcullis::{ModelSetup, SystemClock};
use portcullis_config::{ModelChoice, Settings};

use crate::exit::usage;
use crate::hints;
use crate::last_start;
use crate::render::{Term, exact};

/// The model of a choice, and how a setup names it. Nothing is sent, except where a server of one's own is asked for the
/// name of its model.
pub async fn choose(
    settings: &Settings,
    chosen: &ModelChoice,
    strict_script: bool,
    term: &Term,
) -> anyhow::Result<(Arc<dyn Model>, Option<ModelSetup>)> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut model = ModelSettings::new(Arc::new(SystemClock::new()));
    model.base_url.clone_from(&chosen.base_url);
    model.timeout = chosen.timeout;
    model.window = chosen.window;
    model.media = chosen.media;
    model.strict_script = strict_script;
    if !chosen.name.as_deref().is_some_and(|name| name.starts_with("scripted:")) {
        tls();
    }
    let catalog = Catalog::new(model, &environment);
    let destination = catalog.destination(chosen.name.as_deref());
    if let Some(destination) = &destination {
        last_start::check(settings, destination, term)?;
    }
    let wrong = |error: ModelError| usage(hints::explained(&error));
    let model = match &chosen.name {
        Some(name) => catalog.open_text(name).map_err(wrong)?,
        None => {
            let found = catalog.first().await.map_err(wrong)?;
            let name = exact(&found.model.name().to_string(), 200);
            term.note(&format!("model: {name} ({})", exact(&found.because.to_string(), 400)));
            found.model
        }
    };
    if let Some(caution) = catalog.caution(model.name()) {
        term.note(&format!("warning: {caution}"));
    }
    if let Some(destination) = &destination {
        last_start::remember(settings, destination)?;
    }
    let setup = chosen.setup(Some(model.name().to_string()));
    Ok((model, setup))
}

/// Before the first model that is spoken to, and not for commands that speak to none: it costs their start nothing.
pub fn tls() {
    // Whoever comes second finds it installed, which is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
