//! Which model works: by flag, by configuration, or the first that the environment has a key for.

use std::sync::Arc;

use portcullis::ModelSetup;
use portcullis::local::{ModelOpening, OpenedModel};
use portcullis::model::{Destination, Model};
use portcullis_config::{ModelChoice, Settings};
use portcullis_terminal::render::{Term, exact};

use crate::exit::usage;
use crate::hints;
use crate::last_start;

/// The model of a choice, and how a setup names it. Nothing is sent, except where a server of one's own is asked for the
/// name of its model.
pub async fn choose(
    settings: &Settings,
    chosen: &ModelChoice,
    strict_script: bool,
    term: &Term,
) -> anyhow::Result<(Arc<dyn Model>, Option<ModelSetup>)> {
    let opening = ModelOpening::new(chosen, strict_script);
    if opening.is_remote() {
        tls();
    }
    let destination = opening.destination();
    if let Some(destination) = &destination {
        last_start::check(settings, destination, term)?;
    }
    let opened = opening.open().await.map_err(|error| usage(hints::explained(&error)))?;
    tell(settings, destination.as_ref(), &opened, term)?;
    Ok((opened.model, opened.setup))
}

/// Tells what a person should know of a model that was opened, and keeps where its requests go.
pub fn tell(settings: &Settings, to: Option<&Destination>, opened: &OpenedModel, term: &Term) -> anyhow::Result<()> {
    if let Some(because) = &opened.because {
        let name = exact(&opened.model.name().to_string(), 200);
        term.note(&format!("model: {name} ({})", exact(because, 400)));
    }
    if let Some(caution) = &opened.caution {
        term.note(&format!("warning: {caution}"));
    }
    to.map_or(Ok(()), |to| last_start::remember(settings, to))
}

/// Before the first model that is spoken to, and not for commands that speak to none: it costs their start nothing.
pub fn tls() {
    // Whoever comes second finds it installed, which is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
