//! Who works in sessions that this process wakes: the model, and how its wakes behave.

use std::path::Path;
use std::sync::Arc;

use portcullis::harness::{Guidance, Settings as Wakes, Unwatched};
use portcullis::model::{Catalog, Model, ModelError, ModelSettings};
use portcullis::{Agent, AgentParts, Profile, Runtime, SystemClock, SystemIds};

use crate::args::Globals;
use crate::config::{self, Settings};
use crate::exit::usage;
use crate::render::Term;

/// The guidance of a workspace, first found first (agent-runtime 6.1).
const GUIDANCE: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The model that is named, or the first that is configured. Nothing is sent.
pub async fn choose(globals: &Globals, term: &Term) -> anyhow::Result<Arc<dyn Model>> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut settings = ModelSettings::new(Arc::new(SystemClock::new()));
    settings.base_url.clone_from(&globals.base_url);
    let catalog = Catalog::new(settings, &environment);
    let wrong = |error: ModelError| usage(error.to_string());
    let named = globals.model.clone().or_else(|| environment("PORTCULLIS_MODEL").filter(|name| !name.is_empty()));
    match named {
        Some(name) => catalog.open_text(&name).map_err(wrong),
        None => {
            let found = catalog.first().await.map_err(wrong)?;
            term.note(&format!("model: {} ({})", found.model.name(), found.because));
            Ok(found.model)
        }
    }
}

/// The settings of a run in which a model works: profile `code`, unless a flag says otherwise.
pub fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let mut settings = Settings::load(globals)?;
    if globals.profile.is_none() {
        settings.profile = Profile::Code;
    }
    Ok(settings)
}

/// An agent for sessions of one workspace.
pub fn agent(runtime: &Runtime, model: &Arc<dyn Model>, settings: &Settings) -> Agent {
    let guidance = runtime.workspace().and_then(guidance);
    runtime.agent(AgentParts {
        model: Arc::clone(model),
        settings: Wakes { guidance, ..Wakes::default() },
        watcher: Arc::new(Unwatched),
        entropy: Arc::new(SystemIds::new()),
        sandbox: format!(
            "commands run isolated at level {} or better; their network is {}",
            settings.minimum,
            settings.network.as_str()
        ),
    })
}

/// One that cannot be read is left out: it is no rule.
fn guidance(folder: &Path) -> Option<Guidance> {
    GUIDANCE.iter().find_map(|name| {
        let text = config::read(&folder.join(name)).ok()??;
        Some(Guidance { name: (*name).to_owned(), text })
    })
}
